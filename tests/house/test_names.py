"""Names of the field: a class name means one thing, no participle or pronoun stands alone, and the step law spells its letters out."""

from __future__ import annotations

import ast
import collections
import string
from collections.abc import Callable, Iterator
from pathlib import Path

from support.paths import SOURCE
from support.source import files, tree_of

STOP = {
    "found", "asked", "said", "told", "one", "own", "kept", "held", "taken", "given", "done", "every", "each", "other", "others",
    "whole", "ways", "here", "there", "company", "seen", "made", "named", "stated", "counted", "chosen", "wanted", "listed", "drawn",
    "used", "shown", "moved", "paid", "sent", "reached", "weighed", "missed", "written", "dropped", "assumed", "worth", "reach", "left",
    "such", "these", "those", "some", "many", "who", "it", "they",
}  # fmt: skip
# (file, name) -> why the name stays: it is a keyword or a key that users write or read.
EXCUSED: dict[tuple[str, str], str] = {
    ("economics/questions.py", "own"): "a keyword of the public price()",
    ("evidence/questions.py", "each"): "a keyword of the public score()",
    ("reality/lab/questions.py", "every"): "the flag --every of `headway lab trains`",
    ("reality/lab/train_setup.py", "every"): "the field that the flag --every fills",
    ("core/formula.py", "done"): "an argument of the public replay()",
    ("economics/cache/problem.py", "ways"): "a keyword of the public cache(), handed on to plan()",
    ("economics/speed_tiers.py", "ways"): "a keyword of the public speed ladder, handed on to plan()",
    ("evidence/claims/claim.py", "stated"): "the table [claim.stated] of data/claims/*.toml",
    ("evidence/claims/rows.py", "stated"): "a key of the JSON and a column of `headway lecture`",
    ("serving/plan/plan.py", "ways"): "a keyword of the public plan()",
    ("serving/solve.py", "wanted"): "an argument of the public solve()",
}
SPELLED_OUT = ("laws/step/", "evidence/claims/", "simulation/")  # of simulation its files alone, not simulation/traffic


def bindings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that a file binds: (line, name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name


def place(path: Path) -> str:
    """A file as the table of excuses names it."""
    return path.relative_to(SOURCE).as_posix()


def offenders(names: Callable[[Path, str], bool]) -> list[str]:
    """Bindings of the package that a rule refuses: file:line name."""
    lines = {(place(path), line, name) for path in files() for line, name in bindings(tree_of(path)) if names(path, name)}
    return [f"{file}:{line} {name}" for file, line, name in sorted(lines)]


def is_spelled_out(path: Path) -> bool:
    """Whether a file may not bind single letters."""
    file = place(path)
    return file.startswith(SPELLED_OUT) and not (file.startswith("simulation/") and file.count("/") > 1)


def test_class_names__are_there_once() -> None:
    homes = collections.defaultdict(list)
    for path in files():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(f"{place(path)}:{node.lineno}")
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert twice == {}, "rename all but one: a class name means one thing"


def test_bindings__are_nouns_or_verbs_of_the_field() -> None:
    def refused(path: Path, name: str) -> bool:
        return name.strip("_").lower() in STOP and (place(path), name) not in EXCUSED

    assert offenders(refused) == [], "name what it is with a noun of the field, such as `rows`; a key that users write goes into EXCUSED"


def test_bindings__of_the_step_the_simulator_and_the_ledger_are_no_letters() -> None:
    def refused(path: Path, name: str) -> bool:
        return is_spelled_out(path) and name in string.ascii_letters and (place(path), name) not in EXCUSED

    assert offenders(refused) == [], "spell the letter out: the name of the quantity"


def test_excuses__are_needed() -> None:
    there = {(place(path), name) for path in files() for _, name in bindings(tree_of(path))}
    assert sorted(EXCUSED.keys() - there) == [], "remove the excuse: the file binds no such name"
    assert all(reason for reason in EXCUSED.values())
