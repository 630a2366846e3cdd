"""Parameters of a layer and a model: mixers by kind, feed-forward parts, vectors, and sums over parts and layers.

A parameter is a count. Sums are formulas too, so that a total explains itself.
"""

from __future__ import annotations

import math

from headway.core.formula import formula
from headway.core.units import Byte, Number

SCALE: Byte = 4.0  # 32 bits


@formula(source="Vaswani et al. 2017 (arXiv:1706.03762), section 3.3; gated: Shazeer 2020 (arXiv:2002.05202)")
def ffn_params(hidden: Number, intermediate: Number, matrices: Number, biases: Number) -> Number:
    """Parameters of a feed-forward network: two matrices, three if gated; `biases` is 1 where each matrix has a bias, else 0.

    >>> ffn_params(8192, 28672, 3, 0)  # Llama-3.1-70B, one layer
    704643072
    """
    return matrices * hidden * intermediate + biases * ((matrices - 1) * intermediate + hidden)


@formula(source="DeepSeekMoE (arXiv:2401.06066), section 3; Shazeer et al. 2017 (arXiv:1701.06538)")
def moe_common_params(
    hidden: Number, experts: Number, shared_experts: Number, shared_intermediate: Number, shared_matrices: Number, shared_gates: Number
) -> Number:
    """Parameters of an MoE layer that every token uses: the router, the shared experts and their gate.

    >>> moe_common_params(7168, 256, 1, 2048, 3, 0)  # DeepSeek-V3, one MoE layer
    45875200
    """
    return hidden * (experts + shared_matrices * shared_experts * shared_intermediate + shared_gates)


@formula(source="definition: the product of its dimensions, summed")
def vector_params(dims: tuple[tuple[Number, ...], ...]) -> Number:
    """Parameters of norms, biases and scales: stored and loaded, but used by no matmul.

    >>> vector_params(((8192,), (8192,)))  # the two norms of a Llama-3.1-70B layer
    16384
    """
    return sum(math.prod(shape) for shape in dims)


@formula(source="DeepSeek-V3 (arXiv:2412.19437), section 2.2, equation 21; EAGLE (arXiv:2401.15077), section 3.1")
def joined_inputs_params(hidden: Number) -> Number:
    """Parameters of the projection that joins a hidden state with the embedding of the token after it.

    >>> joined_inputs_params(7168)  # DeepSeek-V3
    102760448
    """
    return 2 * hidden * hidden


@formula(source="definition")
def sparsity(total: Number, active: Number) -> Number:
    """Total parameters over active parameters.

    >>> round(sparsity(671026404352, 37552282624), 2)  # DeepSeek-V3
    17.87
    """
    return total / active


DEEPSEEK_V2 = "DeepSeek-V2 (arXiv:2405.04434), section 2.1.2, eq. 37-47"


@formula(source="Vaswani et al. 2017 (arXiv:1706.03762), section 3.2; grouped queries: Ainslie et al. 2023 (arXiv:2305.13245)")
def attention_params(
    hidden: Number,
    heads: Number,
    kv_heads: Number,
    head_dim: Number,
    value_dim: Number,
    query_copies: Number,
    stacks: Number,
    kv_share: Number,
) -> Number:
    """Parameters of query, key, value and output projections; layers that share a KV cache share its two projections.

    >>> attention_params(8192, 64, 8, 128, 128, 1, 1, 1)  # Llama-3.1-70B, one layer
    150994944.0
    """
    return stacks * hidden * (heads * (query_copies * head_dim + value_dim) + kv_heads * (head_dim + value_dim) / kv_share)


@formula(source="Megatron-LM (arXiv:1909.08053), section 3, and grouped queries: a KV head is repeated on the chips that share it")
def kv_projection_params(hidden: Number, kv_heads: Number, head_dim: Number, value_dim: Number, stacks: Number, kv_share: Number) -> Number:
    """Parameters of attention's key and value projections, which tensor parallelism splits by KV head at most.

    >>> kv_projection_params(8192, 8, 128, 128, 1, 1)  # Llama-3.1-70B, one layer
    16777216.0
    """
    return stacks * hidden * kv_heads * (head_dim + value_dim) / kv_share


@formula(source=DEEPSEEK_V2)
def latent_whole_params(hidden: Number, query_rank: Number, kv_rank: Number, rope_dim: Number, kv_share: Number) -> Number:
    """Parameters of MLA's down projections to the latents: shared by all heads, so replicated on each tensor-parallel chip.

    >>> latent_whole_params(7168, 1536, 512, 64, 1)  # DeepSeek-V3, one layer
    15138816.0
    """
    return hidden * (query_rank + (kv_rank + rope_dim) / kv_share)


@formula(source=DEEPSEEK_V2)
def latent_attention_params(
    hidden: Number,
    heads: Number,
    query_rank: Number,
    kv_rank: Number,
    nope_dim: Number,
    rope_dim: Number,
    value_dim: Number,
    kv_share: Number,
) -> Number:
    """Parameters of MLA: low-rank queries, keys and values through one latent, a rotary key shared by all heads.

    >>> latent_attention_params(7168, 128, 1536, 512, 128, 64, 128, 1)  # DeepSeek-V3, one layer
    187105280.0
    """
    return (
        query_rank * (hidden + heads * (nope_dim + rope_dim))
        + (hidden * (kv_rank + rope_dim) + kv_rank * heads * (nope_dim + value_dim)) / kv_share
        + heads * value_dim * hidden
    )


@formula(source=DEEPSEEK_V2)
def latent_attention_params_full_query(
    hidden: Number, heads: Number, kv_rank: Number, nope_dim: Number, rope_dim: Number, value_dim: Number, kv_share: Number
) -> Number:
    """Parameters of MLA with full-rank query projections, as in the smaller models.

    >>> latent_attention_params_full_query(2048, 16, 512, 128, 64, 128, 1)  # DeepSeek-V2-Lite, one layer
    13762560.0
    """
    return (
        hidden * heads * (nope_dim + rope_dim)
        + (hidden * (kv_rank + rope_dim) + kv_rank * heads * (nope_dim + value_dim)) / kv_share
        + heads * value_dim * hidden
    )


@formula(source="vLLM's fp8_ds_mla and FlashMLA: a 32-bit scale for 128 latents")
def latent_scale_bytes(kv_rank: Number) -> Byte:
    """Bytes of the scales of a token's latents, or of an index key, in a cache of fewer than 16 bits.

    >>> latent_scale_bytes(512), latent_scale_bytes(128)  # DeepSeek-V3.2
    (16.0, 4.0)
    """
    return SCALE * kv_rank / 128


@formula(source="DeepSeek-V2 (arXiv:2405.04434), section 2.1.2")
def latent_up_params(heads: Number, nope_dim: Number, rope_dim: Number, value_dim: Number, query_rank: Number, kv_rank: Number) -> Number:
    """Parameters of MLA's projections from latents up to heads, which recomputation runs again.

    >>> latent_up_params(128, 128, 64, 128, 1536, 512)  # DeepSeek-V3, one layer
    54525952
    """
    return heads * ((nope_dim + rope_dim) * query_rank + (nope_dim + value_dim) * kv_rank)


@formula(source="DeepSeek-V3.2 (arXiv:2512.02556), section 2.1: the lightning indexer")
def indexer_params(hidden: Number, query_input: Number, heads: Number, dim: Number, head_weights: Number) -> Number:
    """Parameters of the sparse-attention indexer: queries, one key per token and, in some models, a weight per head.

    >>> indexer_params(7168, 1536, 64, 128, 1)  # DeepSeek-V3.2, one layer
    13959168
    """
    return query_input * heads * dim + hidden * dim + head_weights * hidden * heads


@formula(source="DeepSeek-V4 report: the indexer of compressed entries")
def compressed_indexer_params(hidden: Number, query_input: Number, heads: Number, dim: Number) -> Number:
    """Parameters of the compressed indexer: queries and a weight per head; a separate compressor makes its keys.

    >>> compressed_indexer_params(4096, 1024, 64, 128)  # DeepSeek-V4-Flash, a layer of ratio 4
    8650752
    """
    return query_input * heads * dim + hidden * heads


@formula(source="DeepSeek-V4 report, compressed attention: grouped low-rank output, shared key = value entry")
def compressed_attention_params(
    hidden: Number, heads: Number, head_dim: Number, query_rank: Number, output_groups: Number, output_rank: Number
) -> Number:
    """Parameters of compressed attention: low-rank queries, one shared entry per token, a low-rank output projection by head group.

    >>> compressed_attention_params(4096, 64, 512, 1024, 8, 1024)  # DeepSeek-V4-Flash, one layer
    106954752
    """
    return (
        query_rank * (hidden + heads * head_dim) + hidden * head_dim + heads * head_dim * output_rank + output_groups * output_rank * hidden
    )


@formula(source="DeepSeek-V4 report: token-level compressor (weighted pooling of `ratio` tokens)")
def compressor_params(hidden: Number, dim: Number, overlap: Number) -> Number:
    """Parameters of a compressor of token groups into entries: value and gate projections, twice where groups overlap.

    >>> compressor_params(4096, 512, 2)  # DeepSeek-V4-Flash, a layer of ratio 4
    8388608
    """
    return 2 * overlap * hidden * dim


@formula(source="Yang et al. 2024, Gated DeltaNet (arXiv:2412.06464); Qwen3-Next")
def gated_delta_params(hidden: Number, key_heads: Number, value_heads: Number, key_dim: Number, value_dim: Number) -> Number:
    """Parameters of a gated delta layer: query, key, value, gate and output projections, and two scalars per value head.

    >>> gated_delta_params(2048, 16, 32, 128, 128)  # Qwen3-Next-80B-A3B, one layer
    33685504
    """
    return hidden * (2 * key_heads * key_dim + 3 * value_heads * value_dim + 2 * value_heads)


@formula(source="Kimi Linear (arXiv:2510.26692), section 4: Kimi delta attention")
def kimi_delta_params(hidden: Number, heads: Number, head_dim: Number, gate_rank: Number) -> Number:
    """Parameters of Kimi delta attention: four projections, a step size per head, and two low-rank gates per channel.

    >>> kimi_delta_params(2304, 32, 128, 128)  # Kimi-Linear-48B-A3B, one layer
    39460864
    """
    return hidden * (4 * heads * head_dim + heads) + 2 * gate_rank * (hidden + heads * head_dim)


@formula(source="LFM2 technical report (arXiv:2511.23404): gated short convolution")
def short_convolution_params(hidden: Number) -> Number:
    """Projection parameters of a short-convolution layer: an input projection to two gates and a value, and an output projection.

    >>> short_convolution_params(2048)  # LFM2-1.2B, one layer
    16777216
    """
    return 4 * hidden * hidden


@formula(source="MiniMax-01 (arXiv:2501.08313), section 2.2: lightning attention")
def lightning_params(hidden: Number, heads: Number, head_dim: Number) -> Number:
    """Parameters of lightning attention: query, key, value, output gate and output projections.

    >>> lightning_params(6144, 64, 128)  # MiniMax-M1, one layer
    251658240
    """
    return 5 * hidden * heads * head_dim


@formula(source="Gu and Dao 2023, Mamba (arXiv:2312.00752), section 3")
def mamba_params(hidden: Number, inner: Number, state: Number, dt_rank: Number) -> Number:
    """Parameters of a Mamba layer's projections: input and gate, step size and state, output.

    >>> mamba_params(4096, 8192, 16, 256)  # Jamba-1.5-Mini, one Mamba layer
    105119744
    """
    return 3 * hidden * inner + inner * (dt_rank + 2 * state) + dt_rank * inner


@formula(source="Dao and Gu 2024, Mamba-2 (arXiv:2405.21060), section 7")
def mamba2_params(hidden: Number, heads: Number, head_dim: Number, groups: Number, state: Number) -> Number:
    """Parameters of a Mamba-2 layer: one input projection (gate, values, B, C, step sizes) and the output projection.

    >>> mamba2_params(2560, 80, 64, 1, 128)  # mamba2-2.7b, one layer
    40181760
    """
    return hidden * (3 * heads * head_dim + 2 * groups * state + heads)


@formula(source="Gemma 4, as published in transformers: one projection makes key and value, or a layer reads the KV of an earlier layer")
def narrow_kv_attention_params(
    hidden: Number, heads: Number, kv_heads: Number, head_dim: Number, value_dim: Number, kv_projections: Number
) -> Number:
    """Parameters of attention whose key and value come from one projection, or from none (the KV of an earlier layer).

    >>> narrow_kv_attention_params(5376, 32, 4, 512, 512, 1)  # Gemma-4-31B, a full-attention layer
    187170816
    """
    return hidden * (heads * (head_dim + value_dim) + kv_projections * kv_heads * head_dim)


@formula(source="Nemotron-3 (latent experts): routed experts work at a narrower width, between two projections")
def latent_expert_params(hidden: Number, latent: Number) -> Number:
    """Parameters of the projections from the hidden state to the width of latent experts, and back.

    >>> latent_expert_params(4096, 1024)  # Nemotron-3-Super-120B-A12B, one MoE layer
    8388608
    """
    return 2 * hidden * latent


@formula(source="Peng et al. 2023, RWKV (arXiv:2305.13048), section 3.1: time mixing and the gate of channel mixing")
def rwkv_params(hidden: Number, inner: Number) -> Number:
    """Parameters of RWKV-4's time mixing (receptance, key, value, output) and of the receptance of its channel mixing.

    >>> rwkv_params(768, 768)  # RWKV-4-169M, one layer
    2949120
    """
    return 4 * hidden * inner + hidden * hidden


@formula(source="Kimi-K3: Kimi delta attention (arXiv:2510.26692) whose output gate has full rank")
def kimi_delta_full_gate_params(hidden: Number, heads: Number, head_dim: Number, gate_rank: Number) -> Number:
    """Parameters of Kimi delta attention with a full-rank output gate: five projections, a step size per head, one low-rank gate.

    >>> kimi_delta_full_gate_params(7168, 96, 128, 128)  # Kimi-K3, one layer
    443580416
    """
    return hidden * (5 * heads * head_dim + heads) + gate_rank * (hidden + heads * head_dim)


# -- bytes of number formats: by block, by group of weights that share a scale, and as a mean over the tensors of a file --------


BIT: Byte = 0.125


@formula(source="definition: a block of weights is stored together")
def block_bytes(block: Byte, weights: Number) -> Byte:
    """Bytes per weight of a block format, scales included.

    >>> block_bytes(144.0, 256)  # llama.cpp's q4_K
    0.5625
    """
    return block / weights


@formula(source="definition: weights of `bits`, and a scale and a zero point for each group of them")
def grouped_bytes(bits: Number, scale_bits: Number, zero_bits: Number, group: Number) -> Byte:
    """Bytes per weight of a format whose groups share a scale and, where it has one, a zero point.

    >>> grouped_bytes(4, 16, 4, 128), grouped_bytes(4, 8, 0, 32)  # AWQ; MXFP4
    (0.51953125, 0.53125)
    """
    return BIT * (bits + (scale_bits + zero_bits) / group)


@formula(source="definition")
def mean_bytes(sizes: tuple[Number, ...], widths: tuple[Byte, ...]) -> Byte:
    """Mean bytes per weight of tensors of `sizes` weights, each of its own width.

    >>> mean_bytes((2e6, 1e6), (0.5625, 0.8203125))
    0.6484375
    """
    return sum(size * width for size, width in zip(sizes, widths, strict=True)) / sum(sizes)


# -- bounds on what a key of a config.json that no reader knows could change ----------------------------------------------------


MATRICES = 3  # of a gated network, the most that one width gives a layer


@formula(source="a width gives each layer at most a gated network of that width, three matrices with the hidden state")
def largest_params_share(width: Number, hidden: Number, layers: Number, params: Number) -> Number:
    """Parameters that an unread width could add, as a share of all.

    >>> round(largest_params_share(1024, 4096, 32, 8030261248), 3)  # Llama-3.1-8B
    0.05
    """
    return MATRICES * width * hidden * layers / params


@formula(source="a width is kept at most as a key and a value of its own in every layer")
def largest_cache_share(width: Number, elements: Number) -> Number:
    """KV cache that an unread width could add, as a share of what a token keeps in a layer.

    >>> largest_cache_share(64, 2048)
    0.0625
    """
    return 2 * width / elements
