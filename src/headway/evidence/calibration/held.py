"""Whether calibration profiles still hold: errors of rows with runs of one's own and without, later runs outside their interval."""

from __future__ import annotations

from collections.abc import Sequence

from headway.evidence.rows.run_keys import task_key, task_month
from headway.evidence.rows.tasks import Task, Unpredictable
from headway.evidence.serving.predict import Prediction, predict
from headway.evidence.serving.score import grouped, residuals
from headway.performance.calibration.observation import Observation

MOST_NAMED = 3
Pairs = list[tuple[Task, Prediction]]


def held(
    tasks: Sequence[Task | Unpredictable], predictions: Sequence[Prediction], observations: Sequence[Observation]
) -> list[str]:
    """What is to say of predicted rows that were measured: what runs have gained, and where they hold no longer."""
    pairs = zip(tasks, predictions, strict=True)
    by_runs = [(task, prediction) for task, prediction in pairs if isinstance(task, Task) and prediction.posterior.runs]
    fresh = [pair for pair in by_runs if not _is_own(*pair)]
    notes = _gained(fresh)
    if len(fresh) < len(by_runs):
        notes.append(f"{len(by_runs) - len(fresh):,} of the rows are runs that calibrate them, which no error says anything of")
    return [*notes, *_outside(fresh, observations), *versions(by_runs, observations)]


def versions(by_runs: Pairs, observations: Sequence[Observation]) -> list[str]:
    """A note on rows of another version of the engine than every run that they go by."""
    known = {one.run: one.key.version for one in observations}
    said = {id(task): {known.get(run, "") for run in prediction.posterior.runs} for task, prediction in by_runs}
    others = [task for task, _ in by_runs if task.row.engine_version and not {"", task.row.engine_version} & said[id(task)]]
    if not others:
        return []
    measured = ", ".join(sorted(set.union(*(said[id(task)] for task in others))))
    return [f"{len(others):,} rows are of another version of the engine than the runs ({measured}), which says less of them"]


def _is_own(task: Task, prediction: Prediction) -> bool:
    return any(run.partition(":")[2] == task.row.id for run in prediction.posterior.runs)


def _gained(pairs: Pairs) -> list[str]:
    """Median errors of the rows with runs, and what they were without."""
    tasks = [task for task, _ in pairs]
    after = grouped(residuals(tasks, [prediction for _, prediction in pairs]), "all")
    before = {group.measure: group.stats.median_error for group in grouped(residuals(tasks, predict(tasks)), "all")} if after else {}
    if not after:
        return []
    errors = [f"{group.measure} {before[group.measure]:.1%} -> {group.stats.median_error:.1%} of {group.stats.n:,}" for group in after]
    return [f"before calibration -> after, median errors of rows that are no run of a profile: {', '.join(errors)}"]


def _outside(pairs: Pairs, observations: Sequence[Observation]) -> list[str]:
    """A note on later runs of a measured deployment that lie outside the interval."""
    newest: dict[tuple[object, ...], str] = {}
    for one in observations:
        place = (one.key.model, one.key.chip, one.key.chips, one.key.layout, one.key.engine)
        newest[place] = max(newest.get(place, ""), one.month)
    later = []
    for task, prediction in pairs:
        key = task_key(task)
        month = newest.get((key.model, key.chip, key.chips, key.layout, key.engine), "")
        if month and task_month(task) > month and any(not one.covered for one in residuals([task], [prediction])):
            later.append(task.row.id)
    if not later:
        return []
    named = ", ".join(later[:MOST_NAMED]) + (", ..." if len(later) > MOST_NAMED else "")
    count = f"{len(later):,} later run{'s' * (len(later) > 1)}"
    return [f"{count} outside the interval ({named}): the profile holds no longer; calibrate again with these"]
