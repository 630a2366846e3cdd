"""`headway capacity MODEL --on MACHINE --batch 64 --context 8k`: what fits on a machine, before any layout is chosen."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from headway.answers import arguments
from headway.core import schema, units
from headway.core.errors import BadValue
from headway.core.listing import traced_listing
from headway.core.quantity import default
from headway.core.trace import record
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.capacity import even_split
from headway.performance.questions import CapacityQuestion
from headway.performance.workload import Load
from headway.report import output

if TYPE_CHECKING:
    from headway.core.listing import Rows

VIEW = ("model", "system", "chips", "batch", "context", "weights_bytes", "sequence_bytes", "fits", "chips_exact", "chips_needed",
        "largest_batch", "largest_context", "room_bytes", "read_floor_s")  # fmt: skip
OF_MEMORY = ("hbm_utilization", "offload")  # assumptions that the question has
MOST_POINTS = 10_000


def run(args: CapacityQuestion) -> output.Answer:
    """Answer with a row per model, machine, batch and context."""
    load = schema.read(
        args, Load, ("batch", "context"), tuple(key for key in schema.fields(Load) if key not in ("batch", "context"))
    )
    texts = schema.read(args, Precision, skip=("compute",))
    share = schema.read(args, Assumptions, skip=tuple(key for key in schema.fields(Assumptions) if key not in OF_MEMORY))
    if any(isinstance(value, tuple) for value in (*texts.values(), *share.values())):
        raise BadValue("formats", "a list", "one format of weights, one of the KV cache, one share of HBM, one place of experts")
    assumptions = schema.defaults(Assumptions, share)
    batches = schema.several(load.get("batch", default(1, "batch", "", "default of --batch")))
    contexts = schema.several(load.get("context", default(8192, "context", "token", "default of --context")))
    cases = list(itertools.product(arguments.models(args), arguments.systems(args), batches, contexts))
    if len(cases) > MOST_POINTS:
        raise BadValue("grid", f"{len(cases)} points", f"at most {MOST_POINTS}")
    traced, all_notes = [], list[str]()
    with record():
        for model, (machine, edits), batch, context in cases:
            split = even_split(model, machine, Precision(**texts), assumptions.hbm_utilization, batch, context, assumptions.offload)
            all_notes += [note for note in split.notes if note not in all_notes]
            keys = ("weights_bytes", "sequence_bytes", "load_bytes", "usable_bytes", "fits", "chips_exact", "chips_needed", "largest_batch",
                    "largest_context", "room_bytes", "read_floor_s")  # fmt: skip
            about = {"model": model.name, "system": machine.name, "chips": machine.chips, "batch": batch, "context": context}
            hosted = {} if split.host_bytes is None else {"host_bytes": split.host_bytes}
            traced.append(edits | about | {key: getattr(split, key) for key in keys} | hosted)
    return output.Answer(traced_listing(traced), notes=all_notes, describe=_describe)


def _describe(rows: Rows) -> output.Summary:
    row_list = list(rows)
    first = row_list[0]
    holds = f"{first['model']} at batch {first['batch']} and context {first['context']:,} needs {units.show(first['load_bytes'], 'byte')}"
    verdict = "fits" if first["fits"] else "does not fit"
    headline = f"{holds}: {first['chips_exact']:.2f} chips, so {first['chips_needed']:.0f}; it {verdict} on {first['system']}."
    after = ["Weights over all chips, KV cache by sequence, evenly: no layout holds more. `serve` and `plan` weigh legal layouts."]
    if first.get("host_bytes") is not None:
        after.append(f"The hosts' memory holds {units.show(first['host_bytes'], 'byte')} of experts.")
    return output.Summary(headline, (*VIEW, *(("host_bytes",) if first.get("host_bytes") is not None else ())), after)
