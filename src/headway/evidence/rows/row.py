"""One published measurement of serving, in SI, and the CSV reader; a malformed row is reported with its line."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headway.core.errors import BadFile, clip, printable
from headway.evidence.rows.slips import refuse_slips

MODES = ("decode_step", "prefill", "serving_concurrency", "offline_throughput", "disagg")


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
    prefill_workers: int | None = None  # of a disaggregated row; in both kinds of worker dp is attention data parallelism
    prefill_tp: int | None = None
    prefill_ep: int | None = None
    prefill_dp: int | None = None
    decode_workers: int | None = None
    decode_tp: int | None = None
    decode_ep: int | None = None
    decode_dp: int | None = None
    itl_s: float | None = None  # median time between tokens: a step without prompts, while most steps have none


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A line that is not a valid row, and the reason."""

    line: int
    id: str
    why: str


NEEDED = ("id", "model", "hardware", "mode")
TEXTS = {"id": "id", "model": "model", "hardware": "hardware", "mode": "mode", "engine": "engine", "engine_version": "engine_version",
         "weight_precision": "weights", "kv_precision": "kv", "source_key": "source", "reliability": "reliability",
         "roofline": "roofline", "source_date": "date", "date": "month", "config": "config"}  # fmt: skip
LAYOUT_COLUMNS = {"n_chips": "chips", "tp": "tp", "ep": "ep", "pp": "pp", "dp": "dp"} | {
    f"{pool}_{what}": f"{pool}_{what}" for pool in ("prefill", "decode") for what in ("workers", "tp", "ep", "dp")
}
LENGTHS = {"isl": "prompt", "osl": "output", "context_len": "context"}
ABOVE_ZERO = {"batch_or_concurrency": "concurrency", "output_tok_s_total": "output_tok_per_s", "input_tok_s_total": "input_tok_per_s",
              "tok_s_per_chip": "tok_per_s_chip", "rate_req_s": "request_rate"}  # fmt: skip
MILLISECONDS = {"ttft_ms": "ttft_s", "tpot_ms": "tpot_s"}
MEASURED = ("ttft_s", "tpot_s", "output_tok_per_s", "input_tok_per_s", "tok_per_s_chip")
MOST_CHIPS, MOST = 10_000_000, 1e12


def read_rows(path: str | Path, measured: bool = True) -> tuple[list[MeasuredRow], list[BadRow]]:
    """Rows of a CSV file (`measured`: with measured values), and its malformed lines; BadFile if the file cannot be read."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            return _read(csv.reader(file), path, measured)
    except OSError as error:
        raise BadFile(path, f"cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise BadFile(path, "is not UTF-8 text, so not a CSV of measured rows") from None
    except csv.Error as error:
        raise BadFile(path, f"is not a CSV file ({error})") from None


@dataclass(frozen=True, slots=True)
class _Column:
    """CSV column of a field: its index, its header, and the parser of its text."""

    at: int
    header: str
    field: str
    read: Callable[[str], int | float]


class _Malformed(Exception):
    """Error in one row."""


def _read(lines: Iterator[list[str]], path: str | Path, measured: bool) -> tuple[list[MeasuredRow], list[BadRow]]:
    header = [name.strip() for name in next(lines, [])]
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise BadFile(path, f"has no column {', '.join(missing)}: the first line of measured rows names at least {', '.join(NEEDED)}")
    duplicates = [name for name in _known() if header.count(name) > 1]
    if duplicates:
        raise BadFile(path, f"has more than one column {', '.join(duplicates)}")
    refuse_slips(path, header, _known())
    texts = [(header.index(name), field) for name, field in TEXTS.items() if name in header]
    number_specs = [spec for spec in _numbers() if spec[0] in header and (measured or spec[1] not in MEASURED)]
    numbers = [_Column(header.index(name), name, field, read) for name, field, read in number_specs]
    rows, bad, line = [], [], _line(lines)
    for cells in lines:
        if any(cells):
            try:
                rows.append(_row(cells, len(header), texts, numbers, line))
            except _Malformed as error:
                at = header.index("id")
                bad.append(BadRow(line=line, id=cells[at] if at < len(cells) else "", why=str(error)))
        line = _line(lines)
    return rows, bad


def _line(lines: Iterator[list[str]]) -> int:
    """Line on which the next row starts."""
    return lines.line_num + 1  # type: ignore[attr-defined]


def _known() -> tuple[str, ...]:
    return (*TEXTS, *LAYOUT_COLUMNS, *LENGTHS, *ABOVE_ZERO, *MILLISECONDS)


def _numbers() -> Iterator[tuple[str, str, Callable[[str], int | float]]]:
    for columns, read in ((LAYOUT_COLUMNS, _degree), (LENGTHS, _length), (ABOVE_ZERO, _positive), (MILLISECONDS, _milliseconds)):
        yield from ((name, field, read) for name, field in columns.items())


def _row(cells: list[str], width: int, texts: list[tuple[int, str]], numbers: list[_Column], line: int) -> MeasuredRow:
    if len(cells) > width and any(cells[width:]):
        raise _Malformed(f"{len(cells)} cells under {width} column names")
    cells += [""] * (width - len(cells))
    values: dict = {field: cells[at].strip() for at, field in texts}
    if not "".join(values.values()).isprintable():
        values = {field: printable(text) for field, text in values.items()}
    for name in ("model", "hardware", "mode"):
        if not values[name]:
            raise _Malformed(f"{name}: missing")
    if values["mode"] not in MODES:
        raise _Malformed(f"mode: got {clip(values['mode'])!r}; wants one of {', '.join(MODES)}")
    for column in numbers:
        text = cells[column.at].strip()
        if text:
            try:
                values[column.field] = column.read(text)
            except ValueError as error:
                raise _Malformed(f"{column.header}: got {clip(text)!r}; wants {error}") from None
    return MeasuredRow(line=line, **values)


def _number(text: str, wants: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(wants) from None
    if "_" in text or not math.isfinite(value):
        raise ValueError(wants)
    return value


def _degree(text: str) -> int:
    wants = f"a whole number from 1 to {MOST_CHIPS}"
    value = _number(text, wants)
    if not 1 <= value <= MOST_CHIPS or value != int(value):
        raise ValueError(wants)
    return int(value)


def _length(text: str) -> float:
    wants = f"a number of tokens, 0 to {MOST:g}"
    value = _number(text, wants)
    if not 0 <= value <= MOST:
        raise ValueError(wants)
    return value


def _positive(text: str) -> float:
    wants = f"a number above 0 and at most {MOST:g}"
    value = _number(text, wants)
    if not 0 < value <= MOST:
        raise ValueError(wants)
    return value


def _milliseconds(text: str) -> float:
    return _positive(text) / 1000
