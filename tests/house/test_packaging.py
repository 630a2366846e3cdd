"""What is imported is declared: the core needs numpy and rich, all else is an extra that is imported where it is needed."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from typing import Any

from support.paths import ROOT, SOURCE
from support.source import files, imported, module_name, text_of, tree_of

OPTIONAL = {"vl_convert": "plot", "pyarrow": "table", "huggingface_hub": "hub", "numba": "fast", "scipy": "fit", "genai_prices": "prices",
            "pandas": "frames", "polars": "frames", "dask": "cluster", "distributed": "cluster",
            "starlette": "web", "uvicorn": "web", "mcp": "mcp", "torch": "lab"}  # fmt: skip
# Made of numba, imported where something is compiled; of starlette and uvicorn, where it serves.
LATE = {"headway.simulation.machine_code", "headway.web.app"}
MOST_LINES, MOST_WORDS, TOP = 150, 1300, 40  # of README.md; lines until the first answer has ended
TOOLS = {"pytest", "pytest_xdist", "hypothesis", "pint", "ruff", "pyright"}


@functools.cache
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def required(names: list[str]) -> set[str]:
    return {re.split(r"[<>=\[ ]", name)[0].replace("-", "_").removesuffix("_python") for name in names}


def early(top: ast.Module) -> set[str]:
    """Modules that run with the imports of a file: all but those imported whole from a package whose modules load at first use."""
    waiting = {
        f"{node.module}.{alias.name}" for node in top.body if isinstance(node, ast.ImportFrom) and node.module for alias in node.names
        if (head := SOURCE.parent.joinpath(*node.module.split("."), "__init__.py")).is_file() and "at_first_use(__name__)" in text_of(head)
    }  # fmt: skip
    return {name for name in imported(top) if name not in waiting}


def test_late_modules__do_not_run_with_their_users() -> None:
    users = "from headway.simulation import compiled; from headway.web import server"
    code = f"import sys; {users}; print({{'numba', 'uvicorn'}} & {{*sys.modules}})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_dependencies__of_every_file_are_declared() -> None:
    core, extras = required(project()["dependencies"]), project()["optional-dependencies"]
    for path in files():
        tree = tree_of(path)
        first = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
        late = f"headway.{module_name(path)}" in LATE
        assert late or not LATE & early(first), f"{path} imports a late module before it is needed"
        top, anywhere = ({name.partition(".")[0] for name in imported(part)} for part in (first, tree))
        for name in anywhere - {"headway", "__future__"} - set(sys.stdlib_module_names) - core:
            assert name in required(extras[OPTIONAL[name]]), f"{path} imports {name}"
            assert late or name not in top, f"{path} imports {name} before it is needed"


def test_extras__are_whole() -> None:
    extras = project()["optional-dependencies"]
    assert {extra: required(extras[extra]) - {"headway"} for extra in OPTIONAL.values()} == {
        extra: {name for name, of in OPTIONAL.items() if of == extra} for extra in OPTIONAL.values()
    }
    union = re.fullmatch(r"headway\[(.*)\]", extras["all"][0])
    assert union
    assert set(union[1].split(",")) == set(OPTIONAL.values()) - {"lab"}  # torch is gigabytes, for cards alone
    assert required(extras["dev"]) >= TOOLS


def test_licence__is_one_in_every_place() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text and "Version 2.0, January 2004" in text and "END OF TERMS AND CONDITIONS" in text
    assert project()["license"] == "Apache-2.0" and project()["license-files"] == ["LICENSE"]
    assert not [name for name in project()["classifiers"] if name.startswith("License ::")], "a licence expression excludes them (PEP 639)"
    assert "(LICENSE)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "facts only" in (SOURCE / "data" / "README.md").read_text(encoding="utf-8")


def test_readme__is_read_in_five_minutes() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES and sum(len(line.split()) for line in lines) <= MOST_WORDS
    top = "\n".join(lines[:TOP])
    for word in ("make demo", "/month", "p95 TPOT", "confidence", "Launch:"):
        assert word in top, f"the first {TOP} lines have no {word!r}: set-up and the sizing answer whole come first"


def test_errors__name_an_extra_that_exists() -> None:
    calls = [node for path in files() for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
    extras = [node.args[1] for node in calls if getattr(node.func, "id", "") == "MissingExtra"]
    assert extras
    assert {node.value for node in extras if isinstance(node, ast.Constant)} <= project()["optional-dependencies"].keys()
