"""How many parameters a layer and a model have: feed-forward parts, vectors, and the sums over parts and layers.

A parameter is a count. Sums are formulas too, so that a total explains itself; the mixers are in mixer_params.py.
"""

from __future__ import annotations

import math

from headway.formula import formula
from headway.units import Number


@formula(source="Vaswani et al. 2017 (arXiv:1706.03762), section 3.3; gated: Shazeer 2020 (arXiv:2002.05202)")
def ffn_params(hidden: Number, intermediate: Number, matrices: Number, biases: Number) -> Number:
    """A feed-forward network: two matrices, three where it is gated; `biases` is 1 where each matrix has a bias, else 0.

    >>> ffn_params(8192, 28672, 3, 0)  # Llama-3.1-70B, one layer
    704643072
    """
    return matrices * hidden * intermediate + biases * ((matrices - 1) * intermediate + hidden)


@formula(source="DeepSeekMoE (arXiv:2401.06066), section 3; Shazeer et al. 2017 (arXiv:1701.06538)")
def moe_common_params(
    hidden: Number, experts: Number, shared_experts: Number, shared_intermediate: Number, shared_matrices: Number, shared_gates: Number
) -> Number:
    """What every token of an MoE layer uses: the router, the shared experts and their gate.

    >>> moe_common_params(7168, 256, 1, 2048, 3, 0)  # DeepSeek-V3, one MoE layer
    45875200
    """
    return hidden * (experts + shared_matrices * shared_experts * shared_intermediate + shared_gates)


@formula(source="definition: the product of its dimensions, summed")
def vector_params(dims: tuple[tuple[Number, ...], ...]) -> Number:
    """Norms, biases and scales: stored and loaded, but no matmul uses them.

    >>> vector_params(((8192,), (8192,)))  # the two norms of a Llama-3.1-70B layer
    16384
    """
    return sum(math.prod(shape) for shape in dims)


@formula(source="definition")
def routed_params(expert: Number, experts: Number) -> Number:
    """All routed experts of one layer.

    >>> routed_params(44040192, 256)  # DeepSeek-V3, one MoE layer
    11274289152
    """
    return expert * experts


@formula(source="definition")
def layer_params(mixer: Number, dense_ffn: Number, expert: Number, experts: Number, vectors: Number) -> Number:
    """All parameters of one layer.

    >>> layer_params(187105280, 45875200, 44040192, 256, 16896)  # DeepSeek-V3, one MoE layer
    11507286528
    """
    return mixer + dense_ffn + experts * expert + vectors


@formula(source="definition")
def active_layer_params(mixer: Number, dense_ffn: Number, expert: Number, experts_per_token: Number, vectors: Number) -> Number:
    """The parameters of one layer that one token uses.

    >>> active_layer_params(187105280, 45875200, 44040192, 8, 16896)  # DeepSeek-V3, one MoE layer
    585318912
    """
    return mixer + dense_ffn + experts_per_token * expert + vectors


@formula(source="definition")
def embedding_params(vocab: Number, hidden: Number) -> Number:
    """One embedding table, or one output head.

    >>> embedding_params(129280, 7168)  # DeepSeek-V3
    926679040
    """
    return vocab * hidden


@formula(source="definition; a tied head is the embedding table again and counts once")
def model_params(embedding: Number, head: Number, layers: Number, final_norm: Number) -> Number:
    """All parameters: embedding, head (0 when tied), layers, final norm.

    >>> model_params(926679040, 926679040, 669173039104, 7168)  # DeepSeek-V3
    671026404352
    """
    return embedding + head + layers + final_norm


@formula(source="definition; the embedding look-up is no matmul, the head is one even when tied")
def matmul_params(head: Number, layers: Number) -> Number:
    """The parameters that a token is multiplied with: 2 FLOP each.

    >>> matmul_params(926679040, 35698000000)
    36624679040
    """
    return head + layers


@formula(source="definition")
def sparsity(total: Number, active: Number) -> Number:
    """Total over active parameters.

    >>> round(sparsity(671026404352, 37552282624), 2)  # DeepSeek-V3
    17.87
    """
    return total / active
