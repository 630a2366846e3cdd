"""Planned nodes beside the fewest of brute force on random loads: python bench/cheapest_loads.py [HOW MANY] [SEED].

Brute force: every legal layout, in both KV formats, on one node, then two, ... up to one fewer than planned, each simulated as the planner
does; the first that holds with 80 % confidence is the cheapest. Loads are those of signed_loads.py on at most 4 nodes of at most 8 chips.
"""

import random
import sys
import time
from dataclasses import replace

import numpy as np

from headway.hardware.system import system
from headway.models.precision import Precision
from headway.performance.layout import NAMES, Layout, shape
from headway.serving.plan.space import space
from headway.simulation.check.check import check
from headway.simulation.check.plays import candidate
from signed_loads import drawn, plan_of

MOST_NODES = 4


def layouts(model, machine):
    """Every legal layout of a model on a machine, with as many replicas as it holds."""
    blocks = candidate(model, machine, Layout(), prompt=1000, output=100).query.work.blocks
    found = space(shape(blocks), machine, {}).layouts
    columns = {name: np.broadcast_to(getattr(found, name), np.shape(found.tp))[:, 0] for name in NAMES}
    return [Layout(**{name: int(column[row]) for name, column in columns.items()}) for row in range(len(columns["tp"]))]


def fewest_nodes(model, chip, most, load, offered, limits, assumptions):
    """The fewest nodes, below `most`, on which some layout holds; `most` where none does. Also the number of layouts simulated."""
    tried = 0
    for nodes in range(1, most):
        machine = replace(system(f"{nodes * 8}x{chip}"), fixed_count=True)
        for kv in ("bf16", "fp8"):
            for layout in layouts(model, machine):
                try:
                    deployed = candidate(
                        model, machine, layout, prompt=load.prompt, output=load.output, precision=Precision(kv=kv), assumptions=assumptions
                    )
                    tried += 1
                    if check(deployed, offered, limits, needed=0.8, exact=False).holds(0.8):
                        return nodes, tried
                except ValueError:  # weights alone do not fit
                    continue
    return most, tried


def main(count, seed):
    """Print a line for each load, and the mean of the ratios."""
    rng, ratios = random.Random(seed), []
    while len(ratios) < count:
        model, chip, engine, rate, words, hit, limits = drawn(rng)
        if chip == "gb200-nvl72":
            continue
        answer, offered, load, assumptions = plan_of(model, chip, engine, rate, words, hit, limits)
        nodes = int(answer.plan.best.case.system.chips) // 8
        if not answer.holds or not 2 <= nodes <= MOST_NODES:
            continue
        began = time.time()
        fewest, tried = fewest_nodes(model, chip, nodes, load, offered, tuple(limits), assumptions)
        ratios.append(nodes / fewest)
        print(f"{model} {chip} {engine} {rate}/s {' '.join(words)} hit {hit}: planned {nodes} nodes, fewest {fewest} "
              f"({tried} layouts, {time.time() - began:.0f} s)", flush=True)  # fmt: skip
    print(f"{len(ratios)} loads: planned nodes are {np.mean(ratios):.3f} times the fewest on average")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
