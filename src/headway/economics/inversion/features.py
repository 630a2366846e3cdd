"""Features of a price sheet as numbers: price levels and slopes by context, and closed-form bounds on KV and batch.

Draws are weighted by how well they explain a sheet's rates; each quantity's interval is with all features or without one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from headway.core.quantity import Sourced, default, known
from headway.core.units import Number
from headway.economics.inversion.priors import LEVEL, SD_TO_END, CandidateChip, Markup, Priors, Samples, markup, priors
from headway.economics.sheets.sheet import Mode, PriceSheet, Rates
from headway.laws.economics import inversion as laws
from headway.laws.economics.cost import batch_ratio_identity, log_even_quantile
from headway.laws.roofline.balance import compute_s_per_token
from headway.simulation.traffic.requests import Floats

# Assumed positions of requests within a context tier: middle and ends.
WITHIN = (0.25, 0.5, 0.75)
MIDDLE = default(0.5, "within the tier", "", "requests lie in the middle of a context tier, a quarter to three quarters of it are tried")
DIGITS = 2  # decimals of a spread, so that equally uncertain sheets share weights
OPEN_ENDED = default(2.0, "open tier", "", "the last tier ends at twice its start where the sheet names no longest context")


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetTier:
    """One context tier: rates of requests whose prompt is above `above` and up to `to` tokens."""

    above: Any
    to: Any
    rates: Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetTiers:
    """Slope of output rates over context: the median secant between neighbouring context tiers."""

    slope: Any  # USD/token^2
    spread: float  # half range of the slope's logarithm over positions of requests in a tier
    lower: SheetTier
    upper: SheetTier


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features of one sheet; None for a feature it lacks."""

    input: float  # USD/token
    output: float
    ladder: SheetTiers | None = None
    least_batch: float | None = None
    fast_mode: str = ""


def features(sheet: PriceSheet) -> Features | None:
    """The features of a sheet; None for a sheet with free tokens."""
    rates = sheet.rates
    if not (rates.input > 0 and rates.output > 0):
        return None
    # A faster mode's price x speed is a lower bound on the standard batch: the largest of them.
    candidates = [(batch_ratio_identity(mode.rates.output / rates.output, mode.speed_ratio), mode.name) for mode in faster(sheet)]
    batch, mode = max(candidates, default=(None, ""))
    return Features(input=rates.input, output=rates.output, ladder=ladder(rungs(sheet)), least_batch=batch, fast_mode=mode)


def rungs(sheet: PriceSheet) -> tuple[SheetTier, ...]:
    """The context tiers with their ends, shortest first; tiers that start beyond the longest context are dropped."""
    tiers = [tier for tier in sheet.tiers if sheet.context_limit is None or tier.above < sheet.context_limit]
    starts = [0.0, *(tier.above for tier in tiers)]
    last = sheet.context_limit if sheet.context_limit is not None else OPEN_ENDED * starts[-1]
    ends, rates = [*starts[1:], last], [sheet.rates, *(tier.rates for tier in tiers)]
    return tuple(SheetTier(above=start, to=end, rates=of_tier) for start, end, of_tier in zip(starts, ends, rates, strict=True))


def ladder(tiers: tuple[SheetTier, ...]) -> SheetTiers | None:
    """The slope of output rates over context tiers; None if they do not rise."""
    pairs = rising(tiers)
    if not pairs:
        return None
    slopes = sorted((secant(below, above, 0.5), number) for number, (below, above) in enumerate(pairs))
    lower, upper = pairs[slopes[(len(slopes) - 1) // 2][1]]
    tried = [secant(lower, upper, share) for share in WITHIN]
    spread = round(0.5 * math.log(max(tried) / min(tried)), DIGITS)
    return SheetTiers(slope=secant(lower, upper, MIDDLE), spread=spread, lower=lower, upper=upper)


def rising(tiers: tuple[SheetTier, ...]) -> list[tuple[SheetTier, SheetTier]]:
    """Pairs of neighbouring tiers with a rising output rate."""
    return [(below, above) for below, above in pairwise(tiers) if above.rates.output > below.rates.output > 0]


def secant(lower: SheetTier, upper: SheetTier, share: Number) -> Any:
    """The slope in USD/token^2 between two tiers with requests at `share` of each tier."""
    return laws.rate_slope(lower.rates.output, upper.rates.output, at(lower, share), at(upper, share))


def at(rung: SheetTier, share: Number) -> Any:
    """The context in tokens at `share` of a tier."""
    return laws.within_tier(rung.above, rung.to, share)


def faster(sheet: PriceSheet) -> list[Mode]:
    """The modes with a higher price and a known higher speed."""
    dearer = [mode for mode in sheet.modes if mode.rates.output > sheet.rates.output > 0]
    return [mode for mode in dearer if mode.speed_ratio is not None and mode.speed_ratio > 1]


HOUR = known(3600, "hour", "s", "constant", "definition")
LOWER, UPPER, EQUALITY, REGRESSION = "lower bound", "upper bound", "equality", "regression"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedBound:
    """One closed-form bound, at the middle and the ends of its assumptions."""

    name: str
    label: str
    value: Any
    lo: Any
    hi: Any
    about: str
    unit: str = "byte/token"


def fact(value: Number, name: str, unit: str, sheet: PriceSheet) -> Any:
    """A number of a sheet, with the sheet as its origin."""
    if isinstance(value, Sourced):
        return value
    return known(value, f"{sheet.model}.{name}", unit, "datasheet", sheet.source, sheet.as_of)


def bounds(sheet: PriceSheet, features: Features, on: CandidateChip, active: Number) -> Iterator[ClosedBound]:
    """Every closed-form bound that the sheet's features allow, on one chip and for `active` parameters; and a plain regression's sizes."""
    yield from _of_lines(sheet)
    yield from _of_ladder(sheet, features, on, active)
    yield from _of_cache(sheet, on, active)
    yield from _of_modes(sheet)


def slope(sheet: PriceSheet, ladder: SheetTiers) -> Any:
    """The slope of context tiers, its numbers with the sheet as origin."""
    lower, upper = ladder.lower, ladder.upper
    at = [
        laws.within_tier(fact(rung.above, "tier", "token", sheet), fact(rung.to, "tier end", "token", sheet), 0.5)
        for rung in (lower, upper)
    ]
    rates = [fact(rung.rates.output, "output", "USD/token", sheet) for rung in (lower, upper)]
    return laws.rate_slope(rates[0], rates[1], at[0], at[1])


def middle_price(on: CandidateChip) -> Any:
    """The middle of a chip's price range."""
    return log_even_quantile(on.price.low, on.price.high, 0.5) if on.price.wide else on.price.low


def _of_lines(sheet: PriceSheet) -> Iterator[ClosedBound]:
    """Both sizes by a straight line on both prices, to set beside what the cost laws say."""
    basis = priors()
    rate_in, rate_out = (fact(getattr(sheet.rates, kind), kind, "USD/token", sheet) for kind in ("input", "output"))
    for size, about in (("active", "active parameters"), ("total", "all parameters")):
        scale, power_in, power_out, spread = (getattr(basis, f"line_{name}_{size}") for name in ("scale", "input", "output", "spread"))
        value, factor = laws.size_line(scale, rate_in, rate_out, power_in, power_out), math.exp(SD_TO_END * float(spread))
        text = f"{about} by a straight line on both prices of the same open models, which knows no cost, chip, margin or ladder"
        yield ClosedBound(name=f"{size}_line", label=REGRESSION, value=value, lo=value / factor, hi=value * factor, about=text, unit="")


def _of_ladder(sheet: PriceSheet, features: Features, on: CandidateChip, active: Number) -> Iterator[ClosedBound]:
    if features.ladder is None:
        return
    lower, upper = rising(rungs(sheet))[0]  # a knee would be at the first step
    rise, bandwidth = slope(sheet, features.ladder), on.chip.hbm_bw
    prices = (on.price.high, middle_price(on), on.price.low)
    lo, value, hi = (laws.kv_slope_bound(rise, bandwidth, price) for price in prices)
    text = f"the slope of the output price as KV read at full bandwidth and sold at cost, on {on.chip.name} at each end of its price"
    text += "; open models with such ladders lie on both sides of it"
    yield ClosedBound(name="kv_slope", label=EQUALITY, value=value, lo=lo, hi=hi, about=text)
    compute = compute_s_per_token(active, on.peak)
    start, end = fact(upper.above, "tier", "token", sheet), fact(upper.to, "tier end", "token", sheet)
    knee, late = (laws.kv_at_knee(compute, bandwidth, context) for context in (start, end))
    text = "the price step as the context where reading KV takes as long as computing at the full peak, as the lecture has it"
    yield ClosedBound(name="kv_knee", label=LOWER, value=knee, lo=late, hi=knee, about=f"{text}; lower end: at the tier's end")
    step = fact(upper.rates.output, "output", "USD/token", sheet) / fact(lower.rates.output, "output", "USD/token", sheet)
    ratio = fact(sheet.rates.output, "output", "USD/token", sheet) / fact(sheet.rates.input, "input", "USD/token", sheet)
    if ratio > 1:
        early, last = (laws.kv_joint(kv_bytes, step, ratio) for kv_bytes in (knee, late))
        text = (
            "step and output/input ratio together: decode bound by memory as the ratio says, dearer by the step at the tier's start or end"
        )
        yield ClosedBound(name="kv_joint", label=EQUALITY, value=early, lo=last, hi=early, about=text)


def _of_cache(sheet: PriceSheet, on: CandidateChip, active: Number) -> Iterator[ClosedBound]:
    rates, price = sheet.rates, middle_price(on)
    holding = price / on.chip.hbm
    plain = fact(rates.input, "input", "USD/token", sheet)
    caveat = "so the markup alone decides between memory and disk"
    if rates.storage:
        kv_bytes = fact(rates.storage, "storage", "USD/token/s", sheet) * HOUR / (HOUR * holding)
        text = f"the storage fee as the cost of holding in the memory of {on.chip.name}; {caveat}"
        yield ClosedBound(name="kv_storage", label=UPPER, value=kv_bytes, lo=kv_bytes, hi=kv_bytes, about=text)
    for write in rates.cache_writes:
        if write.ttl_s and write.rate > rates.input:
            premium = fact(write.rate, "cache_write", "USD/token", sheet) - plain
            kv_bytes = premium / (fact(write.ttl_s, "ttl", "s", sheet) * holding)
            text = f"the write premium as the cost of holding for {write.ttl_s / 60:g} min in the memory of {on.chip.name}; {caveat}"
            yield ClosedBound(name=f"kv_write_{write.ttl_s:g}s", label=UPPER, value=kv_bytes, lo=kv_bytes, hi=kv_bytes, about=text)
    if rates.cache_read and on.chip.host_link_bw is not None:
        share = fact(rates.cache_read, "cache_read", "USD/token", sheet) / plain
        kv_bytes = share * compute_s_per_token(active, on.peak) * on.chip.host_link_bw
        text = f"the cache-read rate as the cost of loading over the host link of {on.chip.name}, beside computing at the full peak"
        yield ClosedBound(name="kv_cache_read", label=UPPER, value=kv_bytes, lo=kv_bytes, hi=kv_bytes, about=text)


def _of_modes(sheet: PriceSheet) -> Iterator[ClosedBound]:
    plain = fact(sheet.rates.output, "output", "USD/token", sheet)
    for mode in faster(sheet):
        price = fact(mode.rates.output, f"{mode.name} output", "USD/token", sheet) / plain
        least = batch_ratio_identity(price, fact(mode.speed_ratio, f"{mode.name} speed", "", sheet))
        text = f"price in proportion to a token's chip time: the {mode.name} mode decodes at least one where the standard one decodes these"
        yield ClosedBound(name=f"batch_{mode.name}", label=LOWER, value=least, lo=least, hi=least, about=text, unit="")


# -- contradictions -------------------------------------------------------------------------------------------------------------

DISAGREEMENT_FACTOR = 5.0  # ratio of two bounds that should be close
FAR = 2.0  # standard deviations


def contradictions(sheet: PriceSheet, features: Features, closed: list[ClosedBound], surprise: float) -> Iterator[str]:
    """Contradictions in words: features that no single machine explains."""
    by = {bound.name: bound for bound in closed}
    ratio = features.output / features.input
    if features.ladder is not None:
        lower, upper = rising(rungs(sheet))[0]
        step = upper.rates.output / lower.rates.output
        if "kv_joint" in by:
            joint = by["kv_joint"]
            yield (
                f"step and ratio: a knee at {upper.above / 1e3:g}k has decode bound by compute below it, output/input of {ratio:.3g} "
                f"that memory takes {ratio:.3g} times as long; together they ask for {joint.lo:,.0f} to {joint.hi:,.0f} B/token, the knee "
                f"alone for {by['kv_knee'].value:,.0f}"
            )
        if by["kv_slope"].value > DISAGREEMENT_FACTOR * by["kv_knee"].value:
            times = by["kv_slope"].value / by["kv_knee"].value
            yield f"slope and knee: what the longer tier adds pays for {times:,.0f} times the KV of the knee: the step is not a knee"
        rise = upper.rates.input / lower.rates.input if lower.rates.input else 0.0
        if rise > step * 1.01:
            yield f"input, output steps: input x{rise:.3g}, output x{step:.3g}, but reading KV makes no prompt dearer: attention or policy"
        if step > (upper.above + upper.to) / (lower.above + lower.to) * 1.01:
            yield f"the ladder rises faster (x{step:.3g}) than the context it is for: no cost in proportion to context does"
    if abs(surprise) > FAR:
        side = "more" if surprise > 0 else "less"
        yield f"output/input of {ratio:.3g} is {abs(surprise):.1f} spreads {side} than the cost laws and open models' prices have it"
    if sheet.rates.cache_read is not None and sheet.rates.cache_read > sheet.rates.input:
        yield "reading a cached token costs more than computing it"
    longest = rungs(sheet)[-1]
    if longest.rates.output < sheet.rates.output:
        yield "the longest tier costs less than the shortest: no cost falls with context"


INPUT, OUTPUT, LADDER, LEVELS, FAST = "input price", "output price", "context ladder", "level of prices", "fast mode"
# Observations of (input, output, slope) without a feature, as rows of a matrix.
OBSERVED_ROWS = {
    "": ((1, 0, 0), (0, 1, 0)),
    INPUT: ((0, 1, 0),),
    OUTPUT: ((1, 0, 0),),
    LEVELS: ((-1, 1, 0),),  # output/input ratio
}
MODEL = ("active", "total", "sparsity", "mfu")  # quantities behind a draw's cost on a usual machine
MACHINE = ("batch", "utilisation", "margin", "chip_price")  # further quantities behind its price
KV = "kv"  # a MODEL quantity if context tiers identify it, else a MACHINE quantity
CHUNK = 64
BLOCK = 16  # draws; quantiles are interpolated evenly between block ends
TINY = 1e-300
LEAST = 1e-3  # floor of a variance, and of the precision that a sheet adds to a markup
QUANTILES = ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PosteriorIntervals:
    """Lower end, middle and upper end of each quantity: sheets x quantities x 3."""

    quantiles: Any
    support: Any  # by sheet: effective number of draws


@dataclass(frozen=True, slots=True, kw_only=True)
class _ObservedSheet:
    """Log weights of draws as linear functions of log rates, plus a term of each draw."""

    rows: Any  # k x 3: observed combinations of (input, output, slope)
    linear: Any  # k x draws
    draw_term: Any  # draws
    markup: Markup
    cost: Any  # 3 x draws
    laddered: bool


def spans(
    draws: Samples, priors: Priors, sheets: Sequence[Features], hosts: bool = False, without: str = "",
    only: Sequence[str] = (*MODEL, KV, *MACHINE),
) -> PosteriorIntervals:  # fmt: skip
    """Intervals of the quantities given each sheet; the feature `without` is left out."""
    sorted_by = {name: _sorted(draws, name) for name in only}
    quantiles, support = np.empty((len(sheets), len(only), len(QUANTILES))), np.empty(len(sheets))
    for numbers in _alike(sheets, without):
        observed = _observed(draws, priors, sheets[numbers[0]], hosts, without)
        for start in range(0, len(numbers), CHUNK):
            part = numbers[start : start + CHUNK]
            part_sheets = [sheets[number] for number in part]
            weights = _weights(observed, part_sheets)
            support[part] = weights.sum(1) ** 2 / (weights**2).sum(1)
            machine_weights = _machine_weights(draws, observed, part_sheets, weights, without) if set(only) - set(MODEL) else weights
            model_names = {*MODEL, KV} if observed.laddered else set(MODEL)
            for index, (name, (order, values)) in enumerate(sorted_by.items()):
                quantiles[part, index] = _quantiles(np.take(weights if name in model_names else machine_weights, order, axis=1), values)
    return PosteriorIntervals(quantiles=quantiles, support=support)


def prior_spans(draws: Samples, only: Sequence[str] = (*MODEL, KV, *MACHINE)) -> Any:
    """Intervals of the quantities under the priors alone: quantities x 3."""
    weights = np.exp(draws.log_weight - draws.log_weight.max())[None]
    return np.array([_quantiles(weights[:, order], values)[0] for order, values in (_sorted(draws, name) for name in only)])


def surprises(draws: Samples, priors: Priors, sheets: Sequence[Features]) -> Any:
    """Standard deviations of each sheet's output/input ratio from the ratio expected under the priors."""
    known = markup(draws, priors)
    ratio = draws.log_cost[1] - draws.log_cost[0] + known.middle[1] - known.middle[0]
    spread = ratio.var() + known.spread[0, 0] + known.spread[1, 1] - 2 * known.spread[0, 1]
    log_rates = _logs(sheets)
    return (log_rates[:, 1] - log_rates[:, 0] - ratio.mean()) / np.sqrt(spread)


def strangeness(draws: Samples, priors: Priors, sheets: Sequence[Features]) -> Any:
    """Standard deviations of each sheet's input rate from the rate expected under the priors."""
    known = markup(draws, priors)
    level = draws.log_cost[0] + known.middle[0]
    return (_logs(sheets)[:, 0] - level.mean()) / np.sqrt(level.var() + known.spread[0, 0])


def _sorted(draws: Samples, name: str) -> tuple[Any, Any]:
    values = getattr(draws, name)
    order = np.argsort(values, kind="stable")
    return order, values[order]


# -- the weights ----------------------------------------------------------------------------------------------------------------


def _alike(sheets: Sequence[Features], without: str) -> list[list[int]]:
    """Groups of sheet indices whose weights differ by rates alone: without context tiers, or with equally uncertain tiers."""
    groups: dict[float, list[int]] = {}
    for number, sheet in enumerate(sheets):
        key = -1.0 if sheet.ladder is None or without == LADDER else sheet.ladder.spread
        groups.setdefault(key, []).append(number)
    return list(groups.values())


def _observed(draws: Samples, priors: Priors, sheet: Features, hosts: bool, without: str) -> _ObservedSheet:
    """Weights of the draws as a function of the rates, by distance from cost with the usual markup."""
    ladder = None if without == LADDER else sheet.ladder
    known = markup(draws, priors, float(priors.tier_spread) ** 2 + ladder.spread**2 if ladder else None, hosts)
    rows = np.array([*OBSERVED_ROWS.get(without, OBSERVED_ROWS[""]), *([(0, 0, 1)] if ladder else [])], float)
    cost = draws.log_cost_kv if ladder else draws.log_cost
    expected = rows @ (cost + known.middle[:, None])
    precision = np.linalg.inv(rows @ known.spread @ rows.T)
    linear = precision @ expected
    draw_term = draws.log_weight - 0.5 * (expected * linear).sum(0)
    return _ObservedSheet(rows=rows, linear=linear, draw_term=draw_term, markup=known, cost=cost, laddered=ladder is not None)


def _weights(observed: _ObservedSheet, sheets: Sequence[Features]) -> Any:
    """Weights, sheets x draws, scaled to a maximum of 1 per sheet."""
    logs = _logs(sheets) @ observed.rows.T @ observed.linear + observed.draw_term
    return np.exp((logs - logs.max(1, keepdims=True)).astype(np.float32))


def _logs(sheets: Sequence[Features]) -> Any:
    return np.log([[sheet.input, sheet.output, float(sheet.ladder.slope) if sheet.ladder else 1.0] for sheet in sheets]).reshape(-1, 3)


def _machine_weights(draws: Samples, observed: _ObservedSheet, sheets: Sequence[Features], weights: Floats, without: str) -> Any:
    """Weights for chip, idle hours and margin (sheets x draws), by the markup that a sheet leaves over its models' costs.

    The markup is normal: the sheet's evidence combined with the stated priors, widened by pricing policy.
    """
    known, usual = observed.markup, observed.cost[:2].mean(1)
    cost = observed.cost[:2] - usual[:, None]
    terms = np.array([*cost, cost[0] * cost[0], cost[0] * cost[1], cost[1] * cost[1]], np.float32)
    moments = (weights @ np.ascontiguousarray(terms.T)).astype(float) / weights.sum(1, keepdims=True)
    mean, squares = moments[:, :2], moments[:, 2:]
    spread = squares[:, [[0, 1], [1, 2]]] - mean[:, :, None] * mean[:, None, :] + LEAST * np.eye(2)
    before, after = np.linalg.inv(known.prior_spread[:2, :2]), np.linalg.inv(spread)
    eigenvalues, turn = np.linalg.eigh(after - before)
    added_precision = turn * np.maximum(eigenvalues, LEAST)[:, None, :] @ turn.transpose(0, 2, 1)
    pulled = np.einsum("skl,sl->sk", after, _logs(sheets)[:, :2] - usual - mean) - before @ known.prior_middle[:2]
    center = np.linalg.solve(added_precision, pulled[:, :, None])
    precision = np.linalg.inv(np.linalg.inv(added_precision) + known.policy[:2, :2])
    linear = (precision @ center)[:, :, 0]
    log_in, log_out = (draws.log_price - observed.cost)[:2]
    terms = np.array([-0.5 * log_in * log_in, -log_in * log_out, -0.5 * log_out * log_out, log_in, log_out, draws.log_weight], np.float32)
    logs = (
        np.column_stack([precision[:, 0, 0], precision[:, 0, 1], precision[:, 1, 1], linear, np.ones(len(linear))]).astype(np.float32)
        @ terms
    )
    least = np.array([sheet.least_batch or 0.0 for sheet in sheets])
    if least.any() and without != FAST:
        logs = np.where(draws.batch >= np.minimum(least, draws.batch.max())[:, None], logs, -np.inf)
    return np.exp((logs - logs.max(1, keepdims=True)).astype(np.float32))


def _quantiles(weights: Floats, values: Floats) -> Any:
    """Weighted quantiles of sorted values, interpolated evenly within a block: rows of weights x QUANTILES."""
    starts = np.arange(0, len(values), BLOCK)
    edges = np.append(values[starts], values[-1])
    sums = np.cumsum(np.add.reduceat(weights, starts, axis=1), axis=1, dtype=np.float64)
    quantiles = np.empty((len(weights), len(QUANTILES)))
    rows = np.arange(len(weights))
    for index, share in enumerate(QUANTILES):
        target = share * sums[:, -1]
        block = np.minimum((sums < target[:, None]).sum(1), len(starts) - 1)
        before = np.where(block > 0, sums[rows, block - 1], 0.0)
        within = (target - before) / np.maximum(sums[rows, block] - before, TINY)
        quantiles[:, index] = edges[block] + within * (edges[block + 1] - edges[block])
    return quantiles
