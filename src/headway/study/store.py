"""The folder of a sweep: one Parquet file a chunk under the name of its verb, each written whole; in the end one schema and one hash.

A part that is there is a chunk that is done: nothing else says so, so that no kill can make it wrong.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.core.errors import BadFile, HeadwayError
from headway.core.files import write_whole
from headway.study.columns import ERROR, INPUT, QUESTION, arrow, cast, joined_types, settled_types

if TYPE_CHECKING:
    import pyarrow

ABOUT = b"headway.sweep"
SUFFIX = ".parquet"
BROKEN = "is no whole part of this sweep: delete it, and the same command makes it again"


def encoded(table: pyarrow.Table, about: Mapping[str, Any]) -> bytes:
    """The bytes of a part."""
    from pyarrow import parquet

    kinds = arrow().types
    texts = [field.name for field in table.schema if kinds.is_string(field.type)]  # numbers seldom repeat
    table = table.replace_schema_metadata({ABOUT: json.dumps(about).encode()})
    sink = arrow().BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd", use_dictionary=texts)  # pyright: ignore[reportArgumentType]  # its stubs know no names of columns
    return sink.getvalue().to_pybytes()


def about_of(path: Path, sweep: str) -> dict[str, Any]:
    """What a part says of itself; BadFile where it is none of this sweep."""
    from pyarrow import parquet

    try:
        about = json.loads((parquet.read_schema(path).metadata or {})[ABOUT])
    except (OSError, KeyError, ValueError):
        about = {}
    if about.get("sweep") != sweep:
        raise BadFile(path, BROKEN)
    return about


@contextmanager
def reading(part: Path) -> Iterator[None]:
    """Within this block a part that cannot be read is one line."""
    try:
        yield
    except (arrow().ArrowInvalid, OSError):
        raise BadFile(part, BROKEN) from None


def read_part(part: Path) -> pyarrow.Table:
    """Every row of a part."""
    from pyarrow import parquet

    with reading(part):
        return parquet.ParquetFile(part).read()


@contextmanager
def room(folder: Path) -> Any:
    """Within this block a disk that is full, or a folder that cannot be written, is one line that says how to go on."""
    try:
        yield
    except OSError as error:
        room_first = "make room, and " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        advice = f"every finished chunk is there; {room_first}the same command goes on"
        raise HeadwayError(f"{folder}: {error.strerror or error}: {advice}") from None


def keep(path: Path, data: bytes) -> None:
    """Write a part."""
    with room(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)


def drafts(folder: Path) -> Iterable[Path]:
    """Parts that a killed command left half written."""
    return folder.glob(f"*/.*{SUFFIX}.*")


def settle(parts: list[Path]) -> None:
    """Give the parts of one verb one schema, so that every reader of Parquet takes them as one table."""
    from pyarrow import parquet

    types = settled_types(joined_types(parquet.read_schema(part) for part in parts))
    for part in parts:
        schema = parquet.read_schema(part)
        if {field.name: field.type for field in schema} != types or schema.names != list(types):
            table = read_part(part)
            keep(part, encoded(cast(table, types), json.loads(table.schema.metadata[ABOUT])))


def table(parts: Mapping[str, list[Path]], with_verb: bool) -> pyarrow.Table:
    """All rows of these parts, by verb."""
    tables = []
    for verb, paths in parts.items():
        for path in paths:
            rows = read_part(path)
            tables.append(rows.add_column(0, "verb", [[verb] * rows.num_rows]) if with_verb else rows)
    if not tables:
        raise HeadwayError("no answers are there yet: a dry run writes none, and no chunk has ended")
    types = settled_types(joined_types(table.schema for table in tables))
    return arrow().concat_tables([cast(table, types) for table in tables])


def failures(part: Path) -> list[dict[str, Any]]:
    """Questions of a part that have no answer: their number, their inputs, the reason."""
    from pyarrow import compute, parquet

    with reading(part):
        file = parquet.ParquetFile(part)
        names = [name for name in file.schema_arrow.names if name in (QUESTION, ERROR) or name.startswith(INPUT)]
        table = file.read(names)
    return table.filter(compute.call_function("is_valid", [table[ERROR]])).to_pylist()


def rows_hash(parts: Iterable[tuple[str, Path]]) -> str:
    """SHA-256 of every value of every row, column by column, in the order of the questions: parts may be cut anywhere."""
    from pyarrow import parquet

    digests: dict[tuple[str, str], Any] = {}
    for verb, part in parts:
        with reading(part):
            for batch in parquet.ParquetFile(part).iter_batches(65_536):
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    digest = digests.setdefault((verb, name), hashlib.sha256())
                    for piece in _canonical(column):
                        digest.update(piece)
    return hashlib.sha256(json.dumps([[*key, digests[key].hexdigest()] for key in sorted(digests)]).encode()).hexdigest()


def _canonical(column: pyarrow.Array) -> Iterable[bytes]:
    """A column as bytes: of each text its length and its letters; of each number eight bytes; null has its own pattern."""
    kinds = arrow().types
    if kinds.is_string(column.type) or kinds.is_large_string(column.type):
        return [b"".join(b"-" if value is None else b"%d:%b" % (len(value), value.encode()) for value in column.to_pylist())]
    null = np.asarray(column.is_null())
    if kinds.is_boolean(column.type):
        return [np.where(null, 2, np.asarray(column.fill_null(False)).astype(np.int8)).astype(np.int8).tobytes()]
    values = np.asarray(column.fill_null(0)).astype("<i8" if kinds.is_integer(column.type) else "<f8")
    return [_interleaved(null, values)]


def _interleaved(null: Any, values: Any) -> bytes:
    pairs = np.empty(len(values), dtype=[("null", "i1"), ("value", values.dtype)])
    pairs["null"], pairs["value"] = null, values
    return pairs.tobytes()
