"""What reading a trace gives: its requests, and an account of every line that became none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headway.errors import BadFile
from headway.sim.traffic.record import Traffic

MALFORMED_LIMIT = 20  # malformed lines that are kept with their reasons; all are counted
MALFORMED_MESSAGE_LIMIT = 3  # of them in one message


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A line that is no request, and why."""

    line: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A trace as read: `lines` = requests + failed + malformed_count."""

    format: str
    traffic: Traffic
    lines: int  # that are not blank, the header left out
    malformed_count: int
    malformed: tuple[Malformed, ...]  # the first MALFORMED_LIMIT of them
    failed: int  # requests that the recorded service did not answer: not replayed
    sorted: int  # requests that stood after one that arrived later: put in order

    def notes(self) -> list[str]:
        """What a reader of results must know about their input, one line each."""
        sentences = []
        if self.malformed_count:
            sentences.append(f"{described(self.malformed_count, self.lines, self.malformed)}; left out")
        if self.failed:
            sentences.append(f"{self.failed} of {self.lines} requests had failed when recorded (no output tokens); left out")
        if self.sorted:
            sentences.append(f"{self.sorted} of {self.lines} requests stood after one that arrived later; sorted by arrival")
        return sentences


@dataclass(slots=True, kw_only=True)
class Tally:
    """Lines counted while a file is read."""

    lines: int = 0
    failed: int = 0
    malformed_count: int = 0
    malformed: list[Malformed] = field(default_factory=list)

    def bad(self, line: int, why: str) -> None:
        """Count a malformed line."""
        self.malformed_count += 1
        if len(self.malformed) < MALFORMED_LIMIT:
            self.malformed.append(Malformed(line=line, why=why))

    def check(self, path: object, most: float) -> None:
        """Refuse a file of which more than a share `most` is malformed, or that holds no request."""
        if self.malformed_count > most * self.lines:
            what = described(self.malformed_count, self.lines, tuple(self.malformed))
            raise BadFile(path, f"{what}; more than {most:.3g} of the lines, so not read")
        if self.lines == self.failed + self.malformed_count:
            raise BadFile(path, f"holds no request in {self.lines} lines" + (f" ({self.failed} failed ones)" if self.failed else ""))


def described(count: int, lines: int, malformed: tuple[Malformed, ...]) -> str:
    """Malformed lines in one line: how many, and the first few by number."""
    first = "; ".join(f"line {entry.line}: {entry.why}" for entry in malformed[:MALFORMED_MESSAGE_LIMIT])
    return f"{count} of {lines} lines malformed ({first}{'; ...' if count > MALFORMED_MESSAGE_LIMIT else ''})"


def in_order(arrival: Any) -> tuple[Any, int]:
    """The stable order by arrival (None where it is that already), and how many stood after a later one."""
    if not (arrival[1:] < arrival[:-1]).any():
        return None, 0
    late = int((arrival < np.maximum.accumulate(arrival)).sum())
    return np.argsort(arrival, kind="stable"), late
