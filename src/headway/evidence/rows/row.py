"""One published measurement of serving, in SI, and the reader of CSV files of measured rows; a malformed row is reported with its line.

Columns go by header name, numbers within limits. A table may have columns of its own, but none that is nearly, or means, one that is read.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.core import user_file
from headway.core.csv_text import csv_header, csv_lines, refuse_twins, width_error
from headway.core.errors import BadFile, clip, printable
from headway.core.measured import (
    ACCEPTED,
    CHIP_TOKEN_RATE,
    DEGREE,
    DRAFTS,
    LENGTH,
    REQUEST_RATE,
    RUN_REQUESTS,
    SCATTER,
    SEQUENCES,
    TOKEN_RATE,
    TPOT,
    TTFT,
    USERS,
    BadCell,
    cell,
)
from headway.core.schema import Field

MOST_NOTED = 10  # lines left out that have a note of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A line that is not a valid row, and the reason."""

    line: int
    id: str
    why: str


def need_rows(path: str | Path, rows: Sequence[Any], bad: Sequence[BadRow]) -> None:
    """Raise BadFile, with the first reason, for a file of which no line is a row."""
    if bad and not rows:
        more = f" (and {len(bad) - 1:,} more lines)" if len(bad) > 1 else ""
        raise BadFile(path, f"has no good line; line {bad[0].line}: {bad[0].why}{more}")


def left_out(path: str | Path, bad: Sequence[BadRow]) -> list[str]:
    """A note on each of the first lines that are no rows, and one on the others."""
    name = printable(Path(path).name)
    notes = [f"{name} line {row.line}: {row.why}; left out" for row in bad[:MOST_NOTED]]
    return [*notes, f"{name}: {len(bad) - MOST_NOTED:,} more lines left out"] if len(bad) > MOST_NOTED else notes


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberColumn:
    """A column of numbers: its header, the field of the row, what a cell may hold, and the SI units of one of its own."""

    header: str
    field: str
    q: Field
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """Columns of a kind of rows: those that a file needs (cells of all but the first are never blank), texts and numbers."""

    what: str
    needed: tuple[str, ...]
    texts: Mapping[str, str]  # header -> field
    numbers: tuple[NumberColumn, ...]
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # needed header -> texts that a cell may have
    skipped: tuple[str, ...] = ()  # fields of numbers that are known and not read

    @property
    def headers(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.texts, *(column.header for column in self.numbers))


def read_csv(path: str | Path, record: Callable[..., Any], columns: RowFormat) -> tuple[list[Any], list[BadRow]]:
    """Rows of a CSV file as records, and its malformed lines; BadFile if the file cannot be read."""
    return rows_of_text(user_file.text_of(path, user_file.TABLE), path, record, columns)


def rows_of_text(text: str, path: str | Path, record: Callable[..., Any], columns: RowFormat) -> tuple[list[Any], list[BadRow]]:
    """Rows of a CSV text as records, and its malformed lines; `path` names it in errors."""
    lines = csv_lines(text)
    header = csv_header(lines, path)
    _check(path, header, columns)
    needed = [(header.index(name), name, columns.choices.get(name, ())) for name in columns.needed[1:]]
    texts = [(header.index(name), field) for name, field in columns.texts.items() if name in header]
    numbers = [
        (header.index(column.header), column)
        for column in columns.numbers
        if column.header in header and column.field not in columns.skipped
    ]
    rows, bad, at = [], [], header.index(columns.needed[0])
    for number, cells, why in lines:
        try:
            if why:
                raise BadCell(why)
            rows.append(record(line=number, **_values(cells, len(header), needed, texts, numbers)))
        except BadCell as error:
            bad.append(BadRow(line=number, id=printable(cells[at]) if at < len(cells) else "", why=str(error)))
    return rows, bad


def _check(path: str | Path, header: Sequence[str], columns: RowFormat) -> None:
    """Raise BadFile for a header without the columns needed, with one twice, or with a slip."""
    missing = [name for name in columns.needed if name not in header]
    if missing:
        needed = ", ".join(columns.needed)
        raise BadFile(path, f"has no column {', '.join(missing)}: the first line of {columns.what} names at least {needed}")
    refuse_twins([name for name in header if name in columns.headers], path)
    refuse_slips(path, header, columns.headers)


def _values(
    row_cells: list[str],
    width: int,
    needed: Iterable[tuple[int, str, Collection[str]]],
    texts: Iterable[tuple[int, str]],
    numbers: Iterable[tuple[int, NumberColumn]],
) -> dict[str, Any]:
    """Fields of a row; BadCell names the cell that is wrong."""
    cells = row_cells + [""] * (width - len(row_cells))
    values: dict[str, Any] = {}
    for at, name in texts:
        values[name] = cells[at].strip()
    if not "".join(values.values()).isprintable():
        values = {field: printable(text) for field, text in values.items()}
    for at, name, choices in needed:
        text = cells[at].strip()
        if not text:
            raise BadCell(f"{name}: missing")
        if choices and text not in choices:
            raise BadCell(f"{name}: got {clip(text)!r}; wants one of {', '.join(choices)}")
    if len(row_cells) != width and (why := width_error(row_cells, width)):
        raise BadCell(why)
    for at, column in numbers:
        text = cells[at].strip()
        if text:
            value = cell(text, column.q, column.header, column.scale)
            values[column.field] = int(value) if column.q.integer else value
    return values


NEAR = 0.85  # of difflib's ratio, from which a name is a misspelling
# Names under which other verbs and tools know the columns of measured rows.
MEANT = {
    "weights": "weight_precision", "quantization": "weight_precision", "kv": "kv_precision", "kv_cache_dtype": "kv_precision",
    "prompt": "isl", "input_len": "isl", "output": "osl", "output_len": "osl", "context": "context_len", "batch": "batch_or_concurrency",
    "concurrency": "batch_or_concurrency", "users": "batch_or_concurrency", "chips": "n_chips", "gpus": "n_chips", "num_gpus": "n_chips",
    "chip": "hardware", "gpu": "hardware", "machine": "hardware", "seq": "seq_len", "max_seqs": "max_num_seqs",
    "max_batch_size": "max_num_seqs", "max_running_requests": "max_num_seqs", "num_prompts": "requests", "num_requests": "requests",
    "request_count": "requests",
    "speculative_model": "draft", "num_speculative_tokens": "draft_tokens", "acceptance_length": "accept_length",
    "request_rate": "rate_req_s",
}  # fmt: skip


def refuse_slips(path: str | Path, header: Sequence[str], known: Collection[str]) -> None:
    """Raise BadFile for a column that stands for a known one which is not there: its values would be taken as not stated."""
    absent = [name for name in known if name not in header]
    for name in header:
        if not name or name in known:
            continue
        plain = name.lower().replace(" ", "_").replace("-", "_")
        meant = MEANT.get(plain) or next(iter(difflib.get_close_matches(plain, absent, 1, NEAR)), "")
        if meant in absent:
            raise BadFile(path, f"column {name!r} is not read; did you mean {meant}? A column of your own needs a name less like it")


MODES = ("decode_step", "prefill", "serving_concurrency", "offline_throughput", "disagg")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLog:
    """When each request of a run was sent, in seconds from the first, and its lengths in tokens; in the order of sending."""

    arrival: tuple[float, ...]
    prompt: tuple[int, ...]
    output: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """One measured row; None or "" for what it does not state. Times in seconds, rates in tokens per second."""

    line: int
    id: str
    model: str
    hardware: str
    mode: str
    config: str = ""  # path of the model's config.json
    chips: int | None = None
    engine: str = ""
    engine_version: str = ""
    date: str = ""  # as in the source, year first
    month: str = ""  # of the measurement, or in which the engine's version appeared; year first
    eager: int | None = None  # 1 where the engine ran without CUDA graphs
    weights: str = ""
    kv: str = ""
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    dp: int | None = None
    prompt: float | None = None
    output: float | None = None
    context: float | None = None  # mean KV length during decode
    concurrency: float | None = None  # batch or users, over all chips
    ttft_s: float | None = None
    tpot_s: float | None = None
    output_tok_per_s: float | None = None  # sum over all chips
    input_tok_per_s: float | None = None  # sum over all chips
    tok_per_s_chip: float | None = None  # output tokens; input tokens for a prefill row
    source: str = ""
    reliability: str = ""
    roofline: str = ""
    request_rate: float | None = None  # offered requests per second; None in a closed loop
    requests: float | None = None  # of the run
    draft: str = ""  # what drafts: mtp, eagle or a smaller model
    draft_tokens: int | None = None  # of a sequence in each step
    acceptance: str = ""  # share of drafts accepted, or one for each place with commas
    accept_length: float | None = None  # mean tokens of a step
    length_cv: float | None = None  # of answers' lengths: standard deviation over mean
    max_num_seqs: float | None = None  # most sequences of one data-parallel rank, as the engine was started
    prefill_workers: int | None = None  # of a disaggregated row; in both kinds of worker dp is attention data parallelism
    prefill_tp: int | None = None
    prefill_ep: int | None = None
    prefill_dp: int | None = None
    decode_workers: int | None = None
    decode_tp: int | None = None
    decode_ep: int | None = None
    decode_dp: int | None = None
    itl_s: float | None = None  # median time between tokens: a step without prompts, while most steps have none
    decoding: float | None = None  # sequences that decoded at once, over all chips: mean over the run, as its times say
    log: RequestLog | None = None  # requests of the run, where the file has them


NEEDED = ("id", "model", "hardware", "mode")
TEXTS = {"id": "id", "model": "model", "hardware": "hardware", "mode": "mode", "engine": "engine", "engine_version": "engine_version",
         "weight_precision": "weights", "kv_precision": "kv", "source_key": "source", "reliability": "reliability",
         "roofline": "roofline", "source_date": "date", "date": "month", "config": "config", "draft": "draft",
         "acceptance": "acceptance"}  # fmt: skip
POOLS = tuple(f"{pool}_{what}" for pool in ("prefill", "decode") for what in ("workers", "tp", "ep", "dp"))
NUMBERS = (
    NumberColumn(header="n_chips", field="chips", q=DEGREE),
    *(NumberColumn(header=name, field=name, q=DEGREE) for name in ("tp", "ep", "pp", "dp", *POOLS)),
    NumberColumn(header="eager", field="eager", q=Field(integer=True, open_low=False, high=1)),
    NumberColumn(header="isl", field="prompt", q=LENGTH),
    NumberColumn(header="osl", field="output", q=LENGTH),
    NumberColumn(header="context_len", field="context", q=LENGTH),
    NumberColumn(header="batch_or_concurrency", field="concurrency", q=USERS),
    NumberColumn(header="output_tok_s_total", field="output_tok_per_s", q=TOKEN_RATE),
    NumberColumn(header="input_tok_s_total", field="input_tok_per_s", q=TOKEN_RATE),
    NumberColumn(header="tok_s_per_chip", field="tok_per_s_chip", q=CHIP_TOKEN_RATE),
    NumberColumn(header="length_cv", field="length_cv", q=SCATTER),
    NumberColumn(header="max_num_seqs", field="max_num_seqs", q=SEQUENCES),
    NumberColumn(header="draft_tokens", field="draft_tokens", q=DRAFTS),
    NumberColumn(header="accept_length", field="accept_length", q=ACCEPTED),
    NumberColumn(header="rate_req_s", field="request_rate", q=REQUEST_RATE),
    NumberColumn(header="requests", field="requests", q=RUN_REQUESTS),
    NumberColumn(header="ttft_ms", field="ttft_s", q=TTFT, scale=1e-3),
    NumberColumn(header="tpot_ms", field="tpot_s", q=TPOT, scale=1e-3),
)  # fmt: skip
MEASURED = ("ttft_s", "tpot_s", "output_tok_per_s", "input_tok_per_s", "tok_per_s_chip")


def read_rows(path: str | Path, measured: bool = True) -> tuple[list[MeasuredRow], list[BadRow]]:
    """Rows of a CSV file (`measured`: with measured values), and its malformed lines; BadFile if the file cannot be read."""
    return read_csv(path, MeasuredRow, row_format(measured))


def row_format(measured: bool = True) -> RowFormat:
    """Columns of measured rows; without measured values those columns are known and not read."""
    skipped = () if measured else MEASURED
    return RowFormat(what="measured rows", needed=NEEDED, texts=TEXTS, numbers=NUMBERS, choices={"mode": MODES}, skipped=skipped)
