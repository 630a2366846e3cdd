"""Is a random traffic called stable or not as a run ten times longer says? `python bench/sim_verdicts.py [COUNT [SEED]]`: a table.

Each line: a traffic (arrivals, lengths, conversations, prefix cache, classes, pools, scheduler) at 0.3 to 1.7 of its capacity without hits,
its verdict, that of ten times as many requests of the same load, judged by themselves alone, and by itself what the longer run's requests
met: whether those of its last fifth waited for long. Within 5 % of the capacity no run so short can tell by its waits.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np

from headway.answers.sim import _rate_loads
from headway.performance.layout import Layout
from headway.serving.serve import checked_load, deployment
from headway.simulation.fleet import fleet
from headway.simulation.prefix_tiers import parse_tiers
from headway.simulation.questions import Policy
from headway.simulation.run import LoadedTrial, Trial
from headway.simulation.simulate import turns_of
from headway.simulation.state import TALKS
from headway.simulation.traffic.distributions import parse_lengths

MODEL, SYSTEM = "llama-3.1-8b", "h100"
ARRIVALS = ("poisson", "poisson", "even", "bursty:2", "bursty:4", "diurnal:20s,1,3,2")
PROMPTS = ("1k", "500", "uniform:100,4k", "lognormal:1k,1", "lognormal:2k,1.2")
OUTPUTS = ("50", "100", "uniform:10,200", "lognormal:100,0.8", "lognormal:60,1.2")
POLICIES = ({}, {}, {"policy": "prefill-first"}, {"kv_tokens": 60_000}, {"max_seqs": 32})
TURNS = ("", "", "", "3,2s", "5,4s,500")
CACHES = ("hbm:40GB", "hbm:6GB", "hbm:4GB,ddr:20GB")
ABSENT = ("plan", "timeline", "patience", "departures", "trace", "users")  # of the question, which say nothing here
POOLS = {"policy": "disaggregated"}
LONGER, CLOSE = 10, 0.05


def drawn(rng: np.random.Generator) -> SimpleNamespace:
    """A random traffic."""

    def pick(words):
        return words[rng.integers(len(words))]

    turns, kind = pick(TURNS), int(rng.integers(6))
    cache = pick(CACHES) if turns and rng.random() < 0.7 else ""
    return SimpleNamespace(
        arrivals=pick(ARRIVALS), prompt=pick(PROMPTS), output=pick(OUTPUTS), policy=POOLS if kind == 0 else pick(POLICIES), turns=turns,
        replicas=int(rng.integers(1, 3)), requests=int(rng.integers(1000, 2000)), share=float(rng.uniform(0.3, 1.7)),
        seed=int(rng.integers(1000)), prefix_cache=cache, fast=0.2 if kind == 1 else 0.0, **dict.fromkeys(ABSENT),
    )  # fmt: skip


def loaded(asked: SimpleNamespace, requests: int, rate: float):
    """The load of a traffic at a rate."""
    prompt, output = parse_lengths(asked.prompt, "prompt"), parse_lengths(asked.output, "output", answers=True)
    return _rate_loads(asked, (rate,), prompt, output, requests, asked.seed)[0]


def grew(run, load) -> bool:
    """Whether requests that begin in the last fifth of a run wait for more than a fortieth of it, as they do at 3 % of overload."""
    follows = run.rules.closed == TALKS  # routed anew, turns come as drawn
    begins = ~turns_of(load.traffic).later if follows else np.ones(len(load.traffic), bool)
    begins &= ~run.refused
    sent, waits = run.arrival[begins], ((run.first if run.prefill else run.scheduled) - run.arrival)[begins]
    span = float(sent.max() - sent.min())
    return float(waits[sent > sent.min() + 0.8 * span].mean()) > span / 40


def judged(asked: SimpleNamespace, requests: int, rate: float | None):
    """Row and run of a traffic at a rate, or at its share of the capacity; and the rate."""
    load, layout = loaded(asked, requests, rate or 1.0), Layout(replicas=asked.replicas)
    chips = asked.replicas + (asked.policy is POOLS)
    request = deployment(MODEL, f"{chips}x{SYSTEM}", layout, checked_load(prompt=1000, output=200))
    tiers = parse_tiers(asked.prefix_cache) if asked.prefix_cache else ()
    refit = partial(fleet, request, request.layout, Policy(**asked.policy), tiers=tiers, classes=2 if asked.fast else 1)
    trial = Trial(
        fleet=refit(load.traffic), limits={}, warmup=0.1, lasting=True, how="compiled", routing="round-robin", fast=asked.fast, seed=0,
        refit=refit,
    )  # fmt: skip
    loaded_trial = LoadedTrial(trial=trial, load=load)
    if rate is None:
        rate = asked.share * loaded_trial.capacity.per_s
        loaded_trial.turn_to(loaded(asked, requests, rate))
    elif asked.prefix_cache:  # the longer run is judged by itself
        loaded_trial.turn_to(replace(loaded_trial.load, longer=None))
    rows, run = loaded_trial.rows()
    return rows[0], run, loaded_trial.load, rate


def main() -> None:
    """The table, and how often the verdicts agree."""
    count, seed = (int(text) for text in (sys.argv[1:] + ["200", "0"][len(sys.argv) - 1 :])[:2])
    rng, start, tally = np.random.default_rng(seed), time.perf_counter(), {"agree": 0, "clear": 0, "queue": 0, "contradict": 0}
    print(f"seed {seed}")
    print(f"{'traffic':74} {'load':>6} {'±':>6} {'N':>6} {'verdict':>8} {'10 N':>8} {'waits':>8}")
    for _ in range(count):
        asked = drawn(rng)
        row, _, _, rate = judged(asked, asked.requests, None)
        longer, long_run, long_load, _ = judged(asked, LONGER * asked.requests, rate)
        growing = grew(long_run, long_load)
        clear = abs(row["utilisation"] - 1.0) > CLOSE
        tally["agree"] += row["stable"] == longer["stable"]
        tally["clear"] += clear
        tally["queue"] += clear and row["stable"] == (not growing)
        tally["contradict"] += row["stable"] != (row["queue_growth_per_s"] is None) or (
            not row["stable"] and row["queue_growth_per_s"] <= 0
        )
        kinds = [asked.turns, asked.prefix_cache, "classes" * (asked.fast > 0), *map(str, asked.policy.values())]
        name = f"{asked.arrivals} {asked.prompt}/{asked.output} x{asked.replicas} {' '.join(filter(None, kinds))}"
        words = ["stable" if row["stable"] else "over", "stable" if longer["stable"] else "over", "long" if growing else "-"]
        mark = "" if words[0] == words[1] and (growing != row["stable"] or not clear) else "  <"
        error = row["capacity_ci_req_per_s"] / row["capacity_req_per_s"]
        print(
            f"{name:74} {row['utilisation']:6.1%} {error:6.2%} {asked.requests:6} {words[0]:>8} {words[1]:>8} {words[2]:>8}{mark}",
            flush=True,
        )
    print(f"{tally['agree']} of {count} verdicts as of {LONGER} times as many requests")
    print(f"{tally['queue']} of the {tally['clear']} beyond {CLOSE:.0%} of the capacity as that run's waits")
    print(f"{tally['contradict']} with growth against verdict; {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
