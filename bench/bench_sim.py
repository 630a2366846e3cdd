"""Requests simulated per CPU-second: `python bench/bench_sim.py [TRACE.csv [PREFIX_TRACE.jsonl.gz]]`, as ratios to what is asked of it.

One replica, chunked prefill and a KV limit: compiled with the fitted step law and with hard maxima, and in plain Python; with a trace of
prefixes also four replicas with a prefix cache, tiers, preemption and routing. Without a trace, requests like those of a chat service.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import Any

from headway.core.schema import defaults
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.serving.serve import checked_load, deployment
from headway.simulation.fleet import Fleet, fleet
from headway.simulation.prefix_tiers import parse_tiers
from headway.simulation.questions import Policy
from headway.simulation.simulate import simulate
from headway.simulation.state import PREEMPTED
from headway.simulation.traffic.distributions import parse_arrivals, parse_lengths
from headway.simulation.traffic.generate import generate
from headway.simulation.traffic.read import read_trace
from headway.simulation.traffic.requests import Traffic

MODEL, SYSTEM = "llama-3.1-8b", "a100-sxm-80"
ROUNDS = 3
TARGETS = {"fitted step law": 250_000, "hard maxima": 1_000_000, "prefix cache, tiers, preemption, routing": 60_000, "plain Python": 15_000}
RATE, PROMPT, OUTPUT = 5.5, "lognormal:1155,1.1", "lognormal:211,0.9"  # about the Azure conversation trace's


def drawn() -> Traffic:
    """Requests in a trace's place."""
    prompt, output = parse_lengths(PROMPT, "prompt"), parse_lengths(OUTPUT, "output", answers=True)
    return generate(parse_arrivals("poisson", RATE), prompt, output, 10_000, 0)


def prepared(traffic: Traffic, tiers: str = "", kv_tokens: float | None = None, replicas: int = 1, **assumed: Any) -> Fleet:
    """Replicas for a trace."""
    layout, taken = Layout(replicas=replicas), defaults(Assumptions, assumed)
    asked = deployment(MODEL, f"{replicas}x{SYSTEM}", layout, checked_load(prompt=1000, output=200), Precision(), taken)
    policy = Policy(kv_tokens=kv_tokens) if kv_tokens else Policy()
    return fleet(asked, asked.layout, policy, traffic, tiers=parse_tiers(tiers) if tiers else ())


def rate(made: Fleet, traffic: Traffic, how: str, routing: str = "round-robin") -> tuple[float, float, int]:
    """The best of some rounds: requests per CPU-second, seconds of compiling, preemptions."""
    best, compiling, preempted = 0.0, 0.0, 0
    for number in range(ROUNDS + 1):
        start = time.process_time()
        assert made.pace
        run = simulate(
            traffic, made.pace, made.scheduler.rules, replicas=made.replicas, how=how, prefix=made.prefix, routing=routing
        )  # fmt: skip
        if number:  # the first compiles, or loads what was compiled
            best = max(best, len(traffic) / (time.process_time() - start))
        compiling, preempted = max(compiling, run.compile_s), run.total_count(PREEMPTED)
    return best, compiling, preempted


def told(name: str, found: tuple[float, float, int], key: str) -> None:
    """One line: the rate and its ratio to the target."""
    print(f"{name:58} {found[0]:>12,.0f} requests/CPU-s   {found[0] / TARGETS[key]:5.2f} of the target {TARGETS[key]:,}   "
          f"(compiled in {found[1]:.1f} s, {found[2]} preemptions)")  # fmt: skip


def main() -> None:
    """Every figure in one run."""
    files = sys.argv[1:]
    traffic = (read_trace(files[0]).traffic if files else drawn()).head(10_000)
    fitted, hard = prepared(traffic), prepared(traffic, overlap="full")
    compiled = importlib.util.find_spec("numba") is not None
    if compiled:
        told("compiled, fitted step law", rate(fitted, traffic, "compiled"), "fitted step law")
        told("compiled, hard maxima", rate(hard, traffic, "compiled"), "hard maxima")
    told("plain Python, fitted step law", rate(fitted, traffic, "plain"), "plain Python")
    if compiled and len(files) > 1:
        shared = read_trace(files[1]).traffic.head(10_000)
        tiered = prepared(shared, "hbm:20GB,ddr:200GB,flash:2TB", None, 4)
        key = "prefix cache, tiers, preemption, routing"
        told("compiled, prefix cache, tiers, 4 replicas", rate(tiered, shared, "compiled"), key)
        told("the same, least loaded", rate(tiered, shared, "compiled", "least-loaded"), key)
        told("the same, prefix-aware", rate(tiered, shared, "compiled", "prefix-aware"), key)
        common = prepared(shared, "hbm:20GB,ddr:200GB,flash:2TB:shared", None, 4)
        told("prefix-aware, the last tier shared", rate(common, shared, "compiled", "prefix-aware"), key)


if __name__ == "__main__":
    main()
