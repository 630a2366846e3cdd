"""What every answer about caches says: the tiers with their prices and dates, and keys of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway import schema

MOST_ROWS = 10_000
MOST_HOLDS = 3  # holds named in the first sentence


def own_columns(record: type) -> dict[str, Any]:
    """The keys of a row, which may mean something of their own here."""
    from headway.columns import Column

    return {key: Column(q.unit, q.help) for key, (q, _) in schema.fields(record).items()}


def priced(places: Sequence[Any]) -> list[str]:
    """What each tier is, what a byte of it costs and since when; and what of it is not known."""
    from headway.units import show

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
