"""Where `fit` writes, the pages it writes into, and what it lists of each number."""

from __future__ import annotations

from pathlib import Path

from headway.columns import Column
from headway.errors import BadFile

KEYS = {
    "section": Column("", "class.family.format of a kernel, or engine, platform or interval"),
    "key": Column("", "what the number is of it"),
    "value": Column("", "the number, in the unit beside it"),
    "unit": Column("", "its unit"),
    "error": Column("", "one standard error, in the same unit; 0 where the number was stated, not fitted"),
    "rows": Column("", "measurements it was fitted to"),
    "meaning": Column("", "what it says"),
}


def folder(name: str) -> Path:
    """A folder to write to that is there."""
    path = Path(name)
    if not path.is_dir():
        raise BadFile(name, "is not a folder to write to")
    return path


def text_of(path: str) -> str:
    """The text of a page."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadFile(path, "cannot be read as UTF-8 text") from None
