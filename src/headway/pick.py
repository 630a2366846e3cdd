"""One chosen point of a search: a layout and a batch, as numbers that know who chose them, and its row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headway.errors import BadValue
from headway.grid import Axis, Table, from_rows
from headway.layout import NAMES, Layout
from headway.quantity import given, known
from headway.search import OBJECTIVES, Best, Weighed, worth
from headway.serve import Query, case_of, explain_point, filled
from headway.workload import Load

SAID_BY = {"input": "elasticity", "elasticity": "elasticity", "gain": "current", "cause": "current"}
TIE = 1e-12  # objectives closer than this are equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """What one row of a plan is about."""

    query: Query
    layout: Layout
    load: Load
    value: float = float("nan")  # of the objective


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of a plan: a pick, its kind, and what it says beyond the columns of `serve`."""

    kind: str
    pick: Pick
    extra: dict[str, Any] = field(default_factory=dict)
    trees: dict[str, Callable[[], Any]] = field(default_factory=dict)  # of keys that `serve` does not explain
    queried: Callable[[], Query] | None = None  # the query made again, for an explanation of what was edited in it


def pick(w: Weighed, row: int, batch: int, pinned: Collection[str], value: float = float("nan")) -> Pick:
    """One layout of a search at one batch."""
    ways = {name: int(np.broadcast_to(getattr(w.layout, name), (w.count, 1))[row, 0]) for name in NAMES}
    layout = Layout(**{name: _number(count, name, name in pinned) for name, count in ways.items()})
    load = w.query.load
    chosen = Load(batch=_number(batch, "batch", "batch" in pinned), prompt=load.prompt, output=load.output)
    return Pick(query=w.query, layout=layout, load=chosen, value=value)


def _number(value: int, name: str, typed: bool) -> Any:
    return given(int(value), name) if typed else known(int(value), name, "", "derived", "chosen by the search of plan", "now")


def choose(found: Sequence[Best], objective: str, pinned: Collection[str]) -> Pick | None:
    """The best of all layouts; of equals the faster one (the cheaper one, when speed is the objective)."""
    sign = -1.0 if OBJECTIVES[objective] else 1.0
    best, second, place = np.inf, np.inf, None
    for one in found:
        if not one.weighed.count:
            continue
        values = (sign * one.value).ravel()
        other = "cost" if objective == "speed" else "speed"
        beside = worth(other, one.weighed.query, one.weighed.layout.replicas, one.tpot, one.request).ravel()
        beside = -beside if OBJECTIVES[other] else beside
        least = values.min()
        equal = np.flatnonzero(values <= least + TIE * abs(least))
        row = int(equal[np.argmin(beside[equal])])
        closer = least < best - TIE * abs(least) or (least <= best + TIE * abs(least) and beside[row] < second)
        if place is None or closer:
            best, second, place = least, beside[row], (one, row)
    if place is None:
        return None
    one, row = place
    return pick(one.weighed, row, int(one.batch[row, 0]), pinned, float(one.value[row, 0]))


def table(lines: Sequence[Line], notes: Sequence[str]) -> Table:
    """The rows of a plan, those of one query computed together."""
    groups: dict[int, list[int]] = {}
    for index, line in enumerate(lines):
        groups.setdefault(id(line.pick.query), []).append(index)
    rows: list[dict[str, Any]] = [{}] * len(lines)
    for indices in groups.values():
        for index, row in zip(indices, _rows([lines[index].pick for index in indices]), strict=True):
            rows[index] = row | {"kind": lines[index].kind} | dict.fromkeys(("input", "elasticity", "gain", "cause")) | lines[index].extra
    return from_rows(rows, notes, lambda row, key: explained(lines[row], key))


def _rows(picks: Sequence[Pick]) -> list[dict[str, Any]]:
    first = picks[0]
    layout, load = first.layout, first.load
    if len(picks) > 1:
        layout = Layout(**{name: np.array([int(getattr(one.layout, name)) for one in picks]) for name in NAMES})
        load = Load(batch=np.array([int(one.load.batch) for one in picks]), prompt=load.prompt, output=load.output)
    axes = (Axis("row", range(len(picks))),)
    return Table(axes, filled(first.query, case_of(first.query, layout, load), axes)).rows()


def explained(line: Line, key: str) -> Any:
    """One number of one row as a tree of laws."""
    if key in line.trees:
        return line.trees[key]()
    if key in SAID_BY:
        raise BadValue("explain", key, f'a row of kind {SAID_BY[key]}, as with --where "kind = {SAID_BY[key]}"')
    return explain_point(line.pick.query if line.queried is None else line.queried(), line.pick.layout, line.pick.load, key)
