"""Numbers of a fit: log-normal priors, values at a distance from them, efficiencies with them, and their lines in a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.evidence.fit.result import FittedNumbers
from headway.performance.achieved import Efficiencies

DATE = "2026-11"
Place = tuple[str, str]  # section and key of a number


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorNumber:
    """A number with a log-normal prior: one standard deviation is a factor exp(spread); fixed if `spread` is 0."""

    section: str
    key: str
    prior: float  # times the value of the same key in the section `parent`, if any
    spread: float = 0.0
    unit: str = ""
    meaning: str = ""
    most: float = math.inf
    parent: str = ""

    @property
    def place(self) -> Place:
        """Section and key."""
        return self.section, self.key

    def at(self, z: float, base: float = 1.0) -> float:
        """Value at `z` standard deviations from the prior; `base` is the parent's value."""
        return min(self.prior * base * math.exp(self.spread * z), self.most)


def free_places(numbers: Iterable[PriorNumber]) -> list[Place]:
    """Places of the numbers that a fit moves."""
    return [number.place for number in numbers if number.spread]


def values_at(numbers: Sequence[PriorNumber], moves: Mapping[Place, float]) -> dict[Place, float]:
    """Values of all numbers, parents first; `moves` in standard deviations of the priors."""
    values: dict[Place, float] = {}
    for number in numbers:
        values[number.place] = number.at(moves.get(number.place, 0.0), values[number.parent, number.key] if number.parent else 1.0)
    return values


def overlaid(
    sections: Mapping[str, Mapping[str, Any]], numbers: Sequence[PriorNumber | FittedNumbers], values: Iterable[float]
) -> Efficiencies:
    """Efficiencies of `sections` with these values of numbers."""
    table = {name: dict(section) for name, section in sections.items()}
    for number, value in zip(numbers, values, strict=True):
        fact = known(value, f"{number.section}.{number.key}", number.unit, "fitted", number.meaning)
        table.setdefault(number.section, {})[number.key] = fact
    return Efficiencies(table)


def fitted_lines(
    numbers: Sequence[PriorNumber], values: Mapping[Place, float], errors: Mapping[Place, float], rows: int, what: str, runs: str
) -> tuple[FittedNumbers, ...]:
    """Lines of a file of fitted numbers; `errors` of their logarithms: without one a number was stated, not fitted to `runs`."""
    lines = []
    for number in numbers:
        value, error = values[number.place], errors.get(number.place, 0.0)
        source = f"published {runs} runs, docs/accuracy.md" if error else "stated, docs/decisions.md"
        lines.append(FittedNumbers(
            section=number.section, key=number.key, value=value, unit=number.unit, error=value * error, rows=rows if error else 0,
            range=what if error else "fixed", meaning=number.meaning, source=source, date=DATE,
        ))  # fmt: skip
    return tuple(lines)
