"""Where facts are read from: the user's own folders first, then the package's.

A folder holds chips/NAME.toml, systems/NAME.toml, costs/NAME.toml, tiers/NAME.toml, models/NAME.json and aliases/KIND.txt; the first folder
that has a name wins. In names, case does not count and `-`, `_` and space are equal.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from headway.errors import BadFile, UnknownName

PACKAGED = Path(__file__).parent / "data"
SUFFIX = {"chips": ".toml", "systems": ".toml", "costs": ".toml", "tiers": ".toml", "sheets": ".toml", "cases": ".toml", "models": ".json"}
_SEPARATORS = re.compile(r"[\s_-]+")


def fold(name: str) -> str:
    """The one spelling of a name.

    >>> fold("H100_SXM"), fold(" h100 sxm")
    ('h100-sxm', 'h100-sxm')
    """
    return _SEPARATORS.sub("-", name.strip().lower())


@dataclass(frozen=True, slots=True)
class Catalog:
    """The folders that facts are read from, in the order they are asked."""

    roots: tuple[Path, ...] = (PACKAGED,)

    def files(self, kind: str) -> dict[str, Path]:
        """Each name of a kind (chips, systems, costs, tiers, models) and its file."""
        paths: dict[str, Path] = {}
        for root in reversed(self.roots):
            paths |= _files_by_name(root / kind, SUFFIX[kind])
        return paths

    def aliases(self, kind: str) -> dict[str, str]:
        """Each other name people type for something of this kind, and the name it stands for."""
        by_alias: dict[str, str] = {}
        for root in reversed(self.roots):
            path = root / "aliases" / f"{kind}.txt"
            if path.is_file():
                by_alias |= _read_aliases(path)
        return by_alias

    def find(self, kind: str, name: str) -> Path | None:
        """The file of a name or of what the name stands for."""
        files, key = self.files(kind), fold(name)
        return files.get(key) or files.get(self.aliases(kind).get(key, ""))

    def names(self, *kinds: str) -> list[str]:
        """Every name and alias of these kinds, for offering the nearest ones."""
        return sorted({name for kind in kinds for name in (*self.files(kind), *self.aliases(kind))})

    def path(self, kind: str, name: str) -> Path:
        """The file of a name, or UnknownName with the nearest names."""
        path = self.find(kind, name)
        if path is None:
            raise UnknownName(kind.removesuffix("s"), name, self.names(kind), f"`headway list {kind}` shows all")
        return path


def _files_by_name(folder: Path, suffix: str) -> dict[str, Path]:
    try:
        names = [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BadFile(folder, f"cannot be read ({error.strerror})") from None
    return {fold(name.removesuffix(suffix)): folder / name for name in names if name.endswith(suffix)}


@functools.cache
def _read_aliases(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise BadFile(path, "cannot be read as UTF-8 text") from None
    by_alias: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, alias_text = line.partition(":")
        if not colon:
            raise BadFile(path, f"line {number}: wants `name: other name, other name`")
        by_alias |= dict.fromkeys((alias.strip("-") for alias in fold(alias_text).split(",")), fold(name))
    return by_alias


def open_catalog(folders: Iterable[str | Path] = ()) -> Catalog:
    """The catalogue with `folders` (--catalog DIR) asked first, then $HEADWAY_CATALOG, the user's configuration folder and the package."""
    search_folders = [Path(folder) for folder in folders]
    search_folders += [Path(folder) for folder in os.environ.get("HEADWAY_CATALOG", "").split(os.pathsep) if folder]
    for folder in search_folders:
        if not folder.is_dir():
            raise BadFile(folder, "is not a folder (a catalogue folder holds chips/*.toml, systems/*.toml or models/*.json)")
    user_folder = _user_folder()
    return Catalog((*search_folders, *((user_folder,) if user_folder and user_folder.is_dir() else ()), PACKAGED))


def _user_folder() -> Path | None:
    configured = os.environ.get("XDG_CONFIG_HOME")
    try:
        return (Path(configured) if configured else Path.home() / ".config") / "headway"
    except RuntimeError:  # no home folder
        return None


@functools.cache
def default_catalog() -> Catalog:
    """The catalogue of a run without --catalog."""
    return open_catalog()
