"""The fewest chips that carry a rate within the limits, by rate: a staircase.

What a replica of a layout carries at most within the limits does not depend on the rate that is asked for, so that one search knows the
size of the machine at every rate. Its curve lies near the fixed point of the queue and not at it: a plan for one rate may take a unit more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.serving.plan.candidates import Candidates, compile_candidates, sized
from headway.serving.plan.choice import with_chips
from headway.serving.plan.disaggregate import Pool, best_pair, sides
from headway.serving.plan.group import PlanGroup, PlanProblem, may_part
from headway.serving.plan.problem import Goal
from headway.serving.plan.search import most_carried

CLOSE = 1e-9  # share by which replicas may miss a rate that sized them


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The machine that carries a rate on the fewest chips."""

    chips: int
    system: str
    price: Any  # of a chip, USD/s; None where it has none


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnePool:
    """Layouts of one machine in one set of formats, with the most requests per second that a replica of each carries."""

    candidates: Candidates
    most: Any
    goal: Goal

    def chips(self, rate: float) -> float:
        """The fewest chips of these layouts at a rate; without end where none carries it."""
        size = sized(self.candidates, 1 / self.most, replace(self.goal, rate=rate)).spread(self.candidates.count)
        carrying = np.asarray(size.replicas * self.most >= rate * (1 - CLOSE))
        return float(np.min(np.where(carrying, size.chips, np.inf)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _TwoPools:
    """Prefill and decode replicas of one machine, to pair."""

    first: Pool
    second: Pool
    goal: Goal

    @property
    def candidates(self) -> Candidates:
        """The layouts of both."""
        return self.first.candidates

    def chips(self, rate: float) -> float:
        """Chips of the best pair of pools at a rate; without end where none carries it."""
        pair = best_pair(self.first, self.second, replace(self.goal, rate=rate))
        return np.inf if pair is None else float(pair.chips)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase:
    """Machines by the rate that they carry."""

    parts: tuple[_OnePool | _TwoPools, ...]

    def at(self, rate: float) -> Step | None:
        """The machine with the fewest chips at a rate; None where none carries it."""
        counts = [part.chips(rate) for part in self.parts]
        if not counts or not np.isfinite(chips := min(counts)):
            return None
        part = self.parts[counts.index(chips)]
        system, price = part.candidates.case.system, part.candidates.case.price
        name = with_chips(system, int(chips), part.goal.spare).name if part.goal.free else system.name
        return Step(chips=int(chips), system=name, price=None if price is None else price.value)


def _at_hits(problem: PlanProblem, hit_rate: Any) -> Candidates:
    """The layouts of a problem where a cache has another share of each prompt."""
    case = replace(problem.case, assumptions=replace(problem.case.assumptions, hit_rate=hit_rate))
    return compile_candidates(case, problem.space.layouts, problem.space.count)


def staircase(groups: Sequence[PlanGroup], factor: float = 1.0, hit_rate: Any = None) -> Staircase:
    """The staircase of the layouts of searches at a rate, with one pool or two.

    Steps are so many times as long as expected; `hit_rate` stands for that of the searches.
    """
    parts: list[_OnePool | _TwoPools] = []
    sets = {id(candidates): (candidates, group) for group in groups for candidates in group.candidates}
    if hit_rate is not None:
        sets = {id(problem): (_at_hits(problem, hit_rate), group) for group in groups for problem in group.problems if problem.space.count}
    for candidates, group in sets.values():
        goal = replace(group.goal, step_factor=factor)
        carrying, most = most_carried(candidates, goal)
        parts += [_OnePool(candidates=carrying, most=most, goal=goal)] if carrying.count else []
        if may_part(group.case, goal):
            parts += [_TwoPools(first=first, second=second, goal=goal) for first, second in sides([candidates], goal)]
    return Staircase(parts=tuple(parts))
