"""Scaling laws: loss by parameters and tokens, the compute-optimal split, repeated data, and low-bit formats.

L = E + A N^-alpha + B D^-beta (nats per token). N counts parameters, D tokens; coefficients are per parameter and per token.

Repetition has decaying value: D' = U + U R* (1 - exp(-R / R*)) for R repetitions of U unique tokens, and likewise for parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Flop, FlopPerToken, Number, Same, Token

LEAST, MOST, HALVINGS = -70.0, 140.0, 64  # range of a logarithm; halved to the last digit of a float


def root(rising: Callable[[Any], Any]) -> Any:
    """Logarithm at which `rising` is zero, or the end of the range if the zero lies outside.

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


SIX_FLOP: FlopPerToken = 6.0  # per parameter and token: 2 forward, 4 backward
CHINCHILLA = "Hoffmann et al. 2022 (arXiv:2203.15556) section 3.3"


@formula(source="Kaplan et al. 2020 (arXiv:2001.08361) section 2.1: C = 6 N D")
def training_flop(params: Number, tokens: Token) -> Flop:
    """FLOP of a training run, attention scores excluded (a Chinchilla of 70B and 1.4 T tokens).

    >>> f"{training_flop(70e9, 1.4e12):.2e}"
    '5.88e+23'
    """
    return SIX_FLOP * params * tokens


@formula(source="C = 6 N D")
def tokens_of_compute(flop: Flop, params: Number) -> Token:
    """Training tokens that a compute budget allows for a model of this size.

    >>> f"{tokens_of_compute(5.76e23, 70e9):.3g}"
    '1.37e+12'
    """
    return flop / (SIX_FLOP * params)


@formula(source="C = 6 N D")
def params_of_compute(flop: Flop, tokens: Token) -> Number:
    """Parameters that a compute budget allows for a number of tokens.

    >>> round(params_of_compute(5.76e23, 1.4e12) / 1e9, 1)
    68.6
    """
    return flop / (SIX_FLOP * tokens)


@formula(source="quotient")
def tokens_per_param(tokens: Token, params: Number) -> Token:
    """Training tokens per parameter: about 20 at the compute-optimal split.

    >>> tokens_per_param(1.4e12, 70e9)
    20.0
    """
    return tokens / params


@formula(source=CHINCHILLA + ", equation 2")
def size_loss(params: Number, a: Number, alpha: Number) -> Number:
    """Loss due to a finite model (70B, Epoch's fit).

    >>> round(size_loss(70e9, 482.006, 0.348), 4)
    0.0811
    """
    return a * params**-alpha


@formula(source=CHINCHILLA + ", equation 2")
def data_loss(tokens: Token, b: Number, beta: Number) -> Number:
    """Loss due to finite data (1.4 T tokens, Epoch's fit).

    >>> round(data_loss(1.4e12, 2085.434, 0.366), 4)
    0.0748
    """
    return b * (tokens / ONE_TOKEN) ** -beta


@formula(source=CHINCHILLA + ", equation 2")
def scaling_loss(irreducible: Number, size: Number, data: Number) -> Number:
    """Loss per token, entropy of text included.

    >>> round(scaling_loss(1.817, 0.0811, 0.0748), 4)
    1.9729
    """
    return irreducible + size + data


@formula(source=CHINCHILLA + ", equation 4: a = beta / (alpha + beta)")
def size_exponent(alpha: Number, beta: Number) -> Number:
    """Exponent of the optimal number of parameters in compute (Epoch's fit).

    >>> round(size_exponent(0.348, 0.366), 3)
    0.513
    """
    return beta / (alpha + beta)


@formula(source=CHINCHILLA + ", equation 4: b = alpha / (alpha + beta)")
def data_exponent(alpha: Number, beta: Number) -> Number:
    """Exponent of the optimal number of tokens in compute.

    >>> round(data_exponent(0.348, 0.366), 3)
    0.487
    """
    return alpha / (alpha + beta)


@formula(source=CHINCHILLA + ", equation 4: G = (alpha A / (beta B))^(1 / (alpha + beta))")
def split_factor(a: Number, b: Number, alpha: Number, beta: Number) -> Number:
    """Factor of the compute-optimal split towards parameters, apart from its exponents.

    >>> round(split_factor(482.006, 2085.434, 0.348, 0.366), 4)
    0.1198
    """
    return (alpha * a / (beta * b)) ** (1 / (alpha + beta))


@formula(source=CHINCHILLA + ", equation 4: N = G (C / 6)^a")
def optimal_params(flop: Flop, split: Number, exponent: Number) -> Number:
    """Compute-optimal parameters of a budget (Chinchilla's budget, Epoch's fit).

    >>> round(optimal_params(5.76e23, split_factor(482.006, 2085.434, 0.348, 0.366), size_exponent(0.348, 0.366)) / 1e9, 1)
    72.3
    """
    return split * (flop / (SIX_FLOP * ONE_TOKEN)) ** exponent


@formula(source="C = 6 N D with D = r N")
def params_at_ratio(flop: Flop, ratio: Token) -> Number:
    """Parameters of a compute budget at a fixed number of tokens per parameter: Chinchilla's rule of thumb is 20.

    >>> round(params_at_ratio(5.76e23, 20) / 1e9, 1)
    69.3
    """
    return (flop / (SIX_FLOP * ratio)) ** 0.5


@formula(source="rule of thumb of " + CHINCHILLA + ": tokens in proportion to parameters")
def tokens_at_ratio(params: Number, ratio: Token) -> Token:
    """Tokens at a fixed number per parameter (100B active, 20 each: the lecture's 2 T).

    >>> tokens_at_ratio(100e9, 20) / 1e12
    2.0
    """
    return params * ratio


@formula(source=CHINCHILLA + ", equation 4, compute eliminated: alpha u = beta y")
def chinchilla_tokens(params: Number, a: Number, b: Number, alpha: Number, beta: Number) -> Token:
    """Compute-optimal tokens of a model of this size (100B, Epoch's fit: 1.8 T).

    >>> round(chinchilla_tokens(100e9, 482.006, 2085.434, 0.348, 0.366) / 1e12, 2)
    1.81
    """
    return ONE_TOKEN * (beta * b / (alpha * a)) ** (1 / beta) * params ** (alpha / beta)


@formula(source=CHINCHILLA + ", equation 4, compute eliminated: alpha u = beta y")
def chinchilla_params(tokens: Token, a: Number, b: Number, alpha: Number, beta: Number) -> Number:
    """Parameters for which a number of tokens is compute-optimal.

    >>> round(chinchilla_params(1.81e12, 482.006, 2085.434, 0.348, 0.366) / 1e9, 1)
    100.2
    """
    return (alpha * a / (beta * b)) ** (1 / alpha) * (tokens / ONE_TOKEN) ** (beta / alpha)


REPEATED = "Muennighoff et al. 2023 (arXiv:2305.16264) section 3.1"


@formula(source=REPEATED + ", equations 5 and 6")
def effective_amount(amount: Same, fed: Same, decay: Number) -> Same:
    """Effective tokens or parameters when only `fed` are new and the rest repeats (4 epochs: 93 % of fresh tokens).

    >>> round(float(effective_amount(100e9, 25e9, 15.387756)) / 100e9, 3)
    0.931
    """
    beyond = np.maximum(amount / fed - 1, 0)
    return np.minimum(amount, fed) + fed * decay * (1 - np.exp(-beyond / decay))


@formula(source=REPEATED + ": U_N = G (G U_D)^(beta / alpha)")
def params_fed(unique: Token, split: Number, alpha: Number, beta: Number) -> Number:
    """Parameters for which the unique tokens are compute-optimal: further parameters have decaying value.

    >>> round(params_fed(25e9, 0.2258, 0.35266, 0.35266) / 1e9, 2)  # C4
    1.27
    """
    return split * (split * unique / ONE_TOKEN) ** (beta / alpha)


@formula(source=REPEATED + ": least loss with 6 N D = C; where a per cent of size and of data bring the same")
def repeated_params(
    flop: Flop, unique: Token, fed: Number, a: Number, b: Number, alpha: Number, beta: Number, size_decay: Number, data_decay: Number,
) -> Number:  # fmt: skip
    """Optimal parameters of a budget with repeated tokens: fewer, trained for longer, than with fresh data.

    >>> round(float(repeated_params(1e22, 25e9, 1.2747e9, 520.9, 1487.7, 0.35266, 0.35266, 5.309743, 15.387756)) / 1e9, 1)
    7.0
    """
    budget, new = flop / (SIX_FLOP * ONE_TOKEN), unique / ONE_TOKEN
    return np.exp(root(lambda x: _gain(budget * np.exp(-x), new, data_decay, b, beta) - _gain(np.exp(x), fed, size_decay, a, alpha)))


def _gain(amount: Number, fed: Number, decay: Number, coefficient: Number, power: Number) -> Number:
    """Decrease of the loss per relative increase of an amount that has decaying value beyond `fed`."""
    beyond = np.minimum(np.maximum(amount / fed - 1, 0), 500.0 * decay)
    decay_factor = np.exp(-beyond / decay)
    value = np.minimum(amount, fed) + fed * decay * (1 - decay_factor)
    return power * coefficient * value**-power * amount * decay_factor / value


KUMAR = "Kumar et al. 2024 (arXiv:2411.04330), one transcription"


@formula(source=KUMAR + ": N_eff = N prod(1 - exp(-P / gamma))")
def precision_share(bits: Number, gamma: Number) -> Number:
    """Effective share of parameters of a model trained in `bits` bits (weights in 8 bits).

    >>> round(float(precision_share(8, 2.6745)), 3)
    0.95
    """
    return 1 - np.exp(-bits / gamma)


@formula(source=KUMAR + ": C_T exp(-P / gamma) D^g_D / N^g_N")
def quantised_loss(
    bits: Number, params: Number, tokens: Token, factor: Number, gamma: Number, data_power: Number, size_power: Number
) -> Number:
    """Loss added by rounding the weights after training: more for longer training (8B on 15 T tokens, 4 bits).

    >>> round(float(quantised_loss(4, 8e9, 15e12, 0.0598, 0.5907, 0.5068, 0.3439)), 2)
    0.13
    """
    return factor * np.exp(-bits / gamma) * (tokens / ONE_TOKEN) ** data_power / params**size_power


# -- sparse against dense models: parameters of the dense model of equal loss ---------------------------------------------------
# Clark's law covers models with one routed FFN in every second block, one expert per token, trained on 130 B tokens. Ling's law gives
# efficiency leverage: compute of the best dense model over compute of the sparse model at equal loss.


CLARK = "Clark et al. 2022 (arXiv:2202.01169) "
LING = "Ling efficiency leverage, 2025"
ONE_FLOP: Flop = 1.0  # unit of compute


@formula(source=CLARK + "equation 7")
def saturated(experts: Number, start: Number, most: Number) -> Number:
    """Effective number of experts: equal to their number at first, then saturating (64 experts, S-BASE).

    >>> round(saturated(64, 1.847, 314.478), 1)
    53.8
    """
    return 1 / (1 / (experts - 1 + 1 / (1 / start - 1 / most)) + 1 / most)


@formula(source=CLARK + "equation 8: alpha(E) = a + c log10 E")
def routed_exponent(a: Number, c: Number, saturated_experts: Number) -> Number:
    """Exponent of the loss of a routed model in its dense size.

    >>> round(float(routed_exponent(-0.082, 0.009, 53.8)), 4)
    -0.0664
    """
    return a + c * np.log10(saturated_experts)


@formula(source=CLARK + "equation 1 with the saturated number of experts")
def routed_loss(params: Number, saturated_experts: Number, a: Number, b: Number, c: Number, d: Number) -> Number:
    """Validation loss of a routed model by active parameters (370M, 64 experts, S-BASE).

    >>> round(float(routed_loss(370e6, 53.8, -0.082, -0.108, 0.009, 1.104)), 3)
    2.228
    """
    return 10 ** (a * np.log10(params) + b * np.log10(saturated_experts) + c * np.log10(params) * np.log10(saturated_experts) + d)


@formula(source=CLARK + "equation 11: N^(alpha(E) / alpha(E_start)) (E / E_start)^(b / alpha(E_start))")
def effective_params(params: Number, saturated_experts: Number, start: Number, sparse: Number, dense: Number, b: Number) -> Number:
    """Parameters of the dense model of equal loss; `sparse` and `dense` are the two exponents (370M, 64 experts, S-BASE: 1.37B).

    >>> sparse, dense = routed_exponent(-0.082, 0.009, saturated(64, 1.847, 314.478)), routed_exponent(-0.082, 0.009, 1.847)
    >>> round(float(effective_params(370e6, saturated(64, 1.847, 314.478), 1.847, sparse, dense, -0.108)) / 1e9, 2)
    1.37
    """
    return params ** (sparse / dense) * (saturated_experts / start) ** (b / dense)


@formula(source=CLARK + "section 5.3: b + c log10 N = 0")
def routing_cutoff(b: Number, c: Number) -> Number:
    """Dense size at which experts stop helping (S-BASE, printed digits: 1e12).

    >>> f"{routing_cutoff(-0.108, 0.009):.3g}"
    '1e+12'
    """
    return 10 ** (-b / c)


@formula(source=CLARK + "section 2: a share of each block's parameters is copied for every expert")
def routed_total_params(params: Number, experts: Number, share: Number) -> Number:
    """Total parameters of a model whose routed share is stored once per expert (370M, 64 experts, FFNs of every second block).

    >>> round(routed_total_params(370e6, 64, 1 / 3) / 1e9, 2)
    8.14
    """
    return params * (1 + (experts - 1) * share)


@formula(source=CLARK + "solved for the number of experts from total over active parameters")
def experts_for_total(sparsity: Number, share: Number) -> Number:
    """Number of experts at which total parameters are `sparsity` times the active ones.

    >>> round(experts_for_total(64, 1 / 3))
    190
    """
    return (sparsity - 1) / share + 1


@formula(source="definition, as if all parameters were in the experts: a token uses its share of them")
def experts_by_share(per_token: Number, total: Number, active: Number) -> Number:
    """Number of experts of which a token uses so many, from total and active parameters (DeepSeek-V3, whose routed experts are 256).

    >>> round(experts_by_share(8, 671e9, 37e9))
    145
    """
    return per_token * total / active


@formula(source="exponent of the lecture's rule: dense size in proportion to total^x")
def dense_exponent(gain: Number, growth: Number) -> Number:
    """Exponent of the equivalent dense size in total parameters: 4 times for 64 is 1/3.

    >>> round(float(dense_exponent(4, 64)), 4)
    0.3333
    """
    return np.log(gain) / np.log(growth)


@formula(source=LING + ": log10 of compute, natural log of granularity; the base is not stated, these give the published 'above 7'")
def efficiency_leverage(
    activation: Number, granularity: Number, flop: Flop, a: Number, d: Number, gamma: Number, beta: Number, start: Number, most: Number,
) -> Number:  # fmt: skip
    """Compute of the dense model over that of the sparse one at equal loss, by active share of experts and their granularity.

    >>> round(float(efficiency_leverage(0.031, 12, 1e22, 1.23, -0.0761, 0.0167, -0.117, 0.0163, 5.28e16)), 1)
    6.9
    """
    saturated_activation = 1 / (1 / (activation + 1 / (1 / start - 1 / most)) + 1 / most)
    log_g = np.log(granularity)
    return saturated_activation ** (a + d * np.log10(flop / ONE_FLOP) + gamma * log_g**2 + beta * log_g)
