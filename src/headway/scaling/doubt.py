"""What standard errors of a fit's coefficients do to an answer: draws of the coefficients, each carried through the same laws.

A and B are drawn log-normal, so that none is negative; the others normal. Only errors are published, no correlations: with none assumed
the interval is too wide, since a fit moves A with alpha and B with beta as a line's height moves with its slope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from headway.quantity import known
from headway.scaling.ask import Uncertainty
from headway.scaling.fits import Coefficients, ScalingFit

LEVEL = 0.9
ENDS = {"_lo": 100 * (1 - LEVEL) / 2, "_hi": 100 * (1 + LEVEL) / 2}
INTERVAL_COLUMNS = (
    "active",
    "tokens",
    "tokens_per_param",
    "over_training",
    "over_law",
    "served_exact",
    "serve_exact",
    "rule_regret",
    "size_exponent",
)


def draw_coefficients(fit: ScalingFit, doubt: Uncertainty) -> ScalingFit:
    """The fit with arrays of draws in place of its coefficients."""
    by, errors = fit.by, fit.errors
    if errors is None:
        raise ValueError(f"{fit.name} has no standard errors")
    rng, count, shared = np.random.default_rng(int(doubt.seed)), int(doubt.draws), float(doubt.correlation)
    alpha, beta, own_a, own_b, irreducible = rng.standard_normal((5, count))
    independent_share = np.sqrt(1 - shared**2)
    log_a, log_b = (shared * slope + independent_share * noise for slope, noise in ((alpha, own_a), (beta, own_b)))
    return replace(
        fit,
        by=Coefficients(
            a=by.a * np.exp(errors.a / by.a * log_a),
            b=by.b * np.exp(errors.b / by.b * log_b),
            irreducible=by.irreducible + errors.irreducible * irreducible,
            alpha=np.maximum(by.alpha + errors.alpha * alpha, by.alpha / 10),
            beta=np.maximum(by.beta + errors.beta * beta, by.beta / 10),
        ),
    )


def interval(columns: Callable[[ScalingFit], Mapping[str, Any]], fit: ScalingFit, doubt: Uncertainty) -> dict[str, Any]:
    """Ends of the 90 % interval of what the coefficients move, as numbers that say how they came about."""
    with np.errstate(all="ignore"):
        values = columns(draw_coefficients(fit, doubt))
    interval_ends: dict[str, Any] = {}
    for key in INTERVAL_COLUMNS:
        samples = values.get(key)
        if samples is None or np.ndim(samples) == 0:
            continue
        for end, percent in ENDS.items():
            value = float(np.percentile(samples, percent))
            if np.isfinite(value):
                interval_ends[key + end] = max(value, 0.0)
    return interval_ends


def leaf(value: float, key: str, fit: ScalingFit, doubt: Uncertainty) -> Any:
    """An end of an interval as the leaf of an explanation."""
    from headway import columns

    sampling = f"{doubt.draws} draws of the coefficients of {fit.name}, seed {doubt.seed}, correlation {doubt.correlation:g}"
    return known(value, key, columns.unit(key), "derived", f"{'5' if key.endswith('_lo') else '95'} % point of {sampling}")
