"""The rules of the house, held by a test: floors, sizes, what a law carries, what a fact carries, what is imported when."""

from __future__ import annotations

import ast
import functools
import inspect
import os
import re
import subprocess
import sys
import tomllib
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.core.formula import REGISTRY
from headway.core.quantity import KINDS
from package import MODULES

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "headway"
# A file imports from floors below its own, or from its own floor without a circle. A folder stands for all its files.
FLOORS = {
    0: "units errors formula quantity schema explain watch interval",
    1: """
        catalog facts chip cost system edit about model hf hfconfig workload precision rack_facts
        offers tier price_sheet sheets case chip_memory terms
    """,
    2: "laws",
    3: """
        layout resolve assumptions blockwork whole_model about_model whatif compile fabric network estimate columns where output grid
        listing serve curves solve goal asked search candidates frontier pools pairing pick shortfall elasticity current plan launch trend
        rack rack_fit domains speed expert_load goal efficiency reach training training_columns scaling scale_columns
        tier_cost cache cache_place cache_rows
        bill_columns price_history cache_ask cache_case cache_sizing cache_fee cache_trace recompute
        price priced chip_cost memory_cost service_day inversion
    """,
    4: "sim bill bill_requests",
    5: "ledger evidence",
    6: "figures cli price_figures",
}
FLOOR = {name: floor for floor, names in FLOORS.items() for name in names.split()}
LAWS = [law for law in REGISTRY.values() if law.run.__module__.startswith("headway.")]


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def named(path: Path) -> str:
    """`laws/step.py` -> `laws.step`; a folder's `__init__.py` is the folder."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def exists(name: str) -> bool:
    path = SOURCE.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module that a file names in an import, lazy ones inside functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner.startswith("headway.") and exists(inner.removeprefix("headway.")) else node.module


@functools.cache
def imports() -> dict[str, frozenset[str]]:
    """Module of the package -> modules of the package it imports; the top of the package itself left out."""
    found = {named(path): set(imported(ast.parse(path.read_text(encoding="utf-8")))) for path in files()}
    return {
        name: frozenset(one.removeprefix("headway.") for one in every if one.startswith("headway.")) - {name}
        for name, every in found.items()
        if name
    }


def floor(name: str) -> int:
    return FLOOR[name.partition(".")[0]]


def test_every_file_has_a_floor_and_every_name_a_file() -> None:
    here = {name.partition(".")[0] for name in imports()} - {"__main__"}
    assert here == FLOOR.keys()


def test_imports_go_downwards() -> None:
    upward = [f"{name} (floor {floor(name)}) imports {other} (floor {floor(other)})"
              for name, others in imports().items() if name != "__main__" for other in others if floor(other) > floor(name)]  # fmt: skip
    assert upward == []


def test_no_circles() -> None:
    graph = imports()

    def reach(name: str, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for other in graph.get(name, frozenset()):
            if other in path:
                yield (*path[path.index(other) :], other)
            elif other not in done:
                yield from reach(other, (*path, other))
        done.add(name)

    done: set[str] = set()
    assert [" -> ".join(circle) for name in graph if name not in done for circle in reach(name, (name,))] == []


def test_words_and_facts_never_import_numpy() -> None:
    for path in files():
        if named(path) and named(path) != "__main__" and floor(named(path)) <= 1:
            assert not any(name.partition(".")[0] == "numpy" for name in imported(ast.parse(path.read_text(encoding="utf-8")))), path


def test_files_and_functions_are_short() -> None:
    long = []
    for path in files():
        text = path.read_text(encoding="utf-8")
        most = 250 if named(path).startswith("laws") else 399
        if len(text.splitlines()) > most:
            long.append(f"{named(path)}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.end_lineno and node.end_lineno - node.lineno >= 40:
                long.append(f"{named(path)}.{node.name}: {node.end_lineno - node.lineno + 1} lines")
    assert long == []


# -- laws -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_law_says_what_it_is(law: Any) -> None:
    text = inspect.getdoc(law.run) or ""
    sentence, _, rest = text.partition("\n\n")
    assert re.fullmatch(r"[A-Z0-9(`].*\.", " ".join(sentence.split())), "a docstring begins with one sentence"
    assert not re.search(r"[a-z0-9)]\. [A-Z]", " ".join(sentence.split())), "one sentence says why"
    assert ">>>" in rest, "a doctest with a real model's numbers"
    assert law.source.strip()
    for parameter in inspect.signature(law.run).parameters.values():
        assert parameter.default is parameter.empty, f"{parameter.name}: a law has no hidden defaults"
        assert parameter.kind is parameter.POSITIONAL_OR_KEYWORD, f"{parameter.name}: a law takes named arguments only"


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_law_has_a_unit_on_every_input_and_on_its_result(law: Any) -> None:
    hints = typing.get_type_hints(law.run, include_extras=True)
    assert hints.keys() == {*inspect.signature(law.run).parameters, "return"}
    assert all(units_of(hint) for hint in hints.values()), hints


def units_of(hint: Any) -> bool:
    """Whether a hint is a unit, or a tuple or record of units all through."""
    if any(isinstance(mark, str) for mark in getattr(hint, "__metadata__", ())):
        return True
    if typing.get_origin(hint) is tuple:
        return all(units_of(one) for one in typing.get_args(hint) if one is not Ellipsis)
    inner = typing.get_type_hints(hint, include_extras=True) if isinstance(hint, type) else {}
    return bool(inner) and all(units_of(one) for one in inner.values())


# -- words ----------------------------------------------------------------------------------------------------------------------


@functools.cache
def tracked() -> tuple[Path, ...]:
    """Every text file of the project: what git tracks, or without git what is there."""
    try:
        found = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
        paths = [ROOT / name for name in found if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for folder in ("src", "tests", "docs", "bench") for path in (ROOT / folder).rglob("*")]
        paths += list(ROOT.glob("*.*"))
    return tuple(path for path in paths if path.is_file() and path.suffix not in (".png", ".svg", ".pyc"))


# Spelled in two halves, so that this file does not contain them.
BANNED = {
    "the place where it was written": r"(?<![\w.\-])/wo" r"rk(?![\w])|/ro" r"ot/|(?<![\w])/tm" r"p/|\.\./sha" r"red",
    "who wrote it": r"\bhel" r"pers?\b|\bsess" r"ions?\b|\bsub" r"agents?\b",
    "unfinished work": r"\bTO" r"DO\b|\bFIX" r"ME\b|\bX" r"XX\b",
}


@pytest.mark.parametrize("what", BANNED)
def test_no_file_names(what: str) -> None:
    found = []
    for path in tracked():
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if re.search(BANNED[what], line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == []


# -- what is imported when ------------------------------------------------------------------------------------------------------


INSTANT = (
    "--help", "--version", "serve --help", "plan --help", "list models", "list chips", "list systems", "list sheets", "list sources",
)  # fmt: skip
WITHOUT_NUMPY = """
import sys
from headway.cli.main import main
status = main(sys.argv[1:])
sys.exit(9 if "numpy" in sys.modules else status)
"""


@pytest.mark.parametrize("command", INSTANT)
def test_what_only_reads_words_and_facts_is_instant(command: str) -> None:
    asked = [sys.executable, "-c", WITHOUT_NUMPY, *command.split()]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, env=environment())
    assert done.returncode != 9, "numpy was imported"
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


# -- packaging ------------------------------------------------------------------------------------------------------------------

OPTIONAL = {"vl_convert": "plot", "pyarrow": "table", "huggingface_hub": "hub", "numba": "fast", "scipy": "fit", "genai_prices": "prices"}
LATE = {"headway.sim.machine_code"}  # made of numba, imported where something is compiled


@functools.cache
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def required(names: list[str]) -> set[str]:
    return {re.split(r"[<>=\[ ]", name)[0].replace("-", "_").removesuffix("_python") for name in names}


def test_what_is_imported_is_declared() -> None:
    core, extras = required(project()["dependencies"]), project()["optional-dependencies"]
    for path in files():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        first = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
        late = f"headway.{named(path)}" in LATE
        assert late or not LATE & set(imported(first)), f"{path} imports numba before it is asked for"
        top, every = ({name.partition(".")[0] for name in imported(part)} for part in (first, tree))
        for name in every - {"headway", "__future__"} - set(sys.stdlib_module_names) - core:
            assert name in required(extras[OPTIONAL[name]]), f"{path} imports {name}"
            assert late or name not in top, f"{path} imports {name} before it is asked for"


def test_extras_are_whole() -> None:
    extras = project()["optional-dependencies"]
    assert {name: required(extras[extra]) for name, extra in OPTIONAL.items()} == {name: {name} for name in OPTIONAL}
    whole = re.fullmatch(r"headway\[(.*)\]", extras["all"][0])
    assert whole
    assert set(whole[1].split(",")) == set(OPTIONAL.values())
    assert {"pytest", "hypothesis", "pint", "ruff", "pyright"} <= required(extras["dev"])


def test_an_error_names_an_extra_that_exists() -> None:
    nodes = [node for path in files() for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    raised = [node.args[1] for node in nodes if getattr(node.func, "id", "") == "MissingExtra"]
    assert raised
    assert {node.value for node in raised if isinstance(node, ast.Constant)} <= project()["optional-dependencies"].keys()


# -- catalogue ------------------------------------------------------------------------------------------------------------------


DATE = re.compile(r"undated|unverified|\d{4}(-\d\d){0,2}((\.\.|-)(\d\d|\d{4}(-\d\d){0,2}))?")


def lines_of(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every table under `value` that states a value."""
    if isinstance(value, dict) and "value" in value:
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from lines_of(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from lines_of(item, f"{path}[{index}]")


def test_every_fact_has_value_unit_source_date_and_kind() -> None:
    count = 0
    for path in sorted((SOURCE / "data").rglob("*.toml")):
        for place, line in lines_of(tomllib.loads(path.read_text(encoding="utf-8"))):
            count += 1
            where = f"{path.name}{place}"
            assert isinstance(line["value"], int | float) and not isinstance(line["value"], bool), where
            assert isinstance(line.get("unit"), str), where
            assert isinstance(line.get("source"), str) and line["source"].strip(), where
            assert DATE.fullmatch(str(line.get("date"))), f"{where}: {line.get('date')}"
            assert line.get("kind", "claim" if path.parent.name == "claims" else None) in KINDS, where
    assert count > 1000


def test_every_module_can_be_imported() -> None:
    here = {f"headway.{named(path)}" for path in files() if named(path) and path.name != "__main__.py"}
    assert {module.__name__ for module in MODULES} == here
