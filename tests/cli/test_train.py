"""`headway train`: rows that add up and explain themselves, published runs, wrong input."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

import headway as hw
from headway.core.formula import anonymous, leaves, replay
from headway.core.listing import format_value
from headway.core.quantity import KINDS
from headway.training.train import PARTS, TIMES
from support.command import Answer, command

DAY = 86400.0
ASKED: list[tuple[str, str, dict[str, Any]]] = [
    ("llama-3-405b", "16384xh100-sxm", {"tokens": "15T", "seq": "8k", "global_batch": "16M", "mtbf": "51000h"}),
    ("deepseek-v3", "2048xh800", {"tokens": "14.8T", "seq": 4096, "global_batch": 15360 * 4096, "tp": 1, "pp": 16, "ep": 64,
                                  "schedule": "dualpipe", "dtype": "fp8"}),
    ("llama-3.1-70b", "tpu-v5p-8x16x16", {"tokens": "1T", "seq": 4096, "global_batch": 4096 * 4096}),
    ("qwen3-next-80b-a3b", "64xh100-sxm", {"tokens": "1T", "seq": 4096, "imbalance": 1.3}),
    ("llama-3.1-8b", "8xh100-sxm", {"tokens": "1T", "seq": 8192, "trainable": 0.01, "optimizer": "muon"}),
    ("qwen2.5-0.5b", "h100", {"tokens": "10G", "seq": 2048}),
    ("gpt3-175b", "1024xa100-sxm-80", {"tokens": "300G", "seq": 2048, "global_batch": 1536 * 2048, "dropout": 1, "fused_attention": 0}),
    ("llama-3.1-70b", "gb200-nvl72", {"tokens": "1T", "seq": 8192}),
    ("llama-3.1-8b", "16xh100-sxm", {"seq": 131072, "global_batch": 64 * 131072, "cp": (2, 4, 8)}),
]  # fmt: skip
NAMES = [f"{name}-{where}" for name, where, _ in ASKED]


def run(*argv: str) -> Answer:
    return command("train", *argv)


# -- rows that add up -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "machine", "given"), ASKED, ids=NAMES)
def test_train__parts_add_up_and_interval_in_order(name: str, machine: str, given: dict[str, Any]) -> None:
    table = hw.train(name, machine, **given)
    assert len(table) >= 1
    for row in table:
        assert sum(row[f"{part}_s"] for part in TIMES) == pytest.approx(row["step_s"], rel=1e-9)
        assert sum(row[f"{part}_bytes_chip"] for part in PARTS) == pytest.approx(row["memory_bytes_chip"], rel=1e-9)
        assert all(row[f"{part}_s"] >= -1e-12 for part in TIMES) and all(row[f"{part}_bytes_chip"] >= 0 for part in PARTS)
        assert 0 < row["step_floor_s"] <= row["step_lo_s"] <= row["step_s"] <= row["step_hi_s"]
        assert row["tokens_per_s_chip_lo"] <= row["tokens_per_s_chip"] <= row["tokens_per_s_chip_hi"]
        assert row["memory_bytes_chip_lo"] <= row["memory_bytes_chip"] <= row["memory_bytes_chip_hi"]
        assert 0 < row["mfu"] <= row["mfu_full"] <= row["hfu"] < 1
        assert row["tp"] * row["cp"] * row["pp"] * row["dp"] + row["chips_idle"] == row["chips"]
        assert row["micro_batches"] * row["dp"] * row["micro_batch"] * row["seq"] == row["global_batch"]
        assert row["fits"] == (row["why"] == "" or row["why"].startswith("plainer"))
        if row["tokens"]:
            steps = row["tokens"] / row["global_batch"]
            assert row["run_s"] == pytest.approx(steps * row["step_s"] / row["goodput"])
            assert row["run_lo_s"] <= row["run_s"] <= row["run_hi_s"]
    steps = [row["step_s"] for row in table if row["fits"]]
    assert steps == pytest.approx(sorted(steps), rel=1e-9)  # the best is the best
    degrees = [tuple(row[name] for name in ("tp", "cp", "pp", "ep", "dp")) for row in table]
    assert len(set(degrees)) == len(degrees) or len(set(degrees)) < 8  # no two rows are twins while others could stand there


@pytest.mark.parametrize(("name", "machine", "given"), ASKED, ids=NAMES)
def test_train__every_number_replays(name: str, machine: str, given: dict[str, Any]) -> None:
    table = hw.train(name, machine, **given)
    row = next(iter(table))
    keys = [key for key, value in row.items() if isinstance(value, int | float) and not isinstance(value, bool)]
    assert len(keys) >= 50
    for key in keys:
        tree = table.explain(key).tree
        assert anonymous(tree) == [], key
        assert float(replay(tree)) == pytest.approx(float(row[key]), rel=1e-12, abs=0), key
    for _, leaf in leaves(table.explain("run_s" if row["run_s"] else "step_s").tree):
        assert leaf.kind in KINDS and leaf.source.strip() and leaf.name.strip()


def test_train__every_column_is_described() -> None:
    status, out, _ = run("llama-3.1-8b", "--on", "8xh100-sxm", "--tokens", "1T", "--seq", "8192", "-o", "json")
    answer = json.loads(out)
    assert status == 0 and answer["command"][1] == "train"
    assert set(hw_columns().table("train")) <= {*answer["columns"]}
    assert all(column["doc"] for column in answer["columns"].values())


# -- lists and questions --------------------------------------------------------------------------------------------------------


def test_train__lists_are_axes_and_layout_lists_are_limits() -> None:
    table = hw.train("llama-3.1-8b", "64xh100-sxm", seq=(4096, 8192, 32768), global_batch=(2**22, 2**23))
    assert {(row["seq"], row["global_batch"]) for row in table} == {(s, b) for s in (4096, 8192, 32768) for b in (2**22, 2**23)}
    speeds = [row["tokens_per_s_chip"] * row["chips"] for row in table]
    assert speeds == sorted(speeds, reverse=True)  # the best by the objective first
    assert {row["tp"] for row in hw.train("llama-3.1-8b", "64xh100-sxm", seq=4096, tp=(2, 4))} <= {2, 4}
    assert {row["recompute"] for row in hw.train("llama-3.1-8b", "64xh100-sxm", seq=4096, recompute="full")} == {"full"}
    modes = hw.train("llama-3.1-8b", "64xh100-sxm", seq=4096, recompute=("none", "full"))
    assert {row["recompute"] for row in modes} <= {"none", "full"}
    schedules = hw.train("llama-3.1-70b", "64xh100-sxm", seq=4096, pp=8, schedule=("gpipe", "1f1b", "zb-h1", "zb-h2"))
    assert sorted(row["schedule"] for row in schedules) == ["1f1b", "gpipe", "zb-h1", "zb-h2"]


def test_train__text_csv_and_md() -> None:
    asked = ("llama-3.1-8b", "--on", "8xh100-sxm", "--tokens", "1T", "--seq", "8192")
    status, text, _ = run(*asked)
    assert status == 0 and text.startswith("llama-3.1-8b on 8xh100-sxm: ") and "1T tokens in steps of 4.19M take" in text
    assert "Binds:   compute; a step is compute " in text and "memory of the fullest chip" in text
    assert "," in run(*asked, "-o", "csv")[1].splitlines()[0] and run(*asked, "-o", "md")[1].count("|") > 20
    status, text, _ = run(*asked, "--where", "tp > 1", "--sort", "memory_bytes_chip", "-o", "json")
    assert all(row["tp"] > 1 for row in json.loads(text)["rows"])


def test_helps__are_what_their_own_commands_give() -> None:
    """Every figure after an arrow is that of the first row of the printed command, and it is better than before."""
    argv = ("qwen3-30b-a3b", "--on", "64xh100-sxm", "--tokens", "1T", "--seq", "4096")
    answer = json.loads(run(*argv, "-o", "json").out)
    helps = answer["helps"]
    assert len(helps) >= 3
    for change in helps:
        words = change["change"].rpartition("(")[2].rstrip(")").split()
        row = next(csv.DictReader(io.StringIO(run(*argv, *words, "-o", "csv").out)))
        assert f"-> {format_value(float(row['run_s']), 's')}" in change["effect"], change
        assert answer["rows"][0]["run_s"] / float(row["run_s"]) - 1 == pytest.approx(change["gain"], rel=1e-3)


def test_twins__are_named_in_a_note_and_are_no_rows() -> None:
    """A layout that differs from the best in its chunks alone, and within 2 % in time, stands in the note with its difference."""
    found = hw.train("llama-3.1-70b", "1024xh100-sxm", seq=8192, global_batch=2**23)
    best, note = next(iter(found)), next(note for note in found.notes if "joined with the best row" in note)
    twin = one("llama-3.1-70b", "1024xh100-sxm", seq=8192, global_batch=2**23, vpp=10, tp=best["tp"], pp=best["pp"], dp=best["dp"], cp=1)
    slower = twin["step_s"] / best["step_s"] - 1
    assert best["vpp"] != 10 and 0 < slower < 0.02 and f"vpp=10 ({slower:.1%} slower)" in note
    assert not any((row["tp"], row["pp"], row["dp"], row["vpp"]) == (best["tp"], best["pp"], best["dp"], 10) for row in found)


def test_points__the_one_that_keeps_the_deadline_comes_first() -> None:
    machines = "1024xh100-sxm,2048xh100-sxm,4096xh100-sxm"
    answer = run("llama-3.1-70b", "--on", machines, "--tokens", "15T", "--seq", "8k", "--global-batch", "8M", "--deadline", "60d").out
    assert answer.startswith("fewest chips of 3 points is 4096xh100-sxm") and "within 60 d (chance" in answer.splitlines()[0]
    assert [line.split()[0] for line in answer.splitlines()[3:6]] == ["4096xh100-sxm", "2048xh100-sxm", "1024xh100-sxm"]


def test_limits__that_are_missed_by_their_chance_are_told_once_and_whole() -> None:
    words = ("llama-3.1-8b", "--on", "64xh100-sxm", "--tokens", "1T", "--deadline", "18d")
    both = run(*words, "--budget", "95kUSD").out.splitlines()[0]
    assert "the deadline of 18 d and the budget of $95k at 80% confidence (chance" in both and both.endswith(").")
    assert "at 99.6% confidence" in run(*words, "--confidence", "0.996").out.splitlines()[0]


# -- properties -----------------------------------------------------------------------------------------------------------------


def one(name: str, machine: str, **given: Any) -> dict[str, Any]:
    return next(iter(hw.train(name, machine, **given)))


def test_tokens_per_s_chip__falls_with_chips_and_rises_with_batch() -> None:
    small, large = (one("llama-3.1-70b", f"{n}xh100-sxm", tokens="1T", seq=4096, global_batch=2**23) for n in (128, 512))
    assert large["run_s"] < small["run_s"] and large["tokens_per_s_chip"] < small["tokens_per_s_chip"]
    few, many = (one("llama-3.1-70b", "128xh100-sxm", seq=4096, global_batch=batch) for batch in (2**21, 2**24))
    assert many["tokens_per_s_chip"] > few["tokens_per_s_chip"]


def test_goodput__failures_lengthen_the_run() -> None:
    kept = {"tokens": "1T", "seq": 8192}
    sound, failing = one("llama-3.1-8b", "64xh100-sxm", **kept), one("llama-3.1-8b", "64xh100-sxm", mtbf="5000h", **kept)
    assert sound["goodput"] == 1 and 0 < failing["goodput"] < 1
    assert failing["run_s"] == pytest.approx(sound["run_s"] / failing["goodput"])


def test_imbalance__costs_time_and_memory() -> None:
    pinned = {"seq": 4096, "tp": 1, "cp": 1, "pp": 1, "dp": 64, "ep": 8, "micro_batch": 1, "zero": 1, "recompute": "none"}
    even, skewed = (one("qwen3-30b-a3b", "64xh100-sxm", imbalance=factor, **pinned) for factor in (1, 1.5))
    assert skewed["compute_s"] > even["compute_s"] and skewed["ep_s"] > even["ep_s"]
    assert skewed["activations_bytes_chip"] > even["activations_bytes_chip"]


def test_recompute__trades_time_for_memory() -> None:
    pinned = {"seq": 8192, "tp": 8, "cp": 1, "pp": 4, "dp": 4, "vpp": 1, "micro_batch": 1, "zero": 1}
    none, some, full = (one("llama-3.1-70b", "128xh100-sxm", recompute=mode, **pinned) for mode in ("none", "selective", "full"))
    assert none["memory_bytes_chip"] > some["memory_bytes_chip"] > full["memory_bytes_chip"]
    assert none["step_s"] < some["step_s"] < full["step_s"]
    assert full["compute_s"] / none["compute_s"] == pytest.approx(4 / 3)
    assert some["step_s"] / none["step_s"] < 1.08


def test_zero__stage_3_in_a_pipeline_keeps_gathered_weights() -> None:
    pinned = {"seq": 8192, "tp": 8, "cp": 1, "pp": 4, "dp": 8, "vpp": 1, "micro_batch": 1, "recompute": "selective"}
    sharded, states = (one("llama-3.1-70b", "256xh100-sxm", zero=stage, **pinned) for stage in (3, 1))
    assert sharded["step_s"] == pytest.approx(states["step_s"], rel=1e-9)
    assert sharded["memory_bytes_chip"] > states["memory_bytes_chip"]


def test_schedule__better_schedules_leave_less_bubble() -> None:
    pinned = {"seq": 8192, "tp": 8, "cp": 1, "pp": 8, "dp": 4, "micro_batch": 1, "zero": 1, "recompute": "full", "global_batch": 128 * 8192}
    idle = {name: one("llama-3.1-70b", "256xh100-sxm", schedule=name, **pinned, **({"vpp": 2} if name == "interleaved" else {"vpp": 1}))
            for name in ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2")}  # fmt: skip
    assert idle["gpipe"]["bubble_s"] == idle["1f1b"]["bubble_s"] > idle["interleaved"]["bubble_s"]
    assert idle["1f1b"]["bubble_s"] > idle["zb-h1"]["bubble_s"] > idle["zb-h2"]["bubble_s"]
    assert idle["gpipe"]["memory_bytes_chip"] > idle["1f1b"]["memory_bytes_chip"]


# -- published runs -------------------------------------------------------------------------------------------------------------


def test_mfu__llama_3_405b_published() -> None:
    """Llama 3 (arXiv:2407.21783), table 4: tp 8, pp 16, dp 128, 16 M tokens of 8 k on 16,384 H100: 400 TFLOP/s, MFU 41 %; 38 to 43."""
    row = one("llama-3.1-405b", "16384xh100-sxm", tokens="15.6T", seq=8192, global_batch=2048 * 8192, tp=8, cp=1, pp=16, dp=128)
    assert row["fits"] and row["zero"] == 1
    assert 0.36 < row["mfu"] < 0.45
    assert row["flops_chip"] == pytest.approx(400e12, rel=0.12)
    assert row["run_flop"] == pytest.approx(3.8e25, rel=0.1)  # 6 N D, attention apart


def test_run_s__deepseek_v3_published_chip_hours() -> None:
    """DeepSeek-V3 (arXiv:2412.19437): 2.664 M H800 hours for 14.8 T tokens, pp 16, ep 64, DualPipe, fp8: inside the interval."""
    row = one("deepseek-v3", "2048xh800", tokens="14.8T", seq=4096, global_batch=15360 * 4096, tp=1, cp=1, pp=16, dp=128, ep=64,
              schedule="dualpipe", dtype="fp8", optimizer="adam-bf16-moments", recompute="selective")  # fmt: skip
    hours = {end: row[f"run_{end}s"] / 3600 * row["chips"] for end in ("lo_", "", "hi_")}
    assert hours["lo_"] < 2.664e6 < hours["hi_"]
    assert row["fits"]


# -- wrong input ----------------------------------------------------------------------------------------------------------------


LLAMA = ("llama-3.1-405b", "--on", "16384xh100-sxm", "--tokens", "15T", "--seq", "8192", "--global-batch", "16Mi")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--tp 8 --pp 16 --cp 1 --dp 256", "more than the 16384 chips; nearest legal: tp=4 pp=16 dp=256 cp=1"),
        ("--tp 8 --pp 16 --cp 1 --dp 100", "does not divide the 2048 sequences of a step; nearest legal: tp=8 pp=16 dp=128 cp=1"),
        ("--pp 200", "more than the 126 layers; nearest legal: tp=1 pp=126"),
        ("--cp 3", "cp does not divide a sequence of 8192 tokens; nearest legal: tp=1 pp=1 dp=2048 cp=4"),
        ("--tp 7", "tp does not divide 128 attention heads; nearest legal: tp=8"),
        ("--tp 7,9", "tp does not divide 128 attention heads; nearest legal: tp=8"),
        ("--tp 7 --cp 3 --pp 200", "heads, and cp does not divide a sequence of 8192 tokens, and pp x vpp is more than the 126 layers"),
        ("--dp 100000", "nearest legal: tp=1 pp=1 dp=2048"),
        ("--ep 8", "the model has none; nearest legal"),
        ("--vpp 4 --pp 1", "vpp needs more than one pipeline stage"),
        ("--schedule zb-h1 --vpp 2 --pp 4", "vpp is of the interleaved schedule, not of zb-h1"),
        ("--schedule dualpipe --pp 7", "DualPipe wants an even number of stages; nearest legal: tp=1 pp=8"),
        ("--schedule zb-v --pp 64", "zb-v puts two chunks of the 126 layers on each stage"),
        ("--micro-batch 7", "does not divide the 2048 sequences of a step"),
        ("--zero 4", "at most 3"),
        ("--tp 0", "at least 1"),
        ("--tp 1.5", "whole number"),
        ("--dp -4", "at least 1"),
        ("--optimizer adamm", "did you mean adam"),
        ("--schedule foo", "one of 1f1b, gpipe"),
        ("--recompute some", "one of none, selective, ffn, full"),
        ("--dtype fp4", "one of bf16, fp16, fp8"),
        ("--imbalance 0.5", "at least 1"),
        ("--objective speed", "one of step, chips, cost"),
        ("--mtbf 10h", "sooner than a run comes back"),
        ("--eff-compute 1.5", "at most 1"),
        ("--price-metric foo", "no price metric"),
    ],
)
def test_train__wrong_layout_or_recipe_is_one_line(flags: str, said: str) -> None:
    status, out, err = run(*LLAMA, *flags.split())
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and said in err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--tokens 0", "above 0"),
        ("--tokens nan", "finite"),
        ("--tokens=-5", "above 0"),
        ("--tokens 1e300", "--tokens"),
        ("--seq 0", "at least 1"),
        ("--seq 8192 --global-batch 1000000", "a multiple of the sequence of 8192 tokens, such as 999424"),
        ("--seq 8192 --global-batch 100", "such as 8192"),
        ("--objective cost", "--tokens 15T"),
        ("--deadline 60d", "--tokens 15T"),
        ("--deadline 0 --tokens 1T", "--deadline"),
        ("--budget 1MUSD", "--tokens 15T"),
        ("--confidence 0.9 --tokens 1T", "--deadline or --budget beside it"),
        ("--confidence 0.2 --deadline 9d --tokens 1T", "at least 0.5"),
        ("--seq 8192 --global-batch 4Mi --tp 1 --pp 1 --cp 1 --dp 48", "or these with --global-batch 4325376"),
    ],
)
def test_train__wrong_run_is_one_line(flags: str, said: str) -> None:
    status, out, err = run("llama-3.1-8b", "--on", "64xh100-sxm", *flags.split())
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and said in err


def test_train__wrong_machine_or_argument_is_refused() -> None:
    open_count = ("llama-3.1-8b", "--on", "h100", "--tokens", "1T", "--deadline", "9d", "--objective", "step")
    assert "more chips are always faster" in run(*open_count)[2]
    assert "has no fp8 peak" in run("llama-3.1-8b", "--on", "8xa100-sxm-80", "--dtype", "fp8")[2]
    assert "more than the 1 chips; nearest legal: tp=1" in run("llama-3.1-8b", "--on", "h100", "--tp", "8")[2]
    assert "ep does not divide the 256 routed experts" in run("deepseek-v3", "--on", "2048xh800", "--ep", "48")[2]
    with pytest.raises(hw.HeadwayError, match="did you mean global_batch"):
        hw.train("llama-3.1-8b", "8xh100-sxm", globalbatch=8)
    with pytest.raises(hw.HeadwayError):
        hw.train("llama-3.1-8b", "8xh100-sxm", seq=float("nan"))
    with pytest.raises(hw.HeadwayError):
        hw.train("llama-3.1-8b", "8xh100-sxm", seq=[])


def test_train__one_chip_needs_no_links() -> None:
    row = one("qwen2.5-0.5b", "apple-m4-max", seq=2048)
    assert row["fits"] and row["step_s"] > 0


def test_train__model_that_does_not_fit_is_an_answer() -> None:
    status, out, err = run("llama-3.1-405b", "--on", "8xh100-sxm", "--seq", "8192")
    assert (status, err) == (0, "")
    assert "no layout fits" in out and "which has 80 GB" in out and "of these chips it fits" in out


# -- lists, rows that cannot run, failures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "values", "key"),
    [("--dtype", "bf16,fp8", "dtype"), ("--mtbf", "10000h,51000h", "mtbf"), ("--trainable", "0.1,1", "trainable"),
     ("--tokens", "1T,2T", "tokens"), ("--eff-compute", "0.5,0.6", "eff_compute"), ("--seq", "4k,8k", "seq")],
)  # fmt: skip
def test_lists__a_swept_input_is_the_first_column_and_names_the_winner(flag: str, values: str, key: str) -> None:
    argv = ["llama-3.1-8b", "--on", "64xh100-sxm", "--tokens", "1T"]
    argv = [*argv[:3], flag, values] if flag == "--tokens" else [*argv, flag, values]
    lines = run(*argv).out.splitlines()
    assert lines[0].startswith(f"fastest of 2 points is {key}=") and lines[1].split()[0] == key.split("_")[0]
    rows = json.loads(run(*argv, "-o", "json").out)["rows"]
    assert len({row[key] for row in rows}) == 2 and hw_columns().unit(key) is not None
    fastest = max(rows, key=lambda row: row["goodput"] * row["global_batch"] / row["step_s"])
    named = lines[0].removeprefix(f"fastest of 2 points is {key}=").split(";")[0].split(",")[0]
    assert named == hw_cell(key, fastest).replace(" ", "")


def hw_columns() -> Any:
    from headway.core import columns

    return columns


def hw_cell(key: str, row: dict[str, Any]) -> str:
    from headway.report.words import value

    return value(row, key)


def test_rows__that_cannot_run_are_never_printed_like_rows_that_can() -> None:
    """On a card of 24 GB some layouts fit and some do not: the first column says so."""
    argv = ("llama-3.1-8b", "--on", "4xrtx-4090", "--tokens", "1T", "--recompute", "none,selective,full")
    rows = json.loads(run(*argv, "-o", "json").out)["rows"]
    assert {row["kind"] == "does not fit" for row in rows} == {not row["fits"] for row in rows}
    assert all((row["kind"] == "does not fit") == (not row["fits"]) for row in rows)
    nothing = run("llama-3.1-70b", "--on", "8xrtx-4090", "--tokens", "1T").out.splitlines()
    assert "no layout fits" in nothing[0] and all(line.startswith("does not fit") for line in nothing[3:] if line[:1].isalpha()
                                                  and not line.startswith(("Binds", "note")))  # fmt: skip


def test_goodput__of_llama_3_as_published_by_the_defaults() -> None:
    """More than 90 % of the time trained (arXiv:2407.21783, section 3.3.4); a chip fails once in 51,000 hours."""
    argv = ("llama-3.1-405b", "--on", "16384xh100-sxm", "--seq", "8k", "--global-batch", "16M")
    row = json.loads(run(*argv, "--tokens", "15.6T", "--mtbf", "51000h", "-o", "json").out)["rows"][0]
    assert 0.90 < row["goodput"] < 0.95
    assert "--mtbf" in run(*argv, "--checkpoint", "60s").err
