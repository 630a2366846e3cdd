"""Reader of per-request files: a CSV or JSON line per request, with its start, its times and its tokens, as clients and gateways log them.

Names of columns are those of common tools; a time's unit is the end of its name (_s, _ms, _us, _ns), seconds without one. AIPerf's
profile_export.jsonl is such a file: its metrics hold a value beside its unit (ai-dynamo/aiperf, src/aiperf/common/models/record_models.py).
The load is read from the starts: a closed loop sends a request as soon as another ends, all else are arrivals at a rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from headway.core import measured
from headway.core.csv_text import csv_header, csv_lines, refuse_twins, width_error
from headway.core.errors import BadFile, clip, printable
from headway.core.measured import INSTANT, LENGTH, REQUEST_TIME, SECONDS, BadCell, cell, described, strays
from headway.core.schema import Field
from headway.evidence.readers import files
from headway.evidence.readers.files import Record, RecordLine, RunFields, RunMachine, Unusable, model, place
from headway.evidence.rows.row import BadRow, MeasuredRow, RequestLog

WHAT = "a file of requests"
SOURCE = "requests"
START = ("start", "start_time", "arrival", "arrival_time", "arrived", "timestamp", "request_start", "sent")
END = ("end", "end_time", "finish", "finished", "request_end", "completed_at")
TTFT = ("ttft", "time_to_first_token")
E2E = ("e2e", "e2el", "latency", "request_latency", "e2e_latency", "duration")
TPOT = ("tpot", "time_per_output_token", "inter_token_latency")
PROMPT = ("prompt_tokens", "input_tokens", "prompt", "input_len", "input_sequence_length", "num_prompt_tokens", "isl")
OUTPUT = ("output_tokens", "completion_tokens", "output", "output_len", "output_sequence_length", "num_output_tokens", "osl")
FAILED, NOT_FAILED = ("error", "failed", "was_cancelled"), (None, "", 0, "0", False, "false", "False", "None", "null")
TIMES = ((TTFT, measured.TTFT), (E2E, REQUEST_TIME), (TPOT, measured.TPOT))
NAMED_UNITS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6, "ns": 1e-9, "nanoseconds": 1e-9}
LEAST = 10  # requests, below which means say little
AT_ONCE = 1e-3  # of a request's time, in which a user of a closed loop asks again
FIRST_WAVE = 0.1  # of a request's time, in which all requests of a single wave are sent
FULL, REFILLED = 0.9, 0.8  # of the users in service, after so many of the starts, for a closed loop
TIMED_FROM = 16  # tokens of an answer from which its TPOT is one of steps, not of one late chunk
ROUNDS = 3  # requests of each user from which a closed loop shows, however its users came
MOST_BAD = 0.5  # share of lines without a request, from which the file is another kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRequest:
    """A request of the file: start in seconds of the file's clock, TTFT, the whole time, and its tokens."""

    start: float
    ttft: float | None
    seconds: float
    prompt: float
    output: float


def read(path: str | Path, user_input: RunFields) -> tuple[list[MeasuredRow], list[BadRow]]:
    """The measured row of a file's requests, and its lines without one with the reason; BadFile or BadValue if unreadable."""
    entries = list(_records(path))
    complete = [entry for entry in entries if entry.record is not None and all(entry.record.get(key) in NOT_FAILED for key in FAILED)]
    whys = [(entry.line, entry.why) for entry in entries if entry.record is None]
    failed = len(entries) - len(whys) - len(complete)

    def is_timed(record: Record, names: Sequence[str]) -> bool:
        try:
            return _seconds(record, names, []) is not None
        except Unusable:
            return False

    timed = [names for names in (TTFT, E2E, TPOT) if any(is_timed(entry.record or {}, names) for entry in complete)]
    served: list[tuple[int, ServedRequest]] = []
    for entry in complete:
        try:
            served.append((entry.line, _request(entry.record or {}, timed)))
        except Unusable as error:
            whys.append((entry.line, str(error)))
    far = strays([request.start for _, request in served], sum(request.seconds for _, request in served) / max(len(served), 1))
    near = [pair for at, pair in enumerate(served) if at not in far]
    if far:
        first, last = (end(request.start for _, request in near) for end in (min, max))
        why = "start: got {:.6g} s, far from the {:.6g} .. {:.6g} s of the other requests: another unit or clock?"
        whys += [(served[at][0], why.format(served[at][1].start, first, last)) for at in sorted(far)]
    whys.sort(key=itemgetter(0))
    bad = [BadRow(line=line, id=printable(f"{Path(path).stem}-{line}"), why=clip(why, files.MOST_WHY)) for line, why in whys]
    if not near or len(bad) > MOST_BAD * (len(near) + len(bad)):
        raise BadFile(path, f"line {bad[0].line}: {bad[0].why}" if bad else "holds no request that succeeded")
    if len(near) < LEAST:
        raise BadFile(path, f"holds {len(near)} requests; wants at least {LEAST}, so that means say something")
    return [_row(path, sorted((request for _, request in near), key=lambda request: request.start), failed, user_input)], bad


def _records(path: str | Path) -> Iterator[RecordLine]:
    """The line of each request: JSON objects, with nested ones laid flat, or CSV under a header."""
    text = files.text_of(path)
    if text.lstrip()[:1] in "{[":
        for entry in files.json_records(text, path):
            try:
                yield entry if entry.record is None else RecordLine(line=entry.line, record=dict(_flat(entry.record)))
            except Unusable as error:
                yield RecordLine(line=entry.line, record=None, why=str(error))
        return
    rows = csv_lines(text)
    header = [name.lower() for name in csv_header(rows, path)]
    refuse_twins([name for name in header if name], path)
    for number, cells, why in rows:
        wrong = why or width_error(cells, len(header))
        yield RecordLine(line=number, record=None if wrong else dict(zip(header, cells, strict=False)), why=wrong)


def _flat(record: Record) -> Iterator[tuple[str, Any]]:
    """Keys in lower case; a metric with a unit of time in seconds; of nested records the keys alone."""
    for key, value in record.items():
        if not isinstance(value, Mapping):
            yield key.lower(), value
        elif "value" in value and isinstance(value.get("unit"), str):
            scale = NAMED_UNITS.get(value["unit"].lower())
            quantity = next((q for names, q in TIMES if key.lower() in names), None)
            if scale is None or quantity is None:
                yield key.lower(), value["value"]
            else:
                yield key.lower(), files.number({key: value["value"]}, key, quantity, scale)
        else:
            yield from _flat(value)


def is_request(record: Record) -> bool:
    """Whether a record, or the columns of a table, are those of a request: when it began, and its tokens."""
    names = {key for key, _ in _flat({key: None if isinstance(value, str) else value for key, value in record.items()})}
    return any(name + end in names for name in START for end in SECONDS) and not names.isdisjoint(OUTPUT)


def _request(record: Record, timed: Sequence[Sequence[str]]) -> ServedRequest:
    start, end = _instant(record, START), _instant(record, END)
    if start is None:
        raise Unusable(f"start: missing; wants a column {', '.join(START[:4])}, with _s or _ms at its end")
    prompt, output = files.needed(record, LENGTH, *PROMPT), files.needed(record, LENGTH, *OUTPUT)
    ttft, tpot, seconds = (_seconds(record, names, timed) for names in (TTFT, TPOT, E2E))
    if seconds is None:
        seconds = end - start if end is not None else ttft + tpot * (output - 1) if ttft and tpot else None
    if seconds is None:
        raise Unusable(f"e2e: missing; wants a column {', '.join((*E2E[:3], END[0]))}, or ttft and tpot")
    seconds = _checked(seconds, REQUEST_TIME, "end - start" if end is not None else "e2e")
    if ttft and ttft > seconds:
        likely = ": milliseconds?" if ttft > 3 * seconds > 3e-3 * ttft else ""
        raise Unusable(f"ttft: got {ttft:g} s; wants at most the {seconds:g} s of the whole request{likely}")
    if ttft and output >= TIMED_FROM:
        _checked((seconds - ttft) / (output - 1), measured.TPOT, f"e2e - ttft over {output - 1:g} tokens")
    return ServedRequest(start=start, ttft=ttft, seconds=seconds, prompt=prompt, output=output)


def _checked(value: float, q: Field, name: str) -> float:
    """A quantity that follows from several cells, within its range."""
    try:
        return cell(value, q, name)
    except BadCell as error:
        raise Unusable(str(error)) from None


def _seconds(record: Record, names: Sequence[str], timed: Sequence[Sequence[str]]) -> float | None:
    """The first time of the names that is stated, in seconds; `timed` are the names of which 0 is no time, since other lines state one."""
    q = next(q for among, q in TIMES if names == among)
    for name in names:
        for end, scale in SECONDS.items():
            value = files.number(record, name + end, q, scale)
            if value == 0 and names in timed:
                raise Unusable(f"{name}{end}: got {clip(record[name + end])!r}; wants {described(q)}")
            if value:
                return value
    return None


def _instant(record: Record, names: Sequence[str]) -> float | None:
    """A point in time, in seconds of the file's clock: a number, or a date and time."""
    for name in names:
        for end, scale in SECONDS.items():
            value = record.get(name + end)
            if isinstance(value, str) and ("T" in value or ":" in value):
                try:
                    return _checked(datetime.fromisoformat(value.strip().replace("Z", "+00:00")).timestamp(), INSTANT, name + end)
                except (ValueError, OverflowError):
                    raise Unusable(f"{name}{end}: got {clip(value)!r}; wants seconds, or a date and time") from None
            if value not in (None, ""):
                try:
                    return cell(value, INSTANT, name + end, scale)
                except BadCell as error:
                    raise Unusable(f"{error}, or a date and time" if str(error).count("wants") else str(error)) from None
    return None


def users_of(starts: np.ndarray, ends: np.ndarray) -> float | None:
    """Users of a closed loop, in which nearly all are in service after each start; None for arrivals that wait for nobody.

    `starts` and `ends` are arrays in seconds, in the order of the starts. Users come at once, or ask often: a queue that grew until
    the last arrival, and then drained, is no closed loop of as many users.

    >>> users_of(np.array([0.0, 0.0, 1.0, 1.1, 2.0, 2.1]), np.array([1.0, 1.1, 2.0, 2.1, 3.0, 3.1]))
    2.0
    """
    seconds = float(np.mean(ends - starts))
    soon = starts + AT_ONCE * seconds
    inside = np.searchsorted(starts, soon, side="right") - np.searchsorted(np.sort(ends), soon, side="right")
    users = int(np.max(inside))
    later = inside[users:]
    together = bool(starts[min(users, len(starts)) - 1] - starts[0] <= FIRST_WAVE * seconds)
    if not len(later):
        return float(users) if together else None
    if not together and len(starts) < ROUNDS * users:
        return None
    busy = float(np.sum(ends - starts)) / float(np.max(ends) - starts[0])
    return float(users) if np.mean(later >= FULL * users) >= REFILLED and busy >= users / 2 else None


def _row(path: str | Path, served: Sequence[ServedRequest], failed: int, user_input: RunFields) -> MeasuredRow:
    starts = np.array([request.start for request in served])
    seconds = np.array([request.seconds for request in served])
    prompt, output = (float(np.mean([getattr(request, key) for request in served])) for key in ("prompt", "output"))
    span = float(np.max(starts + seconds) - starts[0])
    users = users_of(starts, starts + seconds)
    rate = None if users else (len(served) - 1) / float(starts[-1] - starts[0])
    first = [request.ttft for request in served if request.ttft]
    after = [(request.seconds - request.ttft) / (request.output - 1) for request in served if request.ttft and request.output > 1]
    times = [request.seconds - request.ttft if request.ttft else 0.0 for request in served]
    decoding = sum(times)  # seconds that all requests together decoded
    middle = sum(time * (request.prompt + request.output / 2) for time, request in zip(times, served, strict=True))
    at, tokens = place(user_input, RunMachine(hardware=""), WHAT), float(sum(request.output for request in served)) / span
    log = RequestLog(
        arrival=tuple(request.start - served[0].start for request in served),
        prompt=tuple(max(round(request.prompt), 1) for request in served),
        output=tuple(max(round(request.output), 1) for request in served),
    )
    return files.measured_row(
        user_input, at, line=1, id=Path(path).stem, model=model(user_input, "", WHAT), mode="serving_concurrency", engine="vLLM",
        prompt=prompt, output=output, length_cv=files.scatter_of([request.output for request in served]),
        concurrency=users or max(float(np.sum(seconds)) / span, 1.0),
        ttft_s=float(np.mean(first)) if first else None, tpot_s=float(np.mean(after)) if after else None, output_tok_per_s=tokens,
        input_tok_per_s=tokens * prompt / output,
        source=SOURCE if users else f"{SOURCE}, open loop (users by Little's law)", reliability="B" if failed or not users else "A",
        roofline="tpot_partial" if users else "no", request_rate=rate, requests=float(len(served)),
        decoding=decoding / span if decoding else None, context=middle / decoding if decoding else None, log=log,
    )  # fmt: skip


