"""docs/where.md, the head of each package and data/README.md: every place that they name exists."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

from support.paths import ROOT, SOURCE
from support.source import ORDER, exists, imports, tree_of

PAGE = ROOT / "docs" / "where.md"
DATA_PAGE = SOURCE / "data" / "README.md"
PLACE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|toml|csv|json|txt|md))(?:: (\w+))?`")
LABELS = ("Holds", "Import", "May import", "Reads")
# Subjects that a newcomer looks for in the first hour.
SUBJECTS = (
    "KV bytes per token", "step time", "TTFT", "TPOT", "a fact of a chip", "which reader reads a config.json", "a verb", "a law",
    "a measured source", "the search", "the loop", "the prefix cache", "a price sheet", "claims of the lecture", "training memory",
    "collectives", "fitted efficiencies", "interval", "units", "errors", "explain", "JSON keys",
)  # fmt: skip


@functools.cache
def defined(path: Path) -> frozenset[str]:
    """Every name that a module defines itself, at its top level."""
    names: set[str] = set()
    for node in tree_of(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(names)


def missing(places: list[tuple[str, str]], root: Path) -> list[str]:
    """The places that are not there: a file, or a name in a module."""
    absent = [place for place, _ in places if not (root / place).is_file()]
    return absent + [f"{place}: {name}" for place, name in places if name and place not in absent and name not in defined(root / place)]


def rows(text: str) -> list[tuple[str, str]]:
    """The rows of all tables: their first cell and their last."""
    cells = [line.strip().strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [(row[0].strip(), row[-1].strip()) for row in cells if not set("".join(row)) <= set("- ")]


def test_where__every_place_exists() -> None:
    places = PLACE.findall(PAGE.read_text(encoding="utf-8"))
    assert len(places) > 100
    assert missing([place for place in places if place[0] != "tests/house/test_where.py"], SOURCE) == []


def test_where__every_row_names_a_place() -> None:
    subjects = [(what, where) for what, where in rows(PAGE.read_text(encoding="utf-8")) if not what.startswith(("`", "package", "what"))]
    assert [what for what, where in subjects if not PLACE.search(where)] == []
    assert [subject for subject in SUBJECTS if not any(subject in what for what, _ in subjects)] == []


def test_where__packages_stand_in_their_order() -> None:
    assert [what.strip("`/") for what, _ in rows(PAGE.read_text(encoding="utf-8")) if what.startswith("`")] == ORDER


def head(package: str) -> dict[str, str]:
    """What the first lines of a package say, by label."""
    text = ast.get_docstring(tree_of(SOURCE / package / "__init__.py")) or ""
    parts: dict[str, str] = {}
    label = ""
    for line in text.splitlines():
        opened = next((name for name in LABELS if line.startswith(f"{name} ")), "")
        label = opened or (label if line.startswith(" ") else "")
        if label:
            parts[label] = f"{parts.get(label, '')} {line.removeprefix(label).strip()}".strip()
    return parts


def test_packages__say_what_they_hold_export_import_and_read() -> None:
    assert {package: [label for label in LABELS if not head(package).get(label)] for package in ORDER} == {package: [] for package in ORDER}


def test_packages__what_they_export_exists() -> None:
    offenders = []
    for package in ORDER:
        for name in re.findall(r"\b([a-z_]+(?:\.\w+)+)\b", head(package)["Import"]):
            module, _, leaf = name.removeprefix(f"{package}.").rpartition(".")
            path = SOURCE.joinpath(package, *module.split(".")).with_suffix(".py")
            offenders += [] if path.is_file() and leaf in defined(path) else [f"{package}: {name}"]
    assert offenders == []


def test_packages__hold_what_they_say() -> None:
    offenders = []
    for package in ORDER:
        text = head(package)["Holds"]
        absent = [folder for folder in re.findall(r"\b([a-z_]+)/", text) if not exists(f"{package}.{folder}")]
        entries = {path.stem for path in (SOURCE / package).iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
        unsaid = [] if "for each verb" in text else sorted(entries - {"__init__"} - set(re.findall(r"\w+", text)))
        offenders += [f"{package}: {name}" for name in (*absent, *unsaid)]
    assert offenders == []


def test_packages__import_what_they_say() -> None:
    offenders = []
    for name, others in imports().items():
        package = name.partition(".")[0]
        if package in ORDER:
            stated = head(package)["May import"].partition("Its users")[0]
            allowed = ORDER if "every package" in stated else re.findall(r"[a-z]+", re.sub(r"\(.*?\)", "", stated))
            offenders += [f"{name}: {other}" for other in others if other.partition(".")[0] not in (package, *allowed)]
    assert offenders == []


def test_subpackages__say_what_lives_there_in_a_few_lines() -> None:
    folders = [path for path in SOURCE.glob("*/**/__init__.py") if path.parent.parent != SOURCE]
    lengths = {str(path.relative_to(SOURCE)): len((ast.get_docstring(tree_of(path)) or "").splitlines()) for path in folders}
    assert lengths
    assert {place: lines for place, lines in lengths.items() if not 2 <= lines <= 15} == {}


def test_data__says_which_module_reads_each_file() -> None:
    table = dict(rows(DATA_PAGE.read_text(encoding="utf-8")))
    entries = {path.name + ("/" if path.is_dir() else "") for path in (SOURCE / "data").iterdir()} - {"README.md"}
    assert {what.strip("`") for what in table if what.startswith("`")} == entries
    readers = [PLACE.findall(where) for what, where in table.items() if what.startswith("`")]
    assert all(readers)
    assert missing([place for places in readers for place in places], SOURCE) == []


def test_docs__name_only_modules_that_exist() -> None:
    pages = [
        *sorted((ROOT / "docs").glob("[!a]*.md")),
        ROOT / "docs" / "accuracy.md",
        ROOT / "README.md",
        ROOT / "CONVENTIONS.md",
        DATA_PAGE,
    ]
    offenders = []
    for page in pages:
        for place in re.findall(r"[`( ]((?:[\w.-]+/)+[a-z_\d]+\.py)\b", page.read_text(encoding="utf-8")):
            is_file = any((root / place).is_file() for root in (SOURCE, ROOT, ROOT / "src"))
            offenders += [] if is_file else [f"{page.name}: {place}"]
    assert offenders == []
