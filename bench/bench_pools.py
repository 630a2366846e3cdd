"""Whole searches of DeepSeek-V3 on one pool and on two from the command line: wall time with the start of Python, against 1.5 s."""

import os
import re
import subprocess
import sys
import tempfile
import time

BUDGET_S = 1.5  # on 4 x 72 chips; 16 x 72 chips may take five times that
ASK = "plan deepseek-v3 --on {} --prompt 4k --output 1k --tpot 30ms --disaggregate -o json"
RUNS = 5


def run(machine, folder):
    """One command, bytecode cached as an installed package has it: (seconds, answer as text)."""
    command = [sys.executable, "-c", "from headway.cli.entry import entry; entry()", *ASK.format(machine).split()]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": folder}
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=True, env=env, text=True)
    return time.perf_counter() - start, done.stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for machine, budget in (("4xgb200-nvl72", BUDGET_S), ("16xgb200-nvl72", 5 * BUDGET_S)):
            run(machine, folder)
            times, answers = zip(*(run(machine, folder) for _ in range(RUNS)), strict=True)
            middle = sorted(times)[RUNS // 2]
            counted = " and ".join(re.findall(r"(?:searched|sized) \d+ [a-z]+", answers[0]))
            print(f"{machine}: median {middle:.2f} s, {counted}; ratio to {budget} s: {middle / budget:.2f} (below 1 is within)")
