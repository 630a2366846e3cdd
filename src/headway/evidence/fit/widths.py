"""Widths of the 90 % intervals from errors of rows that a fit has not seen, each cluster counted once in a quantity.

A quantile regression of the logarithms: a width for each quantity, and its growth by circumstance (performance/intervals.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.fit.result import DATE, FittedNumbers
from headway.evidence.fit.statistics import cluster_weights, quantile, t_factor
from headway.performance.intervals import UNLIKE, WIDER

DRAWS = 100  # bootstrap draws of the clusters
ROUNDS = 10
KEYS = ("decode", "prefill", "tpot", "ttft", "offline")
ALIKE = (("decode", "prefill", "tpot", "offline"), ("ttft",))  # times of steps, and waits: errors of like size
NARROWEST, MOST_FREEDOM = 1e-3, 100.0
MEANINGS = {
    "decode": "half of the 90 % interval of a decode step, as a factor",
    "prefill": "half of the 90 % interval of a prefill, as a factor",
    "tpot": "half of the 90 % interval of TPOT under load, as a factor",
    "ttft": "half of the 90 % interval of TTFT of a request alone, as a factor",
    "offline": "half of the 90 % interval of saturated throughput, as a factor",
    "unlike": "that many times wider in the logarithm, but for TTFT, for a kind that no row is like; by the steps to the nearest rows",
    "experts": "and for models with routed experts, but for TTFT",
    "limited": "and, towards slower alone, by the share of the seats beyond half that is taken: how many the KV cache has is uncertain",
    "queued": "and, for TTFT alone, by the share of it that other users add to a request's own: in full from half on",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutResiduals:
    """Residuals ln(predicted / measured) of rows that the fit had not seen, and circumstances that may widen their interval."""

    key: Any
    error: Any
    cluster: Any  # of rows that err together, which count once: a model on a chip with an engine from a source
    wider: dict[str, Any]  # per circumstance of WIDER: how far it applies to each row, 0 to 1
    kind: Any  # whether a whole kind was left out with the row: such rows say how intervals grow with distance, and nothing else

    def where(self, keep: np.ndarray) -> HeldOutResiduals:
        """Rows where `keep` is true."""
        columns = {name: getattr(self, name)[keep] for name in ("key", "error", "cluster", "kind")}
        return replace(self, wider={name: holds[keep] for name, holds in self.wider.items()}, **columns)


def joined(samples: Sequence[HeldOutResiduals]) -> HeldOutResiduals:
    """Residuals of several folds together."""
    columns = {name: np.concatenate([getattr(part, name) for part in samples]) for name in ("key", "error", "cluster", "kind")}
    return HeldOutResiduals(wider={name: np.concatenate([part.wider[name] for part in samples]) for name in WIDER}, **columns)


def widths(samples: HeldOutResiduals) -> tuple[FittedNumbers, ...]:
    """Half-width of the 90 % interval per quantity, and its growth per circumstance, with errors by bootstrap over clusters."""
    names, random = np.unique(samples.cluster), np.random.default_rng(0)
    members = {name: np.flatnonzero(samples.cluster == name) for name in names}
    draws: dict[str, list[float]] = {}
    for _ in range(DRAWS):
        rows = np.concatenate([members[name] for name in random.choice(names, len(names))])
        for name, value in width_factors(samples.where(rows)).items():
            draws.setdefault(name, []).append(value)
    counts = {key: int(((samples.key == key) & ~samples.kind).sum()) for key in KEYS}
    counts |= {name: int(np.count_nonzero(samples.wider[name])) for name in WIDER}
    return tuple(
        FittedNumbers(
            section="interval.other", key=name, value=value, unit="", error=float(np.std(draws.get(name, [0.0]))), rows=counts[name],
            range="rows left out of the fit, by cluster; docs/accuracy.md", meaning=MEANINGS[name],
            source="published serving runs, docs/accuracy.md", date=DATE,
        )
        for name, value in width_factors(samples).items()
    )  # fmt: skip


def width_factors(samples: HeldOutResiduals) -> dict[str, float]:
    """Width per quantity and growth per circumstance: quantile regression by coordinate descent, one circumstance at a time."""
    clusters = np.char.add(np.char.add(samples.key.astype(str), "|"), samples.cluster.astype(str))
    weight, size, plain = cluster_weights(np.char.add(clusters, samples.kind.astype(str))), np.abs(samples.error), ~samples.kind
    keys = [key for key in KEYS if (plain & (samples.key == key)).any()]
    known = np.isin(samples.key, keys)  # a quantity of which no cluster was left out by itself has no width
    growth: dict[str, float] = dict.fromkeys(WIDER, 1.0)
    base: dict[str, float] = {}
    for _ in range(ROUNDS):
        scale = _scale(samples, growth)
        base = {key: quantile((size / scale)[at], weight[at]) for key in keys if (at := plain & (samples.key == key)).any()}
        base_widths = np.array([base.get(key, 1.0) for key in samples.key])
        for name in WIDER:
            extent, other_scale = samples.wider[name], _scale(samples, {**growth, name: 1.0})
            rows = known & (extent > 0) & (plain | (name == UNLIKE))
            if rows.any():
                logs = np.log(np.maximum(size / base_widths / other_scale, NARROWEST)[rows]) / extent[rows]
                growth[name] = max(1.0, float(np.exp(quantile(logs, (weight * extent)[rows]))))
    counts = {key: len(np.unique(samples.cluster[plain & (samples.key == key)])) for key in base}
    return {key: float(np.exp(value)) for key, value in pooled_widths(base, counts).items()} | growth


def _scale(samples: HeldOutResiduals, growth: dict[str, float]) -> Any:
    """Width of each row over that of its quantity."""
    scale = np.ones(len(samples.error))
    for name, factor in growth.items():
        scale = scale * factor ** samples.wider[name]
    return scale


def pooled_widths(halves: dict[str, float], kinds: dict[str, int]) -> dict[str, float]:
    """Half-widths in the logarithm, with their variances shrunk to those of quantities alike and a t quantile for what is then known.

    The logarithm of a variance of `f` degrees of freedom scatters by 2 / f of itself; what those alike scatter beyond it (DerSimonian
    and Laird 1986) is 2 over the degrees of freedom that their mean stands for (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3(1), 3).

    >>> halves = pooled_widths({"tpot": 0.4, "decode": 0.36, "offline": 1.0}, {"tpot": 40, "decode": 40, "offline": 2})
    >>> {key: round(half, 2) for key, half in halves.items()}
    {'decode': 0.38, 'tpot': 0.39, 'offline': 0.4}
    """
    pooled: dict[str, float] = {}
    for alike in ALIKE:
        keys = [key for key in alike if key in halves]
        if not keys:
            continue
        freedom = np.array([max(kinds[key] - 1, 1) for key in keys], dtype=float)
        logs, weights = 2 * np.log(np.maximum([halves[key] for key in keys], NARROWEST)), freedom / 2
        mean = float(np.average(logs, weights=weights))
        excess = float(weights @ (logs - mean) ** 2) - (len(logs) - 1)
        apart = max(excess, 0.0) / max(float(weights.sum() - weights @ weights / weights.sum()), NARROWEST)
        prior = 0.0 if len(logs) == 1 else min(2 / max(apart, 2 / MOST_FREEDOM), MOST_FREEDOM)
        variance = (prior * np.exp(mean) + freedom * np.exp(logs)) / (prior + freedom)
        for key, square, degrees in zip(keys, variance, freedom, strict=True):
            pooled[key] = float(np.sqrt(square)) * t_factor(1 + int(degrees + prior))
    return pooled
