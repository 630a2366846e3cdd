"""`headway.train(model, machine, tokens=..., seq=..., tp=...)`: the answer as rows that explain themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway import schema
from headway.errors import BadValue, UnknownName
from headway.hfconfig import model as find_model
from headway.listing import Listing, computed
from headway.output import clean
from headway.quantity import Sourced, user_input
from headway.system import system as find_system
from headway.training.asked import TrainingRequest
from headway.training.outlook import Failures
from headway.training.reach import TrainingReach
from headway.training.recipe import OBJECTIVES, RECOMPUTE, Recipe, TrainingLayout, TrainingRun
from headway.training.search import LayoutEstimate
from headway.training.train import explained, rows
from headway.training.train import train as answer

RECORDS = (TrainingRun, Recipe, Failures, TrainingReach)  # whose lists are axes; those of a layout limit the search
MOST_CASES = 200
MOST_ROWS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingQuestion:
    """What is asked of every model and machine; values may be tuples."""

    records: Mapping[type, Mapping[str, Any]]
    layout: Mapping[str, Any] = field(default_factory=dict)
    objective: str = "step"
    deadline: Any = None
    price_metric: str = "rental_3yr"


def train(
    model: Any, system: Any, *, objective: str = "step", deadline: Any = None, price_metric: str = "rental_3yr", **flags: Any
) -> Listing:
    """The best layouts, best first, with memory, step time, days, cost and energy.

    Further keywords are the flags of `headway train`: numbers (SI), text such as "15T", or tuples of them. Those of a layout limit the
    search; lists of others give a row each.
    """
    records: dict[type, dict[str, Any]] = {record: {} for record in (*RECORDS, TrainingLayout)}
    for name, value in flags.items():
        owner = next((record for record in records if name in schema.fields(record)), None)
        if owner is None:
            raise UnknownName("argument of train", name, [known for record in records for known in schema.fields(record)])
        records[owner][name] = _read(value, schema.fields(owner)[name][0], name)
    layout = records.pop(TrainingLayout)
    limit = None if deadline is None else _read(deadline, schema.Field("s"), "deadline")
    request = TrainingQuestion(records=records, layout=layout, objective=objective, deadline=limit, price_metric=price_metric)
    return listing(cases([find_model(model)], [find_system(system)], request))


def _read(value: Any, q: schema.Field, name: str) -> Any:
    """A value from Python as from the command line."""
    if isinstance(value, list | tuple):
        if not value:
            raise BadValue(name, value, "at least one value")
        return tuple(_read(item, q, name) for item in value)
    if isinstance(value, str):
        return value if not q.choices and not q.unit and not q.integer and not _numeric(value) else schema.axis(value, q, name)[0]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadValue(name, value, "a number, or text such as 8k")
    wants = q.illegal(value)
    if wants:
        raise BadValue(name, value, wants)
    return value if isinstance(value, Sourced) else user_input(int(value) if q.integer else float(value), name, q.unit)


def _numeric(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in ".-+"


def cases(models: Iterable[Any], systems: Iterable[Any], request: TrainingQuestion) -> list[TrainingRequest]:
    """One question for each combination of lists, those of the layout apart: they limit the search."""
    if request.objective not in OBJECTIVES:
        raise BadValue("--objective", request.objective, "one of " + ", ".join(OBJECTIVES))
    given_of = {record: dict(request.records.get(record, {})) for record in RECORDS}
    modes = given_of[Recipe].pop("recompute", RECOMPUTE)
    limits = {name: tuple(int(v) for v in (value if isinstance(value, tuple) else (value,))) for name, value in request.layout.items()}
    shared: dict[str, Any] = {
        "modes": (modes,) if isinstance(modes, str) else tuple(modes), "price_metric": request.price_metric,
        "objective": "chips" if request.deadline is not None and request.objective == "step" else request.objective,
        "deadline": request.deadline,
    }  # fmt: skip
    requests = []
    for model, system, records in itertools.product(models, systems, _points(given_of)):
        run, recipe, failures, efficiency = records
        plain = {"vpp": (1,)} if "schedule" in given_of[Recipe] and recipe.schedule == "1f1b" else {}  # 1F1B by name has no chunks
        subject = {"model": model, "system": system, "run": run, "recipe": recipe, "failures": failures, "efficiency": efficiency}
        requests.append(TrainingRequest(**subject, pinned=plain | limits, **shared))
        if len(requests) > MOST_CASES:
            raise BadValue("train", "more combinations of lists", f"at most {MOST_CASES}")
    return requests


def _points(given_of: Mapping[type, Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The records of every combination of listed values."""
    choices = []
    for record, values in given_of.items():
        axes = {name: value if isinstance(value, tuple) else (value,) for name, value in values.items()}
        variants = []
        for combination in itertools.product(*axes.values()):
            plain = dict(zip(axes, combination, strict=True))
            variants.append(TrainingReach(**plain) if record is TrainingReach else schema.defaults(record, plain))
        choices.append(variants)
    return list(itertools.product(*choices))


def listing(requests: Sequence[TrainingRequest], notes: tuple[str, ...] = ()) -> Listing:
    """The answers as rows: several layouts of one question, the best of each of many."""
    answers = [(item, answer(item)) for item in requests]
    plain: list[dict[str, Any]] = []
    origins: list[tuple[TrainingRequest, LayoutEstimate, Any]] = []
    for request, trained in answers:
        answer_rows = rows(request, trained, MOST_ROWS if len(answers) == 1 else 1)
        plain += [clean(row | {"why": row["why"] or trained.infeasible_reason}) for row in answer_rows]
        origins += [(request, candidate, trained.price) for candidate in trained.layouts[: len(answer_rows)]]
        notes += trained.notes if len(answers) == 1 else ()
    layout_count, fitting = sum(t.layout_count for _, t in answers), sum(t.fitting for _, t in answers)
    notes = (*dict.fromkeys(notes), f"{layout_count:,} legal layouts weighed, {fitting:,} fit")

    def tree(row: Any, key: str) -> Any:
        return computed(explained(*origins[plain.index(dict(row))], key), key)

    return Listing(plain, notes=notes, tree=tree)
