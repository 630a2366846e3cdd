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


@pytest.mark.parametrize("flags", ["--batch 0", "--context 1s", "--weights fp7", "--weights fp8,bf16", "--batch 1..2000 --context 1..2000"])
def test_capacity__wrong_input_is_one_line(cli: Cli, flags: str) -> None:
    answer = cli(f"capacity llama-3.1-8b --on 8xh100-sxm {flags}")
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer
