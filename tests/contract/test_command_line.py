"""The command line from inside: every verb, every format, what is refused, and that one question has one answer on every face."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import QUESTIONS as VERBS
from headway import Layout, serve
from headway.core.formula import replay
from headway.core.question import question_of
from headway.core.schema import fields
from headway.performance.achieved import FITTED
from headway.performance.assumptions import Assumptions
from headway.serving.serve import SERVE
from support.command import Cli, changed, unhelped
from support.paths import ROOT

POINT = ["serve", "llama-3.1-70b", "--on", "8xh100-sxm", "--tp", "8", "--batch", "64"]
STEP = [*POINT, "--context", "8k"]
REQUEST = [*POINT, "--prompt", "1k", "--output", "1k"]
PLAN = ["plan", "llama-3.1-70b", "--on", "8xh100-sxm", "--prompt", "1k", "--output", "1k"]
EVERY = [STEP, REQUEST, PLAN, ["show", "model", "gpt-oss-20b"], ["show", "chip", "h100"], ["show", "system", "gb200-nvl72"],
         ["list", "models"], ["list", "chips"], ["list", "systems"], ["list", "tiers"], ["list", "laws"], ["list", "sources"],
         ["trend", "chips"], ["lecture"],
         ["lecture", "RB-10"], ["solve", *STEP[:-1], "8k", "--for", "batch", "--so-that", "step_s=20ms"]]  # fmt: skip


def refused(cli: Cli, *argv: Any) -> str:
    status, out, err = cli(*argv)
    assert status == 2, (argv, out[:200])
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("headway: ")
    assert len(err) < 600
    return err


# -- every verb -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", EVERY, ids=lambda command: " ".join(command[:3]))
def test_verbs__every_verb_in_every_format(cli: Cli, command: list[str]) -> None:
    found = cli.json(*command)
    assert set(found) == {"headway", "command", "answer", "binds", "helps", "launch", "checked", "columns", "rows", "notes"}
    assert found["command"] == ["headway", *command, "-o", "json"]
    assert found["rows"]
    for row in found["rows"]:
        assert list(row) == list(found["columns"])
    for key, about in found["columns"].items():
        assert set(about) == {"unit", "doc"}, key
    status, out, _ = cli(*command, "-o", "csv")
    table = list(csv.DictReader(io.StringIO(out)))
    assert status == 0
    assert len(table) == len(found["rows"])
    assert list(table[0]) == list(found["columns"])
    for how in ("text", "md"):
        status, out, err = cli(*command, "-o", how)
        assert (status, err) == (0, "")
        assert len(out.splitlines()) > 2
        assert "nan" not in re.findall(r"\w+", out.lower())


@pytest.mark.parametrize("command", [STEP, REQUEST, PLAN], ids=["step", "request", "plan"])
def test_columns__every_serve_column_has_a_sentence(cli: Cli, command: list[str]) -> None:
    found = cli.json(*command)
    assert SERVE.keys() <= found["columns"].keys()
    assert all(about["doc"] for about in found["columns"].values())


def test_csv__numbers_equal_json(cli: Cli) -> None:
    want = cli.rows(*REQUEST)[0]
    got = next(csv.DictReader(io.StringIO(cli(*REQUEST, "-o", "csv")[1])))
    for key, value in want.items():
        if isinstance(value, float):
            assert float(got[key]) == value
    assert got["fits"] == "true"
    assert got["why"] == ""


def test_parquet__rows_and_units(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    with path.open("wb") as out:
        subprocess.run([sys.executable, "-m", "headway", *STEP, "-o", "parquet"], stdout=out, check=True, env=environment())
    table = parquet.read_table(path)
    assert table.num_rows == 1
    assert table.schema.field("step_s").metadata[b"unit"] == b"s"
    assert 0.001 < table["step_s"][0].as_py() < 1


def test_serve__library_equals_command_line(cli: Cli) -> None:
    batches = [1, 8, 64]
    command = ["serve", "llama-3.1-70b", "--on", "8xh100-sxm", "--tp", "8,4", "--batch", "1..64*8", "--context", "1k,8k"]
    layouts = [Layout(tp=8), Layout(tp=4)]
    want = serve("llama-3.1-70b", "8xh100-sxm", layouts, batch=batches, context=[1000, 8000]).rows()
    assert cli.rows(*command) == want


def test_text__answers_first_and_defines_its_terms(cli: Cli) -> None:
    for command in (REQUEST, PLAN):
        out = cli(*command)[1]
        first = out.splitlines()[0]
        cost = "per Mtok" if command is REQUEST else "per 1,000 requests"  # a plan names the cost that it made least
        for word in ("llama-3.1-70b on 8xh100-sxm", "TTFT", "TPOT", cost):
            assert word in first, word
        out = cli(*command, "--verbose")[1]
        assert "TPOT floor" in out and "TPOT 90 %" in out
        assert "bench serve" in out
        assert "\nBinds:   " in out
        assert "\nHelps:   1. " in out
        assert f"note: {FITTED}" in out and "unfitted" not in out
        assert "note: unfitted: " in cli(*command, "--overlap", "full")[1]


def test_plan__lists_of_machines_cheapest_first(cli: Cli) -> None:
    found = cli.rows("plan", "llama-3.1-8b", "--on", "h100-sxm,h200,gb300", "--prompt", "1k", "--output", "1k",
                     "--price-metric", "rental_on_demand")  # fmt: skip
    best = [row for row in found if row["kind"] == "best"]
    assert {row["system"] for row in best} == {"h100-sxm", "h200-sxm", "gb300"}
    costs = [None if row["usd_per_mtok_in"] is None else row["usd_per_mtok_in"] + row["usd_per_mtok_out"] for row in best]
    priced = [cost for cost in costs if cost is not None]
    assert len(priced) == 2
    assert costs == [*sorted(priced), None]  # what has no price comes last


# -- the tail ---------------------------------------------------------------------------------------------------------------------


def test_where__filters_and_sorts_rows(cli: Cli) -> None:
    grid = ["serve", "llama-3.1-70b", "--on", "8xh100-sxm", "--tp", "8", "--batch", "1..512*2", "--context", "8k"]
    every = cli.rows(*grid)
    found = cli.json(*grid, "--where", "step_s <= 20ms and fits", "--sort", "-decode_tok_per_s")
    want = sorted((row for row in every if row["step_s"] <= 0.02 and row["fits"]), key=lambda row: -row["decode_tok_per_s"])
    assert found["rows"] == want
    assert 0 < len(want) < len(every)
    assert f"--where kept {len(want)} of {len(every)} rows" in found["notes"]


def test_explain__tree_of_the_first_row_after_where_and_sort(cli: Cli) -> None:
    grid = ["serve", "llama-3.1-70b", "--on", "8xh100-sxm", "--tp", "8", "--batch", "1..64*2", "--context", "8k"]
    found = cli.json(*grid, "--where", "batch > 4", "--sort", "-step_s", "--explain", "step_s", "--explain", "weights_bytes_chip")
    assert found["rows"][0]["batch"] == 64
    for key in ("step_s", "weights_bytes_chip"):
        tree = found["explain"][key]
        assert tree["value"] == pytest.approx(found["rows"][0][key], rel=1e-12)
        assert {"name", "value", "unit", "equation", "source", "inputs"} <= set(tree)
    text = cli(*STEP, "--explain", "step_s", "--depth", "all")[1]
    kinds = ("datasheet", "config.json", "given by the user", "data/efficiency.toml", "default")
    for word in ("h100_sxm.hbm_bw", *kinds, "(taken)", "(as above)"):
        assert word in text, word


def test_plan__explains_its_best_row() -> None:
    from headway.core.quantity import user_input as typed
    from headway.performance.workload import Load
    from headway.serving.plan.plan import plan

    load = Load(prompt=typed(1000, "prompt", "token"), output=typed(1000, "output", "token"))
    best = plan("llama-3.1-8b", "h100-sxm", load)
    tree = best.explain("tpot_s")
    assert float(tree) == pytest.approx(best.rows()[0]["tpot_s"], rel=1e-12)
    assert float(replay(tree)) == pytest.approx(float(tree), rel=1e-12)


def test_set__edits_a_fact_and_a_list_is_an_axis(cli: Cli) -> None:
    plain = cli.rows(*STEP)[0]
    found = cli.rows(*STEP, "--set", "chip.hbm_bw=3.35TB/s,6.7TB/s")
    assert found[0]["step_s"] == pytest.approx(plain["step_s"], rel=1e-3)
    assert [row["chip.hbm_bw"] for row in found] == [3.35e12, 6.7e12]
    assert found[1]["weights_s"] == pytest.approx(found[0]["weights_s"] / 2)
    twice = cli.rows(*STEP, "--eff-memory", "0.4,0.8")
    assert twice[0]["weights_s"] == pytest.approx(2 * twice[1]["weights_s"])
    assert [row["eff_memory"] for row in twice] == [0.4, 0.8]


def test_price__per_hour_scales_usd_per_mtok(cli: Cli) -> None:
    one, two = (cli.rows(*REQUEST, "--set", f"chip.price=${price}/h")[0]["usd_per_mtok_out"] for price in (1, 2))
    assert two == pytest.approx(2 * one)


def test_attention__override_lowers_kv_and_adds_a_note(cli: Cli) -> None:
    plain = cli.rows(*POINT, "--context", "64k")[0]
    found = cli.json(*POINT, "--context", "64k", "--attention", "window:4k")
    assert found["rows"][0]["kv_s"] < plain["kv_s"] / 10
    assert any("quality not modelled" in note for note in found["notes"])


def test_catalog__user_folder_adds_a_chip(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "chips").mkdir()
    facts = 'hbm = "96 GB"\nhbm_bw = "5 TB/s"\npeak_bf16 = "1000 TFLOPS"\nscale_up_domain = "8"\nscale_up_bw = "400 GB/s"\n'
    (tmp_path / "chips" / "dream1.toml").write_text(f'vendor = "me"\ntopology = "switch"\n[facts]\n{facts}')
    command = ["serve", "llama-3.1-8b", "--on", "dream-1".replace("-", ""), "--context", "1k", "--catalog", tmp_path]
    found = cli.rows(*command, "--eff-memory", "0.8")
    assert found[0]["system"] == "dream1"
    assert found[0]["weights_s"] == pytest.approx(found[0]["weights_bytes_chip"] / 5e12 / 0.8, rel=0.1)
    assert found[0]["usd_per_mtok_out"] is None


# -- solve ------------------------------------------------------------------------------------------------------------------------


def test_solve__crossing_and_its_whole_neighbours(cli: Cli) -> None:
    found = cli.rows("solve", *REQUEST, "--for", "batch", "--so-that", "tpot_s=20ms")
    marks = {row["is"]: row for row in found}
    assert set(marks) == {"below", "crossing", "above"}
    assert marks["crossing"]["tpot_s"] == pytest.approx(0.02, rel=1e-9)
    assert marks["above"]["solution"] == marks["below"]["solution"] + 1
    assert marks["below"]["solution"] < marks["crossing"]["solution"] < marks["above"]["solution"]
    assert marks["below"]["tpot_s"] < 0.02 < marks["above"]["tpot_s"]
    check = cli.rows(*POINT[:-1], int(marks["above"]["solution"]), "--prompt", "1k", "--output", "1k")[0]
    assert check["tpot_s"] == marks["above"]["tpot_s"]


def test_solve__two_outputs_equal(cli: Cli) -> None:
    found = cli.rows("solve", *STEP, "--for", "context", "--so-that", "compute_s = kv_s")
    crossing = next(row for row in found if row["is"] == "crossing")
    assert crossing["compute_s"] == pytest.approx(crossing["kv_s"], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sought", "wanted"),
    [("chip.hbm_bw", "step_s=12ms"), ("eff_memory", "step_s=25ms"), ("t0", "overhead_s=1ms"), ("chip.peak_bf16", "compute_s=weights_s"),
     ("fixed", "overhead_s=2ms"), ("alpha", "network_s=5ms"), ("eff_in_switch", "network_s=1.8ms"), ("eff_compute", "compute_s=weights_s")],
)  # fmt: skip
@pytest.mark.parametrize("overlap", ["fitted", "operators"])
def test_solve__crossing_for_facts_and_assumptions(cli: Cli, sought: str, wanted: str, overlap: str) -> None:
    engine = ("--engine", "none")  # whose own work none of these inputs makes less
    found = cli.rows("solve", *STEP, "--overlap", overlap, *engine, "--for", sought, "--so-that", wanted)
    left, right = wanted.split("=")
    crossing = next(row for row in found if row["is"] == "crossing")
    target = crossing[right] if right in crossing else float(right.removesuffix("ms")) / 1000
    assert crossing[left] == pytest.approx(target, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sought", sorted(key for key, (q, default) in fields(Assumptions).items() if q.is_number and not isinstance(default, str))
)
def test_solve__answers_for_every_numeric_assumption(cli: Cli, sought: str) -> None:
    """Those that are fitted unless given have no value to start from."""
    vision = ["serve", "qwen3-vl-8b", "--on", "h100", "--batch", "4", "--prompt", "4k", "--output", "200"]
    request = vision if sought == "images" else [*REQUEST, "--draft", "eagle"] if sought == "draft_tokens" else REQUEST
    found = cli.rows("solve", *request, "--for", sought, "--so-that", "tpot_s=15ms")
    whole = ("below", "above") if fields(Assumptions)[sought][0].integer else ()
    assert found and all(row["is"] in ("crossing", "closest", *whole) for row in found)


def test_solve__legal_neighbours_for_a_layout(cli: Cli) -> None:
    command = ["serve", "llama-3.1-70b", "--on", "8xh100-sxm", "--batch", "1", "--context", "1k"]
    found = cli.rows("solve", *command, "--for", "tp", "--so-that", "step_s=20ms")
    assert [(row["is"], row["solution"]) for row in found] == [("below", 2), ("above", 4)]
    assert found[0]["step_s"] > 0.02 > found[1]["step_s"]


def test_solve__bisection_over_a_count(cli: Cli) -> None:
    base = cli.rows(*REQUEST)[0]["usd_per_mtok_out"]
    found = cli.rows("solve", *REQUEST, "--for", "system.chips", "--so-that", f"usd_per_mtok_out={base * 100.3:.6f}")
    # 8 chips cost `base` and the idle ones are paid for, so that 802.4 chips cost 100.3 times as much
    assert [(row["is"], row["solution"]) for row in found] == [("below", 802), ("above", 803)]


def test_solve__closest_value_without_a_crossing(cli: Cli) -> None:
    command = ["solve", *STEP, "--for", "batch", "--so-that", "step_s=1ms"]
    status, out, _ = cli(*command)
    assert status == 0
    assert "no crossing between batch = 1 and 1000000: step stays above 1ms" in out
    found = cli.rows(*command)
    assert [(row["is"], row["solution"]) for row in found] == [("closest", 1.0)]


def test_solve__every_crossing() -> None:
    import numpy as np

    from headway.core.table import Axis, Table
    from headway.serving.solve import SolveInput, condition, solve

    def at(values: Any) -> Table:
        x = np.asarray(values, dtype=float)
        base = dict.fromkeys(SERVE, 1.0) | {"fits": True, "why": "", "batch": x, "step_s": 2 + np.sin(np.log(x))}
        return Table((Axis("batch", values),), base)

    found = solve(at, SolveInput(name="batch", low=1.5, high=1000, broadcasts=True), condition("step_s=2s"))
    assert found.table["solution"].tolist() == pytest.approx([math.exp(math.pi), math.exp(2 * math.pi)], rel=1e-9)


# -- pictures ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("html", b"<!DOCTYPE html>")])
def test_plot__writes_png_svg_and_html(cli: Cli, tmp_path: Path, suffix: str, start: bytes) -> None:
    pytest.importorskip("vl_convert")
    path = tmp_path / f"figure.{suffix}"
    assert cli(*PLAN, "--plot", path)[0] == 0
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize(
    "command",
    [
        STEP, [*STEP[:-3], "1,64", "--context", "1k,8k"], [*STEP, "--set", "chip.hbm_bw=1TB/s..10TB/s*2"], ["trend", "chips"],
        ["solve", *STEP, "--for", "batch", "--so-that", "compute_s=kv_s"], ["solve", *STEP, "--for", "t0", "--so-that", "step_s=20ms"],
        [*PLAN, "--tpot", "10ms..50ms*2"],
    ],
)  # fmt: skip
def test_plot__every_figure_renders(command: list[str], tmp_path: Path, cli: Cli) -> None:
    pytest.importorskip("vl_convert")
    path = tmp_path / "figure.svg"
    assert cli(*command, "--plot", path)[0] == 0
    drawn = path.read_text()
    assert drawn.count("<path") > 8 and drawn.count("<text") > 10
    assert "NaN" not in drawn
    assert "undefined" not in drawn


def test_curves__knee_where_compute_equals_weights_plus_kv() -> None:
    """At peak rates: the bold line is the largest, starts at the weights, and bends where compute = weights + KV."""
    import numpy as np

    from headway import model, system
    from headway.core.quantity import user_input as typed
    from headway.core.schema import defaults
    from headway.models.precision import Precision
    from headway.serving import curves

    found = curves.curves(
        model("llama-3.1-70b"), system("8xh100-sxm"), Layout(tp=8), typed(500, "context", "token"),
        Precision(), defaults(Assumptions),
    )  # fmt: skip
    memory = found.times["weights"] + found.times["KV cache"]
    largest = np.maximum(np.maximum(found.times["compute"], memory), found.times["network"])
    assert np.allclose(found.times["floor"], largest, rtol=1e-12)
    assert (found.times["expected"] > found.times["floor"]).all()
    slope = [(found.times[name][-1] - found.times[name][0]) / (found.batch[-1] - 1) for name in ("compute", "KV cache")]
    assert found.knee == pytest.approx(found.times["weights"][0] / (slope[0] - slope[1]), rel=1e-3)
    assert found.costs is not None
    assert found.cost_floor is not None
    assert found.cost_floor <= found.costs["floor"].min() * (1 + 1e-9)


# -- wrong input ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (["--tp", "3"], "divisors"), (["--nope", "3"], "--nope"), (["--bathc", "3"], "--batch"), (["--ba", "3"], "--batch"),
        (["--batch", "-4"], "--batch"), (["--batch", "nan"], "--batch"), (["--batch", "0"], "--batch"), (["--batch", "2.5"], "whole"),
        (["--batch", "5..1"], "range"), (["--context", "3GB"], "token"), (["--context", "8k", "--prompt", "1k"], "not both"),
        (["--weights", "fp3"], "fp8"), (["--eff-memory", "1.5"], "at most 1"), (["--overlap", "some"], "operators"),
        (["--price-metric", "love"], "rental_3yr"), (["-o", "yaml"], "json"), (["--where", "step_s < 3GB"], "20ms"),
        (["--where", "tpot < 2"], "tpot_s"), (["--sort", "stepp_s"], "step_s"), (["--explain", "stepp_s"], "step_s"),
        (["--explain", "bound"], "numeric"), (["--set", "chip.hbm_b=3"], "chip.hbm_bw"), (["--set", "chip.hbm_bw"], "KEY=VALUE"),
        (["--set", "chip.hbm_bw=3GB"], "TB/s"), (["--plot", "x.pdf"], ".png"), (["--plot", "/no/such/folder/x.png"], "folder"),
        (["--catalog", "/no/such/folder"], "folder"), (["extra"], "extra"), (["--tp"], "--tp"), (["--attention", "cosy"], "window"),
        (["--kv-share", "0"], "--kv-share"), (["--on", "8xh1000"], "h100"), (["--on", "0xh100"], "0"), (["--on", ""], "--on"),
        (["--on", "h100,"], "--on"), (["--batch", "1..1e9"], "1000000"), (["--ep", "2"], "routed"),
    ],
)  # fmt: skip
def test_flags__wrong_value_is_one_line_with_what_would_work(cli: Cli, change: list[str], says: str) -> None:
    assert says in refused(cli, *changed(STEP, *change))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["serv"], "serve"), (["serve"], "required"), (["serve", "lama-3.1-70b", *STEP[2:]], "llama-3.1-70b"),
        ([*POINT, "--prompt", "1k"], "--output"),
        (["show", "modle", "x"], "model"), (["show", "chip", "h1000"], "h100"), (["list", "chip"], "chips"), (["trend", "model"], "models"),
        (["lecture", "RB-1000"], "RB"), (PLAN[:-2], "--output"), ([*PLAN, "--ttft", "-1s"], "--ttft"), ([*PLAN, "--ttft", "0"], "--ttft"),
        ([*PLAN, "--objective", "love"], "throughput"), ([*PLAN, "--current", "tp=3 batch=1"], "divisors"),
        ([*PLAN, "--current", "batch"], "KEY=VALUE"), (["solve", "list", *STEP[1:], "--for", "batch", "--so-that", "step_s=1"], "serve"),
        (["solve", *STEP, "--for", "bath", "--so-that", "step_s=1ms"], "batch"),
        (["solve", *STEP, "--for", "batch", "--so-that", "stepp_s=1ms"], "step_s"),
        (["solve", *STEP, "--for", "batch", "--so-that", "step_s"], "OUTPUT=VALUE"),
        (["solve", *STEP, "--for", "batch", "--so-that", "step_s=3GB"], "20ms"),
        (["solve", *STEP, "--for", "batch", "--so-that", "bound=kv"], "bound"),
        (["solve", *STEP, "--for", "batch", "--so-that", "tpot_s=1ms"], "apply"),
    ],
)  # fmt: skip
def test_verbs__wrong_command_is_one_line_with_what_would_work(cli: Cli, command: list[str], says: str) -> None:
    assert says in refused(cli, *command)


def test_serve__illegal_list_members_are_dropped_with_a_note(cli: Cli) -> None:
    found = cli.json(*STEP[:4], "--tp", "1..8", "--batch", "0,1", "--context", "1k")
    assert [row["tp"] for row in found["rows"]] == [1, 2, 4, 8]
    assert any("dropped 4 of 8 layouts" in note for note in found["notes"])
    assert any(note.startswith("--batch: dropped 1 of 2") for note in found["notes"])


def test_fits__unfit_model_and_unmet_slo_are_answers(cli: Cli) -> None:
    row = cli.rows("serve", "llama-3.1-405b", "--on", "h100-sxm", "--context", "1k")[0]
    assert row["fits"] is False
    assert "GB" in row["why"]
    assert row["bound"] == "capacity"
    found = cli.rows("plan", "llama-3.1-405b", "--on", "h100-sxm", "--prompt", "1k", "--output", "1k")[0]
    assert found["fits"] is False
    assert found["why"]
    tight = cli.rows(*PLAN, "--tpot", "1ms")[0]
    assert tight["fits"] is False
    assert "TPOT" in tight["why"]


NUMBERS = st.sampled_from(
    ["0", "-1", "1", "7", "8", "1e308", "1e-308", "nan", "inf", "8k", "3GB", "1..8", "1,2", "0..4", "", "x", "2.5", "1e12", "99%"]
)
FLAGS = ("--tp", "--ep", "--dp", "--pp", "--cp", "--replicas", "--batch", "--context", "--prompt", "--output", "--eff-compute",
         "--eff-memory", "--eff-network", "--t0", "--alpha", "--spread", "--hbm-utilization", "--activation-bytes",
         "--kv-share")  # fmt: skip
DONE = ("step_s", "step_floor_s", "compute_s", "weights_s", "kv_s", "decode_tok_per_s", "weights_bytes_chip", "hbm_bytes_chip",
        "usd_per_mtok_in", "usd_per_mtok_out", "tok_per_s")  # fmt: skip


@settings(max_examples=120)
@given(st.sampled_from(["llama-3.1-8b", "deepseek-v3", "gpt-oss-20b"]), st.dictionaries(st.sampled_from(FLAGS), NUMBERS, max_size=5))
def test_serve__any_input_gives_one_line_or_clean_rows(cli: Cli, model: str, flags: dict[str, str]) -> None:
    words = [word for pair in flags.items() for word in pair]
    status, out, err = cli("serve", model, "--on", "8xh100-sxm", *words, "-o", "json")
    if status:
        assert status == 2
        assert err.count("\n") == 1
        return
    for row in json.loads(out)["rows"]:
        for key, value in row.items():
            assert not (isinstance(value, float) and (not math.isfinite(value) or value < 0)), (key, value)
        if row["fits"]:
            assert all(row[key] is None or row[key] > 0 for key in DONE), row


# -- the process ------------------------------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def process(*argv: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "headway", *argv], capture_output=True, text=True, env=environment(), **more)


def test_help__names_every_verb_and_flag(cli: Cli) -> None:
    status, out, _ = cli("--help")
    assert status == 0
    for verb in VERBS:
        assert f"  {verb} " in out
        status, text, _ = cli(verb, "--help")
        assert status == 0
        edits = [f"--{name}" for name in ("set", "catalog") if name in question_of(verb).edits]
        for flag in ("--where", "--sort", "--explain", "--plot", "-o", *edits):
            assert flag in text
    assert re.fullmatch(r"headway \d+\.\d+\.\d+\n", cli("--version")[1])


def test_help__starts_without_numpy() -> None:
    code = "import sys; from headway.cli.main import main; status = main(sys.argv[1:]); sys.exit(status or 'numpy' in sys.modules)"
    for argv in (["--help"], ["list", "models"], ["list", "chips"], ["list", "systems"], ["show", "chip", "h100"]):
        done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, env=environment())
        assert done.returncode == 0, (argv, done.stderr[-300:])


@pytest.mark.parametrize("how", ["text", "csv", "json"])
def test_output__closed_pipe_is_no_error(how: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "headway", "list", "chips", "-o", how]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment())
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output__full_disk_is_one_line(unbuffered: str) -> None:
    command = [sys.executable, "-m", "headway", "list", "models"]
    with Path("/dev/full").open("w") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, env=environment() | {"PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 2
    assert done.stderr.startswith("headway: cannot write")
    assert "Traceback" not in done.stderr


def test_plot__unwritable_path_is_one_line(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    target = tmp_path / "taken.png"
    target.mkdir()
    status, _, err = cli(*STEP, "--plot", target)
    assert status == 2
    assert err.count("\n") == 1


# -- plans under a load ---------------------------------------------------------------------------------------------------------


def first_line(cli: Cli, *argv: str) -> str:
    with unhelped():
        return cli(*argv).text.splitlines()[0]


def test_plan__first_sentence_is_honest(cli: Cli) -> None:
    ask = ("plan", "llama-3.1-70b", "--prompt", "2k", "--output", "300")
    both = cli(*ask, "--on", "8xh200-sxm").text
    assert "costs least per request with prefill apart (" in both.splitlines()[0]
    assert "costs least per request with pp=" in first_line(cli, *ask, "--on", "8xh200-sxm", "--disaggregate", "never")
    assert "means at this load" in both
    loaded = first_line(cli, *ask, "--on", "h200-sxm", "--rate", "40/s", "--tpot", "30ms")
    assert re.search(r" nodes of 8 h200-sxm carry 40 requests/s (with prefill apart )?for \$", loaded)
    assert "mean TPOT" in loaded and "confidence" in loaded
    assert "does not carry 400 requests/s; 2" in first_line(cli, *ask, "--on", "8xh200-sxm", "--rate", "400/s")
    assert first_line(cli, *ask, "--on", "8xh200-sxm", "--ttft", "1ms").startswith("Nothing meets TTFT <= 1 ms for llama-3.1-70b on")
    unfit = first_line(cli, "plan", "deepseek-v3", "--on", "4xh100-sxm", "--prompt", "1k", "--output", "1k")
    assert unfit.startswith("deepseek-v3 does not fit on 4xh100-sxm: weights need")
    pools = cli(*ask, "--on", "8xh200-sxm", "--disaggregate").text
    assert "chips prefill and" in pools and "with prefill of others" not in pools.splitlines()[0]


# -- what a command leaves unsaid -----------------------------------------------------------------------------------------------


def test_load__omitted_load_is_a_default_with_a_note(cli: Cli) -> None:
    step = cli.json(*POINT)
    assert step["rows"][0]["context"] == 8192
    assert "by default --context 8192" in step["notes"]
    best = cli.json(*PLAN[:4])
    assert (best["rows"][0]["prompt"], best["rows"][0]["output"]) == (8000, 1000)
    assert "by default --prompt 8k and --output 1k" in best["notes"]
    asked = cli.json(*PLAN)
    assert not [note for note in asked["notes"] if "by default" in note]
    for start in (PLAN[:4], POINT):
        assert "--output: got 'nothing'" in refused(cli, *start, "--prompt", "2k")  # half a request is not guessed


def test_ep__alone_sets_dp_to_ep(cli: Cli) -> None:
    found = cli.json("serve", "deepseek-v3", "--on", "gb200-nvl72", "--ep", "8,64,512", "--context", "8k")
    assert [(row["ep"], row["dp"]) for row in found["rows"]] == [(8, 8), (64, 64)]
    assert any("dp = ep" in note for note in found["notes"])
    assert any("512" in note and "256 routed experts" in note for note in found["notes"])
    named = cli.rows("serve", "deepseek-v3", "--on", "gb200-nvl72", "--ep", "8", "--tp", "8", "--context", "8k")
    assert [(row["ep"], row["dp"]) for row in named] == [(8, 1)]
    assert "routed experts" in refused(cli, *POINT[:4], "--ep", "8")


def test_context__note_beyond_the_longest_of_the_model(cli: Cli) -> None:
    gpt2 = ["serve", "gpt2", "--on", "h100"]
    assert any("longest" in note and "1024" in note for note in cli.json(*gpt2, "--context", "1,2k")["notes"])
    assert any("longest" in note for note in cli.json(*gpt2, "--prompt", "1k", "--output", "1k")["notes"])
    assert not any("longest" in note for note in cli.json(*gpt2, "--context", "1024")["notes"])


def test_flags__bare_double_dash_is_refused(cli: Cli) -> None:
    assert "'--'" in refused(cli, *STEP, "--pp=--")
    assert "'--'" in refused(cli, *STEP, "--")


def test_show_model__window_model_keeps_kv_within_its_window(cli: Cli) -> None:
    window = cli("show", "model", "llama-3.1-8b", "--attention", "window:4k")[1].splitlines()[0]
    assert window.endswith("0 bytes of KV cache per token beyond its window.")
    assert cli("show", "model", "mamba2-2.7b")[1].splitlines()[0].endswith("0 bytes of KV cache per token.")


def test_grid_picture__draws_points_that_fit_and_counts_the_rest() -> None:
    from headway.report.pictures import grid
    from headway.report.pictures.frame import View

    rows = [{"batch": b, "step_s": b * 1e-3, "tp": tp, "fits": b < 8 or tp == 8} for tp in (4, 8) for b in (1, 2, 4, 8)]
    drawn = grid.picture(rows, "batch", ("step_s",), ("tp",), View(), title="title", about="about")
    assert [len(drawn.data[f"grid0_curve{place}"]) for place in (0, 1)] == [3, 4]
    assert drawn.subtitle == "about; 1 points that do not fit are left out"
    many = [{"batch": b, "step_s": 1e-3 * tp * b, "tp": tp} for tp in range(1, 21) for b in (1, 2)]
    drawn = grid.picture(many, "batch", ("step_s",), ("tp",), View(), title="title", about="note")
    assert drawn.subtitle == f"note; the first {grid.MOST_CURVES} of 20 curves"
