"""Measured kernels as work: each row's seconds, and what it had to do in seconds at the chip's datasheet peak."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.chip import Chip, chip
from headway.errors import BadFile, MissingExtra

FAMILY = (("a100", "ampere"), ("a800", "ampere"), ("h100", "hopper"), ("h200", "hopper"), ("h800", "hopper"), ("h20", "hopper"),
          ("b200", "blackwell"), ("b300", "blackwell"))  # fmt: skip
Column = Any  # a numpy array


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRows:
    """Rows of one class and dtype; all columns are arrays of one length."""

    chip: Column
    shape: Column  # rows of one shape err together
    seconds: Column
    work: tuple[Column, ...]  # what the class's law takes, at peak

    def __len__(self) -> int:
        return len(self.seconds)

    def where(self, keep: Column) -> KernelRows:
        """Some of the rows."""
        return replace(
            self, chip=self.chip[keep], shape=self.shape[keep], seconds=self.seconds[keep], work=tuple(column[keep] for column in self.work)
        )


@dataclass(frozen=True, slots=True)
class KernelTable:
    """Columns of one measured table."""

    columns: dict[str, Column]
    origin: object = "measured kernels"

    def __getattr__(self, name: str) -> Column:
        if name not in self.columns:
            raise BadFile(self.origin, f"has no column {name}, only {', '.join(self.columns)}")
        return self.columns[name]

    def where(self, keep: Column) -> KernelTable:
        """Some of the rows."""
        return KernelTable({name: column[keep] for name, column in self.columns.items()}, self.origin)


def table(folder: Path, name: str) -> KernelTable:
    """One parquet file of the folder, texts as numpy texts."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtra("parquet files", "table") from error
    path = folder / f"{name}.parquet"
    if not path.is_file():
        raise BadFile(path, "no such file")
    try:
        read = parquet.read_table(path)
    except (ArrowException, OSError):
        raise BadFile(path, "cannot be read as a parquet table") from None
    return KernelTable({column: _plain(read.column(column).combine_chunks()) for column in read.column_names}, path)


def _plain(column: Any) -> Column:
    values = column.to_numpy(zero_copy_only=False)
    return values.astype(str) if values.dtype == object else values


def family(name: str) -> str:
    """The family of a chip that was measured; other for the rest."""
    return next((value for start, value in FAMILY if name.startswith(start)), "other")


def per_chip(names: Column, fact: str) -> Column:
    """A datasheet fact for each row."""
    known, place = np.unique(names, return_inverse=True)
    return np.array([float(getattr(_chip(str(name)), fact) or np.nan) for name in known])[place]


def _chip(name: str) -> Chip:
    return chip(name)


def fastest(rows: KernelTable, keys: tuple[str, ...]) -> KernelTable:
    """The fastest backend of each case: the hardware rather than one library's choice."""
    codes = shape_codes(*(getattr(rows, key) for key in keys))
    order = np.lexsort((rows.latency_s, codes))
    first = np.concatenate([[True], codes[order][1:] != codes[order][:-1]])
    return rows.where(order[first])


def thinned(rows: KernelRows, most: int, seed: int = 4) -> KernelRows:
    """At most so many rows of each chip, the same ones every time."""
    keep = np.zeros(len(rows), bool)
    rng = np.random.default_rng(seed)
    for name in np.unique(rows.chip):
        indices = np.flatnonzero(rows.chip == name)
        keep[indices if len(indices) <= most else rng.choice(indices, most, replace=False)] = True
    return rows.where(keep)


def shape_codes(*columns: Column) -> Column:
    """A number for each distinct combination."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        codes = codes * len(values) + place
    return np.unique(codes, return_inverse=True)[1]
