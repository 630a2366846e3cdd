"""How much list prices exceed the cost of busy reference chips: known from open models, and from what a user assumes of chip and margin.

Stated priors of chip price, utilisation, margin and MFU give this excess a distribution; open models' prices give it a narrower one.
Both are normal in the logarithm, so that one is conditioned on the other in closed form. Three rates: input, output, and what a token of
context adds to the latter.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.inversion.draws import Samples, draw
from headway.inversion.priors import AssumedIntervals, Priors
from headway.laws.inversion import whole_markup
from headway.laws.margin import cost_share

MOMENTS = 4096  # draws
SMALL = 1e-6  # a variance that is none
EVEN = 1 / 12  # variance of what is even between 0 and 1
FLOOR = 0.1  # of the learned precision: what is left of it at least where an assumption is vaguer than the stated priors


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """The logarithm of price over cost of busy reference chips: normal, of the three rates."""

    middle: Any  # 3
    spread: Any  # 3 x 3
    prior_middle: Any  # 3: middle of what the priors and assumptions alone give
    prior_spread: Any  # 3 x 3
    policy: Any  # 3 x 3: the part of both that is neither chip, idle hours nor margin


def markup(draws: Samples, priors: Priors, slope: float | None = None, hosts: bool = False) -> Markup:
    """The excess for these draws; `slope` is the variance of a ladder's own, None without one; `hosts`: the sheet is one of many hosts'."""
    host = _covariance(priors.host_spread_input, priors.host_spread_output, priors.host_correlation) if hosts else np.zeros((2, 2))
    policy = _beside(np.eye(2) * float(priors.policy_spread) ** 2 + host, 1.0, slope or SMALL)
    learned = _covariance(priors.markup_input_spread, priors.markup_output_spread, priors.markup_correlation)
    base, before, chip, chip_spread = _base(priors, slope is not None)
    share, output = float(priors.ladder_markup), np.log(float(priors.markup_output))
    further = share * output + (1 - share) * chip
    slope_variance = (1 - share) ** 2 * chip_spread + (output - chip) ** 2 * EVEN + (slope or SMALL)
    spread, middle = _beside(learned + host, share, slope_variance), np.array([np.log(float(priors.markup_input)), output, further])
    excess = draws.log_price - (draws.log_cost if slope is None else draws.log_cost_kv)
    prior_middle, narrowed = excess.mean(1), np.cov(excess) + policy
    precision = [np.linalg.inv(matrix) for matrix in (spread, narrowed, before + policy)]
    joint_precision = precision[0] + precision[1] - precision[2]
    least, turn = np.linalg.eigh(joint_precision)
    joint_precision = turn @ np.diag(np.maximum(least, FLOOR * np.linalg.eigvalsh(precision[0]).min())) @ turn.T
    joint_covariance = np.linalg.inv(joint_precision)
    pulled = precision[0] @ middle + precision[1] @ prior_middle - precision[2] @ base
    return Markup(
        middle=joint_covariance @ pulled, spread=joint_covariance, prior_middle=prior_middle, prior_spread=narrowed, policy=policy
    )


def stated_only(priors: Priors) -> Priors:
    """The priors with the markup that chip prices, utilisation, margin, MFU, batch and KV as stated give, in place of the learned one."""
    middle, spread, _, _ = _base(priors, False)
    spread = spread[:2, :2] + np.eye(2) * float(priors.policy_spread) ** 2
    sd = np.sqrt(spread.diagonal())
    return dataclasses.replace(
        priors, markup_input=float(np.exp(middle[0])), markup_output=float(np.exp(middle[1])), markup_input_spread=float(sd[0]),
        markup_output_spread=float(sd[1]), markup_correlation=float(spread[0, 1] / (sd[0] * sd[1])),
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _base(priors: Priors, laddered: bool) -> tuple[Any, Any, float, float]:
    """Middle and covariance of the excess that the stated priors give, before policy; of further context at the cost of busy chips."""
    draws = draw(priors, AssumedIntervals(), MOMENTS)
    excess = draws.log_price - (draws.log_cost_kv if laddered else draws.log_cost)
    added = whole_markup(draws.utilisation, cost_share(draws.margin), 1.0)
    chip = (draws.log_price - draws.log_cost_kv)[2] - float(priors.ladder_markup) * np.log(added)
    return excess.mean(1), np.cov(excess), float(chip.mean()), float(chip.var())


def _covariance(first: Any, second: Any, correlation: Any) -> Any:
    shared = float(first) * float(second) * float(correlation)
    return np.array([[float(first) ** 2, shared], [shared, float(second) ** 2]])


def _beside(spread: Any, share: float, extra_variance: float) -> Any:
    """A covariance of input and output with that of further context, which follows output by a share and deviates by itself."""
    carry = np.array([[1, 0], [0, 1], [0, share]])
    wide = carry @ spread @ carry.T
    wide[2, 2] += extra_variance
    return wide
