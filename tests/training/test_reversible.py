"""`train --recompute reversible`: no activation kept per layer, one forward more, as published for RevNets and Reformers."""

from __future__ import annotations

import pytest

from support.command import Cli

LAYOUT = "--on 512xh100-sxm --seq 8192 --global-batch 4Mi --tp 8 --cp 1 --pp 1 --dp 64 --zero 1 --micro-batch 1 --vpp 1 --ep 1"


def best(cli: Cli, model: str, mode: str, flags: str = LAYOUT) -> dict:
    return cli.rows(f"train {model} {flags} --recompute {mode}")[0]


def test_reversible__activations_do_not_grow_with_depth(cli: Cli) -> None:
    """By hand: two streams of 8192 numbers and one layer at hand, 8,192 tokens, 8 tensor-parallel ways with sequence parallelism."""
    rows = {mode: best(cli, "llama-3.1-70b", mode) for mode in ("none", "full", "reversible")}
    per_layer = rows["none"]["activations_bytes_chip"] / 80
    streams = 2 * 2 * 8192 * 8192 / 8
    assert rows["reversible"]["activations_bytes_chip"] == pytest.approx(per_layer + streams, rel=1e-9)
    assert rows["full"]["activations_bytes_chip"] == pytest.approx(per_layer + 80 * streams / 2, rel=1e-9)  # a checkpoint a layer


def test_reversible__costs_the_forward_that_checkpoints_cost(cli: Cli) -> None:
    none, full, reversible = (best(cli, "llama-3.1-70b", mode) for mode in ("none", "full", "reversible"))
    assert reversible["step_s"] == full["step_s"] > none["step_s"]
    assert reversible["compute_s"] / none["compute_s"] == pytest.approx(4 / 3, rel=1e-9)  # 6ND becomes 8ND
    assert reversible["mfu"] / none["mfu"] == pytest.approx(none["step_s"] / reversible["step_s"], rel=1e-9)  # model FLOP are the same


def test_reversible__is_never_searched_and_is_named_another_network(cli: Cli) -> None:
    document = cli.json("train llama-3.1-8b --on 8xh100-sxm --seq 8k --global-batch 1M --recompute none,reversible")
    assert any(note.startswith("reversible: a network whose layers are couplings") for note in document["notes"])
    rows = cli.rows("train llama-3.1-8b --on 8xh100-sxm --seq 8k --global-batch 1M")
    assert {row["recompute"] for row in rows} <= {"none", "selective", "full"}


def test_reversible__sends_both_streams_between_stages(cli: Cli) -> None:
    flags = "--on 512xh100-sxm --seq 8192 --global-batch 4Mi --tp 8 --cp 1 --pp 4 --dp 16 --zero 1 --micro-batch 1 --vpp 1 --ep 1"
    full, reversible = (best(cli, "llama-3.1-70b", mode, flags) for mode in ("full", "reversible"))
    assert full["bubble_s"] < reversible["bubble_s"] < full["bubble_s"] * 1.1
