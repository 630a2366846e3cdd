"""`headway show model|chip|system NAME`: facts and derived values of a model, chip or system."""

from __future__ import annotations

import dataclasses
from typing import Any

from headway.answers import arguments
from headway.core import schema
from headway.core.columns import Column
from headway.core.errors import BadValue, check_known
from headway.core.listing import Listing, cell, clean, computed, format_value
from headway.report import output
from headway.report.words import sentence

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
        from headway.answers.lecture_card import run as card

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
    from headway.hardware.chip_file import chip_toml
    from headway.performance.achieved import OTHER_FAMILY, family, platform

    measured = family(chip) != OTHER_FAMILY or platform(chip) != OTHER_FAMILY
    return chip_toml(chip, (chip.like or chip.name) if measured else "")


def _line(entry: Any) -> dict[str, str]:
    value = format_value(clean(entry.value), entry.unit)
    source = f"{entry.source} ({entry.date})" if entry.source else ""
    return {"fact": entry.key, "value": value, "about": entry.doc, "kind": entry.kind, "source": source}
