"""What hides collectives, uneven expert load, copies of experts: each an explicit choice with a limit that it must reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.cli.main import main
from headway.core.errors import BadFile, BadValue, IllegalLayout
from headway.core.schema import defaults
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import read_expert_load
from headway.serving.serve import serve

WIDE = Layout(dp=64, ep=64)


def row(layout: Layout = WIDE, batch: int = 8192, context: int = 4000, **assumed: Any) -> dict[str, Any]:
    return serve("deepseek-v3", "gb200-nvl72", layout, batch=batch, context=context, assumptions=defaults(Assumptions, assumed)).row(0)


# -- two batches ----------------------------------------------------------------------------------------------------------------


def test_two_batch__hides_the_shorter_of_work_and_collectives() -> None:
    """Against the same law by hand: two halves, the slower side of each, and one layer's share of the other."""
    both, half = row(communication="two-batch"), row(batch=4096)
    network = half["network_s"]
    work = half["step_s"] - network
    assert both["step_s"] == pytest.approx(2 * max(work, network) + min(work, network) / 61, rel=1e-12)


def test_two_batch__slower_when_weights_bind_faster_when_network_binds() -> None:
    assert row(batch=64, communication="two-batch")["step_s"] > row(batch=64)["step_s"]
    slow = {"eff_exchange": 0.05}
    assert row(communication="two-batch", **slow)["step_s"] < row(**slow)["step_s"]


def test_two_batch__leaves_step_floor_unchanged() -> None:
    assert row(communication="two-batch")["step_floor_s"] == row()["step_floor_s"]


# -- expert load ----------------------------------------------------------------------------------------------------------------


def test_imbalance__slows_compute_and_leaves_the_floor() -> None:
    even, uneven = row(imbalance=1), row(imbalance=1.5)
    assert uneven["compute_s"] > even["compute_s"]
    assert uneven["step_floor_s"] == even["step_floor_s"]


def test_expert_load__gives_the_imbalance_of_the_layout(tmp_path: Path) -> None:
    """One expert of 256 twice as busy: its chip of four experts does 5/4 of four, of a mean of 257/256."""
    path = tmp_path / "load.json"
    path.write_text(json.dumps([2.0] + [1.0] * 255))
    measured = row(expert_load=str(path))
    assert measured["compute_s"] == pytest.approx(row(imbalance=1.25 / (257 / 256))["compute_s"], rel=1e-12)


@pytest.mark.parametrize("text", ["", "[]", "[1, -1]", "[0, 0]", '["a"]', "{}", "[NaN]", "1\ntwo\n", "[" * 100_000])
def test_expert_load__malformed_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "load.json"
    path.write_text(text)
    with pytest.raises(BadFile):
        read_expert_load(str(path))


def test_expert_load__file_of_another_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "load.txt"
    path.write_text("1\n" * 128)
    with pytest.raises(BadValue, match="256 experts"):
        row(expert_load=str(path))
    command = ["serve", "deepseek-v3", "--on", "gb200-nvl72", "--batch", "1", "--context", "1k", "--expert-load", str(path)]
    assert main(command) == 2
    assert capsys.readouterr().err.count("\n") == 1


# -- copies of experts ----------------------------------------------------------------------------------------------------------


def test_redundant_experts__even_out_uneven_placement() -> None:
    """Lecture MOE-03: 256 over 72 chips put 4 on the fullest and leave others short; with 32 copies every chip has 4."""
    short, full = (row(Layout(dp=72, ep=72, redundant=copies), batch=9216) for copies in (0, 32))
    assert full["weights_bytes_chip"] == short["weights_bytes_chip"]
    assert full["compute_s"] < short["compute_s"]


def test_redundant_experts__take_memory_and_need_a_moe() -> None:
    plain, copied = row(WIDE), row(Layout(dp=64, ep=64, redundant=64))
    assert copied["weights_bytes_chip"] > plain["weights_bytes_chip"]
    with pytest.raises(IllegalLayout, match="redundant experts"):
        serve("llama-3.1-70b", "8xh100-sxm", Layout(tp=8, redundant=8), batch=1, context=1000)
