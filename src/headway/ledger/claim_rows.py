"""The ledger's rows: each claim with what was stated, what the project's laws give, and the verdict that follows."""

from __future__ import annotations

import dataclasses

from headway.errors import BadValue, UnknownName
from headway.formula import record
from headway.ledger import verdict
from headway.ledger.claims import Claim, claims
from headway.ledger.recompute import computable, recompute
from headway.ledger.register import Parts
from headway.ledger.today import current, look_up, recompute_today


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPart:
    """One figure of a claim."""

    name: str
    unit: str
    stated: float | None
    reference: float | None
    recomputed: float
    today: float | None
    verdict: str  # "" where the figure is shown and nothing was stated about it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimInput:
    """One number that a claim is recomputed with, and what the catalogue says now where it has it."""

    name: str
    value: float
    unit: str
    source: str
    date: str
    today: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """One claim; the figures are those of the first part that its verdict rests on."""

    id: str
    group: str
    claim: str
    stated: float | None
    recomputed: float | None
    unit: str
    tolerance: str
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
    """Every claim, in order."""
    return [_row(claim) for claim in claims().values()]


def claim(name: str) -> list[ClaimRow]:
    """The claim of this id, or all claims of this group; any letter case."""
    label = name.strip().upper()
    matches = [claim for claim in claims().values() if label in (claim.id, claim.group)]
    if not matches:
        groups = list(dict.fromkeys(claim.group for claim in claims().values()))
        near = {key.lower(): key for key in (*claims(), *groups)}
        raise UnknownName("claim", name, near, "wants an id such as RB-10 or a group: " + ", ".join(groups))
    return [_row(claim) for claim in matches]


def explain(name: str, today: bool = False) -> Parts:
    """Each figure of a claim, from its own inputs or today's, as a number that carries the tree of laws and sourced inputs behind it."""
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
    figures = recompute(claim)
    parts = _parts(claim, figures) if figures is not None else ()
    overall = _verdict(claim, parts)
    first = next((part for part in parts if part.verdict == overall), None)
    return ClaimRow(
        id=claim.id,
        group=claim.group,
        claim=claim.claim,
        stated=first.stated if first else None,
        recomputed=first.recomputed if first else None,
        unit=first.unit if first else claim.unit,
        tolerance=_tolerance(claim, first),
        verdict=overall,
        cause=claim.cause,
        note=claim.note,
        today=first.today if first else None,
        reference=first.reference if first else None,
        stated_text=claim.stated_text,
        source=claim.source,
        parts=parts,
        inputs=_inputs(claim),
    )


def _parts(claim: Claim, figures: Parts) -> tuple[ClaimPart, ...]:
    now = recompute_today(claim)
    return tuple(
        ClaimPart(
            name=name,
            unit=claim.units.get(name, claim.unit),
            stated=claim.stated.get(name),
            reference=claim.reference.get(name),
            recomputed=float(value),
            today=None if now is None else float(now[name]),
            verdict=_part_verdict(claim, name, float(value)),
        )
        for name, value in figures.items()
    )


def _inputs(claim: Claim) -> tuple[ClaimInput, ...]:
    now = current(claim)
    return tuple(
        ClaimInput(name=name, value=float(value), unit=value.unit, source=value.source, date=value.date, today=now.get(name))
        for name, value in claim.inputs.items()
    )


def _part_verdict(claim: Claim, name: str, value: float) -> str:
    """Against what was stated; against the reference only where the whole claim states no figure."""
    if name in claim.ranges:
        return verdict.within(value, *claim.ranges[name])
    target = claim.stated if claim.stated or claim.ranges else claim.reference
    return verdict.beside(value, target[name], claim.tolerance) if name in target else ""


def _verdict(claim: Claim, parts: tuple[ClaimPart, ...]) -> str:
    if parts:
        return verdict.worst([part.verdict for part in parts if part.verdict])
    return verdict.NOT_COMPUTABLE if claim.empirical else verdict.NOT_YET


def _tolerance(claim: Claim, first: ClaimPart | None) -> str:
    if first is not None and first.name in claim.ranges:
        low, high = claim.ranges[first.name]
        return f"{low:g}..{high:g}"
    return claim.tolerance
