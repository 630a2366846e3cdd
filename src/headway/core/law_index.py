"""Laws by name without importing them: where each stands, what it says of itself, and its import when it is needed.

The source files of `headway.laws` are read as text, so that a name costs milliseconds.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import re
from pathlib import Path

from headway.core.errors import HeadwayError, UnknownName, clip
from headway.core.formula import REGISTRY
from headway.core.trace import Law

FOLDER = Path(__file__).parent.parent / "laws"
_LAW = re.compile(r"^@formula\((.*?)^def (\w+)\(", re.MULTILINE | re.DOTALL)
_GIVES = re.compile(r'\bgives="([\w. ]+)"')
HINT = "`headway law --find WORDS` searches, `headway list laws` shows all"


@dataclasses.dataclass(frozen=True, slots=True)
class LawPlace:
    """Where a law stands: its name, its module below `headway.laws`, and the arguments of others that it gives, as declared."""

    name: str
    module: str
    gives: str = ""

    @property
    def full_name(self) -> str:
        """Module and name, which no two laws share."""
        return f"{self.module}.{self.name}"

    @property
    def package(self) -> str:
        """The first part of its module, within which equal names mean the same."""
        return self.module.partition(".")[0]


@functools.cache
def places() -> tuple[LawPlace, ...]:
    """Every law of the package, by module and order in its file."""
    files = sorted(path for path in FOLDER.rglob("*.py") if path.name != "__init__.py")
    return tuple(
        LawPlace(name, _module(path), "".join(_GIVES.findall(mark)))
        for path in files for mark, name in _LAW.findall(path.read_text(encoding="utf-8"))
    )  # fmt: skip


def givers(argument: str, package: str) -> tuple[LawPlace, ...]:
    """Laws that compute an argument of a package's laws: its laws of that name or that declare it, and laws elsewhere that declare both.

    >>> [law.name for law in givers("weights_s", "roofline")], [law.name for law in givers("kv_bytes_per_token", "serving")]
    (['latency_floor_s'], ['kv_bytes_per_token'])
    """
    return tuple(
        law for law in places()
        if f"{package}.{argument}" in law.gives.split() or (argument in (law.name, *law.gives.split()) and law.package == package)
    )  # fmt: skip


def _module(path: Path) -> str:
    return ".".join(path.relative_to(FOLDER).with_suffix("").parts)


class SharedName(HeadwayError, LookupError):
    """A name that several laws share; the message lists each under its full name."""

    def __init__(self, name: str, matches: tuple[LawPlace, ...]) -> None:
        super().__init__(f"several laws are named {clip(name)!r}: write {' or '.join(match.full_name for match in matches)}")


def place(name: str, among: tuple[LawPlace, ...] | None = None) -> LawPlace:
    """The law of this name, or of the end of this full name (balance.hardware_ratio).

    >>> place("hardware-ratio").full_name
    'roofline.balance.hardware_ratio'
    """
    laws = places() if among is None else among
    key = name.strip().replace("-", "_")
    matches = tuple(law for law in laws if f".{law.full_name}".endswith(f".{key}")) if key else ()
    if len(matches) > 1:
        raise SharedName(name, matches)
    if not matches:
        raise UnknownName("law", name, [law.name for law in laws] + [law.full_name for law in laws], HINT)
    return matches[0]


def load(name: str) -> Law:
    """The law of this name, its module imported; laws that a user registered are known too."""
    key = name.strip().replace("-", "_")
    if key in REGISTRY:
        return REGISTRY[key]
    home = place(name)
    module = importlib.import_module(f"headway.laws.{home.module}")
    return getattr(module, home.name).law


@functools.cache
def sentences() -> dict[tuple[str, str], str]:
    """Module and name of every law -> its first sentence, read from the source: Python without docstrings has none."""
    by_place = {}
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(_is_formula(mark) for mark in node.decorator_list):
                doc = (ast.get_docstring(node) or "").partition("\n\n")[0]
                by_place[_module(path), node.name] = " ".join(doc.split())
    return by_place


def _is_formula(mark: ast.expr) -> bool:
    return isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "formula"
