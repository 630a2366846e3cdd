"""The fit of serving rows as it ships: engine numbers, then the factors of what they leave; and the same without some of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.fit.result import PriorNumber
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.engine_fit import (
    EngineFit,
    EngineProblem,
    at_numbers,
    fit,
    fit_without,
    measured_tasks,
    predicted_with,
    problem,
    table_at,
)
from headway.evidence.serving.machines import engines_of
from headway.evidence.serving.remainder import (
    Leftovers,
    Remainder,
    corrected,
    fit_remainders,
    leftovers,
    time_signs,
    with_remainders,
)
from headway.performance.achieved import Efficiencies


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFit:
    """Numbers fitted to rows, and what they leave of every measurement of the problem."""

    problem: EngineProblem
    numbers: tuple[PriorNumber, ...]
    tasks: tuple[Task, ...]  # of each measurement
    engines: EngineFit
    rest: Leftovers
    factors: tuple[Remainder, ...]

    @property
    def table(self) -> Efficiencies:
        """Efficiencies with all fitted numbers."""
        return with_remainders(table_at(self.problem.base, self.numbers, self.engines.values(self.numbers)), self.factors)

    @property
    def time_error(self) -> Any:
        """What all fitted numbers leave of each measurement: ln(predicted / measured) of a time, its negative of a rate."""
        return time_signs(self.problem) * predicted_with(self.problem, engines_of(self.problem.setups, self.table))

    @property
    def error(self) -> Any:
        """The logarithm ln(predicted / measured) of each measurement, by the slopes of its factors."""
        return time_signs(self.problem) * corrected(self.rest, self.factors)

    def without(self, keep: np.ndarray, fresh: bool = True) -> WholeFit:
        """The fit to the measurements `keep` alone (a mask), from this one; slopes of what is left are those of this one."""
        engines = fit_without(self.problem, self.numbers, self.engines, keep, fresh)
        if engines.raw is None:
            return replace(self, engines=engines, factors=())
        weight = np.concatenate([group.weight for kind in self.problem.kinds for group in kind.groups])
        rest = replace(self.rest, error=time_signs(self.problem) * engines.raw / weight)
        return replace(self, engines=engines, rest=rest, factors=fit_remainders(rest.where(keep)))


def whole_fit(tasks: Sequence[Task], base: Efficiencies, numbers: Sequence[PriorNumber]) -> WholeFit:
    """Fit to all rows; `base` gives the kernel efficiencies."""
    all_rows = problem(tasks, table_at(base, numbers, [number.prior for number in numbers]))
    return _at_engines(tasks, all_rows, numbers, fit(all_rows, numbers))


def shipped_fit(tasks: Sequence[Task], table: Efficiencies, numbers: Sequence[PriorNumber]) -> WholeFit:
    """The engine numbers of a table as a fit to all rows, with the factors of what they leave: where folds start."""
    all_rows = problem(tasks, table_at(table, numbers, [number.prior for number in numbers]))
    return _at_engines(tasks, all_rows, numbers, at_numbers(all_rows, numbers, table))


def _at_engines(tasks: Sequence[Task], all_rows: EngineProblem, numbers: Sequence[PriorNumber], engines: EngineFit) -> WholeFit:
    fitted = table_at(all_rows.base, numbers, engines.values(numbers))
    measured = tuple(tasks[int(index)] for index in measured_tasks(all_rows))
    rest = leftovers(all_rows, measured, fitted)
    return WholeFit(problem=all_rows, numbers=tuple(numbers), tasks=measured, engines=engines, rest=rest, factors=fit_remainders(rest))
