"""Sentences and pictures of `cache`: the memory tier for a KV cache."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from headway.core import schema
from headway.core.errors import BadValue
from headway.core.listing import format_value

MOST_ROWS = 10_000
MOST_HOLDS = 3  # holds named in the first sentence


def own_columns(record: type) -> dict[str, Any]:
    """Columns of a row type; some differ from the common columns of that key."""
    from headway.core.columns import Column

    return {key: Column(q.unit, q.help) for key, (q, _) in schema.fields(record).items()}


def priced(places: Sequence[Any]) -> list[str]:
    """Line per tier: device, price per byte with its date, and unknown facts."""
    from headway.core.units import show

    notes = []
    for place in places:
        span = place.price if place.price.value is not None else place.holding
        unit = "USD/byte" if span is place.price else "USD/byte/s"
        ends = "" if span.low == span.high else f" ({show(span.low, unit)} .. {show(span.high, unit)})"
        dated = place.dated if span is place.price else ""
        notes.append(f"{place.name}: {place.device}, {show(span.value, unit)}{ends}{f', {dated}' if dated else ''}")
        if place.read_bw is None:
            notes.append(f"{place.name}: rented; fees for requests and traffic are not counted, so that no criterion chooses it")
        if place.wear.value is None:
            notes.append(f"{place.name}: its rated writes are not public, so no cost with wear (--set tier.{place.name}.drive_writes=1/d)")
    return notes


def pictures(subject_of: Any) -> dict[str, Any]:
    """Pictures of a cache's holds by name; `subject_of` gives the tiers and the subject of the first case."""

    def tier_map(rows: Any, view: Any) -> Any:
        from headway.economics.cache.tier_map import tier_map as cells
        from headway.report.pictures import tiers

        table = _rows(rows)
        places, subject, hold = subject_of()
        return tiers.tier_map(cells(places, subject, hold.uses, hold.waiting), table[0], view)

    def drain(rows: Any, view: Any) -> Any:
        from headway.report.pictures import tiers

        return tiers.drain(_rows(rows), view)

    def holds(rows: Any, view: Any) -> Any:
        from headway.report.pictures import tiers

        return tiers.holds(_rows(rows), view)

    return {"map": tier_map, "drain": drain, "holds": holds}


def _rows(rows: Any) -> list[Mapping[str, Any]]:
    table = list(rows)
    if not table:
        raise BadValue("--plot", "no rows", "rows to draw")
    return table


MOST_LINES = 5


def trace_pictures(hits: Any, case: Any) -> dict[str, Any]:
    """Pictures of a trace's hit rates: against the time to live, a line for each capacity."""

    def hit_rates(rows: Any, view: Any) -> Any:
        from headway.report.pictures import hit_rates as drawing

        table = _rows(rows)
        token = 1.0 if case is None else float(case.token_bytes())
        rooms = list(dict.fromkeys((None, *(row["room"] for row in table))))[:MOST_LINES]
        ttls = list(dict.fromkeys((*(row["ttl"] for row in table), None)))[:MOST_LINES]
        by_ttl = {
            _limit(room): [(float(ttl), hits.hit_share(float(ttl), hits.blocks_in(room, token))) for ttl in hits.gaps()] for room in rooms
        }
        by_room = {
            _ttl_label(ttl): [
                (float(blocks) * hits.block_tokens * token, hits.hit_share(math.inf if ttl is None else float(ttl), float(blocks)))
                for blocks in hits.rooms()
            ]
            for ttl in ttls
        }
        about = "" if case is None else f"; {case.name}, {case.kv} KV cache"
        return drawing.picture(by_ttl, by_room, "token" if case is None else "byte", table[0]["trace"], about, view)

    return {"hit-rates": hit_rates}


def _limit(room: Any) -> str:
    return "any room" if room is None else format_value(room, "byte")


def _ttl_label(ttl: Any) -> str:
    return "for ever" if ttl is None else format_value(ttl, "s")
