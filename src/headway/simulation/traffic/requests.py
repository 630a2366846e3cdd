"""The record of traffic: arrivals, lengths and shared blocks of requests; and counts of trace lines that are no request."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headway.core.errors import BadFile, BadValue
from headway.core.measured import strays

NO_CONVERSATION = -1
IDS = {"blocks": "block_start", "answers": "answer_start"}  # field of ids -> field of their offsets by request
LONGEST = 1_000_000_000  # tokens; a longer prompt or answer is an error

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]  # which requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests in order of arrival, one array per property; made by `Traffic.of`, which fills in absent properties."""

    arrival: Floats  # seconds from the start, ascending
    prompt: Ints  # tokens, at least 1, earlier turns of the conversation included
    output: Ints  # tokens, at least 1
    conversation: Ints  # conversation of each request, or NO_CONVERSATION
    blocks: Ints  # block ids of the prompts, request by request; an id stands for its block and the whole prefix
    block_start: Ints  # len + 1 offsets: the blocks of request i are blocks[block_start[i] : block_start[i + 1]]
    block_tokens: int  # prompt tokens per block (a prompt's last block may be partly filled); 0 without known blocks
    answers: Ints  # block ids of the answers, if known; an answer's first block may begin with the end of its prompt
    answer_start: Ints  # len + 1 offsets into `answers`
    pause: Floats | None = None  # seconds from the previous turn's answer until a turn is sent; None: sent as recorded
    first_own: Ints | None = None  # ids in order instead of `blocks`: the first of its conversation, after those of a start that all share
    common: int = 0  # blocks of the shared start, whose ids are 0 .. common - 1

    def __post_init__(self) -> None:
        _check_shape(self)
        _check_times(self.arrival)
        for name, lengths in (("prompt", self.prompt), ("output", self.output)):
            if len(lengths) and not 1 <= lengths.min() <= lengths.max() <= LONGEST:
                raise BadValue(f"traffic: {name}", f"{lengths.min()} to {lengths.max()}", f"whole tokens from 1 to {LONGEST}")

    @classmethod
    def of(
        cls,
        arrival: ArrayLike,
        prompt: ArrayLike,
        output: ArrayLike,
        *,
        conversation: ArrayLike | None = None,
        blocks: ArrayLike = (),
        block_start: ArrayLike | None = None,
        block_tokens: int = 0,
        answers: ArrayLike = (),
        answer_start: ArrayLike | None = None,
        pause: ArrayLike | None = None,
        first_own: ArrayLike | None = None,
        common: int = 0,
    ) -> Self:
        """Traffic from array-like values; a length may be one number for all requests."""
        times = np.ascontiguousarray(arrival, np.float64)
        count = len(times)
        return cls(
            arrival=times,
            prompt=_whole_lengths(prompt, count),
            output=_whole_lengths(output, count),
            conversation=_same(NO_CONVERSATION, count) if conversation is None else np.ascontiguousarray(conversation, np.int64),
            blocks=np.ascontiguousarray(blocks, np.int64),
            block_start=_same(0, count + 1) if block_start is None else np.ascontiguousarray(block_start, np.int64),
            block_tokens=block_tokens,
            answers=np.ascontiguousarray(answers, np.int64),
            answer_start=_same(0, count + 1) if answer_start is None else np.ascontiguousarray(answer_start, np.int64),
            pause=None if pause is None else np.ascontiguousarray(pause, np.float64),
            first_own=None if first_own is None else np.ascontiguousarray(first_own, np.int64),
            common=common,
        )

    def __len__(self) -> int:
        return len(self.arrival)

    def part(self, start: int, stop: int) -> Self:
        """Requests start..stop - 1, with the first at 0 if `start` is above 0."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        (first, last), (begin, end) = self.block_start[[start, stop]], self.answer_start[[start, stop]]
        earlier = self.arrival[start] if 0 < start < stop else 0.0
        return replace(
            self,
            arrival=self.arrival[start:stop] - earlier,
            prompt=self.prompt[start:stop],
            output=self.output[start:stop],
            conversation=self.conversation[start:stop],
            blocks=self.blocks[first:last],
            block_start=self.block_start[start : stop + 1] - first,
            answers=self.answers[begin:end],
            answer_start=self.answer_start[start : stop + 1] - begin,
            pause=None if self.pause is None else self.pause[start:stop],
            first_own=None if self.first_own is None else self.first_own[start:stop],
        )

    @property
    def has_blocks(self) -> bool:
        """Whether it is known what prompts share."""
        return self.first_own is not None or len(self.blocks) > 0

    @property
    def block_count(self) -> int:
        """Blocks of all prompts, each as often as it is asked for."""
        return len(self.blocks) if self.first_own is None else int((-(-self.prompt // self.block_tokens)).sum())

    def with_listed_blocks(self) -> Self:
        """The traffic with the id of every block, one by one; a prompt's last, partly filled block has one of its own."""
        if self.first_own is None:
            return self
        full, counts = self.prompt // self.block_tokens, -(-self.prompt // self.block_tokens)
        after = (self.prompt + self.output - 1) // self.block_tokens
        start = np.concatenate([[0], np.cumsum(counts)])
        ids = np.arange(start[-1])
        ids -= np.repeat(start[:-1] - self.first_own + self.common, counts)
        ids[start[:-1, None] + np.arange(self.common)] = np.arange(self.common)
        has_partial, beyond = full < counts, int((self.first_own + after).max(initial=self.common)) - self.common
        ids[start[1:][has_partial] - 1] = beyond + np.flatnonzero(has_partial)
        answer_start = np.concatenate([[0], np.cumsum(after - full)])
        answers = np.arange(answer_start[-1]) + np.repeat(self.first_own - self.common + full - answer_start[:-1], after - full)
        return replace(self, blocks=ids, block_start=start, answers=answers, answer_start=answer_start, first_own=None, common=0)

    def head(self, count: int) -> Self:
        """The first `count` requests, or all if there are fewer."""
        return self.part(0, max(count, 0))

    def scale_rate(self, factor: float) -> Self:
        """The requests at `factor` times the rate: every gap is divided by it, so the shape is unchanged."""
        if not (math.isfinite(factor) and factor > 0):
            raise BadValue("rate factor", factor, "a finite number above 0")
        return replace(self, arrival=self.arrival / factor, pause=None if self.pause is None else self.pause / factor)

    def at_rate(self, per_s: float) -> Self:
        """The requests at a mean rate of `per_s` per second, the shape unchanged."""
        if not (math.isfinite(per_s) and per_s > 0):
            raise BadValue("rate", per_s, "a finite number of requests per second above 0")
        current_rate = self.mean_rate()
        if not math.isfinite(current_rate):
            raise BadValue("rate", per_s, "traffic whose requests do not all arrive at once")
        return self.scale_rate(per_s / current_rate)

    def mean_rate(self) -> float:
        """Requests per second from the first arrival to the last (inf if all arrive at once)."""
        span = float(self.arrival[-1] - self.arrival[0]) if len(self) else 0.0
        return (len(self) - 1) / span if span > 0 else math.inf


def _same(value: int, count: int) -> Ints:
    """An array with one number for every request, stored once."""
    return np.broadcast_to(np.int64(value), count)


def _whole_lengths(lengths: ArrayLike, count: int) -> Ints:
    values = np.asarray(lengths)
    if values.ndim == 0:
        values = np.full(count, values)
    if values.dtype.kind == "f" and not np.array_equal(values, np.floor(values)):
        raise BadValue("traffic: lengths", "fractions or not numbers", "whole tokens")
    return np.ascontiguousarray(values, np.int64)


def _check_shape(traffic: Traffic) -> None:
    count = len(traffic.arrival)
    for name in ("arrival", "prompt", "output", "conversation", *IDS, *IDS.values()):
        values = getattr(traffic, name)
        kind = np.float64 if name == "arrival" else np.int64
        if values.ndim != 1 or values.dtype != kind:
            raise BadValue(f"traffic: {name}", f"{values.ndim}-dimensional {values.dtype}", f"one dimension of {kind.__name__}")
        value_count = count + (name in IDS.values())
        if name not in IDS and len(values) != value_count:
            raise BadValue(f"traffic: {name}", f"{len(values)} values", f"{value_count}, for {count} requests")
    if traffic.pause is not None and not (traffic.pause.shape == (count,) and (traffic.pause >= 0).all()):
        raise BadValue("traffic: pause", f"{traffic.pause.shape}, {traffic.pause.min(initial=0):g} s", f"{count} times, none below 0 s")
    if traffic.first_own is not None and not (traffic.first_own.shape == (count,) and traffic.block_tokens > 0 and not len(traffic.blocks)):
        raise BadValue("traffic: first_own", f"{traffic.first_own.shape}", f"{count} ids, with tokens of a block and instead of `blocks`")
    for name, offsets in IDS.items():
        start, id_count = getattr(traffic, offsets), len(getattr(traffic, name))
        if start[0] != 0 or start[-1] != id_count or (start.strides != (0,) and (np.diff(start) < 0).any()):
            raise BadValue(f"traffic: {offsets}", f"{start[0]} to {start[-1]}", f"offsets that rise from 0 to {id_count}")
    if len(traffic.blocks) and traffic.block_tokens < 1:
        raise BadValue("traffic: block_tokens", traffic.block_tokens, "at least 1 token in a block")


def _check_times(arrival: Floats) -> None:
    if not np.isfinite(arrival).all():
        raise BadValue("traffic: arrival", "nan or inf", "finite seconds from the start")
    falls = np.flatnonzero(arrival[1:] < arrival[:-1])
    if len(falls):
        raise BadValue("traffic: arrival", f"request {falls[0] + 1} before request {falls[0]}", "requests in order of arrival")
    if len(arrival) and arrival[0] < 0:
        raise BadValue("traffic: arrival", f"{arrival[0]:g} s", "seconds from the start, none below 0")


FEW_MALFORMED = 3  # malformed lines that are left out of a short file, whatever their share below a half
MALFORMED_LIMIT = 20  # malformed lines kept with their reasons; all are counted
MALFORMED_MESSAGE_LIMIT = 3  # malformed lines in one message


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A malformed line: its number and reason."""

    line: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A trace as read: `lines` = requests + failed + malformed_count."""

    format: str
    traffic: Traffic
    lines: int  # non-blank lines without the header
    malformed_count: int
    malformed: tuple[Malformed, ...]  # the first MALFORMED_LIMIT malformed lines
    failed: int  # requests that the recorded service did not answer, not replayed
    sorted: int  # requests recorded after a later arrival, put in order
    units: tuple[str, ...] = ()  # how numbers without a unit were taken

    def notes(self) -> list[str]:
        """Notes on the trace that readers of results need, one line each."""
        sentences = [*self.units]
        if self.malformed_count:
            sentences.append(f"{described(self.malformed_count, self.lines, self.malformed)}; left out")
        if self.failed:
            sentences.append(f"{self.failed} of {self.lines} requests had failed when recorded (no output tokens); left out")
        if self.sorted:
            sentences.append(f"{self.sorted} of {self.lines} requests stood after one that arrived later; sorted by arrival")
        return sentences


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counter of lines while a file is read."""

    lines: int = 0
    failed: int = 0
    malformed_count: int = 0
    malformed: list[Malformed] = field(default_factory=list)

    def bad(self, line: int, why: str) -> None:
        """Count a malformed line."""
        self.malformed_count += 1
        if len(self.malformed) < MALFORMED_LIMIT:
            self.malformed.append(Malformed(line=line, why=why))

    def trace(self, name: str, traffic: Traffic, late: int) -> Trace:
        """The trace of this traffic in the format `name`, `late` requests of which were put in order."""
        return Trace(
            format=name, traffic=traffic, lines=self.lines, malformed_count=self.malformed_count, malformed=tuple(self.malformed),
            failed=self.failed, sorted=late,
        )  # fmt: skip

    def check(self, path: object, most: float) -> None:
        """Refuse a file with more than a share `most` of malformed lines (a few are no share), or without requests."""
        few = most and self.malformed_count <= FEW_MALFORMED and self.malformed_count < self.lines / 2
        if self.malformed_count > most * self.lines and not few:
            what = described(self.malformed_count, self.lines, tuple(self.malformed))
            raise BadFile(path, f"{what}; more than {most:.3g} of the lines, so not read")
        if self.lines == self.failed + self.malformed_count:
            raise BadFile(path, f"holds no request in {self.lines} lines" + (f" ({self.failed} failed ones)" if self.failed else ""))


def described(count: int, lines: int, malformed: tuple[Malformed, ...]) -> str:
    """Malformed lines in one text: their count, and the first few by number."""
    first = "; ".join(f"line {entry.line}: {entry.why}" for entry in malformed[:MALFORMED_MESSAGE_LIMIT])
    return f"{count} of {lines} lines malformed ({first}{'; ...' if count > MALFORMED_MESSAGE_LIMIT else ''})"


def in_order(arrival: NDArray[Any]) -> tuple[Any, int]:
    """The stable order by arrival (None if already sorted), and the number of requests after a later arrival."""
    if not (arrival[1:] < arrival[:-1]).any():
        return None, 0
    late = int((arrival < np.maximum.accumulate(arrival)).sum())
    return np.argsort(arrival, kind="stable"), late


ENDS = 60  # arrivals at each end of a trace among which strays are looked for


def without_strays(since_first_s: Floats, lines: Ints, name: str, tally: Tally) -> Any:
    """Mask of the requests, in order of arrival, but those far from all others, whose lines count as malformed; None if none is."""
    count = len(since_first_s)
    at_ends = np.arange(count) if count <= 2 * ENDS else np.r_[:ENDS, count - ENDS : count]
    far = at_ends[sorted(strays(since_first_s[at_ends].tolist()))] if count else at_ends
    if not len(far):
        return None
    keep = np.ones(count, bool)
    keep[far] = False
    why = f"{name}: far from all other requests, {{:.4g}} s from the nearest: another unit or clock?"
    for row in far.tolist():
        tally.bad(int(lines[row]), why.format(np.abs(since_first_s[keep] - since_first_s[row]).min()))
    tally.malformed.sort(key=lambda entry: entry.line)
    return keep
