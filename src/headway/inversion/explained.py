"""The value of an answer as a tree of the cost laws: the rate, the chip, and each term that the sheet leaves open at its middle.

A middle of weighted draws is a leaf of its own kind; the last factor, what list prices have beyond cost, idle hours and margin, is what
makes the laws give the middle of the interval.
"""

from __future__ import annotations

from typing import Any

from headway.errors import BadValue
from headway.inversion import closed
from headway.inversion.answer import FREE, Inversion, QuantityRow, row
from headway.inversion.features import Features, SheetTiers
from headway.inversion.priors import LEVEL, Priors
from headway.laws import inversion as laws
from headway.laws.balance import compute_s_per_token
from headway.laws.margin import cost_share
from headway.quantity import known

ONE_PARAMETER = known(1, "one parameter", "", "constant", "definition")
NONE = known(1, "no policy", "", "constant", "a list price that is cost, idle hours and margin")
MIDDLE_OF_DRAWS = f"middle of the weighted draws; the interval holds {LEVEL:.0%} of them"


def tree(answer: Inversion, basis: Priors, quantity: str) -> Any:
    """The value of a quantity or a closed form by its laws; call it within `record()`."""
    if answer.features is None:
        raise BadValue("--explain", quantity, f"a sheet with prices ({FREE})")
    estimate = row(answer, quantity)
    if estimate.kind != "quantity":
        return _closed(answer, answer.features, estimate)
    if quantity == "active":
        return active(answer, basis)
    if quantity == "total":
        return laws.total_from_sparsity(active(answer, basis), _ratio_of_middles(answer))
    if quantity == "kv" and answer.features.ladder is not None:
        return _kv(answer, basis, answer.features.ladder)
    return _middle(answer, estimate)


def active(answer: Inversion, basis: Priors) -> Any:
    """Active parameters from the input price."""
    price = closed.middle_price(answer.on)
    rate = closed.fact(answer.sheet.rates.input, "input", "USD/token", answer.sheet)
    of_one = compute_s_per_token(ONE_PARAMETER, answer.on.peak)
    mfu = laws.sparse_mfu(basis.dense_mfu, _ratio_of_middles(answer), basis.sparse_exponent)
    utilisation, share = _middle(answer, row(answer, "utilisation")), cost_share(_middle(answer, row(answer, "margin")))

    def by(policy: Any) -> Any:
        chip_s = laws.chip_s_paid(rate, price, laws.whole_markup(utilisation, share, policy))
        return laws.active_from_prefill(chip_s, mfu, of_one)

    return by(_policy(float(by(NONE)), float(row(answer, "active").value)))


def _kv(answer: Inversion, basis: Priors, ladder: SheetTiers) -> Any:
    bound = laws.kv_slope_bound(closed.slope(answer.sheet, ladder), answer.on.chip.hbm_bw, closed.middle_price(answer.on))
    utilisation, share = _middle(answer, row(answer, "utilisation")), cost_share(_middle(answer, row(answer, "margin")))

    def by(policy: Any) -> Any:
        markup = laws.carried_markup(laws.whole_markup(utilisation, share, NONE), basis.ladder_markup)
        return laws.kv_from_slope(bound, basis.eff_memory, laws.with_policy(markup, policy))

    return by(_policy(float(by(NONE)), float(row(answer, "kv").value)))


def _policy(without: float, value: float) -> Any:
    """What the list price has beside cost, idle hours and margin, for the laws to give the middle of the interval."""
    return known(without / value, "beyond cost, idle hours and margin", "", "estimate", MIDDLE_OF_DRAWS)


def _ratio_of_middles(answer: Inversion) -> Any:
    return known(row(answer, "total").value / row(answer, "active").value, "sparsity", "", "estimate", MIDDLE_OF_DRAWS, answer.sheet.as_of)


def _middle(answer: Inversion, estimate: QuantityRow) -> Any:
    return known(estimate.value, estimate.quantity, estimate.unit, "estimate", MIDDLE_OF_DRAWS, answer.sheet.as_of)


def _closed(answer: Inversion, features: Features, estimate: QuantityRow) -> Any:
    """A closed form again, recorded."""
    middle = _middle(answer, row(answer, "active"))
    bounds = closed.bounds(answer.sheet, features, answer.on, middle)
    return next(bound.value for bound in bounds if bound.name == estimate.quantity and float(bound.value) == estimate.value)
