"""Runs of a benchmark's output as `score` diagnoses them: their predictions, what each should take, and what a printed command answers."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from typing import Any

from headway.answers import predict
from headway.answers.asked import result
from headway.core.errors import HeadwayError
from headway.core.question import from_words
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.causes import expected


def as_run(read: predict.MeasuredFile, cases: Mapping[int, Any]) -> predict.MeasuredFile:
    """The file with predictions of its runs as they were: unsteady ones played, floors at the sequences in service."""
    from headway.evidence.serving import causes

    pairs = zip(read.tasks, read.predictions, strict=True)
    predictions = [
        causes.as_run(task, prediction, cases.get(id(task))) if isinstance(task, Task) else prediction for task, prediction in pairs
    ]
    return dataclasses.replace(read, predictions=predictions)


def cases(read: predict.MeasuredFile) -> dict[int, Any]:
    """What each served run of a benchmark's output should take, by the identity of its task."""
    pairs = zip(read.tasks, read.predictions, strict=True)
    all_cases = {id(task): expected(task) for task, prediction in pairs if isinstance(task, Task) and not prediction.why}
    return {key: case for key, case in all_cases.items() if case is not None}


def simulated(command: str) -> Mapping[str, Any] | None:
    """The row that a command answers; None where it has no answer."""
    words = shlex.split(command)
    try:
        return next(iter(result(from_words(words[words[0] == "headway" :])).rows()), None)
    except HeadwayError:
        return None


def runs(read: predict.MeasuredFile, cases: Mapping[int, Any]) -> list[tuple[Any, Any, Any]]:
    """Served runs of a file: task, prediction and cause, the most users first."""
    from headway.evidence.serving.causes import causes

    pairs = [pair for pair in zip(read.tasks, read.predictions, strict=True) if id(pair[0]) in cases]
    run_causes = [(task, prediction, causes(task, prediction, cases[id(task)])) for task, prediction in pairs]
    return sorted(run_causes, key=lambda run: -(run[0].concurrency or 0.0))
