"""Reading the records of a benchmark's output: the text of a file, a value there, absent or wrong, and what the command line adds."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headway.core.errors import BadFile, BadValue, HeadwayError, clip
from headway.evidence.rows.row import BadRow, MeasuredRow

Record = Mapping[str, Any]
MOST = 1e15
MOST_WHY = 300  # characters


class Unusable(HeadwayError):
    """A record that is no measurement a row can hold; `str()` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLine:
    """A record and the line it starts on, or why there is none."""

    line: int
    record: Record | None
    why: str = ""


def rows_of(
    path: str | Path, entries: Iterable[RecordLine], make: Callable[[Record, int, str], MeasuredRow]
) -> tuple[list[MeasuredRow], list[BadRow]]:
    """A row of each record, by `make(record, line, id)`; BadFile when not one record could even be decoded."""
    rows: list[MeasuredRow] = []
    bad: list[BadRow] = []
    decoded = 0
    for number, entry in enumerate(entries, 1):
        name = f"{Path(path).stem}-{number}"
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


def number(record: Record, key: str) -> float | None:
    """A finite number from 0 on, also where it is written as text; None where the key is absent, null or empty."""
    value = record.get(key)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        amount = float(value)
    except (ValueError, OverflowError):
        raise Unusable(f"{key}: got {clip(value)!r}; wants a number") from None
    if not math.isfinite(amount) or not 0 <= amount <= MOST:
        raise Unusable(f"{key}: got {clip(value)!r}; wants a number from 0 to {MOST:g}")
    return amount


def positive(record: Record, *keys: str) -> float | None:
    """The first of these that is there and not 0: tools write 0 for what they did not measure."""
    return next((value for key in keys if (value := number(record, key))), None)


def needed(record: Record, *keys: str) -> float:
    """As `positive`, but the record is unusable without it."""
    value = positive(record, *keys)
    if value is None:
        raise Unusable(f"{' or '.join(keys)}: missing or 0")
    return value


def count(record: Record, *keys: str) -> int | None:
    """A count of at least 1, or None."""
    for key in keys:
        value = number(record, key)
        if value:
            if value != int(value):
                raise Unusable(f"{key}: got {clip(record[key])!r}; wants a whole number")
            return int(value)
    return None


def text(record: Record, key: str) -> str:
    """A text; "" where it is absent, null or no text."""
    value = record.get(key)
    return value.strip() if isinstance(value, str) else ""


def flag(record: Record, key: str) -> bool:
    """True, also as the texts and numbers that stand for it."""
    return str(record.get(key, "")).strip().lower() in ("true", "1", "yes", "on")


def inner(record: Record, *keys: str) -> Record:
    """The record inside records under these keys; an empty one where there is none."""
    for key in keys:
        value = record.get(key)
        record = value if isinstance(value, Mapping) else {}
    return record


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


_COUNT_AND_NAME = re.compile(r"\s*(\d{1,7})\s*[xX*×]\s*(\S.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFields:
    """As typed; empty or None where it was not. What is given stands above what a file says."""

    model: str = ""
    hardware: str = ""
    chips: int | None = None
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    dp: int | None = None
    engine: str = ""
    engine_version: str = ""
    weights: str = ""
    kv: str = ""
    prompt: float | None = None  # of tools that report tokens without telling prompt from output
    output: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMachine:
    """Where a run ran: so many chips of one kind, and how the model lay on them; None where nobody says."""

    hardware: str
    chips: int | None = None
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    dp: int | None = None


def machine(text: str) -> tuple[str, int | None]:
    """The chip and the number of them that `--on` names; no number where the name has none.

    >>> machine("8xh100-sxm"), machine("2x8xh100-sxm"), machine("gb200-nvl72")
    (('h100-sxm', 8), ('h100-sxm', 16), ('gb200-nvl72', None))
    """
    match = _COUNT_AND_NAME.fullmatch(text)
    if not match or not int(match[1]):
        return text.strip(), None
    name, count = machine(match[2])
    return name, int(match[1]) * (count or 1)


def place(user_input: RunFields, run_place: RunMachine, what: str) -> RunMachine:
    """The machine and layout of a run: what is given, then what its file says; `what` names the file's kind."""
    hardware = user_input.hardware or run_place.hardware
    if not hardware:
        raise BadValue("--on", "nothing", f"the chips that ran it, such as 8xh100-sxm: {what} does not name them")
    tp, ep, pp, dp = (
        user_input.tp or run_place.tp,
        user_input.ep or run_place.ep,
        user_input.pp or run_place.pp,
        user_input.dp or run_place.dp,
    )
    final_place = RunMachine(hardware=hardware, chips=user_input.chips or run_place.chips, tp=tp, ep=ep, pp=pp, dp=dp)
    try:
        return replace(final_place, chips=_layout_chips(final_place))
    except BadValue as error:  # one run's own layout is that run's trouble, a layout given is everyone's
        raise (Unusable(str(error)) if run_place.tp or run_place.pp or run_place.dp else error) from None


def _layout_chips(at: RunMachine) -> int | None:
    """The chips a layout uses, which must be those of the machine: idle chips and copies are not guessed."""
    if at.tp is None:
        return at.chips or _system_chips(at.hardware)
    ranks = at.dp or 1
    chips = at.tp * (at.pp or 1) * ranks
    shared = {chips, chips // ranks} if (at.ep or 1) > 1 else {chips}  # attention ranks may count within tp, as SGLang's --dp does
    if at.chips is None or at.chips in shared:
        return at.chips or chips
    copies = f", or add --dp {at.chips // chips}" if at.chips % chips == 0 else ""
    raise BadValue("--on", f"{at.chips} chips", f"the tp x pp x dp = {chips} chips of the layout: --on {chips}x{at.hardware}{copies}")


def _system_chips(hardware: str) -> int | None:
    """The chips of a machine named without a number: a rack or a server by its name, one chip by its own."""
    from headway.hardware.system import system

    try:
        return int(system(hardware).chips)
    except HeadwayError:  # an unknown name is told where the row is predicted, with the nearest ones
        return None


def one_model(user_input: RunFields, model_names: Iterable[str], what: str) -> None:
    """`--model` names one model, so a file that names several must do without."""
    names = sorted(set(model_names) - {""})
    if user_input.model and len(names) > 1:
        raise BadValue("--model", user_input.model, f"no value, because {what} names {len(names)} models: {clip(', '.join(names))}")


def model(user_input: RunFields, file_model: str, what: str) -> str:
    """The model's name: as given, else as the file has it."""
    if user_input.model or file_model:
        return user_input.model or file_model
    raise BadValue("--model", "nothing", f"the model that was measured: {what} does not name it")
