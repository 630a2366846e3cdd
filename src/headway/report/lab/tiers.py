"""Words of `lab tiers`: what was found, what it saved, and what a store would have to ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.listing import format_value
from headway.core.units import Second, UsdPerMtok, show
from headway.laws.economics.cost import MILLION
from headway.laws.roofline.balance import drain_s
from headway.reality.lab.tier_prices import DEVICES, command, sheet
from headway.reality.lab.tier_store import NAMES
from headway.reality.lab.tiers import token_bytes
from headway.report.words import Row

if TYPE_CHECKING:
    from headway.reality.lab.experiment import LabRun


def headline(run: LabRun, rows: Sequence[Row]) -> str:
    """What was found, and the time that it saved."""
    points = {(row["quantity"], row["at"]): row["measured"] for row in rows}
    shares = [(ttl, share) for ttl in run.setup.ttl if (share := points.get(("hits", ttl))) is not None]
    if not shares:
        return "Conversations come back; what they find is known at the end"
    hits, lives = (", ".join(part) for part in ([f"{share:.0%}" for _, share in shares], [show(ttl, "s") for ttl, _ in shares]))
    saved = points.get(("time saved", run.setup.ttl[-1]))
    return f"{hits} of returns find their cache within {lives}" + ("" if saved is None else f", saving {saved:.0%} of the time")


def below(run: LabRun, rows: Sequence[Row]) -> list[str]:
    """The traffic, what each tier did, and prices."""
    facts, setup = run.facts, run.setup
    if not facts:
        return []
    uses = ", ".join(
        f"{name} {use['hits']:,} loads and {format_value(use['written_bytes'], 'byte')} written"
        for name, use in zip(NAMES, facts["tiers"], strict=True)
    )
    hours, seconds = format_value(facts["traffic_s"], "s"), format_value(facts["wall_s"], "s")
    ran = (
        f"{hours} of traffic in {seconds}, {facts['traffic_s'] / facts['wall_s']:,.0f} times as fast; {facts['returns']:,} returns: {uses}."
    )
    kv = token_bytes(setup)
    prices, rate = sheet(setup.ttl, facts, kv, setup.machine_price), show(setup.machine_price, "USD/s")
    again = format_value(facts["again_s"] * setup.machine_price * MILLION, "USD/Mtok")
    holds = ", ".join(f"{show(price.live, 's')} in {price.cheapest}" for price in prices)
    points = {(row["quantity"], row["at"]): row["measured"] for row in rows}
    drains = ", ".join(
        f"{name} in {format_value(drain_s(points['bytes in tier', ttl], kv / points['load of a token', ttl]), 's')}"
        for name, ttl in zip(NAMES, setup.ttl, strict=True) if ("load of a token", ttl) in points
    )  # fmt: skip
    return [
        ran,
        f"All that a tier holds on the mean is read once (its drain time, KT-05) from {drains}.",
        f"Prices per Mtok that recover its cost (machine {rate}, devices as the catalogue's {', '.join(DEVICES)}): {again} to compute; "
        + _price_text([(price.live, price.write, price.hit) for price in prices]),
        f"headway cache, each hold to its very end: {_price_text([(price.live, price.cache_write, price.cache_hit) for price in prices])}; "
        f"cheapest for {holds}: {command(setup.ttl, facts['again_s'], kv, setup.machine_price)}",
    ]


def _price_text(prices: Sequence[tuple[Second, UsdPerMtok, UsdPerMtok | None]]) -> str:
    """Prices of writes by time to live, and of hits by tier."""
    writes = ", ".join(f"+{show(write, 'USD/Mtok')} to live {show(live, 's')}" for live, write, _ in prices)
    hits = ", ".join(f"{show(hit, 'USD/Mtok')} in {name}" for name, (_, _, hit) in zip(NAMES, prices, strict=True) if hit is not None)
    return f"{writes}; a hit {hits}"
