"""Fourteen packages in one order: imports go downwards, nothing is loose at the root, no circles, and numpy only where arrays are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.package import MODULES
from support.paths import ROOT, SOURCE
from support.source import ORDER, files, imported, imports, module_name, tree_of

LOOSE = {"__init__.py", "__main__.py"}
ENTRY = "__main__"  # `python -m headway` is the command line
# What reads words and facts: catalogue records, price sheets, the words of a question.
NUMPY_FREE = ("core", "models", "hardware", "economics/sheets", "economics/price", "economics/cache", "performance/workload.py")
ARRAYS = {"core/table.py", "core/filter.py"}


def floor(name: str) -> int:
    """How high a module stands: its folder's place, counted from below."""
    return len(ORDER) - ORDER.index(name.partition(".")[0])


def test_folders__are_the_packages_and_nothing_is_loose() -> None:
    folders = {path.relative_to(SOURCE).parts[0] for path in files() if path.parent != SOURCE}
    assert folders == set(ORDER), "put it into one of the packages"
    assert {path.name for path in SOURCE.glob("*.py")} == LOOSE, "move the file into the package of its subject (docs/where.md)"
    assert {path.name for path in SOURCE.iterdir() if path.is_dir()} - {"__pycache__"} == {*ORDER, "data"}


def test_imports__go_downwards() -> None:
    upward = [
        f"{name} imports {other}" for name, others in imports().items() if name != ENTRY for other in others if floor(other) > floor(name)
    ]
    assert upward == [], "import downwards only: move what is needed into the lower package, or hand it over as an argument"


def test_imports__have_no_circles() -> None:
    graph = imports()

    def circles(name: str, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for other in graph.get(name, frozenset()):
            if other in path:
                yield (*path[path.index(other) :], other)
            elif other not in visited:
                yield from circles(other, (*path, other))
        visited.add(name)

    visited: set[str] = set()
    rings = [" -> ".join(circle) for name in graph if name not in visited for circle in circles(name, (name,))]
    assert rings == [], "move what both need into a third module"


def test_numpy__is_named_only_where_arrays_are() -> None:
    offenders = []
    for path in files():
        place = path.relative_to(SOURCE).as_posix()
        if place.startswith(NUMPY_FREE) and place not in ARRAYS:
            offenders += [place for name in imported(tree_of(path)) if name.partition(".")[0] == "numpy"]
    assert offenders == [], "import numpy inside the function that needs arrays, or do without"
    assert all((SOURCE / place).exists() for place in (*NUMPY_FREE, *ARRAYS))


def test_modules__can_all_be_imported() -> None:
    expected = {f"headway.{module_name(path)}" for path in files() if module_name(path) and path.name != "__main__.py"}
    assert {module.__name__ for module in MODULES} == expected


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
def test_instant_commands__never_import_numpy(command: str) -> None:
    argv = [sys.executable, "-c", WITHOUT_NUMPY, *command.split()]
    process = subprocess.run(argv, capture_output=True, text=True, timeout=600, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
    assert process.returncode != 9, "numpy was imported"
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip()
