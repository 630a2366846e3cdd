"""Sparse against dense models: parameters of the dense model of equal loss.

Clark's law covers models with one routed FFN in every second block, one expert per token, trained on 130 B tokens. Ling's law gives
efficiency leverage: compute of the best dense model over compute of the sparse model at equal loss.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Flop, Number

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
