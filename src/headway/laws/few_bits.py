"""What formats of few bits cost in loss: a soft law, from one transcription, at odds with training in fp8 and fp4 as it is done."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.laws.scaling import ONE_TOKEN
from headway.units import Number, Token

KUMAR = "Kumar et al. 2024 (arXiv:2411.04330), one transcription"


@formula(source=KUMAR + ": N_eff = N prod(1 - exp(-P / gamma))")
def precision_share(bits: Number, gamma: Number) -> Number:
    """Share of its parameters that a model trained in so many bits is worth (weights in 8 bits).

    >>> round(float(precision_share(8, 2.6745)), 3)
    0.95
    """
    return 1 - np.exp(-bits / gamma)


@formula(source=KUMAR + ": C_T exp(-P / gamma) D^g_D / N^g_N")
def quantised_loss(
    bits: Number, params: Number, tokens: Token, factor: Number, gamma: Number, data_power: Number, size_power: Number
) -> Number:
    """Loss that rounding the weights after training adds: more, the longer a model was trained (8B on 15 T tokens, 4 bits).

    >>> round(float(quantised_loss(4, 8e9, 15e12, 0.0598, 0.5907, 0.5068, 0.3439)), 2)
    0.13
    """
    return factor * np.exp(-bits / gamma) * (tokens / ONE_TOKEN) ** data_power / params**size_power
