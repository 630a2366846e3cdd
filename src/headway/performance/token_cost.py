"""Cost of a million tokens of each kind: fresh input, cached input and output, which together pay for the machine; and its interval.

A request's share of the machine is divided among its tokens in the proportions of the times that they take alone. The interval takes
the times and the price of a chip as independent, as `headway price` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.hardware.chip_price import PriceQuote
from headway.laws.economics.cost import (
    end_factor,
    full_load_usd,
    hour_usd,
    log_even_quantile,
    lower_end,
    month_usd,
    upper_end,
    usd_per_mtok_cached,
    usd_per_mtok_in,
    usd_per_mtok_out,
)
from headway.laws.serving.replicas import answer_token_s, cached_load_s, share_beside_loads

LOW = known(0.05, "5 % point", "", "constant", "lower end of a 90 % interval")
HIGH = known(0.95, "95 % point", "", "constant", "upper end of a 90 % interval")
ONE_LANE = known(1, "prompts at once", "", "constant", "the share of the replica is counted already")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTimes:
    """Times of one replica that a request's tokens are charged."""

    request: tuple[Any, Any, Any]  # mean time between finished requests: expected, shortest, longest
    prompt: Any  # of it, what the fresh prompt tokens take
    load: Any  # of a cached token, from where a prefix is kept
    ranks: Any  # which load side by side
    fresh: Any  # prompt tokens computed
    cached: Any  # prompt tokens found in a cache
    output: Any


def token_costs(times: TokenTimes, price: PriceQuote, chips: Any, replicas: Any) -> dict[str, Any]:
    """Cost per million tokens of each kind with its 90 % interval."""
    expected, shortest, longest = (_costs(times, request, price.value, chips, replicas) for request in times.request)
    out: dict[str, Any] = {}
    for stem, cost in expected.items():
        out |= spread_costs(stem, cost, shortest[stem], longest[stem], price)
    return out


def _costs(times: TokenTimes, request: Any, usd: Any, chips: Any, replicas: Any) -> dict[str, Any]:
    """Costs at one time between requests; the prompt's part grows and shrinks with it."""
    prompt = times.prompt * end_factor(request, times.request[0])
    share = share_beside_loads(request, cached_load_s(times.cached, times.load, times.ranks))
    answer = answer_token_s(request, prompt, times.output)
    return {
        "usd_per_mtok_in": usd_per_mtok_in(usd, chips, prompt * share, times.fresh, ONE_LANE, replicas),
        "usd_per_mtok_cached": usd_per_mtok_cached(usd, chips, times.load * share, times.ranks, replicas),
        "usd_per_mtok_out": usd_per_mtok_out(usd, chips, answer * share, ONE_LANE, replicas),
    }


def spread_costs(stem: str, expected: Any, low: Any, high: Any, price: PriceQuote) -> dict[str, Any]:
    """A cost and the ends of its interval, from its ends at the price of a chip and that price's own range."""
    cheap, dear = (log_even_quantile(price.low, price.high, share) for share in (LOW, HIGH))
    return {
        stem: expected,
        f"{stem}_lo": lower_end(expected, (end_factor(expected, low), end_factor(price.value, cheap))),
        f"{stem}_hi": upper_end(expected, (end_factor(high, expected), end_factor(dear, price.value))),
    }


def machine_usd(price: PriceQuote, chips: Any, out_usd: Any, busy: Any) -> dict[str, Any]:
    """Cost of the machine per hour and month, and of output at full load: that of a closed loop is its own load."""
    hour = hour_usd(price.value, chips)
    full = out_usd if busy is None else full_load_usd(out_usd, busy)
    return {"usd_per_hour": hour, "usd_per_month": month_usd(hour), "usd_per_mtok_out_full": full}
