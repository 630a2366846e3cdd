"""The text of a file whatever wrote it, and the JSON records in a text: one, a list, or one after another."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path

from headway.errors import BadFile
from headway.evidence.readers.record import RecordLine

MOST_BYTES = 256 * 2**20
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))  # PowerShell's > is UTF-16
_NEXT = re.compile(r"\n[ \t]*(?=\{)")
_SPACE = re.compile(r"[\s,]*")
_FIRST = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)


def text_of(path: str | Path) -> str:
    """The text of a file; BadFile where it is missing, empty, too large or no text."""
    try:
        size = Path(path).stat().st_size
        if size > MOST_BYTES:
            most = MOST_BYTES >> 20
            raise BadFile(path, f"is {size / 2**20:.0f} MiB, above {most} MiB: wants a summary, without the tokens of each request")
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        if isinstance(error, BadFile):
            raise
        raise BadFile(path, f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    coding = next((name for mark, name in _BOMS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(coding)
    except UnicodeDecodeError:
        raise BadFile(path, "is not text, so no benchmark's result") from None
    if "\x00" in text:
        raise BadFile(path, "is not text, so no benchmark's result")
    if not text.strip():
        raise BadFile(path, "is empty")
    return text


def json_records(text: str, path: str | Path) -> Iterator[RecordLine]:
    """Each JSON object, with the line it starts on; after one that cannot be decoded the next that starts a line is tried."""
    start = _FIRST.search(text)
    if start is None:
        raise BadFile(path, "is not JSON: no line starts with { or [")
    at = start.end() + (text[start.end()] == "[")
    decoder = json.JSONDecoder()
    line, line_offset = 1, 0
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        line, line_offset = line + text.count("\n", line_offset, at), at
        if at >= len(text) or text[at] == "]":
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            yield RecordLine(line=line, record=None, why=_why(error))
            wrong = getattr(error, "pos", at)
            following = _NEXT.search(text, max(at, text.rfind("\n", at, wrong + 1)))
            if following is None:
                return
            at = following.end()
            continue
        yield (
            RecordLine(line=line, record=value) if isinstance(value, dict) else RecordLine(line=line, record=None, why="is no JSON object")
        )


def _why(error: Exception) -> str:
    """A JSON error as one phrase."""
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON, or was cut off (line {error.lineno}, column {error.colno}: {error.msg})"
    return "is not JSON that can be read (too deep, or a number too long)"
