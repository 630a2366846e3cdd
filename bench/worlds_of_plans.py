"""Plans at loads, played in worlds drawn from the interval of their steps: python bench/worlds_of_plans.py [HOW MANY] [SEED] [WORLDS].

Half of the plans have prefill apart. In a world every step takes so many times as long as estimated; the factor is drawn from the 90 %
interval of the steps behind each limit, of all limits at the same place in their intervals, and the requests are drawn afresh. A plan with
80 % confidence should hold in about so many worlds. One unit fewer (a node, cards that are rented together, of pools the fewest replicas
that spare one) should hold in fewer; plans of one unit or of more than 16 are left out.
"""

import random
import sys
import time

import numpy as np

from headway.core.schema import defaults
from headway.hardware.system import system
from headway.laws.serving.request import factor_of_probability
from headway.models.config import model as find_model
from headway.performance.assumptions import Assumptions
from headway.performance.workload import Load
from headway.serving.plan.plan import plan
from headway.simulation.check.check import DEFAULT
from headway.simulation.check.fewer_replicas import smaller_sizes
from headway.simulation.check.ladder import node_counts
from headway.simulation.check.limits import LatencyLimits
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.check.plan_at_load import LoadGoal, plan_at_load, width_of
from headway.simulation.check.plays import COMPILED, PLAIN, Candidate, playable
from headway.simulation.compiled import is_ready
from headway.simulation.traffic.distributions import parse_lengths

MODELS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "qwen3-30b-a3b", "gpt-oss-120b", "mixtral-8x7b")
CHIPS = ("h100-sxm", "h200-sxm", "l40s", "mi300x", "a100-sxm", "b200")
REQUESTS = {PLAIN: 1500, COMPILED: 8000}  # of a world at least, and as many as the plan was checked with: users all begin at once
MOST_UNITS = 16  # nodes, cards that are rented together, or replicas of both pools
FRESH = 1000  # first seed of the worlds' requests, which no plan has seen


def drawn(rng):
    """A random load: model, chip, lengths, rate or users, limits."""
    prompt, answer = rng.choice((500, 1500, 3000, 6000)), rng.choice((100, 200, 400))
    words = [str(prompt), str(answer)] if rng.random() < 0.5 else [f"lognormal:{prompt},0.6", f"lognormal:{answer},0.6"]
    limits = LatencyLimits(ttft_p95=rng.choice((1.0, 2.0, 4.0)), tpot_p95=rng.choice((0.03, 0.045, 0.06, 0.1)))
    load = {"rate": float(rng.choice((5, 12, 40)))} if rng.random() < 0.7 else {"users": rng.choice((60, 150, 400))}
    return rng.choice(MODELS), rng.choice(CHIPS), words, load, tuple(limits)


def planned(model, chip, words, load, limits, way):
    """The plan of a drawn load with one pool or with two, and its traffic."""
    prompt, answer = parse_lengths(words[0], "prompt"), parse_lengths(words[1], "output", answers=True)
    offered = OfferedTraffic(prompt=prompt, output=answer, **load)
    sample = offered.load(2000, 0).traffic
    mean = Load(prompt=round(float(sample.prompt.mean())), output=round(float(sample.output.mean())), rate=load.get("rate"))

    def search(slo, factor, way=way):
        return plan(
            model, chip, mean, slo, users=load.get("users"), disaggregate=way, step_factor=factor, elasticities=False, frontier=False
        )

    width = width_of([(find_model(model), system(chip))], defaults(Assumptions))
    return plan_at_load(search, LoadGoal(offered=offered, limits=limits, width=width)), offered


def candidate_of(choice):
    """A choice of a plan as it is played."""
    return Candidate(query=choice.case, layout=choice.case.layout, prefill=choice.prefill)


def share_that_holds(candidate, answer, offered, limits, worlds, rng):
    """The share of worlds in which every limit holds."""
    spreads = [candidate.step_spread(limit.quantity) for limit in limits]
    held, form = 0, COMPILED if is_ready(routed=True) else PLAIN
    for world in range(worlds):
        chance, seed = rng.uniform(0.001, 0.999), FRESH + world
        scene, results, holds = (
            playable(candidate, offered, max(REQUESTS[form], answer.checked.requests), (seed,), form, with_capacity=False),
            {},
            True,
        )
        if scene.fleet.pace is None:
            return 0.0
        for limit, spread in zip(limits, spreads, strict=True):
            factor = float(factor_of_probability(chance, spread))
            if factor not in results:
                results[factor] = scene.play(factor)
            holds = holds and results[factor].excess(limit) <= 0.0
            if not holds:
                break
        held += holds
    return held / worlds


def unit_fewer(answer):
    """The plan's layout with one unit fewer; None where it has one, or more than MOST_UNITS, of which one is a small share."""
    choice, group = answer.plan.best, answer.plan.groups[0]
    if choice.prefill is not None:
        units = int(choice.prefill.replicas) + int(choice.case.layout.replicas)
        return next((smaller.best for smaller in smaller_sizes(answer.plan)), None) if units <= MOST_UNITS else None
    counts = node_counts(choice, group)
    return None if counts is None or not counts.least < counts.count <= MOST_UNITS else counts.at(counts.count - 1)


def main(count, seed, worlds):
    """Print a line for each plan, and the sums."""
    rng, shares, drops, start = random.Random(seed), [], [], time.time()
    number = 0
    while len(shares) < count:
        model, chip, words, load, limits = drawn(rng)
        way = min(("never", "only"), key=lambda kind: sum(kind == done for done, _ in shares))
        number += 1
        began = time.time()
        try:
            answer, offered = planned(model, chip, words, load, limits, way)
        except ValueError as error:
            print(f"{model} {chip} {way}: {error}", flush=True)
            continue
        less = unit_fewer(answer) if answer.holds else None
        if less is None:
            continue
        took, draw = time.time() - began, random.Random(f"{seed} {number}")
        best = answer.plan.best
        share = share_that_holds(candidate_of(best), answer, offered, limits, worlds, draw)
        shares.append((way, share))
        fewer = share_that_holds(candidate_of(less), answer, offered, limits, worlds, random.Random(f"{seed} {number}"))
        drops.append((way, share - fewer))
        pools = f"{best.prefill} x{int(best.prefill.replicas)} + " if best.prefill is not None else ""
        print(
            f"{len(shares):3} {way:5} {model} {chip} {load} {' '.join(words)} {[limit.words for limit in limits]}: {best.case.system.name} "
            f"{pools}{best.case.layout} x{int(best.case.layout.replicas)}, said {answer.checked.confidence.probability:.0%}, "
            f"holds {share:.0%}, "
            f"one unit fewer {fewer:.0%} ({took:.0f} s, {time.time() - began:.0f} s)",
            flush=True,
        )
    for way in ("never", "only"):
        of = [share for kind, share in shares if kind == way]
        falls = [drop for kind, drop in drops if kind == way]
        if of:
            print(
                f"{way}: {len(of)} plans hold in {np.mean(of):.3f} of {worlds} worlds on average, least {min(of):.2f}; one unit fewer "
                f"lowers it by 0.1 or more in {sum(drop >= 0.1 for drop in falls)} of {len(falls)}"
            )
    print(
        f"all: {np.mean([share for _, share in shares]):.3f} on average, least {min(share for _, share in shares):.2f}; "
        f"{sum(drop >= 0.1 for _, drop in drops)} of {len(drops)} fall by 0.1; confidence {DEFAULT:.0%}; {time.time() - start:.0f} s"
    )


if __name__ == "__main__":
    main(*(int(word) for word in (*sys.argv[1:], *("60", "1", "20")[len(sys.argv) - 1 :])))
