"""Width of a 90 % interval from independent causes, each a factor of half an interval."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number


@formula(source="variances of independent causes add; factors are measured by leaving whole classes out, docs/accuracy.md")
def joint_factor(first: Number, second: Number) -> Number:
    """Factor of half an interval from two independent causes, such as an unseen source and an unseen kind of chip.

    >>> round(float(joint_factor(1.25, 1.4)), 3), float(joint_factor(1.25, 1.0))
    (1.497, 1.25)
    """
    return np.exp(np.sqrt(np.log(first) ** 2 + np.log(second) ** 2))
