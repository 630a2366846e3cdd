"""Typed values that change nothing of an answer.

A flag that cannot change an answer of this question is refused, since who typed it expects a difference. A value that happens to change
nothing, such as a fact of a link that a layout does not use, is answered, with a note.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from headway.answers import arguments
from headway.core import schema
from headway.core.errors import BadValue, HeadwayError
from headway.core.notes import noted
from headway.core.quantity import user_input
from headway.core.question import Question
from headway.hardware.system import System
from headway.models.model import Model
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.assumptions import Assumptions
from headway.performance.layout import NAMES, Layout, shape
from headway.serving.plan import group as group_of
from headway.serving.plan import problem, space
from headway.serving.plan.group import PlanGroup
from headway.serving.serve import serve

MOST_POINTS = 10_000  # of a grid, beyond which nothing is evaluated twice
MOST_LAYOUTS = 500  # of a search that are looked at, evenly over it, the first and the last among them
LAYOUTS_AT_ONCE = 25
BATCHES = (1, 64, 4096)  # at which a search or a simulation without a batch is looked at


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is evaluated: a model on a machine, in layouts, at a load, under assumptions."""

    model: Model
    system: System
    layouts: Any
    load: Mapping[str, Any]
    precision: Precision
    assumptions: Mapping[str, Any]  # those that the user set

    def table(self) -> Any:
        """Its table."""
        filled = schema.defaults(Assumptions, dict(self.assumptions))
        return serve(self.model, self.system, self.layouts, **self.load, precision=self.precision, assumptions=filled)

    def rows(self) -> list[dict[str, Any]] | None:
        """Its rows; None where it cannot be evaluated, or only at length."""
        try:
            table = self.table()
        except HeadwayError:
            return None
        return table.rows() if len(table) <= MOST_POINTS else None


def serve_notes(args: Question, subjects: Sequence[Subject]) -> list[str]:
    """Notes on typed values that change no number of any subject; BadValue for an assumption of which no value would."""
    names = typed_assumptions(args)
    if "hit_rate" in names and args.hit_rate != "0" and not any("prompt" in subject.load for subject in subjects):
        raise BadValue("--hit-rate", args.hit_rate, "--prompt and --output beside it: a step at a context prefills nothing")
    return _notes((*_assumptions(args, names, subjects), *_edits(args, subjects)), subjects, "at this layout and load")


def search_notes(args: Question, load: Mapping[str, Any], degrees: Mapping[str, Any] | None = None, skip: Sequence[str] = ()) -> list[str]:
    """The same of any layout with these degrees, by default the typed ones; `skip`: flags of the verb that bear an assumption's name."""
    names = [name for name in typed_assumptions(args) if name not in skip]
    if not (names or any(arguments.typed_edits(args))):
        return []
    degrees = schema.read(args, Layout) if degrees is None else degrees
    pairs = [(model, system) for model in arguments.models(args) for system, _ in arguments.systems(args)]
    formats, assumptions = arguments.combinations(args, Precision), arguments.combinations(args, Assumptions, skip)
    loads = dict(load) | {"batch": load.get("batch") or BATCHES}
    subjects = [
        Subject(model=model, system=nodes, layouts=layouts, load=loads, precision=Precision(**precision), assumptions=values)
        for model, system in pairs for nodes, layouts in _searched(model, system, degrees)
        for precision in formats for values in assumptions
    ]  # fmt: skip
    return _notes((*_assumptions(args, names, subjects), *_edits(args, subjects, _nodes)), subjects, "in any layout")


def shown_notes(args: Question, choices: Iterable[Any], skip: Sequence[str] = ()) -> list[str]:
    """Notes on typed assumptions that count in layouts of a search, but in none of these choices, which the answer shows."""
    names, subjects = [name for name in typed_assumptions(args) if name not in skip], []
    for choice in choices if names else ():
        load = {key: value for key, value in dataclasses.asdict(choice.case.load).items() if value is not None}
        load.pop("batch" if "rate" in load else "", None)  # which follows from the rate
        values = {name: getattr(choice.case.assumptions, name) for name in names}
        subjects.append(Subject(model=choice.case.model, system=choice.case.system, layouts=[choice.case.layout], load=load,
                                precision=Precision(), assumptions=values))  # fmt: skip
    idle = [(flag, value) for flag, value, pairs, _ in _assumptions(args, names, subjects) if _are_equal(pairs)]
    return [f"no effect: {flag} {value} changes no number of the best layout; it counts in others of the search" for flag, value in idle]


def one_pool_notes(way: str, groups: Iterable[PlanGroup]) -> list[str]:
    """A note on prefill apart that is refused on machines that cannot part it."""
    members = list(groups)
    if way != "never" or any(group_of.may_part(group.case, group.goal) for group in members):
        return []
    names = ", ".join(dict.fromkeys(group.case.system.name for group in members))
    return [f"no effect: --disaggregate never changes no number: on {names} there is one pool anyway"]


def typed_assumptions(args: Question) -> list[str]:
    """Names of the assumptions that the user typed."""
    return [name for name in schema.fields(Assumptions) if getattr(args, name, None) not in (None, False)]


def _searched(model: Model, system: System, degrees: Mapping[str, Any]) -> Iterator[tuple[System, list[Layout]]]:
    """Layouts of a search in parts, each over the whole of it; on two nodes where their number is free; one chip if none is legal."""
    import numpy as np

    nodes, model_shape = _nodes(system), shape(work_of(model).blocks)
    layouts = space.space(model_shape, nodes, {name: value for name, value in degrees.items() if name != "dp" or model_shape.experts})
    rows = np.unique(np.linspace(0, layouts.count - 1, MOST_LAYOUTS).astype(int)) if layouts.count else ()
    sample = [Layout(**{name: int(getattr(layouts.layouts, name)[row, 0]) for name in NAMES}) for row in rows] or [Layout()]
    yield nodes, [sample.pop(len(sample) // 2)]  # the first that differs ends the comparison: most often any one does
    parts = -(-len(sample) // LAYOUTS_AT_ONCE)
    yield from ((nodes, sample[part::parts]) for part in range(parts))


def _nodes(system: System) -> System:
    """The machine of a search: two nodes where their number is free."""
    return system if system.fixed_count or system.shape else list(itertools.islice(problem.grown(problem.usual_node(system)), 2))[-1]


Pairs = list[tuple[Subject, Subject]]  # a subject with what was typed, and without
Flags = Iterable[tuple[str, str, Pairs, list[Pairs] | None]]  # and with other values, if one without effect is refused
Edit = tuple[str, str, Pairs, None]
PROBES = (10.0, 0.1)  # times a value, to see whether it is the flag that does not count, or this value


def _notes(flags: Flags, subjects: Sequence[Subject], where: str) -> list[str]:
    """Notes on values without effect; BadValue where no value has one: it is then a flag of another question."""
    notes = []
    for flag, value, pairs, probes in flags:
        if not _are_equal(pairs):
            continue
        if probes is not None and all(map(_are_equal, probes)):
            of = ", ".join(dict.fromkeys(f"{subject.model.name} on {subject.system.name}" for subject in subjects[:3]))
            raise BadValue(flag, value, f"no {flag}: it changes no number of {of} {where}")
        is_same = all(subject.system == plain.system and subject.assumptions == plain.assumptions for subject, plain in pairs)
        why = "is the value without it too" if is_same and flag == "--set" else f"changes no number {where}"
        notes.append(f"no effect: {flag} {value} {why}")
    return notes


def _assumptions(args: Question, names: Sequence[str], subjects: Sequence[Subject]) -> Iterator[tuple[str, str, Pairs, list[Pairs]]]:
    """Each assumption that was typed and differs from its default: the subjects without it, and with other values of it."""
    for name in names:
        q, default = schema.fields(Assumptions)[name]
        if isinstance(default, str) and name != "expert_load":
            continue  # an engine, a price: names, whose effect their own words tell
        changed = [subject for subject in subjects if subject.assumptions[name] != default]
        rest = [{key: value for key, value in subject.assumptions.items() if key != name} for subject in changed]
        plain = [dataclasses.replace(subject, assumptions=values) for subject, values in zip(changed, rest, strict=True)]
        trials = [map(_with, plain, itertools.repeat(name), _values(name, q, changed, factor)) for factor in PROBES]
        probes = [list(zip(plain, trial, strict=True)) for trial in trials]
        yield schema.flag(name), "on" if q.is_switch else getattr(args, name), list(zip(changed, plain, strict=True)), probes


def _with(subject: Subject, name: str, value: Any) -> Subject:
    return subject if value is None else dataclasses.replace(subject, assumptions={**subject.assumptions, name: value})


def _values(name: str, q: schema.Field, subjects: Sequence[Subject], factor: float) -> list[Any]:
    """Another legal value of an assumption for each subject; None where there is none."""
    if name == "expert_load" or q.is_switch:
        return [None] * len(subjects)
    values = [factor * float(subject.assumptions[name] or 1) for subject in subjects]
    return [None if q.illegal(value) else user_input(value, name, q.unit) for value in values]


def _edits(args: Question, subjects: Sequence[Subject], nodes: Callable[[System], System] = lambda system: system) -> Iterator[Edit]:
    """Each edit of a machine or a model, with the subjects without it: a fact that does not count here is a fact, and no mistake."""
    for flag, text, changed in arguments.typed_edits(args):
        plain = args.replace(**changed)
        with contextlib.suppress(HeadwayError), noted():  # of what cannot be read without it
            machines = {system.name: system for system in (nodes(system) for system, _ in arguments.systems(plain))}
            models = {model.name: model for model in arguments.models(plain)}
            known = [subject for subject in subjects if subject.system.name in machines and subject.model.name in models]
            pairs = [(subject, dataclasses.replace(subject, system=machines[subject.system.name], model=models[subject.model.name]))
                     for subject in known]  # fmt: skip
            yield flag, text, pairs, None


def _are_equal(pairs: Pairs) -> bool:
    return bool(pairs) and all((rows := subject.rows()) is not None and rows == plain.rows() for subject, plain in pairs)
