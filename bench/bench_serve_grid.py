"""A serve grid of 1,000,000 points: seconds, peak memory, and the ratio to the budget of 0.4 s and 500 MB."""

import resource
import time

import numpy as np

from headway.performance.layout import Layout
from headway.serving.serve import SERVE, serve

BUDGET_S, BUDGET_MB = 0.4, 500


def grid():
    """8 layouts x 500 batches x 250 contexts of DeepSeek-V3 on a GB200 NVL72."""
    layouts = [Layout(tp=tp, dp=72 // tp, ep=ep) for tp in (1, 2, 4, 8) for ep in (72, 36)]
    table = serve("deepseek-v3", "gb200-nvl72", layouts, batch=np.arange(1, 501) * 16, context=np.arange(1, 251) * 512)
    numbers = 0
    for key in SERVE:
        column = table.column(key)
        numbers += column is not None
    return table, numbers


if __name__ == "__main__":
    serve("deepseek-v3", "gb200-nvl72", Layout(tp=8), batch=1, context=1000)  # imports done and catalogue read before the clock starts
    times = []
    for _ in range(5):
        start = time.perf_counter()
        table, numbers = grid()
        times.append(time.perf_counter() - start)
        del table
    mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    best, middle = min(times), sorted(times)[2]
    print(f"serve grid, 1,000,000 points, {numbers} columns: min {best:.3f} s, median {middle:.3f} s, peak {mb:.0f} MB")
    print(f"ratio to budget: time {middle / BUDGET_S:.2f}, memory {mb / BUDGET_MB:.2f} (below 1 is within)")
