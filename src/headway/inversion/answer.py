"""The answer of an inversion: for each quantity a value, an interval and what drives it, or "not identified" and what would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.catalog import Catalog
from headway.inversion import closed
from headway.inversion.draws import Draws, draw
from headway.inversion.features import Features, features
from headway.inversion.posterior import FAST, INPUT, KV, LADDER, LEVELS, MACHINE, MODEL, OUTPUT, prior_spans, spans, strangeness, surprises
from headway.inversion.priors import Assumed, Machine, Priors, given, machine, machines, priors, reference
from headway.price_sheet import PriceSheet
from headway.quantity import known

NAMES = (*MODEL, KV, *MACHINE)
UNITS = {"kv": "byte/token", "chip_price": "USD/s"}
FEW, MANY = 32768, 4096  # draws of a sheet; of each of many sheets
BULK = 16  # sheets from which they are many
NARROWED = 2.5  # times narrower than before the sheet was seen: identified
BOUNDED = 2.0
WIDENED = 1.05  # by which leaving a feature out must widen an interval to be what drives it
STRANGE = 3.0  # standard deviations of the level of prices from all that is known, beyond which nothing is told
THIN = 30  # draws that carry the weight, below which ends of intervals are not to be trusted
PRODUCT = {"chip_price", "utilisation", "margin", "mfu"}  # a rate holds no more than their product
IDENTIFIED, PARTLY, NOT, GIVEN = "identified", "bounded", "not identified", "assumed"
FREE = "a rate of 0 is no cost: nothing follows from it"
WANTS = {
    "active": "prices of more hosts, or the chip, its price, MFU, utilisation and margin behind this one",
    "total": "active parameters known, or speed at batch 1, which reads all weights that a token needs",
    "sparsity": "active or total parameters known; the output/input ratio alone leaves batch and KV open",
    "kv": "output prices by context (a ladder of tiers): no rate of a flat sheet changes with the KV that a token reads",
    "mfu": "the sparsity, or measured prompt speed on a known chip",
    "batch": "a fast mode with price and speed, or tokens/s per user on a known machine: prices hold only batch x utilisation / margin",
    "utilisation": "margin, chip and batch known: prices hold only their product",
    "margin": "utilisation, chip and batch known, as a provider's published day gives them: prices hold only their product",
    "chip_price": "the chip and its contract: prices hold only its product with markup",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the answer: a quantity, a closed form, or a contradiction."""

    kind: str  # quantity, a closed form's label, or contradiction
    quantity: str
    unit: str = ""
    value: Any = None
    lo: Any = None
    hi: Any = None
    prior_lo: Any = None
    prior_hi: Any = None
    driven_by: str = ""
    widens: Any = None  # times wider without that feature
    verdict: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inverted:
    """All that one sheet says."""

    sheet: PriceSheet
    found: Features | None
    on: Machine  # that closed forms are taken on
    rows: tuple[Row, ...]


def invert(
    sheets: Sequence[PriceSheet], assumed: Assumed | None = None, known_priors: Priors | None = None, catalog: Catalog | None = None,
    count: int | None = None,
) -> list[Inverted]:  # fmt: skip
    """Read price sheets backwards, many at once with shared draws."""
    assumed, basis = assumed or Assumed(), known_priors or priors()
    read = [features(one) for one in sheets]
    priced = [one for one in read if one is not None]
    draws = draw(basis, assumed, count or (FEW if len(sheets) <= BULK else MANY), catalog)
    hosts = assumed.hosts is not None and assumed.hosts.low == 1
    seen = spans(draws, basis, priced, hosts)
    whole = seen.found
    without = _without(draws, basis, priced, hosts)
    before, away, strange = prior_spans(draws, NAMES), surprises(draws, basis, priced), strangeness(draws, basis, priced)
    on = machines(assumed, catalog)[0] if assumed.chip else machine(reference(catalog).chip.name, assumed.price, catalog)
    answers, number = [], 0
    for sheet, one in zip(sheets, read, strict=True):
        if one is None:
            rows = tuple(Row(kind="quantity", quantity=name, unit=UNITS.get(name, ""), verdict=NOT, why=FREE) for name in NAMES)
        else:
            left = {name: found[number] for name, found in without.items()}
            thin = float(seen.support[number]) < THIN or abs(float(strange[number])) > STRANGE
            quantities = _quantities(one, whole[number], before, left, assumed, thin)
            rows = (*quantities, *_closed(sheet, one, on, float(whole[number, 0, 1]), float(away[number])))
            rows += _thin(float(seen.support[number]), len(draws.active), float(strange[number]))
            number += 1
        answers.append(Inverted(sheet=sheet, found=one, on=on, rows=rows))
    return answers


def _without(draws: Draws, basis: Priors, priced: Sequence[Features], hosts: bool) -> dict[str, Any]:
    """The spans with each feature left out, NaN where they hang on no feature but the markup; where no sheet has it, not asked."""
    asked = {INPUT: MODEL, OUTPUT: MODEL, LEVELS: MODEL}
    asked |= {LADDER: (*MODEL, KV)} if any(one.ladder for one in priced) else {}
    asked |= {FAST: ("batch",)} if any(one.least_batch for one in priced) else {}
    found = {}
    for feature, names in asked.items():
        found[feature] = np.full((len(priced), len(NAMES), 3), np.nan)
        found[feature][:, [NAMES.index(name) for name in names]] = spans(draws, basis, priced, hosts, feature, names).found
    return found


# -- quantities -----------------------------------------------------------------------------------------------------------------


def _quantities(one: Features, whole: Any, before: Any, without: dict[str, Any], assumed: Assumed, thin: bool) -> tuple[Row, ...]:
    own = {"chip_price" if name == "price" else name for name in given(assumed)}
    rows = []
    for index, name in enumerate(NAMES):
        lo, value, hi = map(float, whole[index])
        widths = {feature: _width(name, found[index]) for feature, found in without.items()}
        width, prior = _width(name, whole[index]), _width(name, before[index])
        driver, widens = _driver(widths, width, one)
        open_end = thin or _multiplied(name, own, one)
        verdict = GIVEN if name in own or prior == 1 else _verdict(name, prior / width, one, open_end)
        rows.append(Row(
            kind="quantity", quantity=name, unit=UNITS.get(name, ""), value=value, lo=lo, hi=hi, prior_lo=float(before[index][0]),
            prior_hi=float(before[index][2]), driven_by="" if verdict == GIVEN else driver, widens=widens, verdict=verdict,
            why="" if verdict in (IDENTIFIED, GIVEN) else WANTS[name],
        ))  # fmt: skip
    return tuple(rows)


def _width(name: str, ends: Any) -> float:
    """Upper over lower end; of a margin, that of what is left of the price."""
    lo, hi = (1 - float(ends[2]), 1 - float(ends[0])) if name == "margin" else (float(ends[0]), float(ends[2]))
    return hi / lo


def _driver(widths: dict[str, float], width: float, one: Features) -> tuple[str, float | None]:
    """The feature whose loss widens the interval most, and by how much."""
    has = {INPUT: True, OUTPUT: True, LEVELS: True, LADDER: one.ladder is not None, FAST: one.least_batch is not None}
    found = {name: each / width for name, each in widths.items() if has[name] and each == each}
    name = max(found, key=lambda each: found[each], default="")
    return (name, found[name]) if name and found[name] > WIDENED else ("", None)


def _multiplied(name: str, own: set[str], one: Features) -> bool:
    """Whether prices hold a quantity of the machine only in a product of which nothing is assumed."""
    if name == "batch":
        return one.least_batch is None and not own
    return name in PRODUCT and not own & PRODUCT - {name}


def _verdict(name: str, narrowed: float, one: Features, open_end: bool) -> str:
    if open_end or (name == KV and one.ladder is None):
        return NOT
    return IDENTIFIED if narrowed >= NARROWED else PARTLY if narrowed >= BOUNDED else NOT


# -- closed forms and contradictions --------------------------------------------------------------------------------------------


def _closed(sheet: PriceSheet, one: Features, on: Machine, active: float, away: float) -> tuple[Row, ...]:
    size = known(active, "active", "", "estimate", f"the middle of the interval that {sheet.model}'s prices leave", sheet.as_of)
    found = list(closed.bounds(sheet, one, on, size))
    rows = [
        Row(
            kind=each.label,
            quantity=each.name,
            unit=each.unit,
            value=float(each.value),
            lo=float(each.lo),
            hi=float(each.hi),
            why=each.about,
        )
        for each in found
    ]
    rows += [Row(kind="contradiction", quantity="", why=line) for line in closed.contradictions(sheet, one, found, away)]
    return tuple(rows)


def _thin(support: float, count: int, strange: float) -> tuple[Row, ...]:
    """A word where hardly any draw explains the rates: they, or what is assumed, are far from all that is known."""
    if support >= THIN:
        far = f"the input rate is {abs(strange):.1f} standard deviations from what models of known size are sold at: nothing is told of it"
        return (Row(kind="contradiction", quantity="", why=far),) if abs(strange) > STRANGE else ()
    line = f"the rates are far from what the priors and assumptions allow: {max(support, 1):.0f} of {count:,} draws explain them"
    return (Row(kind="contradiction", quantity="", why=line),)


def row(one: Inverted, quantity: str) -> Row:
    """The row of a quantity or of a closed form."""
    return next(each for each in one.rows if each.quantity == quantity)
