"""How wide 90 % intervals have to be: from residuals of rows that the fit did not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evidence.fitted import FittedNumbers

DRAWS = 100  # of the sources, for errors
SHARE = 0.9  # of rows that the interval is to hold
KEYS = ("decode", "prefill", "tpot", "ttft", "offline")
WIDER = ("unmeasured", "foreign", "experts", "limited")
MEANINGS = {
    "decode": "half of the 90 % interval of a decode step, as a factor",
    "prefill": "half of the 90 % interval of a prefill, as a factor",
    "tpot": "half of the 90 % interval of TPOT under load, as a factor",
    "ttft": "half of the 90 % interval of TTFT under load, as a factor",
    "offline": "half of the 90 % interval of saturated throughput, as a factor",
    "unmeasured": "that many times wider in the logarithm on chips whose kernels were not measured",
    "foreign": "and on platforms that engines were not first written for: neither NVIDIA's nor cards",
    "experts": "and for models with routed experts",
    "limited": "and where the KV cache, not the users, limits the batch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutResiduals:
    """Residuals of rows that a fit did not see: ln(predicted / measured), and what may widen their interval."""

    key: Any
    error: Any
    source: Any
    wider: dict[str, Any]  # of each of WIDER, whether


def widths(samples: HeldOutResiduals) -> tuple[FittedNumbers, ...]:
    """A factor for each quantity, and how much wider in which circumstances; errors by drawing the sources again."""
    factors, spread = _widths(samples), _bootstrap_errors(samples)
    rows = {key: int((samples.key == key).sum()) for key in KEYS} | {name: int(samples.wider[name].sum()) for name in WIDER}
    return tuple(_line(name, value, spread.get(name, 0.0), rows[name] or len(samples.error)) for name, value in factors.items())


def _bootstrap_errors(samples: HeldOutResiduals) -> dict[str, float]:
    """Standard error of each width: sources drawn with replacement, and rows within them."""
    names, random = np.unique(samples.source), np.random.default_rng(0)
    width_draws: dict[str, list[float]] = {}
    for _ in range(DRAWS):
        rows = np.concatenate([_resampled_rows(samples.source == name, random) for name in random.choice(names, len(names))])
        resample = HeldOutResiduals(key=samples.key[rows], error=samples.error[rows], source=samples.source[rows],
                     wider={name: holds[rows] for name, holds in samples.wider.items()})  # fmt: skip
        for name, value in _widths(resample).items():
            width_draws.setdefault(name, []).append(value)
    return {name: float(np.std(values)) for name, values in width_draws.items()}


def _resampled_rows(mask: Any, random: Any) -> Any:
    rows = np.flatnonzero(mask)
    return random.choice(rows, len(rows))


def _widths(samples: HeldOutResiduals) -> dict[str, float]:
    """Each source counts as the square root of its rows."""
    _, place, count = np.unique(samples.source, return_inverse=True, return_counts=True)
    weight, size = 1 / np.sqrt(count[place]), np.abs(samples.error)
    growth: dict[str, float] = dict.fromkeys(WIDER, 1.0)
    base: dict[str, float] = {}
    for _ in range(10):  # each in turn, the others as they are
        scale = _scale(samples, growth)
        base = {key: quantile((size / scale)[samples.key == key], weight[samples.key == key]) for key in KEYS if (samples.key == key).any()}
        base_widths = np.array([base[key] for key in samples.key])
        for name in WIDER:
            rows, other_scale = samples.wider[name], _scale(samples, {**growth, name: 1.0})
            if rows.any():
                growth[name] = max(1.0, quantile((size / base_widths / other_scale)[rows], weight[rows]))
    return {key: float(np.exp(value)) for key, value in base.items()} | growth


def _scale(samples: HeldOutResiduals, growth: dict[str, float]) -> Any:
    scale = np.ones(len(samples.error))
    for name, factor in growth.items():
        scale = np.where(samples.wider[name], scale * factor, scale)
    return scale


def quantile(values: Any, weight: Any, share: float = SHARE) -> float:
    """The value that so large a share of the weight does not exceed."""
    order = np.argsort(values)
    below = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][min(np.searchsorted(below, share), len(order) - 1)])


def _line(key: str, value: float, error: float, rows: int) -> FittedNumbers:
    return FittedNumbers(
        section="interval.other", key=key, value=value, unit="", error=error, rows=rows,
        range="rows left out of the fit, by source; docs/accuracy.md", meaning=MEANINGS[key],
        source="published serving runs, docs/accuracy.md", date="2026-11",
    )  # fmt: skip
