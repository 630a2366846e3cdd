"""Why a measured server is as fast as it is: the parts of its TPOT and TTFT, which sum to the measurement, and the cause by name.

Each fault of a server is tried at many sizes, by the laws that predict rows; the one that explains the measured times best is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.calibration.apply import under_runs
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.machines import MeasuredLoad, machines, rows, run_servers, scalar, served_times
from headway.evidence.serving.predict import Prediction, load_of
from headway.evidence.serving.runs import PlayedRun, as_played, beaten, bounded, played, unsteady
from headway.laws.collectives.cost import collectives_floor_s
from headway.laws.queueing.closed_loop import SINGLE, LoopTimes
from headway.laws.queueing.users import prompt_chunks
from headway.laws.serving.request import exposed_compute_s, middle_context, misfit, prompts_before_s, share_s, unexplained_s
from headway.laws.step import step
from headway.laws.step.parts import place, stream_s
from headway.performance import request
from headway.performance.calibration.in_force import calibrations
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
    """The deployment as stated, at the measured load, as the user's own runs have it where some are in force."""
    load, server, force = load_of([task]), machines([task.setup]), calibrations()
    runs = under_runs(task.kind, [task], server, load, None, force.observations) if force else None
    return served_at(run_servers(runs.server if runs else server, load).online(), load), load


def measurement(task: Task, prediction: Prediction, served: Served) -> Measurement:
    """The times of a row, with the intervals of their predictions."""
    row, ttft, tpot = task.row, prediction.ttft, prediction.tpot
    chunks = prompt_chunks(served.requests.prompt, served.server.scheduling.step_budget_tokens)
    busy = served.times.rate * chunks * (row.tpot_s or served.times.tpot)
    return Measurement(
        ttft=row.ttft_s, tpot=row.tpot_s, itl=row.itl_s if float(np.max(busy)) < MOST_PROMPT_STEPS else None,
        ttft_factor=ttft.high / ttft.expected if ttft else np.inf, tpot_factor=tpot.high / tpot.expected if tpot else np.inf,
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


def _best(name: str, slow: Change, measured: Measurement, server: Server, load: MeasuredLoad, sizes: np.ndarray) -> Fault:
    index = np.zeros(len(sizes), dtype=int)
    trial = served_at(slow(rows(server, index), sizes, rows(load, index)), rows(load, index))
    distance = np.sum([*misfits(measured, trial.times).values()], axis=0)
    at = int(np.argmin(distance))
    size = sizes[at : at + 1]
    return Fault(name=name, size=float(size[0]), served=served_at(slow(server, size, load), load), misfit=float(distance[at]))


def _step(server: Server, **changes: Any) -> Server:
    return replace(server, step=replace(server.step, **changes))


def _achieved(server: Server, times: np.ndarray, names: tuple[str, ...]) -> Server:
    achieved = server.step.achieved
    return _step(server, achieved=replace(achieved, **{name: getattr(achieved, name) * times for name in names}))


def slow_network(server: Server, size: np.ndarray, load: MeasuredLoad) -> Server:
    """Links at 1/size of their bandwidth."""
    terms = server.step.collectives
    return _step(
        server,
        collectives=tuple(replace(term, lines=tuple(replace(line, slope=line.slope * size) for line in term.lines)) for term in terms),
    )


def late_network(server: Server, size: np.ndarray, load: MeasuredLoad) -> Server:
    """Collectives with `size` times their latency."""
    terms = server.step.collectives
    return _step(
        server,
        collectives=tuple(replace(term, lines=tuple(replace(line, alpha=line.alpha * size) for line in term.lines)) for term in terms),
    )


def fewer_sequences(server: Server, size: np.ndarray, load: MeasuredLoad) -> Server:
    """1/size of the sequences in service at once, of those that the users and the memory allow."""
    users = np.maximum(load.users / server.replicas, 1)
    sequences = np.minimum(server.seats(load.prompt, load.output), users) / server.step.dp
    return replace(server, scheduling=replace(server.scheduling, max_sequences=sequences / size))


def limited(server: Server, sequences: float) -> Server:
    """At most so many sequences of a rank in service."""
    return replace(server, scheduling=replace(server.scheduling, max_sequences=0 * server.scheduling.max_sequences + sequences))


def slow_engine(server: Server, size: np.ndarray, load: MeasuredLoad) -> Server:
    """Work of the engine per step and sequence times `size`."""
    return _achieved(server, size, ("fixed", "sequence", "prompted"))


def slow_memory(server: Server, size: np.ndarray, load: MeasuredLoad) -> Server:
    """HBM at 1/size of the bandwidth that kernels reach."""
    return _achieved(server, 1 / size, ("memory", "expert_memory", "decode_memory", "activation", "expert_activation", "elementwise"))


def slow_compute(server: Server, size: np.ndarray, load: MeasuredLoad) -> Server:
    """Arithmetic at 1/size of the FLOP/s that kernels reach."""
    return _achieved(server, 1 / size, ("compute", "expert_compute", "decode_compute", "prefill_compute"))


FAULTS: dict[str, Change] = {  # the likeliest first
    BATCH_LIMIT: fewer_sequences, "network": slow_network, "network latency": late_network, "engine": slow_engine,
    "memory": slow_memory, "compute": slow_compute,
}  # fmt: skip


KINDS = ("serving",)  # rows of a closed loop, or of arrivals with users by Little's law
PREFILLS, ENGINE, WAIT, REST = "other requests' prefill", "engine overhead", "wait for a seat", "not explained"
SMALL = "small batch"
QUEUE = "queue"
FREE_GROWTH = 1.6  # times the rate at twice the users from which a batch is small
NO_RATE = np.array([np.nan])  # a closed loop
MOST_WAIT = 0.5  # share of TTFT from which a wait is the cause
LIMITS = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)  # times fewer sequences that are tried on an unsteady run


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePart:
    """A part of a measured time in seconds: with the fault that explains it best, as the deployment should have it, at the floor."""

    name: str
    measured: float
    expected: float | None
    floor: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """Cause of a measured run, and the parts of its times."""

    name: str
    tpot: tuple[TimePart, ...]  # without TPOT: empty
    ttft: tuple[TimePart, ...]
    fault: Fault | None  # of the server, if it is not as it should be
    rivals: tuple[Fault, ...]  # faults that explain the measurement about as well
    implausible: tuple[Fault, ...]  # faults that would explain it, of a size that servers do not have
    nominal: Served
    load: MeasuredLoad
    capacity: float | None  # requests per second of all replicas, without the fault, where they arrive at a rate or queue
    saturated: bool  # more requests are offered than the deployment carries, or users wait for seats
    usual: bool  # every measured time is within its 90 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The deployment as stated at the load of a run: its law, and the times of the run, as the simulator plays it where it is unsteady."""

    served: Served
    load: MeasuredLoad
    capacity: float | None  # where requests arrive at a rate
    run: PlayedRun | None  # of an unsteady run

    @property
    def at_run(self) -> Served:
        """The server with the times of the run."""
        served, run = self.served, self.run
        return served if run is None else replace(served, times=run.times(served.times, served.server.replicas))


def expected(task: Task) -> Expected | None:
    """What a served run should take; None for other kinds of measurement, and for runs without TPOT and TTFT."""
    if task.kind not in KINDS or not (task.row.tpot_s or task.row.ttft_s):
        return None
    served, load = nominal(task)
    capacity = capacity_of(served) if task.row.request_rate is not None else None
    return Expected(served=served, load=load, capacity=capacity, run=played(task) if unsteady(task, capacity) else None)


def as_run(task: Task, prediction: Prediction, case: Expected | None) -> Prediction:
    """The prediction of a run as it was: an unsteady one as it is played, with floors that hold for its sequences in service."""
    run = case.run if case is not None else None
    return bounded(task, prediction if run is None else as_played(task, prediction, run), run is not None)


def causes(task: Task, prediction: Prediction, case: Expected | None = None) -> Causes | None:
    """Cause of a served run; None for other kinds of measurement, and for runs without TPOT and TTFT."""
    case = case or expected(task)
    if case is None:
        return None
    served, load, capacity, arrivals = case.at_run, case.load, case.capacity, task.row.request_rate
    measured = measurement(task, prediction, served)
    distances = misfits(measured, served.times)
    usual = all(float(np.max(distances[name])) <= OUTSIDE for name in ("ttft", "tpot") if name in distances)
    saturated = capacity is not None and arrivals is not None and arrivals > capacity
    trials = [] if usual else _trials(task, measured, case)
    enough = EXPLAINED * float(sum(np.max(value) for value in distances.values()))
    explaining = [fault for fault in trials if fault.misfit <= enough]
    rivals = [fault for fault in explaining if fault.plausible]
    fault = rivals[0] if rivals else None
    fitted = fault.served if fault else served
    least = {name: value for name, value in floors(served, load).items() if case.run is None or name != PREFILLS}
    tpot = _parts(task.row.tpot_s, token_parts(fitted), token_parts(served), least)
    ttft = _parts(task.row.ttft_s, first_token_parts(fitted), first_token_parts(served), {})
    name = REST if beaten(task, prediction) else _name(task, served, load, tpot, ttft, fault, usual, saturated)
    if name == QUEUE and capacity is None:
        capacity = capacity_of(served)
    return Causes(
        name=name, tpot=tpot, ttft=ttft, fault=fault, rivals=tuple(rivals[1:]),
        implausible=() if rivals else tuple(fault for fault in explaining if not fault.plausible), nominal=served, load=load,
        capacity=capacity, saturated=saturated or name == QUEUE, usual=usual,
    )  # fmt: skip


def _trials(task: Task, measured: Measurement, case: Expected) -> list[Fault]:
    """Faults at their best sizes; of an unsteady run the batch limit alone, by playing it, since the others' laws are of a steady load."""
    if case.run is None:
        return faults(measured, case.served, case.load)
    server = case.served.server
    peak = min(float(task.row.requests or 1) / scalar(server.replicas), scalar(server.seats(task.prompt, task.output)))
    tries = []
    for size in LIMITS:
        sequences = max(int(peak / size / scalar(server.step.dp)), 1)
        run = played(task, sequences)
        if run is not None:
            served = replace(case.served, server=limited(server, sequences), times=run.times(case.served.times, server.replicas))
            tries.append(Fault(name=BATCH_LIMIT, size=size, served=served, misfit=distance_of(measured, served.times)))
    return sorted(tries, key=lambda fault: fault.misfit)[:1]


def _name(
    task: Task, served: Served, load: MeasuredLoad, tpot: tuple[TimePart, ...], ttft: tuple[TimePart, ...], fault: Fault | None,
    usual: bool, saturated: bool,
) -> str:  # fmt: skip
    """The cause: a queue, the fault that explains the times, what no fault explains, a small batch, or the largest part of TPOT."""
    waits = [part.expected or 0.0 for part in ttft if part.name == WAIT]
    if fault is not None and fault.name == BATCH_LIMIT:
        return BATCH_LIMIT
    if saturated or (waits and task.row.ttft_s and waits[0] > MOST_WAIT * task.row.ttft_s):
        return QUEUE
    if fault is not None:
        return fault.name.partition(" latency")[0]
    if not usual:
        return REST
    largest = max((part for part in tpot if part.name != REST), key=lambda part: part.measured, default=None)
    if largest is None or largest.name == PREFILLS:
        return PREFILLS
    return SMALL if growth(served, load) >= FREE_GROWTH else largest.name


def capacity_of(served: Served) -> float:
    """Requests per second that all replicas carry."""
    return scalar(request.capacity(served.server, served.requests) * served.server.replicas)


def growth(served: Served, load: MeasuredLoad) -> float:
    """Times as many requests per second with twice the users."""
    base, double = (served_at(served.server, replace(load, users=factor * load.users, rate=NO_RATE)) for factor in (1, 2))
    return scalar(double.times.rate / base.times.rate)


def _parts(
    measured: float | None, fitted: dict[str, float], expected: dict[str, float], least: dict[str, float]
) -> tuple[TimePart, ...]:  # fmt: skip
    """Parts of a measured time, the largest first, and last what they do not explain."""
    if not measured:
        return ()
    total = sum(fitted.values())
    shares = {name: float(share_s(value, total, measured)) for name, value in fitted.items()}
    parts = [TimePart(name=name, measured=share, expected=expected[name], floor=least.get(name)) for name, share in shares.items()]
    rest = TimePart(name=REST, measured=float(unexplained_s(measured, total)), expected=None, floor=None)
    return (*sorted(parts, key=lambda part: -part.measured), rest)


def token_parts(served: Served) -> dict[str, float]:
    """Parts of TPOT: of the decode steps at the batch of this load, and what other requests' prompts add."""
    coefficients, times, requests = served.server.step, served.times, served.requests
    batch = np.maximum(times.decoding, SINGLE)
    tokens = batch * middle_context(requests.prompt, requests.output)
    weights, kv = step.weights_s(coefficients, batch), step.kv_s(coefficients, batch, tokens)
    network, overhead = step.network_s(coefficients, batch), step.overhead_s(coefficients, batch, tokens)
    parts = {
        "weights": weights, "KV cache": kv, "compute": exposed_compute_s(times.decode, weights, kv, network, overhead),
        "network": network, ENGINE: overhead, PREFILLS: np.maximum(times.tpot - times.decode, 0 * times.tpot),
    }  # fmt: skip
    return {name: scalar(value) for name, value in parts.items()}


def first_token_parts(served: Served) -> dict[str, float]:
    """Parts of TTFT: the engine's work on a request, its prefill, the prompts of others, the wait for a seat."""
    overhead = served.server.scheduling.request_overhead_s
    prefill = request.prompt_s(served.server, served.requests, SINGLE, step.step_s)
    wait = served.times.seat_wait
    before = prompts_before_s(served.times.ttft, overhead, prefill, wait)
    parts = {"prefill of the request": prefill, PREFILLS: before, WAIT: wait, ENGINE: overhead}
    return {name: scalar(value) for name, value in parts.items()}


def floors(served: Served, load: MeasuredLoad) -> dict[str, float]:
    """Each part of TPOT at datasheet rates, at the same load; they overlap, so TPOT's own floor is less than their sum."""
    coefficients = served.server.step
    batch, requests = np.maximum(served.times.decoding, SINGLE), served.requests
    tokens = batch * middle_context(requests.prompt, requests.output)
    achieved = coefficients.achieved
    weights = step.weights_s(coefficients, batch) * achieved.memory
    at = place(coefficients, batch, tokens, step.NONE, step.NONE)
    fixed = coefficients.blocks * at.sequences * achieved.block + stream_s(coefficients.spans, achieved.stream, at)
    floor_times = served_times(served.server, load, step.step_floor_s)
    parts = {
        "weights": weights, "KV cache": (step.kv_s(coefficients, batch, tokens) - fixed) * achieved.decode_memory,
        "network": collectives_floor_s(coefficients.collectives, at.tokens),
        ENGINE: 0.0, PREFILLS: np.maximum(floor_times.tpot - floor_times.decode, 0 * floor_times.tpot),
    }  # fmt: skip
    return {name: scalar(value) for name, value in parts.items()}


