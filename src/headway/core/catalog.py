"""Facts from files: folders (the user's first, then the package's), and one fact with unit, source, date.

A folder holds chips/NAME.toml, systems/NAME.toml, costs/NAME.toml, tiers/NAME.toml, models/NAME.json and aliases/KIND.txt, and a user's
calibrations/NAME.toml and efficiency/NAME.toml, the fitted numbers of chip NAME alone; the first folder that has a name wins. In names,
case does not count and `-`, `_` and space are equal.

    [facts]
    hbm_bw = { value = 3350, unit = "GB/s", source = "datasheet", date = "2022-03", kind = "datasheet" }
    [sources]
    datasheet = "NVIDIA H100 datasheet"

A user's own file may say just `hbm_bw = "3350 GB/s"`.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import math
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core import schema, spellings, user_file
from headway.core.errors import BadFile, HeadwayError, UnknownName, nearest
from headway.core.quantity import KINDS, known

PACKAGED = Path(__file__).parent.parent / "data"
SUFFIX = {"chips": ".toml", "systems": ".toml", "costs": ".toml", "tiers": ".toml", "sheets": ".toml", "cases": ".toml", "models": ".json",
          "calibrations": ".toml", "efficiency": ".toml"}  # fmt: skip
OF_USERS = ("calibrations", "efficiency")  # kinds of which none ship
in_use: ContextVar[tuple[str, ...]] = ContextVar("in_use", default=())  # folders of --catalog while a question is answered
names_alone: ContextVar[bool] = ContextVar("names_alone", default=False)  # models are names of the catalogue: no file, no download
_SEPARATORS = re.compile(r"[\s_-]+")


def fold(name: str) -> str:
    """Normalised spelling of a name.

    >>> fold("H100_SXM"), fold(" h100 sxm")
    ('h100-sxm', 'h100-sxm')
    """
    return _SEPARATORS.sub("-", name.strip().lower())


@dataclass(frozen=True, slots=True)
class Catalog:
    """Folders of fact files, in search order."""

    roots: tuple[Path, ...] = (PACKAGED,)
    shipped: tuple[str, ...] = ()  # kinds of which the user's own folder does not count

    def files(self, kind: str) -> dict[str, Path]:
        """Names of a kind (chips, systems, costs, tiers, models), each with its file."""
        paths: dict[str, Path] = {}
        for root in reversed(self.roots):
            if kind not in self.shipped or root != user_folder():
                paths |= _files_by_name(root / kind, SUFFIX[kind])
        return paths

    def aliases(self, kind: str) -> dict[str, str]:
        """Aliases of a kind, each with the name it refers to."""
        by_alias: dict[str, str] = {}
        for root in reversed(self.roots):
            path = root / "aliases" / f"{kind}.txt"
            if path.is_file():
                by_alias |= _read_aliases(path)
        return by_alias

    def find(self, kind: str, name: str) -> Path | None:
        """The file of a name or alias, None when there is none."""
        files, key = self.files(kind), fold(name)
        return files.get(key) or files.get(self.aliases(kind).get(key, ""))

    def names(self, *kinds: str) -> list[str]:
        """All names and aliases of these kinds, to offer the nearest."""
        return sorted({name for kind in kinds for name in (*self.files(kind), *self.aliases(kind))})

    def path(self, kind: str, name: str) -> Path:
        """The file of a name or alias, or UnknownName with the nearest names."""
        path = self.find(kind, name)
        if path is None:
            raise UnknownName(kind.removesuffix("s"), name, self.names(kind), f"`headway list {kind}` shows all")
        return path


SETTLED_NS = 2_000_000_000  # age from which a folder's time of change tells every later change: file systems count in coarse ticks


def _files_by_name(folder: Path, suffix: str) -> dict[str, Path]:
    try:
        changed_ns = folder.stat().st_mtime_ns
        settled = time.time_ns() - changed_ns > SETTLED_NS
        return _folder_files(folder, suffix, changed_ns) if settled else _folder_files.__wrapped__(folder, suffix, changed_ns)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BadFile(folder, f"cannot be read ({error.strerror})") from None


@functools.lru_cache(maxsize=64)
def _folder_files(folder: Path, suffix: str, changed_ns: int) -> dict[str, Path]:
    """The files of a folder by name, in one state of it."""
    return {fold(path.name.removesuffix(suffix)): path for path in folder.iterdir() if path.name.endswith(suffix)}


@functools.cache
def _read_aliases(path: Path) -> dict[str, str]:
    lines = user_file.text_of(path, user_file.CATALOGUE).splitlines()
    by_alias: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, alias_text = line.partition(":")
        if not colon:
            raise BadFile(path, f"line {number}: wants `name: other name, other name`")
        by_alias |= dict.fromkeys((alias.strip("-") for alias in fold(alias_text).split(",")), fold(name))
    return by_alias


def open_catalog(folders: Iterable[str | Path] = (), shipped: tuple[str, ...] = ()) -> Catalog:
    """The catalogue of `folders` (--catalog DIR) first, then $HEADWAY_CATALOG, the user's configuration folder and the package."""
    search_folders = [Path(folder) for folder in folders]
    search_folders += [Path(folder) for folder in os.environ.get("HEADWAY_CATALOG", "").split(os.pathsep) if folder]
    for folder in search_folders:
        if not folder.is_dir():
            raise BadFile(folder, "is not a folder (a catalogue folder holds chips/*.toml, systems/*.toml or models/*.json)")
        if not _is_catalogue(folder):
            raise BadFile(
                folder, "is no catalogue folder: it has files, and none of chips/, systems/, models/ or another part of a catalogue"
            )
    home = user_folder()
    return Catalog((*search_folders, *((home,) if home and home.is_dir() else ()), PACKAGED), shipped)


def _is_catalogue(folder: Path) -> bool:
    """Whether a folder has a part of a catalogue, or nothing yet."""
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise BadFile(folder, f"cannot be read ({error.strerror or error})") from None
    return not names or not names.isdisjoint(parts())


@functools.cache
def parts() -> frozenset[str]:
    """Names of what a catalogue folder may hold."""
    return frozenset((*OF_USERS, *(path.name for path in PACKAGED.iterdir() if path.name != "README.md")))


def user_folder() -> Path | None:
    """The user's own catalogue, which need not be there; None without a home folder."""
    configured = os.environ.get("XDG_CONFIG_HOME")
    try:
        return (Path(configured) if configured else Path.home() / ".config") / "headway"
    except RuntimeError:  # no home folder
        return None


@contextlib.contextmanager
def own_folders(folders: tuple[str, ...]) -> Iterator[None]:
    """Within this block facts that values name are sought in these folders of the user's too."""
    token = in_use.set(folders)
    try:
        yield
    finally:
        in_use.reset(token)


@functools.cache
def default_catalog() -> Catalog:
    """The catalogue of a run without --catalog."""
    return open_catalog()


@functools.cache
def lines(name: str) -> tuple[dict[str, str], ...]:
    """The lines of a table that ships as data/NAME, each by the names of its columns.

    >>> lines("model_releases.csv")[0]["name"]
    'ai21-jamba-1.5-large'
    """
    return tuple(csv.DictReader((PACKAGED / name).read_text(encoding="utf-8").splitlines()))


@functools.cache
def declared(record: type) -> dict[str, schema.Field]:
    """Numeric fields of a record of facts, each with its unit, sentence and legal range."""
    return {name: q for name, (q, _) in schema.fields(record).items()}


def read(path: Path) -> dict[str, Any]:
    """A catalogue file as tables, which nobody may change, or BadFile naming the line; parsed again only where the file was changed."""
    try:
        status = path.stat()
    except OSError as error:
        raise BadFile(path, f"cannot be read ({error.strerror or error})") from None
    return _parsed(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=512)
def _parsed(path: Path, changed_ns: int, size: int) -> dict[str, Any]:
    """The tables of a file in one state of it."""
    return user_file.toml_of(user_file.text_of(path, user_file.CATALOGUE), path)


def text(document: dict[str, Any], key: str, path: Path) -> str:
    """A text entry of a file, "" when absent."""
    value = document.get(key, "")
    if not isinstance(value, str):
        raise BadFile(path, f"{key}: got {value!r}; wants text in quotes")
    return value


def numbers(document: dict[str, Any], record: type, subject: str, path: Path) -> dict[str, Any]:
    """The [facts] of a file as Sourced numbers in SI, by the field names of `record`."""
    fields, sources = declared(record), table(document, "sources", path)
    values = {}
    for key, entry in table(document, "facts", path).items():
        if key not in fields:
            near = nearest(key, fields)
            raise BadFile(path, f"facts.{key}: no such fact{'; did you mean ' + ' or '.join(near) + '?' if near else ''}")
        values[key] = number(entry, fields[key], f"{subject}.{key}", sources, path)
    return values


def table(document: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    """A table of a file, empty when absent."""
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise BadFile(path, f"{key}: wants a table, [{key}]")
    return value


def number(entry: Any, q: schema.Field, name: str, sources: dict[str, Any], path: Path) -> Any:
    """One fact: a table with value, unit, source, date and kind, a text such as "3350 GB/s", or a bare number in SI."""
    if isinstance(entry, str) or (
        isinstance(entry, int | float) and not isinstance(entry, bool)
    ):  # a bare number is in SI, a price in USD/h
        try:
            return known(
                schema.scalar(entry if isinstance(entry, str) else repr(entry), q, name),
                name,
                q.unit,
                "input",
                f"user catalogue {path.name}",
            )
        except HeadwayError as error:
            raise BadFile(path, str(error)) from None
    if not isinstance(entry, dict):
        raise BadFile(path, f'{name}: wants {{ value = ..., unit = "...", source = "...", date = "...", kind = "..." }} or text')
    value = si(entry.get("value"), entry.get("unit", ""), q, name, path)
    return known(value, name, q.unit, *origin(entry, name, sources, path))


def si(value: Any, unit: Any, q: schema.Field, name: str, path: Path) -> float:
    """A value in its stated unit as an SI number, or BadFile when it is illegal."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadFile(path, f"{name}: got value {value!r}; wants a number")
    factor = spellings.factor_of(unit, q.unit) if isinstance(unit, str) else None
    if factor is None:
        raise BadFile(path, f"{name}: got unit {unit!r}; wants a unit of {q.unit or 'a count'}, as in {spellings.EXAMPLE[q.unit]}")
    wants = q.illegal(value * factor)
    if not unit and 0 < value < q.bare_least:
        wants = schema.with_unit(value, q)
    if wants:
        raise BadFile(path, f"{name}: got {value!r} {unit}; wants {wants}")
    return int(value * factor) if q.integer else value * factor


def origin(entry: dict[str, Any], name: str, sources: dict[str, Any], path: Path) -> tuple[str, str, str]:
    """Kind, source and date of a fact; source names are looked up in the file's [sources]."""
    kind, source, date = entry.get("kind", "input"), entry.get("source", f"user catalogue {path.name}"), entry.get("date", "undated")
    if kind not in KINDS:
        raise BadFile(path, f"{name}: got kind {kind!r}; wants one of {', '.join(KINDS)}")
    if not isinstance(source, str) or not isinstance(date, str):
        raise BadFile(path, f"{name}: source and date want text in quotes")
    keys = source.split(", ")
    return kind, "; ".join(str(sources[key]) for key in keys) if all(key in sources for key in keys) else source, date


def only(document: dict[str, Any], keys: tuple[str, ...], path: Path) -> None:
    """BadFile when a file has an entry that nothing reads (a misspelt one would be lost silently) or a name unlike its file's."""
    if fold(text(document, "name", path) or path.stem) != fold(path.stem):
        raise BadFile(path, f"name: got {document['name']!r}; wants {path.stem!r}, the file's name")
    for key in document:
        if key not in keys:
            near = nearest(key, keys)
            raise BadFile(path, f"{key}: no such entry{'; did you mean ' + ' or '.join(near) + '?' if near else ''}")
