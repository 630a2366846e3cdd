"""Rows that ask for more than there is: predicted as asked, and flagged."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.cli.main import main
from headway.evidence.rows.row import read_rows
from headway.evidence.rows.tasks import tasks
from headway.evidence.serving.predict import MEMORY, Prediction, predict

HEAD = "id,model,hardware,n_chips,tp,engine,weight_precision,kv_precision,mode,isl,osl,context_len,batch_or_concurrency\n"


def predicted(folder: Path, line: str) -> Prediction:
    path = folder / "rows.csv"
    path.write_text(f"{HEAD}a,{line}\n")
    return predict(tasks(read_rows(path)[0]))[0]


def memory(found: Prediction) -> str:
    return "".join(flag for flag in found.flags if flag.startswith(MEMORY))


def test_predict__flags_weights_larger_than_memory(tmp_path: Path) -> None:
    found = predicted(tmp_path, "llama-3.1-405b,h100-sxm,1,1,vllm,bf16,bf16,serving_concurrency,1000,100,,4")
    assert memory(found) == f"{MEMORY}: weights need 811.7 GB on the fullest chip, which has 84.93 GB"  # 405.85e9 parameters of 2 bytes
    assert found.tpot is not None


@pytest.mark.parametrize(("mode", "batch", "over"), [("decode_step", 17, False), ("decode_step", 24, True), ("prefill", 999, False),
                                                     ("serving_concurrency", 999, False), ("offline_throughput", 999, False)])  # fmt: skip
def test_predict__flags_batch_larger_than_the_cache(tmp_path: Path, mode: str, batch: int, over: bool) -> None:
    # 80e9 - 16.06e9 of weights, over 131072 bytes a token: 487 k tokens, 20 sequences of 24,000
    found = predicted(tmp_path, f"llama-3.1-8b,h100-sxm,1,1,vllm,bf16,bf16,{mode},23000,1000,24000,{batch}")
    assert bool(memory(found)) is over


def test_predict__flags_context_longer_than_the_model_takes(tmp_path: Path) -> None:
    said = "131073 tokens exceed the longest context of llama-3.1-8b, 131072: computed as if it took them"
    assert said in predicted(tmp_path, "llama-3.1-8b,h100-sxm,1,1,vllm,fp8,fp8,decode_step,,,131073,1").flags
    assert said not in predicted(tmp_path, "llama-3.1-8b,h100-sxm,1,1,vllm,fp8,fp8,decode_step,,,131072,1").flags


def test_predict__first_line_counts_oversized_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predicted(tmp_path, "llama-3.1-405b,h100-sxm,1,1,vllm,bf16,bf16,decode_step,,,1000,4")
    assert main(["predict", str(tmp_path / "rows.csv")]) == 0
    assert capsys.readouterr().out.startswith(f"1 of 1 rows predicted, 1 of them {MEMORY}.\n")


def test_predict__disagg_pools_keep_floor_below_interval(tmp_path: Path) -> None:
    found = predicted(tmp_path, "qwen2.5-0.5b,a10,6,,trt-llm,,,disagg,1024,256,,384")
    for time in (found.ttft, found.tpot):
        assert time is not None
        assert time.floor <= time.low <= time.expected <= time.high
