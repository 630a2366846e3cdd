"""`headway lecture --model M --on X [--bridge]` and `headway show model M --on X`: a model on a machine beside the lecture's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.core import schema
from headway.core.columns import Column
from headway.core.errors import BadValue
from headway.core.listing import Listing, computed
from headway.core.trace import record
from headway.evidence.lecture.card import figures
from headway.evidence.lecture.machine import lecture_case
from headway.models.precision import Precision
from headway.performance.workload import Load
from headway.report import lecture_card as words
from headway.report import output

if TYPE_CHECKING:  # the verbs that show the card import their flags from here
    from headway.evidence.lecture.bridge import BridgeStage
    from headway.evidence.lecture.card import CardFigure
    from headway.evidence.lecture.machine import LectureCase

CARD = {
    "figure": Column("", "quantity of the lecture"),
    "here": Column("", "its value for this model on this machine, in the row's unit"),
    "lecture": Column("", "the figure that the lecture gives; null where it gives a formula or nothing"),
    "reason": Column("", "where the figure comes from, or why the two differ"),
}
BRIDGE = {
    "quantity": Column("", "what a reader takes for one figure"),
    "stage": Column("", "what this stage adds to the board's figure"),
    "factor": Column("", "the figure after this stage over the figure before it"),
    "value": Column("", "the figure after this stage, in the row's unit"),
    "reason": Column("", "what this stage counts"),
}


def run(args: Any, model: Any) -> output.Answer:
    """Answer with the card of a model, or with the bridge."""
    for flag, value in (("--model", model), ("--on", args.on)):
        if not value:
            raise BadValue(flag, "nothing", "a model and a machine: --model deepseek-v3 --on gb200-nvl72")
    from headway.evidence.lecture.bridge import stages

    with record():
        case = _case(args, model)
        return _bridge(case, stages(case)) if args.bridge else _card(case, figures(case))


def _case(args: Any, model: Any) -> LectureCase:
    models, machines = arguments.models(args, model), arguments.systems(args)
    if len(models) > 1 or len(machines) > 1:
        raise BadValue("--model, --on", f"{model}, {args.on}", "one model and one machine")
    marks = schema.fields(Load)
    context = None if args.context is None else schema.scalar(args.context, marks["context"][0], "--context")
    batch = None if args.batch is None else schema.scalar(args.batch, schema.Field(integer=True, high=1e7), "--batch")
    formats = schema.fields(Precision)
    overrides = {
        name: schema.scalar(getattr(args, name), formats[name][0], f"--{name}") for name in ("weights", "kv") if getattr(args, name)
    }
    return lecture_case(models[0], machines[0][0], Precision(**overrides), batch, context)


def _card(case: LectureCase, quantities: list[CardFigure]) -> output.Answer:
    rows = [
        {"figure": entry.name, "id": entry.claim_id, "here": None if entry.value is None else float(entry.value), "unit": entry.unit,
         "lecture": entry.lecture, "reason": entry.reason}
        for entry in quantities
    ]  # fmt: skip
    by_name = {entry.name: entry for entry in quantities}

    def tree(row: Any, key: str) -> Any:
        if key != "here" or by_name[row["figure"]].value is None:
            raise BadValue(
                "--explain", key, "the column here, of a figure that applies; choose it by --where \"figure = 'balanced batch'\""
            )
        return computed(by_name[row["figure"]].value, key)

    def describe(table: Any) -> output.Summary:
        return words.card(case, [by_name[row["figure"]] for row in table])

    return output.Answer(Listing(rows, tree=tree), describe=describe, describes_none=True, notes=words.notes(case), columns=CARD)


def _bridge(case: LectureCase, stages: list[BridgeStage]) -> output.Answer:
    rows = [
        {"quantity": stage.quantity, "stage": stage.name, "factor": None if stage.factor is None else float(stage.factor),
         "value": float(stage.value), "unit": stage.unit, "reason": stage.reason}
        for stage in stages
    ]  # fmt: skip
    by_key = {(stage.quantity, stage.name): stage for stage in stages}

    def tree(row: Any, key: str) -> Any:
        if key not in ("value", "factor") or row[key] is None:
            raise BadValue("--explain", key, "value, or factor of a stage that has one; choose it by --where \"stage = 'fitted rates'\"")
        return computed(getattr(by_key[row["quantity"], row["stage"]], key), key)

    def describe(table: Any) -> output.Summary:
        return words.bridge(case, [by_key[row["quantity"], row["stage"]] for row in table])

    return output.Answer(Listing(rows, tree=tree), describe=describe, describes_none=True, notes=words.notes(case), columns=BRIDGE)
