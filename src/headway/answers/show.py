"""`headway show model|chip|system NAME`: facts and derived values; `show model M --on X` and `lecture --model M`: the card of a model."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.core import schema
from headway.core.columns import Column
from headway.core.errors import BadValue, check_known
from headway.core.listing import Listing, cell, clean, computed, format_value
from headway.core.trace import record
from headway.evidence.lecture.card import figures, lecture_case
from headway.models.precision import Precision
from headway.performance.workload import Load
from headway.report import lecture_card as words
from headway.report import output
from headway.report.words import sentence

if TYPE_CHECKING:
    from headway.evidence.lecture.card import BridgeStage, CardFigure, LectureCase


KINDS = ("model", "chip", "system")
SOURCES = {"sources": Column("", "where each fact comes from: source, date and kind")}
UNKNOWN = "- where no public figure is known"
# Facts of the sentence, in words.
HEADLINE = {"chips": " chips", "peak_bf16": " in bf16", "hbm": " of HBM", "hbm_bw": " to HBM", "scale_up_domain": " chips in a domain"}


def run(args: Any) -> output.Answer:
    """Answer with one row: the facts of the subject, and values derived from them."""
    check_known("kind of thing to show", args.what, KINDS)
    if args.on or args.bridge:
        if args.what != "model":
            raise BadValue("--on", args.on or "--bridge", f"show model; it is the machine of a model's card, not of a {args.what}")
        return card(args, args.name)
    return _model(args) if args.what == "model" else _machine(args)


def _model(args: Any) -> output.Answer:
    from headway.core.trace import record
    from headway.models.describe import ModelSummary, about_model
    from headway.performance.workload import Load

    context = schema.scalar(args.context, schema.fields(Load)["context"][0], "--context")
    model = arguments.model(args.name, args)
    row = clean(dataclasses.asdict(about_model(model, context)))

    def tree(_: Any, key: str) -> Any:
        with record():
            value = getattr(about_model(arguments.model(args.name, args), context), key)
        return computed(value, key)

    plain = {key: value for key, value in row.items() if not isinstance(value, list | dict)}
    people = [{"fact": key, "value": cell(key, row), "about": q.help} for key, q in _marks(ModelSummary).items() if key in plain]
    people += [line for key, value in row.items() if isinstance(value, list | dict) for line in _part(key, value)]
    return output.Answer(
        Listing([row], tree=tree),
        output.Summary(sentence(f"{model.name}: {_brief(row)}"), people=Listing(people), first=("fact", "value")),
        columns={key: Column(q.unit, q.help) for key, q in _marks(ModelSummary).items()},
    )


def _marks(kind: type) -> dict[str, Any]:

    return {key: q for key, (q, _) in schema.fields(kind).items()}


def _brief(row: dict[str, Any]) -> str:
    labels = {"total_params": "parameters", "active_params": "active per token", "cache_bytes_per_token": "bytes of KV cache per token"}
    beyond = " beyond its window" if row["kv_read_bytes_per_token"] > row["kv_bytes_per_token"] == 0 else ""
    return ", ".join(f"{format_value(row[key], '')} {words}" for key, words in labels.items()) + beyond


def _part(key: str, value: Any) -> list[dict[str, Any]]:
    """Lines of a nested part."""
    if isinstance(value, dict):
        return [{"fact": f"{key}: {name}", "value": format_value(item, "")} for name, item in value.items()]
    return [{"fact": f"{key} {place}", "value": format_value(item, "")} for place, item in enumerate(value, 1)]


def _known(name: str, entries: Any) -> str:
    """Sentence on the facts that decide speed, and on how many are known."""
    values = {key: f"{format_value(clean(entry.value), entry.unit)}{words}" for entry in entries if entry.value is not None
              for key, words in HEADLINE.items() if entry.key.removeprefix("chip.") == key}  # fmt: skip
    known = sum(entry.value is not None for entry in entries)
    return sentence(f"{name}: {known} of {len(entries)} facts known", *(f", {text}" for text in values.values()))


def _machine(args: Any) -> output.Answer:
    from headway.hardware.describe import about_chip, about_system

    subject = arguments.chip(args.name, args) if args.what == "chip" else arguments.systems(args, args.name)[0][0]
    entries = about_chip(subject) if args.what == "chip" else about_system(subject)
    values = {entry.key: entry.value for entry in entries}
    people = Listing([_line(entry) for entry in entries])
    known = [entry for entry in entries if entry.source and entry.value is not None]
    row: dict[str, Any] = {entry.key: clean(entry.value) for entry in entries}
    row["sources"] = {entry.key: {"source": entry.source, "date": entry.date, "kind": entry.kind} for entry in known}
    return output.Answer(
        Listing([row], tree=lambda _, key: computed(values.get(key), key)),
        output.Summary(_known(subject.name, entries), people=people, first=("fact", "value"), remarks=[UNKNOWN]),
        columns={entry.key: Column(entry.unit, entry.doc) for entry in entries} | SOURCES,
        documents={"toml": lambda: _document(subject)} if args.what == "chip" else {}, most=200,
    )


def _document(chip: Any) -> str:
    """Catalogue file of a chip, which keeps the costs fitted to it under any name."""
    from headway.hardware.chip import chip_toml
    from headway.performance.achieved import OTHER_FAMILY, family, platform

    measured = family(chip) != OTHER_FAMILY or platform(chip) != OTHER_FAMILY
    return chip_toml(chip, (chip.like or chip.name) if measured else "")


def _line(entry: Any) -> dict[str, str]:
    value = format_value(clean(entry.value), entry.unit)
    source = f"{entry.source} ({entry.date})" if entry.source else ""
    return {"fact": entry.key, "value": value, "about": entry.doc, "kind": entry.kind, "source": source}


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


def card(args: Any, model: Any) -> output.Answer:
    """Answer with the card of a model, or with the bridge."""
    for flag, value in (("--model", model), ("--on", args.on)):
        if not value:
            raise BadValue(flag, "nothing", "a model and a machine: --model deepseek-v3 --on gb200-nvl72")
    from headway.evidence.lecture.card import stages

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
