"""From the price of a chip to the cost and price of a token: ownership, chip time, idle hours, margin, and a published day."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import (
    ONE_TOKEN,
    BytePerSecond,
    BytePerToken,
    Number,
    PerSecond,
    Same,
    Second,
    SecondPerToken,
    Token,
    TokenPerMtok,
    Usd,
    UsdPerMtok,
    UsdPerSecond,
)

MILLION: TokenPerMtok = 1e6
CLAIMS = "Pope 2026 lecture, claims "


@formula(source=CLAIMS + "RB-21: cost per token = G * price * tau / B; idle chips are paid for")
def usd_per_mtok_out(price: UsdPerSecond, chips: Number, step: Second, batch: Number, replicas: Number) -> UsdPerMtok:
    """Cost of a million output tokens in decode steps, from the price of all chips.

    >>> round(usd_per_mtok_out(2 / 3600, 72, 0.020, 2000, 1), 3)
    0.4
    """
    return price * chips * step / (batch * replicas * ONE_TOKEN) * MILLION


@formula(source="chip time of prefill; each of `lanes` prompts shares the replica")
def usd_per_mtok_in(price: UsdPerSecond, chips: Number, prefill: Second, prompt: Token, lanes: Number, replicas: Number) -> UsdPerMtok:
    """Cost of a million prompt tokens.

    >>> round(usd_per_mtok_in(2 / 3600, 8, 0.5, 8000, 1, 1), 3)
    0.278
    """
    return price * chips * prefill / (prompt * lanes * replicas) * MILLION


@formula(source="KV load over the host link, and the decode it displaces: the replica waits while its fullest chip loads")
def cached_token_s(kv_bytes: BytePerToken, link: BytePerSecond) -> SecondPerToken:
    """Replica time to load one cached prefix token's KV into the HBM.

    >>> round(cached_token_s(40960, 63e9) * 1e9, 1)
    650.2
    """
    return kv_bytes / link


@formula(source="chip time of the load; each rank of the replica loads its own prefixes")
def usd_per_mtok_cached(price: UsdPerSecond, chips: Number, load: SecondPerToken, ranks: Number, replicas: Number) -> UsdPerMtok:
    """Cost of a million prompt tokens read from a prefix cache.

    >>> round(usd_per_mtok_cached(2 / 3600, 8, 650e-9, 1, 1), 5)
    0.00289
    """
    return price * chips * load / (ranks * replicas) * MILLION


HOUR: Second = 3600.0
THOUSAND: Number = 1000.0
MONTH_HOURS: Number = 730.0  # 8,760 hours of a year over 12


@formula(source="definition; idle chips are paid for")
def hour_usd(price: UsdPerSecond, chips: Number) -> Usd:
    """Cost of a machine for an hour, from the price of one chip.

    >>> round(hour_usd(2.5 / 3600, 8), 6)
    20.0
    """
    return price * chips * HOUR


@formula(source="definition: a machine's hour, shared by the requests that it finishes in it")
def usd_per_1k_requests(hour: Usd, rate: PerSecond) -> Usd:
    """Cost of a thousand requests, prompt and answer.

    >>> usd_per_1k_requests(36.0, 2.0)
    5.0
    """
    return hour / (rate * HOUR) * THOUSAND


@formula(source="definition: a month of 730 hours, 8,760 / 12")
def month_usd(hour: Usd) -> Usd:
    """Cost of a machine for a month, from that of an hour.

    >>> month_usd(20.0)  # 8 H100 at $2.5 an hour
    14600.0
    """
    return hour * MONTH_HOURS


@formula(source="definition: paid hours are shared by what the machine could carry; from a utilisation of 1 on it carries no more")
def full_load_usd(cost: UsdPerMtok, utilisation: Number) -> UsdPerMtok:
    """Cost per token at full load, from the cost at a load and its utilisation; input and output share it as they do at the load.

    >>> float(full_load_usd(2.5, 0.74)), float(full_load_usd(2.5, 1.2))  # USD/Mtok
    (1.85, 2.5)
    """
    return cost * np.minimum(utilisation, 1)


QUADRATURE = "independent inputs of a product: deviations of the logarithm at the 5 % and the 95 % point add in quadrature"


@formula(source="definition: what is left of a price when its margin is taken")
def cost_share(margin: Number) -> Number:
    """Share of a price that is cost, at a gross margin.

    >>> round(cost_share(0.845), 3)  # DeepSeek's day of 2025-02-27
    0.155
    """
    return 1 - margin


@formula(source="definition: gross margin, the share of revenue that is not cost")
def gross_margin(cost: Same, revenue: Same) -> Number:
    """Gross margin of a price over a cost; negative where the price is below the cost.

    >>> round(gross_margin(87072, 562027), 3)  # DeepSeek's day of 2025-02-27
    0.845
    """
    return 1 - cost / revenue


@formula(source="definition: profit over cost")
def margin_over_cost(cost: Same, revenue: Same) -> Number:
    """Profit as a multiple of the cost, as DeepSeek states it.

    >>> round(margin_over_cost(87072, 562027), 2)
    5.45
    """
    return (revenue - cost) / cost


@formula(source="definition")
def charged_usd(tokens: Token, rate: UsdPerMtok) -> Usd:
    """Revenue of a number of tokens at a rate.

    >>> charged_usd(168e9, 2.19)  # DeepSeek-R1's output tokens of 2025-02-27
    367920.0
    """
    return tokens / MILLION * rate


# -- intervals ------------------------------------------------------------------------------------------------------------------


@formula(source="an input of which only an interval is known, even in its logarithm: a price that spans a factor")
def log_even_quantile(low: Same, high: Same, share: Number) -> Same:
    """Quantile of a log-uniform interval.

    >>> round(float(log_even_quantile(2.2, 4.5, 0.5)), 3)  # a GB200 from owning it to renting it, USD/h
    3.146
    """
    return low * (high / low) ** share


@formula(source=QUADRATURE)
def upper_end(middle: Same, factors: tuple[Number, ...]) -> Same:
    """95 % point of a product whose independent inputs each raise it by a factor at their 95 % point.

    >>> round(float(upper_end(0.30, (1.6, 1.4, 3.0))), 2)
    1.04
    """
    return middle * np.exp(np.sqrt(sum(np.log(factor) ** 2 for factor in factors)))


@formula(source=QUADRATURE)
def lower_end(middle: Same, factors: tuple[Number, ...]) -> Same:
    """5 % point of a product whose independent inputs each lower it by a factor at their 5 % point.

    >>> round(float(lower_end(0.30, (1.6, 1.4, 3.0))), 3)
    0.087
    """
    return middle * np.exp(-np.sqrt(sum(np.log(factor) ** 2 for factor in factors)))


@formula(source="definition; of nothing, and of what has no end, there is no interval")
def end_factor(larger: Same, smaller: Same) -> Number:
    """Factor between an end of an interval and its middle.

    >>> float(end_factor(3.0, 1.5)), float(end_factor(0.0, 0.0)), float(end_factor(float("inf"), float("inf")))
    (2.0, 1.0, 1.0)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.divide(larger, smaller)
    return np.where(np.isnan(factor), 1, factor)


@formula(source="every input at its worse end at once")
def highest(middle: Same, factors: tuple[Number, ...]) -> Same:
    """Largest value of a product while each input stays within its interval.

    >>> round(float(highest(0.30, (1.6, 1.4, 3.0))), 3)
    2.016
    """
    return middle * np.exp(sum(np.log(factor) for factor in factors))


@formula(source="every input at its better end at once")
def lowest(middle: Same, factors: tuple[Number, ...]) -> Same:
    """Smallest value of a product while each input stays within its interval.

    >>> round(float(lowest(0.30, (1.6, 1.4, 3.0))), 4)
    0.0446
    """
    return middle * np.exp(-sum(np.log(factor) for factor in factors))


@formula(source="squares of the logarithms' half widths, which add in quadrature")
def width_share(factor: Number, all_factors: tuple[Number, ...]) -> Number:
    """Share of an interval's width due to one input; 0 where nothing has a width.

    >>> round(float(width_share(3.0, (1.6, 1.4, 3.0))), 2)
    0.78
    """
    total_square = sum(np.log(input_factor) ** 2 for input_factor in all_factors)
    return np.log(factor) ** 2 / np.where(total_square > 0, total_square, 1.0)


@formula(source="definition")
def usd_per_mtok_of(cost: Usd, tokens: Token) -> UsdPerMtok:
    """Cost per million tokens, from total cost and tokens.

    >>> round(usd_per_mtok_of(50450, 168e9), 4)  # DeepSeek's decode nodes
    0.3003
    """
    return cost / tokens * MILLION


# -- cost of a prefix cache: holding, writes, loads and recompute; providers' cache fees, and break-even ------------------------


@formula(source="definition")
def saved_share(cost: Usd, without: Usd) -> Number:
    """Share of the uncached bill that the cache saves; below 0 where it costs more than it saves.

    >>> saved_share(6.0, 8.0)
    0.25
    """
    return 1 - cost / without


@formula(source="Pope 2026 lecture, claim AP-17: n >= (m_write - 1) / (1 - m_read)")
def break_even_reads(write_multiple: Number, read_multiple: Number) -> Number:
    """Reads of a prefix within its TTL that pay for writing it, with rates as multiples of the input rate.

    >>> round(break_even_reads(1.25, 0.1), 2), round(break_even_reads(2.0, 0.1), 2)  # Claude Opus 4.6, 5 min and 1 h
    (0.28, 1.11)
    """
    return (write_multiple - 1) / (1 - read_multiple)


@formula(source="reads are whole")
def whole_reads(reads: Number) -> Number:
    """Fewest whole reads that pay for writing a prefix.

    >>> float(whole_reads(0.28)), float(whole_reads(1.11))  # Claude Opus 4.6, 5 min and 1 h
    (1.0, 2.0)
    """
    return np.ceil(reads)


# -- fast and slow tiers: cost of speed on one kind of machine, where the number of sequences that share it sets both -----------
# Multiples are over a standard tier: speed is a user's tokens per second, price the cost of equal work.


CLAIM = "Pope 2026 lecture, claim "


@formula(source=CLAIM + "FM-02: with price in proportion to t / B, B_slow / B_fast = price ratio x speed ratio, for any t(B)")
def batch_ratio_identity(price: Number, speed: Number) -> Number:
    """Ratio of batches that a price multiple and a speed multiple imply together.

    >>> batch_ratio_identity(6.0, 2.5)  # Claude Opus 4.6 fast
    15.0
    """
    return price * speed


@formula(source="straight line between two rungs in the logarithms of both multiples")
def between_rungs(at: Number, slower_x: Number, faster_x: Number, slower_y: Number, faster_y: Number) -> Number:
    """Multiple between two tiers by a power law; batches and layouts are discrete, but near tiers are close to powers.

    >>> round(float(between_rungs(2.5, 1.91, 2.57, 1.25, 2.38)), 2)
    2.24
    """
    return slower_y * np.exp(np.log(faster_y / slower_y) * np.log(at / slower_x) / np.log(faster_x / slower_x))


@formula(source="elasticity between two rungs: d ln(speed) / d ln(price)")
def speed_bought(slower_speed: Number, speed: Number, slower_price: Number, price: Number) -> Number:
    """Per cent of speed per per cent of price from the next slower tier: near 0 on the latency floor.

    >>> round(float(speed_bought(1.0, 2.5, 1.0, 6.0)), 2)
    0.51
    """
    return np.log(speed / slower_speed) / np.log(price / slower_price)
