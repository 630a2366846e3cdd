"""Training by runs of one's own: the step and the memory follow theirs, apart from each other, and other models and chips the less."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.evidence.calibration.training import GIB, observe_training
from headway.evidence.training.predict import predict
from headway.evidence.training.row import TrainingRow
from headway.performance.calibration.observation import Observation
from support.command import Cli
from support.paths import DATA

RUN = TrainingRow(
    line=1, id="a", model="llama-3.1-70b", hardware="H100 SXM", chips=256, precision="bf16", tp=8, pp=4, seq_len=8192, micro_batch=1,
    global_batch=512, recompute="selective", kernels="megatron_te", date="2026-10",
)  # fmt: skip


def predicted(row: TrainingRow, runs: tuple[Observation, ...] = ()) -> Any:
    """The prediction of a row by these runs, which has all its quantities."""
    (prediction,) = predict([row], runs=runs)
    assert not prediction.why
    return prediction


def measured(step: float, memory: float, count: int = 1, row: TrainingRow = RUN) -> tuple[Observation, ...]:
    """What runs say that took so many times the step and the memory that are predicted."""
    usual = predicted(row)
    values = {"tokens_per_s_per_chip": usual.speed.expected / step, "memory_gb_per_chip": usual.memory.expected * memory / GIB}
    return observe_training([replace(row, id=f"{n}", **values) for n in range(count)], [f"mine:{n}" for n in range(count)])


def change(row: TrainingRow, runs: tuple[Observation, ...], name: str) -> float:
    """How many times a quantity is what it is without runs."""
    return getattr(predicted(row, runs), name).expected / getattr(predicted(row), name).expected


def test_many_runs__are_followed_and_narrow_both_intervals() -> None:
    runs, usual = measured(1.3, 1.1, count=6), predicted(RUN)
    narrow = predicted(RUN, runs)
    assert change(RUN, runs, "step") == pytest.approx(1.3, rel=0.02)
    assert change(RUN, runs, "memory") == pytest.approx(1.1, rel=0.01)
    assert narrow.step.high / narrow.step.expected < usual.step.high / usual.step.expected
    assert narrow.memory.high / narrow.memory.expected < usual.memory.high / usual.memory.expected
    assert narrow.step.floor == usual.step.floor
    assert narrow.posterior.runs == tuple(f"mine:{n}" for n in range(6))


def test_one_run__as_a_gaussian_weighs_it() -> None:
    """Prior 0.2, noise 0.1: 0.04 / 0.05 of the logarithm, somewhat more or less by the weight of a Student t."""
    assert 1.3**0.75 < change(RUN, measured(1.3, 1), "step") < 1.3**0.87


def test_step_and_memory__are_told_apart() -> None:
    assert change(RUN, measured(1.3, 1, count=4), "memory") == pytest.approx(1, abs=1e-3)
    assert change(RUN, measured(1, 1.1, count=4), "step") == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("changes", "least", "most"), [
    ({"chips": 512}, 0.6, 0.9), ({"model": "llama-3.1-8b", "tp": 1, "pp": 1}, 0.1, 0.4), ({"hardware": "H200 SXM"}, 0.1, 0.4),
    ({"kernels": "pytorch_fsdp"}, 0, 0), ({"model": "llama-3.1-8b", "tp": 1, "pp": 1, "hardware": "B200"}, 0, 0),
])  # fmt: skip
def test_likeness__says_how_much_of_a_factor_is_kept(changes: dict[str, Any], least: float, most: float) -> None:
    runs = measured(1.2, 1, count=6)
    kept = (change(replace(RUN, **changes), runs, "step") - 1) / (change(RUN, runs, "step") - 1)
    assert least - 1e-9 <= kept <= most + 1e-9


def test_serving_runs__say_nothing_of_training() -> None:
    serving = tuple(replace(run, key=replace(run.key, mode="served")) for run in measured(1.3, 1))
    assert change(RUN, serving, "step") == 1


# -- the verbs --------------------------------------------------------------------------------------------------------------------

COLUMNS = "id,model,hardware,n_chips,precision,tp,pp,dp,seq_len,micro_batch,global_batch,recompute,kernels,date"
RUNS = "llama-3.1-8b,H100 SXM,64,bf16,2,1,32,8192,1,128,selective,megatron_te,"
TRAIN = ("train", "llama-3.1-8b", "--on", "64xh100-sxm", "--seq", "8k", "--global-batch", "1M", "--tp", 2, "--cp", 1, "--pp", 1, "--dp", 32)


def table(folder: Path, *rows: str, columns: str = "") -> Path:
    """A table of training runs."""
    path = folder / "training.csv"
    path.write_text("\n".join([COLUMNS + columns, *rows]) + "\n", encoding="utf-8")
    return path


def slow_runs(folder: Path, cli: Cli) -> Path:
    """Three runs a fifth slower than predicted, with a tenth more memory."""
    (usual,) = cli.rows("predict", "--training", table(folder, f"a,{RUNS}"))
    values = f",{usual['tokens_per_s_per_chip'] / 1.2},{usual['memory_gb_per_chip'] * 1.1}"
    return table(folder, *(f"{name},{RUNS}{values}" for name in "abc"), columns=",tokens_per_s_per_chip,memory_gb_per_chip")


def test_verbs__go_by_the_runs_and_say_so(tmp_path: Path, cli: Cli) -> None:
    runs = slow_runs(tmp_path, cli)
    (deployment,) = cli.rows("calibrate", runs, "--training", "--save", "mine", "--into", tmp_path)
    assert (deployment["mode"], deployment["runs"]) == ("training", 3)
    assert deployment["step_factor"] == pytest.approx(1.2, rel=0.03) and deployment["memory_factor"] == pytest.approx(1.1, rel=0.02)
    where = ("--catalog", tmp_path)
    answer = cli.json(*TRAIN, *where)
    usual, *rest = cli.rows(*TRAIN)
    assert answer["rows"][0]["step_s"] == pytest.approx(usual["step_s"] * deployment["step_factor"])
    assert answer["rows"][0]["memory_bytes_chip"] > 1.05 * usual["memory_bytes_chip"]
    assert answer["notes"][0].startswith("calibrated on 3 runs") and answer["facts"]["calibration"][0]["name"] == "mine"
    assert cli.rows(*TRAIN, *where, "--calibration", "none") == [usual, *rest]
    (predicted_row,) = cli.rows("predict", "--training", table(tmp_path, f"d,{RUNS}"), *where)
    assert (predicted_row["calibrated_by"], predicted_row["calibrated_runs"]) == ("mine", 3)


def test_show__prints_what_the_runs_say(tmp_path: Path, cli: Cli) -> None:
    assert cli("calibrate", slow_runs(tmp_path, cli), "--training", "--save", "mine", "--into", tmp_path).status == 0
    out = cli("show", "calibration", "mine", "--catalog", tmp_path).text
    assert "3 runs of llama-3.1-8b on 64 h100-sxm" in out and "memory" in out


@pytest.mark.parametrize(("rows", "word"), [
    ((f"a,{RUNS},,",), "states no measurement"), ((f"a,{RUNS},9000,", f"a,{RUNS},9100,"), "is there twice"),
    (("a,no-such-model,H100 SXM,8,bf16,1,1,8,2048,1,8,,,,9000,",), "not in the catalogue"),
])  # fmt: skip
def test_rows__that_say_nothing_are_one_line(rows: tuple[str, ...], word: str, tmp_path: Path, cli: Cli) -> None:
    runs = table(tmp_path, *rows, columns=",tokens_per_s_per_chip,memory_gb_per_chip")
    answer = cli("calibrate", runs, "--training")
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1) and word in answer.err


def test_own_predictions__are_no_runs(tmp_path: Path, cli: Cli) -> None:
    (usual,) = cli.rows("predict", "--training", table(tmp_path, f"a,{RUNS}"))
    runs = table(tmp_path, f"a,{RUNS},{usual['tokens_per_s_per_chip']!r}", columns=",tokens_per_s_per_chip")
    assert "headway's own predictions" in cli("calibrate", runs, "--training").err


def test_benchmark_of_serving__is_no_training(cli: Cli) -> None:
    answer = cli("calibrate", DATA / "readers" / "vllm_serve.json", "--training")
    assert answer.status == 2 and "--training" in answer.err
