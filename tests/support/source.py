"""The package's own source as the rules of the house read it: files, module names, imports."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from support.paths import SOURCE

# A file imports from its own package and from those to the right of it.
ORDER = [
    "web",
    "cli",
    "study",
    "answers", "report",
    "evidence",
    "reality",
    "economics",
    "simulation",
    "training",
    "serving",
    "performance",
    "hardware",
    "models",
    "laws",
    "core",
]


@functools.cache
def files() -> tuple[Path, ...]:
    """Every file of the package."""
    return tuple(sorted(SOURCE.rglob("*.py")))


@functools.cache
def text_of(path: Path) -> str:
    """A file's text."""
    return path.read_text(encoding="utf-8")


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(text_of(path))


def module_name(path: Path) -> str:
    """`laws/step/step.py` -> `laws.step.step`; a folder's `__init__.py` is the folder, the top of the package is empty."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def exists(name: str) -> bool:
    """Whether the package has a module of this name."""
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
    """Module of the package -> modules of the package that it imports; the top of the package itself left out."""
    named = {module_name(path): set(imported(tree_of(path))) for path in files()}
    return {
        name: frozenset(module.removeprefix("headway.") for module in modules if module.startswith("headway.")) - {name}
        for name, modules in named.items()
        if name
    }
