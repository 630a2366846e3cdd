"""Plans for random loads, played again with fresh requests on another seed: python bench/signed_loads.py [HOW MANY] [SEED].

For each load the planned nodes are played with 20,000 requests that the planner has not seen, and again with one node fewer, the same
load on the replicas that are left. A plan is right where every limit holds, and not oversized where a limit breaks with a node fewer.
"""

import random
import sys
import time
from dataclasses import replace

from headway.core.schema import defaults
from headway.hardware.system import system
from headway.models.config import model as find_model
from headway.performance.assumptions import Assumptions
from headway.performance.workload import Load
from headway.serving.plan.plan import plan
from headway.simulation.check.check import check
from headway.simulation.check.limits import LatencyLimits
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.check.plan_at_load import LoadGoal, plan_at_load, width_of
from headway.simulation.check.plays import Candidate
from headway.simulation.traffic.distributions import parse_lengths

MODELS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "qwen3-30b-a3b", "qwen3-235b-a22b", "gpt-oss-120b", "deepseek-v3", "mixtral-8x7b")
MACHINES = ("h100-sxm", "h200-sxm", "b200", "mi300x", "gb200-nvl72", "a100-sxm")
ENGINES = ("vllm", "sglang", "trtllm", "other", "vllm")
FRESH, FRESH_SEED = 20_000, 77


def drawn(rng):
    """A random load: model, machine, engine, rate, lengths, hit rate and limits."""
    prompt, answer = rng.choice((500, 1500, 3000, 6000)), rng.choice((150, 400, 800))
    words = [str(prompt), str(answer)] if rng.random() < 0.5 else [f"lognormal:{prompt},0.6", f"lognormal:{answer},0.6"]
    limits = LatencyLimits(ttft_p95=rng.choice((1.0, 2.0, 4.0)), tpot_p95=rng.choice((0.03, 0.045, 0.06, 0.1)))
    hit = rng.choice((0.0, 0.0, 0.5))
    return rng.choice(MODELS), rng.choice(MACHINES), rng.choice(ENGINES), rng.choice((2, 5, 12, 30)), words, hit, limits


def plan_of(model, machine, engine, rate, words, hit, limits):
    """The checked plan for a drawn load, its traffic, mean load and assumptions."""
    prompt, answer = parse_lengths(words[0], "prompt"), parse_lengths(words[1], "output", answers=True)
    offered = OfferedTraffic(rate=float(rate), prompt=prompt, output=answer)
    sample = offered.load(2000, 0).traffic
    load = Load(prompt=round(float(sample.prompt.mean())), output=round(float(sample.output.mean())), rate=float(rate))
    assumptions = defaults(Assumptions, {"engine": engine, "hit_rate": hit})

    def search(slo, factor):
        return plan(model, machine, load, slo, assumptions=assumptions, step_factor=factor, elasticities=False, frontier=False)

    width = width_of([(find_model(model), system(machine))], assumptions)
    return plan_at_load(search, LoadGoal(offered=offered, limits=tuple(limits), width=width)), offered, load, assumptions


def one_node_fewer(best):
    """The layout on one node fewer, None where a single node or replica carries the load."""
    system, layout = best.case.system, best.case.layout
    node, replica = int(system.scale_up_domain), int(system.chips) // max(int(layout.replicas), 1)
    nodes = int(system.chips) // node - 1
    replicas = nodes * (node // replica) if replica <= node else nodes // (replica // node)
    return replace(layout, replicas=replicas) if replicas >= 1 and replicas < int(layout.replicas) else None


def main(count, seed):
    """Print a line for each load, and the sums."""
    rng, held, planned, broke, fewer = random.Random(seed), 0, 0, 0, 0
    start = time.time()
    for number in range(count):
        model, machine, engine, rate, words, hit, limits = drawn(rng)
        began = time.time()
        answer_plan, offered, _, _ = plan_of(model, machine, engine, rate, words, hit, limits)
        took = time.time() - began
        words_of = f"{number:3} {model} {machine} {engine} {rate}/s {' '.join(words)} hit {hit}"
        if not answer_plan.holds:
            print(f"{words_of}: nothing keeps the limits ({took:.1f} s)", flush=True)
            continue
        planned += 1
        best = answer_plan.plan.best
        fresh = check(
            Candidate(query=best.case, layout=best.case.layout), offered, tuple(limits), requests=FRESH, seeds=(FRESH_SEED,), exact=False
        )
        held += fresh.is_met
        less, result = one_node_fewer(best), "-"
        if less is not None:
            fewer += 1
            result = check(Candidate(query=best.case, layout=less), offered, tuple(limits), requests=FRESH, seeds=(FRESH_SEED,)).holds(0.8)
            broke += not result
        sure = answer_plan.checked.confidence.probability
        print(f"{words_of}: {best.case.system.name} {best.case.layout} {sure:.0%}, fresh {'kept' if fresh.is_met else 'BROKEN'}, "
              f"one node fewer {result if result == '-' else 'kept' if result else 'breaks'} ({took:.1f} s)", flush=True)  # fmt: skip
    print(f"{held} of {planned} plans keep every limit with fresh requests; with one node fewer {broke} of {fewer} no longer do so with "
          f"80 % confidence; {count - planned} loads without a plan; {time.time() - start:.0f} s")  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
