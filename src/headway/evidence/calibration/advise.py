"""Which run of a deployment to make next, and how well what is asked is known after it, over the loads that it may have.

Of users, the load at which it is known least: fewest, then most, then between. Of lengths, which lie around a middle, the one after which
all are known best. Neither depends on what a run will measure: a candidate is tried as one that measures what is expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.calibration.linear import linear
from headway.evidence.questions import ADVISED
from headway.evidence.rows.run_keys import task_key
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.machines import machines, rows, scalar
from headway.evidence.serving.predict import Prediction, load_of, placed, predict, prefill_places
from headway.laws.calibration import run_half
from headway.performance.calibration.key import applies
from headway.performance.calibration.observation import Observation, profile_of
from headway.performance.calibration.posterior import NOISE, Posterior, months, posterior

PRETENDED = "next"  # name of a run that was not made
LOADS = 5  # users that are tried: fewest, most, and between
LENGTHS = (1 / 4, 1.0, 4.0)  # of a run without users, over those of the runs that there are
SHORTEST = 16  # tokens
QUANTITY_OF: dict[str, str] = dict(zip(ADVISED, ("tpot", "ttft", "rate"), strict=True))  # of --for
LOOPED = ("serving", "serving_unloaded", "disagg")  # kinds of rows whose load is users
MEASURED = {True: ("tpot", "ttft"), False: ("rate",)}  # what a run with users tells, and one without
NEAR = 1.25  # loads within this factor are one load


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A run that could be made next, with half of the interval of what is asked before it and after it, as a factor, over all loads."""

    task: Task
    before: float
    after: float
    variance: float  # of the logarithm of what is asked at its load, before it


def candidates(task: Task) -> list[Task]:
    """A deployment at the loads that tell its factors apart: users from one to all that it seats, or where it has none other lengths."""
    if task.kind in LOOPED:
        most = _seats(task)
        users = dict.fromkeys(max(1, round(count)) for count in np.geomspace(1, most, LOADS).tolist())
        served = replace(task, kind="disagg" if task.kind == "disagg" else "serving", rate=None, requests=None, batch=None)
        return [replace(served, concurrency=float(count)) for count in users]
    longest = float(task.setup.model.max_context or math.inf)
    by_length = []
    for factor in LENGTHS:
        prompt, output = (max(SHORTEST, round((tokens or 0.0) * factor)) for tokens in (task.prompt, task.output))
        if prompt + output <= longest:
            context = None if task.context is None else prompt + output / 2
            by_length.append(replace(task, prompt=float(prompt), output=float(output) if task.output else task.output, context=context))
    return by_length


def _seats(task: Task) -> float:
    """Users that a deployment serves at once."""
    server = machines([task.setup])
    if task.max_num_seqs:
        server = replace(server, scheduling=replace(server.scheduling, max_sequences=np.array([task.max_num_seqs])))
    return max(scalar(server.seats(task.prompt, task.output) * server.replicas), 1.0)


def advise(task: Task, observations: Sequence[Observation], quantity: str, month: str = "", runs: Sequence[Task] = ()) -> list[Advice]:
    """The candidates of a deployment but for those at a load of `runs`, best first; `quantity` is ttft, tpot or rate."""
    tasks, key, at_month = candidates(task), task_key(task), months(month)
    near = [run for run in observations if applies(run.key, key, at_month - months(run.month))]
    now, profile = posterior(near, key, month), profile_of(near[0].run) if near else ""
    slopes = _slopes(tasks, now)
    usual = np.array([_half(prediction, quantity) for prediction in predict(tasks)])
    before = _width(now, slopes[quantity], quantity, usual)
    tried, has_users = [], task.kind in LOOPED
    for index, candidate in enumerate(tasks):
        if any(_is_near(candidate, run) for run in runs):
            continue
        at = {name: slopes[name][index] for name in MEASURED[has_users]}
        pretended = tuple(
            Observation(run=f"{profile}:{PRETENDED}", key=key, month=month, quantity=name, slopes=tuple(slope.tolist()),
                        excess=float(slope @ now.mean))
            for name, slope in at.items() if np.all(np.isfinite(slope))
        )  # fmt: skip
        after = _width(posterior([*near, *pretended], key, month), slopes[quantity], quantity, usual)
        variance = float(slopes[quantity][index] @ now.covariance @ slopes[quantity][index])
        tried.append(Advice(task=candidate, before=before, after=after, variance=variance))
    return sorted(tried, key=lambda advice: -advice.variance if has_users else advice.after)


def _is_near(task: Task, run: Task) -> bool:
    """Whether two runs are at the same load, or nearly."""
    pairs = ((task.concurrency, run.concurrency), (task.prompt, run.prompt), (task.output, run.output))
    return all(first == second or (first and second and 1 / NEAR < first / second < NEAR) for first, second in pairs)


def _half(prediction: Prediction, quantity: str) -> float:
    """Half of the usual interval of a quantity, as a factor."""
    estimate = getattr(prediction, quantity)
    return estimate.high / estimate.expected


def _width(known: Posterior, slopes: Any, quantity: str, usual: Any) -> float:
    """Half of the interval over all loads, as a factor: their geometric mean."""
    return float(np.exp(np.mean(np.log(run_half(usual, known.scatter(slopes, NOISE[quantity]))))))


def _slopes(tasks: Sequence[Task], known: Posterior) -> dict[str, Any]:
    """Slopes of each quantity of each task, all of one kind, by PARAMETERS."""
    place, setups = placed(tasks)
    servers = machines(setups)
    pool = rows(servers, prefill_places(tasks)) if tasks[0].kind == "disagg" else None
    logs = np.tile(known.mean, (len(tasks), 1))
    return dict(linear(tasks[0].kind, rows(servers, place), load_of(tasks), pool, logs)[1])
