"""`headway capacity MODEL --on MACHINE --batch 64 --context 8k`: what fits on a machine, and what an engine sets up."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.core import schema, units
from headway.core.errors import BadValue, IllegalCombination
from headway.core.listing import traced_listing
from headway.core.quantity import default
from headway.core.trace import record
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.assumptions import Assumptions
from headway.performance.capacity import even_split
from headway.performance.layout import NAMES, Layout, shape
from headway.performance.questions import CapacityQuestion
from headway.performance.workload import Load
from headway.report import output, serving
from headway.report.start_log import start_log

if TYPE_CHECKING:
    from headway.core.listing import Rows
    from headway.hardware.chip import Chip
    from headway.hardware.system import System
    from headway.models.model import Model

VIEW = ("model", "system", "chips", "weights", "batch", "context", "weights_bytes", "sequence_bytes", "fits", "chips_needed",
        "largest_batch", "largest_context", "compute_s", "memory_s", "roofline_tok_per_s", "bound", "room_bytes", "kv_room_tokens",
        "max_concurrency", "read_floor_s", "chips_exact")  # fmt: skip
SPLIT = ("weights", "kv", "weights_bytes", "sequence_bytes", "load_bytes", "usable_bytes", "fits", "chips_exact", "chips_needed",
         "largest_batch", "largest_context", "room_bytes", "compute_s", "memory_s", "roofline_s", "roofline_tok_per_s", "bound",
         "read_floor_s", "kv_room_tokens", "max_concurrency")  # fmt: skip
ON_CHIP = {"weights_bytes_chip": "weights", "kv_room_bytes_chip": "kv", "activation_bytes_chip": "activations",
           "workspace_bytes_chip": "workspace", "left_bytes_chip": "beyond", "block_rest_bytes_chip": "rest", "hbm_bytes_chip": "usable",
           "memory_bytes_chip": "reported"}  # fmt: skip
OF_MEMORY = ("engine", "eager", "hbm_utilization", "offload")  # assumptions that the question has
MOST_POINTS = 10_000


def run(args: CapacityQuestion) -> output.Answer:
    """Answer with a row per model, machine, batch and context."""
    load = schema.read(
        args, Load, ("batch", "context"), tuple(key for key in schema.fields(Load) if key not in ("batch", "context"))
    )
    texts = schema.read(args, Precision, skip=("compute",))
    user_values = schema.read(args, Assumptions, skip=tuple(key for key in schema.fields(Assumptions) if key not in OF_MEMORY))
    degrees = schema.read(args, Layout, skip=("redundant",))
    if any(isinstance(value, tuple) for value in (*user_values.values(), *degrees.values())):
        raise BadValue("layout or engine", "a list", "one layout, engine, share of the card, place of experts")
    precisions = [Precision(**dict(zip(texts, case, strict=True))) for case in itertools.product(*schema.axes(texts).values())]
    complete = schema.defaults(Assumptions, user_values)
    by_user = "tp" in degrees or any(degree != 1 for degree in degrees.values())  # one way typed out is what holds without it
    batches = schema.several(load.get("batch", default(1, "batch", "", "default of --batch")))
    contexts = schema.several(load.get("context", default(8192, "context", "token", "default of --context")))
    cases = list(itertools.product(arguments.models(args), arguments.systems(args), precisions, batches, contexts))
    if len(cases) > MOST_POINTS:
        raise BadValue("grid", f"{len(cases)} points", f"at most {MOST_POINTS}")
    traced, all_notes, share = [], list[str](), 0.0
    with record():
        for model, (machine, edits), precision, batch, context in cases:
            layout = _layout(args, model, machine, precision, degrees) if by_user else None
            split = even_split(model, machine, precision, complete, batch, context, layout)
            share = share or float(split.utilization)  # of the first, which is described
            if complete.eager and not traced:
                graphs = even_split(model, machine, precision, dataclasses.replace(complete, eager=False), batch, context, layout)
                if float(graphs.room.workspace) == float(split.room.workspace):
                    raise BadValue("--eager", "on", f"an engine that sets memory aside for graphs, which {complete.engine} does not")
            all_notes += [note for note in split.notes if note not in all_notes]
            about = {"model": model.name, "system": machine.name, "chips": machine.chips, "batch": batch, "context": context}
            hosted = {} if split.host_bytes is None else {"host_bytes": split.host_bytes}
            shares = {name: getattr(split.layout, name) for name in NAMES if name != "redundant"}
            on_chip = {key: getattr(split.room, name) for key, name in ON_CHIP.items()}
            traced.append(edits | about | shares | {key: getattr(split, key) for key in SPLIT} | on_chip | hosted)
    chips = {machine.name: machine.chip for _, (machine, _), *_ in cases}
    describe = functools.partial(_describe, chips=chips, engine=complete.engine, share=share)
    return output.Answer(traced_listing(traced), notes=all_notes, describe=describe)


def _layout(args: CapacityQuestion, model: Model, machine: System, precision: Precision, degrees: dict[str, Any]) -> Layout:
    """The layout of the flags, with as many replicas as fill the machine unless they say."""
    (layout,) = arguments.ranked(shape(work_of(model).blocks, precision.weights), degrees)
    chips = int(layout.tp * layout.cp * layout.dp * layout.pp)
    if chips * int(layout.replicas) > machine.chips:
        raise IllegalCombination("--on", machine.name, f"at least {chips * int(layout.replicas)} chips for {layout}")
    return layout if "replicas" in degrees else dataclasses.replace(layout, replicas=int(machine.chips) // chips)


def _describe(rows: Rows, chips: dict[str, Chip], engine: str, share: float) -> output.Summary:
    row_list = list(rows)
    first = row_list[0]
    holds = f"{first['model']} at batch {first['batch']} and context {first['context']:,} needs {units.show(first['load_bytes'], 'byte')}"
    verdict = "fits" if first["fits"] else "does not fit"
    chips_of = "an engine leaves nothing of a chip" if first["chips_exact"] is None else (
        f"{first['chips_exact']:.2f} chips, so {first['chips_needed']:.0f}"
    )
    rate = f": at most {units.show(first['roofline_tok_per_s'], 'token/s')}, {first['bound']} binds" if first["fits"] else ""
    headline = f"{holds}: {chips_of}; it {verdict} on {first['system']}{rate}."
    log = start_log(first, engine, chips[first["system"]], share)
    after = [*(line if place else f"{line} (layout {serving.layout(first)})" for place, line in enumerate(log)),
             "Weights over all chips, KV cache by sequence, evenly: no layout of these degrees holds more. `serve` and `plan` weigh "
             f"layouts; an engine's room is that of {serving.layout(first)}."]  # fmt: skip
    if first.get("host_bytes") is not None:
        after.append(f"The hosts' memory holds {units.show(first['host_bytes'], 'byte')} of experts.")
    return output.Summary(headline, (*VIEW, *(("host_bytes",) if first.get("host_bytes") is not None else ())), after)
