"""Capacity of a machine: weights and KV cache spread evenly over all chips, which no layout of its degrees beats; and an engine's room.

Chips that hold a load (exact and rounded up), the largest batch and the longest context that fit, room left, and the time to read it all.
What a chip has for them is what the engine leaves it in the layout, by default the widest legal tensor parallelism.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from headway.core.quantity import default, known
from headway.core.trace import unrecorded
from headway.core.units import Byte, Number, Token
from headway.hardware.system import System
from headway.laws.queueing.departures import user_tokens_per_s
from headway.laws.rack import fewest_within
from headway.laws.roofline.balance import bytes_beside_weights, domain_read_s
from headway.laws.roofline.batch_step import batch_compute_s, roofline_s
from headway.laws.serving.room import room_tokens
from headway.laws.step.memory import fits_host
from headway.models import totals
from headway.models.model import Model
from headway.models.precision import Precision
from headway.models.work import ModelWork, work_of
from headway.performance.achieved import efficiencies
from headway.performance.assumptions import Assumptions
from headway.performance.calibration.in_force import calibrations
from headway.performance.calibration.key import run_key
from headway.performance.calibration.start import start_in_force, started_room, started_share
from headway.performance.compile import layout_bytes
from headway.performance.formats import Formats, main_part, resolve
from headway.performance.layout import UNASKED, Layout, illegal, shape
from headway.performance.offload import offload_notes
from headway.performance.room import Room, room_on_chip

LONGEST, SHORT = 2**40, 2**12
BESIDE = "memory beside the weights over the bytes of a sequence"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EvenSplit:
    """Capacity of a machine for a model at one batch and context."""

    weights_bytes: Any
    sequence_bytes: Any
    load_bytes: Any
    usable_bytes: Any
    fits: bool
    chips_exact: Any
    chips_needed: Any
    largest_batch: Any
    largest_context: Any
    room_bytes: Any
    read_floor_s: Any
    compute_s: Any  # of the matmuls, in the format of the FFN; attention's own arithmetic and all links left out
    memory_s: Any  # to read the cache, and of the weights what the batch touches
    roofline_s: Any
    roofline_tok_per_s: Any
    bound: str
    weights: str
    kv: str
    host_bytes: Any  # routed experts in the memory of all hosts; None where the chips hold them
    layout: Layout
    room: Room
    max_concurrency: Any  # of a replica, at the context
    kv_room_tokens: Any
    utilization: Any  # share of the card
    notes: tuple[str, ...]


def widest(work: ModelWork, machine: System) -> Layout:
    """The widest legal tensor parallelism within a scale-up domain that leaves no chip idle, and as many replicas as fill the machine."""
    chips, form = int(machine.chips), shape(work.blocks)
    most = min(chips, int(machine.scale_up_domain or 1))
    legal = (tp for tp in range(most, 0, -1) if chips % tp == 0 and not illegal(Layout(tp=tp), form))
    tp = next(legal, 1)
    why = "the widest legal tensor parallelism, unless a flag says otherwise"
    return Layout(**UNASKED | {"tp": default(tp, "tp", "", why), "replicas": default(chips // tp, "replicas", "", why)})


def even_split(
    model: Model, machine: System, precision: Precision, assumptions: Assumptions, batch: Number, context: Token,
    layout: Layout | None = None,
) -> EvenSplit:  # fmt: skip
    """Capacity of all chips together; sequences are of equal context, their recurrent state counted.

    Experts that the assumptions leave in the memory of the hosts are read from there, beside all else.
    """
    work, chip, engine = work_of(model), machine.chip, assumptions.engine
    notes = offload_notes(work, chip, assumptions.offload)
    formats, spread = resolve(work, chip, precision), widest(work, machine) if layout is None else layout
    on_chip = layout_bytes(work, chip, spread, assumptions, formats)
    start = start_in_force(calibrations(), run_key(model, machine, spread, formats, engine), spread)

    def room_at(share: Number) -> Room:
        return room_on_chip(work, chip, spread, on_chip, engine, share, efficiencies(chip), eager=assumptions.eager)

    place = started_room(room_at, start, assumptions.hbm_utilization)
    concurrency = place.sequences(context, spread.cp)
    weights, hosted = totals.loaded_bytes(model, precision.weights), None
    routed = totals.routed_bytes(model, precision.weights)
    touched = totals.routed_bytes(model, precision.weights, batch)
    if assumptions.offload != "none":
        hosted = routed
        weights = bytes_beside_weights(weights, hosted)
    sequence = totals.sequence_bytes(model, context, formats.kv.bytes, formats.state.bytes)
    chip_bytes = place.usable
    usable = machine.chips * chip_bytes
    load = weights + sequence * batch
    beside = bytes_beside_weights(usable, weights)
    read = weights + totals.kv_read_bytes(model, context, formats.kv.bytes) * batch
    longest = memory = domain_read_s(read, machine.chips, chip.need("hbm_bw"))
    if hosted is not None:
        longest = np.maximum(longest, domain_read_s(hosted, machine.chips, chip.need("host_link_bw")))
        memory = np.maximum(memory, domain_read_s(touched, machine.chips, chip.need("host_link_bw")))
    elif routed:
        memory = domain_read_s(bytes_beside_weights(read, routed) + touched, machine.chips, chip.need("hbm_bw"))
    main = main_part(work.blocks)
    compute = batch_compute_s(batch, totals.matmul_params(model), machine.chips * formats.best_peaks[main[0]][main[1]])
    step = roofline_s(compute, memory)
    room = hosted is None or chip.host_dram is None or bool(fits_host(hosted, chip.host_dram * machine.chips))
    return EvenSplit(
        weights_bytes=weights, sequence_bytes=sequence, load_bytes=load, usable_bytes=usable, fits=bool(load <= usable) and room,
        chips_exact=load / chip_bytes if chip_bytes else None, chips_needed=fewest_within(load, chip_bytes) if chip_bytes else None,
        largest_batch=known(int(beside / sequence), "largest batch, rounded down", "", "derived", BESIDE),
        largest_context=_longest(model, formats, beside, batch), room_bytes=bytes_beside_weights(usable, load), read_floor_s=longest,
        compute_s=compute, memory_s=memory, roofline_s=step, roofline_tok_per_s=batch * user_tokens_per_s(step),
        bound="compute" if compute > memory else "memory", weights=formats.labels[0], kv=formats.labels[1],
        host_bytes=hosted, layout=spread, room=place, max_concurrency=concurrency * spread.dp,
        kv_room_tokens=room_tokens(concurrency, context, spread.dp), utilization=started_share(start, assumptions.hbm_utilization),
        notes=(*notes, *formats.notes, *model.notes),
    )  # fmt: skip


def _longest(model: Model, formats: Formats, beside: Byte, batch: Number) -> Any:
    """Longest context at which the batch fits, by halving; 0 where none does, None where a longer context takes no more."""

    def fits(context: int) -> bool:
        return float(totals.sequence_bytes(model, context, formats.kv.bytes, formats.state.bytes)) * batch <= beside

    with unrecorded():
        if fits(LONGEST):
            return None
        low, high = 0, SHORT
        while fits(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
    return known(low, "longest context", "token", "derived", "memory beside the weights, searched by halving")
