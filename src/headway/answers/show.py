"""`headway show model|chip|system|calibration NAME`: facts, derived values; `show model M --on X`, `lecture --model M`: a model's card."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.answers import arguments, calibrate
from headway.core import schema
from headway.core.catalog import fold
from headway.core.columns import Column
from headway.core.errors import BadValue, check_known
from headway.core.listing import Listing, cell, clean, computed, format_value, remade
from headway.core.trace import record
from headway.evidence.lecture import card as lecture_case
from headway.evidence.questions import Lecture, Show
from headway.hardware.chip import chip_toml
from headway.hardware.describe import FactEntry, about_chip, about_system
from headway.models import describe
from headway.models.precision import Precision
from headway.performance import achieved
from headway.performance.workload import Load
from headway.report import lecture_card, output
from headway.report.words import sentence

if TYPE_CHECKING:
    from headway.evidence.lecture.card import LectureCase
    from headway.hardware.chip import Chip

KINDS = ("model", "chip", "system", "calibration")
SOURCES = {"sources": Column("", "where each fact comes from: source, date and kind")}
DIGITS = 4  # of a fact: 1,979 and 1,970 are different chips
NOTES = "notes"  # a fact too long for a cell
# Facts of the sentence, in words.
HEADLINE = {"chips": " chips", "peak_bf16": " in bf16", "hbm": " of HBM", "hbm_bw": " to HBM", "scale_up_domain": " chips in a domain"}


def run(args: Show) -> output.Answer:
    """Answer with one row: the facts of the subject, and values derived from them."""
    check_known("kind of thing to show", args.what, KINDS)
    if args.on or args.bridge:
        if args.what != "model":
            raise BadValue("--on", args.on or "--bridge", f"show model; it is the machine of a model's card, not of a {args.what}")
        return card(args, args.name)
    if args.what == "calibration":
        return calibrate.profile_answer(args)
    return _model(args) if args.what == "model" else _machine(args)


def _model(args: Show) -> output.Answer:
    context = schema.scalar(args.context, schema.fields(Load)["context"][0], "--context")
    model = arguments.model(args.name, args)
    row = clean(dataclasses.asdict(describe.about_model(model, context)))
    marks = {key: q for key, (q, _) in schema.fields(describe.ModelSummary).items()}
    plain = {key: value for key, value in row.items() if not isinstance(value, list | dict)}
    people = [{"fact": key, "value": cell(key, row), "about": q.help} for key, q in marks.items() if key in plain]
    for key, value in row.items():
        if isinstance(value, dict):
            people += [{"fact": f"{key}: {name}", "value": format_value(item, "")} for name, item in value.items()]
        elif isinstance(value, list):
            people += [{"fact": f"{key} {place}", "value": format_value(item, "")} for place, item in enumerate(value, 1)]
    labels = {"total_params": "parameters", "active_params": "active per token", "cache_bytes_per_token": "bytes of KV cache per token"}
    brief = ", ".join(f"{format_value(row[key], '')} {words}" for key, words in labels.items())
    beyond = " beyond its window" if row["kv_read_bytes_per_token"] > row["kv_bytes_per_token"] == 0 else ""
    return output.Answer(
        remade([row], lambda _: describe.about_model(arguments.model(args.name, args), context)),
        output.Summary(sentence(f"{model.name}: {brief}{beyond}"), people=Listing(people), first=("fact", "value")),
        columns={key: Column(q.unit, q.help) for key, q in marks.items()},
    )


def _machine(args: Show) -> output.Answer:
    is_chip = args.what == "chip"
    subject = arguments.chip(args.name, args) if is_chip else arguments.systems(args, args.name)[0][0]
    entries = about_chip(subject) if is_chip else about_system(subject)
    values = {entry.key: entry.value for entry in entries}
    known = [entry for entry in entries if entry.source and entry.value is not None]
    row: dict[str, Any] = {entry.key: clean(entry.value) for entry in entries}
    row["sources"] = {entry.key: {"source": entry.source, "date": entry.date, "kind": entry.kind} for entry in known}
    numbers = {text: f"[{number}]" for number, text in enumerate(dict.fromkeys(map(_origin, known)), 1)}
    figures = [entry for entry in entries if entry.value not in (None, ())]
    people = [
        {"fact": entry.key, "value": format_value(clean(entry.value), entry.unit, DIGITS), "source": numbers.get(_origin(entry), ""),
         "kind": entry.kind, "about": entry.doc}
        for entry in figures if not entry.key.endswith(NOTES)
    ]  # fmt: skip
    unknown = [entry.key for entry in entries if entry.value in (None, ())]
    below = [f"{number} {text}" for text, number in numbers.items()] + ([f"no public figure: {', '.join(unknown)}"] if unknown else [])
    below += [f"{entry.key}: {entry.value}" for entry in figures if entry.key.endswith(NOTES)]
    headline = _known(subject.name, entries)
    return output.Answer(
        Listing([row], tree=lambda _, key: computed(values.get(key), key)),
        output.Summary(headline, people=Listing(people), first=("fact", "value"), after=below),
        columns={entry.key: Column(entry.unit, entry.doc) for entry in entries} | SOURCES,
        documents={"toml": lambda: _document(subject)} if is_chip else {}, most=200,
    )  # fmt: skip


def _origin(entry: FactEntry) -> str:
    return f"{entry.source} ({entry.date})" if entry.source else ""


def _known(name: str, entries: Sequence[FactEntry]) -> str:
    """Sentence on the facts that decide speed, and on how many are known."""
    values = {key: f"{format_value(clean(entry.value), entry.unit)}{words}" for entry in entries if entry.value is not None
              for key, words in HEADLINE.items() if entry.key.removeprefix("chip.") == key}  # fmt: skip
    known = sum(entry.value is not None for entry in entries)
    return sentence(f"{fold(name)}: {known} of {len(entries)} facts known", *(f", {text}" for text in values.values()))


def _document(chip: Chip) -> str:
    """Catalogue file of a chip, which keeps the costs fitted to it under any name."""
    is_measured = achieved.family(chip) != achieved.OTHER_FAMILY or achieved.platform(chip) != achieved.OTHER_FAMILY
    return chip_toml(chip, (chip.like or chip.name) if is_measured else "")


# -- a model on a machine, beside the lecture's figures -------------------------------------------------------------------------

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


def card(args: Show | Lecture, model: str) -> output.Answer:
    """Answer with the card of a model, or with the bridge."""
    for flag, value in (("--model", model), ("--on", args.on)):
        if not value:
            raise BadValue(flag, "nothing", "a model and a machine: --model deepseek-v3 --on gb200-nvl72")
    with record():
        models, machines = arguments.models(args, model), arguments.systems(args)
        if len(models) > 1 or len(machines) > 1:
            raise BadValue("--model, --on", f"{model}, {args.on}", "one model and one machine")
        context = None if args.context is None else schema.scalar(args.context, schema.fields(Load)["context"][0], "--context")
        batch = None if args.batch is None else schema.scalar(args.batch, schema.Field(integer=True, high=1e7), "--batch")
        formats = {
            name: schema.scalar(getattr(args, name), schema.fields(Precision)[name][0], f"--{name}")
            for name in ("weights", "kv") if getattr(args, name)
        }  # fmt: skip
        case = lecture_case.lecture_case(models[0], machines[0][0], Precision(**formats), batch, context)
        return _bridge(case) if args.bridge else _card(case)


def _card(case: LectureCase) -> output.Answer:
    figures = {entry.name: entry for entry in lecture_case.figures(case)}
    rows = [
        {"figure": entry.name, "id": entry.claim_id, "here": None if entry.value is None else float(entry.value), "unit": entry.unit,
         "lecture": entry.lecture, "reason": entry.reason}
        for entry in figures.values()
    ]  # fmt: skip

    def tree(row: Mapping[str, Any], key: str) -> Any:
        if key != "here" or figures[row["figure"]].value is None:
            wants = "the column here, of a figure that applies; choose it by --where \"figure = 'balanced batch'\""
            raise BadValue("--explain", key, wants)
        return computed(figures[row["figure"]].value, key)

    return output.Answer(
        Listing(rows, tree=tree), describes_none=True, notes=lecture_card.notes(case), columns=CARD,
        describe=lambda table: lecture_card.card(case, [figures[row["figure"]] for row in table]),
    )  # fmt: skip


def _bridge(case: LectureCase) -> output.Answer:
    stages = {(stage.quantity, stage.name): stage for stage in lecture_case.stages(case)}
    rows = [
        {"quantity": stage.quantity, "stage": stage.name, "factor": None if stage.factor is None else float(stage.factor),
         "value": float(stage.value), "unit": stage.unit, "reason": stage.reason}
        for stage in stages.values()
    ]  # fmt: skip

    def tree(row: Mapping[str, Any], key: str) -> Any:
        if key not in ("value", "factor") or row[key] is None:
            raise BadValue("--explain", key, "value, or factor of a stage that has one; choose it by --where \"stage = 'fitted rates'\"")
        return computed(getattr(stages[row["quantity"], row["stage"]], key), key)

    return output.Answer(
        Listing(rows, tree=tree), describes_none=True, notes=lecture_card.notes(case), columns=BRIDGE,
        describe=lambda table: lecture_card.bridge(case, [stages[row["quantity"], row["stage"]] for row in table]),
    )  # fmt: skip
