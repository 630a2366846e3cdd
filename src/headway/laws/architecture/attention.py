"""FLOP of attention per query and token attended to, and of recurrences per token; a multiply and its add count as 2."""

from __future__ import annotations

from headway.core.formula import formula
from headway.core.units import FlopPerToken, Number

ATTEND: FlopPerToken = 2.0  # a multiply and an add per number of each token attended to
UPDATE: FlopPerToken = 2.0  # a multiply and an add per token processed


@formula(source="Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.1: query x key, then weight x value")
def score_flop(heads: Number, head_dim: Number, value_dim: Number) -> FlopPerToken:
    """FLOP of softmax attention for one query and one token attended to, all heads of a layer.

    >>> score_flop(64, 128, 128)  # Llama-3.1-70B, one layer
    32768.0
    """
    return ATTEND * heads * (head_dim + value_dim)


@formula(source="DeepSeek-V2 (arXiv:2405.04434), section 2.1.2 and appendix C: projections absorbed into query and output")
def latent_score_flop_absorbed(heads: Number, kv_rank: Number, rope_dim: Number) -> FlopPerToken:
    """FLOP of absorbed MLA (decode) per query and cached token: each head scores against the latent and sums latents.

    >>> latent_score_flop_absorbed(128, 512, 64)  # DeepSeek-V3, one layer
    278528.0
    """
    return ATTEND * heads * (2 * kv_rank + rope_dim)


@formula(source="DeepSeek-V2 (arXiv:2405.04434), eq. 41-46: keys and values expanded per head")
def latent_score_flop_expanded(heads: Number, nope_dim: Number, rope_dim: Number, value_dim: Number) -> FlopPerToken:
    """FLOP of expanded MLA (prefill) per query and token attended to: keys and values are expanded once, then scored per head.

    >>> latent_score_flop_expanded(128, 128, 64, 128)  # DeepSeek-V3, one layer
    81920.0
    """
    return ATTEND * heads * (nope_dim + rope_dim + value_dim)


@formula(source="DeepSeek-V2 (arXiv:2405.04434), eq. 41-46")
def latent_expand_flop(heads: Number, kv_rank: Number, nope_dim: Number, value_dim: Number) -> FlopPerToken:
    """FLOP that make one token's keys and values of all heads from its latent.

    >>> latent_expand_flop(128, 512, 128, 128)  # DeepSeek-V3, one layer
    33554432.0
    """
    return UPDATE * kv_rank * heads * (nope_dim + value_dim)


@formula(source="DeepSeek-V3.2 (arXiv:2512.02556), eq. 1")
def index_score_flop(heads: Number, dim: Number) -> FlopPerToken:
    """FLOP of the sparse-attention indexer per query and token: a dot product per index head and a weighted sum over heads.

    >>> index_score_flop(64, 128)  # DeepSeek-V3.2, one layer
    16512.0
    """
    return ATTEND * heads * (dim + 1)


@formula(source="Yang et al. 2024 (arXiv:2412.06464), eq. 10: decay, read, correct, write, query the state")
def gated_delta_flop(value_heads: Number, key_dim: Number, value_dim: Number) -> FlopPerToken:
    """FLOP per token of a gated delta rule: the state is read, written and queried, and decayed once.

    >>> gated_delta_flop(32, 128, 128)  # Qwen3-Next-80B-A3B, one layer
    3670016.0
    """
    return UPDATE * 3.5 * value_heads * key_dim * value_dim


@formula(source="MiniMax-01 (arXiv:2501.08313), section 2.2: decay, write, query the state")
def lightning_flop(heads: Number, head_dim: Number) -> FlopPerToken:
    """FLOP per token of lightning (linear) attention: write a key x value product to the state, decay it, read it with the query.

    >>> lightning_flop(64, 128)  # MiniMax-M1, one layer
    5242880.0
    """
    return UPDATE * 2.5 * heads * head_dim * head_dim


@formula(source="Gu and Dao 2023 (arXiv:2312.00752), eq. 2: h = A h + B x, y = C h")
def ssm_flop(channels: Number, state: Number) -> FlopPerToken:
    """FLOP per token of a selective state space (Mamba): decay, write and read the state, one multiply-add each.

    >>> ssm_flop(8192, 16)  # Jamba-1.5-Mini, one Mamba layer
    786432.0
    """
    return UPDATE * 3 * channels * state


@formula(source="Dao and Gu 2024, Mamba-2 (arXiv:2405.21060): decay, write, query the state")
def mamba2_flop(heads: Number, head_dim: Number, state: Number) -> FlopPerToken:
    """FLOP per token of Mamba-2: decay, write and read one state matrix per head, one multiply-add each.

    >>> mamba2_flop(80, 64, 128)  # mamba2-2.7b, one layer
    3932160.0
    """
    return UPDATE * 3 * heads * head_dim * state


@formula(source="a depthwise convolution: one multiply-add per tap")
def convolution_flop(channels: Number, kernel: Number) -> FlopPerToken:
    """FLOP per token of the short convolution before a recurrence.

    >>> convolution_flop(8192, 4)  # Jamba-1.5-Mini, one Mamba layer
    65536.0
    """
    return UPDATE * channels * kernel


@formula(source="Peng et al. 2023, RWKV (arXiv:2305.13048), eq. 16: two weighted sums with a running maximum")
def rwkv_flop(inner: Number) -> FlopPerToken:
    """FLOPs per token of RWKV-4's recurrence: seven multiply-adds per channel (decay, bonus, two sums, one quotient).

    >>> rwkv_flop(768)  # RWKV-4-169M, one layer
    10752.0
    """
    return UPDATE * 7 * inner
