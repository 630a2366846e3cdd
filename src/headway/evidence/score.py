"""A table of measured runs scored: the errors of its predictions by group, and what was left out and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.evidence.groups import ErrorGroup, grouped
from headway.evidence.predict import Prediction
from headway.evidence.residuals import MEASURES, UNSCORED, Residual, measured, residuals
from headway.evidence.tasks import Task, Unpredictable

BY = ("all", "source", "chip", "model", "engine", "kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """Residuals, their groups, and the rows that have none."""

    residuals: tuple[Residual, ...]
    groups: tuple[ErrorGroup, ...]
    rows: int  # that were scored
    unscored: int  # of reliability C
    unmeasured: int  # that state no measurement of what they are predicted
    unpredicted: tuple[tuple[str, int], ...]  # why and on which line, one for each such row


def score(tasks: Sequence[Task | Unpredictable], predictions: Sequence[Prediction]) -> ScoreRow:
    """The errors of predictions, by each of BY."""
    all_residuals = residuals(tasks, predictions)
    scored = [task for task in tasks if task.row.reliability != UNSCORED]
    known = [task for task in scored if isinstance(task, Task)]
    silent = sum(not any(measured(task.row, name) is not None for names in MEASURES[task.kind] for name in names) for task in known)
    return ScoreRow(
        residuals=tuple(all_residuals),
        groups=tuple(group for by in BY for group in grouped(all_residuals, by)),
        rows=len({(residual.line, residual.id) for residual in all_residuals}),
        unscored=len(tasks) - len(scored),
        unmeasured=silent,
        unpredicted=tuple((task.why, task.row.line) for task in scored if isinstance(task, Unpredictable)),
    )
