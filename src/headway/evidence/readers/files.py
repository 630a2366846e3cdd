"""Shared parts of the readers: text and JSON records of a file, checked values of a record, and fields from the command line."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headway.core import user_file
from headway.core.errors import BadFile, BadValue, HeadwayError, clip, printable
from headway.core.measured import DEGREE, INSTANT, LENGTH, SEQUENCES, BadCell, cell
from headway.core.schema import Field
from headway.evidence.rows.row import BadRow, MeasuredRow
from headway.hardware.system import system

Record = Mapping[str, Any]
MOST_WHY = 300  # characters
FIRST_INSTANT = 1.5e9  # seconds since 1970, below which a clock counts from a machine's start


class Unusable(HeadwayError):
    """Error of a record that cannot become a measured row; its text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLine:
    """A record with the line where it starts, or the reason why there is no record."""

    line: int
    record: Record | None
    why: str = ""


def rows_of(
    path: str | Path, entries: Iterable[RecordLine], make: Callable[[Record, int, str], MeasuredRow]
) -> tuple[list[MeasuredRow], list[BadRow]]:
    """Row of each record by `make(record, line, id)`, and the bad records; BadFile if no record can be decoded."""
    rows: list[MeasuredRow] = []
    bad: list[BadRow] = []
    decoded = 0
    for number, entry in enumerate(entries, 1):
        name = printable(f"{Path(path).stem}-{number}")
        if entry.record is None:
            bad.append(BadRow(line=entry.line, id=name, why=entry.why))
            continue
        decoded += 1
        try:
            rows.append(make(entry.record, entry.line, name))
        except Unusable as error:
            bad.append(BadRow(line=entry.line, id=name, why=clip(error, MOST_WHY)))
    if not decoded:
        raise BadFile(path, f"line {bad[0].line}: {bad[0].why}" if bad else "holds no result")
    return rows, bad


def number(record: Record, key: str, q: Field, scale: float = 1.0) -> float | None:
    """Quantity of a key in SI, also if written as text; 0 where it was not measured, as tools write it; None if absent, null or empty."""
    value = record.get(key)
    if value is None or value == "":
        return None
    if (isinstance(value, str) and re.fullmatch(r"\s*0+(\.0*)?\s*", value)) or (value == 0 and not isinstance(value, bool)):
        return 0.0
    try:
        return cell(value, q, key, scale)
    except BadCell as error:
        raise Unusable(str(error)) from None


def positive(record: Record, q: Field, *keys: str, scale: float = 1.0) -> float | None:
    """First quantity above 0 among the keys; None if there is none."""
    return next((value for key in keys if (value := number(record, key, q, scale))), None)


def scatter(record: Record, mean: str, deviation: str) -> float | None:
    """Standard deviation of lengths over their mean, of a record of statistics; None if it states none."""
    middle, spread = positive(record, LENGTH, mean), number(record, deviation, LENGTH)
    return None if middle is None or spread is None else spread / middle


def scatter_of(lengths: Sequence[float]) -> float | None:
    """Standard deviation over mean of the lengths of each request; None without any."""
    mean = sum(lengths) / max(len(lengths), 1)
    return statistics.pstdev(lengths) / mean if mean else None


def needed(record: Record, q: Field, *keys: str, scale: float = 1.0) -> float:
    """First quantity above 0 among the keys; raises Unusable if there is none."""
    value = positive(record, q, *keys, scale=scale)
    if value is None:
        raise Unusable(f"{' or '.join(keys)}: missing or 0")
    return value


def count(record: Record, *keys: str) -> int | None:
    """First whole number >= 1 among the keys, or None."""
    value = positive(record, DEGREE, *keys)
    return None if value is None else int(value)


def sequences(record: Record, *keys: str) -> float | None:
    """Most sequences of a rank, as the engine was started, by the first of the keys that says it."""
    return positive(record, SEQUENCES, *keys)


def text(record: Record, key: str) -> str:
    """Text of a key; "" if it is absent, null or not text."""
    value = record.get(key)
    return printable(value.strip()) if isinstance(value, str) else ""


def month(record: Record, key: str) -> str:
    """Month of a date as tools write it, year first: 20260820-231939, 2026-08-20T23:19:39Z, or seconds since 1970; "" without one.

    >>> month({"date": "20260820-231939"}, "date"), month({"start": 1787267980.1}, "start"), month({"start": 27536.6}, "start")
    ('2026-08', '2026-08', '')
    """
    value = record.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool) and FIRST_INSTANT < value < INSTANT.high:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m")
    match = re.match(r"(20\d\d)-?(0[1-9]|1[0-2])(?!\d{5})", value.strip()) if isinstance(value, str) else None
    return f"{match[1]}-{match[2]}" if match else ""


def flag(record: Record, key: str) -> bool:
    """Whether a key is true, including the texts and numbers that mean true."""
    return str(record.get(key, "")).strip().lower() in ("true", "1", "yes", "on")


def inner(record: Record, *keys: str) -> Record:
    """Record nested under the keys in turn; empty if there is none."""
    for key in keys:
        value = record.get(key)
        record = value if isinstance(value, Mapping) else {}
    return record


_NEXT = re.compile(r"\n[ \t]*(?=\{)")
_SPACE = re.compile(r"[\s,]*")
_FIRST = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)


def text_of(path: str | Path) -> str:
    """Text of a benchmark's result."""
    return user_file.text_of(path, user_file.BENCHMARK)


def json_records(text: str, path: str | Path) -> Iterator[RecordLine]:
    """JSON objects of a text, each with the line where it starts; after an invalid object, reading resumes at the next line."""
    start = _FIRST.search(text)
    if start is None:
        raise BadFile(path, "is not JSON: no line starts with { or [")
    at = start.end() + (text[start.end()] == "[")
    decoder = json.JSONDecoder(object_pairs_hook=user_file.members)
    line, line_offset = 1, 0
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        line, line_offset = line + text.count("\n", line_offset, at), at
        if at >= len(text) or text[at] == "]":
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if isinstance(error, json.JSONDecodeError):
                why = f"is not JSON, or was cut off (line {error.lineno}, column {error.colno}: {error.msg})"
            else:
                why = "is not JSON that can be read (too deep, or a number too long)" if "twice" not in str(error) else clip(error)
            yield RecordLine(line=line, record=None, why=why)
            following = _NEXT.search(text, max(at, text.rfind("\n", at, getattr(error, "pos", at) + 1)))
            if following is None:
                return
            at = following.end()
            continue
        is_record = isinstance(value, dict)
        yield RecordLine(line=line, record=value if is_record else None, why="" if is_record else "is no JSON object")


_COUNT_AND_NAME = re.compile(r"\s*(\d{1,7})\s*[xX*×]\s*(\S.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFields:
    """Fields of a run from the command line, empty or None if not given; they override the file."""

    model: str = ""
    hardware: str = ""
    chips: int | None = None
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    dp: int | None = None
    engine: str = ""
    engine_version: str = ""
    max_num_seqs: int | None = None
    weights: str = ""
    kv: str = ""
    prompt: float | None = None  # for tools that report tokens without separating prompt from output
    output: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMachine:
    """Machine of a run: kind and count of chips, and the layout; None for what neither file nor command line states."""

    hardware: str
    chips: int | None = None
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    dp: int | None = None


def machine(text: str) -> tuple[str, int | None]:
    """Chip and number of chips that `--on` names; None if the name has no number.

    >>> machine("8xh100-sxm"), machine("2x8xh100-sxm"), machine("gb200-nvl72")
    (('h100-sxm', 8), ('h100-sxm', 16), ('gb200-nvl72', None))
    """
    match = _COUNT_AND_NAME.fullmatch(text)
    if not match or not int(match[1]):
        return text.strip(), None
    name, count = machine(match[2])
    return name, int(match[1]) * (count or 1)


def run_machine(user_input: RunFields, run_place: RunMachine) -> RunMachine:
    """Machine and layout of a run, each fact from the command line, else from its file."""
    facts = asdict(run_place)
    return RunMachine(**{name: getattr(user_input, name) or value for name, value in facts.items()})


def place(user_input: RunFields, run_place: RunMachine, what: str) -> RunMachine:
    """Machine and layout of a run, with its chips; `what` names the kind of file."""
    at = run_machine(user_input, run_place)
    if not at.hardware:
        raise BadValue("--on", "nothing", f"the chips that ran it, such as 8xh100-sxm: {what} does not name them")
    try:
        return replace(at, chips=_layout_chips(at))
    except BadValue as error:  # a layout from the file makes one run unusable; a layout from the command line is wrong for all runs
        raise (Unusable(str(error)) if run_place.tp or run_place.pp or run_place.dp else error) from None


def measured_row(user_input: RunFields, at: RunMachine, **values: Any) -> MeasuredRow:
    """Row of a run on a machine: these values, but for those that the command line states."""
    names = ("engine", "engine_version", "max_num_seqs", "weights", "kv")
    rate = values.get("output_tok_per_s") or values.get("input_tok_per_s")
    values |= {name: value for name in names if (value := getattr(user_input, name))}
    return MeasuredRow(**values, **asdict(at), tok_per_s_chip=rate / at.chips if rate and at.chips else None)


def _layout_chips(at: RunMachine) -> int | None:
    """Chips of a layout; raises BadValue if the machine has another number (idle chips and replicas are not guessed).

    Without a layout those of a rack or server, 1 of a chip, None of an unknown name.
    """
    if at.tp is None:
        try:
            return at.chips or int(system(at.hardware).chips)
        except HeadwayError:  # the prediction of the row reports an unknown name, with the nearest names
            return None
    ranks = at.dp or 1
    chips = at.tp * (at.pp or 1) * ranks
    shared = {chips, chips // ranks} if (at.ep or 1) > 1 else {chips}  # attention ranks may count within tp, as SGLang's --dp does
    if at.chips is None or at.chips in shared:
        return at.chips or chips
    copies = f", or add --dp {at.chips // chips}" if at.chips % chips == 0 else ""
    raise BadValue("--on", f"{at.chips} chips", f"the tp x pp x dp = {chips} chips of the layout: --on {chips}x{at.hardware}{copies}")


def one_model(user_input: RunFields, model_names: Iterable[str], what: str) -> None:
    """Raise BadValue if `--model` is given for a file that names several models."""
    names = sorted(set(model_names) - {""})
    if user_input.model and len(names) > 1:
        raise BadValue("--model", user_input.model, f"no value, because {what} names {len(names)} models: {clip(', '.join(names))}")


def model(user_input: RunFields, file_model: str, what: str) -> str:
    """Model name from the command line, else from the file."""
    if user_input.model or file_model:
        return user_input.model or file_model
    raise BadValue("--model", "nothing", f"the model that was measured: {what} does not name it")
