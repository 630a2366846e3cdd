"""Recall of sparse attention: whether the key that a query looks for is among those that a pattern reads.

Keys and queries are normal in every direction, so that no other key resembles a query more than by chance. Given the query, scores of the
others are standard normal, and that of its own key is a normal variable about the query's length (chi in `width` directions).
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number

NORMAL = NormalDist()
HALF: Number = 0.5  # least variance of a key's score, at a correlation of 1
END: Number = 1 - 1e-12  # share of keys read from which none is left unread


@formula(source="order statistics of normal scores; mean of a chi distribution is near the root of its width less a half")
def index_recall(correlation: Number, width: Number, block: Number, share: Number) -> Number:
    """Chance that the key is read where an index of so many numbers for each block of keys picks the best `share` of the blocks.

    Of a single key for each block the index is a projection of the keys, whether drawn or learned; of a longer block the mean of its keys.

    >>> round(float(index_recall(0.8, 16, 1, 128 / 4096)), 3), round(float(index_recall(0.8, 128, 32, 14 / 128)), 3)
    (0.941, 0.644)
    >>> float(index_recall(0.8, 16, 1, 1.0))
    1.0
    """
    signal = correlation * np.sqrt((width - 0.5) / block)
    spread = np.sqrt(np.maximum(1 - correlation**2 / (2 * block), HALF))
    return np.vectorize(_chance_above, otypes=[float])(signal, spread, share)


def _chance_above(signal: float, spread: float, share: float) -> float:
    """Chance that a normal score lies above what only this share of standard normal scores exceed."""
    return 1.0 if share >= END else NORMAL.cdf((signal - NORMAL.inv_cdf(1 - share)) / spread)


@formula(source="definition")
def noisy_correlation(noise: Number) -> Number:
    """Correlation of a query with its key where `noise` is a share of the query's variance.

    >>> round(float(noisy_correlation(0.36)), 3)
    0.8
    """
    return np.sqrt(np.maximum(1 - noise, 0))


@formula(source="definition: who has not read a fact guesses")
def answered_share(coverage: Number, answers: Number) -> Number:
    """Share of questions answered rightly where `coverage` of them find their fact, and so many answers are equally likely.

    >>> answered_share(0.5, 128)
    0.50390625
    """
    return coverage + (1 - coverage) / answers
