"""Capacity without a layout: weights and KV cache spread evenly over all chips, which no layout beats.

Chips that hold a load (exact and rounded up), the largest batch and the longest context that fit, room left, and the time to read it all.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.core.units import Byte, Number, Token
from headway.hardware.system import System
from headway.laws.rack import fewest_within
from headway.laws.roofline.balance import bytes_beside_weights, domain_read_s
from headway.laws.step.memory import fits_host
from headway.models import totals
from headway.models.model import Model
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.formats import Formats, resolve
from headway.performance.offload import offload_notes

LONGEST = 2**40
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
    host_bytes: Any  # routed experts in the memory of all hosts; None where the chips hold them
    notes: tuple[str, ...]


def even_split(
    model: Model, machine: System, precision: Precision, utilization: Number, batch: Number, context: Token, offload: str = "none"
) -> EvenSplit:
    """Capacity of all chips together; sequences are of equal context, their recurrent state counted.

    Experts that `offload` leaves in the memory of the hosts are read from there, beside all else.
    """
    formats, chip = resolve(work_of(model), machine.chip, precision), machine.chip
    notes, weights, hosted = offload_notes(work_of(model), chip, offload), totals.loaded_bytes(model, precision.weights), None
    if offload != "none":
        hosted = totals.routed_bytes(model, precision.weights)
        weights = bytes_beside_weights(weights, hosted)
    sequence = totals.sequence_bytes(model, context, formats.kv.bytes, formats.state.bytes)
    chip_bytes = machine.chip.need("hbm") * utilization
    usable = machine.chips * chip_bytes
    load = weights + sequence * batch
    beside = bytes_beside_weights(usable, weights)
    read = weights + totals.kv_read_bytes(model, context, formats.kv.bytes) * batch
    longest = domain_read_s(read, machine.chips, chip.need("hbm_bw"))
    if hosted is not None:
        longest = np.maximum(longest, domain_read_s(hosted, machine.chips, chip.need("host_link_bw")))
    room = hosted is None or chip.host_dram is None or bool(fits_host(hosted, chip.host_dram * machine.chips))
    return EvenSplit(
        weights_bytes=weights, sequence_bytes=sequence, load_bytes=load, usable_bytes=usable, fits=bool(load <= usable) and room,
        chips_exact=load / chip_bytes, chips_needed=fewest_within(load, chip_bytes),
        largest_batch=known(int(beside / sequence), "largest batch, rounded down", "", "derived", BESIDE),
        largest_context=_longest(model, formats, beside, batch), room_bytes=bytes_beside_weights(usable, load),
        read_floor_s=longest, host_bytes=hosted, notes=(*notes, *formats.notes, *model.notes),
    )  # fmt: skip


def _longest(model: Model, formats: Formats, beside: Byte, batch: Number) -> Any:
    """Longest context at which the batch fits, by halving; 0 where none does, None where a longer context takes no more."""

    def fits(context: int) -> bool:
        return float(totals.sequence_bytes(model, context, formats.kv.bytes, formats.state.bytes)) * batch <= beside

    low, high = 0, LONGEST
    if fits(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return known(low, "longest context", "token", "derived", "memory beside the weights, searched by halving")
