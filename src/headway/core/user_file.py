"""Files that a user names, read by one guard: whole files of a size that suits their kind, as text; one line says what is wrong.

A device, a folder, a socket and a named pipe (whose writer may never come) are refused. A pipe that the shell opens, as `<(zcat runs.gz)`
and /dev/stdin are, is read up to the size of its kind. A test keeps every other way of reading out of the package.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from headway.core.errors import BadFile, clip

KIB, MIB, GIB = 2**10, 2**20, 2**30


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file should be, and the most bytes that one of its kind has."""

    what: str
    most_bytes: int


CATALOGUE = FileKind("a catalogue file", 1_000_000)
CONFIG = FileKind("a Hugging Face config.json", 8 * MIB)  # real ones are below 1 MiB
WEIGHTS = FileKind("a safetensors file", 2**62)  # of which the header alone is read
INDEX = FileKind("the index of a checkpoint", 64 * MIB)
EXPERT_LOAD = FileKind("a list of tokens per expert", 1_000_000)
SHEETS = FileKind("a file of prices", 100_000_000)
PLAN = FileKind("a saved plan", 100_000_000)
QUESTION = FileKind("a question", 1_000_000)
BENCHMARK = FileKind("a benchmark's result (a summary, without the tokens of each request)", 256 * MIB)
TABLE = FileKind("a CSV table of runs", 256 * MIB)
PRICES = FileKind("a CSV table of prices or sizes", 64 * MIB)
KERNELS = FileKind("a parquet table of measured kernels", GIB)
TRACE = FileKind("a trace of requests", 2 * GIB)
PAGE = FileKind("a page of text", 16 * MIB)
ANY = FileKind("a file that a question names", 2**62)
PROFILE = FileKind("a calibration profile", 64 * MIB)
LAB_RUN = FileKind("a run that `headway lab EXPERIMENT --save FILE.json` wrote", 16 * MIB)
DECK = FileKind("a record of past answers", 4 * MIB)

_SHELL_PIPE = re.compile(r"/dev/stdin|/dev/fd/\d+|/proc/(?:self|\d+)/fd/\d+")
_NO_FILES = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"))


@contextlib.contextmanager
def opened(path: str | Path, kind: FileKind) -> Iterator[BinaryIO]:
    """A file open for reading, or BadFile; errors while it is read become BadFile too."""
    try:
        _check(path, Path(path).stat(), kind)  # before it is opened: opening a device may do something
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb", buffering=MIB) as file:
            status = os.fstat(handle)
            _check(path, status, kind)
            if stat.S_ISFIFO(status.st_mode):
                os.set_blocking(handle, True)
            yield file
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        if isinstance(error, BadFile):
            raise
        raise BadFile(path, f"cannot be read ({getattr(error, 'strerror', None) or clip(error)})") from None


def _check(path: str | Path, status: os.stat_result, kind: FileKind) -> None:
    """Raise BadFile unless this is a regular file that is not too large, or a pipe that the shell opened."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        if status.st_size > kind.most_bytes:
            raise _too_large(path, kind, f"is {_size(status.st_size)}, ")
    elif not (stat.S_ISFIFO(mode) and _SHELL_PIPE.fullmatch(str(path))):
        what = next((words for is_it, words in _NO_FILES if is_it(mode)), "a device")
        raise BadFile(path, f"cannot be read (is {what}, not a file); wants {kind.what}")


def _too_large(path: str | Path, kind: FileKind, begin: str = "goes on ") -> BadFile:
    return BadFile(path, f"{begin}above {_size(kind.most_bytes)}, the most that is read of {kind.what}")


def _size(count: int) -> str:
    scale, unit = next(((scale, unit) for scale, unit in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")) if count >= scale), (1, "bytes"))
    return f"{count / scale:.4g} {unit}"


def data_of(path: str | Path, kind: FileKind) -> bytes:
    """Bytes of a file."""
    with opened(path, kind) as file:
        data = file.read(kind.most_bytes + 1)
    if len(data) > kind.most_bytes:
        raise _too_large(path, kind)
    return data


_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))  # PowerShell's > writes UTF-16


def text_of(path: str | Path, kind: FileKind) -> str:
    """Text of a file in UTF-8, or in UTF-16 with its mark; BadFile if it is empty or no text."""
    data = data_of(path, kind)
    coding = next((name for mark, name in _BOMS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(coding)
        if coding == "utf-16" and not text[:1].isascii():  # no text that any kind of file begins with
            data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadFile(path, f"is not text in UTF-8 (line {line}: byte 0x{data[error.start]:02x}), so not {kind.what}") from None
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise BadFile(path, f"is not text (line {line}: a NUL byte), so not {kind.what}")
    if not text.strip():
        raise BadFile(path, f"is empty; wants {kind.what}")
    return text


def json_of(text: str, path: object, kind: FileKind, constants: bool = True) -> Any:
    """The JSON document in a text; without `constants`, NaN and Infinity, which are no JSON, are refused too."""
    refuse: dict[str, Any] = {} if constants else {"parse_constant": _refuse_constant}
    try:
        return json.loads(text, object_pairs_hook=members, **refuse)
    except RecursionError:
        raise BadFile(path, f"is nested too deeply for {kind.what}") from None
    except ValueError as error:
        raise BadFile(path, f"is not valid JSON, or cut short ({clip(error, 80)}); wants {kind.what}") from None


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys differ; of a key that is there twice, nobody knows which value holds."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {clip(next(key for key in keys if keys.count(key) > 1))!r} is there twice")
    return entries


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"holds {word}, which is no number of JSON")


def toml_of(text: str, path: object) -> dict[str, Any]:
    """The TOML tables in a text."""
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise BadFile(path, "is not valid TOML: nested too deeply") from None
    except (tomllib.TOMLDecodeError, ValueError) as error:  # ValueError: a number of thousands of digits
        raise BadFile(path, f"is not valid TOML, or cut short: {clip(error, 100)}") from None


MOST_LINE = 16 * MIB
GZIP = b"\x1f\x8b"
UNPACKED_MOST, UNPACKED_RATIO = 128 * MIB, 100  # bytes that any packed file may unpack to, and times its size beyond them


@contextlib.contextmanager
def opened_lines(path: str | Path, kind: FileKind) -> Iterator[Any]:
    """A file of lines of any length of file, packed by gzip or not; BadFile once it, or one line, goes on too long."""
    with opened(path, kind) as file:
        packed = file.peek(2)[:2] == GZIP  # type: ignore[attr-defined]  # peek, since a pipe cannot be read twice
        size = os.fstat(file.fileno()).st_size
        most = min(kind.most_bytes, UNPACKED_MOST + UNPACKED_RATIO * size) if packed and size else kind.most_bytes
        source = gzip.GzipFile(fileobj=file) if packed else file
        with io.BufferedReader(_Bounded(source, path, kind, most), buffer_size=MIB) as lines:
            yield lines


class _Bounded(io.RawIOBase):
    """A stream that ends with BadFile after `most` bytes, or within a line longer than MOST_LINE."""

    def __init__(self, source: Any, path: str | Path, kind: FileKind, most: int) -> None:
        self.source, self.path, self.kind, self.most = source, path, kind, most
        self.read_bytes, self.line, self.line_bytes = 0, 1, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.source.read1(len(buffer))
        buffer[: len(data)] = data
        self.read_bytes += len(data)
        last = data.rfind(b"\n")
        self.line_bytes = self.line_bytes + len(data) if last < 0 else len(data) - last
        self.line += data.count(b"\n")
        if self.read_bytes > self.most:
            begin = "unpacks to " if self.most < self.kind.most_bytes else "goes on "
            raise _too_large(self.path, FileKind(self.kind.what, self.most), begin)
        if self.line_bytes > MOST_LINE:
            raise BadFile(self.path, f"line {self.line} is longer than {_size(MOST_LINE)}, so it is not {self.kind.what}")
        return len(data)
