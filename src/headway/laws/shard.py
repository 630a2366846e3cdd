"""What a layout does to a model: who holds which share of layers, heads, experts and sequences."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number


@formula(source="definition; expert parallelism re-uses the chips of the other ways")
def replica_chips(tp: Number, cp: Number, dp: Number, pp: Number) -> Number:
    """Chips of one replica.

    >>> replica_chips(4, 1, 2, 3)
    24
    """
    return tp * cp * dp * pp


@formula(source="definition")
def used_chips(replica: Number, replicas: Number) -> Number:
    """Chips that hold a replica.

    >>> used_chips(24, 3)
    72
    """
    return replica * replicas


@formula(source="definition; a system is rented whole")
def idle_chips(chips: Number, busy_chips: Number) -> Number:
    """Chips of the system that hold nothing, counted and paid for.

    >>> int(idle_chips(72, 64))
    8
    """
    return np.maximum(chips - busy_chips, 0)


@formula(source="lecture PP-10; the fullest stage holds ceil(layers/pp)")
def stage_share(layers: Number, pp: Number) -> Number:
    """Share of the layers on the fullest pipeline stage (DeepSeek-V3's 61 layers over 4 stages: 16).

    >>> round(float(stage_share(61, 4)) * 61, 9)
    16.0
    """
    return np.ceil(layers / pp) / layers


@formula(source="lecture PP-05, PP-18: stages run one after the other; the slowest sets the pace")
def depth_factor(layers: Number, pp: Number) -> Number:
    """Time of the whole depth against an even split: pp * ceil(layers/pp) / layers.

    >>> round(float(depth_factor(61, 4)), 4)
    1.0492
    """
    return pp * np.ceil(layers / pp) / layers


@formula(source="definition; the fullest chip, KV heads replicated once tp exceeds them")
def head_share(heads: Number, tp: Number) -> Number:
    """Share of the heads (KV heads, or 1 for a shared latent) that the fullest tensor-parallel chip holds.

    >>> float(head_share(8, 4)), float(head_share(8, 16)), float(head_share(1, 8))
    (0.25, 0.125, 1.0)
    """
    return np.ceil(heads / tp) / heads


@formula(source="definition")
def expert_tensor_ways(tp: Number, cp: Number, dp: Number, ep: Number) -> Number:
    """Chips that share each routed expert's matrices.

    >>> expert_tensor_ways(8, 1, 1, 4)
    2.0
    """
    return tp * cp * dp / ep


@formula(source="definition; tensor-parallel chips hold the same tokens")
def expert_ranks(dp: Number, cp: Number) -> Number:
    """Groups of chips that hold different tokens.

    >>> expert_ranks(8, 2)
    16
    """
    return dp * cp


@formula(source="lecture MOE-02, MOE-03: the fullest chip holds ceil(E/ep)")
def experts_held(experts: Number, redundant: Number, ep: Number) -> Number:
    """Routed experts on the fullest chip, copies of busy ones included (256 over 72 chips: 4; with 32 copies, 4 on every chip).

    >>> float(experts_held(256, 0, 72)), float(experts_held(256, 32, 72))
    (4.0, 4.0)
    """
    return np.ceil((experts + redundant) / ep)


@formula(source="uniform routing: the fullest chip's experts over all, copies sharing their tokens; lecture MOE-03")
def expert_load(experts: Number, redundant: Number, chip_experts: Number, tensor_degree: Number) -> Number:
    """Share of the group's routed work done by the fullest chip (256 experts over 72 chips, without copies and with 32).

    >>> round(72 * expert_load(256, 0, 4, 1), 3), 72 * expert_load(256, 32, 4, 1)
    (1.125, 1.0)
    """
    return chip_experts / (experts + redundant) / tensor_degree


@formula(source="definition")
def expert_share_held(experts: Number, chip_experts: Number, tensor_degree: Number) -> Number:
    """Share of the routed weights that the fullest chip holds.

    >>> expert_share_held(256, 4, 1)
    0.015625
    """
    return chip_experts / experts / tensor_degree
