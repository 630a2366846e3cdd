"""`headway --help` against `python -c pass`: medians of whole processes, and the ratio to the budget of 0.08 s between them."""

import subprocess
import sys
import time

BUDGET_S, RUNS = 0.08, 21
HELP = [sys.executable, "-c", "from headway.cli.entry import entry; entry()", "--help"]


def median_s(command):
    """Median wall time of a process."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return sorted(times)[RUNS // 2]


if __name__ == "__main__":
    bare, full = median_s([sys.executable, "-c", "pass"]), median_s(HELP)
    print(f"headway --help: {full * 1e3:.0f} ms, python -c pass: {bare * 1e3:.0f} ms, {(full - bare) * 1e3:.0f} ms apart")
    print(f"ratio to budget: {(full - bare) / BUDGET_S:.2f} (below 1 is within)")
