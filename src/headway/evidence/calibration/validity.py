"""Whether calibration profiles still hold: errors of rows with runs of one's own and without, later runs outside their interval."""

from __future__ import annotations

from collections.abc import Sequence

from headway.evidence.rows.run_keys import task_key, task_month
from headway.evidence.rows.tasks import Task, Unpredictable
from headway.evidence.serving.predict import Prediction, predict
from headway.evidence.serving.score import grouped, residuals
from headway.performance.calibration.observation import Observation, id_of

MOST_NAMED = 3
Pairs = list[tuple[Task, Prediction]]
Rows = Sequence[Task | Unpredictable]


def validity(tasks: Rows, predictions: Sequence[Prediction], observations: Sequence[Observation]) -> list[str]:
    """What is to say of predicted rows that were measured: what runs have gained, and where they hold no longer."""
    by_runs = _by_runs(tasks, predictions)
    fresh = [pair for pair in by_runs if not _is_own(*pair)]
    notes = _gained(fresh)
    if len(fresh) < len(by_runs):
        notes.append(f"{len(by_runs) - len(fresh):,} of the rows are runs that calibrate them, which no error says anything of")
    return [*notes, *_outside(fresh, observations)]


def _by_runs(tasks: Rows, predictions: Sequence[Prediction]) -> Pairs:
    pairs = zip(tasks, predictions, strict=True)
    return [(task, prediction) for task, prediction in pairs if isinstance(task, Task) and prediction.posterior.runs]


def versions(tasks: Rows, predictions: Sequence[Prediction], observations: Sequence[Observation]) -> list[str]:
    """A note on rows of another version of the engine than every run that they go by."""
    by_runs = _by_runs(tasks, predictions)
    known = {observation.run: observation.key.version for observation in observations}
    versions_of = {id(task): {known.get(run, "") for run in prediction.posterior.runs} for task, prediction in by_runs}
    strangers = [task for task, _ in by_runs if task.row.engine_version and not {"", task.row.engine_version} & versions_of[id(task)]]
    if not strangers:
        return []
    measured = ", ".join(sorted(set.union(*(versions_of[id(task)] for task in strangers))))
    return [f"{len(strangers):,} rows are of another version of the engine than the runs ({measured}), which says less of them"]


def _is_own(task: Task, prediction: Prediction) -> bool:
    return any(id_of(run) == task.row.id for run in prediction.posterior.runs)


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
    for observation in observations:
        place = (observation.key.model, observation.key.chip, observation.key.chips, observation.key.layout, observation.key.engine)
        newest[place] = max(newest.get(place, ""), observation.month)
    later = []
    for task, prediction in pairs:
        key = task_key(task)
        month = newest.get((key.model, key.chip, key.chips, key.layout, key.engine), "")
        if month and task_month(task) > month and any(not residual.covered for residual in residuals([task], [prediction])):
            later.append(task.row.id)
    if not later:
        return []
    names = ", ".join(later[:MOST_NAMED]) + (", ..." if len(later) > MOST_NAMED else "")
    count = f"{len(later):,} later run{'s' * (len(later) > 1)}"
    return [f"{count} outside the interval ({names}): the profile holds no longer; calibrate again with these"]
