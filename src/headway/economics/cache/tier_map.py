"""The tier of least cost for each hold time, and whether keeping pays at each chance of reuse; else `recompute`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from headway.core.quantity import default
from headway.economics.cache.placement import RECOMPUTE, CacheSubject, cheapest_tier, hold_row
from headway.economics.cache.records import CacheHold
from headway.economics.cache.tiers import CacheTier

HOLDS = (1.0, 30 * 86400.0, 44)  # s: first, last, number, evenly on a log scale
REUSES = (0.01, 1.0, 15)
WHY = "a point of the map"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCell:
    """One field of the map: ends of its hold times (s) and of its chances of reuse, and the tier that wins there."""

    hold: float
    hold_end: float
    reuse: float
    reuse_end: float
    tier: str


def tier_map(places: Sequence[CacheTier], subject: CacheSubject, uses: Any, waiting: Any) -> list[MapCell]:
    """Fields of the map, hold by hold; each is judged at its middle."""
    holds, reuses = _steps(*HOLDS), _steps(*REUSES)
    cells = []
    for hold, hold_end in pairwise(holds):
        for reuse, reuse_end in pairwise(reuses):
            middle = {"hold": default((hold * hold_end) ** 0.5, "hold", "s", WHY),
                      "reuse": default((reuse * reuse_end) ** 0.5, "reuse", "", WHY)}  # fmt: skip
            request = CacheHold(**middle, uses=uses, waiting=waiting)
            tier = _best(places, request, subject)
            cells.append(MapCell(hold=hold, hold_end=hold_end, reuse=reuse, reuse_end=reuse_end, tier=tier))
    return cells


def _steps(first: float, last: float, count: int) -> list[float]:
    return [first * (last / first) ** (place / (count - 1)) for place in range(count)]


def _best(places: Sequence[CacheTier], request: CacheHold, subject: CacheSubject) -> str:
    """The tier in which a hold costs least, if keeping there pays at this chance of reuse."""
    rows = [hold_row(place, request, subject) for place in places]
    tier = cheapest_tier(rows)
    gain = next((row.usd_per_mtok_gain for row in rows if row.tier == tier), None)
    return tier if gain is not None and gain > 0 else RECOMPUTE
