"""Plans at drawn loads against brute force over cards: what a plan costs over the fewest cards that hold by any layout.

    python bench/counts_by_card.py [loads] [seed]

Each drawn load is planned with one pool on a chip that clouds rent by the card, or on one that comes by the host. Then every layout that
divides a host (tensor parallelism, also with experts divided, with each KV format) is played in the most cards that cost the plan over 1.1:
chances grow with the number of replicas, so that a plan passes where none of them holds with the confidence.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from random import Random

from headway.answers import arguments
from headway.core.errors import HeadwayError
from headway.core.schema import defaults
from headway.hardware.system import rented_counts
from headway.hardware.system import system as find_system
from headway.models.config import model as find_model
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import SLO, Load
from headway.serving.plan.plan import plan
from headway.simulation.check.check import check
from headway.simulation.check.limits import LatencyLimits, check_limits
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.check.plan_at_load import LoadGoal, plan_at_load, width_of
from headway.simulation.check.plays import candidate

MODELS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b", "gpt-oss-20b", "gpt-oss-120b")
CHIPS = ("h100-sxm", "a100-sxm-80", "l40s", "l4", "h200-sxm", "mi300x")
OVER = 1.1


def drawn(random: Random) -> tuple[str, str, dict[str, float]]:
    """A model, a chip and a load with its limits."""
    ttft, tpot = random.choice((0.5, 1, 2, 4)), random.choice((0.025, 0.04, 0.06, 0.1))
    limits = {random.choice(("ttft", "ttft_p95", "ttft_p99")): ttft, random.choice(("tpot", "tpot_p95")): tpot}
    rate = round(10 ** random.uniform(0, 2), 2)
    load = {"rate": rate, "prompt": random.choice((500, 1000, 2000, 4000)), "output": random.choice((100, 300, 600))}
    return random.choice(MODELS), random.choice(CHIPS), limits | load


def layouts(model: str) -> Iterator[tuple[Layout, int]]:
    """Layouts that divide a host of eight, with the cards of a replica."""
    experts = any(block.experts for block in work_of(find_model(model)).blocks)
    for tp in (1, 2, 4, 8):
        yield Layout(tp=tp), tp
        if experts and tp > 1:
            yield Layout(tp=tp, ep=tp), tp


def cheaper(chip: str, replica: int, most: float) -> int:
    """Replicas in the most cards, at most `most`, of the machines that are rented."""
    machine = find_system(chip).chip
    unit = min((int(count) for count in rented_counts(machine) if count >= replica), default=int(machine.scale_up_domain))
    return int(most // unit) * (unit // replica)


def main(count: int, seed: int) -> None:
    """Draw, plan, try what is cheaper, and print a line of each load."""
    random, worst, holding = Random(seed), 0, 0
    for number in range(count):
        name, chip, values = drawn(random)
        model, machine, start = find_model(name), find_system(chip), time.process_time()
        lengths = arguments.requested({key: str(values[key]) for key in ("prompt", "output")})
        prompt, output = arguments.length_distributions(lengths)
        offered = OfferedTraffic(rate=values["rate"], prompt=prompt, output=output)
        most = {key: value for key, value in values.items() if key[:4] in ("ttft", "tpot")}
        limits = check_limits(LatencyLimits(**most), values["output"])
        goal = LoadGoal(offered=offered, limits=limits, width=width_of([(model, machine)], defaults(Assumptions)))
        load = Load(prompt=values["prompt"], output=values["output"], rate=values["rate"])

        def search(slo: SLO, factor: float, model=model, machine=machine, load=load):
            return plan(model, machine, load, slo, step_factor=factor, elasticities=False, frontier=False, disaggregate="never")

        try:
            answer = plan_at_load(search, goal)
        except HeadwayError as error:
            print(number, name, chip, values, "refused:", error, flush=True)
            continue
        took = time.process_time() - start
        best = answer.plan.best.case
        words = f"{number} {name} {best.system.name} {best.layout} x{int(best.layout.replicas)} {values}"
        if not answer.holds:
            print(words, "nothing holds", flush=True)
            continue
        holding, better = holding + 1, []
        for layout, replica in layouts(name):
            replicas = cheaper(chip, replica, int(best.system.chips) / OVER - 1e-9)
            for kv in ("bf16", "fp8") if replicas else ():
                tried = Layout(tp=layout.tp, ep=layout.ep, replicas=replicas)
                try:
                    case = candidate(model, f"{replicas * replica}x{chip}", tried, prompt=values["prompt"], output=values["output"],
                                     precision=Precision(kv=kv))  # fmt: skip
                    sure = check(case, offered, limits, exact=False)
                except HeadwayError:
                    continue
                if sure.holds():
                    better.append(f"{tried} x{replicas} {kv}")
        worst += bool(better)
        print(words, f"{took:.1f} s", "CHEAPER: " + "; ".join(better) if better else "least", flush=True)
    print(f"{holding} of {count} loads have a plan; {worst} of them cost over {OVER} times what holds")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40, int(sys.argv[2]) if len(sys.argv) > 2 else 42)
