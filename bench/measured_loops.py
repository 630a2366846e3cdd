"""Closed loops of a table of measurements, simulated, beside the fixed point: python bench/measured_loops.py MEASURED.csv [HOW MANY] [-v].

As a benchmark runs: all users begin at once and ask ten times each; against the fixed point with its fitted share of prompts that come
together. Then each premise alone: the first answers of users who begin at once, against the fixed point of prompts that all come
together; the second half of a run whose users begin evenly over one answer, against the fixed point of prompts that come one by one.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from headway.evidence.rows.row import read_rows
from headway.evidence.rows.tasks import tasks

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from reference.closed_loops import fixed_points, simulated_loops, spread_tasks

ROW = "{:24} {:>5} {:>10} {:>8} {:>8} {:>10} {:>8} {:>10} {:>8}"
SPREAD = 0.064  # of InferenceX's lengths: without any, users who begin evenly stay so for ever


def apart(left, right):
    """Median of |left / right - 1|, and of left / right - 1."""
    ratio = np.asarray(left) / np.asarray(right) - 1
    return f"{np.median(np.abs(ratio)):.1%}", f"{np.median(ratio):+.1%}"


def tail(left, right):
    """90th percentile of |left / right - 1|."""
    return f"{np.percentile(np.abs(np.asarray(left) / np.asarray(right) - 1), 90):.1%}"


def table(name, some, sim, fixed, measured=None):
    """Both quantities of some rows."""
    for at, what in enumerate(("TTFT", "TPOT")):
        one, other = sim[at][some], fixed[at][some]
        errors = () if measured is None else (*apart(one, measured[at][some]), *apart(other, measured[at][some]))
        print(ROW.format(f"{name} {what}", some.sum(), *apart(one, other), tail(one, other), *(errors or ("",) * 4)))


def means(runs, kind=""):
    """TTFT and TPOT of runs, as arrays."""
    return np.array([(getattr(run, f"{kind}ttft_s"), getattr(run, f"{kind}tpot_s")) for run in runs]).T


def main(path, count):
    """Print the tables."""
    asked = spread_tasks(tasks(read_rows(path)[0]), count)
    start, every = time.time(), np.ones(len(asked), bool)
    runs = simulated_loops(asked)
    sim, fixed = means(runs), fixed_points(asked)
    measured = np.array([(task.row.ttft_s, task.row.tpot_s) for task in asked]).T
    loose = [replace(task, spread=max(task.spread, SPREAD)) for task in asked]
    alone = fixed_points(loose, first_round_share=0.0, concurrent_prompts=0.0)
    spread = simulated_loops(loose, ramp=[float(t + p * task.output) for t, p, task in zip(*alone, loose, strict=True)])
    print(f"{len(asked)} closed loops, each simulated twice, in {time.time() - start:.0f} s")
    print(ROW.format("", "rows", "simulation/fixed", "bias", "p90", "sim error", "bias", "fixed err", "bias"))
    table("as a benchmark", every, sim, fixed, measured)
    for engine in sorted({task.setup.engine for task in asked}):
        table(f"  {engine}", np.array([task.setup.engine == engine for task in asked]), sim, fixed, measured)
    table("all at once", every, means(runs, "first_"), fixed_points(asked, first_round_share=1.0, concurrent_prompts=0.0))
    table("one by one", every, means(spread, "later_"), alone)
    for index, task in enumerate(asked if "-v" in sys.argv else ()):
        of = task.setup
        words = f"{task.row.id} {of.engine} {of.model.name} {of.system.name} {of.layout} {task.concurrency:g} users"
        figures = " ".join(f"{pair[at][index] * 1e3:.1f}" for pair in (sim, fixed, measured) for at in (0, 1))
        print(f"{words} {task.prompt:.0f}/{task.output:.0f} | ms, simulated, fixed point, measured: {figures}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60)
