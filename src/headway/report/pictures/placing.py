"""Labels that do not collide: along one line with the least movement, or around points and curves in the first free place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.report.pictures.lettering import LEADING, SIZE, text_width

CELL = 2  # px of a cell of the raster
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


class Canvas:
    """The area of a plot in px from its upper corner, as a raster of what labels keep away from: curves, points, other labels."""

    def __init__(self, width: float, height: float) -> None:
        import numpy as np

        self.width, self.height = width, height
        self.cells = np.zeros((int(height // CELL) + 1, int(width // CELL) + 1), dtype=bool)

    def add_curve(self, across: Sequence[float], down: Sequence[float]) -> None:
        """Keep labels away from a line through points."""
        import numpy as np

        points = np.column_stack([np.asarray(across, dtype=float), np.asarray(down, dtype=float)])
        points = points[np.isfinite(points).all(axis=1)]
        if len(points) < 2:
            self._mark(points)
            return
        steps = np.diff(points, axis=0)
        counts = np.clip(np.abs(steps).max(axis=1) / CELL, 1, 4 * sum(self.cells.shape)).astype(int) + 1
        segment = np.repeat(np.arange(len(steps)), counts)
        share = (np.arange(len(segment)) - np.repeat(np.cumsum(counts) - counts, counts)) / (counts[segment] - 1)
        self._mark(points[segment] + steps[segment] * share[:, None])

    def _mark(self, points: Any) -> None:
        columns, rows = (points[:, 0] // CELL).astype(int), (points[:, 1] // CELL).astype(int)
        inside = (columns >= 0) & (rows >= 0) & (columns < self.cells.shape[1]) & (rows < self.cells.shape[0])
        self.cells[rows[inside], columns[inside]] = True

    def add_point(self, across: float, down: float, size: float = 4.0) -> None:
        """Keep labels away from a point that reaches `size` px from its centre."""
        self.add_box(across - size, down - size, across + size, down + size)

    def add_box(self, x: float, y: float, x2: float, y2: float) -> None:
        """Keep labels away from a rectangle."""
        low_row, low_column = max(int(y // CELL), 0), max(int(x // CELL), 0)
        self.cells[low_row : max(int(y2 // CELL) + 1, 0), low_column : max(int(x2 // CELL) + 1, 0)] = True

    def _sums(self) -> Any:
        """Marked cells above and left of each corner: four of them count the marks in a rectangle."""
        import numpy as np

        sums = np.zeros((self.cells.shape[0] + 1, self.cells.shape[1] + 1), dtype=int)
        sums[1:, 1:] = self.cells.cumsum(axis=0).cumsum(axis=1)
        return sums

    def place(self, text: Sequence[str], across: float, down: float, size: float = SIZE, most: float = 130.0) -> Any:
        """Left end and middle of a label's first line, in the free place nearest to a point, right of it rather than left; or None."""
        import numpy as np

        wide, high = max(text_width(line, size) for line in text) + 2 * MARGIN, size * LEADING * len(text) + 2
        wide_cells, high_cells = int(wide // CELL) + 2, int(high // CELL) + 2
        rows, columns = self.cells.shape[0] - high_cells, self.cells.shape[1] - wide_cells
        if rows < 0 or columns < 0:
            return None
        sums = self._sums()
        marks = sums[high_cells:, wide_cells:] - sums[:-high_cells, wide_cells:]
        marks = marks - sums[high_cells:, :-wide_cells] + sums[:-high_cells, :-wide_cells]
        x, y = np.arange(marks.shape[1]) * CELL, np.arange(marks.shape[0])[:, None] * CELL
        sideways = np.maximum(np.maximum(x - across, across - x - wide), 0)
        upwards = np.maximum(np.maximum(y - down, down - y - high), 0)
        off_centre = np.abs(x + wide / 2 - across) / wide + np.abs(y + high / 2 - down) / high
        away = np.hypot(sideways, upwards)
        cost = np.where((marks == 0) & (away <= most) & (away >= 5), away + 1.5 * off_centre + 4.0 * (x + wide / 2 < across), np.inf)
        best = np.unravel_index(np.argmin(cost), cost.shape)
        if not np.isfinite(cost[best]):
            return None
        corner_x, corner_y = float(best[1] * CELL), float(best[0] * CELL)
        self.add_box(corner_x, corner_y, corner_x + wide, corner_y + high)
        return corner_x + MARGIN, corner_y + 1 + size * LEADING / 2

    def first(self, text: Sequence[str], candidates: Sequence[tuple[float, float]], size: float = SIZE) -> Any:
        """The first free of the places (left end, upper end) for a label, as left end and middle of its first line; None if none is."""
        wide, high = max(text_width(line, size) for line in text), size * LEADING * len(text)
        for x, y in candidates:
            x2, y2 = x + wide + MARGIN, y + high
            if x < 0 or y < 0 or x2 > self.width or y2 > self.height:
                continue
            if not self.cells[int(y // CELL) : int(y2 // CELL) + 1, int((x - MARGIN) // CELL) : int(x2 // CELL) + 1].any():
                self.add_box(x - MARGIN, y, x2, y2)
                return x, y + size * LEADING / 2
        return None
