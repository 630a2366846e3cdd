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
from headway.sim.simulate import Run, simulate
from headway.sim.tiers import parse_tiers
from headway.sim.traffic.record import Traffic

WHOLE = "hbm:1PB"  # a prefix cache in all of the KV cache that there is
ROUNDS, CLOSE = 30, 1e-4  # of the search for a factor: how often, and how near to the measured TPOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a run shows, measured or simulated."""

    ttft_s: float  # mean, from the arrival
    tpot_s: float
    running: Any  # at the times of the measured samples
    waiting: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A simulated run beside the measured one."""

    factor: float  # on every step
    seen: Seen
    ttft_error: float  # simulated over measured, less 1
    tpot_error: float
    running_error: float  # mean absolute difference of the curves over the mean of the measured one
    waiting_error: float
    preemptions: int


def fleet_of(run: MeasuredRun, catalog: Catalog | None = None) -> Fleet:
    """The engine of a run, from its settings and the catalogue."""
    told = run.settings
    named = hardware(told.hardware, catalog or default_catalog())
    chips = told.tp * told.dp
    layout = Layout(tp=told.tp, dp=told.dp, ep=chips if told.ep else 1)
    assumed = {"engine": "vllm"} | ({"hbm_utilization": told.hbm_utilization} if told.hbm_utilization else {})
    asked = query(
        model_name(told.model), f"{chips}x{named.chip}" if chips > 1 else named.chip, layout, 1, None, float(run.prompt.mean()),
        float(run.output.mean()), Precision(), defaults(Assumptions, assumed),
    )  # fmt: skip
    tiers = parse_tiers(WHOLE) if told.prefix_caching and len(run.blocks) else ()
    return fleet(asked, asked.layouts[0], policy_of(told), traffic_of(run), tiers=tiers)


def policy_of(told: Settings) -> Policy:
    """The run's scheduler; its clocks are the engine's own, so that no work before or after it is added."""
    return Policy(
        policy="chunked", token_budget=told.token_budget, max_seqs=told.max_seqs, block=told.block, request_overhead=0.0,
        kv_tokens=None if told.kv_tokens is None else told.kv_tokens * told.dp,
    )  # fmt: skip


def traffic_of(run: MeasuredRun) -> Traffic:
    """Arrivals and lengths, and what prompts share where that is known."""
    return Traffic.of(run.arrival, run.prompt, run.output, blocks=run.blocks, block_start=run.block_start, block_tokens=run.block_tokens)


def replay(run: MeasuredRun, made: Fleet, factor: float = 1.0) -> Replay:
    """The run with every step so much longer."""
    if made.pace is None:
        raise BadValue("run", run.name, f"an engine that its machine holds: {made.why}")
    pace = made.pace if factor == 1.0 else scaled(made.pace, factor)
    played = simulate(traffic_of(run), pace, made.scheduler.rules, how="plain", prefix=made.prefix)
    measured, seen = seen_in(run), _seen(played, run)
    return Replay(
        factor=factor, seen=seen, ttft_error=seen.ttft_s / measured.ttft_s - 1, tpot_error=seen.tpot_s / measured.tpot_s - 1,
        running_error=apart(seen.running, measured.running), waiting_error=apart(seen.waiting, measured.waiting),
        preemptions=played.counted(of.PREEMPTED),
    )  # fmt: skip


def fitted_replay(run: MeasuredRun, made: Fleet) -> Replay:
    """The run with steps scaled to its mean TPOT: the factor is sought by the TPOT alone."""
    found = replay(run, made)
    for _ in range(ROUNDS):
        if abs(found.tpot_error) < CLOSE:
            break
        found = replay(run, made, found.factor / (1 + found.tpot_error))
    return found


def apart(simulated: Any, measured: Any) -> float:
    """Mean absolute difference of two curves over the mean of the measured one."""
    return float(np.abs(simulated - measured).mean() / measured.mean()) if measured.mean() > 0 else float(np.abs(simulated).mean())


def seen_in(run: MeasuredRun) -> Seen:
    """What was measured."""
    ttft, tpot = _latencies(run.arrival, run.first, run.last, run.output)
    return Seen(ttft_s=ttft, tpot_s=tpot, running=run.running, waiting=run.waiting)


def _seen(played: Run, run: MeasuredRun) -> Seen:
    done = played.completed
    ttft, tpot = _latencies(played.arrival[done], played.first[done], played.finish[done], run.output[done])
    curves = sampled(played, run.at)
    return Seen(ttft_s=ttft, tpot_s=tpot, running=curves[:, 0], waiting=curves[:, 1])


def _latencies(arrival: Any, first: Any, last: Any, output: Any) -> tuple[float, float]:
    """Mean TTFT, and mean TPOT of answers with more than one token."""
    several = output > 1
    return float((first - arrival).mean()), float(((last - first)[several] / (output[several] - 1)).mean())


def sampled(played: Run, at: Any) -> Any:
    """Requests running and waiting at some times, over all replicas; of each the mean of the narrow bin that the time lies in."""
    total = np.zeros((len(at), 2))
    for state in played.states:
        bins, width = np.asarray(state.log[of.GAPS :]).reshape(of.BINS, of.SERIES), float(state.at[of.BIN_S])
        index = (np.asarray(at) / width).astype(int)
        inside = (np.asarray(at) >= 0) & (index < of.BINS)
        total[inside] += bins[index[inside], :2] / width
    return total
