"""The answer of an inversion: a value, an interval and its driver for each quantity, or "not identified"; as a tree of laws.

The median of weighted draws is a leaf of its own kind. The last factor (list price beyond cost, idle hours and margin) is chosen so that
the laws give the middle of the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.catalog import Catalog
from headway.core.errors import BadValue
from headway.core.quantity import known
from headway.core.units import Number
from headway.economics.inversion import features as closed_forms
from headway.economics.inversion.features import (
    FAST,
    INPUT,
    KV,
    LADDER,
    LEVELS,
    MACHINE,
    MODEL,
    OUTPUT,
    Features,
    SheetTiers,
    features,
    prior_spans,
    spans,
    strangeness,
    surprises,
)
from headway.economics.inversion.priors import (
    LEVEL,
    AssumedIntervals,
    CandidateChip,
    Priors,
    Samples,
    assumed_intervals,
    draw,
    machine,
    machines,
    priors,
    reference,
)
from headway.economics.sheets.sheet import PriceSheet
from headway.laws.economics import inversion as laws
from headway.laws.economics.cost import cost_share
from headway.laws.roofline.balance import compute_s_per_token
from headway.simulation.traffic.requests import Floats

NAMES = (*MODEL, KV, *MACHINE)
UNITS = {"kv": "byte/token", "chip_price": "USD/s"}
DRAWS_PER_SHEET, DRAWS_IN_BULK = 32768, 4096  # draws for one sheet; for each of many sheets
BULK = 16  # sheets from which DRAWS_IN_BULK applies
NARROWED = 2.5  # an interval this many times narrower than its prior is identified, if it is also no wider than WIDEST
WIDEST = 12.0  # upper over lower end
BOUNDED = 2.0
WIDENED = 1.05  # a feature drives an interval if leaving it out widens the interval by this factor
STRANGE = 3.0  # standard deviations of a price level from the priors, beyond which nothing is inferred
THIN = 30  # effective draws below which interval ends are unreliable
PRODUCT = {"chip_price", "utilisation", "margin", "mfu"}  # a rate identifies their product only
IDENTIFIED, PARTLY, NOT, ASSUMPTION = "identified", "bounded", "not identified", "assumed"
FREE = "a rate of 0 is no cost: nothing follows from it"
WANTS = {
    "active": "prices of more hosts, or the chip, its price, MFU, utilisation and margin behind this one",
    "total": "active parameters known, or speed at batch 1, which reads all weights that a token needs",
    "sparsity": "active or total parameters known; the output/input ratio alone leaves batch and KV open",
    "kv": "output prices by context (a ladder of tiers) bound it, though loosely; no rate of a flat sheet changes with the KV of a token",
    "mfu": "the sparsity, or measured prompt speed on a known chip",
    "batch": "a fast mode with price and speed, or tokens/s per user on a known machine: prices hold only batch x utilisation / margin",
    "utilisation": "margin, chip and batch known: prices hold only their product",
    "margin": "utilisation, chip and batch known, as a provider's published day gives them: prices hold only their product",
    "chip_price": "the chip and its contract: prices hold only its product with markup",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityRow:
    """One row of the answer: a quantity, a closed form, or a contradiction."""

    kind: str  # quantity, a closed form's label, or contradiction
    quantity: str
    unit: str = ""
    value: Any = None
    lo: Any = None
    hi: Any = None
    prior_lo: Any = None
    prior_hi: Any = None
    driven_by: str = ""
    widens: Any = None  # factor by which the interval widens without the driver
    verdict: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversion:
    """The inferences from one price sheet."""

    sheet: PriceSheet
    features: Features | None
    on: CandidateChip  # chip assumed by the closed forms
    rows: tuple[QuantityRow, ...]


def invert(
    sheets: Sequence[PriceSheet],
    assumptions: AssumedIntervals | None = None,
    known_priors: Priors | None = None,
    catalog: Catalog | None = None,
    count: int | None = None,
) -> list[Inversion]:
    """The inversion of each price sheet; many sheets share draws."""
    assumptions, basis = assumptions or AssumedIntervals(), known_priors or priors()
    read = [features(price_sheet) for price_sheet in sheets]
    priced = [item for item in read if item is not None]
    draws = draw(basis, assumptions, count or (DRAWS_PER_SHEET if len(sheets) <= BULK else DRAWS_IN_BULK), catalog)
    hosts = assumptions.hosts is not None and assumptions.hosts.low == 1
    posterior = spans(draws, basis, priced, hosts)
    quantiles = posterior.quantiles
    without = _without(draws, basis, priced, hosts)
    before, away, strange = prior_spans(draws, NAMES), surprises(draws, basis, priced), strangeness(draws, basis, priced)
    on = machines(assumptions, catalog)[0] if assumptions.chip else machine(reference(catalog).chip.name, assumptions.price, catalog)
    answers, number = [], 0
    for sheet, sheet_features in zip(sheets, read, strict=True):
        if sheet_features is None:
            rows = tuple(QuantityRow(kind="quantity", quantity=name, unit=UNITS.get(name, ""), verdict=NOT, why=FREE) for name in NAMES)
        else:
            left_out = {name: values[number] for name, values in without.items()}
            thin = float(posterior.support[number]) < THIN or abs(float(strange[number])) > STRANGE
            quantities = _quantities(sheet_features, quantiles[number], before, left_out, assumptions, thin)
            rows = (*quantities, *_closed(sheet, sheet_features, on, float(quantiles[number, 0, 1]), float(away[number])))
            rows += _thin(float(posterior.support[number]), len(draws.active), float(strange[number]))
            number += 1
        answers.append(Inversion(sheet=sheet, features=sheet_features, on=on, rows=rows))
    return answers


def _without(draws: Samples, basis: Priors, priced: Sequence[Features], hosts: bool) -> dict[str, Any]:
    """The intervals without each feature that some sheet has; NaN for quantities that depend on the markup alone."""
    names_by_feature = {INPUT: MODEL, OUTPUT: MODEL, LEVELS: MODEL}
    names_by_feature |= {LADDER: (*MODEL, KV)} if any(features.ladder for features in priced) else {}
    names_by_feature |= {FAST: ("batch",)} if any(features.least_batch for features in priced) else {}
    quantiles_without = {}
    for feature, names in names_by_feature.items():
        quantiles_without[feature] = np.full((len(priced), len(NAMES), 3), np.nan)
        quantiles_without[feature][:, [NAMES.index(name) for name in names]] = spans(draws, basis, priced, hosts, feature, names).quantiles
    return quantiles_without


# -- quantities -----------------------------------------------------------------------------------------------------------------


def _quantities(
    features: Features, quantiles: Floats, before: Floats, without: dict[str, Any], assumptions: AssumedIntervals, thin: bool
) -> tuple[QuantityRow, ...]:
    assumed_names = {"chip_price" if name == "price" else name for name in assumed_intervals(assumptions)}
    rows = []
    for index, name in enumerate(NAMES):
        lo, value, hi = map(float, quantiles[index])
        widths = {feature: _width(name, ends[index]) for feature, ends in without.items()}
        width, prior = _width(name, quantiles[index]), _width(name, before[index])
        driver, widens = _driver(widths, width, features)
        open_end = thin or _multiplied(name, assumed_names, features)
        verdict = ASSUMPTION if name in assumed_names or prior == 1 else _verdict(name, prior / width, width, features, open_end)
        rows.append(QuantityRow(
            kind="quantity", quantity=name, unit=UNITS.get(name, ""), value=value, lo=lo, hi=hi, prior_lo=float(before[index][0]),
            prior_hi=float(before[index][2]), driven_by="" if verdict == ASSUMPTION else driver, widens=widens, verdict=verdict,
            why="" if verdict in (IDENTIFIED, ASSUMPTION) else WANTS[name],
        ))  # fmt: skip
    return tuple(rows)


def _width(name: str, ends: Floats) -> float:
    """Upper over lower end of an interval; for a margin, of the remaining share of the price."""
    lo, hi = (1 - float(ends[2]), 1 - float(ends[0])) if name == "margin" else (float(ends[0]), float(ends[2]))
    return hi / lo


def _driver(widths: dict[str, float], width: float, features: Features) -> tuple[str, float | None]:
    """The feature whose absence widens the interval most, and by what factor."""
    has = {INPUT: True, OUTPUT: True, LEVELS: True, LADDER: features.ladder is not None, FAST: features.least_batch is not None}
    ratios = {name: without_width / width for name, without_width in widths.items() if has[name] and without_width == without_width}
    name = max(ratios, key=lambda feature: ratios[feature], default="")
    return (name, ratios[name]) if name and ratios[name] > WIDENED else ("", None)


def _multiplied(name: str, assumed_names: set[str], features: Features) -> bool:
    """Whether prices depend on a machine quantity only through a product with no factor assumed."""
    if name == "batch":
        return features.least_batch is None and not assumed_names
    return name in PRODUCT and not assumed_names & PRODUCT - {name}


def _verdict(name: str, narrowed: float, width: float, features: Features, open_end: bool) -> str:
    if open_end or (name == KV and features.ladder is None):
        return NOT
    return IDENTIFIED if narrowed >= NARROWED and width <= WIDEST else PARTLY if narrowed >= BOUNDED else NOT


# -- closed forms and contradictions --------------------------------------------------------------------------------------------


def _closed(sheet: PriceSheet, features: Features, on: CandidateChip, active: float, away: float) -> tuple[QuantityRow, ...]:
    size = known(active, "active", "", "estimate", f"the middle of the interval that {sheet.model}'s prices leave", sheet.as_of)
    bounds = list(closed_forms.bounds(sheet, features, on, size))
    rows = [
        QuantityRow(
            kind=bound.label,
            quantity=bound.name,
            unit=bound.unit,
            value=float(bound.value),
            lo=float(bound.lo),
            hi=float(bound.hi),
            why=bound.about,
        )
        for bound in bounds
    ]
    rows += [
        QuantityRow(kind="contradiction", quantity="", why=line) for line in closed_forms.contradictions(sheet, features, bounds, away)
    ]
    return tuple(rows)


def _thin(support: float, count: int, strange: float) -> tuple[QuantityRow, ...]:
    """A row that warns when few draws explain the rates, so rates or assumptions are far from the priors."""
    if support >= THIN:
        far = f"the input rate is {abs(strange):.1f} standard deviations from what models of known size are sold at: nothing is told of it"
        return (QuantityRow(kind="contradiction", quantity="", why=far),) if abs(strange) > STRANGE else ()
    line = f"the rates are far from what the priors and assumptions allow: {max(support, 1):.0f} of {count:,} draws explain them"
    return (QuantityRow(kind="contradiction", quantity="", why=line),)


def row(answer: Inversion, quantity: str) -> QuantityRow:
    """The row of a quantity or closed form, by name."""
    return next(entry for entry in answer.rows if entry.quantity == quantity)


ONE_PARAMETER = known(1, "one parameter", "", "constant", "definition")
NONE = known(1, "no policy", "", "constant", "a list price that is cost, idle hours and margin")
MIDDLE_OF_DRAWS = f"middle of the weighted draws; the interval holds {LEVEL:.0%} of them"


def tree(answer: Inversion, basis: Priors, quantity: str) -> Any:
    """The value of a quantity or closed form as a tree of laws; call it within `record()`."""
    if answer.features is None:
        raise BadValue("--explain", quantity, f"a sheet with prices ({FREE})")
    estimate = row(answer, quantity)
    if estimate.kind != "quantity":
        return _closed_tree(answer, answer.features, estimate)
    if quantity == "active":
        return active(answer, basis)
    if quantity == "total":
        return active(answer, basis) * _ratio_of_middles(answer)
    if quantity == "kv" and answer.features.ladder is not None:
        return _kv(answer, basis, answer.features.ladder)
    return _middle(answer, estimate)


def active(answer: Inversion, basis: Priors) -> Any:
    """Active parameters from the input price."""
    price = closed_forms.middle_price(answer.on)
    rate = closed_forms.fact(answer.sheet.rates.input, "input", "USD/token", answer.sheet)
    of_one = compute_s_per_token(ONE_PARAMETER, answer.on.peak)
    mfu = laws.sparse_mfu(basis.dense_mfu, _ratio_of_middles(answer), basis.sparse_exponent)
    utilisation, share = _middle(answer, row(answer, "utilisation")), cost_share(_middle(answer, row(answer, "margin")))

    def by(policy: Number) -> Any:
        chip_s = rate / (price * (policy / (utilisation * share)))
        return laws.active_from_prefill(chip_s, mfu, of_one)

    return by(_policy(float(by(NONE)), float(row(answer, "active").value)))


def _kv(answer: Inversion, basis: Priors, ladder: SheetTiers) -> Any:
    bound = laws.kv_slope_bound(closed_forms.slope(answer.sheet, ladder), answer.on.chip.hbm_bw, closed_forms.middle_price(answer.on))
    utilisation, share = _middle(answer, row(answer, "utilisation")), cost_share(_middle(answer, row(answer, "margin")))

    def by(policy: Number) -> Any:
        markup = (NONE / (utilisation * share)) ** basis.ladder_markup
        return bound * basis.eff_memory / (markup * basis.ladder_middle * policy)

    return by(_policy(float(by(NONE)), float(row(answer, "kv").value)))


def _policy(without: float, value: float) -> Any:
    """Factor of list price beyond cost, idle hours and margin with which the laws give the middle of the interval."""
    return known(without / value, "beyond cost, idle hours and margin", "", "estimate", MIDDLE_OF_DRAWS)


def _ratio_of_middles(answer: Inversion) -> Any:
    return known(row(answer, "total").value / row(answer, "active").value, "sparsity", "", "estimate", MIDDLE_OF_DRAWS, answer.sheet.as_of)


def _middle(answer: Inversion, estimate: QuantityRow) -> Any:
    return known(estimate.value, estimate.quantity, estimate.unit, "estimate", MIDDLE_OF_DRAWS, answer.sheet.as_of)


def _closed_tree(answer: Inversion, features: Features, estimate: QuantityRow) -> Any:
    """A closed form, computed again with its laws recorded."""
    middle = _middle(answer, row(answer, "active"))
    bounds = closed_forms.bounds(answer.sheet, features, answer.on, middle)
    return next(bound.value for bound in bounds if bound.name == estimate.quantity and float(bound.value) == estimate.value)
