"""Draws weighted by how well they explain a sheet's rates; what a quantity may be with all of the features, and without each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.inversion.draws import Draws
from headway.inversion.features import Features
from headway.inversion.markup import Markup, markup
from headway.inversion.priors import LEVEL, Priors

INPUT, OUTPUT, LADDER, LEVELS, FAST = "input price", "output price", "context ladder", "level of prices", "fast mode"
# What is left of (input, output, slope) without a feature: rows of the matrix that observes them.
KEPT = {
    "": ((1, 0, 0), (0, 1, 0)),
    INPUT: ((0, 1, 0),),
    OUTPUT: ((1, 0, 0),),
    LEVELS: ((-1, 1, 0),),  # their ratio
}
MODEL = ("active", "total", "sparsity", "mfu")  # what the cost of a draw on a usual machine hangs on
MACHINE = ("batch", "utilisation", "margin", "chip_price")  # what its price hangs on beside that
KV = "kv"  # of the former where a ladder shows it, else of the latter
CHUNK = 64
QUANTILES = ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Lower end, middle and upper end of each quantity: sheets x quantities x 3."""

    found: Any
    support: Any  # sheets: how many draws carry the weight


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observed:
    """How the logarithms of rates bear on the draws: weight = linear in the rates, plus a term of the draw alone."""

    rows: Any  # k x 3: what is seen of (input, output, slope)
    linear: Any  # k x draws
    own: Any  # draws
    markup: Markup
    cost: Any  # 3 x draws
    laddered: bool


def spans(
    draws: Draws, priors: Priors, sheets: Sequence[Features], hosts: bool = False, without: str = "",
    only: Sequence[str] = (*MODEL, KV, *MACHINE),
) -> Spans:  # fmt: skip
    """What each sheet says of the quantities, one feature left out where it is named."""
    sorted_by = {name: _sorted(draws, name) for name in only}
    found, support = np.empty((len(sheets), len(only), len(QUANTILES))), np.empty(len(sheets))
    for numbers in _alike(sheets, without):
        observed = _observed(draws, priors, sheets[numbers[0]], hosts, without)
        for start in range(0, len(numbers), CHUNK):
            part = numbers[start : start + CHUNK]
            chosen = [sheets[number] for number in part]
            weights = _weights(observed, chosen)
            support[part] = weights.sum(1) ** 2 / (weights**2).sum(1)
            other = _machine_weights(draws, observed, chosen, weights, without) if set(only) - set(MODEL) else weights
            shown = {*MODEL, KV} if observed.laddered else set(MODEL)
            for index, (name, (order, values)) in enumerate(sorted_by.items()):
                found[part, index] = _quantiles((weights if name in shown else other)[:, order], values)
    return Spans(found=found, support=support)


def prior_spans(draws: Draws, only: Sequence[str] = (*MODEL, KV, *MACHINE)) -> Any:
    """The same before any sheet is seen: quantities x 3."""
    weights = np.exp(draws.log_weight - draws.log_weight.max())[None]
    return np.array([_quantiles(weights[:, order], values)[0] for order, values in (_sorted(draws, name) for name in only)])


def surprise(draws: Draws, priors: Priors, one: Features) -> float:
    """How many standard deviations a sheet's output/input ratio is from what models drawn from the priors are sold at."""
    known = markup(draws, priors)
    ratio = draws.log_cost[1] - draws.log_cost[0] + known.middle[1] - known.middle[0]
    spread = ratio.var() + known.spread[0, 0] + known.spread[1, 1] - 2 * known.spread[0, 1]
    return float((math.log(one.output / one.input) - ratio.mean()) / math.sqrt(spread))


def _sorted(draws: Draws, name: str) -> tuple[Any, Any]:
    values = getattr(draws, name)
    order = np.argsort(values, kind="stable")
    return order, values[order]


# -- the weights ----------------------------------------------------------------------------------------------------------------


def _alike(sheets: Sequence[Features], without: str) -> list[list[int]]:
    """Sheets whose weights differ in the rates alone: all without a ladder, and each with one."""
    plain: list[int] = []
    groups = [plain]
    for number, one in enumerate(sheets):
        if one.ladder is None or without == LADDER:
            plain.append(number)
        else:
            groups.append([number])
    return [group for group in groups if group]


def _observed(draws: Draws, priors: Priors, one: Features, hosts: bool, without: str) -> _Observed:
    """The weight of each draw as a function of the rates: how far they are from its cost with the usual markup."""
    ladder = None if without == LADDER else one.ladder
    known = markup(draws, priors, float(priors.tier_spread) ** 2 + ladder.spread**2 if ladder else None, hosts)
    rows = np.array([*KEPT.get(without, KEPT[""]), *([(0, 0, 1)] if ladder else [])], float)
    cost = draws.log_cost_kv if ladder else draws.log_cost
    expected = rows @ (cost + known.middle[:, None])
    precision = np.linalg.inv(rows @ known.spread @ rows.T)
    linear = precision @ expected
    own = draws.log_weight - 0.5 * (expected * linear).sum(0)
    return _Observed(rows=rows, linear=linear, own=own, markup=known, cost=cost, laddered=ladder is not None)


def _weights(observed: _Observed, sheets: Sequence[Features]) -> Any:
    """Sheets x draws, the largest of each sheet 1."""
    logs = _logs(sheets) @ observed.rows.T @ observed.linear + observed.own
    return np.exp((logs - logs.max(1, keepdims=True)).astype(np.float32))


def _logs(sheets: Sequence[Features]) -> Any:
    return np.log([[one.input, one.output, one.ladder.slope if one.ladder else 1.0] for one in sheets])


def _machine_weights(draws: Draws, observed: _Observed, sheets: Sequence[Features], weights: Any, without: str) -> Any:
    """The same for chip, idle hours and margin: draws weighted by the markup that the sheet leaves over the costs of its models.

    Normal like all markups: what the sheet says of it beside what was stated, wider by policy.
    """
    known, share = observed.markup, weights / weights.sum(1, keepdims=True)
    cost = observed.cost[:2]
    middle = _logs(sheets)[:, :2] - share @ cost.T
    square = np.einsum("sd,kd,ld->skl", share, cost, cost, optimize=True)
    mean = share @ cost.T
    spread = square - mean[:, :, None] * mean[:, None, :] + 1e-4 * np.eye(2)
    logs = np.empty(weights.shape)
    excess = (draws.log_price - observed.cost)[:2].T
    before = np.linalg.inv(known.stated_spread[:2, :2])
    for row in range(len(sheets)):
        after = np.linalg.inv(spread[row])
        told, turn = np.linalg.eigh(after - before)
        told = np.maximum(told, 1e-3)
        said = turn @ np.diag(told) @ turn.T
        center = np.linalg.solve(said, after @ middle[row] - before @ known.stated[:2])
        away = excess - center
        precision = np.linalg.inv(np.linalg.inv(said) + known.policy[:2, :2])
        logs[row] = draws.log_weight - 0.5 * np.einsum("dk,kl,dl->d", away, precision, away)
    least = np.array([one.least_batch or 0.0 for one in sheets])
    if least.any() and without != FAST:
        logs = np.where(draws.batch >= np.minimum(least, draws.batch.max())[:, None], logs, -np.inf)
    return np.exp((logs - logs.max(1, keepdims=True)).astype(np.float32))


def _quantiles(weights: Any, values: Any) -> Any:
    """The weighted quantiles of sorted values: rows of weights x QUANTILES."""
    sums = np.cumsum(weights, axis=1, dtype=np.float64)
    found = np.empty((len(weights), len(QUANTILES)))
    for row, line in enumerate(sums):
        found[row] = values[np.searchsorted(line, line[-1] * np.array(QUANTILES))]
    return found
