"""Which frontier rows stand beside the best row: none that keeps every limit costs less, and one that breaks a limit says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core import units
from headway.serving.plan.problem import LIMITS, NAMES

CLOSE = 1e-9  # share from which a cost is lower
Row = Mapping[str, Any]


def reasons(rows: Sequence[Row], limits: Mapping[str, float], objective: str) -> dict[int, str | None]:
    """By place in the table: the limit that a frontier row breaks, or None for a row that is cheaper than the best and breaks none.

    Such a row is less plain than the best, or its limits hold in the mean and not with the confidence. `limits` are s, by name.
    """
    reason_by_place: dict[int, str | None] = {}
    costs = [row_cost(row) for row in rows]
    for place, row in enumerate(rows):
        if row["kind"] != "frontier":
            continue
        why, cost, least = broken(row, limits), costs[place], costs[0]
        if why:
            reason_by_place[place] = why
        elif objective in ("cost", "throughput") and cost is not None and least is not None and cost < least * (1 - CLOSE):
            reason_by_place[place] = None
    return reason_by_place


def broken(row: Row, limits: Mapping[str, float]) -> str:
    """The first limit that the means of a row break, in words."""
    for name, limit in limits.items():
        value = row.get(LIMITS[name])
        if value is not None and value > limit * (1 + CLOSE):
            return f"{NAMES[name]} {units.show(float(value), 's')}, limit {units.show(float(limit), 's')}"
    return ""


def row_cost(row: Row) -> float | None:
    """What is compared: the machine's cost at a given rate, else the cost of a request; chips for dollars without a price."""
    machine = row.get("usd_per_hour") or float(row["chips"])
    if row.get("rate") is not None:
        return float(machine)
    capacity = row.get("capacity_req_per_s")
    return float(machine / capacity) if capacity else None


def left_out_note(rows: Sequence[Row], places: Sequence[int], loaded: bool) -> list[str]:
    """A note on the cheaper rows that are left out."""
    best = row_cost(rows[0])
    shares = [1 - cost / best for place in places if best and (cost := row_cost(rows[place])) is not None]
    if not shares:
        return []
    count = f"left out {len(shares)} frontier row{'s' if len(shares) > 1 else ''} up to {max(shares):.1%} cheaper"
    return [f"{count}: limits hold in the mean, not as surely" if loaded else f"{count} and less plain (--plainest off takes the cheapest)"]
