"""Requests simulated per CPU-second: `python bench/bench_sim.py TRACE.csv [PREFIX_TRACE.jsonl.gz]`, as ratios to what is asked of it.

One replica, chunked prefill and a KV limit: compiled with the fitted step law and with hard maxima, and in plain Python; four replicas with
a prefix cache, tiers, preemption and routing; 20 loads of a latency-against-load curve; ten million requests in one run with `--long`.
"""

from __future__ import annotations

import importlib.util
import resource
import sys
import time
from typing import Any

import numpy as np

from headway.assumptions import Assumptions
from headway.layout import Layout
from headway.precision import Precision
from headway.schema import defaults
from headway.serve import query
from headway.sim.fleet import Fleet, fleet
from headway.sim.policy import Policy
from headway.sim.simulate import simulate
from headway.sim.state import PREEMPTED
from headway.sim.tiers import parse_tiers
from headway.sim.traffic.read import read_trace
from headway.sim.traffic.record import Traffic

MODEL, SYSTEM = "llama-3.1-8b", "a100-sxm-80"
ROUNDS = 3
TARGETS = {"fitted step law": 250_000, "hard maxima": 1_000_000, "prefix cache, tiers, preemption, routing": 60_000, "plain Python": 15_000}
PUBLISHED = "references measured elsewhere, requests per CPU-second: ai-dynamo-runtime 1.2.1 mocker 1150, sched-sim 0.2.1 870"


def prepared(traffic: Traffic, tiers: str = "", kv_tokens: float | None = None, replicas: int = 1, **assumed: Any) -> Fleet:
    """Replicas for a trace."""
    layout, taken = Layout(replicas=replicas), defaults(Assumptions, assumed)
    asked = query(MODEL, f"{replicas}x{SYSTEM}", layout, 1, None, 1000, 200, Precision(), taken)
    policy = Policy(kv_tokens=kv_tokens) if kv_tokens else Policy()
    return fleet(asked, asked.layouts[0], policy, traffic, tiers=parse_tiers(tiers) if tiers else ())


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
        compiling, preempted = max(compiling, run.compile_s), run.counted(PREEMPTED)
    return best, compiling, preempted


def told(name: str, found: tuple[float, float, int], key: str) -> None:
    """One line: the rate and its ratio to the target."""
    print(f"{name:58} {found[0]:>12,.0f} requests/CPU-s   {found[0] / TARGETS[key]:5.2f} of the target {TARGETS[key]:,}   "
          f"(compiled in {found[1]:.1f} s, {found[2]} preemptions)")  # fmt: skip


def curve(traffic: Traffic, made: Fleet) -> None:
    """A latency-against-load curve: 20 loads of 10,000 requests."""
    start = time.perf_counter()
    head = traffic.head(10_000)
    for number in range(1, 21):
        assert made.pace
        simulate(head.at_rate(number * 0.5), made.pace, made.scheduler.rules, how="compiled")
    print(f"20 loads x {len(head):,} requests: {time.perf_counter() - start:.2f} s (target 3 s)")


def long(made: Fleet, traffic: Traffic) -> None:
    """Ten million requests: the rate stays, and so does the memory per request."""
    count = 10_000_000
    many = Traffic.of(np.arange(count) / traffic.mean_rate(), np.resize(traffic.prompt, count), np.resize(traffic.output, count))
    start = time.process_time()
    assert made.pace
    simulate(many, made.pace, made.scheduler.rules, how="compiled")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(f"{count:,} requests: {count / (time.process_time() - start):,.0f} requests/CPU-s, at most {peak:.2f} GB (target 1 GB)")


def main() -> None:
    """Every figure in one run."""
    traffic = read_trace(sys.argv[1]).traffic.head(10_000)
    fitted, hard = prepared(traffic), prepared(traffic, overlap="full")
    files = [path for path in sys.argv[1:] if path != "--long"]
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
        curve(traffic, fitted)
    if compiled and "--long" in sys.argv:
        long(fitted, traffic)
    print(PUBLISHED)


if __name__ == "__main__":
    main()
