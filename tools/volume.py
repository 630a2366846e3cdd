"""Volume of the source by package: python tools/volume.py [FOLDER] prints a row each; --lower writes ceilings that have fallen.

Counted are Python's tokens (names, operators, numbers and strings but docstrings), lines of code (neither blank, comment nor docstring),
modules, private functions that their module names once beside their definition, imports inside functions, functions that hand notes back
beside their value (a tuple that ends in texts, in a function that speaks of notes), and parameters of which only `Any` is said.
"""

from __future__ import annotations

import ast
import csv
import io
import re
import sys
import tokenize
from collections import Counter
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "headway"
CEILINGS = ROOT / "tests" / "house" / "ceilings.csv"
COUNTED = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *DEFINITIONS)


@dataclass(frozen=True)
class Volume:
    """What a package holds."""

    tokens: int = 0
    code_lines: int = 0
    modules: int = 0
    private_functions_used_once: int = 0
    imports_inside_functions: int = 0
    functions_returning_notes: int = 0
    parameters_of_any_type: int = 0

    def __add__(self, other: Volume) -> Volume:
        return Volume(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))


def volumes(source: Path = SOURCE) -> dict[str, Volume]:
    """Volume of each package below a folder; modules at its root are the package `.`."""
    sums: dict[str, Volume] = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).parts
        package = parts[0] if len(parts) > 1 else "."
        sums[package] = sums.get(package, Volume()) + of_module(path.read_text(encoding="utf-8"))
    return sums


def of_module(text: str) -> Volume:
    """Volume of one module."""
    tree, names = ast.parse(text), Counter(re.findall(r"\b_\w+", text))
    docstrings = {line for node in ast.walk(tree) if isinstance(node, DOCUMENTED) for line in _docstring_lines(node)}
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type in COUNTED]
    code = [token for token in tokens if token.type != tokenize.STRING or token.start[0] not in docstrings]
    functions = [node for node in ast.walk(tree) if isinstance(node, DEFINITIONS)]
    private = [node for node in functions if node.name.startswith("_") and not node.name.startswith("__")]
    inside = {id(line) for node in functions for line in ast.walk(node) if isinstance(line, ast.Import | ast.ImportFrom)}
    return Volume(
        tokens=len(code), code_lines=len({line for token in code for line in range(token.start[0], token.end[0] + 1)}), modules=1,
        private_functions_used_once=sum(names[node.name] == 2 for node in private), imports_inside_functions=len(inside),
        functions_returning_notes=sum(map(_returns_notes, functions)),
        parameters_of_any_type=sum(annotation == "Any" for node in functions for annotation in _annotations(node.args)),
    )  # fmt: skip


def _annotations(arguments: ast.arguments) -> list[str]:
    packed = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *packed]
    return [ast.unparse(argument.annotation) for argument in every if argument.annotation]


def _returns_notes(node: ast.AST) -> bool:
    returns = ast.unparse(node.returns) if isinstance(node, DEFINITIONS) and node.returns else ""
    texts = returns.endswith(("list[str]]", "tuple[str, ...]]"))
    return returns.startswith("tuple[") and texts and "note" in ast.unparse(node).lower()


def _docstring_lines(node: ast.AST) -> range:
    first = node.body[0] if isinstance(node, DOCUMENTED) and node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return range(first.lineno, (first.end_lineno or first.lineno) + 1)
    return range(0)


def ceilings() -> dict[str, Volume]:
    """The most that each package may hold."""
    with CEILINGS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["package"]: Volume(**{field.name: int(row[field.name]) for field in fields(Volume)}) for row in rows}


def lower(found: dict[str, Volume]) -> None:
    """Write ceilings that are the lower of the old and of what was found; a package without one gets what was found."""
    old = ceilings() if CEILINGS.exists() else {}
    with CEILINGS.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["package", *(field.name for field in fields(Volume))])
        for package, volume in found.items():
            table.writerow([package, *map(min, astuple(old.get(package, volume)), astuple(volume))])


def main(arguments: list[str]) -> None:
    """Print the volume of each package and of all."""
    folders = [Path(text) for text in arguments if not text.startswith("--")]
    found = volumes(*folders)
    if "--lower" in arguments:
        lower(found)
    print("package", *(field.name for field in fields(Volume)), sep=",")
    for package, volume in (*found.items(), ("all", sum(found.values(), Volume()))):
        print(package, *asdict(volume).values(), sep=",")


if __name__ == "__main__":
    main(sys.argv[1:])
