"""Capacity at a rate, `serve` against `sim`: python bench/rate_capacities.py [HOW MANY] [SEED].

Half of the loads are short requests (up to 512 tokens of prompt and 128 of answer), half up to 8,192 and 2,048. The law may promise less
than the simulation, and not 5 % more.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from reference.drawn_loops import drawn_capacities

SHORT, LONG, MOST = 512, 8192, 0.05


def main(count, seed):
    """Print the distribution, and who promises too much."""
    print(f"{count} loads, seed {seed}; serve / sim - 1", flush=True)
    for name, longest in (("short", SHORT), ("long", LONG)):
        drawn = list(drawn_capacities(count // 2, seed, longest))
        ratio = np.array([load.promised for load in drawn])
        ends = " ".join(f"{value:+.1%}" for value in np.quantile(ratio, [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1]))
        print(f"{name}: {(ratio > MOST).sum()} of {len(ratio)} beyond {MOST:.0%}; least, 10, 25, 50, 75, 90 %, most: {ends}")
        for load in drawn:
            if load.promised > MOST:
                print(f"  {load.promised:+.1%} {load.words}: cache of {'all' if load.in_whole else 'fewer'} seats")


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    main(*numbers, *(50, 20261126)[len(numbers):])
