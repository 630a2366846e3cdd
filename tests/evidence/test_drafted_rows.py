"""Rows that state speculation: the numbers of `serve --draft`, whatever rows stand beside them; what contradicts itself is refused."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from support.command import Cli

DEEPSEEK = {"model": "deepseek-v3", "hardware": "h200-sxm", "n_chips": 8, "tp": 8, "weight_precision": "fp8"}
LLAMA = {"model": "llama-3.1-8b", "hardware": "h100-sxm", "n_chips": 1, "tp": 1}
SERVED = {"engine": "vLLM", "mode": "serving_concurrency", "isl": 2000, "osl": 500, "batch_or_concurrency": 16, "kv_precision": "bf16"}
SPECULATION = ("draft", "draft_tokens", "acceptance", "accept_length")
DRAFTED = (
    DEEPSEEK | {"draft": "mtp", "draft_tokens": 3, "acceptance": "0.9,0.8,0.7"},
    DEEPSEEK | {"draft": "mtp", "draft_tokens": 1, "acceptance": "0.85"},
    LLAMA | {"draft": "eagle", "draft_tokens": 2, "acceptance": "0.6"},
    LLAMA | {"draft": "llama-3.2-1b", "draft_tokens": 4, "acceptance": "0.7"},
    LLAMA | {"accept_length": 2.2},
)


def predicted(cli: Cli, folder: Path, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    lines = [{"id": str(at)} | SERVED | row for at, row in enumerate(rows)]
    path = folder / "rows.csv"
    with path.open("w") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for line in lines for key in line)), restval="")
        writer.writeheader()
        writer.writerows(lines)
    return list(cli.rows("predict", str(path)))


def test_drafted_rows__are_the_same_deployment_by_flags(cli: Cli, tmp_path: Path) -> None:
    for row, found in zip(DRAFTED, predicted(cli, tmp_path, *DRAFTED), strict=True):
        flags = " ".join(f"--{key.replace('_', '-')} {row[key]}" for key in SPECULATION if key in row)
        machine = f"{row['model']} --on {row['n_chips']}x{row['hardware']} --tp {row['tp']} --engine vllm --kv bf16"
        (served,) = cli.rows(f"serve {machine} --prompt 2000 --output 500 --batch 16 {flags}")
        for key, same, scale in (("tpot_ms", "tpot_s", 1e3), ("ttft_ms", "ttft_s", 1e3), ("output_tok_s_total", "tok_per_s", 1.0)):
            assert found[key] == pytest.approx(scale * served[same], rel=1e-6), (row, key)


def test_drafted_rows__stand_alone_in_a_table(cli: Cli, tmp_path: Path) -> None:
    """Rows with and without drafts in one file, twice and in any order, are those of files of their own."""
    rows = [LLAMA, *DRAFTED, LLAMA | {"batch_or_concurrency": 64}, DRAFTED[0] | {"batch_or_concurrency": 2}]
    together = predicted(cli, tmp_path, *rows, *reversed(rows))
    for at, row in enumerate(rows):
        (alone,) = predicted(cli, tmp_path, row)
        for found in (together[at], together[-1 - at]):
            for key in ("ttft_ms", "tpot_ms", "tpot_ms_lo", "tpot_ms_hi", "tpot_ms_floor", "output_tok_s_total"):
                assert found[key] == pytest.approx(alone[key], rel=1e-9), (row, key)
            assert found["flags"] == alone["flags"]


def test_drafted_rows__mean_tokens_and_acceptance_are_one_statement(cli: Cli, tmp_path: Path) -> None:
    """1 + 0.8 + 0.64 + 0.512 tokens of a step are an acceptance of 0.8 at each of three places."""
    drafts = DEEPSEEK | {"draft": "mtp", "draft_tokens": 3}
    by_share, by_length = predicted(cli, tmp_path, drafts | {"acceptance": "0.8"}, drafts | {"accept_length": 2.952})
    assert by_length["tpot_ms"] == pytest.approx(by_share["tpot_ms"], rel=1e-5)


def test_drafted_rows__without_a_method_the_models_own_head_drafts(cli: Cli, tmp_path: Path) -> None:
    counts = {"draft_tokens": 2, "accept_length": 2.0}
    heads = ((DEEPSEEK, "mtp"), (LLAMA, "eagle"))
    found = predicted(cli, tmp_path, *(row | counts | more for row, head in heads for more in ({}, {"draft": head})))
    assert [found[0]["tpot_ms"], found[2]["tpot_ms"]] == [found[1]["tpot_ms"], found[3]["tpot_ms"]]
    assert "draft not stated" in found[0]["flags"] and "draft not stated" not in (found[1]["flags"] or "")


def test_drafted_rows__none_accepted_only_costs(cli: Cli, tmp_path: Path) -> None:
    drafts = LLAMA | {"draft": "eagle", "draft_tokens": 3, "mode": "decode_step"}
    plain, none, half, most = predicted(
        cli, tmp_path, LLAMA | {"mode": "decode_step"}, *(drafts | {"acceptance": share} for share in ("0", "0.5", "0.9"))
    )
    assert none["tpot_ms"] > plain["tpot_ms"] > half["tpot_ms"] > most["tpot_ms"]
    # A step of the same drafts yields 1 token, or 1 + 0.5 + 0.25 + 0.125.
    assert none["tpot_ms"] / half["tpot_ms"] == pytest.approx(1.875, rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"draft_tokens": 2}, "draft_tokens: got '2'; wants draft beside it"),
        ({"draft": "eagle", "draft_tokens": 2, "accept_length": 3.5}, "accept_length: 3.5 tokens of a step, of 2 drafts at most 3"),
        ({"draft": "eagle", "draft_tokens": 2, "accept_length": 2, "acceptance": "0.5"}, "acceptance and accept_length: both are stated"),
        ({"draft": "eagle", "accept_length": 2}, "draft_tokens: missing"),
        ({"draft": "mtp", "draft_tokens": 1}, "draft: got 'mtp'; wants a model with layers of multi-token prediction"),
        ({"draft": "eagle", "draft_tokens": 2.5}, "draft_tokens: got '2.5'; wants a whole number"),
        ({"draft": "eagle", "draft_tokens": 2, "acceptance": "1.5"}, "acceptance: got '1.5'; wants a share from 0 to 1"),
        ({"accept_length": 0.5}, "accept_length: got '0.5'"), ({"accept_length": "nan"}, "accept_length: got 'nan'"),
    ],
)  # fmt: skip
def test_drafted_rows__contradictions_are_refused_by_column(cli: Cli, tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    good, bad = predicted(cli, tmp_path, LLAMA, LLAMA | changes)
    assert good["why"] is None and words in bad["why"] and "--" not in bad["why"] and "\n" not in bad["why"]
