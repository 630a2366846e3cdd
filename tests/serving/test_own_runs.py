"""Every face takes up the user's own runs alike, and without a profile all is as it was."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from headway.core.question import question_of
from headway.performance.calibration.in_force import using
from headway.performance.calibration.key import RunKey
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.posterior import months
from headway.performance.calibration.profile import CalibrationRun, Profile
from support.command import Answer, Cli

HEAD = "id,model,hardware,n_chips,engine,weight_precision,kv_precision,tp,mode,isl,osl,batch_or_concurrency"
PLACE = "llama-3.1-70b,h100-sxm,8,vllm,bf16,bf16,8,serving_concurrency,2000,300"
RUNS = (("one", 1, 110, 14.0), ("some", 16, 260, 19.5), ("many", 64, 700, 36.0))  # id, users, TTFT and TPOT in ms: a slow server
USERS = 32
SERVED = ("llama-3.1-70b", "--on", "8xh100-sxm", "--tp", 8, "--kv", "bf16", "--prompt", 2000, "--output", 300)
PLAYED = ("sim", *SERVED, "--engine", "vllm", "--rate", 2, "--requests", 400, "--loop", "plain")
CLOCK = "wall_s"
TIMES = ("ttft_s", "ttft_lo_s", "ttft_hi_s", "tpot_s", "tpot_lo_s", "tpot_hi_s")


def written(path: Path, rows: list[str], head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path, cli: Cli) -> Path:
    """A catalogue folder with a profile of three runs under vLLM."""
    rows = [f"{name},{PLACE},{users},{ttft},{tpot}" for name, users, ttft, tpot in RUNS]
    runs = written(tmp_path / "runs.csv", rows, f"{HEAD},ttft_ms,tpot_ms")
    cli("calibrate", runs, "--save", "mine", "--into", tmp_path / "own")
    return tmp_path / "own"


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A table of a row of that deployment, and of the same under another engine."""
    return written(tmp_path / "rows.csv", [f"x,{PLACE},{USERS}", f"y,{PLACE.replace('vllm', 'sglang')},{USERS}"])


def served(cli: Cli, *flags: Any, engine: str = "vllm") -> dict[str, Any]:
    return cli("serve", *SERVED, "--engine", engine, "--batch", USERS, *flags, "-o", "json").rows[0]


def predicted(cli: Cli, table: Path, *flags: Any) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in cli("predict", table, *flags, "-o", "json").rows}


def same(one: Answer, other: Answer) -> bool:
    """Whether two answers agree to the last digit, but for the command and the time that they took."""
    documents: list[dict[str, Any]] = [answer.json | {"command": 0} for answer in (one, other)]
    for document in documents:
        document["notes"] = [note for note in document["notes"] if not note.startswith("no effect: --calibration none")]
        for row in document["rows"]:
            row.pop(CLOCK, None)
        for change in document["helps"]:  # whose commands are the question's
            change["effect"] = change["effect"].partition("; try: ")[0]
    return documents[0] == documents[1]


@pytest.mark.parametrize("engine", ["vllm", "none"])
def test_serve__without_profile_is_calibration_none(cli: Cli, folder: Path, engine: str) -> None:
    question = ("serve", *SERVED, "--engine", engine, "--batch", "1,32", "-o", "json")
    plain = cli(*question)
    assert same(plain, cli(*question, "--calibration", "none"))
    assert same(plain, cli(*question, "--catalog", folder, "--calibration", "none"))
    assert same(plain, cli(*question, "--catalog", folder)) == (engine == "none"), "the step models without an engine have no runs"


@pytest.mark.parametrize("question", [PLAYED, ("plan", *SERVED, "--engine", "vllm", "--tpot", "60ms"), ("predict",)])
def test_other_verbs__without_profile_are_calibration_none(cli: Cli, folder: Path, asked: Path, question: tuple[Any, ...]) -> None:
    words = (*question, *([asked] if question == ("predict",) else []), "-o", "json")
    plain = cli(*words)
    assert same(plain, cli(*words, "--calibration", "none"))
    assert same(plain, cli(*words, "--catalog", folder, "--calibration", "none"))
    assert not same(plain, cli(*words, "--catalog", folder))


def test_serve_and_predict__are_one_assembly_by_runs_too(cli: Cli, folder: Path, asked: Path) -> None:
    for flags in ((), ("--catalog", folder)):
        row, table = served(cli, *flags), predicted(cli, asked, *flags)["x"]
        for key in TIMES:
            stem = key.removesuffix("_s").replace("ttft", "ttft_ms").replace("tpot", "tpot_ms")
            assert row[key] * 1e3 == pytest.approx(table[stem], rel=1e-9), key
        assert row["tok_per_s"] == pytest.approx(table["output_tok_s_total"], rel=1e-9)


def test_serve__of_slow_runs_is_slower_and_surer_above_the_same_floor(cli: Cli, folder: Path) -> None:
    before, after = served(cli), served(cli, "--catalog", folder)
    low, high = RUNS[1][3] / 1e3, RUNS[2][3] / 1e3
    assert before["tpot_s"] < after["tpot_s"] and low < after["tpot_s"] < high, "between the runs of fewer and of more users"
    assert after["tpot_hi_s"] / after["tpot_lo_s"] < 0.9 * before["tpot_hi_s"] / before["tpot_lo_s"]
    assert {key: value for key, value in after.items() if "floor" in key} == {key: value for key, value in before.items() if "floor" in key}


def test_serve__under_another_engine_refuses_the_profile(cli: Cli, folder: Path) -> None:
    assert served(cli, "--catalog", folder, engine="sglang") == served(cli, engine="sglang")
    question = ("serve", *SERVED, "--engine", "sglang", "--batch", USERS, "--catalog", folder)
    refused = cli(*question, "--calibration", "mine")
    assert (refused.status, refused.err.count("\n")) == (2, 1) and "--calibration" in refused.err


def test_predict__says_which_runs_it_goes_by_and_reads_no_measurement(cli: Cli, folder: Path, asked: Path, tmp_path: Path) -> None:
    rows = predicted(cli, asked, "--catalog", folder)
    assert {name: (row["calibrated_by"], row["calibrated_runs"]) for name, row in rows.items()} == {"x": ("mine", 3), "y": (None, None)}
    assert rows["y"] == predicted(cli, asked)["y"]
    measured = [(123, 4.5), (67, 89.0), (10, 1.0)]
    answers = []
    for order in (measured, random.Random(4).sample(measured, 3)):
        lines = [f"r{number},{PLACE},{2**number},{ttft},{tpot}" for number, (ttft, tpot) in enumerate(order)]
        table = written(tmp_path / "measured.csv", lines, f"{HEAD},ttft_ms,tpot_ms")
        answers.append(cli("predict", table, "--catalog", folder, "-o", "csv").text)
    assert answers[0] == answers[1]


def test_first_note_facts_and_terms__name_the_runs(cli: Cli, folder: Path) -> None:
    answer = cli("serve", *SERVED, "--engine", "vllm", "--batch", USERS, "--catalog", folder, "--explain", "tpot_s", "-o", "json")
    assert answer.notes[0].startswith("calibrated on 3 runs") and "(mine): TPOT +-" in answer.notes[0] and ", else +-" in answer.notes[0]
    assert [fact["name"] for fact in answer.json["facts"]["calibration"]] == ["mine"] and answer.json["facts"]["calibration"][0]["hash"]
    assert "mine:one" in str(answer.json["explain"]["tpot_s"]) and "step factor" in str(answer.json["explain"]["tpot_s"])


def test_sim__takes_the_factors_of_runs(cli: Cli, folder: Path) -> None:
    before, after = (cli(*PLAYED, *flags, "-o", "json") for flags in ((), ("--catalog", folder)))
    assert after.notes[0].startswith("calibrated on 3 runs")
    laws, runs = served(cli), served(cli, "--catalog", folder)
    grown = after.rows[0]["mean_tpot_s"] / before.rows[0]["mean_tpot_s"]
    assert math.log(grown) == pytest.approx(math.log(runs["tpot_s"] / laws["tpot_s"]), abs=0.12), "a step of fewer sequences"


def test_plan__replayed_by_sim_agrees(cli: Cli, folder: Path, tmp_path: Path) -> None:
    question = ("plan", *SERVED, "--engine", "vllm", "--rate", 2, "--tpot-p95", "80ms", "--catalog", folder, "-o", "json")
    answer = cli(*question)
    saved = tmp_path / "plan.json"
    saved.write_text(answer.out, encoding="utf-8")
    played = cli("sim", "--plan", saved, "-o", "json")
    assert played.notes[0].startswith("calibrated on 3 runs"), "the plan's folders hold the profile"
    limit = answer.json["checked"]["limits"][0]
    assert played.rows[0]["p95_tpot_s"] == pytest.approx(limit["simulated_s"], rel=0.1)


def test_notes__say_where_a_profile_holds_no_longer(cli: Cli, tmp_path: Path) -> None:
    head, dated = f"{HEAD},ttft_ms,tpot_ms,source_date,engine_version", "2026-01-05,0.12.0"
    runs = written(tmp_path / "runs.csv", [f"{name},{PLACE},{users},{ttft},{tpot},{dated}" for name, users, ttft, tpot in RUNS], head)
    cli("calibrate", runs, "--save", "mine", "--into", tmp_path)
    later = [f"z{users},{PLACE},{users},{3 * ttft},{3 * tpot},2026-02-05,0.13.0" for _, users, ttft, tpot in RUNS]
    notes = cli("score", written(tmp_path / "later.csv", later, head), "--catalog", tmp_path, "-o", "json").notes
    for words in ("before calibration -> after", "3 later runs outside the interval", "3 rows are of another version"):
        assert any(words in note for note in notes), words
    served = cli("serve", *SERVED, "--engine", "vllm", "--batch", USERS, "--catalog", tmp_path, "-o", "json").notes
    assert served[0].startswith("calibrated on 3 runs of 2026-01") and "months old: of what it says of a step" in served[1]
    made = cli("calibrate", runs, "-o", "json").notes
    left = next(note for note in made if "months old" in note)
    age = months("") - months("2026-01-05")  # half of a step's part after eight months, of the others after half a month
    assert f"of a step {100 * 0.5 ** (age / 8):.0f} % is left" in left and "TTFT by itself nothing" in left


def test_serve__of_several_layouts_is_each_alone(cli: Cli, folder: Path) -> None:
    def rows(degrees: str) -> list[dict[str, Any]]:
        words = [degrees if word == 8 else word for word in SERVED]  # in place of --tp 8
        return cli("serve", *words, "--engine", "vllm", "--batch", USERS, "--catalog", folder, "-o", "json").rows

    together = rows("2,8")
    for row in together:
        (alone,) = rows(str(row["tp"]))
        assert {key: row[key] for key in TIMES} == pytest.approx({key: alone[key] for key in TIMES}, rel=1e-12)
    widths = [math.log(row["tpot_hi_s"] / row["tpot_lo_s"]) for row in together]
    assert widths[1] < widths[0], "the layout that was measured is surer"


LATE = 1.3  # measured TTFT over what follows from the steps


def late() -> Profile:
    """A run that found TTFT late and nothing else, so often that nothing is left open."""
    key = RunKey(model="llama-3.1-70b", chip="h100_sxm", chips=8, layout="tp=8", weights="bf16", kv="bf16", engine="vllm")
    found = Observation(run="late:it", key=key, month="", quantity="ttft", slopes=(0.0, 0.0, 0.0, 0.0, 1.0), excess=math.log(LATE))
    run = CalibrationRun(id="it", file="", hash="", date="", cells=(), observations=(found,) * 400)
    return Profile(name="late", runs=(run,), headway="", facts="")


@pytest.mark.parametrize(("verb", "ttft", "tpot"), [("sim", "mean_ttft_s", "mean_tpot_s"), ("serve", "ttft_s", "tpot_s")])
def test_ttft__has_its_own_factor_and_the_loop_goes_on_at_its_own_time(verb: str, ttft: str, tpot: str) -> None:
    load = {"rate": "2", "requests": "400", "loop": "plain"} if verb == "sim" else {"batch": str(USERS)}
    about = {"model": "llama-3.1-70b", "on": "8xh100-sxm", "tp": "8", "kv": "bf16", "engine": "vllm", "prompt": "2000", "output": "300"}
    question = question_of(verb).from_values(about | load)
    (before,) = question.answer().rows
    with using((late(),)):
        (after,) = question.answer().rows
    assert after[ttft] / before[ttft] == pytest.approx(LATE, rel=0.01)
    assert after[tpot] == before[tpot], "no step takes longer"


def test_serve__of_a_published_checkpoint_goes_by_runs_of_its_architecture(cli: Cli, folder: Path) -> None:
    words = ["meta-llama/Llama-3.1-70B-Instruct", *SERVED[1:]]
    row = cli("serve", *words, "--engine", "vllm", "--batch", USERS, "--catalog", folder, "-o", "json").rows[0]
    assert {key: row[key] for key in TIMES} == {key: value for key, value in served(cli, "--catalog", folder).items() if key in TIMES}


def test_own_runs__of_an_older_engine_hold_for_a_question_that_names_no_version(cli: Cli, tmp_path: Path) -> None:
    """A question is of the newest engine; runs of an older one are taken over its predictions, so that it answers what was measured."""
    answers = []
    for version in ("", "0.6.0"):
        table = tmp_path / f"runs{version}.csv"
        runs = [f"r{users},llama-3.1-8b,h100-sxm,1,1,serving_concurrency,vllm,{version},bf16,1000,500,{users},{tpot},2026-11-20"
                for users, tpot in ((1, 9.0), (32, 14.0), (128, 27.0))]  # fmt: skip
        head = "id,model,hardware,n_chips,tp,mode,engine,engine_version,weight_precision,isl,osl,batch_or_concurrency,tpot_ms,date"
        table.write_text("\n".join([head, *runs]), encoding="utf-8")
        folder = tmp_path / f"profile{version}"
        assert cli("calibrate", str(table), "--save", "mine", "--into", str(folder))[0] == 0
        question = "serve llama-3.1-8b --on h100-sxm --engine vllm --prompt 1000 --output 500 --batch 32"
        answers += cli.rows(f"{question} --catalog {folder}")
    newest, old = answers
    assert old["tpot_s"] == pytest.approx(newest["tpot_s"], rel=0.01)
    assert old["tpot_lo_s"] < 14e-3 < old["tpot_hi_s"]
    assert old["tpot_hi_s"] / old["tpot_s"] == pytest.approx(newest["tpot_hi_s"] / newest["tpot_s"], rel=0.02)
