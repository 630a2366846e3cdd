"""Data that runs out: what repeated tokens, and parameters beyond what the unique data feeds, are still worth.

Both decay exponentially: D' = U + U R* (1 - exp(-R / R*)) for R repetitions of U unique tokens, and the same for parameters.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.laws.roots import root
from headway.laws.scaling import ONE_TOKEN, SIX_FLOP
from headway.units import Flop, Number, Same, Token

REPEATED = "Muennighoff et al. 2023 (arXiv:2305.16264) section 3.1"


@formula(source="definition")
def epochs(tokens: Token, unique: Token) -> Number:
    """How often the unique tokens are seen.

    >>> epochs(100e9, 25e9)
    4.0
    """
    return tokens / unique


@formula(source=REPEATED + ", equations 5 and 6")
def effective_amount(amount: Same, fed: Same, decay: Number) -> Same:
    """What an amount, tokens or parameters, is worth where only `fed` of it is new (4 epochs: 93 % of fresh tokens).

    >>> round(float(effective_amount(100e9, 25e9, 15.387756)) / 100e9, 3)
    0.931
    """
    beyond = np.maximum(amount / fed - 1, 0)
    return np.minimum(amount, fed) + fed * decay * (1 - np.exp(-beyond / decay))


@formula(source=REPEATED + ": U_N = G (G U_D)^(beta / alpha)")
def params_fed(unique: Token, split: Number, alpha: Number, beta: Number) -> Number:
    """Parameters for which the unique tokens are the best use of compute: beyond them a parameter is worth less.

    >>> round(params_fed(25e9, 0.2258, 0.35266, 0.35266) / 1e9, 2)  # C4
    1.27
    """
    return split * (split * unique / ONE_TOKEN) ** (beta / alpha)


@formula(source=REPEATED + ": least loss with 6 N D = C; where a per cent of size and of data bring the same")
def repeated_params(
    flop: Flop, unique: Token, fed: Number, a: Number, b: Number, alpha: Number, beta: Number, size_decay: Number, data_decay: Number,
) -> Number:  # fmt: skip
    """The best size for a budget when the tokens must be repeated: smaller, and trained for longer, than with fresh data.

    >>> round(float(repeated_params(1e22, 25e9, 1.2747e9, 520.9, 1487.7, 0.35266, 0.35266, 5.309743, 15.387756)) / 1e9, 1)
    7.0
    """
    budget, new = flop / (SIX_FLOP * ONE_TOKEN), unique / ONE_TOKEN
    return np.exp(root(lambda x: _gain(budget * np.exp(-x), new, data_decay, b, beta) - _gain(np.exp(x), fed, size_decay, a, alpha)))


def _gain(amount: Number, fed: Number, decay: Number, coefficient: Number, power: Number) -> Number:
    """What the loss loses for each relative increase of an amount that is worth less beyond what is fed."""
    beyond = np.minimum(np.maximum(amount / fed - 1, 0), 500.0 * decay)
    decay_factor = np.exp(-beyond / decay)
    value = np.minimum(amount, fed) + fed * decay * (1 - decay_factor)
    return power * coefficient * value**-power * amount * decay_factor / value
