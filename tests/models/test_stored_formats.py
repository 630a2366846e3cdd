"""Bytes of weights and caches by format: published sizes of GGUF files, groups of integers, side files of a config."""

from __future__ import annotations

import csv

import pytest

from headway.models.config import model
from headway.models.gguf import gguf_bytes, is_gguf
from headway.models.precision import WEIGHTS, formats
from headway.models.stored import stored_formats
from headway.models.totals import stored_bytes
from headway.models.work import work_of
from support.command import Cli
from support.paths import DATA

FILES = list(csv.DictReader((DATA / "gguf_sizes.csv").read_text().splitlines()))


@pytest.mark.parametrize("row", FILES, ids=[f"{row['model']}-{row['file']}" for row in FILES])
def test_gguf__published_size_of_the_file(row: dict[str, str]) -> None:
    """Within 0.5 % of what the repository states; the file also holds its vocabulary, some 10 MB."""
    assert float(stored_bytes(model(row["model"]), row["file"])) / 1e9 == pytest.approx(float(row["gigabytes"]), rel=0.005)


def test_gguf__ten_files_of_five_models_are_compared() -> None:
    assert len(FILES) >= 10 and len({row["model"] for row in FILES}) >= 5 and all(row["source"] for row in FILES)


def test_gguf__rows_that_a_block_does_not_divide_fall_back() -> None:
    """Rows of 896 numbers are no multiple of 256: Qwen2.5-0.5B in q4_k_m is q5_0 and q8_0 in the main.

    398 MB as published, of which some 6 MB are the vocabulary; without falling back they were 320.
    """
    assert float(stored_bytes(model("qwen2.5-0.5b"), "q4_k_m")) / 1e6 == pytest.approx(398 - 6, rel=0.005)


def test_gguf__every_name_lies_between_its_narrowest_and_widest_type() -> None:
    for name in (name for name in WEIGHTS if is_gguf(name)):
        found = gguf_bytes(work_of(model("llama-3.1-8b")), name)
        for size in (*found.blocks[0][:2], found.embedding, found.head):
            assert 50 / 256 <= size <= 34 / 32, name
        assert stored_formats(work_of(model("llama-3.1-8b")), name).head.peak == formats()[name].peak


@pytest.mark.parametrize(("name", "low", "high"), [("llama-3.1-8b", 4.90e9, 4.95e9), ("llama-3.1-70b", 42.3e9, 42.8e9)])
def test_gguf__verbs_count_embedding_and_head_as_the_file_holds_them(cli: Cli, name: str, low: float, high: float) -> None:
    (capacity,) = cli.rows(f"capacity {name} --on 8xb200-sxm --context 8k --weights q4_k_m")
    (serve,) = cli.rows(f"serve {name} --on b200-sxm --context 8k --batch 1 --weights q4_k_m")
    assert low <= capacity["weights_bytes"] <= high and low <= serve["weights_bytes_chip"] <= high


def test_gguf__embedding_by_hand_stays(cli: Cli) -> None:
    (plain,) = cli.rows("serve llama-3.1-8b --on b200-sxm --context 8k --batch 1 --weights q4_k_m")
    (wide,) = cli.rows("serve llama-3.1-8b --on b200-sxm --context 8k --batch 1 --weights q4_k_m --embedding bf16")
    more = 128256 * 4096 * ((2 - 144 / 256) + (2 - 210 / 256))
    assert wide["weights_bytes_chip"] - plain["weights_bytes_chip"] == pytest.approx(more, rel=1e-9)
