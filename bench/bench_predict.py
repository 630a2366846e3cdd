"""`headway predict` with the start of Python, in CPU-seconds: 10,000 rows of many setups, one in 20 at a rate, against 10 s.

`python bench/bench_predict.py serving_measured.csv` takes a table of measured rows instead, against 6 s.
"""

import csv
import itertools
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

BUDGET_S, MEASURED_BUDGET_S, ROWS, RUNS, AT_A_RATE = 10.0, 6.0, 10_000, 3, 20
DENSE = ("Llama-3.1-8B", "Llama-3.1-70B", "Qwen3-32B", "Mistral-7B-v0.1")
ROUTED = ("Qwen3-235B-A22B-FP8", "DeepSeek-V3", "Mixtral-8x7B-v0.1", "gpt-oss-120b")
CHIPS = ("H100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB", "A100-SXM-80GB", "MI300X", "GB200-NVL72")
MODELS = (*DENSE, *ROUTED)
ENGINES, FORMATS, WAYS = ("vLLM", "SGLang", "TensorRT-LLM"), ("bf16", "fp8"), (1, 2, 4, 8)
LOADS = tuple(itertools.product((512, 1024, 4096), (128, 1024), (1, 16, 128)))
COLUMNS = ("id", "model", "hardware", "n_chips", "engine", "weight_precision", "tp", "mode", "isl", "osl", "batch_or_concurrency",
           "rate_req_s")


def write(path):
    """Rows of 1,152 setups, each under several loads."""
    setups = list(itertools.product(MODELS, CHIPS, ENGINES, FORMATS, WAYS))
    with path.open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(COLUMNS)
        for index in range(ROWS):
            model, chip, engine, form, tp = setups[index % len(setups)]
            prompt, output, users = LOADS[index // len(setups) % len(LOADS)]
            rate = "" if index % AT_A_RATE else users / 10
            table.writerow((index, model, chip, tp, engine, form, tp, "serving_concurrency", prompt, output, users, rate))
    return len(setups)


def run(path, folder):
    """One command, bytecode cached as an installed package has it: (CPU-seconds, rows out)."""
    command = [sys.executable, "-c", "from headway.cli.entry import entry; entry()", "predict", str(path), "-o", "csv"]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": folder}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, check=True, env=env, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, len(done.stdout.splitlines()) - 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        measured = sys.argv[1:]
        path = Path(measured[0]) if measured else Path(folder) / "rows.csv"
        what, budget = ("measured rows", MEASURED_BUDGET_S) if measured else (f"rows of {write(path):,} setups", BUDGET_S)
        run(path, folder)
        times, counts = zip(*(run(path, folder) for _ in range(RUNS)), strict=True)
    middle = sorted(times)[RUNS // 2]
    print(f"predict, {counts[0]:,} {what}: min {min(times):.2f}, median {middle:.2f} CPU-s")
    print(f"ratio to budget: {middle / budget:.2f} (below 1 is within)")
