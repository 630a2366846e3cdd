"""Which single fault of a server explains its measured times best: each is tried at many sizes, by the laws that predict rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.rows.tasks import Task
from headway.evidence.serving.machines import machines, rows
from headway.evidence.serving.predict import Prediction, load_of
from headway.evidence.serving.quantities import MeasuredLoad, served_times
from headway.laws.queueing.closed_loop import LoopTimes
from headway.laws.queueing.users import prompt_chunks
from headway.laws.serving.request import misfit
from headway.performance.request import Requests, Server

SIZES = np.geomspace(1.0, 100.0, 61)  # times slower, or times fewer sequences
MOST_PROMPT_STEPS = 0.35  # share of steps with prompts up to which the median step has none
ALIKE = 0.02  # misfit by which two faults are told apart
OUTSIDE = 1.0  # misfit at the end of the 90 % interval
EXPLAINED = 0.25  # share of the misfit that a fault may leave
LEAST_SIZE = 1.2  # times slower from which it is a fault
MOST_SIZE = 3.0  # times slower beyond which no server is, so that another cause is likelier
BATCH_LIMIT = "batch limit"  # a setting, which may be as small as one likes
Change = Callable[[Server, Any, MeasuredLoad], Server]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a run measured, per request, and the half-width of each interval as a factor; None for what it does not state."""

    ttft: float | None
    tpot: float | None
    itl: float | None  # of a median step without prompts
    ttft_factor: float
    tpot_factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server at the measured load."""

    server: Server
    requests: Requests
    users: Any  # per replica
    times: LoopTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault by name, its size (times slower, or times fewer sequences), the server with it, and what it leaves unexplained."""

    name: str
    size: float
    served: Served
    misfit: float

    @property
    def plausible(self) -> bool:
        """Whether servers have faults of this size."""
        return self.name == BATCH_LIMIT or self.size <= MOST_SIZE


def served_at(server: Server, load: MeasuredLoad) -> Served:
    """Expected times of the measured users, or of the measured arrivals, on a server."""
    requests = Requests(prompt=load.prompt, output=load.output, spread=load.spread)
    users = np.maximum(load.users / server.replicas, 1)
    return Served(server=server, requests=requests, users=users, times=served_times(server, load))


def nominal(task: Task) -> tuple[Served, MeasuredLoad]:
    """The deployment as stated, at the measured load."""
    load = load_of([task])
    return served_at(machines([task.setup]).online(), load), load


def measurement(task: Task, prediction: Prediction, served: Served) -> Measurement:
    """The times of a row, with the intervals of their predictions."""
    row, ttft, tpot = task.row, prediction.ttft, prediction.tpot
    chunks = prompt_chunks(served.requests.prompt, served.server.scheduling.step_budget_tokens)
    busy = served.times.rate * chunks * (row.tpot_s or served.times.tpot)
    return Measurement(
        ttft=row.ttft_s, tpot=row.tpot_s, itl=row.itl_s if float(np.max(busy)) < MOST_PROMPT_STEPS else None,
        ttft_factor=ttft.hi / ttft.expected if ttft else np.inf, tpot_factor=tpot.hi / tpot.expected if tpot else np.inf,
    )  # fmt: skip


def misfits(measured: Measurement, times: LoopTimes) -> Mapping[str, Any]:
    """How far each measured time is from its expectation, in half-widths of its interval, squared."""
    pairs = {
        "ttft": (measured.ttft, times.ttft, measured.ttft_factor), "tpot": (measured.tpot, times.tpot, measured.tpot_factor),
        "itl": (measured.itl, times.decode, measured.tpot_factor),
    }  # fmt: skip
    return {name: misfit(value, expected, factor) for name, (value, expected, factor) in pairs.items() if value}


def distance_of(measured: Measurement, times: LoopTimes) -> float:
    """The misfits of all measured times, summed."""
    return float(np.max(np.sum([*misfits(measured, times).values()], axis=0)))


def faults(measured: Measurement, served: Served, load: MeasuredLoad) -> list[Fault]:
    """Every fault at the size that explains the measurement best, the best first; faults alike in the order of FAULTS, likeliest first.

    A fault whose best size no server has is tried within MOST_SIZE too.
    """
    trials = [_best(name, slow, measured, served.server, load, SIZES) for name, slow in FAULTS.items()]
    within = SIZES[SIZES <= MOST_SIZE]
    trials += [_best(trial.name, FAULTS[trial.name], measured, served.server, load, within) for trial in trials if not trial.plausible]
    trials = [fault for fault in trials if fault.size >= LEAST_SIZE]
    least = min((fault.misfit for fault in trials), default=0.0)
    return sorted(trials, key=lambda fault: 0.0 if fault.misfit <= least + ALIKE else fault.misfit)


def _best(name: str, slow: Change, measured: Measurement, server: Server, load: MeasuredLoad, sizes: Any) -> Fault:
    index = np.zeros(len(sizes), dtype=int)
    trial = served_at(slow(rows(server, index), sizes, rows(load, index)), rows(load, index))
    distance = np.sum([*misfits(measured, trial.times).values()], axis=0)
    at = int(np.argmin(distance))
    size = sizes[at : at + 1]
    return Fault(name=name, size=float(size[0]), served=served_at(slow(server, size, load), load), misfit=float(distance[at]))


def _step(server: Server, **changes: Any) -> Server:
    return replace(server, step=replace(server.step, **changes))


def _achieved(server: Server, times: Any, names: tuple[str, ...]) -> Server:
    achieved = server.step.achieved
    return _step(server, achieved=replace(achieved, **{name: getattr(achieved, name) * times for name in names}))


def slow_network(server: Server, size: Any, load: MeasuredLoad) -> Server:
    """Links at 1/size of their bandwidth."""
    terms = server.step.collectives
    return _step(
        server,
        collectives=tuple(replace(term, lines=tuple(replace(line, slope=line.slope * size) for line in term.lines)) for term in terms),
    )


def late_network(server: Server, size: Any, load: MeasuredLoad) -> Server:
    """Collectives with `size` times their latency."""
    terms = server.step.collectives
    return _step(
        server,
        collectives=tuple(replace(term, lines=tuple(replace(line, alpha=line.alpha * size) for line in term.lines)) for term in terms),
    )


def fewer_sequences(server: Server, size: Any, load: MeasuredLoad) -> Server:
    """1/size of the sequences in service at once, of those that the users and the memory allow."""
    users = np.maximum(load.users / server.replicas, 1)
    sequences = np.minimum(server.seats(load.prompt, load.output), users) / server.step.dp
    return replace(server, scheduling=replace(server.scheduling, max_sequences=sequences / size))


def limited(server: Server, sequences: float) -> Server:
    """At most so many sequences of a rank in service."""
    return replace(server, scheduling=replace(server.scheduling, max_sequences=0 * server.scheduling.max_sequences + sequences))


def slow_engine(server: Server, size: Any, load: MeasuredLoad) -> Server:
    """Work of the engine per step and sequence times `size`."""
    return _achieved(server, size, ("fixed", "sequence", "prompted"))


def slow_memory(server: Server, size: Any, load: MeasuredLoad) -> Server:
    """HBM at 1/size of the bandwidth that kernels reach."""
    return _achieved(server, 1 / size, ("memory", "expert_memory", "decode_memory", "activation", "expert_activation", "elementwise"))


def slow_compute(server: Server, size: Any, load: MeasuredLoad) -> Server:
    """Arithmetic at 1/size of the FLOP/s that kernels reach."""
    return _achieved(server, 1 / size, ("compute", "expert_compute", "decode_compute", "prefill_compute"))


FAULTS: dict[str, Change] = {  # the likeliest first
    BATCH_LIMIT: fewer_sequences, "network": slow_network, "network latency": late_network, "engine": slow_engine,
    "memory": slow_memory, "compute": slow_compute,
}  # fmt: skip
