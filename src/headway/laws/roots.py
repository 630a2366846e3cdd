"""Where a rising function is zero, for scalars, arrays and quantities alike: what a law without a closed form is solved with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LEAST, MOST, HALVINGS = -70.0, 140.0, 64  # of a logarithm; halved until nothing is left of a float's digits


def root(rising: Callable[[Any], Any]) -> Any:
    """The logarithm at which `rising` is zero; an end of the range where it is not within it.

    >>> import math
    >>> round(float(root(lambda x: x - math.log(8e12))), 4) == round(math.log(8e12), 4)
    True
    """
    low = 0 * rising(0.0) + LEAST
    high = 0 * low + MOST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = rising(middle) > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2
