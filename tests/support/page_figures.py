"""Tables of figures that a page states, each made from the file or the runs that it is of: `<!-- figures: NAME -->` stands above one.

`python tests/support/page_answers.py` writes them anew with the answers; the same test compares.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence

import numpy as np

import headway
from headway.simulation.results import measured
from support.paths import ROOT
from support.served_runs import RUNS, curves, from_first_principles, replayed

LAW_NUMBERS = {
    "dense_mfu": "share of the peak that a dense model's prompts reach",
    "sparse_exponent": "how fast that falls with total over active parameters",
    "eff_compute": "share of the peak that decoding reaches",
    "eff_memory": "share of the bandwidth that it reaches",
    "step_fixed": "fixed time of a decode step, of each chip",
}

TRAINING_RUNS = (
    (
        "Llama 3 405B, tp 8, pp 16, dp 128, 16,384 H100", "400 TFLOP/s, MFU 41 % (38 to 43)",
        "{tflops:.0f} TFLOP/s, MFU {mfu:.0%}, {gb:.1f} GB, {recompute}",
        "train llama-3-405b --on 16384xh100-sxm --tokens 15.6T --seq 8192 --global-batch 16Mi --tp 8 --cp 1 --pp 16 --dp 128",
    ),
    (
        "DeepSeek-V3, pp 16, ep 64, dp 128, 2,048 H800", "2.664 M GPU hours",
        "{run_s:.2f} M GPU hours ({run_lo_s:.2f} to {run_hi_s:.2f}), {gb:.1f} GB, {recompute}",
        "train deepseek-v3 --on 2048xh800 --tp 1 --cp 1 --pp 16 --ep 64 --dp 128 --schedule dualpipe --dtype fp8 --tokens 14.8T --seq 4096"
        " --global-batch 60Mi --optimizer adam-bf16-moments",
    ),
)  # fmt: skip


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def inversion_laws() -> str:
    """The numbers of the cost laws that read prices backwards."""
    facts = tomllib.loads((ROOT / "src" / "headway" / "data" / "inversion.toml").read_text(encoding="utf-8"))["facts"]
    rows = []
    for name, meaning in LAW_NUMBERS.items():
        fact = facts[name]
        rows.append((f"`{name}`", f"{fact['value']:g} {fact['unit']}".strip(), meaning, str(fact["date"])))
    return table(("number", "value", "meaning", "date"), rows)


def served_runs() -> str:
    """Recorded runs of vLLM against their replay, and their TPOT from first principles."""
    rows = []
    for name in RUNS:
        seen, run = replayed(name)
        ttft = float(np.mean(measured(run, 0.0).ttft_s) / np.mean(seen["first_token_s"] - seen["arrival_s"]))
        apart = [f"{np.mean(np.abs(now - was)) / was.mean():.0%}" if was.max() > 20 else "-" for was, now in curves(seen, run)]
        errors = [f"{from_first_principles(name, engine):+.0%}" for engine in ("vllm", "none")]
        rows.append((name.replace("_", ", "), str(len(seen["output"])), f"{ttft - 1:+.0%}", *apart, *errors))
    head = ("run", "requests", "mean TTFT", "curve of running", "of waiting", "TPOT, `--engine vllm`", "TPOT, `--engine none`")
    return table(head, rows)


def training_runs() -> str:
    """Published training runs beside what `headway train` says of their layouts."""
    rows = []
    for run, published, cell, command in TRAINING_RUNS:
        best = headway.command(command)[0]
        hours = {name: best[name] * best["chips"] / 3600e6 for name in ("run_s", "run_lo_s", "run_hi_s")}
        rows.append((run, published, cell.format(**best | hours, tflops=best["flops_chip"] / 1e12, gb=best["memory_bytes_chip"] / 1e9)))
    return table(("run", "published", "here"), rows)


FIGURES: dict[str, Callable[[], str]] = {
    "inversion laws": inversion_laws, "served runs": served_runs, "training runs": training_runs,
}  # fmt: skip
