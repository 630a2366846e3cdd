"""Collectives on one switch: bytes one chip sends, one way, and what they cost (alpha + bytes/bandwidth)."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Byte, BytePerSecond, BytePerToken, Number, PerToken, Second, SecondPerToken

ONE_TOKEN: PerToken = 1.0
RABENSEIFNER = "Thakur, Rabenseifner, Gropp 2005, Int. J. High Perf. Comp. Appl. 19(1), section 4"


@formula(source=RABENSEIFNER)
def all_reduce_share(chips: Number) -> Number:
    """Bytes each chip sends in an all-reduce, over the message: reduce-scatter then all-gather.

    >>> all_reduce_share(8)
    1.75
    """
    return 2 * (chips - 1) / chips


@formula(source=RABENSEIFNER)
def all_gather_share(chips: Number) -> Number:
    """Bytes each chip receives in an all-gather (or sends in a reduce-scatter), over the whole message.

    >>> all_gather_share(8)
    0.875
    """
    return (chips - 1) / chips


@formula(source="uniform all-to-all: all but a chip's own part leaves it")
def all_to_all_share(chips: Number) -> Number:
    """Bytes each chip sends in an all-to-all, over the bytes it holds.

    >>> all_to_all_share(64)
    0.984375
    """
    return (chips - 1) / chips


@formula(source="alpha-beta model: Hockney 1994, Parallel Computing 20(3)")
def collective_s(sent: Byte, bandwidth: BytePerSecond, alpha: Second, messages: Number) -> Second:
    """Time of collectives that send `sent` bytes in `messages` rounds (450 GB/s one way on an H100).

    >>> round(collective_s(45e6, 450e9, 5e-6, 1) * 1e6, 3)
    105.0
    """
    return alpha * messages + sent / bandwidth


@formula(source="lecture MOE-12: distinct groups hit by k uniform choices, n*(1-(1-1/n)^k)")
def expert_groups_hit(ep: Number, active: Number) -> Number:
    """Distinct expert-parallel chips that one token's experts live on (8 choices over 64 chips: 7.58).

    >>> round(expert_groups_hit(64, 8), 2)
    7.58
    """
    return ep * (1 - (1 - 1 / ep) ** active)


@formula(source="lecture MOE-04, MOE-12: each expert group receives every token that chose it, except those it already holds")
def dispatch_copies(ep: Number, active: Number, ranks: Number) -> Number:
    """Activation vectors a chip receives per token of its own rank in one all-to-all; 0 when every chip holds every token.

    >>> round(dispatch_copies(64, 8, 64), 2), dispatch_copies(8, 8, 1)
    (7.46, 0.0)
    """
    return ranks * (1 - (1 - 1 / ep) ** active) * (1 - 1 / ranks)


@formula(source="definition")
def activation_bytes_per_token(hidden: Number, element: Byte) -> BytePerToken:
    """One token's activation vector on the wire (DeepSeek-V3, bf16).

    >>> activation_bytes_per_token(7168, 2)
    14336.0
    """
    return hidden * element * ONE_TOKEN


@formula(source="Megatron-LM (arXiv:1909.08053), section 3: an all-reduce after each sublayer; lecture MOE-04: dispatch and combine")
def layer_vectors(tp: Number, cp: Number, sublayers: Number, moe_layers: Number, layers: Number, copies: Number) -> Number:
    """Activation vectors one chip sends per token in all layers: all-reduces over tp, all-to-alls, context-parallel merges.

    >>> layer_vectors(8, 1, 160, 0, 80, 0.0)
    280.0
    """
    return sublayers * 2 * (tp - 1) / tp + 2 * moe_layers * copies + layers * 2 * (cp - 1) / cp / tp


@formula(source="lecture PP-01: one activation vector per hop, split over tp")
def hop_vectors(tp: Number, pp: Number) -> Number:
    """Activation vectors one chip sends per token between pipeline stages.

    >>> hop_vectors(1, 4)
    3.0
    """
    return (pp - 1) / tp


@formula(source="bytes over bandwidth")
def link_s_per_token(layer: Number, depth: Number, hops: Number, vector: BytePerToken, bandwidth: BytePerSecond) -> SecondPerToken:
    """Link time per token: what all layers send (the slowest stage paces them), and the hops between stages.

    >>> round(link_s_per_token(280, 1.0, 0, 16384, 450e9) * 1e6, 2)
    10.19
    """
    return (layer * depth + hops) * vector / bandwidth


@formula(source="definition")
def messages_per_step(
    tp: Number, cp: Number, dp: Number, pp: Number, sublayers: Number, moe_layers: Number, layers: Number, depth: Number
) -> Number:
    """Collectives one after the other in a step, each costing alpha.

    >>> float(messages_per_step(8, 1, 1, 1, 160, 0, 80, 1.0))
    160.0
    """
    inner = np.where(tp > 1, sublayers, 0) + np.where(dp * cp > 1, 2 * moe_layers, 0) + np.where(cp > 1, layers, 0)
    return inner * depth + pp - 1


@formula(source="definition: a replica inside one scale-up domain talks over it, a larger one at the pace of scale-out")
def replica_link(chips: Number, domain: Number, scale_up: BytePerSecond, scale_out: BytePerSecond) -> BytePerSecond:
    """One-way bandwidth per chip that a replica's collectives run at.

    >>> float(replica_link(8, 8, 450e9, 50e9)) / 1e9, float(replica_link(16, 8, 450e9, 50e9)) / 1e9
    (450.0, 50.0)
    """
    return np.where(chips <= domain, scale_up, scale_out)
