"""Labels that do not collide: along one line with the least movement, or around points and curves in the first free place."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from headway.report.pictures.lettering import SIZE, text_width

DIRECTIONS = ((1, 0), (1, -1), (1, 1), (-1, 0), (-1, -1), (-1, 1), (0, -1), (0, 1))
DISTANCES = (8, 14, 22, 34, 50)  # px between a point and its label
STEP = 3.0  # px between the samples of a curve that labels keep away from
MARGIN = 2.0  # px that stay free around a label


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Centres at least `gap` apart within low..high, moved as little as possible (pool adjacent violators)."""
    order = sorted(range(len(targets)), key=targets.__getitem__)
    pools: list[list[float]] = []
    for place, index in enumerate(order):
        pools.append([targets[index] - place * gap, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, count = pools.pop()
            pools[-1][0] += total
            pools[-1][1] += count
    top, centres, place = high - (len(targets) - 1) * gap, [0.0] * len(targets), 0
    for total, count in pools:
        for _ in range(int(count)):
            centres[order[place]] = max(min(total / count, top), low) + place * gap
            place += 1
    return centres


@dataclasses.dataclass(slots=True, kw_only=True)
class Canvas:
    """The area of a plot in px from its upper corner: labels already there, and samples of curves and points."""

    width: float
    height: float
    boxes: list[tuple[float, float, float, float]] = dataclasses.field(default_factory=list)
    samples: list[Any] = dataclasses.field(default_factory=list)

    def add_curve(self, across: Sequence[float], down: Sequence[float]) -> None:
        """Keep labels away from a line through points."""
        import numpy as np

        points = np.column_stack([np.asarray(across, dtype=float), np.asarray(down, dtype=float)])
        points = points[np.isfinite(points).all(axis=1)]
        span = self.width + self.height
        for start, end in itertools.pairwise(points):
            count = int(min(max(np.abs(end - start).max() / STEP, 1), span)) + 1
            self.samples.append(start + (end - start) * np.linspace(0, 1, count)[:, None])
        if len(points) == 1:
            self.samples.append(points)

    def add_point(self, across: float, down: float, size: float = 4.0) -> None:
        """Keep labels away from a point of `size` px around its centre."""
        self.boxes.append((across - size, down - size, across + size, down + size))

    def is_free(self, box: tuple[float, float, float, float]) -> bool:
        """Whether a box stays inside and touches nothing."""
        import numpy as np

        x, y, x2, y2 = box
        if x < 0 or y < 0 or x2 > self.width or y2 > self.height:
            return False
        if any(x < box_x2 and box_x < x2 and y < box_y2 and box_y < y2 for box_x, box_y, box_x2, box_y2 in self.boxes):
            return False
        if len(self.samples) > 1:
            self.samples = [np.concatenate(self.samples)]
        if not self.samples:
            return True
        points = self.samples[0]
        across, down = points[:, 0], points[:, 1]
        return not bool(((across > x) & (across < x2) & (down > y) & (down < y2)).any())

    def place(self, text: Sequence[str], across: float, down: float, size: float = SIZE, near: Sequence[float] = DISTANCES) -> Any:
        """Left end and middle of a label's first line in the first free place around a point; None if there is none."""
        wide, high = max(text_width(line, size) for line in text), size * 1.2 * len(text)
        for distance in near:
            for sideways, downwards in DIRECTIONS:
                x = across + distance if sideways > 0 else across - wide - distance if sideways < 0 else across - wide / 2
                middle = down + downwards * (distance * 0.8 if sideways else distance + high / 2)
                box = (x - MARGIN, middle - high / 2 - 1, x + wide + MARGIN, middle + high / 2 + 1)
                if self.is_free(box):
                    self.boxes.append(box)
                    return x, middle - high / 2 + size * 0.6
        return None
