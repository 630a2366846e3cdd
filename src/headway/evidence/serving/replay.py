"""A measured run played by the simulator: its own requests where the file has them, else as many as it had, of its mean lengths.

A run that ended is no steady load: a burst drains, and of arrivals beyond the capacity the last wait longest. Its expected times are those
of as many requests, sent as they were sent, to the deployment as stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.errors import HeadwayError
from headway.core.schema import defaults
from headway.evidence.rows.names import ENGINES
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.predict import PredictedQuantity, Prediction
from headway.laws.queueing.closed_loop import LoopTimes
from headway.performance.assumptions import Assumptions
from headway.serving.serve import checked_load, query
from headway.simulation.fleet import fleet
from headway.simulation.policy import Policy
from headway.simulation.results import measured
from headway.simulation.simulate import simulate
from headway.simulation.traffic.requests import Traffic

MOST_REQUESTS = 2000  # played of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRun:
    """Means of a played run: times per request in seconds, sequences over all replicas, output tokens per second."""

    ttft: float
    tpot: float
    seat_wait: float
    decoding: float
    in_service: float
    tok_per_s: float

    def times(self, steady: LoopTimes, replicas: float) -> LoopTimes:
        """The times of this run, per replica; the share of TPOT that is decode steps, and a prompt's time, as of a steady load."""

        def array(value: float) -> Any:
            return np.full(np.shape(steady.ttft), value)

        share = np.minimum(steady.decode / steady.tpot, 1.0)
        return replace(
            steady, ttft=array(self.ttft), tpot=array(self.tpot), decode=self.tpot * share, seat_wait=array(self.seat_wait),
            decoding=array(self.decoding / replicas), in_service=array(self.in_service / replicas),
        )  # fmt: skip


def played(task: Task, sequences: int | None = None) -> PlayedRun | None:
    """Means of the run as the simulator plays it, with at most `sequences` of a rank in service; None for a run that it cannot play."""
    setup = task.setup
    users = int(task.concurrency or 0) if task.row.request_rate is None else 0
    traffic = _traffic(task, users)
    assumptions = defaults(Assumptions, {"engine": ENGINES[setup.engine]})
    load = checked_load(prompt=float(traffic.prompt.mean()), output=float(traffic.output.mean()))
    try:
        request = query(setup.model, setup.system, replace(setup.layout, replicas=setup.replicas), load, setup.precision, assumptions)
        server = fleet(request, request.layouts[0], Policy(max_seqs=sequences), traffic, closed=bool(users))
    except HeadwayError:
        return None
    if server.pace is None:
        return None
    run = simulate(
        traffic, server.pace, server.scheduler.rules, replicas=server.replicas, overhead_s=server.scheduler.overhead_s,
        think=np.zeros(len(traffic)) if users else None, users=users,
    )  # fmt: skip
    times = measured(run, 0.0)
    return _means(run, times) if run.completed.any() else None


def _traffic(task: Task, users: int) -> Any:
    """The requests of a run, at most MOST_REQUESTS: as logged, else of its mean lengths, sent by its users or evenly at its rate."""
    log = task.row.log
    if log is not None:
        first = slice(0, MOST_REQUESTS)
        return Traffic.of(np.array(log.arrival[first]), np.array(log.prompt[first]), np.array(log.output[first]))
    count = int(min(task.row.requests or 1, MOST_REQUESTS))
    arrivals = np.zeros(count) if users or not task.row.request_rate else np.arange(count) / task.row.request_rate
    return Traffic.of(arrivals, max(round(task.prompt or 1), 1), max(round(task.output or 1), 1))


def _means(run: Any, times: Any) -> PlayedRun:
    completed = run.completed
    first, last = float(np.nanmin(run.arrival)), float(np.nanmax(run.finish))
    span = max(last - first, 1e-9)

    def mean(key: str) -> float:
        values = times.values(key, known=True)
        return float(values.mean()) if len(values) else 0.0

    decoding, in_service = (float(np.sum((run.finish - begin)[completed])) / span for begin in (run.first, run.scheduled))
    tokens = float(run.traffic.output[completed].sum()) / span
    return PlayedRun(
        ttft=mean("ttft_s"), tpot=mean("tpot_s"), seat_wait=mean("queue_s"), decoding=decoding, in_service=in_service, tok_per_s=tokens
    )  # fmt: skip


def as_played(prediction: Prediction, run: PlayedRun) -> Prediction:
    """The prediction with the times of the played run as expected; its intervals keep their widths."""
    chips = float(prediction.setup.system.chips) if prediction.setup else 1.0
    values = {"ttft": run.ttft, "tpot": run.tpot, "rate": run.tok_per_s, "per_chip": run.tok_per_s / chips}
    changes: dict[str, Any] = {
        name: _around(estimate, value, name in ("ttft", "tpot"))
        for name, value in values.items() if (estimate := getattr(prediction, name)) is not None and value
    }  # fmt: skip
    return replace(prediction, **changes)


def _around(estimate: PredictedQuantity, value: float, time: bool) -> PredictedQuantity:
    slower = estimate.hi / estimate.expected if time else estimate.expected / estimate.lo
    low, high = value / slower, value * slower
    floor = min(estimate.floor, value) if time else max(estimate.floor, value)
    return PredictedQuantity(
        expected=value, floor=floor, lo=max(low, floor) if time else low, hi=high if time else min(high, floor)
    )
