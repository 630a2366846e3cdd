"""What a page says of the points of a plot under a pointer or a key: all lines at a place of the x axis, or a point in its own words."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from headway.report.pictures.marks import Row
from headway.report.pictures.scale import PictureAxis, tick_text

COUNTS = ("batch", "context", "users")  # flags whose values are whole
APART = 8.0  # px between two places of the x axis that are read
Spot = tuple[float | None, float | None, Mapping[str, Any]]  # x, y and the row that they stand in


@dataclasses.dataclass(slots=True, kw_only=True)
class Tips:
    """Points of a plot in the making; nothing is gathered unless it `is_asked`: for a page, and not while a slider moves."""

    about: str  # heading of the plot
    x: PictureAxis
    y: PictureAxis
    units: tuple[str, str]
    flag: str  # whose values stand along x; "": none
    is_asked: bool
    lines: list[tuple[str, list[tuple[float, float]]]] = dataclasses.field(default_factory=list)
    points: list[tuple[float, float, Row]] = dataclasses.field(default_factory=list)

    def add(self, name: str, spots: Iterable[Spot], is_line: bool) -> None:
        """A line, or points; those with words of their own, or with the row of the answer that they stand for, are points of any line."""
        known = [(x, y, row) for x, y, row in spots if x is not None and y is not None] if self.is_asked else []
        if is_line and known and not any(row.get("tip") for _, _, row in known):
            self.lines.append((name or bare(self.about), sorted((x, y) for x, y, _ in known)))
            return
        for x, y, row in known:
            if self.x.holds(x) and self.y.holds(y):
                words = row.get("tip") or f"{name or bare(self.about)} {self._up(y)}; {self._across(x)}"
                self.points.append((x, y, {"tip": words} | {key: row[key] for key in ("row", "name") if row.get(key) is not None}))

    def rows(self, place: Callable[[float, float], tuple[float, float]]) -> list[Row]:
        """A row for each point, and for each place of the x axis at which lines are read: px, words, and what picking it asks."""
        rows = [self._row([place(x, y)], entry) for x, y, entry in self.points]
        last, places = -APART, self._places()
        lines = [
            (name, line[0][0], line[-1][0], np.interp(places, [x for x, _ in line], [y for _, y in line]).tolist())
            for name, line in self.lines
        ]
        for at, x in enumerate(places):
            values = [(name, heights[at]) for name, first, end, heights in lines if first <= x <= end]
            spots = [place(x, y) for _, y in values if self.y.holds(y)]
            if spots and spots[0][0] - last >= APART:
                last = spots[0][0]
                words = f"{self._across(x)}: {', '.join(f'{name} {self._up(y)}' for name, y in values)}"
                rows.append(self._row(spots, {"tip": words} | ({"flag": self.flag, "word": f"{x:.10g}"} if self.flag else {})))
        return sorted(rows, key=lambda row: row["x"])

    def _places(self) -> list[float]:
        """Places of the x axis where lines have points; of a count, whole ones."""
        places = {x for _, line in self.lines for x, _ in line}
        return sorted(x for x in ({float(round(x)) for x in places} if self.flag in COUNTS else places) if self.x.holds(x))

    def _row(self, spots: list[tuple[float, float]], entry: Row) -> Row:
        downs = [round(down, 1) for _, down in spots]
        return {"x": round(spots[0][0], 1), "y": downs[0], "downs": downs, **entry}

    def _up(self, value: float) -> str:
        return tick_text(value, self.units[1])

    def _across(self, value: float) -> str:
        return f"{bare(self.x.title)} {tick_text(value, self.units[0])}".strip()


def bare(title: str) -> str:
    """A heading or the title of an axis without what stands in brackets.

    >>> bare("Batch (sequences decoded together)"), bare("Attainable FLOP/s of one chip (log)")
    ('Batch', 'Attainable FLOP/s of one chip')
    """
    return title.partition(" (")[0]
