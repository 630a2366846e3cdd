"""What hides collectives, uneven expert load, copies of experts: each an explicit choice with a limit that it must reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.cli.main import main
from headway.core.errors import BadFile, BadValue, IllegalCombination, IllegalLayout
from headway.core.schema import defaults
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import read_expert_load
from headway.serving.serve import serve
from support.command import Cli

WIDE = Layout(dp=64, ep=64)


def row(layout: Layout = WIDE, batch: int = 8192, context: int = 4000, **assumed: Any) -> dict[str, Any]:
    return serve("deepseek-v3", "gb200-nvl72", layout, batch=batch, context=context, assumptions=defaults(Assumptions, assumed)).row(0)


# -- what overlaps ----------------------------------------------------------------------------------------------------------------


IDEAL = dict.fromkeys(("eff_compute", "eff_memory", "eff_network", "eff_in_switch", "eff_exchange", "eff_out"), 1.0) | dict.fromkeys(
    ("t0", "alpha", "alpha_host", "alpha_out", "alpha_exchange", "alpha_exchange_out"), 0.0
)


def test_overlap_full__is_the_roofline_only_at_datasheet_rates_and_says_so(cli: Cli) -> None:
    ideal, flat = row(overlap="full", **IDEAL), row(overlap="full")
    assert ideal["step_s"] == pytest.approx(ideal["step_floor_s"], rel=1e-12)
    assert flat["step_s"] > 1.1 * flat["step_floor_s"] == pytest.approx(1.1 * ideal["step_floor_s"], rel=1e-12)
    notes = cli.json("serve", "deepseek-v3", "--on", "gb200-nvl72", "--ep", "72", "--batch", "72", "--overlap", "full")["notes"]
    assert any(note.endswith("; the roofline is the floor beside it") for note in notes)


# -- two batches ----------------------------------------------------------------------------------------------------------------


def test_two_batch__hides_the_shorter_of_work_and_collectives() -> None:
    """Against the same law by hand: two halves, the slower side of each, and one layer's share of the other."""
    both, half = row(communication="two-batch"), row(batch=4096)
    network = half["network_s"]
    work = half["step_s"] - network
    assert both["step_s"] == pytest.approx(2 * max(work, network) + min(work, network) / 61, rel=1e-12)


def test_two_batch__slower_when_weights_bind_faster_when_network_binds() -> None:
    assert row(batch=128, communication="two-batch")["step_s"] > row(batch=128)["step_s"]
    slow = {"eff_exchange": 0.05}
    assert row(communication="two-batch", **slow)["step_s"] < row(**slow)["step_s"]


def test_two_batch__leaves_step_floor_unchanged() -> None:
    assert row(communication="two-batch")["step_floor_s"] == row()["step_floor_s"]


@pytest.mark.parametrize(("layout", "batch"), [(WIDE, 64), (Layout(), 64), (Layout(tp=8), 1)])
def test_two_batch__refused_where_nothing_can_be_halved_or_hidden(layout: Layout, batch: int) -> None:
    with pytest.raises(IllegalCombination, match=r"two-batch.*at least 2 sequences on each rank"):
        row(layout, batch, communication="two-batch")


def test_two_batch__illegal_members_of_a_list_are_dropped_and_counted(cli: Cli) -> None:
    serve_one = ("serve", "llama-3.1-8b", "--on", "8xh200", "--context", "4k", "--communication")
    answer = cli(*serve_one, "two-batch", "--tp", "1,2", "--batch", "1,2,4", "-o", "json")
    assert [(point["tp"], point["batch"]) for point in answer.rows] == [(2, 2), (2, 4)]
    assert any("two-batch: dropped 4 of 6 points" in note for note in answer.notes)
    both = cli(*serve_one, "two-batch,exposed", "--batch", "1", "-o", "json")
    assert [point["communication"] for point in both.rows] == ["exposed"]
    assert any("dropped 1 of 2 combinations" in note and "two-batch" in note for note in both.notes)
    alone = cli(*serve_one, "two-batch", "--batch", "1")
    assert alone.status == 2 and alone.err.count("\n") == 1 and "2 sequences on each rank" in alone.err


def test_two_batch__sim_and_plan_refuse_one_chip(cli: Cli) -> None:
    for verb in ("plan", "sim"):
        load = ("--prompt", "500", "--output", "10", "--communication", "two-batch")
        traffic = ("--rate", "1", "--requests", "10") if verb == "sim" else ()
        answer = cli(verb, "llama-3.1-8b", "--on", "h200", "--tp", "1", *load, *traffic)
        assert answer.status == 2 and answer.err.count("\n") == 1 and "several chips" in answer.err


def test_two_batch__plan_fills_every_rank_twice(cli: Cli) -> None:
    answer = cli(
        "plan", "llama-3.1-8b", "--on", "8xh200", "--prompt", "2k", "--output", "200", "--communication", "two-batch", "-o", "json"
    )
    rows = [point for point in answer.rows if point["kind"] in ("best", "frontier")]
    assert rows and all(point["batch"] >= 2 * point["dp"] * point["pp"] and point["tp"] * point["dp"] * point["pp"] > 1 for point in rows)


# -- formats --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "stated", "able"),
    [("h200", ("--compute", "fp4", "--weights", "bf16"), "fp8"), ("8xa100-sxm-80", ("--compute", "fp8"), "int8")],
)
@pytest.mark.parametrize("verb", ["serve", "plan", "sim"])
def test_compute__stated_format_without_a_peak_is_refused(cli: Cli, verb: str, machine: str, stated: tuple[str, ...], able: str) -> None:
    load = ("--prompt", "500", "--output", "10", *(("--rate", "1", "--requests", "10") if verb == "sim" else ()))
    answer = cli(verb, "llama-3.1-8b", "--on", machine, *load, *stated)
    assert answer.status == 2 and answer.err.count("\n") == 1 and f"'{stated[1]}'" in answer.err and able in answer.err


def test_compute__follows_the_weights_and_falls_back_with_a_note() -> None:
    table = serve("llama-3.1-8b", "a100-sxm-80", batch=1, context=4000, precision=Precision(weights="fp8"))
    assert table.row(0)["compute"] == "bf16"
    assert any("fp8 weights are multiplied in bf16" in note for note in table.notes)


@pytest.mark.parametrize("verb", ["serve", "plan"])
def test_compute__formats_of_a_list_that_no_chip_has_are_dropped_and_counted(cli: Cli, verb: str) -> None:
    load = ("--prompt", "500", "--output", "100", "-o", "json")
    answer = cli(verb, "llama-3.1-8b", "--on", "a100-sxm-80", "--compute", "bf16,fp8", *load)
    assert {point["compute"] for point in answer.rows} == {"bf16"}
    assert any("dropped 1 of 2" in note and "'fp8'" in note for note in answer.notes)
    machines = cli(verb, "llama-3.1-8b", "--on", "a100-sxm-80,h100", "--compute", "fp8", *load)
    assert {point["system"] for point in machines.rows} == {"h100-sxm"}
    assert any("dropped 1 of 2" in note and "a100" in note for note in machines.notes)


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


# -- recurrent state --------------------------------------------------------------------------------------------------------------


def test_serve__recurrent_state_has_the_bytes_that_the_config_names() -> None:
    """Qwen3.5-27B by hand: 48 layers of 48 x 128 x 128 elements and a convolution of 3 x 10,240, in float32; a user may say otherwise."""
    elements = 48 * (48 * 128 * 128 + 3 * 10240)
    named, two, four = (
        serve("qwen3.5-27b", "h200-sxm", batch=16, context=4000, assumptions=Assumptions(state_bytes=size)).row(0) for size in (None, 2, 4)
    )
    assert named["kv_bytes_chip"] - two["kv_bytes_chip"] == pytest.approx(16 * elements * 2)
    assert (named["kv_bytes_chip"], named["step_s"]) == (four["kv_bytes_chip"], four["step_s"])
    assert named["step_s"] > two["step_s"]
