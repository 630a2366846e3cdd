"""One deployment in three verbs: a row of `predict`, `serve` and `sim` mean the same by tp, dp, pp, ep and parts of a machine."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest

from support.command import Cli

SEED, COUNT = 20261125, 100
DENSE = {"llama-3.1-8b": (1, 2, 4), "llama-3.1-70b": (4, 8), "qwen3-32b": (1, 2, 4)}
ROUTED = {"qwen3-30b-a3b": (1, 2, 4), "gpt-oss-120b": (1, 2, 4, 8), "deepseek-v3": (8,), "mixtral-8x7b": (2, 4)}
CHIPS = ("h100-sxm", "h200-sxm", "b200-sxm")


def deployments() -> list[dict[str, Any]]:
    draw, rows = random.Random(SEED), []
    while len(rows) < COUNT:
        model = draw.choice([*DENSE, *ROUTED])
        tp, pp, dp = draw.choice((DENSE | ROUTED)[model]), draw.choice((1, 1, 1, 2)), draw.choice((1, 1, 2, 4))
        ep = draw.choice((1, tp * dp)) if model in ROUTED else 1
        if tp * pp * dp > 8:
            continue
        rows.append({
            "id": len(rows), "model": model, "hardware": draw.choice(CHIPS), "n_chips": tp * pp * dp, "engine": "vLLM", "tp": tp, "ep": ep,
            "pp": pp, "dp": dp, "mode": "serving_concurrency", "isl": draw.choice((500, 1000, 4000)), "osl": draw.choice((100, 400)),
            "batch_or_concurrency": dp * pp * draw.choice((4, 16, 64)), "kv_precision": "bf16",
        })  # fmt: skip
    return rows


def words(row: dict[str, Any]) -> str:
    degrees = " ".join(f"--{name} {row[name]}" for name in ("tp", "ep", "pp", "dp"))
    return f"{row['model']} --on {row['n_chips']}x{row['hardware']} {degrees} --prompt {row['isl']} --output {row['osl']} --engine vllm"


def test_a_row_and_the_same_deployment_by_flags__are_one_prediction(cli: Cli, tmp_path: Path) -> None:
    rows = deployments()
    with (tmp_path / "rows.csv").open("w") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    predictions, compared = cli.rows("predict", str(tmp_path / "rows.csv")), 0
    for row, prediction in zip(rows, predictions, strict=True):
        (served,) = cli.rows(f"serve {words(row)} --batch {row['batch_or_concurrency']} --kv bf16")
        if not served["fits"]:  # a row was measured, so that it is taken as if it fitted
            assert prediction["why"] or "as if it fitted" in prediction["flags"], row
            continue
        compared += 1
        for key, other_key, scale in (("tpot_ms", "tpot_s", 1e3), ("ttft_ms", "ttft_s", 1e3), ("output_tok_s_total", "tok_per_s", 1.0)):
            assert prediction[key] == pytest.approx(scale * served[other_key], rel=1e-9), (row, key)
    assert compared > 80


@pytest.mark.parametrize("load", ["--users 64", "--rate 20"])
def test_ranks_of_a_model_without_experts__are_copies_in_every_verb(cli: Cli, load: str) -> None:
    machine = "llama-3.1-8b --on 4xh200-sxm --prompt 1k --output 100"
    degrees = ("--dp 4", "--replicas 4")
    by_name = [cli.rows(f"sim {machine} {degree} {load} --requests 400 --loop plain --engine vllm")[0] for degree in degrees]
    times = [{key: value for key, value in row.items() if key not in ("wall_s", "compile_s")} for row in by_name]
    assert times[0] == times[1]
    users = {"--users 64": ("--batch 64", "--batch 16"), "--rate 20": ("--rate 20", "--rate 20")}[load]
    ranks, copies = (cli.rows(f"serve {machine} {degree} {of}")[0] for degree, of in zip(degrees, users, strict=True))
    assert ranks == copies


def test_a_search__sets_copies_and_refuses_ranks_without_experts(cli: Cli) -> None:
    for verb in ("plan", "price"):
        answer = cli(f"{verb} llama-3.1-8b --on 4xh200-sxm --prompt 1k --output 100 --dp 4")
        assert answer.status == 2 and "copies, which replicas count" in answer.err
