"""`headway score`: statistics against numbers worked out by hand, what is scored and what is left out, a user's own output."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

from headway.cli.main import main
from headway.core.errors import BadFile
from headway.evidence.fit import nearest
from headway.evidence.pages import inserted
from headway.evidence.rows.row import read_rows
from headway.evidence.rows.tasks import tasks
from headway.evidence.serving.folds import FoldResult
from headway.evidence.serving.page import PAGE, Report, by_cluster, page, summary, tables
from headway.evidence.serving.predict import predict
from headway.evidence.serving.refit import Folded
from headway.evidence.serving.score import Residual, grouped, residuals, stats, worst
from headway.hardware.chip import chip
from headway.models.config import model
from headway.models.model_class import model_class
from headway.performance.layout import Layout
from headway.performance.nearest import NearestEntry, read, shipped, subject, unlike
from headway.performance.nearest import nearest as nearest_rows
from headway.report import prediction_pictures
from headway.report.pictures.frame import View
from support.command import Cli
from support.paths import DATA, ROOT

HEAD = (
    "id,model,hardware,n_chips,engine,weight_precision,tp,mode,isl,osl,batch_or_concurrency,ttft_ms,tpot_ms,tok_s_per_chip,source_key,"
    "reliability"
)
ASKED = "llama-3.1-70b,h100-sxm,8,vllm,fp8,8,serving_concurrency,1024,1024,64"
ROWS = f"""{HEAD}
fast,{ASKED},200,14,,one,A
slow,{ASKED},,28,,one,B
none,{ASKED},,,,two,A
never,{ASKED},1,1,,two,C
bad,llama-3.1-70b,h100-sxm,8,vllm,fp8,8,serving_concurrency,x,1024,64,200,14,,one,A
nochip,llama-3.1-70b,h1000,8,vllm,fp8,8,serving_concurrency,1024,1024,64,200,14,,one,A
offline,llama-3.1-8b,a100-80gb,1,tensorrt-llm,fp16,1,offline_throughput,128,128,,,,5000,three,A
prefill,llama-3.1-8b,rtx4090,1,llama.cpp,q4_k_m,1,prefill,512,,1,70,,7300,four,A
"""


def one(measured: float, predicted: float, **more: object) -> Residual:
    known = {
        "id": "a", "source": "s", "chip": "c", "family": "f", "engine": "vLLM", "model": "m", "model_class": "dense 8B", "kind": "decode",
        "quantity": "tpot", "floor": 0.5 * measured, "lo": predicted / 1.2, "hi": predicted * 1.2,
    }  # fmt: skip
    return Residual(**(known | more), measured=measured, predicted=predicted)  # type: ignore[arg-type]


def file(folder: Path, text: str) -> str:
    path = folder / "measured.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def found_in(path: str) -> list[Residual]:
    asked = tasks(read_rows(path)[0])
    return residuals(asked, predict(asked))


# -- statistics -------------------------------------------------------------------------------------------------------------------


def test_score_stats__by_hand() -> None:
    # ratios 1.1, 0.5, 2, 1: errors 0.1, 0.5, 1, 0 -> median (0.1 + 0.5) / 2; ln 0.0953, -0.693, 0.693, 0
    s = stats([one(1.0, 1.1), one(1.0, 0.5), one(1.0, 2.0), one(1.0, 1.0)])
    assert s.n == 4
    assert s.median_error == pytest.approx(0.3)
    assert s.p90_log == pytest.approx(math.log(2))
    assert s.bias == pytest.approx(math.log(1.1) / 2)
    assert s.coverage == 0.5  # 1.1 and 1 are within a factor of 1.2
    assert s.below_floor == 0
    assert s.width == pytest.approx(1.44)


def test_floor__lower_bound_of_times_and_upper_bound_of_rates() -> None:
    assert one(2.0, 2.0, floor=1.0).limit_share == 0.5
    assert one(1.0, 2.0, floor=2.0).limit_share == 2.0
    rate = one(90.0, 80.0, floor=100.0, quantity="per_chip", kind="offline")
    assert rate.limit_share == pytest.approx(0.9)
    assert stats([one(1.0, 2.0, floor=2.0), rate]).below_floor == 0.5


def test_score_groups__by_source_and_worst_rows() -> None:
    some = [one(1.0, 1.1, id="x"), one(1.0, 3.0, id="y", source="t"), one(1.0, 1.5, id="z", source="t"), one(2.0, 1.0, kind="serving")]
    by_source = [(group.measure, group.name, group.stats.n) for group in grouped(some, "source")]
    assert by_source == [
        ("served TPOT", "s", 1),
        ("decode", "t", 2),
        ("decode", "s", 1),
    ]
    assert [each.id for each in worst(some, 1)] == ["a", "y"]


# -- rows -------------------------------------------------------------------------------------------------------------------------


def test_score__quantities_of_each_row(tmp_path: Path) -> None:
    found = found_in(file(tmp_path, ROWS))
    seen = [(each.id, each.quantity, each.measure) for each in found]
    assert seen == [
        ("fast", "tpot", "served TPOT"), ("fast", "ttft", "TTFT"), ("slow", "tpot", "served TPOT"),
        ("offline", "per_chip", "throughput"), ("prefill", "ttft", "prefill"),
    ]  # fmt: skip
    assert found[0].measured == pytest.approx(0.014)
    assert (found[0].chip, found[0].engine, found[0].model, found[0].model_class) == ("h100_sxm", "vLLM", "llama-3.1-70b", "dense 70B")


def test_score__groups_of_the_printed_answer(tmp_path: Path, cli: Cli) -> None:
    path = file(tmp_path, ROWS)
    status, out, _ = cli("score", path)
    assert status == 0
    first = out.split("\n")[0]
    assert first.startswith("4 rows scored; intervals hold 60 % of 5 measurements; median error served TPOT ")
    out = cli("score", path, "--verbose").text
    assert "note: median error: served TPOT by " in out and "(2), TTFT by" in out
    assert "note: far off: fast of one (line 2; llama-3.1-70b on h100_sxm, vLLM): " in out
    assert "note: left out: 1 rows of reliability C" in out
    assert "note: left out: 1 rows that state no measurement of what is predicted" in out
    assert "note: without a prediction: no chip named 'h1000' (line 7)" in out
    assert "note: no row: line 6: isl: got 'x'; wants a number of tokens" in out


def test_score__csv_and_json(tmp_path: Path, cli: Cli) -> None:
    path = file(tmp_path, ROWS)
    rows = list(csv.DictReader(io.StringIO(cli("score", path, "-o", "csv")[1])))
    assert {row["by"] for row in rows} == {"all", "source", "chip", "model", "engine", "kind", "worst"}
    served = next(row for row in rows if row["by"] == "all" and row["measure"] == "served TPOT")
    errors = sorted(abs(each.predicted / each.measured - 1) for each in found_in(path) if each.measure == "served TPOT")
    assert float(served["median_error"]) == pytest.approx(sum(errors) / 2)
    answer = json.loads(cli("score", path, "-o", "json")[1])
    assert set(answer["rows"][0]) == set(answer["columns"])
    each = json.loads(cli("score", path, "--each", "-o", "json")[1])["rows"]
    assert [row["id"] for row in each] == ["fast", "fast", "slow", "none", "never", "bad", "nochip", "offline", "prefill"]
    assert each[0]["unit"] == "ms" and each[0]["measured"] == pytest.approx(14)
    assert each[4]["why"] == "line 5: reliability C is never scored"


def test_score__no_row_to_score(tmp_path: Path, cli: Cli) -> None:
    assert cli("score", file(tmp_path, HEAD + "\n"))[:2] == (0, "No row could be scored.\n")
    silent = f"{HEAD}\na,{ASKED},,,,one,A\n"
    status, out, _ = cli("score", file(tmp_path, silent))
    assert status == 0 and out.startswith("No row could be scored.\n")
    for argv in ((), (file(tmp_path, ROWS), "--vllm", "x.json"), (file(tmp_path, ROWS), "--tp", "8")):
        status, _, err = cli("score", *argv)
        assert status == 2 and err.count("\n") == 1


READERS = DATA / "readers"


def test_score__unknown_chip_is_wrong_input(cli: Cli) -> None:
    status, out, error = cli("score", "--vllm", str(READERS / "vllm_serve.json"), "--on", "8xfoo", "--tp", "8")
    assert (status, out) == (2, "")
    assert "no chip named 'foo'" in error


def test_score__vllm_result_of_a_user(cli: Cli) -> None:
    status, out, _ = cli("score", "--vllm", str(READERS / "vllm_serve.json"), "--on", "8xh100-sxm", "--tp", "8")
    assert status == 0
    # 10 ms over a floor of 1.61 ms; 53 % of what is expected is the prefill of others
    assert out.startswith("TPOT is 10 ms, predicted 9.48 ms (5 % too low), 6.2 times its floor; other requests' prefill takes 53 % of it.")
    assert "vllm_serve-1: served TPOT 10 ms measured, 9.48 ms expected (90 % " in out
    assert "the floor is" in out and "of its speed" in out and "Binds:   " in out
    rows = json.loads(cli("score", "--llama-bench", str(READERS / "llama_bench.json"), "-o", "json")[1])["rows"]
    told = [row for row in rows if row["measured"] is not None]
    assert told and all(row["binds"] == max(row["step_parts"], key=row["step_parts"].get) for row in told)
    assert all(row["of_limit"] < 1 for row in told)
    assert cli("score", "--vllm", str(READERS / "none.json"))[0] == 2


# -- nearest rows -----------------------------------------------------------------------------------------------------------------


def entry(**more: object) -> NearestEntry:
    known = {
        "chip": "h100_sxm", "family": "hopper", "engine": "vLLM", "model_class": "dense 70B", "kind": "serving", "measure": "served TPOT",
        "rows": 10, "median_error": 0.1, "cross_validated": True, "sources": "s", "date": "2026-01-01",
    }  # fmt: skip
    return NearestEntry(**(known | more))  # type: ignore[arg-type]


def test_nearest_rows__by_chip_engine_and_model() -> None:
    table = [
        entry(rows=5), entry(engine="SGLang", rows=50), entry(measure="decode", kind="decode", rows=99),
        entry(chip="h200_sxm", model_class="moe 30B"), entry(chip="a10g", family="other"),
    ]  # fmt: skip
    llama, hopper = model("llama-3.1-70b"), chip("h100-sxm")
    assert [each.rows for each in nearest_rows(hopper, llama, "vLLM", table)] == [5]
    assert [each.engine for each in nearest_rows(hopper, llama, "other", table)] == ["SGLang", "vLLM"]
    assert [each.chip for each in nearest_rows(hopper, model("qwen3-30b-a3b"), "vLLM", table)] == ["h200_sxm"]
    assert [each.engine for each in nearest_rows(chip("h200-sxm"), llama, "SGLang", table)] == ["SGLang"]
    assert nearest_rows(hopper, model("deepseek-v3"), "vLLM", table) == []
    assert nearest_rows(chip("tpu-v5p"), llama, "vLLM", table) == []


def test_unlike__steps_to_the_nearest_rows() -> None:
    """By hand: a chip of the kind 1, another engine 1, a size class 1, a format 1, a layout 1, of four to a new kind."""
    table = [entry(formats="bf16 fp8", layouts="tp")]
    llama, hopper, four = model("llama-3.1-70b"), chip("h100-sxm"), Layout(tp=4)
    about = subject(llama, hopper, "vllm", "fp8", four)
    assert unlike(about, table) == 0.0
    assert unlike(subject(llama, chip("h200-sxm"), "vllm", "fp8", four), table) == 0.25
    assert unlike(subject(llama, hopper, "sglang", "nvfp4", four), table) == 0.5
    assert unlike(subject(model("llama-3.1-8b"), hopper, "vllm", "fp8", four), table) == 0.5  # 8B and 30B lie between
    assert unlike(subject(model("deepseek-v3"), chip("tpu-v5p"), "other", "nvfp4"), table) == 1.0
    assert unlike(about, []) == 1.0
    several = subject(llama, hopper, "vllm", "fp8", Layout(tp=np.array([1, 4])))
    assert unlike(several, table).tolist() == [0.25, 0.0]


def test_nearest_rows__table_round_trip() -> None:
    made = nearest.entries([one(1.0, 1.1, id="a", fold="source x"), one(1.0, 1.3, id="b", fold="source y")], "2026-01-01")
    assert made == [
        entry(chip="c", family="f", model_class="dense 8B", kind="decode", measure="decode", rows=2, median_error=0.2),
    ]
    assert list(read(nearest.text(made))) == made
    assert shipped()
    assert model_class(model("deepseek-v3")) == "mla-moe 700B"


def test_plan__notes_the_nearest_measured_rows(capsys: pytest.CaptureFixture[str]) -> None:
    near = ["plan", "llama-3.1-70b", "--on", "8xh100-sxm", "--prompt", "1k", "--output", "1k"]
    assert main([*near, "--verbose"]) == 0
    assert "\nnote: nearest measured: " in capsys.readouterr().out
    assert main([*near[:3], "tpu-v5p-2x2x1", *near[4:], "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"].count("nearest measured: none within range of llama-3.1-70b on tpu_v5p") == 1


# -- the page ---------------------------------------------------------------------------------------------------------------------


def report(some: list[Residual]) -> Report:
    found = FoldResult(in_sample=tuple(some), clusters=tuple(some), quarters=(), intervals=(), count=1, seed=40)
    folded = Folded(result=found, rows=100, predicted=96, unstated=7)
    return Report(folded=folded, command="headway fit --folds", date="2026-01-01")


def test_accuracy_page__left_out_rows_newest_quarter_first() -> None:
    some = [one(1.0, 1.3, id=f"r{n}", fold="clusters 1 of 10", line=n, quarter=f"2026-Q{1 + n % 2}") for n in range(6)]
    text = page(report(some))
    assert "6 measurements of 96 published rows" in text and "96 are predicted (96.0%)" in text and "by seed 40" in text
    assert "| decode | 6 | 1 | 30.0% | 30.0% | 30.0% | 30.0% | 0% | 1.44 | 0% |" in text
    assert text.index("| 2026-Q2 | decode | 3 |") < text.index("| 2026-Q1 | decode | 3 |")
    assert "| decode | s | 6 | 30.0% | 0.26 | +0.26 | 0% | 1.44 |" in tables(report(some))
    assert "| decode | 1 | 30.0% | 30.0% | 0% | 1.44 | 50% |" in summary(report(some))


def test_by_cluster__each_cluster_once() -> None:
    """Nine rows of one cluster that are right, and one of another that is off by half."""
    some = [one(1.0, 1.0, id=f"r{n}", line=n) for n in range(9)] + [one(1.0, 1.5, id="x", source="t", line=9)]
    found = by_cluster(some)
    assert (found.rows, found.clusters, found.median, found.coverage) == (10, 2, 0.0, 0.5)
    assert found.macro == pytest.approx(0.25)


def test_generated_part__replaced_in_place() -> None:
    start, end = f"<!-- {PAGE}: generated, do not edit -->", f"<!-- {PAGE}: end -->"
    old = f"# Head\n\n{start}\nold\n{end}\n\ntail\n"
    new = inserted(old, PAGE, "new\n")
    assert new == f"# Head\n\n{start}\n\nnew\n\n{end}\n\ntail\n"
    assert inserted(new, PAGE, "new") == new
    with pytest.raises(BadFile):
        inserted("# Head\n", PAGE, "new", "docs/accuracy.md")


def test_accuracy_page__repository_page_has_the_generated_part() -> None:
    text = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    assert inserted(text, PAGE, "new") != text


def test_parity_picture__points_in_si() -> None:
    drawn = prediction_pictures.parity([one(0.01, 0.012), one(0.02, 0.015, source="t")], "decode", View())
    points = [point for name, rows in drawn.data.items() if name.startswith("parity_group") for point in rows]
    assert [(point["x"], point["y"]) for point in points] == [(0.01, 0.012), (0.02, 0.015)]
    assert "100% within a factor of 2" in drawn.title
    json.dumps(drawn.spec, allow_nan=False)
