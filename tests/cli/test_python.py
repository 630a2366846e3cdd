"""The verbs as functions of Python: each answers as its command does, with one kind of object."""

from __future__ import annotations

import inspect
import shlex
import subprocess
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from contract.golden.golden_answers import INPUTS
from headway.core.question import question_of
from headway.report.pictures import file
from headway.report.result import Result
from support.command import Cli
from support.paths import ROOT, SOURCE

BENCH = str(INPUTS / "vllm_serve.json")
RUNS = str(INPUTS / "runs.csv")
GRID = {"tp": 8, "batch": [1, 64], "prompt": "1k", "output": 300}
# A call, and the command that asks the same.
PAIRS: dict[str, tuple[Callable[[], Result], str]] = {
    "plan": (
        lambda: hw.plan("llama-3.1-8b", "h100-sxm", hw.Load(prompt=1000, output=300), users=8, no_check=True, tpot=0.02, tp=1,
                        launch="vllm"),
        "plan llama-3.1-8b --on h100-sxm --prompt 1k --output 300 --users 8 --no-check --tpot 20ms --tp 1 --launch vllm",
    ),
    "serve": (
        lambda: hw.serve("llama-3.1-70b", "8xh100-sxm", **GRID),
        "serve llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 1,64 --prompt 1k --output 300",
    ),
    "sim": (
        lambda: hw.sim("llama-3.1-8b", "h100", rate=[2, 4], prompt="1k", output=100, requests=100, loop="plain", slo=hw.SLO(ttft="1s")),
        "sim llama-3.1-8b --on h100 --rate 2,4 --prompt 1k --output 100 --requests 100 --loop plain --ttft 1s",
    ),
    "solve": (
        lambda: hw.solve("serve", "llama-3.1-70b", "8xh100-sxm", tp=8, context="8k", for_="batch", so_that="step_s=20ms"),
        "solve serve llama-3.1-70b --on 8xh100-sxm --tp 8 --context 8k --for batch --so-that step_s=20ms",
    ),
    "score": (lambda: hw.score(vllm=BENCH, on="8xh100-sxm", tp=8), f"score --vllm {BENCH} --on 8xh100-sxm --tp 8"),
    "predict": (lambda: hw.predict(Path(RUNS)), f"predict {RUNS}"),
    "train": (
        lambda: hw.train("llama-3.1-8b", "64xh100-sxm", seq="8k", global_batch="1M", tokens=1e12, recompute="full"),
        "train llama-3.1-8b --on 64xh100-sxm --seq 8k --global-batch 1M --tokens 1T --recompute full",
    ),
    "scale": (lambda: hw.scale(active=100e9, serve="50M/s", months=2), "scale --active 100G --serve 50M/s --months 2"),
    "price": (
        lambda: hw.price("llama-3.1-8b", "8xh100-sxm", hw.Load(prompt=4000, output=1000), tp=1, chip_price=2.2),
        "price llama-3.1-8b --on 8xh100-sxm --prompt 4k --output 1k --tp 1 --chip-price 2.2",
    ),
    "bill": (
        lambda: hw.bill(sheet="claude-opus", prompt="8k", shared="6k", output=500, requests=100, rate="2/min"),
        "bill --sheet claude-opus --prompt 8k --shared 6k --output 500 --requests 100 --rate 2/min",
    ),
    "cache": (
        lambda: hw.cache("deepseek-v3", "8xh200", ["5min", "1h"], reuse=0.8, kv="fp8"),
        "cache deepseek-v3 --on 8xh200 --hold 5min,1h --reuse 0.8 --kv fp8",
    ),
    "capacity": (lambda: hw.capacity("deepseek-v3", "8xh200", context="8k"), "capacity deepseek-v3 --on 8xh200 --context 8k"),
    "rack": (lambda: hw.rack("gb200-nvl72", [72, 144], set={"chip.hbm": "1TB"}), "rack gb200-nvl72 --chips 72,144 --set chip.hbm=1TB"),
    "compare": (lambda: hw.compare(["gb200-nvl72", "8xh200"], per="usd"), "compare gb200-nvl72,8xh200 --per usd"),
}  # fmt: skip


def timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the time that a simulation itself took."""
    return [{key: value for key, value in row.items() if key != "wall_s"} for row in rows]


@pytest.fixture(scope="module")
def grid() -> Result:
    return PAIRS["serve"][0]()


# -- a call is its command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", PAIRS)
def test_call__answers_as_its_command(verb: str, cli: Cli) -> None:
    ask, command = PAIRS[verb]
    result, document = ask(), cli.json(command)
    assert type(result) is Result
    assert timeless(result.rows()) == timeless(document["rows"]) and result.rows()
    assert result.answer == document["answer"] and result.answer in repr(result)
    assert (result.notes, result.launch, result.checked) == (document["notes"], document["launch"], document["checked"])
    about = {key: [column.unit, column.doc] for key, column in result.columns.items()}
    assert about == {key: list(words.values()) for key, words in document["columns"].items()}


@pytest.mark.parametrize("verb", ["serve", "sim", "bill", "rack"])
def test_call__command_of_a_result_asks_the_same(verb: str, cli: Cli) -> None:
    result = PAIRS[verb][0]()
    assert timeless(cli.rows(*result.command[1:])) == timeless(result.rows())


def test_command__asks_any_verb(cli: Cli) -> None:
    assert hw.command("headway list chips").rows() == cli.rows("list chips")
    recent = ("trend", "chips", "--where", "year >= 2024", "--sort", "-year")
    assert hw.command(shlex.join(recent)).rows() == cli.rows(*recent)
    assert str(hw.command("show chip h200 -o toml")) == cli("show chip h200 -o toml").text.rstrip("\n")
    for wrong in ("", "plan --help", "plam", "list chips --were x"):
        with pytest.raises(hw.HeadwayError):
            hw.command(wrong)


def test_sim__plays_a_plan_from_its_result_or_its_file(tmp_path: Path, cli: Cli) -> None:
    best = hw.plan("llama-3.1-8b", "h100", users=8, prompt="1k", output=100, tp=1, no_check=True)
    (tmp_path / "plan.json").write_text(best.to_json(), encoding="utf-8")
    played = hw.sim(plan=best, requests=100, loop="plain")
    rows = cli.rows("sim", "--plan", tmp_path / "plan.json", "--requests", 100, "--loop", "plain")
    assert timeless(played.rows()) == timeless(rows)
    with pytest.raises(hw.HeadwayError, match="is an answer of `sim`"):
        hw.sim(plan=played)


def test_sim__is_a_function_and_a_package() -> None:
    import headway.simulation.loop

    assert inspect.signature(hw.sim).parameters.keys() >= {"model", "system", "layout"}
    assert hw.sim("llama-3.1-8b", "h100", users=2, prompt=100, output=10, requests=4, loop="plain")[0]["completed"] == 4
    assert headway.simulation.loop.advance


# -- objects --------------------------------------------------------------------------------------------------------------------


def test_objects__stand_where_names_do() -> None:
    faster = hw.edit(hw.system("8xh100-sxm"), "chip.hbm_bw", 6.7e12)
    by_object = hw.serve(hw.model("llama-3.1-70b"), faster, hw.Layout(tp=8), batch=[1, 64], context=8192)
    by_flag = hw.serve("llama-3.1-70b", "8xh100-sxm", tp=8, batch=[1, 64], context="8192", set={"chip.hbm_bw": "6.7TB/s"})
    assert by_object["step_s"].tolist() == by_flag["step_s"].tolist() != hw.serve("llama-3.1-70b", "8xh100-sxm", tp=8)["step_s"].tolist()
    assert by_object.command[2:5] == ("llama-3.1-70b", "--on", "8xh100-sxm")


def test_objects__several_machines_and_layouts_are_rows() -> None:
    two = hw.serve("llama-3.1-8b", [hw.system("8xh100-sxm"), "8xh200-sxm"], [hw.Layout(tp=2), hw.Layout(tp=4, pp=2)], batch=8, context=1000)
    assert [(row["system"], row["tp"], row["pp"]) for row in two] == [
        ("8xh100-sxm", 2, 1), ("8xh100-sxm", 4, 2), ("8xh200-sxm", 2, 1), ("8xh200-sxm", 4, 2),
    ]  # fmt: skip


# -- wrong input ----------------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "unknown keyword": (lambda: hw.serve("llama-3.1-8b", "h100", batsh=4), "no argument of serve named 'batsh'; did you mean batch"),  # type: ignore[call-arg] # pyright: ignore
    "bare limit": (lambda: hw.plan("llama-3.1-8b", "h100", tpot=40), "write 40ms"),
    "given twice": (lambda: hw.plan("llama-3.1-8b", "h100", hw.Load(prompt=10, output=10), prompt=20), "beside the Load"),
    "two machines": (lambda: hw.serve("llama-3.1-8b", "h100", on="h200"), "no `on` beside"),
    "no list": (lambda: hw.serve("llama-3.1-8b", "h100", batch=[]), "at least one value"),
    "list of lists": (lambda: hw.serve("llama-3.1-8b", "h100", batch=[[1, 2]]), "one list"),  # type: ignore[list-item] # pyright: ignore
    "no number": (lambda: hw.serve("llama-3.1-8b", "h100", batch=float("nan")), "finite"),
    "truth": (lambda: hw.scale(flop=True), "a number or a text"),
    "no truth": (lambda: hw.plan("llama-3.1-8b", "h100", disaggregate="yes"), "one of auto, only, never"),
    "a stranger": (lambda: hw.serve(object(), "h100"), "a model or a machine, not object"),  # type: ignore[arg-type] # pyright: ignore
    "model": (lambda: hw.serve("llama-3.1-8", "h100"), "llama-3.1-8b"),
    "row": (lambda: hw.capacity("llama-3.1-8b", "h100").explain("room", 99), "a row number below"),
    "figure": (lambda: hw.serve("llama-3.1-8b", "h100").plot("figure.bmp"), "ends in .png"),
    "column": (lambda: hw.capacity("llama-3.1-8b", "h100").table(["tpots"]), "no column named 'tpots'"),
}  # fmt: skip


@pytest.mark.parametrize("subject", WRONG)
def test_wrong_input__is_an_error_of_one_line(subject: str) -> None:
    ask, says = WRONG[subject]
    with pytest.raises(hw.HeadwayError) as told:
        ask()
    assert says in str(told.value) and "\n" not in str(told.value)


# -- one object -----------------------------------------------------------------------------------------------------------------


def test_result__table_is_the_one_of_the_command(grid: Result, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    text = cli(PAIRS["serve"][1]).text
    assert str(grid) == text.rstrip("\n")
    grid.table()
    printed = capsys.readouterr().out
    assert printed in text and str(grid.table) == printed.rstrip("\n") and len(grid.table) == 2
    grid.table(["batch", "tpot_s"])
    assert capsys.readouterr().out.split()[:2] == ["batch", "TPOT"]


def test_result__is_plain_text_in_a_notebook(grid: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = str(grid), str(grid.table)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as kernels set it
    assert (str(grid), str(grid.table)) == plain


def test_result__rows_columns_and_choices(grid: Result) -> None:
    assert len(grid) == 2 and list(grid) == grid.rows() and grid[-1] == grid.rows()[1]
    assert grid["tpot_s"].tolist() == [row["tpot_s"] for row in grid] and set(grid.keys()) == set(grid[0])
    slow = grid.where("batch = 64")
    assert slow.rows() == [grid[1]] and slow.answer != grid.answer and "--where kept 1 of 2 rows" in slow.notes
    assert grid.sort("-batch").rows() == grid.rows()[::-1] and len(grid) == 2
    assert grid.sort("-batch").command[-2:] == ("--sort", "-batch")
    with pytest.raises(hw.HeadwayError, match="no column named 'tpots_s'"):
        grid["tpots_s"]


def test_result__explains_by_replay(grid: Result, cli: Cli) -> None:
    tree = grid.explain("tpot_s", 1)
    assert (tree.value, tree.anonymous()) == (grid[1]["tpot_s"], []) and tree.replay() == pytest.approx(tree.value, rel=1e-12)
    told = cli.json(f"{PAIRS['serve'][1]} --explain tpot_s")["explain"]["tpot_s"]
    assert grid.explain("tpot_s").to_json() == told
    assert str(tree) == repr(tree) and "[" in str(tree).splitlines()[2] and tree._repr_html_().startswith("<pre>")


def test_command__draws_as_wide_and_on_the_paper_that_its_flags_say(tmp_path: Path, cli: Cli) -> None:
    line = "serve llama-3.1-8b --on h100 --batch 1,8,64 --context 4k --picture memory --plot-width 420 --plot-theme dark --plot"
    hw.command(f"{line} {tmp_path / 'call.svg'}")
    assert cli(*line.split(), tmp_path / "flag.svg").status == 0
    assert (tmp_path / "call.svg").read_text(encoding="utf-8") == (tmp_path / "flag.svg").read_text(encoding="utf-8")


def test_result__plots_what_the_flag_draws(grid: Result, tmp_path: Path, cli: Cli) -> None:
    pytest.importorskip("vl_convert")
    specs: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "save", lambda spec, path: specs.append(spec))
        assert cli(*PAIRS["serve"][1].split(), "--plot", tmp_path / "command.svg").status == 0
    figure = grid.plot(tmp_path / "call.svg")
    assert [figure.spec] == specs and (tmp_path / "call.svg").read_text().startswith("<svg")
    bundle = figure._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v5+json"] == figure.spec and bundle["image/svg+xml"].startswith("<svg")


def test_plan__at_a_load_has_a_figure() -> None:
    best = hw.plan("llama-3.1-8b", "h100-sxm", users=8, prompt="1k", output=100, no_check=True, tp=1, kv="bf16")
    assert "llama-3.1-8b on" in best.plot().subtitle


def test_result__html_holds_sentence_table_and_notes() -> None:
    ask = PAIRS["score"][0]()
    html = ask._repr_html_()
    parts = ask.rows()[0]["parts"]  # of TPOT, which the table shows with their sum and a head
    assert html.count("<table>") == 1 and html.count("<tr>") == len(parts) + 2
    assert f"<b>{escape(ask.answer)}</b>" in html and "Binds:" in html and "note: " in html


def test_result__writes_json_and_csv_as_the_command(grid: Result, cli: Cli) -> None:
    command = PAIRS["serve"][1]
    assert grid.to_csv() == cli(f"{command} -o csv").text
    ours, theirs = (text.partition('"answer"')[2] for text in (grid.to_json(), cli(f"{command} -o json").text))
    assert ours == theirs


def test_result__is_read_by_arrow_pandas_and_polars(grid: Result) -> None:
    pyarrow, pandas, polars = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    table = pyarrow.table(grid)
    assert table.to_pylist() == grid.rows() and table.schema.field("tpot_s").metadata[b"unit"] == b"s"
    assert isinstance(grid.to_pandas(), pandas.DataFrame) and grid.to_pandas()["tpot_s"].tolist() == grid["tpot_s"].tolist()
    assert grid.to_polars().equals(polars.DataFrame(grid)) and grid.to_polars()["bound"].to_list() == [row["bound"] for row in grid]


def test_arrow__mixed_empty_and_great_values() -> None:
    pytest.importorskip("pyarrow")
    from headway.core.columns import Column
    from headway.core.listing import Listing
    from headway.report.output import arrow_table

    rows = [{"mixed": 1, "none_s": None, "great": 10**30, "record": {}, "list": [{}]}, {"mixed": "two", "none_s": None, "great": 1}]
    table = arrow_table(Listing(rows), {key: Column("s" if key == "none_s" else "", "") for key in rows[0]})
    assert table["mixed"].to_pylist() == ["1", "two"] and str(table.schema.field("none_s").type) == "double"
    assert table["great"].to_pylist() == [1e30, 1.0] and table["record"].to_pylist() == ["{}", None] and table["list"][0].as_py() == "[{}]"


# -- the package ----------------------------------------------------------------------------------------------------------------

LIGHT = """
import sys
before = set(sys.modules)
import headway as hw
assert {name for name in set(sys.modules) - before if name.startswith("headway")} == {"headway"}, sys.modules.keys() - before
for name in ("plan", "serve", "sim", "score", "predict"):
    getattr(hw, name)
print(*sorted({"numpy", "rich", "pyarrow", "pandas", "polars", "asyncio"} & set(sys.modules)))
"""


def test_import__is_light() -> None:
    environment = {"PYTHONPATH": str(SOURCE.parent)}
    process = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, cwd=ROOT, env=environment)
    assert (process.returncode, process.stdout.strip(), process.stderr) == (0, "", "")


def test_stub__is_what_the_declarations_say() -> None:
    """Editors and type checkers see every public name and every field of every verb; `make stubs` writes the file again."""
    process = subprocess.run([sys.executable, ROOT / "tools" / "stubs.py", "--check"], env={"PYTHONPATH": str(SOURCE.parent)}, check=False)
    assert process.returncode == 0
    assert all(getattr(hw, name) is not None for name in hw.__all__) and (SOURCE / "py.typed").is_file()


@pytest.mark.parametrize("verb", sorted(set(hw.QUESTIONS) - set(hw.ACTS) - {"law", "sweep"}))
def test_keywords__are_the_fields_of_the_question(verb: str) -> None:
    """Every verb that answers, but those of many questions, is a function of its name, which no package of headway has."""
    function, flags = getattr(hw, verb), question_of(verb).flags()
    parameters = inspect.signature(function).parameters
    assert {*flags} - {*parameters} == set() and function.__doc__
    assert not (SOURCE / verb).is_dir(), "a package of a verb's name hides the function"
