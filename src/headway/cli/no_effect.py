"""Assumptions and edits that change nothing of an answer: refused, since who typed them expects a difference."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headway.cli import arguments, combination
from headway.cli.flag_use import Arguments
from headway.core import schema
from headway.core.errors import BadValue, HeadwayError
from headway.hardware.system import System
from headway.models.model import Model
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import NAMES, Layout, shape

MOST_POINTS = 10_000  # of a grid, beyond which nothing is evaluated twice
MOST_LAYOUTS = 500  # of a search that are looked at, evenly over it, the first and the last among them
LAYOUTS_AT_ONCE = 25
BATCHES = (1, 64, 4096)  # at which a search or a simulation without a batch is looked at


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
    names = typed_assumptions(args)
    if "hit_rate" in names and not any("prompt" in subject.load for subject in subjects):
        raise BadValue("--hit-rate", args.hit_rate, "--prompt and --output beside it: a step at a context prefills nothing")
    _refuse((*_assumptions(args, names, subjects), *_edits(args, subjects)), subjects, "at this layout and load")


def refuse_idle_assumptions(args: Any, load: Mapping[str, Any], degrees: Mapping[str, Any] | None = None, skip: Sequence[str] = ()) -> None:
    """Raise an error for an assumption that changes no number of any layout with these degrees, by default the typed ones; `skip`: flags
    of the verb that bear an assumption's name."""
    if not (names := [name for name in typed_assumptions(args) if name not in skip]):
        return
    degrees = schema.read(args, Layout)[0] if degrees is None else degrees
    pairs = [(model, system) for model in arguments.models(args) for system, _ in arguments.systems(args)]
    formats, assumptions = combination.combinations(args, Precision)[0], combination.combinations(args, Assumptions, skip)[0]
    loads = dict(load) | {"batch": load.get("batch") or BATCHES}
    subjects = [
        Subject(model=model, system=nodes, layouts=layouts, load=loads, precision=Precision(**precision), assumptions=values)
        for model, system in pairs for nodes, layouts in _searched(model, system, degrees)
        for precision in formats for values in assumptions
    ]  # fmt: skip
    _refuse(_assumptions(args, names, subjects), subjects, "in any layout")


def typed_assumptions(args: Any) -> list[str]:
    """Names of the assumptions that the user typed."""
    return [name for name in schema.fields(Assumptions) if getattr(args, name, None) is not None]


def _searched(model: Model, system: System, degrees: Mapping[str, Any]) -> Iterator[tuple[System, list[Layout]]]:
    """Layouts of a search in parts, each over the whole of it; on two nodes where their number is free; one chip if none is legal."""
    import numpy as np

    from headway.models.work import work_of
    from headway.serving.plan.problem import grown, usual_node
    from headway.serving.plan.space import space

    nodes = system if system.fixed_count or system.shape else list(itertools.islice(grown(usual_node(system)), 2))[-1]
    layouts = space(shape(work_of(model).blocks), nodes, degrees)
    rows = np.unique(np.linspace(0, layouts.count - 1, MOST_LAYOUTS).astype(int)) if layouts.count else ()
    sample = [Layout(**{name: int(getattr(layouts.layouts, name)[row, 0]) for name in NAMES}) for row in rows] or [Layout()]
    parts = -(-len(sample) // LAYOUTS_AT_ONCE)  # the first that differs ends the comparison
    yield from ((nodes, sample[part::parts]) for part in range(parts))


Pairs = list[tuple[Subject, Subject]]  # a subject with what was typed, and without


def _refuse(flags: Iterable[tuple[str, str, Pairs]], subjects: Sequence[Subject], where: str) -> None:
    for flag, value, plain in flags:
        if plain and all(_equal(subject, before) for subject, before in plain):
            of = ", ".join(dict.fromkeys(f"{subject.model.name} on {subject.system.name}" for subject in subjects[:3]))
            raise BadValue(flag, value, f"no {flag}: it changes no number of {of} {where}")


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
