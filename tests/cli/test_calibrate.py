"""`headway calibrate`: what runs say of their deployments, the profile that it writes, and what cannot be used in one clear line each."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

import headway as hw
from headway.core.catalog import PACKAGED
from headway.performance.calibration.profile import CONTENT, read_profile
from support.command import Answer, Cli, command
from support.paths import ROOT

HEAD = "id,model,hardware,n_chips,engine,engine_version,tp,mode,isl,osl,batch_or_concurrency,date,remark"
RUN = "llama-3.1-70b,h100-sxm,8,vllm,0.14,8,serving_concurrency,1000,500"
USERS = (4, 64, 256)
DAY = "2026-11-20"
READERS = ROOT / "tests" / "data" / "readers"
FACTORS = ("step", "fixed", "host", "start", "first")


def table(folder: Path, lines: Iterable[str], head: str = f"{HEAD},tpot_ms,ttft_ms", name: str = "runs.csv") -> str:
    path = folder / name
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return str(path)


def slower(folder: Path, factor: float, users: Iterable[int] = USERS, name: str = "runs.csv") -> str:
    """Runs of a server whose TPOT and TTFT are as predicted, times a factor."""
    lines = [f"{name[0]}{count},{RUN},{count},{DAY},mine" for count in users]
    answer = command("predict", table(folder, lines, HEAD, "load.csv"), "-o", "csv")
    predicted = list(csv.DictReader(io.StringIO(answer.text)))
    pairs = zip(lines, predicted, strict=True)
    return table(folder, [f"{line},{factor * float(row['tpot_ms'])},{factor * float(row['ttft_ms'])}" for line, row in pairs], name=name)


def run(line: str, **values: str) -> str:
    """A line of a table with some of its cells replaced."""
    cells = dict(zip(f"{HEAD},tpot_ms,ttft_ms".split(","), line.split(","), strict=True)) | values
    return ",".join(cells.values())


GOOD = f"good,{RUN},64,{DAY},,30,900"


def saved(into: Path, *words: object, name: str = "mine") -> Path:
    """The profile that runs were saved as."""
    answer = command("calibrate", *words, "--save", name, "--into", into)
    assert (answer.status, answer.err) == (0, "")
    return into / "calibrations" / f"{name.lower()}.toml"


def refusal(answer: Answer) -> str:
    """The one line of a command that was refused."""
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.count("\n") == 1 and answer.err.startswith("headway: ")
    return answer.err.removeprefix("headway: ").strip()


# -- what runs say ------------------------------------------------------------------------------------------------------------------


def test_runs__of_a_server_that_is_a_fifth_slower_say_so(tmp_path: Path, cli: Cli) -> None:
    (row,) = cli.rows("calibrate", slower(tmp_path, 1.2))
    assert (row["model"], row["chip"], row["chips"], row["layout"], row["engine"], row["runs"]) == (
        "llama-3.1-70b", "h100-sxm", 8, "tp=8", "vllm", 3,
    )  # fmt: skip
    assert row["tpot_ratio"] == pytest.approx(1.2, rel=1e-9) and row["ttft_ratio"] == pytest.approx(1.2, rel=1e-9)
    assert row["tpot_ratio_by_runs"] == pytest.approx(1, abs=0.02)
    assert row["tpot_half_by_runs"] < 0.75 * row["tpot_half"]
    assert row["step_factor_lo"] < 1.2 < row["step_factor_hi"]
    assert all(row[f"{name}_factor_lo"] <= row[f"{name}_factor"] <= row[f"{name}_factor_hi"] for name in FACTORS if row[f"{name}_factor"])


def test_runs__as_predicted_leave_every_factor_at_one(tmp_path: Path, cli: Cli) -> None:
    (row,) = cli.rows("calibrate", slower(tmp_path, 1.001))
    for name in FACTORS:
        assert row[f"{name}_factor"] is None or row[f"{name}_factor"] == pytest.approx(1, abs=0.01)


def test_first_line__is_the_answer_of_at_most_thirty_words(tmp_path: Path, cli: Cli) -> None:
    first = cli("calibrate", slower(tmp_path, 1.2)).text.splitlines()[0]
    assert first.startswith("3 runs of llama-3.1-70b on 8 h100-sxm (vllm, tp 8): TPOT +-") and "->" in first
    assert len(first.split()) <= 30


def test_first_line__names_the_factor_on_ttft_alone_which_is_not_the_change_of_ttft(cli: Cli) -> None:
    answer = cli.json("calibrate", ROOT / "tests/contract/golden/inputs/vllm_serve.json", "--on", "8xh100-sxm", "--tp", 8)
    (row,), first = answer["rows"], answer["answer"]
    assert f"a factor on TTFT alone makes its prediction {row['first_factor']:.3g} times as long" in first and len(first.split()) <= 30
    assert row["ttft_ratio"] / row["ttft_ratio_by_runs"] > 1.03 * row["first_factor"], "the other factors lengthen it too"


def test_several_deployments__have_a_row_and_a_section_each(tmp_path: Path, cli: Cli) -> None:
    other = run(GOOD, id="other", n_chips="4", tp="4", tpot_ms="40")
    file = table(tmp_path, [GOOD, run(GOOD, id="b", tpot_ms="31"), other])
    assert [(row["layout"], row["runs"]) for row in cli.rows("calibrate", file)] == [("tp=8", 2), ("tp=4", 1)]
    sections = read_profile(saved(tmp_path, file)).deployments
    assert [(key.layout, [one.id for one in runs]) for key, runs in sections.items()] == [("tp=8", ["good", "b"]), ("tp=4", ["other"])]


TOOLS = {
    "vllm_serve.json": 1, "vllm_appended.jsonl": 3, "sglang_serving.jsonl": 1, "trtllm_bench.json": 1, "inferencex.json": None,
    "aiperf": None, "requests.csv": 1, "llama_bench.json": None, "llama_bench.csv": None, "llama_bench.md": None,
}  # fmt: skip


@pytest.mark.parametrize("name", TOOLS)
def test_files__of_every_reader_of_score_are_known_by_what_they_hold(name: str, cli: Cli) -> None:
    facts = ["--on", "8xh100-sxm", "--tp", "8"] if not name.startswith(("llama", "inference")) else []
    facts += ["--model", "llama-3.1-8b"] if name.startswith(("requests", "sglang", "aiperf", "llama_bench.md")) else []
    facts += ["--on", "rtx4090"] if name.startswith("llama_bench.md") else []
    rows = cli.rows("calibrate", READERS / name, *facts)
    assert rows and all(row["runs"] >= 1 for row in rows)
    assert TOOLS[name] in (None, sum(row["runs"] for row in rows))


def test_files__several_at_once_are_one_profile(tmp_path: Path, cli: Cli) -> None:
    files = [slower(tmp_path, 1.1, (4,), "a.csv"), slower(tmp_path, 1.1, (64,), "b.csv")]
    (row,) = cli.rows("calibrate", *files)
    assert row["ids"] == "a4, b64"


def test_held_out__is_what_predict_says_by_the_other_runs_alone(tmp_path: Path, cli: Cli) -> None:
    table = ROOT / "tests" / "contract" / "golden" / "inputs" / "my_runs.csv"
    head, *lines = table.read_text(encoding="utf-8").splitlines()
    ratios = []
    for place, line in enumerate(lines):
        rest, alone = tmp_path / f"rest{place}.csv", tmp_path / "alone.csv"
        rest.write_text("\n".join([head, *(other for other in lines if other != line)]), encoding="utf-8")
        alone.write_text(f"{head}\n{line}\n", encoding="utf-8")
        hw.calibrate(str(rest), save="rest", into=str(tmp_path), replace_=True)
        (row,) = hw.predict(str(alone), catalog=[str(tmp_path)], calibration="rest")
        ratios.append(float(line.rpartition(",")[2]) / row["tpot_ms"])
    (whole,) = hw.calibrate(str(table)).rows()
    assert whole["tpot_ratio_by_others"] == pytest.approx(sorted(ratios)[1], rel=1e-6)
    assert whole["tpot_half_by_others"] > whole["tpot_half_by_runs"]  # a run less says less


def test_a_file_given_twice__counts_once(tmp_path: Path, cli: Cli) -> None:
    file, copy = slower(tmp_path, 1.1), tmp_path / "copy.csv"
    copy.write_text(Path(file).read_text(encoding="utf-8"), encoding="utf-8")
    answer = cli.json("calibrate", file, copy)
    assert answer["rows"][0]["runs"] == 3
    assert any("copy.csv" in note and "is the same as" in note for note in answer["notes"])


def test_ids_of_two_files__are_told_apart(tmp_path: Path, cli: Cli) -> None:
    lines = [GOOD, run(GOOD, tpot_ms="31")]
    files = [table(tmp_path, [line], name=f"{place}.csv") for place, line in enumerate(lines)]
    (row,) = cli.rows("calibrate", *files)
    assert row["runs"] == 2 and row["ids"].count("good@") == 2


def test_python__calibrates_as_the_command_does(tmp_path: Path, cli: Cli) -> None:
    file = slower(tmp_path, 1.2)
    rows = hw.calibrate(file, save="mine", into=str(tmp_path)).rows()
    assert (tmp_path / "calibrations" / "mine.toml").is_file()
    assert [{**row, "profile": None} for row in rows] == cli.rows("calibrate", file)


# -- the profile --------------------------------------------------------------------------------------------------------------------


def test_profile__keeps_the_runs_as_measured(tmp_path: Path, cli: Cli) -> None:
    file = table(tmp_path, [GOOD])
    profile = read_profile(saved(tmp_path / "new" / "folder", file, name="Mine"))
    (one,) = profile.runs
    assert (one.id, one.file, one.date, profile.is_edited) == ("good", "runs.csv", DAY, False)
    assert {"tpot_ms": 30, "ttft_ms": 900, "isl": 1000, "osl": 500, "tp": 8, "batch_or_concurrency": 64}.items() <= dict(one.cells).items()
    assert len(one.hash) == 64


def test_profile__is_written_anew_from_itself(tmp_path: Path, cli: Cli) -> None:
    path = saved(tmp_path, slower(tmp_path, 1.2))
    before = path.read_text(encoding="utf-8")
    saved(tmp_path, path, "--replace")
    assert path.read_text(encoding="utf-8") == before


def test_profile__takes_more_runs(tmp_path: Path, cli: Cli) -> None:
    first, more = slower(tmp_path, 1.2, (4,), "a.csv"), slower(tmp_path, 1.2, (64,), "b.csv")
    path = saved(tmp_path, first)
    saved(tmp_path, path, first, more, "--replace")
    assert [each.id for each in read_profile(path).runs] == ["a4", "b64"]


def test_an_existing_name__is_left_without_replace(tmp_path: Path, cli: Cli) -> None:
    file = slower(tmp_path, 1.2)
    path = saved(tmp_path, file)
    before = path.read_bytes()
    assert "exists; it was left as it is: --replace" in refusal(cli("calibrate", file, "--save", "mine", "--into", tmp_path))
    assert path.read_bytes() == before
    saved(tmp_path, file, "--replace")


def test_the_wheel__has_no_profile() -> None:
    assert not (PACKAGED / "calibrations").exists()


# -- list and show ------------------------------------------------------------------------------------------------------------------


def test_list_and_show__take_a_folder_with_calibrations_alone(tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "mine"
    saved(folder, slower(tmp_path, 1.2), name="h100")
    assert [path.name for path in folder.iterdir()] == ["calibrations"]
    (row,) = cli.rows("list", "calibrations", "--catalog", folder)
    assert (row["name"], row["runs"], row["deployments"], row["first"], row["state"]) == ("h100", 3, 1, DAY, "current")
    (card,) = cli.rows("show", "calibration", "h100", "--catalog", folder)
    assert card["tpot_ratio"] == pytest.approx(1.2, rel=1e-9)
    text = cli("show", "calibration", "h100", "--catalog", folder, "-o", "toml").text
    assert text == (folder / "calibrations" / "h100.toml").read_text(encoding="utf-8")


def test_list__of_what_a_folder_adds_to_takes_one_and_others_refuse_it(cli: Cli) -> None:
    folder = ROOT / "tests" / "contract" / "golden" / "inputs" / "catalog"
    names = [[row["name"] for row in cli.rows("list", "chips", *more)] for more in ((), ("--catalog", folder))]
    assert set(names[1]) - set(names[0]) == {"dream1"}
    assert "wants one of chips, systems" in refusal(cli("list", "laws", "--catalog", folder))


def test_list__without_profiles_is_empty(cli: Cli) -> None:
    assert cli.rows("list", "calibrations") == []


def test_show__of_an_unknown_name_says_the_nearest(tmp_path: Path, cli: Cli) -> None:
    saved(tmp_path, slower(tmp_path, 1.2))
    assert "did you mean mine?" in refusal(cli("show", "calibration", "mime", "--catalog", tmp_path / "calibrations" / ".."))


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        (f'headway = "{hw.__version__}"', 'headway = "0.0.9"', f"headway is {hw.__version__}, and 0.0.9 wrote it"),
        ("tpot_ms = 30", "tpot_ms = 60", "its file was edited since headway wrote it"),
        ('facts = "', 'facts = "0', "facts or fits have changed since it was written"),
        ("format = 1", "format = 2", "is of format 2, newer than this headway reads (1): update headway, or --calibration none"),
        ("format = 1", "form = 1", "is no calibration profile"),
        ("excess = ", "excess = nan #", "is not valid TOML"),
        ("slopes = [", "slopes = [nan, ", "wants excess, a number, and slopes"),
    ],
)
def test_list__tells_what_is_wrong_with_a_profile(old: str, new: str, state: str, tmp_path: Path, cli: Cli) -> None:
    path = saved(tmp_path / "c", table(tmp_path, [GOOD]))
    changed(path, old, new)
    if old.startswith(("headway", "facts")):  # as headway of then would have written it
        line = CONTENT.search(path.read_text(encoding="utf-8"))
        assert line
        changed(path, line[0], f'content = "{read_profile(path).content}"\n')
    (row,) = cli.rows("list", "calibrations", "--catalog", tmp_path / "c")
    assert state in row["state"]


# -- what cannot be used ------------------------------------------------------------------------------------------------------------


BAD = [
    (run(GOOD, tpot_ms="", ttft_ms=""), "states no measurement"),
    (run(GOOD, batch_or_concurrency="0"), "batch_or_concurrency: got '0'; wants a number above 0"),
    (run(GOOD, tpot_ms="nan"), "tpot_ms: got 'nan'; wants a finite number"),
    (run(GOOD, model="llama-9"), "no model named 'llama-9'"),
    (run(GOOD, hardware="h1000"), "h1000"),
    (run(GOOD, tpot_ms="-3"), "tpot_ms: got '-3'"),
]


@pytest.mark.parametrize(("line", "why"), BAD)
def test_a_bad_row__is_told_and_the_rest_written(line: str, why: str, tmp_path: Path, cli: Cli) -> None:
    file = table(tmp_path, [GOOD, line.replace("good", "bad", 1)])
    answer = cli.json("calibrate", file, "--save", "mine", "--into", tmp_path)
    assert [note for note in answer["notes"] if "runs.csv line 3: " in note and why in note]
    assert [each.id for each in read_profile(tmp_path / "calibrations" / "mine.toml").runs] == ["good"]


@pytest.mark.parametrize(("line", "why"), BAD)
def test_no_row_that_can_be_used__is_refused_and_nothing_written(line: str, why: str, tmp_path: Path, cli: Cli) -> None:
    assert why in refusal(cli("calibrate", table(tmp_path, [line]), "--save", "mine", "--into", tmp_path / "c"))
    assert not list(tmp_path.rglob("*.toml"))


def test_two_rows_of_one_id__are_both_left_out(tmp_path: Path, cli: Cli) -> None:
    lines = [GOOD, run(GOOD, id="twin"), run(GOOD, id="twin", tpot_ms="60")]
    answer = cli.json("calibrate", table(tmp_path, lines))
    assert answer["rows"][0]["ids"] == "good"
    assert sum("id 'twin' is there twice" in note for note in answer["notes"]) == 2
    assert "is there twice" in refusal(cli("calibrate", table(tmp_path, lines[1:])))


def test_runs_that_contradict_each_other__are_named(tmp_path: Path, cli: Cli) -> None:
    answer = cli.json("calibrate", table(tmp_path, [GOOD, run(GOOD, id="wild", tpot_ms="90")]))
    assert any("contradicts" in note and "good" in note and "wild" in note for note in answer["notes"])
    alike = cli.json("calibrate", table(tmp_path, [GOOD, run(GOOD, id="near", tpot_ms="31")]))
    assert not any("contradicts" in note for note in alike["notes"])
    assert answer["rows"][0]["tpot_half_by_runs"] > alike["rows"][0]["tpot_half_by_runs"]


def test_headways_own_predictions__are_no_measurements(tmp_path: Path, cli: Cli) -> None:
    answer = cli("predict", table(tmp_path, [GOOD]), "-o", "csv").text
    own = tmp_path / "own.csv"
    own.write_text(answer, encoding="utf-8")
    assert "headway's own predictions" in refusal(cli("calibrate", own))
    own.write_text(json.dumps(cli.json("predict", table(tmp_path, [GOOD]))), encoding="utf-8")
    assert "headway's own predictions" in refusal(cli("calibrate", own))
    assert "headway's own predictions" in refusal(cli("calibrate", slower(tmp_path, 1.0)))


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "", ".hidden", "none", "a" * 80, "x\0"])
def test_names__that_are_paths_are_refused(name: str, tmp_path: Path, cli: Cli) -> None:
    into = tmp_path / "c"
    assert "--save" in refusal(cli("calibrate", table(tmp_path, [GOOD]), f"--save={name}", "--into", into))
    assert not into.exists()


def test_folders__that_cannot_be_written_are_one_line(tmp_path: Path, cli: Cli) -> None:
    file = table(tmp_path, [GOOD])
    assert "cannot be written" in refusal(cli("calibrate", file, "--save", "mine", "--into", file))
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if os.access(closed, os.W_OK):
        pytest.skip("this user may write everywhere")
    assert "cannot be written" in refusal(cli("calibrate", file, "--save", "mine", "--into", closed))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--into", "x"), "--into: got 'x'; wants --save NAME"), (("--replace",), "wants --save NAME"),
        (("--tp", "8"), "no value with a table"), (("--set", "chip.hbm_bw=1TB/s"), "each row names its own machine"),
    ],
)  # fmt: skip
def test_flags__that_change_nothing_are_refused(words: tuple[str, ...], why: str, tmp_path: Path, cli: Cli) -> None:
    assert why in refusal(cli("calibrate", table(tmp_path, [GOOD]), *words))


@pytest.mark.parametrize("text", ["", "no,such\n1,2\n", '{"a": 1}', "[1, 2", "{", "plain words\n"])
def test_files__of_no_kind_are_one_line(text: str, tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "file.json"
    path.write_text(text, encoding="utf-8")
    refusal(cli("calibrate", path))
    refusal(cli("calibrate", tmp_path / "missing.csv"))


# -- profiles in force --------------------------------------------------------------------------------------------------------------


def test_a_profile__moves_predictions_of_other_runs_to_what_was_measured(tmp_path: Path, cli: Cli) -> None:
    rows = slower(tmp_path, 1.2, (16, 128), "rest.csv")
    words = ("predict", rows, "--catalog", saved(tmp_path / "c", slower(tmp_path, 1.2)).parents[1])
    measured = [float(row["tpot_ms"]) for row in csv.DictReader(io.StringIO(Path(rows).read_text(encoding="utf-8")))]
    by_runs, without = cli.rows(*words), cli.rows(*words, "--calibration", "none")
    assert [row["tpot_ms"] for row in by_runs] == pytest.approx(measured, rel=0.03)
    assert [row["tpot_ms"] for row in without] == pytest.approx([value / 1.2 for value in measured], rel=1e-9)
    assert cli.rows("predict", rows) == [{key: row[key] for key in cli.rows("predict", rows)[0]} for row in without]


def test_a_profile__of_another_version_is_made_anew_with_a_note(tmp_path: Path, cli: Cli) -> None:
    path, rows = saved(tmp_path / "c", slower(tmp_path, 1.2)), slower(tmp_path, 1.0, (16,), "rows.csv")
    words = ("predict", rows, "--catalog", tmp_path / "c")
    current = cli.json(*words)
    assert not any("made anew" in note for note in current["notes"])
    changed(path, f'headway = "{hw.__version__}"', 'headway = "0.0.9"')
    changed(path, "excess = ", "excess = 9")  # what it said under that version does not count
    old = cli.json(*words)
    wants = f"calibration mine was made anew from its runs: headway is {hw.__version__}, and 0.0.9 wrote it"
    assert wants in old["notes"] and old["rows"] == current["rows"]


def test_a_profile__that_was_edited_is_told_and_goes_by_its_runs(tmp_path: Path, cli: Cli) -> None:
    path, rows = saved(tmp_path / "c", table(tmp_path, [GOOD])), slower(tmp_path, 1.0, (16,), "rows.csv")
    words = ("predict", rows, "--catalog", tmp_path / "c")
    (current,) = cli.rows(*words)
    changed(path, "tpot_ms = 30", "tpot_ms = 60")
    changed(path, 'row = { id = "good", ', "row = { ")
    edited = cli.json(*words)
    assert any("calibration mine was made anew from its runs: its file was edited" in note for note in edited["notes"])
    assert edited["rows"][0]["tpot_ms"] > 1.3 * current["tpot_ms"]
    changed(path, "tpot_ms = 60", "tpot_ms = -60")
    none = cli.json(*words)
    assert any("calibration mine: left out, since they are not predicted now: good" in note for note in none["notes"])
    assert none["rows"][0]["tpot_ms"] == cli.rows("predict", rows)[0]["tpot_ms"]


def test_a_profile__of_a_newer_format_stops_an_answer_in_one_line_that_says_how_to_go_on(tmp_path: Path, cli: Cli) -> None:
    path, rows = saved(tmp_path / "c", table(tmp_path, [GOOD])), slower(tmp_path, 1.0, (16,), "rows.csv")
    changed(path, "format = 1", "format = 2")
    words = ("predict", rows, "--catalog", tmp_path / "c")
    assert "is of format 2, newer than this headway reads (1): update headway, or --calibration none" in refusal(cli(*words))
    assert cli.rows(*words, "--calibration", "none") == cli.rows("predict", rows)


def test_a_profile__of_another_model_and_chip_changes_nothing_and_says_so_when_named(tmp_path: Path, cli: Cli) -> None:
    other = run(GOOD, model="llama-3.1-8b", hardware="b200-sxm", n_chips="1", tp="1", tpot_ms="5", ttft_ms="80")
    saved(tmp_path / "c", table(tmp_path, [other]))
    rows = slower(tmp_path, 1.0, (16,), "rows.csv")
    words = ("predict", rows, "--catalog", tmp_path / "c")
    assert [row["tpot_ms"] for row in cli.rows(*words)] == [row["tpot_ms"] for row in cli.rows("predict", rows)]
    assert "--calibration: got 'mine'" in refusal(cli(*words, "--calibration", "mine"))
    assert "no calibration named 'mime'; did you mean mine?" in refusal(cli(*words, "--calibration", "mime"))


def test_a_file_that_cannot_be_read__is_told_and_the_rest_written(tmp_path: Path, cli: Cli) -> None:
    good, broken, headless = slower(tmp_path, 1.2), tmp_path / "broken.json", tmp_path / "headless.csv"
    broken.write_text("[1, 2", encoding="utf-8")
    headless.write_text("no,such\n1,2\n", encoding="utf-8")
    answer = cli.json("calibrate", good, broken, headless, "--save", "mine", "--into", tmp_path)
    assert answer["rows"][0]["runs"] == 3 and (tmp_path / "calibrations" / "mine.toml").is_file()
    assert [name for name in ("broken.json", "headless.csv") if any(note.startswith(f"{name} line 1: ") for note in answer["notes"])] == [
        "broken.json", "headless.csv",
    ]  # fmt: skip
    refusal(cli("calibrate", good, tmp_path / "missing.csv"))


def test_nothing_that_can_be_used__leaves_no_folder(tmp_path: Path, cli: Cli) -> None:
    refusal(cli("calibrate", table(tmp_path, [run(GOOD, model="llama-9")]), "--save", "mine", "--into", tmp_path / "c"))
    assert not (tmp_path / "c").exists()
