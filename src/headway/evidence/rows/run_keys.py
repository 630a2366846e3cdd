"""Rows filed as runs: the key of a row's deployment, and the month in which it was measured."""

from __future__ import annotations

from dataclasses import replace

from headway.evidence.rows.tasks import Task
from headway.performance.calibration.key import OFFLINE, SERVED, SPLIT, RunKey, run_key
from headway.performance.nearest import ENGINES

MODE = {"serving": SERVED, "serving_unloaded": SERVED, "disagg": SPLIT}  # by kind of task; all others are offline


def task_key(task: Task) -> RunKey:
    """Key of the deployment of a row; a split one has both kinds of worker as its layout."""
    setup, mode = task.setup, MODE.get(task.kind, OFFLINE)
    key = run_key(setup.model, setup.system, setup.layout, setup.formats, ENGINES[setup.engine], task.row.engine_version, mode)
    if task.split is None:
        return key
    pools = ((task.split.prefill_workers, task.split.prefill), (task.split.decode_workers, setup))
    chips = sum(workers * int(pool.system.chips) for workers, pool in pools)
    return replace(key, chips=chips, layout=" + ".join(f"{workers} x {pool.layout}" for workers, pool in pools))


def task_month(task: Task) -> str:
    """Month in which a row was measured, as it says; "" where it does not."""
    return task.row.month or task.row.date
