"""A measured run played again: the same arrivals and lengths through the simulated engine, and how far the two are apart.

From first principles the step time is the one step law's, in the engine's fitted numbers. Scaled, every step lasts longer by one factor,
such that the mean TPOT is the measured one: what is left then is the scheduler's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.assumptions import Assumptions
from headway.catalog import Catalog, default_catalog
from headway.errors import BadValue
from headway.evidence.names import hardware, model_name
from headway.evidence.readers.vllm_run import MeasuredRun, Settings
from headway.layout import Layout
from headway.precision import Precision
from headway.schema import defaults
from headway.serve import query
from headway.sim import state as of
from headway.sim.fleet import Fleet, fleet
from headway.sim.pacing import scaled
from headway.sim.policy import Policy
from headway.sim.simulate import SimulatedRun, simulate
from headway.sim.tiers import parse_tiers
from headway.sim.traffic.record import Traffic

UNLIMITED_CACHE = "hbm:1PB"  # a prefix cache in all of the KV cache that there is
ROUNDS, CLOSE = 30, 1e-4  # of the search for a factor: how often, and how near to the measured TPOT


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """What a run shows, measured or simulated."""

    ttft_s: float  # mean, from the arrival
    tpot_s: float
    running: Any  # at the times of the measured samples
    waiting: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A simulated run beside the measured one."""

    factor: float  # on every step
    simulated: RunTimes
    ttft_error: float  # simulated over measured, less 1
    tpot_error: float
    running_error: float  # mean absolute difference of the curves over the mean of the measured one
    waiting_error: float
    preemptions: int


def fleet_of(run: MeasuredRun, catalog: Catalog | None = None) -> Fleet:
    """The engine of a run, from its settings and the catalogue."""
    settings = run.settings
    machine = hardware(settings.hardware, catalog or default_catalog())
    chips = settings.tp * settings.dp
    layout = Layout(tp=settings.tp, dp=settings.dp, ep=chips if settings.ep else 1)
    assumption_values = {"engine": "vllm"} | ({"hbm_utilization": settings.hbm_utilization} if settings.hbm_utilization else {})
    request = query(
        model_name(settings.model), f"{chips}x{machine.chip}" if chips > 1 else machine.chip, layout, 1, None, float(run.prompt.mean()),
        float(run.output.mean()), Precision(), defaults(Assumptions, assumption_values),
    )  # fmt: skip
    tiers = parse_tiers(UNLIMITED_CACHE) if settings.prefix_caching and len(run.blocks) else ()
    return fleet(request, request.layouts[0], policy_of(settings), traffic_of(run), tiers=tiers)


def policy_of(settings: Settings) -> Policy:
    """The run's scheduler; its clocks are the engine's own, so that no work before or after it is added."""
    return Policy(
        policy="chunked", token_budget=settings.token_budget, max_seqs=settings.max_seqs, block=settings.block, request_overhead=0.0,
        kv_tokens=None if settings.kv_tokens is None else settings.kv_tokens * settings.dp,
    )  # fmt: skip


def traffic_of(run: MeasuredRun) -> Traffic:
    """Arrivals and lengths, and what prompts share where that is known."""
    return Traffic.of(run.arrival, run.prompt, run.output, blocks=run.blocks, block_start=run.block_start, block_tokens=run.block_tokens)


def replay(run: MeasuredRun, engine: Fleet, factor: float = 1.0) -> Replay:
    """The run with every step so much longer."""
    if engine.pace is None:
        raise BadValue("run", run.name, f"an engine that its machine holds: {engine.why}")
    pace = engine.pace if factor == 1.0 else scaled(engine.pace, factor)
    simulated_run = simulate(traffic_of(run), pace, engine.scheduler.rules, how="plain", prefix=engine.prefix)
    measured, simulated = measured_stats(run), _simulated_stats(simulated_run, run)
    return Replay(
        factor=factor, simulated=simulated,
        ttft_error=simulated.ttft_s / measured.ttft_s - 1, tpot_error=simulated.tpot_s / measured.tpot_s - 1,
        running_error=apart(simulated.running, measured.running), waiting_error=apart(simulated.waiting, measured.waiting),
        preemptions=simulated_run.total_count(of.PREEMPTED),
    )  # fmt: skip


def fitted_replay(run: MeasuredRun, engine: Fleet) -> Replay:
    """The run with steps scaled to its mean TPOT: the factor is sought by the TPOT alone."""
    result = replay(run, engine)
    for _ in range(ROUNDS):
        if abs(result.tpot_error) < CLOSE:
            break
        result = replay(run, engine, result.factor / (1 + result.tpot_error))
    return result


def apart(simulated: Any, measured: Any) -> float:
    """Mean absolute difference of two curves over the mean of the measured one."""
    return float(np.abs(simulated - measured).mean() / measured.mean()) if measured.mean() > 0 else float(np.abs(simulated).mean())


def measured_stats(run: MeasuredRun) -> RunTimes:
    """What was measured."""
    ttft, tpot = _latencies(run.arrival, run.first, run.last, run.output)
    return RunTimes(ttft_s=ttft, tpot_s=tpot, running=run.running, waiting=run.waiting)


def _simulated_stats(simulated_run: SimulatedRun, run: MeasuredRun) -> RunTimes:
    is_completed = simulated_run.completed
    ttft, tpot = _latencies(
        simulated_run.arrival[is_completed], simulated_run.first[is_completed], simulated_run.finish[is_completed], run.output[is_completed]
    )
    curves = sampled(simulated_run, run.at)
    return RunTimes(ttft_s=ttft, tpot_s=tpot, running=curves[:, 0], waiting=curves[:, 1])


def _latencies(arrival: Any, first: Any, last: Any, output: Any) -> tuple[float, float]:
    """Mean TTFT, and mean TPOT of answers with more than one token."""
    several = output > 1
    return float((first - arrival).mean()), float(((last - first)[several] / (output[several] - 1)).mean())


def sampled(simulated_run: SimulatedRun, at: Any) -> Any:
    """Requests running and waiting at some times, over all replicas; of each the mean of the narrow bin that the time lies in."""
    total = np.zeros((len(at), 2))
    for state in simulated_run.states:
        bins, width = np.asarray(state.log[of.GAPS :]).reshape(of.BINS, of.SERIES), float(state.at[of.BIN_S])
        index = (np.asarray(at) / width).astype(int)
        inside = (np.asarray(at) >= 0) & (index < of.BINS)
        total[inside] += bins[index[inside], :2] / width
    return total
