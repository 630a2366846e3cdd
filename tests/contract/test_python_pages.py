"""The pages on Python and on a chip, a model, runs and a trace of one's own, followed; the notebook, run; the examples, type-checked."""

from __future__ import annotations

import ast
import doctest
import json
import re
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import pytest

from headway.report.result import Explanation, Result
from headway.report.words import MOST_WORDS
from support.command import Cli
from support.followed import cells, examples, steps, text_of, write_files
from support.paths import ROOT

PAGES = ("own_chip.md", "own_model.md", "own_runs.md", "own_trace.md", "python.md")
INPUTS = {"own_runs.md": ("one_user.json", "my_runs.csv", "start.log")}  # files of a page that are too long to stand in it
NOTEBOOK = "notebook.ipynb"


@pytest.mark.parametrize("page", PAGES)
def test_page__is_followed_as_written(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.chdir(tmp_path)
    for name in INPUTS.get(page, ()):
        shutil.copy(ROOT / "tests" / "contract" / "golden" / "inputs" / name, tmp_path)
    assert bool(write_files(page, tmp_path) or page in INPUTS) == bool(steps(page)) == (page != "python.md")
    for step in steps(page):
        out = cli(*step.argv).text
        assert out.startswith(step.beginning), (step, out.splitlines()[0])
        assert len(out.splitlines()[0].split()) <= MOST_WORDS, step
    monkeypatch.setenv("COLUMNS", "120")
    test = examples(page)
    assert test.examples and doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(test).failed == 0


def test_readme__snippet_prints_one_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    tree = shown(snippet, {})
    lines = capsys.readouterr().out.splitlines()
    assert sum(set(line) == {"─"} for line in lines) == 1 and max(map(len, lines)) <= 120
    assert isinstance(tree, Explanation) and tree.anonymous() == []


# -- the notebook ---------------------------------------------------------------------------------------------------------------


def shown(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line where that is an expression, as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NOTEBOOK, "exec"), names)
    return eval(compile(ast.Expression(last.value), NOTEBOOK, "eval"), names) if isinstance(last, ast.Expr) else None


def test_notebook__plans_simulates_scores_and_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    values = [shown(source, names) for source in cells(NOTEBOOK)]
    results = {value.command[1]: value for value in values if isinstance(value, Result)}
    assert set(results) == {"plan", "sim", "score"}
    for value in results.values():
        assert "<table>" in value._repr_html_() and escape(value.answer) in value._repr_html_()
    assert results["plan"][0]["fits"] and results["plan"].launch and results["sim"][0]["limits_met"]
    assert names["rates"].plot() == next(value for value in values if type(value).__name__ == "Picture")
    assert 0 < next(value for value in values if isinstance(value, float)) < 1
    assert list(values[-1]["rate"]) == [2, 4, 8] and (values[-1]["good_share"] > 0).all()


def test_notebook__is_one_that_readers_open() -> None:
    document = json.loads(text_of(NOTEBOOK))
    assert (document["nbformat"], document["metadata"]["language_info"]) == (4, {"name": "python"})
    kinds = {"markdown": {"cell_type", "id", "metadata", "source"}}
    kinds["code"] = kinds["markdown"] | {"execution_count", "outputs"}
    assert [cell for cell in document["cells"] if set(cell) != kinds[cell["cell_type"]]] == []
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    assert all(cell["outputs"] == [] for cell in document["cells"] if cell["cell_type"] == "code")


# -- types ----------------------------------------------------------------------------------------------------------------------

# What a type checker refuses, a line each; all else of the examples it accepts.
REFUSED = (
    'hw.serve("llama-3.1-8b", "h100", batsh=4)',
    'hw.plan("llama-3.1-8b", "h100", no_check="yes")',
    'hw.sim("llama-3.1-8b", "h100", rate=object())',
    "hw.solve()",
    "hw.plane",
    'hw.command("list chips").rowz()',
    'hw.command("list chips").rows().to_pandas()',
    'hw.command("list chips").answer + 1',
)
CONFIGURATION = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "reportUnusedExpression": False, "reportMissingTypeStubs": False,
                 "reportUnknownMemberType": False, "reportUnknownVariableType": False, "reportUnknownArgumentType": False}  # fmt: skip


@pytest.mark.slow
def test_types__pyright_accepts_the_examples_and_refuses_slips(tmp_path: Path) -> None:
    sources = {page.partition(".")[0]: "".join(example.source for example in examples(page).examples) for page in PAGES}
    sources |= {"notebook": "\n".join(cells(NOTEBOOK)), "refused": "\n".join(["import headway as hw", *REFUSED])}
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source + "\n", encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(CONFIGURATION | {"extraPaths": [str(ROOT / "src")]}), encoding="utf-8")
    argv = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    report = json.loads(subprocess.run(argv, capture_output=True, text=True).stdout)
    errors = [entry for entry in report["generalDiagnostics"] if entry["severity"] == "error"]
    places = {(Path(entry["file"]).name, entry["range"]["start"]["line"]) for entry in errors}
    assert [entry for entry in errors if Path(entry["file"]).name != "refused.py"] == []
    assert places == {("refused.py", line) for line in range(1, len(REFUSED) + 1)} and report["summary"]["filesAnalyzed"] == len(sources)
