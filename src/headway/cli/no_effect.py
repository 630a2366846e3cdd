"""Assumptions and edits that change nothing of an answer: refused, since who typed them expects a difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headway.cli import arguments
from headway.cli.flag_use import Arguments
from headway.core import schema
from headway.core.errors import BadValue, HeadwayError
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions

MOST_POINTS = 10_000  # of a grid, beyond which nothing is evaluated twice


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is evaluated: a model on a machine, in layouts, at a load, under assumptions."""

    model: Any
    system: Any
    layouts: Any
    load: Mapping[str, Any]
    precision: Precision
    assumptions: Mapping[str, Any]  # those that the user set

    def table(self) -> Any:
        """Its table."""
        from headway.serving.serve import serve

        filled = schema.defaults(Assumptions, dict(self.assumptions))
        return serve(self.model, self.system, self.layouts, **self.load, precision=self.precision, assumptions=filled)

    def rows(self) -> list[dict[str, Any]] | None:
        """Its rows; None where it cannot be evaluated, or only at length."""
        try:
            table = self.table()
        except HeadwayError:
            return None
        return table.rows() if len(table) <= MOST_POINTS else None


def refuse_no_effect(args: Any, subjects: Sequence[Subject]) -> None:
    """Raise an error for an assumption or an edit of the machine that leaves every number of every subject as it is."""
    names = [name for name in schema.fields(Assumptions) if getattr(args, name, None) is not None]
    if "hit_rate" in names and not any("prompt" in subject.load for subject in subjects):
        raise BadValue("--hit-rate", args.hit_rate, "--prompt and --output beside it: a step at a context prefills nothing")
    for flag, value, plain in (*_assumptions(args, names, subjects), *_edits(args, subjects)):
        if plain and all(_equal(subject, before) for subject, before in plain):
            of = ", ".join(dict.fromkeys(f"{subject.model.name} on {subject.system.name}" for subject in subjects[:3]))
            raise BadValue(flag, value, f"no {flag}: it changes no number of {of} at this layout and load")


Pairs = list[tuple[Subject, Subject]]  # a subject with what was typed, and without


def _assumptions(args: Any, names: Sequence[str], subjects: Sequence[Subject]) -> Iterator[tuple[str, str, Pairs]]:
    """Each assumption that was typed and differs from its default, with the subjects without it."""
    for name in names:
        _, default = schema.fields(Assumptions)[name]
        if isinstance(default, str) and name != "expert_load":
            continue  # an engine, a price: names, whose effect their own words tell
        changed = [subject for subject in subjects if subject.assumptions[name] != default]
        rest = [{key: value for key, value in subject.assumptions.items() if key != name} for subject in changed]
        plain = [dataclasses.replace(subject, assumptions=values) for subject, values in zip(changed, rest, strict=True)]
        yield schema.flag(name), getattr(args, name), list(zip(changed, plain, strict=True))


def _edits(args: Any, subjects: Sequence[Subject]) -> Iterator[tuple[str, str, Pairs]]:
    """Each edit of the machine, with the subjects on the machine without it."""
    for text in args.set:
        unedited = Arguments(**vars(args) | {"set": [edit for edit in args.set if edit is not text], "borrowed": []})
        machines = {system.name: system for system, _ in arguments.systems(unedited)}
        known = [subject for subject in subjects if subject.system.name in machines]
        yield "--set", text, [(subject, dataclasses.replace(subject, system=machines[subject.system.name])) for subject in known]


def _equal(subject: Subject, plain: Subject) -> bool:
    rows = subject.rows()
    return rows is not None and rows == plain.rows()
