"""Files that a question depends on, each with the hash of its content: what it names, and the user's own catalogue."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from headway.core import user_file
from headway.core.catalog import open_catalog, parts

NAMES = ("file", "folder", "model", "machine", "subject", "sheet", "lengths", "word", "count")  # kinds whose texts may name a file
PIECE = 2**20  # bytes read at a time


def files_of(question: Any) -> dict[str, str]:
    """Path -> SHA-256, of every file that a field names, of folders file by file, and of the user's own catalogue folders.

    A model, machine or price list of the catalogue that ships is told by the version of headway; one of the user's own by its file.
    """
    return {str(path): hash_of(path) for path in sorted({*paths_of(question), *catalogue_files(question.catalog)})}


def paths_of(question: Any) -> list[Path]:
    """Files that the fields of a question name, folders file by file; those of a catalogue apart."""
    values = question.without("catalog").entries().items()
    return list(_in(path for name, value in values for path in _paths(question.flags()[name].field.kind, value)))


def catalogue_files(folders: Iterable[str]) -> list[Path]:
    """Files of the user's own catalogue folders; what else lies there no answer reads."""
    roots = open_catalog(folders).roots[:-1]
    return list(_in(path for root in roots for part in sorted(parts()) if (path := root / part).exists()))


def _paths(kind: str, value: Any) -> Iterator[Path]:
    """Files and folders among the texts of a field; a list has commas, a distribution or a sheet a colon."""
    for text in (value if isinstance(value, tuple) else (value,)) if kind in NAMES else ():
        if isinstance(text, str):
            pieces = {text, *(part.strip() for part in re.split("[,:]", text))}
            yield from (Path(piece) for piece in pieces if piece and _exists(piece))


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _in(paths: Any) -> Iterator[Path]:
    """Files as they are, folders file by file."""
    for path in paths:
        yield from (file for file in path.rglob("*") if file.is_file()) if path.is_dir() else (path,)


def hash_of(path: Path) -> str:
    """SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with user_file.opened(path, user_file.ANY) as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()
