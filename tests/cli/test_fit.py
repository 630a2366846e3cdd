"""`headway fit`: what it says of wrong input before any work is done, what it writes, and that what it wrote is used."""

from __future__ import annotations

import builtins
import functools
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.cli.main import main
from headway.core import catalog
from headway.core.errors import BadFile, MissingExtra
from headway.evidence.fit.result import FittedNumbers, read_efficiency, write_efficiency
from headway.evidence.kernels.efficiency import fit_kernels
from headway.evidence.serving.engine_fit import numbers
from headway.evidence.serving.page import FIGURE, PAGE, SUMMARY
from headway.performance.achieved import FORMER_KEYS, KEYS, efficiencies
from headway.performance.nearest import read
from support.command import Cli
from support.synthetic import Rig, measured, true_table

pytestmark = pytest.mark.slow

MARKED = f"# Accuracy\n\nbefore\n\n<!-- {PAGE}: generated, do not edit -->\nold\n<!-- {PAGE}: end -->\n\nafter\n"
BRIEF = f"# headway\n\n<!-- {SUMMARY}: generated, do not edit -->\nold\n<!-- {SUMMARY}: end -->\n\nlast\n"
TRUTH = {"engine.vllm.step_overhead_s": 5e-3, "engine.llamacpp.layer_overhead_s": 90e-6}
SERVE = ["serve", "llama-3.1-70b", "--on", "8xh100-sxm", "--tp", "8", "--batch", "8", "--context", "1k"]
SHIPPED = catalog.PACKAGED / "efficiency.toml"


@functools.cache
def rows() -> str:
    """72 rows of two sources, which number theirs alike."""
    rng, found = np.random.default_rng(1), []
    count = dict.fromkeys(("one", "two"), 0)
    rigs = [
        ("one", Rig("llama-3.1-8b", "H100-SXM-80GB", 1, "vllm", 1)), ("two", Rig("llama-3.1-8b", "A100-SXM-80GB", 1, "vllm", 1)),
        ("two", Rig("llama-3.2-1b", "rtx4090", 1, "llama.cpp", 1, "q4_k_m")),  # small: its launches show
    ]  # fmt: skip
    for source, rig in rigs:
        for mode in ("decode_step", "prefill"):
            for _ in range(12):
                prompt, users = int(rng.integers(100, 3000)), int(rng.integers(1, 20))
                found.append(rig.line(f"r{count[source]}", mode, prompt, 200, users, source))
                count[source] += 1
    return measured(found, true_table(TRUTH), 0.05, 1)


def file(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture
def own_catalog(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder in $HEADWAY_CATALOG, read as a new run would."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setenv("HEADWAY_CATALOG", str(folder))
    catalog.default_catalog.cache_clear()
    yield folder
    monkeypatch.undo()
    catalog.default_catalog.cache_clear()


# -- wrong input ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), "--from"),
        (("--from", "{tmp}/none.csv"), "none.csv: is neither a folder of kernels nor a file of measured runs"),
        (("--from", "{tmp}/empty"), "gemm.parquet: cannot be read"),
        (("--from", "{tmp}/empty", "--from", "{tmp}"), "one folder of kernels"),
        (("--from", "{tmp}/few.csv"), "few.csv: has fewer than 50 rows that can be predicted and scored"),
        (("--from", "{tmp}/other.csv"), "other.csv: has no column id, model, hardware, mode"),
        (("--from", "{tmp}/empty", "--report", "{tmp}/page.md"), "page.md: has no part between"),
        (("--from", "{tmp}/empty", "--summary", "{tmp}/page.md"), "--summary: got"),
        (("--from", "{tmp}/rows.csv", "--out", "{tmp}/page.md"), "page.md: is not a folder to write to"),
        (("--from", "{tmp}/rows.csv", "--out", "{tmp}/none"), "none: is not a folder to write to"),
        (("--folds", "--from", "{tmp}/rows.csv", "--report", "{tmp}/plain.md"), "plain.md: has no part between"),
        (("--folds", "--from", "{tmp}/rows.csv", "--summary", "{tmp}/page.md"), "page.md: has no part between"),
        (("--folds", "--from", "{tmp}/rows.csv", "--report", "{tmp}/none.md"), "none.md: cannot be read"),
        (("--from", "{tmp}/rows.csv", "--report", "{tmp}/page.md"), "--report: got"),
        (("--from", "{tmp}/rows.csv", "--summary", "{tmp}/page.md"), "--summary: got"),
        (("--folds", "--from", "{tmp}/empty"), "--folds: got"),
        (("--from", "{tmp}/rows.csv", "--seed", "3"), "--seed"),
        (("--form", "{tmp}/rows.csv"), "--from"),
    ],
)  # fmt: skip
def test_fit__wrong_input_is_one_line(tmp_path: Path, cli: Cli, argv: tuple[str, ...], words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "out").mkdir()
    head, *lines = rows().splitlines()
    file(tmp_path, "few.csv", "\n".join([head, *lines[:49]]) + "\n")
    file(tmp_path, "other.csv", "a,b\n1,2\n")
    file(tmp_path, "plain.md", "# Page\n")
    file(tmp_path, "page.md", MARKED)
    file(tmp_path, "rows.csv", rows())
    given = [word.replace("{tmp}", str(tmp_path)) for word in argv]
    status, out, err = cli("fit", *given, *(() if "--out" in argv else ("--out", str(tmp_path / "out"))))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and words in err, err
    assert not list((tmp_path / "out").iterdir())


def test_fit__checks_report_pages_before_fitting(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.evidence.serving.refit.folded", lambda *_: pytest.fail("fitted"))
    path, page = file(tmp_path, "rows.csv", rows()), file(tmp_path, "plain.md", "# Page\n")
    status, _, err = cli("fit", "--folds", "--from", path, "--out", str(tmp_path), "--report", page)
    assert status == 2 and "has no part between" in err


def test_fit__rows_of_reliability_c_do_not_count(tmp_path: Path, cli: Cli) -> None:
    head, *lines = rows().splitlines()
    at = head.split(",").index("reliability")
    cells = [line.split(",") for line in lines]
    doubted = [",".join([*each[:at], "C", *each[at + 1 :]]) for each in cells]
    status, _, err = cli("fit", "--from", file(tmp_path, "rows.csv", "\n".join([head, *doubted]) + "\n"), "--out", str(tmp_path))
    assert status == 2 and "fewer than 50 rows" in err


def no_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def without(name: str, *args: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "scipy":
            raise ImportError("No module named 'scipy'")
        return plain(name, *args, **named)

    for name in [name for name in sys.modules if name.partition(".")[0] == "scipy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)


def test_fit_kernels__missing_scipy_names_the_extra(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    no_scipy(monkeypatch)
    (tmp_path / "kernels").mkdir()
    with pytest.raises(MissingExtra):
        fit_kernels(tmp_path / "kernels")
    status, out, err = cli("fit", "--from", str(tmp_path / "kernels"), "--out", str(tmp_path))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and "headway[fit]" in err


@pytest.mark.parametrize("broken", ["not parquet", "other columns"])
def test_fit_kernels__malformed_table_is_one_line(tmp_path: Path, cli: Cli, broken: str) -> None:
    pytest.importorskip("scipy")
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "gemm.parquet"
    if broken == "not parquet":
        path.write_text("m,n,k\n1,2,3\n", encoding="utf-8")
    else:
        parquet.write_table(pyarrow.table({"m": [1, 2]}), path)
    status, out, err = cli("fit", "--from", str(tmp_path), "--out", str(tmp_path))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and "gemm.parquet: " in err


# -- a fit ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that one run without scipy wrote to."""
    folder = tmp_path_factory.mktemp("fitted")
    head, *lines = rows().splitlines()
    own = [[line for line in lines if f",{source}," in line] for source in ("one", "two")]
    files = [file(folder, f"rows{at}.csv", "\n".join([head, *some]) + "\n") for at, some in enumerate(own)]
    with pytest.MonkeyPatch.context() as patch:
        no_scipy(patch)  # runs alone are fitted without it
        assert main(["fit", "--from", files[0], "--from", files[1], "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def folded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a run of the folds wrote to."""
    folder = tmp_path_factory.mktemp("folded")
    page, summary = file(folder, "page.md", MARKED), file(folder, "brief.md", BRIEF)
    drawn = [] if not can_draw() else ["--report", page]
    asked = ["fit", "--folds", "--from", file(folder, "rows.csv", rows()), "--out", str(folder), "--summary", summary, *drawn]
    assert main(asked) == 0
    return folder


def can_draw() -> bool:
    return importlib.util.find_spec("vl_convert") is not None


def test_fit__efficiency_toml_recovers_the_truth_and_loads(fitted: Path) -> None:
    made = {(one.section, one.key): one for one in read_efficiency(fitted / "efficiency.toml")}
    for place, wanted in TRUTH.items():
        section, _, key = place.rpartition(".")
        one = made[section, key]
        assert abs(one.value - wanted) < 3 * one.error, place
        assert one.value == pytest.approx(wanted, rel=0.4) and one.rows == 72 and "72" in one.range
    for number in numbers():
        one = made[number.section, number.key]
        assert (one.error > 0) == (number.spread > 0) and one.meaning == number.meaning
    assert made["engine.sglang", "step_overhead_s"].value == pytest.approx(1.5e-3)  # no row runs it
    tomllib.loads((fitted / "efficiency.toml").read_text(encoding="utf-8"))


def used(folder: Path, made: Path) -> None:
    (folder / "efficiency.toml").write_text((made / "efficiency.toml").read_text(encoding="utf-8"), encoding="utf-8")


def test_fit__unfitted_numbers_equal_shipped_ones(fitted: Path, own_catalog: Path) -> None:
    """Kernels, and the widths of intervals, which folds write."""
    shipped = efficiencies()
    used(own_catalog, fitted)
    found = efficiencies()
    assert found is not shipped and found is efficiencies()
    assert found.sections.keys() == shipped.sections.keys()
    for section, numbers_of in shipped.sections.items():
        assert found.sections[section].keys() == numbers_of.keys(), section
        if section.partition(".")[0] not in ("engine", "platform"):
            assert found.sections[section] == numbers_of, section


def test_write_efficiency__keeps_numbers_without_new_rows(fitted: Path, tmp_path: Path) -> None:
    path = tmp_path / "efficiency.toml"
    used(tmp_path, fitted)
    step = next(one for one in read_efficiency(SHIPPED) if (one.section, one.key) == ("interval.other", "decode"))
    write_efficiency(path, (step,), "")
    before = read_efficiency(path)
    kernel = FittedNumbers(section="gemm.other.bf16", key="compute", value=0.7, unit="", error=0.1, rows=1, range="r", meaning="m")
    write_efficiency(path, (replace(step, value=9.0), kernel), "")
    after = {(one.section, one.key): one.value for one in read_efficiency(path)}
    changed = {("interval.other", "decode"): 9.0, ("gemm.other.bf16", "compute"): 0.7}
    assert after == {(one.section, one.key): one.value for one in before} | changed


def test_folds__write_the_nearest_rows(folded: Path) -> None:
    found = read((folded / "evidence.csv").read_text(encoding="utf-8"))
    assert sum(one.rows for one in found) == 72
    assert {(one.chip, one.engine, one.measure) for one in found} == {
        (chip, engine, measure)
        for chip, engine in (("h100_sxm", "vLLM"), ("a100_sxm_80", "vLLM"), ("rtx4090", "llama.cpp")) for measure in ("decode", "prefill")
    }  # fmt: skip
    assert all(one.cross_validated and one.sources in ("one", "two") for one in found)


def test_folds__write_widths_alone(folded: Path) -> None:
    made = read_efficiency(folded / "efficiency.toml")
    assert {one.section for one in made} == {"interval.other"} and {"decode", "prefill"} <= {one.key for one in made}
    assert all(one.value >= 1 for one in made)


def test_folds__write_pages_between_their_markers(folded: Path) -> None:
    brief = (folded / "brief.md").read_text(encoding="utf-8")
    assert brief.startswith(f"# headway\n\n<!-- {SUMMARY}: generated") and brief.endswith(f"<!-- {SUMMARY}: end -->\n\nlast\n")
    assert "| decode | 3 |" in brief and "old" not in brief.splitlines() and str(folded) not in brief
    if can_draw():
        page = (folded / "page.md").read_text(encoding="utf-8")
        assert page.startswith("# Accuracy\n\nbefore\n") and page.endswith("\n\nafter\n")
        assert "Generated by `headway fit --folds --from rows.csv`" in page and "72 measurements of 72 published rows" in page
        assert (folded / FIGURE).stat().st_size > 1000


def test_fit__result_is_used_by_predict_and_serve(fitted: Path, own_catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["predict", file(own_catalog.parent, "ask.csv", rows()), "-o", "csv"]
    assert main(asked) == 0
    before = capsys.readouterr().out
    used(own_catalog, fitted)
    assert float(efficiencies().find("step_overhead_s", "engine.vllm")) == pytest.approx(5e-3, rel=0.4)
    assert main(asked) == 0
    assert capsys.readouterr().out != before
    served = ["serve", "llama-3.1-70b", "--on", "8xh100-sxm", "--tp", "8", "--prompt", "1k", "--output", "100"]
    assert main(served) == 0  # the interval of TTFT, which no row measured, is there


# -- a user's own file ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[engine.vllm\n", "is not valid TOML"),
        ("[engine.vllm]\nstep_overhead_s = 0.001\n", "engine.vllm.step_overhead_s: got 0.001"),
        ('[engine.vllm]\nstep_overhead_s = { value = "fast", unit = "s" }\n', "engine.vllm.step_overhead_s: got 'fast'"),
        ("[engine.vllm]\nstep_overhead_s = { value = -1.0, unit = 's' }\n", "engine.vllm.step_overhead_s: got -1.0"),
        ("[engine.vllm]\nstep_overhead_s = { value = nan, unit = 's' }\n", "engine.vllm.step_overhead_s: got nan"),
        ("[gemm.other.bf16]\ncompute = { value = true, unit = '' }\n", "gemm.other.bf16.compute: got True"),
        ("[gemm.other.bf16]\ncompute = { value = 0.0, unit = '' }\n", "gemm.other.bf16.compute: got 0.0"),
        ("[gemm.other.bf16]\nmemory = { value = 0, unit = '' }\n", "gemm.other.bf16.memory: got 0"),
        ("[interval.other]\ntpot = { value = 0.5, unit = '' }\n", "interval.other.tpot: got 0.5"),
        ("[engine.vllm]\nstep_overhead_s = { value = 1.0, unit = 'parsec' }\n", "engine.vllm.step_overhead_s: got unit 'parsec'"),
        ("[engine.vllm]\nstep_overhead_s = { value = 1.5, unit = 'ms' }\n", "engine.vllm.step_overhead_s: got unit 'ms'"),
        ("[engine.vllm]\nstep_budget_tokens = { value = 0, unit = 'token' }\n", "engine.vllm.step_budget_tokens: got 0"),
        ("[engine.vllm]\nstep_overhed_s = { value = 1.0, unit = 's' }\n", "engine.vllm.step_overhed_s: no such number; did you mean step_"),
        ("[platform.amd]\nquartz = { value = 1.0 }\n", "platform.amd.quartz: no such number; wants one of compute_factor, memory_factor"),
        ("[engine.llamacpp.card]\nmemory = { value = 1.0 }\n", "engine.llamacpp.card.memory: renamed to memory_factor"),
        ("[gemm.other.bf16]\nt0 = { value = 1e-6, unit = 's' }\n", "gemm.other.bf16.t0: renamed to t0_s"),
    ],
)  # fmt: skip
def test_efficiency_toml__malformed_file_is_one_line(own_catalog: Path, capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    file(own_catalog, "efficiency.toml", text)
    status = main(SERVE)
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and "efficiency.toml" in err and words in err, err


@pytest.mark.parametrize(("former", "present"), [pair for pair in FORMER_KEYS.items() if pair[1] in KEYS["engine"]])
def test_efficiency_toml__former_key_is_refused_with_the_present_one(
    own_catalog: Path, capsys: pytest.CaptureFixture[str], former: str, present: str
) -> None:
    """By what reads a catalogue folder, and by the fit that would keep the number in its file."""
    path = Path(file(own_catalog, "efficiency.toml", f"[engine.vllm]\n{former} = {{ value = 1.0 }}\n"))
    line = f"efficiency.toml: engine.vllm.{former}: renamed to {present}"
    assert main(SERVE) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and line in err, err
    with pytest.raises(BadFile, match=re.escape(line)):
        read_efficiency(path)


def test_efficiency_toml__valid_file_is_used(own_catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The shipped numbers with an engine that needs a whole second for each step."""
    text = SHIPPED.read_text(encoding="utf-8")
    start = text.index("[engine.other]")
    at = text.index("\nstep_overhead_s = ", start) + 1
    own = text[:at] + 'step_overhead_s = { value = 1.0, unit = "s" }\n' + text[text.index("\n", at) + 1 :]
    file(own_catalog, "efficiency.toml", own)
    assert main([*SERVE, "-o", "csv"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert 1.0 < float(dict(zip(head.split(","), line.split(","), strict=True))["step_s"]) < 1.1
    assert {one.key: one.value for one in read_efficiency(own_catalog / "efficiency.toml") if one.section == "engine.other"}[
        "step_overhead_s"
    ] == 1.0


def test_efficiency_toml__one_engine_number_alone_is_allowed(own_catalog: Path) -> None:
    shipped = efficiencies()
    file(
        own_catalog,
        "efficiency.toml",
        "[engine.vllm]\nstep_overhead_s = { value = 7e-3, unit = 's' }\n[interval.other]\ntpot = { value = 3 }\n",
    )
    found = efficiencies()
    assert float(found.engine("vllm", "datacenter", "step_overhead_s")) == 7e-3 and float(found.interval("tpot")) == 3
    changed = {("engine.vllm", "step_overhead_s"), ("interval.other", "tpot")}
    for section, numbers_of in shipped.sections.items():
        assert all(found.sections[section][key] == value for key, value in numbers_of.items() if (section, key) not in changed)


def test_efficiency_toml__kernel_class_must_be_complete(own_catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a family does not state is as for all families: a file's own, not another's."""
    file(own_catalog, "efficiency.toml", "[gemm.other.bf16]\ncompute = { value = 0.5 }\n")
    assert "gemm.hopper.bf16" not in efficiencies().sections
    assert main(SERVE) == 2
    assert "states all numbers of a class of kernels or none" in capsys.readouterr().err


def test_efficiency_toml__absent_file_leaves_shipped_numbers(own_catalog: Path) -> None:
    own = efficiencies()
    assert own_catalog.is_dir() and len(own.sections) == len({one.section for one in read_efficiency(SHIPPED)})
