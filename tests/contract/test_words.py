"""Words of every verb: the answer in thirty words, one table that fits, what binds, what helps, at most five notes, help and refusals."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.golden.golden_answers import INPUTS
from headway import QUESTIONS as VERBS
from headway.cli.main import main, parser_of
from headway.core import schema
from headway.core.question import Edits
from headway.core.text_table import fitting
from headway.models import hub
from headway.report import output, words
from headway.report.output import by_weight
from headway.report.result import Result
from headway.report.words import sentence
from support.command import Cli
from support.documented import commands

MODES = (
    "fit --from inputs/fit_rows.csv --out .", "show system gb200-nvl72", "list tiers", "list sheets", "rack --by-year",
    "price --memory-share h100-sxm", "web lecture RB-10 --link", "mcp --list",
    "sweep inputs/study.toml --processes 1 --dry-run",
    "price llama-3.1-70b --on 8xh100-sxm --prompt 4k --output 1k --tp 8 --batch 64 --chip-price 2.2..4.5 --utilisation 0.3..0.7",
    "price deepseek-v3 --on 8xh200-sxm --prompt 4k --output 1k --chip-price 2 --hit 0..0.95 --tp 8 --output-price 2.19 --input-price 0.55",
    "price --sheet inputs/sheets.json", "score inputs/measured.csv --each", "score --aiperf inputs/aiperf --on h100-sxm --engine vllm",
    "cache llama-3.3-70b --on h100 --fresh 4k/s --sheet claude-opus-4.6", "cache --workload inputs/talk.csv --ttl 2min,never",
    "cache deepseek-v3 --kv bf16 --hit-tokens 342B/d --new-tokens 434B/d --hold 5min,1h,24h", "lecture", "lecture RB",
    "cache deepseek-v3 --on h100 --fresh 4030/s --hold 1min..48h*4", "scale --flop 1e24 --tokens 2T --weight-bits 8",
    "plan llama-3.1-70b --on 8xh200-sxm --prompt 2k --output 300 --disaggregate", "plan llama-3.1-405b --on h100-sxm",
    "plan llama-3.1-70b --on h200-sxm --prompt 2k --output 300 --rate 40/s --tpot 30ms --launch vllm",
    "plan llama-3.1-8b --on 8xh100-sxm --prompt 1k --output 1k --tpot 10ms..40ms*2", "serve llama-3.1-405b --on h100-sxm --context 1k",
    "serve llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 64 --prompt 1k --output 1k", "train llama-3.1-405b --on 8xh100-sxm --tokens 1T",
    "sim llama-3.1-8b --on h100 --rate 2,20 --prompt 2k --output 300 --requests 100 --kv-tokens 40k --loop plain",
    "sim llama-3.1-8b --on h100 --users 4 --prompt 1k --output 50 --requests 50 --loop plain",
)  # fmt: skip
WIDTHS = (80, 120, 200)
LOAD = re.compile(r"--(rate|users|trace) (?!\S*(,|[.]{2}))")  # one load of a plan is simulated, a list or range of loads only searched


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the commands name."""
    path = tmp_path_factory.mktemp("words")
    shutil.copytree(INPUTS, path / "inputs")
    return path


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, output.Answer]:
    """The answer of each documented command and of each mode, as it would be written."""
    written: list[output.Answer] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(output, "write", lambda answer, how, command: written.append(answer))
        named = {" ".join(argv): argv for argv in [*commands(), *(line.split() for line in MODES)]}
        for argv in named.values():
            assert main(argv) == 0, argv
    return dict(zip(named, written, strict=True))


def text(answer: output.Answer) -> list[str]:
    out = io.StringIO()
    output.text(answer, out)
    return out.getvalue().splitlines()


def rules(lines: list[str]) -> list[str]:
    """The line below the head of each table."""
    return [line for line in lines if line and set(line) == {"─"}]


def document(answer: output.Answer, command: str) -> dict[str, Any]:
    out = io.StringIO()
    output.to_json(answer, ["headway", *command.split()], out)
    return json.loads(out.getvalue())


# -- the answer -----------------------------------------------------------------------------------------------------------------


def test_answer__every_verb_is_asked(answers: dict[str, output.Answer]) -> None:
    assert {command.split()[0] for command in answers} == set(VERBS) - {"measure"}  # whose answer is this machine's: tests/reality


def test_answer__one_sentence_of_at_most_thirty_words(answers: dict[str, output.Answer]) -> None:
    counts = [(len(answer.words.headline.split()), answer.words.headline) for answer in answers.values()]
    print("\n".join(f"{count:3} {headline}" for count, headline in counts))
    assert [entry for entry in counts if not 0 < entry[0] <= words.MOST_WORDS] == []


def test_answer__is_the_first_line_of_the_text(answers: dict[str, output.Answer]) -> None:
    wrong = [command for command, answer in answers.items() if text(answer)[0] != document(answer, command)["answer"]]
    assert wrong == []


def test_answer__fields_of_the_contract(answers: dict[str, output.Answer]) -> None:
    keys = ["headway", "command", "answer", "binds", "helps", "launch", "checked", "columns", "rows", "notes"]
    for command, answer in answers.items():
        told = document(answer, command)
        assert list(told)[: len(keys)] == keys, command
        assert told["binds"] is None or told["binds"], command
        assert all(set(change) == {"change", "effect", "gain"} and change["change"] and change["effect"] for change in told["helps"])
        gains = [change["gain"] or 0.0 for change in told["helps"]]
        assert gains == sorted(gains, reverse=True), command
        simulated = command.startswith("sim ") or (command.startswith("plan ") and LOAD.search(command) is not None)
        assert (told["checked"] is None) == (not simulated), command


# -- the table and what is below it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_table__one_that_fits_the_terminal(answers: dict[str, output.Answer], monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    offenders = []
    for command, answer in answers.items():
        lines = text(answer)
        marks = rules(lines)
        below = output.lines(answer)
        end = next((at for at, line in enumerate(lines) if at and (line.startswith("...") or line in below)), len(lines))
        table = lines[1:end] if marks and command.split()[0] != "lecture" else marks
        wide = [line for line in table if len(line) > width]
        if len(marks) > 1 or wide:
            offenders.append((command, len(marks), wide[:1]))
    assert offenders == []


def test_table__csv_has_the_columns_that_a_narrow_one_leaves_out(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    command = "serve llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 1,64 --prompt 1k --output 1k"
    heads = {}
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        heads[width] = cli(command).text.splitlines()[1]
        assert ("more columns with -o csv" in cli(command).text) == (width < 200)
    assert "TPOT" in heads[80] and "batch" in heads[80] and "TPOT 90 %" not in heads[80] and "TPOT 90 %" in heads[200]
    assert len(heads[80].split()) < len(heads[120].split()) < len(heads[200].split())
    assert {"tpot_lo_s", "ttft_floor_s", "usd_per_mtok_in"} <= set(cli(f"{command} -o csv").text.splitlines()[0].split(","))


def test_fitting__first_columns_stay_and_text_is_folded() -> None:
    rows = [{"model": "m", "step_s": 0.001, "ttft_s": 0.002, "why": "a reason that is much longer than the table is wide, in letters"}]
    keys = ["model", "step_s", "ttft_s", "why"]
    assert list(fitting(rows, keys, 200)) == keys
    assert list(fitting(rows, keys, 14, first=("ttft_s",))) == ["model", "ttft_s"]
    folded = fitting(rows, keys, 50)
    assert list(folded) == keys and folded["why"] < 60 and sum(folded.values()) + 3 * 3 <= 50


def test_notes__at_most_five_and_the_rest_with_verbose(answers: dict[str, output.Answer], cli: Cli) -> None:
    for command, answer in answers.items():
        notes = [line for line in text(answer) if line.startswith("note: ")]
        assert len(notes) <= output.MOST_NOTES, command
        if command.split()[0] != "lecture":  # whose lines below the table are its own
            assert {note.removeprefix("note: ") for note in notes} <= set(document(answer, command)["notes"]), command
    plan = "plan llama-3.1-70b --on 8xh100-sxm --prompt 1k --output 1k"
    every = [line.removeprefix("note: ") for line in cli(f"{plan} --verbose").text.splitlines() if line.startswith("note: ")]
    assert len(every) > output.MOST_NOTES and sorted(every) == sorted(cli.json(plan)["notes"])


def test_by_weight__what_was_typed_before_what_always_holds() -> None:
    notes = ["fitted: kernels", "searched 3 layouts", "1 chip of 8 idle, and paid for", "by default --prompt 8k", "chip price $1.3/h"]
    assert by_weight(notes) == [notes[3], notes[2], notes[4], notes[1], notes[0]]


def test_frames__read_every_answer(answers: dict[str, output.Answer]) -> None:
    """Arrow, pandas and polars read the rows of each command, with the numbers of its JSON."""
    pyarrow, pandas, polars = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    for command, answer in answers.items():
        result = Result(answer, ["headway", *command.split()])
        table = pyarrow.table(result)
        assert (table.num_rows, table.column_names) == (len(result), result.keys()), command
        for frame in (result.to_pandas(), result.to_polars()):
            assert isinstance(frame, pandas.DataFrame | polars.DataFrame) and frame.shape == (len(result), len(result.keys())), command
        for key, values in ((key, [row[key] for row in result]) for key in result.keys()):  # noqa: SIM118 -- a result is not a mapping
            kinds = {type(value) for value in values} - {type(None)}
            if kinds <= {str} or kinds <= {bool} or kinds <= {float}:
                assert table[key].to_pylist() == values, (command, key)


# -- what helps -----------------------------------------------------------------------------------------------------------------


def test_helps__serve_states_what_the_change_gives(cli: Cli) -> None:
    point = {"--tp": "8", "--batch": "64", "--prompt": "1k", "--output": "1k"}

    def told(flags: dict[str, str]) -> dict[str, Any]:
        return cli.json("serve", "llama-3.1-70b", "--on", "8xh100-sxm", *(word for pair in flags.items() for word in pair))

    first = told(point)
    before = first["rows"][0]
    assert first["helps"]
    for change in first["helps"]:
        flag, value = change["change"].split()
        after = told(point | {flag: value})["rows"][0]
        gain = before["tpot_s"] * before["usd_per_mtok_out"] / (after["tpot_s"] * after["usd_per_mtok_out"]) - 1
        assert change["gain"] == pytest.approx(gain, rel=1e-9) and gain > 0
        assert output_value(after["tpot_s"]) in change["effect"]


def output_value(seconds: float) -> str:
    from headway.core.listing import format_value

    return format_value(seconds, "s")


def test_helps__plan_ranks_inputs_by_what_their_flags_gain(cli: Cli) -> None:
    told = cli.json("plan llama-3.1-70b --on 8xh100-sxm --prompt 1k --output 1k")
    gains = [change["gain"] for change in told["helps"]]
    assert gains == sorted(gains, reverse=True) and min(gains) >= 1e-3
    less = next(change for change in cli.json("plan gpt-oss-120b --on h100-sxm --prompt 1k --output 1k --tpot 10ms")["helps"]
                if "--fixed" in change["change"])  # fmt: skip
    assert less["change"].startswith("1 % less ")  # more of it makes the objective worse


def test_helps__bill_states_cheaper_ways_to_buy_the_same_model(cli: Cli) -> None:
    told = cli.json(
        "bill --sheet claude-opus --prompt 8k --shared 6k --output 500 --requests 100 --rate 2/min --mode standard --cache none,5min"
    )
    dear, cheap = sorted((row["usd"] for row in told["rows"]), reverse=True)
    assert [(change["change"], change["gain"]) for change in told["helps"]] == [
        ("standard mode, 5min cache", pytest.approx(1 - cheap / dear, rel=1e-12))
    ]


def test_launch__lines_are_a_field_of_their_own(answers: dict[str, output.Answer]) -> None:
    commands = [command for command in answers if "--launch" in command]
    assert commands
    for command in commands:
        told = document(answers[command], command)
        pools = 1 if told["rows"][0].get("prefill_replicas") is None else 2  # a line each, with the addresses of their hand-over before it
        assert len(told["launch"]) == pools and all("vllm serve " in line for line in told["launch"])
        assert f"Launch:  {told['launch'][0]}" in text(answers[command])
        assert not any("vllm serve" in note for note in told["notes"] if note.startswith("launch: "))


# -- sentences ------------------------------------------------------------------------------------------------------------------


def test_sentence__clauses_while_there_is_room() -> None:
    assert sentence("one two", " three", " four five six", " seven", most=4) == "one two three seven."
    assert sentence(" ".join("word" for _ in range(40))).count("word") == words.MOST_WORDS


# -- help and refusals ----------------------------------------------------------------------------------------------------------


def test_help__everyday_flags_first_and_all_of_them_on_request(cli: Cli) -> None:
    for verb in VERBS:
        short, every = cli(verb, "--help").text, cli(verb, "--help-all").text
        flags = [set(re.findall(r"^\s+(?:-\w[^-]*, )?(--[\w-]+)", page, re.MULTILINE)) for page in (short, every)]
        assert flags[0] <= flags[1], verb
        parser = parser_of([verb])
        refused = schema.fields(Edits).keys() - parser.question.edits  # which no help names
        shown = [flag for flag in parser.flags.values() if flag.spellings and flag.name not in refused]
        long = {flag.name: next(word for word in flag.spellings if word.startswith("--")) for flag in shown}
        hidden = {long[flag.name] for flag in shown if flag.field.rare}
        brief = {long[flag.name] for flag in shown if flag.is_brief} - hidden - flags[0]  # on a line with others
        assert flags[0] == flags[1] - hidden - brief, verb
        assert len(short.splitlines()) <= 60, verb
        names = ["-o" if flag == "--format" else flag for flag in brief]
        assert all(re.search(rf"[:,]\s+{name}[,\n]", short) for name in names), verb
        if hidden:
            assert f"{len(hidden)} more flags: headway {verb} --help-all" in short
        assert brief == set() or len(every.splitlines()) > 60, verb
        assert f"example: headway {verb}" in short
        assert short.splitlines()[0].startswith(f"usage: headway {verb}")
    plan = cli("plan", "--help").text
    assert plan.splitlines()[0] == "usage: headway plan MODEL --on MACHINE [flags]"
    assert "--eff-memory" not in plan and "--tpot s" in plan and "such as 20ms or 2s" in plan


@pytest.mark.parametrize(
    ("flags", "wants"),
    [
        ("--tpot 40", "40 s per token? write 40ms"), ("--ttft 500", "500 s? write 500ms"),
        ("--e2e 9000", "write 9000ms"),
        ("--tpot 10,40", "10 s per token? write 10ms"), ("--tpot-decode 5", "5 s per token?"),
    ],
)  # fmt: skip
def test_limits__bare_number_is_refused_where_it_would_be_absurd(cli: Cli, flags: str, wants: str) -> None:
    for verb in ("plan llama-3.1-8b --on h100 --prompt 1k --output 100", "speed llama-3.1-8b --on h100 --prompt 1k --output 100"):
        if verb.startswith("speed") and not flags.startswith(("--tpot 40", "--ttft")):
            continue
        status, out, err = cli(*verb.split(), *flags.split())
        assert (status, out) == (2, "") and wants in err and err.count("\n") == 1


def test_limits__bare_number_is_refused_in_a_search_by_simulation(cli: Cli) -> None:
    sim = "sim llama-3.1-8b --on h100 --prompt 1k --output 10 --requests 10 --loop plain --find rate --so-that"
    for limit in ("p99_tpot_s=40", "p99_itl_s=40", "mean_ttft_s=500"):
        status, out, err = cli(*sim.split(), limit)
        assert (status, out) == (2, "") and f"write {limit.partition('=')[2]}ms" in err


def test_limits__bare_seconds_that_make_sense_are_taken(cli: Cli) -> None:
    plan = "plan llama-3.1-8b --on h100 --prompt 1k --output 100 --tpot 0.04 --ttft 2 --e2e 60"
    assert cli.rows(plan)[0]["fits"] and cli.rows(plan.replace("0.04", "40s"))[0]["fits"]


@pytest.fixture
def hub_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A stand-in of the optional package, which notes what is downloaded."""
    asked: list[str] = []
    package = types.ModuleType("huggingface_hub")
    package.hf_hub_download = lambda name, file: asked.append(name) or str(INPUTS / file)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", package)
    for name in (*hub.PROXIES, "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    yield asked


def test_hub__unknown_id_without_a_network_is_one_line_and_no_download(
    hub_package: list[str], monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the port that discards; nothing listens
    status, out, err = cli("show", "model", "nobody/nothing-7b")
    assert (status, out) == (2, "") and err.count("\n") == 1 and "Hugging Face cannot be reached" in err
    assert hub_package == []
    monkeypatch.setattr(hub, "reachable", lambda host, port: True)
    assert cli("show", "model", "nobody/nothing-7b").status == 0 and set(hub_package) == {"nobody/nothing-7b"}


def test_hub__waits_no_longer_than_its_limit_for_a_silent_host(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    release = threading.Event()
    monkeypatch.setattr(hub.socket, "create_connection", lambda *place, **limits: release.wait(60) and io.StringIO())
    assert 0 < hub.WAIT_S < 1
    monkeypatch.setattr(hub, "WAIT_S", 0.01)
    assert not hub.reachable("host", 443)
    release.set()


def test_gateway__proxy_before_the_hub() -> None:
    assert hub.gateway({}) == ("huggingface.co", 443)
    assert hub.gateway({"HF_ENDPOINT": "http://mirror:8080"}) == ("mirror", 8080)
    assert hub.gateway({"https_proxy": "proxy.example:3128"}) == ("proxy.example", 3128)
