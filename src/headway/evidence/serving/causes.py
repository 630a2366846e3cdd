"""Why a measured server is as fast as it is: the parts of its TPOT and TTFT, which sum to the measurement, and the cause by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.rows.tasks import Task
from headway.evidence.serving.faults import EXPLAINED, OUTSIDE, Fault, Served, faults, measurement, misfits, nominal, served_at
from headway.evidence.serving.predict import Prediction
from headway.evidence.serving.quantities import MeasuredLoad, served_times
from headway.laws.collectives.cost import collectives_floor_s
from headway.laws.queueing.loop import SINGLE
from headway.laws.serving.causes import backlog_wait_s, exposed_compute_s, prompts_before_s, unexplained_s
from headway.laws.serving.request import middle_context
from headway.laws.step import step
from headway.laws.step.parts import place
from headway.performance import request

KINDS = ("serving",)  # rows of a closed loop, or of arrivals with users by Little's law
PREFILLS, ENGINE, WAIT, REST = "other requests' prefill", "engine overhead", "wait for a seat", "not explained"
SMALL = "small batch"
QUEUE = "queue"
FREE_GROWTH = 1.6  # times the rate at twice the users from which a batch is small
NO_RATE = np.array([np.nan])  # a closed loop
MOST_WAIT = 0.5  # share of TTFT from which a wait is the cause


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
    nominal: Served
    load: MeasuredLoad
    capacity: float | None  # requests per second of all replicas, without the fault, where they arrive at a rate or queue
    saturated: bool  # more requests are offered than the deployment carries
    usual: bool  # every measured time is within its 90 % interval


def causes(task: Task, prediction: Prediction) -> Causes | None:
    """Cause of a served run; None for other kinds of measurement, and for runs without TPOT and TTFT."""
    if task.kind not in KINDS or not (task.row.tpot_s or task.row.ttft_s):
        return None
    served, load = nominal(task)
    measured = measurement(task, prediction, served)
    distances = misfits(measured, served.times)
    usual = all(float(np.max(distances[name])) <= OUTSIDE for name in ("ttft", "tpot") if name in distances)
    arrivals = task.row.request_rate
    capacity = capacity_of(served) if arrivals is not None else None
    saturated = capacity is not None and arrivals is not None and arrivals > capacity
    trials = [] if usual or saturated else faults(measured, served, load)
    distance = float(sum(np.max(value) for value in distances.values()))
    rivals = [fault for fault in trials if fault.misfit <= EXPLAINED * distance]
    fault = rivals[0] if rivals else None
    fitted = fault.served if fault else served
    tpot = _parts(task.row.tpot_s, token_parts(fitted), token_parts(served), floors(served, load))
    backlog = _backlog(task, capacity) if saturated and capacity else {}
    ttft = _parts(task.row.ttft_s, first_token_parts(fitted) | backlog, first_token_parts(served) | backlog, {})
    name = _name(task, served, load, tpot, ttft, fault, usual, saturated)
    if name == QUEUE and capacity is None:
        capacity = capacity_of(served)
    return Causes(
        name=name, tpot=tpot, ttft=ttft, fault=fault, rivals=tuple(rivals[1:]), nominal=served, load=load, capacity=capacity,
        saturated=saturated or name == QUEUE, usual=usual,
    )  # fmt: skip


def _name(
    task: Task, served: Served, load: MeasuredLoad, tpot: tuple[TimePart, ...], ttft: tuple[TimePart, ...], fault: Fault | None,
    usual: bool, saturated: bool,
) -> str:  # fmt: skip
    """The cause: a queue, the fault that explains the times, what no fault explains, a small batch, or the largest part of TPOT."""
    waits = [part.expected or 0.0 for part in ttft if part.name == WAIT]
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
    return _scalar(request.capacity(served.server, served.requests) * served.server.replicas)


def _backlog(task: Task, capacity: float) -> dict[str, float]:
    """The wait of requests that arrive faster than the deployment carries."""
    return {WAIT: float(backlog_wait_s(task.row.requests, task.row.request_rate, capacity))} if task.row.requests else {}


def growth(served: Served, load: MeasuredLoad) -> float:
    """Times as many requests per second with twice the users."""
    base, double = (served_at(served.server, replace(load, users=factor * load.users, rate=NO_RATE)) for factor in (1, 2))
    return _scalar(double.times.rate / base.times.rate)


def _parts(
    measured: float | None, fitted: dict[str, float], expected: dict[str, float], least: dict[str, float]
) -> tuple[TimePart, ...]:  # fmt: skip
    """Parts of a measured time, the largest first, and last what they do not explain."""
    if not measured:
        return ()
    parts = [TimePart(name=name, measured=fitted[name], expected=expected[name], floor=least.get(name)) for name in fitted]
    rest = TimePart(name=REST, measured=float(unexplained_s(measured, sum(fitted.values()))), expected=None, floor=None)
    return (*sorted(parts, key=lambda part: -part.measured), rest)


def token_parts(served: Served) -> dict[str, float]:
    """Parts of TPOT: of the decode steps at the batch of this load, and what other requests' prompts add."""
    coefficients, times, requests = served.server.step, served.times, served.requests
    batch = np.maximum(times.decoding, SINGLE)
    tokens = batch * middle_context(requests.prompt, requests.output)
    weights, kv = step.weights_s(coefficients, batch), step.kv_s(coefficients, batch, tokens)
    network, overhead = step.network_s(coefficients, batch), step.overhead_s(coefficients, batch)
    parts = {
        "weights": weights, "KV cache": kv, "compute": exposed_compute_s(times.decode, weights, kv, network, overhead),
        "network": network, ENGINE: overhead, PREFILLS: times.tpot - times.decode,
    }  # fmt: skip
    return {name: _scalar(value) for name, value in parts.items()}


def first_token_parts(served: Served) -> dict[str, float]:
    """Parts of TTFT: the engine's work on a request, its prefill, the prompts of others, the wait for a seat."""
    overhead = served.server.scheduling.request_overhead_s
    prefill = request.prompt_s(served.server, served.requests, SINGLE, step.step_s)
    wait = served.times.seat_wait
    before = prompts_before_s(served.times.ttft, overhead, prefill, wait)
    parts = {"prefill of the request": prefill, PREFILLS: before, WAIT: wait, ENGINE: overhead}
    return {name: _scalar(value) for name, value in parts.items()}


def floors(served: Served, load: MeasuredLoad) -> dict[str, float]:
    """Each part of TPOT at datasheet rates, at the same load; they overlap, so TPOT's own floor is less than their sum."""
    coefficients = served.server.step
    batch, requests = np.maximum(served.times.decoding, SINGLE), served.requests
    tokens = batch * middle_context(requests.prompt, requests.output)
    achieved = coefficients.achieved
    weights = step.weights_s(coefficients, batch) * achieved.memory
    at = place(coefficients, batch, tokens, step.NONE, step.NONE)
    fixed = coefficients.blocks * at.sequences * achieved.block
    floor_times = served_times(served.server, load, step.step_floor_s)
    parts = {
        "weights": weights, "KV cache": (step.kv_s(coefficients, batch, tokens) - fixed) * achieved.decode_memory,
        "network": collectives_floor_s(coefficients.collectives, at.tokens),
        ENGINE: 0.0, PREFILLS: floor_times.tpot - floor_times.decode,
    }  # fmt: skip
    return {name: _scalar(value) for name, value in parts.items()}


def _scalar(value: Any) -> float:
    return float(np.ravel(value)[0])
