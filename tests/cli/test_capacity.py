"""`headway capacity`: what fits, by hand; no legal layout holds more; wrong input."""

from __future__ import annotations

import pytest

from support.command import Cli


def test_capacity__counts_chips_batch_and_context_by_hand(cli: Cli) -> None:
    (row,) = cli.rows("capacity llama-3.1-70b --on 8xh100-sxm --batch 64 --context 8k")
    activations = 8192 * 2 * 8192 + 1024 * 128_256 * 14  # hidden states of the largest step, and logits of 1,024 sequences
    workspace = 2.252e9 + 0.3e6 * 80 * 51 * 2  # buffers of collectives, and graphs of 80 layers, 51 sizes, two kinds
    chip = 0.9 * row["memory_bytes_chip"] - activations - workspace
    weights, sequence, usable = 2 * 70_553_706_496, 327_680 * 8000, 8 * chip
    assert row["memory_bytes_chip"] == pytest.approx(79.1 * 2**30, rel=1e-3)
    assert (row["weights_bytes"], row["sequence_bytes"], row["usable_bytes"]) == (weights, sequence, pytest.approx(usable, rel=1e-12))
    load = weights + 64 * sequence
    assert row["chips_exact"] == pytest.approx(load / chip, rel=1e-12)
    assert (row["chips_needed"], row["fits"]) == (5, True)
    assert row["largest_batch"] == (usable - weights) // sequence
    assert row["largest_context"] == (usable - weights) // (64 * 327_680)
    assert row["room_bytes"] == pytest.approx(usable - load, rel=1e-12)
    assert row["read_floor_s"] == pytest.approx(load / (8 * 3.35e12), rel=1e-12)


def test_capacity__no_legal_layout_holds_more(cli: Cli) -> None:
    (row,) = cli.rows("capacity llama-3.1-70b --on 8xh100-sxm --context 8k")
    most = int(row["largest_batch"])
    (beyond,) = cli.rows(f"serve llama-3.1-70b --on 8xh100-sxm --tp 8 --batch {most + 8} --context 8k")
    assert not beyond["fits"]
    assert beyond["weights_bytes_chip"] * 8 >= row["weights_bytes"] * (1 - 1e-12)


def test_capacity__too_large_a_model_is_an_answer(cli: Cli) -> None:
    (row,) = cli.rows("capacity deepseek-v3 --on 8xh100-sxm --batch 1 --context 8k")
    assert (row["fits"], row["largest_batch"], row["largest_context"], row["room_bytes"]) == (False, 0, 0, 0)
    assert row["chips_needed"] == 10


@pytest.mark.parametrize("flags", ["--batch 0", "--context 1s", "--weights fp7", "--tp 1,2", "--batch 1..2000 --context 1..2000"])
def test_capacity__wrong_input_is_one_line(cli: Cli, flags: str) -> None:
    answer = cli(f"capacity llama-3.1-8b --on 8xh100-sxm {flags}")
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer


def test_capacity__roofline_of_the_textbook(cli: Cli) -> None:
    """Scaling Book: a step of B tokens takes the longer of 2 B N / F and bytes / BW; formats are an axis, each with its own peak."""
    rows = cli.rows("capacity llama-3.1-70b --on 8xh100-sxm --batch 1,1000 --context 1000 --weights bf16,fp8")
    assert [(row["weights"], row["batch"], row["bound"]) for row in rows] == [
        ("bf16", 1, "memory"), ("bf16", 1000, "compute"), ("fp8", 1, "memory"), ("fp8", 1000, "memory"),
    ]  # fmt: skip
    params = 80 * (8192 * (2 * 64 + 2 * 8) * 128 + 3 * 8192 * 28672) + 128256 * 8192
    for row, peak, byte in zip(rows, (989e12, 989e12, 1979e12, 1979e12), (2, 2, 1, 1), strict=True):
        read = row["weights_bytes"] + row["batch"] * 1000 * 80 * 2 * 8 * 128 * 2
        assert row["compute_s"] == pytest.approx(2 * row["batch"] * params / 8 / peak, rel=1e-3)
        assert row["memory_s"] == pytest.approx(read / 8 / 3.35e12, rel=1e-3) and row["weights_bytes"] > params * byte
        assert row["roofline_tok_per_s"] == pytest.approx(row["batch"] / max(row["compute_s"], row["memory_s"]))


def test_capacity__a_small_batch_reads_the_experts_that_it_touches(cli: Cli) -> None:
    """One token of DeepSeek-V3 reads 8 of 256 experts of 58 layers; embedding and head are in bf16."""
    one, many = cli.rows("capacity deepseek-v3 --on gb200-nvl72 --batch 1,4k --context 1k")
    assert one["memory_s"] * 72 * 8e12 == pytest.approx(671e9 + 2 * 129280 * 7168 - 58 * 248 * 3 * 7168 * 2048, rel=0.02)
    assert many["memory_s"] == pytest.approx(many["read_floor_s"], rel=1e-6)
