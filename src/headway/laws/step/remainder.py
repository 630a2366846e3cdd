"""What the laws leave: factors on the time of a step that measured runs of a kind of machine, engine or weights take beyond them.

A factor is a number by itself, never of a pair of kinds, and says in its meaning how many clusters of runs it rests on.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, Second

LEAST: Number = 0.7  # beyond these a law is missing, which no factor stands in for
MOST: Number = 1.4


@formula(source="measured runs over the laws, by one kind at a time: data/efficiency.toml, `remainder`; docs/remainder.md")
def remainder_factor(weights: Number, engine: Number, chip: Number) -> Number:
    """Measured time over that of the laws, of a format of weights, an engine and a kind of chip together.

    >>> round(float(remainder_factor(0.86, 1.03, 1.0)), 4), float(remainder_factor(0.8, 0.8, 0.9))  # MXFP4 under TensorRT-LLM
    (0.8858, 0.7)
    """
    return np.clip(weights * engine * chip, LEAST, MOST)


@formula(source="definition: the part of a step that its decoding sequences would take alone, and what prompts add to it")
def remainder_step_s(step: Second, decoding: Second, decode: Number, prompt: Number) -> Second:
    """Time of a step of which `decoding` is its time without prompts, by the factors of either part.

    >>> round(remainder_step_s(30e-3, 10e-3, 0.9, 1.1), 6)
    0.031
    """
    return decode * decoding + prompt * (step - decoding)
