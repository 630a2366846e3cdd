"""Rows of the claims table: each claim recomputed with the lecture's inputs and with today's facts, and its verdict."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

from headway.core.errors import BadValue, HeadwayError, UnknownName
from headway.core.listing import format_value
from headway.core.quantity import known
from headway.core.trace import record
from headway.evidence.claims import costs, experts, public, racks, roofline, training
from headway.evidence.claims.claim import BOUND, NOT_ARITHMETIC, RECOMPUTE, Claim, ClaimInputs, Parts, claims
from headway.hardware.chip import chip
from headway.hardware.memory_tier import tier
from headway.hardware.rack_facts import rack_facts
from headway.hardware.system import system

AGREES, ROUNDING, DIFFERS = "agrees", "rounding", "differs"
NOT_YET = "not yet computed"
WITHOUT_FIGURES = {NOT_ARITHMETIC: "not arithmetic"}  # verdict by kind of claim
UNDECIDED = "undecided"  # a bound whose ends are too far apart
MOST_APART = 10.0
WORST_FIRST = (DIFFERS, ROUNDING, AGREES)
EXACT, TIGHT, ROUND, ORDER = 1e-9, 0.01, 0.25, 3.0  # relative differences; ORDER is a factor, up or down


def beside(recomputed: float, target: float, tolerance: str) -> str:
    """Verdict on a number: `tolerance` is exact, tight, round, oom or a percentage such as "10 %".

    >>> beside(14.4, 15.0, "round"), beside(14.4, 15.0, "tight"), beside(2400.0, 1000.0, "oom"), beside(312.5, 300.0, "10 %")
    ('rounding', 'differs', 'agrees', 'agrees')
    """
    if tolerance == "oom":
        return AGREES if target / ORDER <= recomputed <= target * ORDER else DIFFERS
    if tolerance == "round":
        return AGREES if _near(recomputed, target, TIGHT) else ROUNDING if _near(recomputed, target, ROUND) else DIFFERS
    return AGREES if _near(recomputed, target, width(tolerance)) else DIFFERS


def width(tolerance: str) -> float:
    """Relative difference that a tolerance class allows.

    >>> width("tight"), width("20 %")
    (0.01, 0.2)
    """
    widths = {"exact": EXACT, "tight": TIGHT, "round": ROUND}
    return widths[tolerance] if tolerance in widths else float(tolerance.removesuffix("%")) / 100


def within(recomputed: float, low: float, high: float) -> str:
    """Verdict on a number stated as a range, ends included."""
    return AGREES if low <= recomputed <= high else DIFFERS


def range_text(ends: tuple[float, float], unit: str) -> str:
    """A range in words.

    >>> range_text((0, 150e12), "token"), range_text((2, math.inf), ""), range_text((0.013, 0.04), "s")
    ('at most 150T', 'at least 2', '13 ms .. 40 ms')
    """
    least, most = (format_value(end, unit) for end in ends)
    return f"at least {least}" if math.isinf(ends[1]) else f"{least} .. {most}" if ends[0] else f"at most {most}"


def worst(verdicts: list[str]) -> str:
    """Worst of the verdicts, which is the verdict of a claim with several numbers."""
    return next(verdict for verdict in WORST_FIRST if verdict in verdicts)


def _near(value: float, target: float, relative: float) -> bool:
    return abs(value - target) <= relative * abs(target) * (1 + 1e-12)


GROUPS = (costs, experts, public, racks, roofline, training)  # whose functions register themselves


def computable() -> list[str]:
    """Ids of the claims with a recomputation."""
    return list(RECOMPUTE)


def recompute(claim: Claim, inputs: Mapping[str, Any] | None = None) -> Parts | None:
    """Recomputed figures of a claim, with `inputs` in place of its inputs if given; None if it has no recomputation."""
    function = RECOMPUTE.get(claim.id)
    if function is None:
        return None
    return function(ClaimInputs(**{**claim.inputs, **(inputs or {})}))


def recompute_today(claim: Claim) -> Parts | None:
    """Figures of a claim with today's facts; None if the catalogue has no input of it, or lacks a fact."""
    now = current(claim)
    return recompute(claim, now) if now and now.keys() == claim.today.keys() else None


def current(claim: Claim) -> dict[str, Any]:
    """Current catalogue value of each input that the catalogue has."""
    values = {name: _current(path) for name, path in claim.today.items()}
    return {name: value for name, value in values.items() if value is not None}


@functools.cache
def _current(path: str) -> Any | None:
    return look_up(path)


def look_up(path: str) -> Any | None:
    """Catalogue fact by path: chip, rack, tier, system, domain (all chips), model, its last block, or its KV at a byte width."""
    kind, name, field = path.split()
    try:
        if kind == "chip":
            return chip(name).need(field)
        if kind == "system":
            return system(name).need(field)
        if kind == "domain":
            machine = system(name)
            return machine.chip.need(field) * machine.chips
        if kind == "rack":
            return getattr(rack_facts(name), field)
        if kind == "tier":
            return tier(name).need(field)
        return _of_model(kind, name, field)
    except HeadwayError:  # removed from the catalogue, or blank there
        return None


def _of_model(kind: str, name: str, field: str) -> Any:
    from headway.models import totals
    from headway.models.config import model

    catalog_model = model(name)
    if kind == "block":
        return functools.reduce(getattr, field.split("."), catalog_model.blocks[-1])
    if kind == "kv":
        width = known(float(field), "bytes per cache element", "byte", "claim", "width that the claim counts in")
        return totals.kv_bytes_per_token(catalog_model, width)
    return getattr(totals, field)(catalog_model)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPart:
    """A figure of a claim."""

    name: str
    unit: str
    stated: float | None
    reference: float | None
    recomputed: float
    today: float | None
    verdict: str  # "" for a figure without a stated value


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimInput:
    """An input of a claim, with its current catalogue value if there is one."""

    name: str
    value: float
    unit: str
    source: str
    date: str
    today: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """A claim with its verdict; the figures are those of the first part that decides the verdict."""

    id: str
    group: str
    claim: str
    stated: float | None
    recomputed: float | None
    unit: str
    tolerance: str
    basis: str
    verdict: str
    cause: str
    note: str
    today: float | None
    reference: float | None
    stated_text: str
    source: str
    parts: tuple[ClaimPart, ...]
    inputs: tuple[ClaimInput, ...]


def rows() -> list[ClaimRow]:
    """Rows of all claims, in order."""
    return [_row(claim) for claim in claims().values()]


def claim(name: str) -> list[ClaimRow]:
    """Row of the claim with this id, or rows of all claims of this group; case is ignored."""
    label = name.strip().upper()
    matches = [claim for claim in claims().values() if label in (claim.id, claim.group)]
    if not matches:
        groups = {claim.group: claim.title for claim in claims().values()}
        near = {key.lower(): key for key in (*claims(), *groups)}
        raise UnknownName(
            "claim",
            name,
            near,
            "wants an id such as RB-10 or a group: " + ", ".join(f"{group} ({_brief(title)})" for group, title in groups.items()),
        )
    return [_row(claim) for claim in matches]


def _brief(title: str) -> str:
    """First subject of a group's title."""
    return title.partition(":")[0].partition(" and ")[0].partition(" from ")[0].lower()


def explain(name: str, today: bool = False) -> Parts:
    """Figures of a claim, from its inputs or today's, each with its tree of laws and sourced inputs."""
    claim_id = name.strip().upper()
    if claim_id not in claims():
        raise UnknownName("claim", name, {key.lower(): key for key in claims()}, "wants an id such as RB-10")
    with record():
        claim = claims()[claim_id]
        parts = recompute(claim, {key: look_up(path) for key, path in claim.today.items()} if today else None)
    if parts is None:
        raise BadValue("claim", claim_id, f"a claim that is computed: {', '.join(computable()[:3])}, ...")
    return parts


def _row(claim: Claim) -> ClaimRow:
    figures, today, now = recompute(claim), recompute_today(claim), current(claim)
    parts = tuple(
        ClaimPart(
            name=name, unit=claim.units.get(name, claim.unit), stated=claim.stated.get(name), reference=claim.reference.get(name),
            recomputed=float(value), today=None if today is None else float(today[name]), verdict=_part_verdict(claim, name, float(value)),
        )
        for name, value in (figures or {}).items()
    )  # fmt: skip
    verdict = WITHOUT_FIGURES.get(claim.kind, NOT_YET)
    if parts:
        verdict = worst([part.verdict for part in parts if part.verdict])
    if claim.kind == BOUND and parts[1].recomputed > MOST_APART * parts[0].recomputed:
        verdict, parts = UNDECIDED, tuple(dataclasses.replace(part, verdict=UNDECIDED if part.verdict else "") for part in parts)
    first, tolerance = next((part for part in parts if part.verdict == verdict), None), claim.tolerance
    if first is not None and (ends := claim.range_of(first.name)) is not None:
        tolerance = range_text(ends, first.unit)
    inputs = tuple(
        ClaimInput(name=name, value=float(value), unit=value.unit, source=value.source, date=value.date, today=now.get(name))
        for name, value in claim.inputs.items()
    )
    return ClaimRow(
        id=claim.id, group=claim.group, claim=claim.claim, stated=first.stated if first else None,
        recomputed=first.recomputed if first else None, unit=first.unit if first else claim.unit, tolerance=tolerance, basis=claim.kind,
        verdict=verdict, cause=claim.cause, note=claim.note, today=first.today if first else None,
        reference=first.reference if first else None, stated_text=claim.stated_text, source=claim.source, parts=parts, inputs=inputs,
    )  # fmt: skip


def _part_verdict(claim: Claim, name: str, value: float) -> str:
    """Verdict on a part against its stated value, or against the reference if the claim states no figure; "" without a target."""
    if (ends := claim.range_of(name)) is not None:
        return within(value, *ends)
    target = claim.stated if claim.stated or claim.ranges else claim.reference
    return beside(value, target[name], claim.tolerance) if name in target else ""


