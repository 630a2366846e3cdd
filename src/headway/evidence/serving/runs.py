"""A measured run as it was: floors at the sequences that were in service, and its times as the simulator plays it.

The floor of a prediction has every user in service and every prompt computed. Where more requests arrive than the server carries, where a
run is too short to be steady, and where a measurement shows that it was otherwise, what is certain is less: the decode steps at the batch
that the run's own times and rate say (Little's law), and a first token by one step.

A run that ended is no steady load either: a burst drains, and of arrivals beyond the capacity the last wait longest. Its expected times are
those of its own requests where the file has them, else of as many as it had, of its mean lengths, sent as they were sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.errors import HeadwayError
from headway.core.schema import defaults
from headway.evidence.rows.tasks import ROUNDS, Task
from headway.evidence.serving.machines import machines, run_servers, scalar
from headway.evidence.serving.predict import Prediction, load_of
from headway.laws.queueing.closed_loop import SINGLE, LoopTimes
from headway.laws.serving.request import interval_low, unsteady_floor_s
from headway.laws.step.step import step_floor_s
from headway.performance import request
from headway.performance.achieved import EAGER
from headway.performance.assumptions import Assumptions
from headway.performance.estimate import Estimate
from headway.performance.nearest import ENGINES
from headway.performance.request import Requests, Server
from headway.serving.serve import checked_load, deployment
from headway.simulation.fleet import fleet
from headway.simulation.questions import Policy
from headway.simulation.results import measured
from headway.simulation.simulate import simulate
from headway.simulation.traffic.requests import Traffic

KINDS = ("serving", "serving_unloaded")
BATCHES = 64  # at which the floor of a step is computed
CARRIED = 0.97  # least share of the arrivals of a run that it finished per second, for a rate that was carried
BEYOND = 1.02  # times a measurement beyond which a floor is above it by more than clocks err


def unsteady(task: Task, capacity: float | None) -> bool:
    """Whether a run is no steady load: it had few requests for those at a time, or more arrived than `capacity` requests per second.

    Arrivals that the run finished as they came, by its own rate of output, were carried, whatever capacity is predicted.
    """
    row, rate = task.row, task.row.request_rate
    if row.requests and task.concurrency and row.requests < ROUNDS * task.concurrency:
        return True
    if rate is None or capacity is None or rate <= capacity:
        return False
    return not (row.output_tok_per_s and task.output and row.output_tok_per_s / task.output > CARRIED * rate)


def beaten(task: Task, prediction: Prediction) -> bool:
    """Whether a run's TPOT is less than its floor, by more than clocks err."""
    return prediction.tpot is not None and bool(task.row.tpot_s) and (task.row.tpot_s or 0.0) * BEYOND < prediction.tpot.floor


def bounded(task: Task, prediction: Prediction, is_unsteady: bool) -> Prediction:
    """The prediction with floors that hold for this run."""
    if task.kind not in KINDS or prediction.why:
        return prediction
    row, change = task.row, {}
    server = run_servers(machines([task.setup]), load_of([task])).ideal()
    tpot, decoding = prediction.tpot, decoding_of(task)
    if tpot is not None and decoding and row.tpot_s and (is_unsteady or row.tpot_s < tpot.floor):
        least = min(_token_floor(task, server, decoding), tpot.floor)
        change["tpot"] = _lowered(tpot, least)
    if prediction.ttft is not None and row.ttft_s and row.ttft_s < prediction.ttft.floor:
        step = request.decode_s(server, Requests(prompt=task.prompt, output=1.0), SINGLE, step_floor_s)
        change["ttft"] = _lowered(prediction.ttft, min(scalar(step), prediction.ttft.floor))
    return replace(prediction, **change, **_limits(task, replace(prediction, **change), decoding, "tpot" in change))


def _limits(task: Task, prediction: Prediction, decoding: float | None, lowered: bool) -> dict[str, Estimate]:
    """Most tokens per second of a run with so many decoding, where the floor of their TPOT is lower, or arrivals were the limit."""
    measured, tpot = task.row.output_tok_per_s, prediction.tpot
    limits: dict[str, Estimate] = {}
    if tpot is None or not decoding or not measured or not task.output or task.output <= 1:
        return limits
    for name, chips in (("rate", 1.0), ("per_chip", float(task.setup.system.chips))):
        limit = getattr(prediction, name)
        if limit is not None and (lowered or measured / chips > limit.floor):
            most = decoding / tpot.floor * task.output / (task.output - 1) / chips  # first tokens come of prompts
            limits[name] = replace(limit, floor=max(limit.floor, most))
    return limits


def decoding_of(task: Task) -> float | None:
    """Sequences that decoded at once, over all chips: as the run's file says, else of its rate and TPOT; None without them."""
    row = task.row
    if row.decoding:
        return row.decoding
    if not row.tpot_s or not task.output or task.output <= 1:
        return None
    if row.output_tok_per_s:
        return row.output_tok_per_s * row.tpot_s * (task.output - 1) / task.output
    if row.ttft_s and task.concurrency:
        decode = row.tpot_s * (task.output - 1)
        return task.concurrency * decode / (row.ttft_s + decode)
    return None


def _token_floor(task: Task, server: Server, decoding: float) -> float:
    """Least mean TPOT of a replica whose mean batch over the run is this, however the batch varied."""
    users = (task.row.requests or task.concurrency or 1.0) / task.setup.replicas
    batch = decoding / task.setup.replicas
    batches = np.geomspace(1.0, max(min(users, scalar(server.seats(task.prompt, task.output))), batch, 2.0), BATCHES)
    context = task.row.context or (task.prompt or 0.0) + (task.output or 0.0) / 2
    steps = np.ravel(step_floor_s(server.step, batches, batches * context, 0.0, 0.0))
    return float(unsteady_floor_s(batch, batches, steps))


def _lowered(quantity: Estimate, floor: float) -> Estimate:
    """A time with a lower floor, and the low end of its interval that this floor allows."""
    low = float(interval_low(quantity.expected, floor, quantity.high / quantity.expected))
    return replace(quantity, floor=floor, low=min(low, quantity.low))


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


def played(task: Task, sequences: float | None = None, slower: float = 1.0) -> PlayedRun | None:
    """Means of the run as the simulator plays it, with at most `sequences` of a rank in service; None for a run that it cannot play.

    `slower`: times as long as expected that every step takes. At most MOST_REQUESTS are played: as logged, else of the run's mean
    lengths, sent by its users or evenly at its rate.
    """
    setup, row, log = task.setup, task.row, task.row.log
    users = int(task.concurrency or 0) if row.request_rate is None else 0
    if log is not None:
        first = slice(0, MOST_REQUESTS)
        traffic = Traffic.of(np.array(log.arrival[first]), np.array(log.prompt[first]), np.array(log.output[first]))
    else:
        count = int(min(row.requests or 1, MOST_REQUESTS))
        arrivals = np.zeros(count) if users or not row.request_rate else np.arange(count) / row.request_rate
        traffic = Traffic.of(arrivals, max(round(task.prompt or 1), 1), max(round(task.output or 1), 1))
    assumptions = defaults(Assumptions, {"engine": ENGINES[setup.engine], "eager": EAGER in setup.older})
    load = checked_load(prompt=float(traffic.prompt.mean()), output=float(traffic.output.mean()))
    try:
        request = deployment(setup.model, setup.system, replace(setup.layout, replicas=setup.replicas), load, setup.precision, assumptions)
        policy = Policy(max_seqs=sequences or row.max_num_seqs, step_factor=slower)
        server = fleet(request, request.layout, policy, traffic, closed=bool(users))
    except HeadwayError:
        return None
    if server.pace is None:
        return None
    run = simulate(
        traffic, server.pace, server.scheduler.rules, replicas=server.replicas, overhead_s=server.scheduler.overhead_s,
        think=np.zeros(len(traffic)) if users else None, users=users,
    )  # fmt: skip
    run = replace(run, first_token_factor=server.first_token_factor)
    times, completed = measured(run, 0.0), run.completed
    if not completed.any():
        return None
    span = max(float(np.nanmax(run.finish)) - float(np.nanmin(run.arrival)), 1e-9)
    means = {}
    for name, key in (("ttft", "ttft_s"), ("tpot", "tpot_s"), ("seat_wait", "queue_s")):
        values = times.values(key, known=True)
        means[name] = float(values.mean()) if len(values) else 0.0
    decoding, in_service = (float(np.sum((run.finish - begin)[completed])) / span for begin in (run.first, run.scheduled))
    tokens = float(run.traffic.output[completed].sum()) / span
    return PlayedRun(**means, decoding=decoding, in_service=in_service, tok_per_s=tokens)


def as_played(task: Task, prediction: Prediction, run: PlayedRun) -> Prediction:
    """The prediction with the times of the played run as expected, and as their ends those of steps at the ends of their interval.

    A queue that grows until the run ends takes many times as long where steps take a little longer. No end is nearer than the step's own.
    """
    chips = float(prediction.setup.system.chips) if prediction.setup else 1.0
    fast, slow = (played(task, slower=factor) or run for factor in (1 / prediction.step_faster, prediction.step_slower))
    changes: dict[str, Any] = {}
    for name in ("ttft", "tpot"):
        estimate, value = getattr(prediction, name), getattr(run, name)
        if estimate is not None and value:
            floor = min(estimate.floor, value)
            low = min(getattr(fast, name) or value, value / prediction.step_faster)
            high = max(getattr(slow, name), value * prediction.step_slower)
            changes[name] = Estimate(expected=value, floor=floor, low=max(low, floor), high=high)
    for name, value in (("rate", run.tok_per_s), ("per_chip", run.tok_per_s / chips)):
        if (estimate := getattr(prediction, name)) is not None and value:
            floor, factor = max(estimate.floor, value), estimate.expected / estimate.low
            changes[name] = Estimate(expected=value, floor=floor, low=value / factor, high=min(value * factor, floor))
    return replace(prediction, **changes)
