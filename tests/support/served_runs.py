"""Recorded runs of vLLM in tests/data/served: each replayed with steps scaled to its mean TPOT, and played from first principles."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.performance.layout import Layout
from headway.simulation.questions import Policy
from headway.simulation.results import measured
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.step_time import StepPace, scaled
from headway.simulation.traffic.requests import Traffic
from support.paths import DATA
from support.simulated import real

SERVED = DATA / "served"
RUNS = {
    "rtx4090_llama-3.1-8b": ("llama-3.1-8b", "rtx4090", Layout(), Policy(max_seqs=256, token_budget=2048, kv_tokens=41408)),
    "rtx-pro-6000_llama-3.1-8b": ("llama-3.1-8b", "rtx-pro-6000", Layout(), Policy(max_seqs=128, token_budget=2048)),
    "2xrtx-pro-6000_qwen3-30b-a3b": ("qwen3-30b-a3b", "2xrtx-pro-6000", Layout(dp=2, ep=2), Policy(max_seqs=128, token_budget=2048)),
}


def recorded(name: str) -> dict[str, Any]:
    """The times and lengths of a recorded run's requests."""
    table = np.genfromtxt(SERVED / f"{name}.csv", delimiter=",", names=True)
    return {key: table[key] for key in table.dtype.names}


def mean_tpot(seen: dict[str, Any]) -> float:
    """The measured mean TPOT."""
    return float(np.mean(((seen["last_token_s"] - seen["first_token_s"]) / np.maximum(seen["output"] - 1, 1))[seen["output"] > 1]))


def from_first_principles(name: str, engine: str) -> float:
    """Relative error of the mean TPOT of a run that is played with the step law as it stands."""
    seen = recorded(name)
    traffic = Traffic.of(seen["arrival_s"], seen["prompt"], seen["output"])
    model, system, layout, policy = RUNS[name]
    made = real(model, system, layout, traffic, policy, engine=engine)
    assert made.pace
    return float(np.nanmean(measured(_play(made, made.pace, traffic), 0.0).tpot_s)) / mean_tpot(seen) - 1


def replayed(name: str) -> tuple[dict[str, Any], SimulatedRun]:
    """What was measured, and the run whose mean TPOT is the measured one."""
    seen = recorded(name)
    tpot = mean_tpot(seen)
    traffic = Traffic.of(seen["arrival_s"], seen["prompt"], seen["output"])
    model, system, layout, policy = RUNS[name]
    made = real(model, system, layout, traffic, policy, engine="vllm")
    assert made.pace
    factor, pace = 1.0, made.pace
    for _ in range(8):
        pace = scaled(made.pace, float(factor))
        run = _play(made, pace, traffic)
        factor *= tpot / np.nanmean(measured(run, 0.0).tpot_s)
    return seen, _play(made, scaled(made.pace, float(factor)), traffic)


def _play(made: Any, pace: StepPace, traffic: Traffic) -> SimulatedRun:
    return simulate(traffic, pace, made.scheduler.rules, overhead_s=made.scheduler.overhead_s, how="plain")


def present(start: Any, end: Any, at: Any) -> Any:
    """How many are between their start and their end at each time."""
    return np.searchsorted(np.sort(start), at, "right") - np.searchsorted(np.sort(end), at, "right")


def curves(seen: dict[str, Any], run: SimulatedRun) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Requests in service and waiting, second by second: measured and replayed."""
    at = np.arange(0.5, seen["last_token_s"].max(), 1.0)
    running = present(seen["scheduled_s"], seen["last_token_s"], at), present(run.scheduled, run.finish, at)
    waiting = present(seen["arrival_s"], seen["scheduled_s"], at), present(run.arrival, run.scheduled, at)
    return running, waiting
