"""Statistics of latencies that are not kept: sums, the largest, batch means, and a histogram of logarithmic bins for percentiles.

A bin is GAMMA times as wide as the one below, and a percentile is the harmonic mean of its bin's ends, so that it is off by at most
(GAMMA - 1) / (GAMMA + 1) of itself, whatever the distribution (Masson, Rim and Lee 2019, DDSketch).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headway.simulation.traffic.requests import Floats, Ints

GAMMA = 1.002
RELATIVE_ERROR = (GAMMA - 1) / (GAMMA + 1)  # of a percentile at most
LEAST_S, MOST_S = 1e-9, 1e12  # latencies below count as 0, those above as the most
BINS = int(np.log(MOST_S / LEAST_S) / np.log(GAMMA)) + 2


@dataclass(slots=True, kw_only=True)
class QuantileSketch:
    """Statistics of one latency, in batches whose means give the error of the mean.

    >>> sketch = QuantileSketch(batches=1)
    >>> sketch.add(np.array([0.0, 1.0, 2.0, 3.0]), np.zeros(4, int))
    >>> [round(value, 2) for value in sketch.percentiles((25, 50, 100))], float(sketch.mean)
    ([0.0, 1.0, 3.0], 1.5)
    """

    batches: int
    counts: Any = field(default_factory=lambda: np.zeros(BINS, np.int64))
    sums: Any = None  # by batch: values, and how many
    largest: float = 0.0
    above_zero: int = 0

    def __post_init__(self) -> None:
        self.sums = np.zeros((2, self.batches))

    def add(self, values: Floats, batch: Ints) -> None:
        """Count values, each with the batch it is in."""
        if not len(values):
            return
        inside = np.clip(values, LEAST_S, MOST_S)
        places = (np.log(inside / LEAST_S) * (1 / np.log(GAMMA))).astype(np.int64) + 1
        places[values < LEAST_S] = 0
        self.counts += np.bincount(places, minlength=BINS)
        self.sums += np.bincount(batch, values, self.batches), np.bincount(batch, minlength=self.batches)
        self.largest = max(self.largest, float(values.max()))
        self.above_zero += int((values > 0.0).sum())

    @property
    def count(self) -> int:
        """Number of values."""
        return int(self.sums[1].sum())

    @property
    def mean(self) -> float:
        """Mean of all values."""
        return float(self.sums[0].sum() / self.count)

    @property
    def means(self) -> Any:
        """Mean of each batch that has values."""
        known = self.sums[1] > 0
        return self.sums[0][known] / self.sums[1][known]

    def percentiles(self, percents: Sequence[float]) -> list[float]:
        """Percentiles, each within RELATIVE_ERROR of itself."""
        cumulative = np.cumsum(self.counts)
        bins = np.searchsorted(cumulative, np.maximum(np.asarray(percents, float) / 100 * cumulative[-1], 1.0))
        middles = LEAST_S * GAMMA ** (bins - 1.0) * 2 * GAMMA / (1 + GAMMA)
        return np.where(bins == 0, 0.0, np.minimum(middles, self.largest)).tolist()
