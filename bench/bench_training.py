"""Training: layouts weighed per second on one core, and whole searches for 16,384 chips from the command line, start of Python included."""

import re
import subprocess
import sys
import time

from headway.hardware.system import system
from headway.models.config import model
from headway.training.estimate import estimate
from headway.training.recipe import TrainingRun
from headway.training.search import AT_ONCE, bounds_of, candidates, rows
from headway.training.train import TrainingQuestion, case_of, cases

WANTED_PER_S, BUDGET_S, RUNS = 100_000, 5.0, 5
SEQUENCE = 4096
ASKS = (
    "llama-3-405b --on 16384xh100-sxm --tokens 15T --seq 8k --global-batch 16M",
    "llama-3-405b --on 16384xh100-sxm --tokens 15T --seq 8192 --global-batch 16Mi",
    "deepseek-v3 --on 16384xh100-sxm --tokens 15T --seq 4096 --global-batch 64Mi",
    "llama-3-405b --on 16384xh100-sxm --tokens 15T --seq 8192 --global-batch 16Mi --deadline 90d",
    "llama-3-405b --on 16384xh100-sxm --tokens 15T --seq 8192 --global-batch 16Mi --objective cost",
)
COMMAND = [sys.executable, "-c", "from headway.cli.entry import entry; entry()", "train"]


def rate(name, chips, sequences):
    """Layouts per second, candidates as the search makes them."""
    run = {"seq": SEQUENCE, "global_batch": sequences * SEQUENCE}
    case = case_of(cases([model(name)], [system(f"{chips}xh100-sxm")], TrainingQuestion(records={TrainingRun: run}))[0])
    every = candidates(bounds_of(model(name), case), 8, {"vpp": (1,)})
    some = rows(every, slice(0, AT_ONCE))
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        estimate(case, some)
        times.append(time.perf_counter() - start)
    return len(some.tp), len(some.tp) / sorted(times)[RUNS // 2]


def search(ask):
    """Median wall time of one command, and what it says of its size."""
    times, said = [], ""
    for _ in range(RUNS):
        start = time.perf_counter()
        said = subprocess.run([*COMMAND, *ask.split(), "--verbose"], capture_output=True, check=True, text=True).stdout
        times.append(time.perf_counter() - start)
    return sorted(times)[RUNS // 2], re.findall(r"([\d,]+) legal layouts", said)[-1]


if __name__ == "__main__":
    for name, chips, sequences in (("llama-3.1-405b", 16384, 4096), ("deepseek-v3", 16384, 16384)):
        count, per_s = rate(name, chips, sequences)
        print(f"{name}: {per_s:,.0f} layouts/s on one core ({count:,} at once); {per_s / WANTED_PER_S:.1f} times what is asked for")
    for ask in ASKS:
        took, weighed = search(ask)
        print(f"headway train {ask}: median {took:.2f} s, {weighed} legal layouts weighed; ratio to {BUDGET_S:g} s: {took / BUDGET_S:.2f}")
