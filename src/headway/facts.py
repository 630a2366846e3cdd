"""Facts from files: one line each with value, unit, source, date and kind, read into numbers that know their origin.

    [facts]
    hbm_bw = { value = 3350, unit = "GB/s", source = "datasheet", date = "2022-03", kind = "datasheet" }
    [sources]
    datasheet = "NVIDIA H100 datasheet"

A user's own file may say just `hbm_bw = "3350 GB/s"`.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

from headway import schema, units
from headway.catalog import fold
from headway.errors import BadFile, HeadwayError, nearest
from headway.quantity import KINDS, known

MOST_BYTES = 1_000_000  # of one catalogue file: far above any real one, small enough to read at once


@functools.cache
def declared(record: type) -> dict[str, schema.Field]:
    """Each numeric field of a record of facts, with its unit, its sentence and its legal range."""
    return {name: q for name, (q, _) in schema.fields(record).items()}


def read(path: Path) -> dict[str, Any]:
    """A catalogue file as tables, or BadFile naming the line."""
    import tomllib

    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadFile(path, f"is larger than a catalogue file may be ({MOST_BYTES} bytes)")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise BadFile(path, "cannot be read as UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadFile(path, f"is not valid TOML: {error}") from None


def text(document: dict[str, Any], key: str, path: Path) -> str:
    """A text entry of a file, "" when it is absent."""
    value = document.get(key, "")
    if not isinstance(value, str):
        raise BadFile(path, f"{key}: got {value!r}; wants text in quotes")
    return value


def numbers(document: dict[str, Any], record: type, subject: str, path: Path) -> dict[str, Any]:
    """The [facts] of a file as Known numbers in SI, by the field names of `record`."""
    fields, sources = declared(record), table(document, "sources", path)
    values = {}
    for key, entry in table(document, "facts", path).items():
        if key not in fields:
            near = nearest(key, fields)
            raise BadFile(path, f"facts.{key}: no such fact{'; did you mean ' + ' or '.join(near) + '?' if near else ''}")
        values[key] = number(entry, fields[key], f"{subject}.{key}", sources, path)
    return values


def table(document: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    """A table of a file, empty when it is absent."""
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise BadFile(path, f"{key}: wants a table, [{key}]")
    return value


def number(entry: Any, q: schema.Field, name: str, sources: dict[str, Any], path: Path) -> Any:
    """One fact: a table with value, unit, source, date and kind, or a text such as "3350 GB/s"."""
    if isinstance(entry, str):
        try:
            return known(schema.scalar(entry, q, name), name, q.unit, "input", f"user catalogue {path.name}")
        except HeadwayError as error:
            raise BadFile(path, str(error)) from None
    if not isinstance(entry, dict):
        raise BadFile(path, f'{name}: wants {{ value = ..., unit = "...", source = "...", date = "...", kind = "..." }} or text')
    value = si(entry.get("value"), entry.get("unit", ""), q, name, path)
    return known(value, name, q.unit, *origin(entry, name, sources, path))


def si(value: Any, unit: Any, q: schema.Field, name: str, path: Path) -> float:
    """A value in its own unit as the SI number it is, when that is legal."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadFile(path, f"{name}: got value {value!r}; wants a number")
    factor = units.factor_of(unit, q.unit) if isinstance(unit, str) else None
    if factor is None:
        raise BadFile(path, f"{name}: got unit {unit!r}; wants a unit of {q.unit or 'a count'}, as in {units.EXAMPLE[q.unit]}")
    wants = q.illegal(value * factor)
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
    """BadFile when a file has an entry that nothing reads (a misspelt one would be lost silently) or a name that is not its own."""
    if fold(text(document, "name", path) or path.stem) != fold(path.stem):
        raise BadFile(path, f"name: got {document['name']!r}; wants {path.stem!r}, the file's name")
    for key in document:
        if key not in keys:
            near = nearest(key, keys)
            raise BadFile(path, f"{key}: no such entry{'; did you mean ' + ' or '.join(near) + '?' if near else ''}")
