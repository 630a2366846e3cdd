"""What is read before any work: a model, a system, a trace of 200,000 lines, 10,000 measured rows; the best of several, in milliseconds."""

import csv
import sys
import tempfile
import time
from pathlib import Path

from headway.core.catalog import PACKAGED
from headway.evidence.rows.row import read_rows
from headway.evidence.rows.tasks import tasks
from headway.hardware.system import system
from headway.models import totals
from headway.models.config import from_file
from headway.simulation.traffic.read import read_trace

RUNS = 7
LINES, ROWS = 200_000, 10_000
CONFIG = Path(PACKAGED) / "models" / "deepseek-ai--DeepSeek-V3.json"
ROW = {"model": "meta-llama/Llama-3.1-8B", "hardware": "H100-SXM-80GB", "mode": "serving_concurrency", "n_chips": "8", "engine": "vLLM",
       "weight_precision": "bf16", "kv_precision": "bf16", "osl": "100", "batch_or_concurrency": "8"}  # fmt: skip


def best_s(run):
    """The shortest of several runs."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def write_trace(path):
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "2023-11-16 18:15:46.6805900,374,44\n" * LINES, encoding="utf-8")
    return path


def write_rows(path):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", *ROW, "isl", "tp"])
        writer.writeheader()
        writer.writerows(ROW | {"id": number, "isl": 100 + number, "tp": 1 << number % 4} for number in range(ROWS))
    return path


def main():
    with tempfile.TemporaryDirectory() as folder:
        trace, table = write_trace(Path(folder) / "trace.csv"), write_rows(Path(folder) / "rows.csv")
        measured, _ = read_rows(table)
        cases = {
            "a model, DeepSeek-V3": lambda: totals.works(from_file(CONFIG)),
            "a system, 8xh100-sxm": lambda: system("8xh100-sxm"),
            f"a trace of {LINES:,} lines": lambda: read_trace(trace),
            f"{ROWS:,} measured rows": lambda: read_rows(table),
            f"the setups of {ROWS:,} rows": lambda: tasks(measured),
        }
        for name, run in cases.items():
            print(f"{name}: {best_s(run) * 1e3:.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
