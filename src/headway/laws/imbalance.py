"""Expert load: how much more the busiest chip does than the mean."""

from __future__ import annotations

import math

import numpy as np

from headway.formula import formula
from headway.units import Number


@formula(source="definition: experts placed in order, ceil(E/ep) to a chip")
def load_imbalance(tokens: tuple[Number, ...], ep: Number) -> Number:
    """Tokens of the busiest chip over what it would have were all experts equally busy.

    >>> float(load_imbalance((1, 1, 1, 5), 4)), float(load_imbalance((1, 1, 1, 5), 2)), float(load_imbalance((2, 2, 2, 2), 4))
    (2.5, 1.5, 1.0)
    """

    def of(degree: float) -> float:
        experts_per_chip = math.ceil(len(tokens) / int(degree))
        chips = [tokens[start : start + experts_per_chip] for start in range(0, len(tokens), experts_per_chip)]
        return max(sum(chip) / len(chip) for chip in chips) * len(tokens) / sum(tokens)

    return np.vectorize(of, otypes=[float])(ep)[()]
