"""Every number of a simulated service may be a list, an answer's row each; what is no number of it says why in one line."""

from __future__ import annotations

import pytest

from support.command import Cli

SIM = "sim llama-3.1-8b --on 8xh200-sxm --prompt 500 --output 50 --requests 30 --loop plain --rate 2 --seed 3"
LISTS = {
    "--token-budget": "512,2048,8192", "--max-seqs": "16,64,256", "--tp": "1,2,4", "--kv": "bf16,fp8", "--engine": "vllm,sglang",
    "--t0": "1us,5us", "--hbm-utilization": "0.8,0.9", "--replicas": "1,2,4", "--policy": "chunked,prefill-first",
}  # fmt: skip


@pytest.mark.parametrize("flag", LISTS)
def test_sim__a_list_gives_the_rows_of_its_single_values(cli: Cli, flag: str) -> None:
    values = LISTS[flag].split(",")
    rows = cli.rows(f"{SIM} {flag} {LISTS[flag]}")
    assert len(rows) == len(values)
    for value, row in zip(values, rows, strict=True):
        (single,) = cli.rows(f"{SIM} {flag} {value}")
        assert {key: row[key] for key in single if key not in ("wall_s", "compile_s")} == {
            key: number for key, number in single.items() if key not in ("wall_s", "compile_s")
        }


@pytest.mark.parametrize("words", [
    "serve llama-3.1-8b --on h100 --context 4k --kv-share 200%", "serve llama-3.1-8b --on h100 --context 4k --batch 1..99999999999",
    "predict nowhere.csv -o json", "score nowhere.json -o json", "serve llama-3.1-8b --on h100 --context 4k --batch 50%",
])  # fmt: skip
def test_refusals__are_one_line_whatever_the_format(cli: Cli, words: str) -> None:
    answer = cli(words)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
