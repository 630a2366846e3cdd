"""The same recomputation with the catalogue's current facts in place of the claim's own."""

from __future__ import annotations

import functools
from typing import Any

from headway.chip import chip
from headway.errors import HeadwayError
from headway.laws.sums import times
from headway.ledger.claims import Claim
from headway.ledger.recompute import recompute
from headway.ledger.register import Parts
from headway.quantity import known
from headway.rack_facts import rack_facts
from headway.system import system
from headway.tier import tier


def recompute_today(claim: Claim) -> Parts | None:
    """Each part by today's facts; None where the claim uses nothing that the catalogue has, or a fact is missing there."""
    now = current(claim)
    return recompute(claim, now) if now and now.keys() == claim.today.keys() else None


def current(claim: Claim) -> dict[str, Any]:
    """What the catalogue says now of each input that it has."""
    values = {name: _current(path) for name, path in claim.today.items()}
    return {name: value for name, value in values.items() if value is not None}


@functools.cache
def _current(path: str) -> Any | None:
    return look_up(path)


def look_up(path: str) -> Any | None:
    """A fact by its place in the catalogue: of a chip, rack, tier, system, domain (all chips), model or its last block; KV in a width."""
    kind, name, field = path.split()
    try:
        if kind == "chip":
            return chip(name).need(field)
        if kind == "system":
            return system(name).need(field)
        if kind == "domain":
            machine = system(name)
            return times(machine.chip.need(field), machine.chips)
        if kind == "rack":
            return getattr(rack_facts(name), field)
        if kind == "tier":
            return tier(name).need(field)
        return _of_model(kind, name, field)
    except HeadwayError:  # no longer in the catalogue, or blank there
        return None


def _of_model(kind: str, name: str, field: str) -> Any:
    from headway import whole_model
    from headway.hfconfig import model

    catalog_model = model(name)
    if kind == "block":
        return functools.reduce(getattr, field.split("."), catalog_model.blocks[-1])
    if kind == "kv":
        width = known(float(field), "bytes per cache element", "byte", "claim", "width that the claim counts in")
        return whole_model.kv_bytes_per_token(catalog_model, width)
    return getattr(whole_model, field)(catalog_model)
