"""`headway predict` on 10,000 rows of many setups: wall time with the start of Python, against 10 s."""

import csv
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUDGET_S, ROWS, RUNS = 10.0, 10_000, 3
DENSE = ("Llama-3.1-8B", "Llama-3.1-70B", "Qwen3-32B", "Mistral-7B-v0.1")
ROUTED = ("Qwen3-235B-A22B-FP8", "DeepSeek-V3", "Mixtral-8x7B-v0.1", "gpt-oss-120b")
CHIPS = ("H100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB", "A100-SXM-80GB", "MI300X", "GB200-NVL72")
MODELS = (*DENSE, *ROUTED)
ENGINES, FORMATS, WAYS = ("vLLM", "SGLang", "TensorRT-LLM"), ("bf16", "fp8"), (1, 2, 4, 8)
LOADS = tuple(itertools.product((512, 1024, 4096), (128, 1024), (1, 16, 128)))
COLUMNS = ("id", "model", "hardware", "n_chips", "engine", "weight_precision", "tp", "mode", "isl", "osl", "batch_or_concurrency")


def write(path):
    """Rows of 1,152 setups, each under several loads."""
    setups = list(itertools.product(MODELS, CHIPS, ENGINES, FORMATS, WAYS))
    with path.open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(COLUMNS)
        for index in range(ROWS):
            model, chip, engine, form, tp = setups[index % len(setups)]
            prompt, output, users = LOADS[index // len(setups) % len(LOADS)]
            table.writerow((index, model, chip, tp, engine, form, tp, "serving_concurrency", prompt, output, users))
    return len(setups)


def run(path, folder):
    """One command, bytecode cached as an installed package has it: (seconds, rows out)."""
    command = [sys.executable, "-c", "from headway.cli.entry import entry; entry()", "predict", str(path), "-o", "csv"]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": folder}
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=True, env=env, text=True)
    return time.perf_counter() - start, len(done.stdout.splitlines()) - 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        setups = write(path)
        run(path, folder)
        times, counts = zip(*(run(path, folder) for _ in range(RUNS)), strict=True)
    middle = sorted(times)[RUNS // 2]
    print(f"predict, {counts[0]:,} rows of {setups:,} setups: min {min(times):.2f} s, median {middle:.2f} s")
    print(f"ratio to budget: {middle / BUDGET_S:.2f} (below 1 is within)")
