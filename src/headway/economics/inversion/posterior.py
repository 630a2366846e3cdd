"""Draws weighted by how well they explain a sheet's rates; intervals of each quantity with all features or without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.economics.inversion.features import Features
from headway.economics.inversion.priors import LEVEL, Priors
from headway.economics.inversion.samples import Markup, Samples, markup

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


def _machine_weights(draws: Samples, observed: _ObservedSheet, sheets: Sequence[Features], weights: Any, without: str) -> Any:
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


def _quantiles(weights: Any, values: Any) -> Any:
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
