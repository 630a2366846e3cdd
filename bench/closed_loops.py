"""Random closed loops, `serve` against `sim`: python bench/closed_loops.py [HOW MANY] [SEED] [-v].

Mean TTFT and TPOT of the law over those of the simulation, by engine, answers of one length and of lengths that scatter.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from reference.drawn_loops import ENGINES, drawn_loops

NEAR = 0.15


def main(count, seed):
    """Print the table."""
    print(f"{count} closed loops, seed {seed}", flush=True)
    loops, errors = [], []
    for loop, law, sim in drawn_loops(count, seed):
        loops.append(loop)
        errors.append((law["ttft_s"] / sim["mean_ttft_s"] - 1, law["tpot_s"] / sim["mean_tpot_s"] - 1))
        if "-v" in sys.argv:
            print(*loop.about, f"{loop.users} users {loop.lengths(loop.prompt)} {loop.lengths(loop.output)}: TTFT {errors[-1][0]:+.1%}")
    alike = np.array([loop.half_width == 0 for loop in loops])
    print(f"{'':32}{'loops':>6}{'TTFT':>8}{'bias':>8}{'p90':>8}{'in 15 %':>9}{'TPOT':>8}{'p90':>8}")
    for engine in ("all", *ENGINES):
        of_engine = np.array([engine in ("all", loop.engine) for loop in loops])
        for name, some in (("", of_engine), ("one length", of_engine & alike), ("scattered", of_engine & ~alike)):
            if some.any():
                ttft, tpot = np.array(errors)[some].T
                sizes = np.abs(ttft), np.abs(tpot)
                line = f"{np.median(sizes[0]):8.1%}{np.median(ttft):+8.1%}{np.percentile(sizes[0], 90):8.1%}{(sizes[0] < NEAR).mean():9.0%}"
                print(f"{engine + ' ' + name:32}{some.sum():6}{line}{np.median(sizes[1]):8.1%}{np.percentile(sizes[1], 90):8.1%}")


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word != "-v"]
    main(*numbers, *(200, 20261126)[len(numbers):])
