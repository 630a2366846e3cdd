"""The same recomputation with the catalogue's current facts in place of the claim's own."""

from __future__ import annotations

import functools
from typing import Any

from headway.chip import chip
from headway.errors import HeadwayError
from headway.ledger.claims import Claim
from headway.ledger.recompute import Parts, recompute
from headway.system import system


def recompute_today(claim: Claim) -> Parts | None:
    """Each part by today's facts; None where the claim uses nothing that the catalogue has, or a fact is missing there."""
    if not claim.today:
        return None
    try:
        current = {name: _current(path) for name, path in claim.today.items()}
    except HeadwayError:
        return None
    return recompute(claim, current)


@functools.cache
def _current(path: str) -> Any:
    """A fact by its place in the catalogue: of a chip, a system, a domain (summed over its chips) or a model, or KV bytes in a width."""
    kind, name, field = path.split()
    if kind == "chip":
        return chip(name).need(field)
    if kind == "system":
        return system(name).need(field)
    if kind == "domain":
        machine = system(name)
        return machine.chips * machine.chip.need(field)
    return _of_model(kind, name, field)


def _of_model(kind: str, name: str, field: str) -> Any:
    from headway import whole_model
    from headway.hfconfig import model

    found = model(name)
    if kind == "kv":
        return whole_model.kv_bytes_per_token(found, float(field))
    return getattr(whole_model, field)(found)
