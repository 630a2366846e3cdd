"""Decode speed of home machines as `headway fits` answers it, beside public figures: `python bench/home_machines.py`.

First the ten that were listed before the first answer (tests/data/home_machines.csv). Then every figure of one public table that none of
its rules had seen: geerlingguy/ai-benchmarks, README.md at 022fb931, of PCs and Macs (none on a Raspberry Pi) whose card the catalogue has
and the ten do not name. Prints each error, the median, and how many lie in the 90 % interval.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator
from pathlib import Path

import headway as hw

LISTED = Path(__file__).parents[1] / "tests" / "data" / "home_machines.csv"
TABLE = {  # tokens per second of one user, llama.cpp (Vulkan, Metal, CUDA) or Ollama
    ("qwen2.5-14b", "q4_k_m"): {
        "rtx4090": 92.49, "rtx3080-ti": 70.74, "apple-m3-ultra": 51.85, "rtx4070-ti": 49.74, "rtx2080-ti": 45.06, "apple-m1-ultra": 41.51,
        "dgx-spark-gb10": 23.92,
    },
    ("gpt-oss-20b", "mxfp4_moe"): {
        "rtx4090": 279.65, "apple-m3-ultra": 115.29, "apple-m1-ultra": 100.43, "rtx-a4000": 93.55, "dgx-spark-gb10": 87.97,
        "rtx3060-12": 83.96,
    },
    ("llama-3.2-3b", "q4_k_m"): {
        "rtx4090": 334.67, "rtx5090": 271.40, "rtx3080-ti": 263.24, "rtx4080": 204.45, "rtx4070-ti-super": 198.95, "rtx4070-ti": 196.15,
        "rtx4070": 160.72, "apple-m3-ultra": 154.60, "rtx-a4000": 149.44, "rx-7900-xt": 131.2, "apple-m1-ultra": 127.6,
        "rtx3060-12": 122.85, "dgx-spark-gb10": 97.93, "ryzen-ai-max-395": 88.14, "apple-m1-max": 59.38, "apple-m4": 41.31,
    },
}  # fmt: skip
CONTEXT = 64  # the middle of the 128 tokens that llama-bench generates


def listed() -> Iterator[tuple[str, str, str, str, int, float]]:
    """The ten figures: machine, model, format, place of the experts, context, tokens per second."""
    for row in csv.DictReader(LISTED.read_text().splitlines()):
        yield row["machine"], row["model"], row["weights"], row["offload"], int(row["context"] or 256), float(row["tok_per_s"])


def unseen() -> Iterator[tuple[str, str, str, str, int, float]]:
    """Those of the table."""
    for (model, weights), figures in TABLE.items():
        yield from ((machine, model, weights, "none", CONTEXT, figure) for machine, figure in figures.items())


def compare(title: str, figures: Iterator[tuple[str, str, str, str, int, float]]) -> None:
    """Print the errors of figures, their median, and how many intervals hold."""
    errors, within = [], 0
    for machine, model, weights, offload, context, figure in figures:
        (row,) = hw.fits(model, on=machine, weights=weights, offload=offload, context=context).rows()
        error = row["tok_per_s_user"] / figure - 1
        holds = row["tok_per_s_user_lo"] <= figure <= row["tok_per_s_user_hi"]
        errors, within = [*errors, abs(error)], within + holds
        print(f"{machine:18}{model:14}{weights:11}{figure:8.1f}{row['tok_per_s_user']:8.1f}  {error:+.0%}{'' if holds else '  outside'}")
    print(f"{title}: median {statistics.median(errors):.1%} of {len(errors)}, {within} within their interval\n")


if __name__ == "__main__":
    compare("listed before the first answer", listed())
    compare("a table that no rule had seen", unseen())
