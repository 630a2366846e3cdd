"""The scatter of answers' lengths: a column of rows, and what benchmark tools say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.evidence.readers import vllm_bench
from headway.evidence.readers.files import RunFields, scatter
from support.command import Cli

HEAD = "id,model,hardware,n_chips,tp,mode,engine,isl,osl,batch_or_concurrency,length_cv"
ROW = "a,llama-3.1-8b,h100-sxm,1,1,serving_concurrency,vllm,1000,500,32,"


def rows(cli: Cli, tmp_path: Path, *scatters: str) -> list[dict[str, Any]]:
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([HEAD, *(ROW + text for text in scatters)]), encoding="utf-8")
    return cli.rows(f"predict {path}")


def test_length_cv__of_a_row_is_the_flag_of_serve(cli: Cli, tmp_path: Path) -> None:
    stated, alike, blank = rows(cli, tmp_path, "0.3", "0", "")
    load = "serve llama-3.1-8b --on h100-sxm --engine vllm --prompt 1000 --output 500 --batch 32"
    for row, flag in ((stated, "--length-cv 0.3"), (alike, "--length-cv 0"), (blank, "")):
        (served,) = cli.rows(f"{load} {flag}")
        assert row["ttft_ms"] == pytest.approx(1e3 * served["ttft_s"], rel=1e-9)
    assert alike["ttft_ms"] > blank["ttft_ms"] > stated["ttft_ms"]  # answers that end together bring prompts together


@pytest.mark.parametrize("text", ["-0.1", "nan", "many", "11"])
def test_length_cv__that_is_none_sets_the_row_aside(cli: Cli, tmp_path: Path, text: str) -> None:
    good, bad = rows(cli, tmp_path, "0.1", text)
    assert good["ttft_ms"] and not bad["ttft_ms"] and "length_cv" in str(bad["why"])


def test_scatter__by_hand_and_from_a_list_of_lengths(tmp_path: Path) -> None:
    assert scatter({"avg": 200, "std": 50}, "avg", "std") == 0.25
    assert scatter({"avg": 200}, "avg", "std") is None
    run = {
        "completed": 4, "total_input_tokens": 400, "total_output_tokens": 400, "duration": 10.0, "output_throughput": 40.0,
        "max_concurrency": 2, "mean_ttft_ms": 50.0, "mean_tpot_ms": 10.0, "model_id": "meta-llama/Llama-3.1-8B", "backend": "vllm",
    }  # fmt: skip
    path = tmp_path / "run.json"
    for lengths, expected in (([80, 120, 80, 120], 0.2), ([100] * 4, 0.0), ("none", None), ([], None)):
        path.write_text(json.dumps(run | {"output_lens": lengths}), encoding="utf-8")
        (row,), _ = vllm_bench.read(path, RunFields(hardware="h100-sxm"))
        assert row.length_cv == (None if expected is None else pytest.approx(expected))
