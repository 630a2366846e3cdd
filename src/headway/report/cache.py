"""Sentences and figures of `cache`: the memory tier for a KV cache."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from headway.core import schema
from headway.core.errors import BadValue
from headway.core.listing import cell, format_value
from headway.report.figures import CONFIG, SCHEMA

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


HOUR, GB, MILLION = 3600.0, 1e9, 1e6  # units of the axes
MOST_LINES = 8
COLOURS = {"scheme": "tableau10"}


def holds(table: Any) -> dict[str, Any]:
    """Figure of device spending and cost with write endurance against hold time, a line per tier; recompute cost as a level line."""
    rows = list(table)
    if len({row["hold"] for row in rows}) < 2:
        raise BadValue("--plot", "one hold", "several, such as --hold 1min..48h*2")
    apart = [key for key in ("model", "system", "reuse", "uses") if len({row[key] for row in rows}) > 1]
    lines = [{**row, "line": ", ".join([row["tier"], *(f"{key} {cell(key, row)}" for key in apart)])} for row in rows]
    devices = [_point(row, row["device_usd_per_byte"], GB) for row in lines if row["device_usd_per_byte"] is not None]
    costs = [_point(row, row["usd_per_mtok_held"], 1.0) for row in lines if row["usd_per_mtok_held"] is not None]
    again = [_point(row, row["usd_per_mtok_recompute"], 1.0) | {"line": "computing again"} for row in lines]
    panels = [
        _lines(devices, "hold (h)", "money in devices (USD per GB held)", log=True),
        _lines([*costs, *(again if not apart else [])], "hold (h)", "cost with wear (USD per Mtok and hold)", log=True),
    ]
    title = {"text": f"What a hold costs, {rows[0]['model']} on {rows[0]['system']}", "subtitle": "at the stated prices"}
    return {"$schema": SCHEMA, "config": CONFIG, "title": title, "hconcat": panels}


def _point(row: Mapping[str, Any], value: float, unit: float) -> dict[str, Any]:
    return {"x": row["hold"] / HOUR, "y": value * unit, "line": row["line"]}


def trace(rows: Sequence[Mapping[str, Any]], hits: Any, case: Any) -> dict[str, Any]:
    """Figure of the hit rate against TTL, a line per capacity, and against capacity, a line per TTL."""
    if not rows:
        raise BadValue("--plot", "no rows", "rows to draw")
    token = 1.0 if case is None else float(case.token_bytes())
    rooms = list(dict.fromkeys((None, *(row["room"] for row in rows))))[:MOST_LINES]
    ttls = list(dict.fromkeys((*(row["ttl"] for row in rows), None)))[:MOST_LINES]

    by_ttl = [
        {"x": float(ttl) / 60, "y": hits.hit_share(float(ttl), hits.blocks_in(room, token)), "line": _limit(room)}
        for room in rooms for ttl in hits.gaps()
    ]  # fmt: skip
    by_room = [
        {"x": float(blocks) * hits.block_tokens * token / (MILLION if case is None else GB),
         "y": hits.hit_share(math.inf if ttl is None else float(ttl), float(blocks)), "line": _ttl_label(ttl)}
        for ttl in ttls for blocks in hits.rooms()
    ]  # fmt: skip
    subtitle = "renewed by each use; least recently used first out" + ("" if case is None else f"; {case.name}, {case.kv} KV cache")
    title = {"text": f"Prompt tokens found in a prefix cache, {rows[0]['trace']}", "subtitle": subtitle}
    words = "share of prompt tokens found"
    panels = [_lines(by_ttl, "time to live (min)", words), _lines(by_room, f"room ({'M tokens' if case is None else 'GB'})", words)]
    return {"$schema": SCHEMA, "config": CONFIG, "title": title, "hconcat": panels, "resolve": {"scale": {"color": "independent"}}}


def _limit(room: Any) -> str:
    return "no limit on room" if room is None else format_value(room, "byte")


def _ttl_label(ttl: Any) -> str:
    return "kept for ever" if ttl is None else f"kept for {format_value(ttl, 's')}"


def _lines(points: list[dict[str, Any]], x: str, y: str, log: bool = False) -> dict[str, Any]:
    across = {"field": "x", "type": "quantitative", "title": x, "scale": {"type": "log", "nice": False}, "axis": {"format": "~g"}}
    up = {"field": "y", "type": "quantitative", "title": y, "axis": {"format": "~g" if log else ".0%"}}
    up |= {"scale": {"type": "log", "nice": False}} if log else {}
    colour = {"field": "line", "type": "nominal", "title": None, "sort": None, "scale": COLOURS}
    return {"width": 400, "height": 320, "data": {"values": points}, "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {"x": across, "y": up, "color": colour}}  # fmt: skip
