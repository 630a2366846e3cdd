"""What would help a plan most: 1 % of an input that its flag can set, planned again as that command would be; only what is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.core import units
from headway.core.schema import fields, flag, scalar
from headway.hardware.chip import PEAK_OF
from headway.hardware.edit import edit, editable
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.serving.plan.candidates import compile_candidates
from headway.serving.plan.choice import Choice, PlanRow
from headway.serving.plan.group import PlanGroup, best_pick
from headway.serving.plan.search import best_loads
from headway.serving.serve_request import ServeRequest, query

MOST_LEVERS = 3  # inputs that are planned again, of the largest elasticity
LEAST_GAIN = 1e-3  # share from which a change is told
DIGITS = 6  # of a value as it is printed, typed and planned with


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """1 % of an input, with the flags that set it, the best choice then, and the share by which the objective is better."""

    input: str
    percent: int  # 1 more or 1 less
    flags: str
    pick: Choice
    gain: float


def levers(group: PlanGroup, rows: Sequence[PlanRow]) -> list[Lever]:
    """The levers of a plan's best choice, the greatest gain first; `rows` are its elasticities, the largest first."""
    best, goal = group.best, group.goal
    if best is None or goal.is_loaded:
        return []
    known = []
    for row in rows[:MOST_LEVERS]:
        name, percent = str(row.extra["input"]), 1 if row.extra["elasticity"] > 0 else -1
        changed = _changed(best.query, name, percent)
        pick = changed and _planned(group, *changed[1:])
        if changed and pick is not None:
            gain = float(pick.value / best.value if goal.more else best.value / pick.value) - 1
            if gain >= LEAST_GAIN:
                known.append(Lever(input=name, percent=percent, flags=changed[0], pick=pick, gain=gain))
    return sorted(known, key=lambda lever: -lever.gain)


def _changed(request: ServeRequest, name: str, percent: int) -> tuple[str, Any, Any] | None:
    """The flags that set an input to 1 % more or less, and the machine and assumptions with it; None where no flag can."""
    factor, system, assumptions = 1 + percent / 100, request.system, request.assumptions
    if name in fields(Assumptions):
        field = fields(Assumptions)[name][0]
        text = units.show(float(getattr(assumptions, name)) * factor, field.unit, DIGITS).replace(" ", "")
        return f"{flag(name)} {text}", system, replace(assumptions, **{name: scalar(text, field, flag(name))})
    keys = [name]
    if name == "chip.peak":
        labels = {PEAK_OF.get(request.formats.labels[2], "peak_bf16"), "peak_bf16"}
        keys = [f"chip.{peak}" for peak in sorted(labels) if getattr(system.chip, peak) is not None]
    texts = []
    for key in keys:
        part, _, fact = key.partition(".")
        value = getattr(system.chip if part == "chip" else system, fact)
        value = getattr(system.chip, fact) if value is None else value
        text = units.show(float(value) * factor, editable()[key].unit, DIGITS).replace(" ", "")
        system = edit(system, key, text)
        texts.append(f"--set {key}={text}")
    return " ".join(texts), system, assumptions


def _planned(group: PlanGroup, system: Any, assumptions: Any) -> Choice | None:
    """The best choice on a changed machine or under changed assumptions, of the layouts that were best or plainest."""
    searches, count = [], len(group.searches) // max(len(group.candidates), 1)
    pairs = list(zip(group.searched_problems, group.searches, strict=True))
    for start in range(0, len(pairs), count):
        problem = pairs[start][0]
        first = query(problem.query.model, system, Layout(), problem.query.load, problem.precision, assumptions)
        tried = [search.tried for _, search in pairs[start : start + count]]
        searches.append([best_loads(compile_candidates(first, w.layout, w.count), group.goal) if w.count else None for w in tried])
    return best_pick(searches, group.goal)
