"""`solve`: the inputs at which an output reaches a value, or at which two outputs are equal."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headway.core import columns, spellings, units
from headway.core.errors import BadValue, UnknownName
from headway.core.listing import heading, input_text
from headway.core.quantity import known
from headway.core.table import Labels, Table
from headway.serving.serve import DRAFTS, SERVE

SCAN = 400  # points of the first scan, if a grid costs as little as a point
SCAN_SLOW = 60  # points of the first scan, if each point needs a table
SECTIONS = 64  # parts of a bracket in each round, if a grid costs as little as a point
ROUNDS = 60
CLOSE = 1e-12


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SolveInput:
    """The input to solve for, and the range to search."""

    name: str
    low: float
    high: float
    is_count: bool = False  # a count: the answer includes the whole numbers next to it
    only: tuple[float, ...] = ()  # the possible values of a discrete input; empty if continuous
    broadcasts: bool = False  # many values cost about as much as a single value
    unit: str | None = None  # unit of the input; None for the unit of its column
    points: int = 0  # points of the first scan; 0 for as many as the cost of a point allows
    close: float = CLOSE  # relative width to which a crossing is narrowed


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """A condition `column = right`; `number` is None if `right` is a column."""

    column: str
    right: str
    number: float | None

    def __str__(self) -> str:
        return f"{heading(self.column)} = {self.right if self.number is not None else heading(self.right)}"

    def gap(self, table: Table) -> Any:
        """column - right for each row; NaN if a side does not apply."""
        return _numbers(table, self.column) - (_numbers(table, self.right) if self.number is None else self.number)


@dataclasses.dataclass(frozen=True, slots=True)
class Solution:
    """The rows at each crossing and its neighbours, marked; `crossings` counts the crossings."""

    table: Table
    crossings: int
    sentence: str


def condition(text: str) -> Condition:
    """The condition that `tpot_s=20ms` or `compute_s=kv_s` states.

    >>> condition("tpot_s=20ms").number, condition("compute_s = kv_s").right
    (0.02, 'kv_s')
    """
    column, equals, right = (part.strip() for part in text.replace("==", "=").partition("="))
    column = column.replace("-", "_")
    if not equals or not column or not right:
        raise BadValue("--so-that", text, "OUTPUT=VALUE or OUTPUT=OUTPUT, such as tpot_s=20ms or compute_s=kv_s")
    if column not in SERVE and column not in DRAFTS:
        raise UnknownName("output", column, SERVE)
    if right.replace("-", "_") in SERVE:
        return Condition(column, right.replace("-", "_"), None)
    unit = columns.unit(column)
    return Condition(column, right, units.parse(right, unit if unit in spellings.SPELLINGS else "", f"--so-that {column}"))


def _numbers(table: Table, key: str) -> Any:
    column = table[key].ravel()
    if column.dtype == object:
        raise BadValue("--so-that", key, "an output that is a number")
    return column.astype(float)


At = Callable[[Sequence[float]], Table]  # input values -> table with one row per value


def solve(at: At, sought: SolveInput, wanted: Condition | str) -> Solution:
    """Every crossing in the scanned range: the real-valued input and, for a count, the whole numbers next to it.

    >>> from headway.performance.layout import Layout
    >>> from headway.serving.serve import serve
    >>> at = lambda batch: serve("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), batch=batch, context=8192)
    >>> found = solve(at, SolveInput(name="batch", low=1, high=1e4, is_count=True, broadcasts=True), "compute_s=weights_s")
    >>> [row["is"] for row in found.table]
    ['below', 'crossing', 'above']

    A gap that changes sign by a jump (a layout takes one more chip) is a crossing too; a flat stretch without a gap is one, at its edge.
    """
    wanted = condition(wanted) if isinstance(wanted, str) else wanted
    points = np.array(scan(sought))
    gaps = wanted.gap(at(points.tolist()))
    if np.isnan(gaps).all():
        raise BadValue("--so-that", wanted, "outputs that apply to this load (tpot_s, tok_per_s and usd_* need --prompt and --output)")
    exact = _exact(at, sought, wanted, points, gaps)
    brackets = [(float(points[i]), float(points[i + 1])) for i in np.flatnonzero(gaps[:-1] * gaps[1:] < 0)]
    if not exact and not brackets:
        return _none(at, sought, wanted, points, gaps)
    narrow = _adjacent if sought.only else _narrowed
    narrowed = [narrow(at, sought, wanted, bracket) for bracket in brackets]
    marked = _marked(sorted(exact + narrowed), sought)
    table = _rows(at, sought, marked)
    return Solution(table, len(exact + brackets), _sentence(table, sought, wanted, len(exact + brackets)))


def _exact(at: At, sought: SolveInput, wanted: Condition, points: np.ndarray, gaps: np.ndarray) -> list[tuple[float, float]]:
    """Scanned values without a gap; of a flat stretch of them its first edge alone."""
    zero, values = gaps == 0, []
    for start in np.flatnonzero(zero & ~np.concatenate([[False], zero[:-1]])):
        value = float(points[start])
        if start > 0 and np.isfinite(gaps[start - 1]):
            edge = _first_exact if sought.only else _narrowed
            value = edge(at, sought, wanted, (float(points[start - 1]), value))[1]
        values.append((value, value))
    return values


def _first_exact(at: At, sought: SolveInput, wanted: Condition, bracket: tuple[float, float]) -> tuple[float, float]:
    """The last value of a discrete input with a gap, and the first without, by halving."""
    low, high = (sought.only.index(end) for end in bracket)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wanted.gap(at([sought.only[middle]]))[0] == 0 else (middle, high)
    return sought.only[low], sought.only[high]


def scan(sought: SolveInput) -> list[float]:
    """The values of an input in the first scan of its range."""
    count = sought.points or (SCAN if sought.broadcasts else SCAN_SLOW)
    if sought.only:
        places = np.unique(np.geomspace(1, len(sought.only), count).round().astype(int)) - 1
        return list(sought.only) if sought.broadcasts else [sought.only[place] for place in places]
    spaced = np.geomspace if sought.low > 0 else np.linspace
    return [sought.low, *spaced(sought.low, sought.high, count).tolist()[1:-1], sought.high]  # geomspace rounds its ends


def _narrowed(at: At, sought: SolveInput, target: Condition, bracket: tuple[float, float]) -> tuple[float, float]:
    """A bracket around a change of sign, narrowed to the relative width of the input."""
    low, high = bracket
    parts = SECTIONS if sought.broadcasts else 2
    for _ in range(ROUNDS):
        points = np.linspace(low, high, parts + 1)
        if high - low <= sought.close * abs(high) or not (points[1:] > points[:-1]).all():
            break
        gaps = target.gap(at(points.tolist()))
        changes = np.flatnonzero((gaps[:-1] * gaps[1:] <= 0) & (gaps[:-1] != 0))
        if not len(changes):
            break
        low, high = float(points[changes[0]]), float(points[changes[0] + 1])
    return low, high


def _adjacent(at: At, sought: SolveInput, target: Condition, bracket: tuple[float, float]) -> tuple[float, float]:
    """Two neighbouring values of a discrete input between which the gap changes sign."""
    low, high = (sought.only.index(end) for end in bracket)
    start = target.gap(at([sought.only[low]]))[0] if high - low > 1 else 0.0
    while high - low > 1:
        middle = (low + high) // 2
        gap = target.gap(at([sought.only[middle]]))[0]
        if gap == 0:
            return sought.only[middle], sought.only[middle]
        low, high = (middle, high) if gap * start > 0 else (low, middle)
    return sought.only[low], sought.only[high]


def _marked(brackets: list[tuple[float, float]], sought: SolveInput) -> list[tuple[float, str]]:
    """The input values to show, each with its mark: below, crossing or above."""
    marks: dict[float, str] = {}
    for low, high in brackets:
        if sought.only and low != high:
            marks |= {low: "below", high: "above"}
            continue
        crossing = (low + high) / 2
        below, above = math.floor(crossing), math.ceil(crossing)
        nearest = float(round(crossing))
        if sought.is_count and abs(crossing - nearest) <= 1e-9 * max(1.0, nearest):
            crossing, below, above = nearest, nearest, nearest
        if sought.is_count and below >= sought.low and below != crossing:
            marks.setdefault(float(below), "below")
        marks[crossing] = "crossing"
        if sought.is_count and above <= sought.high and above != crossing:
            marks.setdefault(float(above), "above")
    return sorted(marks.items())


def _rows(at: At, sought: SolveInput, marked: list[tuple[float, str]]) -> Table:
    values, marks = [value for value, _ in marked], [mark for _, mark in marked]
    table = at(values).concat()
    kinds = tuple(dict.fromkeys(marks))
    extra = {"for": sought.name, "solution": np.array(values), "is": Labels(np.array([kinds.index(mark) for mark in marks]), kinds)}

    def tree(row: int, key: str) -> Any:
        """A cell: the table's tree of laws, or the solved input as a leaf."""
        if key == "solution":
            unit = sought.unit or columns.unit(sought.name)
            return known(values[row], sought.name, unit, "derived", "solved for: there the outputs are as asked")
        if table.tree is None:
            raise BadValue("explain", key, "an output of serve")
        return table.tree(row, key)

    return dataclasses.replace(table, columns={**extra, **table.columns}, tree=tree)


def _none(at: At, sought: SolveInput, target: Condition, points: Any, gaps: np.ndarray) -> Solution:
    """The solution without a crossing: the side on which the output stays, and its closest row."""
    closest = int(np.nanargmin(np.abs(gaps)))
    side = "above" if gaps[closest] > 0 else "below"
    table = _rows(at, sought, [(float(points[closest]), "closest")])
    row = table.row(0)
    low, high = (_input(value, sought) for value in (points[0], points[-1]))
    nearest = f"closest at {sought.name} = {_input(points[closest], sought)}, where {heading(target.column)} is"
    nearest += f" {_format_column(row, target.column)}"
    name, right = heading(target.column), target.right if target.number is not None else heading(target.right)
    right_note = f" and {right} is {_format_column(row, target.right)}" if target.number is None else ""
    sentence = f"no crossing between {sought.name} = {low} and {high}: {name} stays {side} {right}; {nearest}{right_note}."
    return Solution(table, 0, sentence)


def _sentence(table: Table, sought: SolveInput, target: Condition, count: int) -> str:
    rows = [row for row in table.rows() if row["is"] == "crossing"]
    if not rows:
        below, above = (row["solution"] for row in table.rows()[:2])
        return f"{target} is crossed between {sought.name} = {_input(below, sought)} and {_input(above, sought)}, the values it can have."
    where = " and at ".join(_input(row["solution"], sought) for row in rows)
    misfit = next((row["why"] for row in rows if not row.get("fits", True)), "")
    return f"{target} at {heading(sought.name)} = {where}{f'; it does not fit there: {misfit}' if misfit else ''}."


def _input(value: float, sought: SolveInput) -> str:
    return input_text(value, sought.name) if sought.unit is None else units.show(value, sought.unit, 4)


def _format_column(row: dict[str, Any], key: str) -> str:
    return units.show(row[key], columns.unit(key), 4)
