"""From what a token costs to what it sells for, and back: idle hours, margin, and intervals of several inputs in one."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.laws.money import MILLION
from headway.units import Number, Same, Token, Usd, UsdPerMtok

QUADRATURE = "independent inputs of a product: deviations of the logarithm at the 5 % and the 95 % point add in quadrature"


@formula(source="definition: paid hours are busy hours over the share of them that is busy")
def with_idle(cost: Same, utilisation: Number) -> Same:
    """What something costs when its idle hours are paid for as well.

    >>> with_idle(0.25, 0.5)  # USD/Mtok of a machine that works half of its paid hours
    0.5
    """
    return cost / utilisation


@formula(source="definition: what is left of a price when its margin is taken")
def cost_share(margin: Number) -> Number:
    """The share of a price that is cost.

    >>> round(cost_share(0.845), 3)  # DeepSeek's day of 2025-02-27
    0.155
    """
    return 1 - margin


@formula(source="definition: price = cost / (1 - margin)")
def price_at_margin(cost: Same, cost_share: Number) -> Same:
    """The price at which that share of it is cost.

    >>> round(price_at_margin(0.300, 0.137), 2)  # DeepSeek-V3's output tokens of 2025-02-27
    2.19
    """
    return cost / cost_share


@formula(source="definition: gross margin, the share of revenue that is not cost")
def gross_margin(cost: Same, revenue: Same) -> Number:
    """The margin that a price leaves over a cost; negative where it does not pay for it.

    >>> round(gross_margin(87072, 562027), 3)  # DeepSeek's day of 2025-02-27
    0.845
    """
    return 1 - cost / revenue


@formula(source="definition: profit over cost")
def margin_over_cost(cost: Same, revenue: Same) -> Number:
    """The same as a multiple of the cost, as DeepSeek states it.

    >>> round(margin_over_cost(87072, 562027), 2)
    5.45
    """
    return (revenue - cost) / cost


@formula(source="definition")
def charged_usd(tokens: Token, rate: UsdPerMtok) -> Usd:
    """What so many tokens bring at a rate.

    >>> charged_usd(168e9, 2.19)  # DeepSeek-R1's output tokens of 2025-02-27
    367920.0
    """
    return tokens / MILLION * rate


# -- intervals ------------------------------------------------------------------------------------------------------------------


@formula(source="an input of which only an interval is known, even in its logarithm: a price that spans a factor")
def log_even_quantile(low: Same, high: Same, share: Number) -> Same:
    """The value that a share of the interval's logarithm lies below.

    >>> round(float(log_even_quantile(2.2, 4.5, 0.5)), 3)  # a GB200 from owning it to renting it, USD/h
    3.146
    """
    return low * (high / low) ** share


@formula(source="an input of which only an interval is known, even over it: a share of hours, a share of a price")
def even_quantile(low: Same, high: Same, share: Number) -> Same:
    """The value that a share of the interval lies below.

    >>> even_quantile(0.3, 0.7, 0.5)
    0.5
    """
    return low + (high - low) * share


@formula(source=QUADRATURE)
def upper_end(middle: Same, factors: tuple[Number, ...]) -> Same:
    """The 95 % point of a product whose independent inputs each raise it by a factor at their own.

    >>> round(float(upper_end(0.30, (1.6, 1.4, 3.0))), 2)
    1.04
    """
    return middle * np.exp(np.sqrt(sum(np.log(factor) ** 2 for factor in factors)))


@formula(source=QUADRATURE)
def lower_end(middle: Same, factors: tuple[Number, ...]) -> Same:
    """The 5 % point of a product whose independent inputs each lower it by a factor at their own.

    >>> round(float(lower_end(0.30, (1.6, 1.4, 3.0))), 3)
    0.087
    """
    return middle * np.exp(-np.sqrt(sum(np.log(factor) ** 2 for factor in factors)))


@formula(source="every input at its worse end at once")
def highest(middle: Same, factors: tuple[Number, ...]) -> Same:
    """The most that a product can be while each input stays within its own interval.

    >>> round(float(highest(0.30, (1.6, 1.4, 3.0))), 3)
    2.016
    """
    return middle * np.exp(sum(np.log(factor) for factor in factors))


@formula(source="every input at its better end at once")
def lowest(middle: Same, factors: tuple[Number, ...]) -> Same:
    """The least that a product can be while each input stays within its own interval.

    >>> round(float(lowest(0.30, (1.6, 1.4, 3.0))), 4)
    0.0446
    """
    return middle * np.exp(-sum(np.log(factor) for factor in factors))


@formula(source="definition")
def whole_factor(below: Number, above: Number) -> Number:
    """An interval's upper end over its lower one.

    >>> round(whole_factor(1.6, 1.4), 2)
    2.24
    """
    return below * above


@formula(source="squares of the logarithms' half widths, which add in quadrature")
def width_share(factor: Number, all_factors: tuple[Number, ...]) -> Number:
    """The share of an interval's width that one input is behind; 0 where nothing has a width.

    >>> round(float(width_share(3.0, (1.6, 1.4, 3.0))), 2)
    0.78
    """
    total_square = sum(np.log(input_factor) ** 2 for input_factor in all_factors)
    return np.log(factor) ** 2 / np.where(total_square > 0, total_square, 1.0)
