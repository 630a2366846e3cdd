"""The value of an answer as a tree of the cost laws: the rate, the chip, and each term that the sheet leaves open at its middle.

A middle of weighted draws is a leaf of its own kind; the last factor, what list prices have beyond cost, idle hours and margin, is what
makes the laws give the middle of the interval.
"""

from __future__ import annotations

from typing import Any

from headway.errors import BadValue
from headway.inversion import closed
from headway.inversion.answer import FREE, Inverted, Row, row
from headway.inversion.features import Features, Ladder
from headway.inversion.priors import LEVEL, Priors
from headway.laws import inversion as laws
from headway.laws.balance import compute_s_per_token
from headway.laws.margin import cost_share
from headway.quantity import known

ONE = known(1, "one parameter", "", "constant", "definition")
NONE = known(1, "no policy", "", "constant", "a list price that is cost, idle hours and margin")
DRAWN = f"middle of the weighted draws; the interval holds {LEVEL:.0%} of them"


def tree(one: Inverted, basis: Priors, quantity: str) -> Any:
    """The value of a quantity or a closed form by its laws; call it within `record()`."""
    if one.found is None:
        raise BadValue("--explain", quantity, f"a sheet with prices ({FREE})")
    found = row(one, quantity)
    if found.kind != "quantity":
        return _closed(one, one.found, found)
    if quantity == "active":
        return active(one, basis)
    if quantity == "total":
        return laws.total_from_sparsity(active(one, basis), _ratio_of_middles(one))
    if quantity == "kv" and one.found.ladder is not None:
        return _kv(one, basis, one.found.ladder)
    return _middle(one, found)


def active(one: Inverted, basis: Priors) -> Any:
    """Active parameters from the input price."""
    price = closed.middle_price(one.on)
    rate = closed.fact(one.sheet.rates.input, "input", "USD/token", one.sheet)
    of_one = compute_s_per_token(ONE, one.on.peak)
    mfu = laws.sparse_mfu(basis.dense_mfu, _ratio_of_middles(one), basis.sparse_exponent)
    utilisation, share = _middle(one, row(one, "utilisation")), cost_share(_middle(one, row(one, "margin")))

    def by(policy: Any) -> Any:
        chip_s = laws.chip_s_paid(rate, price, laws.whole_markup(utilisation, share, policy))
        return laws.active_from_prefill(chip_s, mfu, of_one)

    return by(_policy(float(by(NONE)), float(row(one, "active").value)))


def _kv(one: Inverted, basis: Priors, ladder: Ladder) -> Any:
    bound = laws.kv_slope_bound(closed.slope(one.sheet, ladder), one.on.chip.hbm_bw, closed.middle_price(one.on))
    utilisation, share = _middle(one, row(one, "utilisation")), cost_share(_middle(one, row(one, "margin")))

    def by(policy: Any) -> Any:
        markup = laws.carried_markup(laws.whole_markup(utilisation, share, NONE), basis.ladder_markup)
        return laws.kv_from_slope(bound, basis.eff_memory, laws.with_policy(markup, policy))

    return by(_policy(float(by(NONE)), float(row(one, "kv").value)))


def _policy(without: float, value: float) -> Any:
    """What the list price has beside cost, idle hours and margin, for the laws to give the middle of the interval."""
    return known(without / value, "beyond cost, idle hours and margin", "", "estimate", DRAWN)


def _ratio_of_middles(one: Inverted) -> Any:
    return known(row(one, "total").value / row(one, "active").value, "sparsity", "", "estimate", DRAWN, one.sheet.as_of)


def _middle(one: Inverted, found: Row) -> Any:
    return known(found.value, found.quantity, found.unit, "estimate", DRAWN, one.sheet.as_of)


def _closed(one: Inverted, said: Features, found: Row) -> Any:
    """A closed form again, recorded."""
    middle = _middle(one, row(one, "active"))
    every = closed.bounds(one.sheet, said, one.on, middle)
    return next(each.value for each in every if each.name == found.quantity and float(each.value) == found.value)
