"""KV cache of a layer: elements stored per token, elements read per decode step, and state of fixed size.

Stored per token     kv_elements (MHA, GQA, MQA), latent_elements (MLA), entry_elements (one vector, such as an index key); layers
                     that share a cache store it once, hence `/ kv_share` (shared_elements).
Read per token       kv_elements_read, latent_elements_read: without `/ kv_share`, since each of those layers reads it.
Tokens read          attended_tokens (all, a window, a top-k, a square root).
Of one sequence      stored_elements; marginal_elements is what one more token adds for ever: 0 behind a window.
Bytes                kv_bytes; kv_bytes_per_token of equal layers; narrow_element_bytes where a token's elements differ in format.
State of fixed size  gated_delta_state, ssm_state, rwkv_state, convolution_state (over convolution_channels).

An element is one number of the cache; bytes come from its data type. A model's `kv_bytes_per_token` is in models/totals.py.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerToken, Number, PerToken, Token

ENTRY: PerToken = 1.0  # one cache entry for each token: gives counts of elements their unit, 1/token
SIXTEEN_BITS: Byte = 2.0
NO_ROOT: Token = 1e200  # in place of infinity, where the context may be 0
GQA = "Pope et al. 2022 (arXiv:2211.05102), section 3.3; Ainslie et al. 2023 (arXiv:2305.13245)"


@formula(source=GQA)
def kv_elements(kv_heads: Number, head_dim: Number, value_dim: Number, kv_share: Number) -> PerToken:
    """Cache elements stored per token: a key and a value per KV head, stored once for all layers that share the cache.

    >>> kv_elements(8, 128, 128, 1)  # Llama-3.1-70B, one layer
    2048.0
    """
    return ENTRY * kv_heads * (head_dim + value_dim) / kv_share


@formula(source=GQA)
def kv_elements_read(kv_heads: Number, head_dim: Number, value_dim: Number) -> PerToken:
    """Cache elements read per attended token: a key and a value per KV head, also in a layer that shares its cache with others.

    >>> kv_elements_read(8, 128, 128)  # Llama-3.1-70B, one layer
    2048.0
    """
    return ENTRY * kv_heads * (head_dim + value_dim)


@formula(source=GQA, gives="roofline.kv_bytes_per_token serving.kv_bytes_per_token")
def kv_bytes_per_token(layers: Number, kv_heads: Number, head_dim: Number, element_bytes: Byte) -> BytePerToken:
    """KV cache that one more token adds in a model of equal layers: a key and a value per KV head and layer.

    >>> kv_bytes_per_token(80, 8, 128, 2.0)  # Llama-3.1-70B
    327680.0
    """
    return layers * kv_elements(kv_heads, head_dim, head_dim, 1) * element_bytes


@formula(source="DeepSeek-V2 (arXiv:2405.04434), section 2.1.4, table 1")
def latent_elements(kv_rank: Number, rope_dim: Number, kv_share: Number) -> PerToken:
    """Cache elements stored per token by MLA: one latent and one rotary key, whatever the number of heads.

    >>> latent_elements(512, 64, 1)  # DeepSeek-V3, one layer
    576.0
    """
    return ENTRY * (kv_rank + rope_dim) / kv_share


@formula(source="DeepSeek-V2 (arXiv:2405.04434), section 2.1.4")
def latent_elements_read(kv_rank: Number, rope_dim: Number) -> PerToken:
    """Cache elements read per attended token by MLA: latent and rotary key, also in a layer that shares its cache with others.

    >>> latent_elements_read(512, 64)  # DeepSeek-V3, one layer
    576.0
    """
    return ENTRY * (kv_rank + rope_dim)


@formula(source="one entry of `dim` numbers for each token: DeepSeek-V3.2 (arXiv:2512.02556), section 2.1")
def entry_elements(dim: Number) -> PerToken:
    """Cache elements per token of one vector: an index key, or an uncompressed shared entry.

    >>> entry_elements(128)  # DeepSeek-V3.2, the index key of one layer
    128.0
    """
    return ENTRY * dim


@formula(source="definition; the square-root law is a what-if, no published model")
def attended_tokens(context: Token, cap_tokens: Token, sqrt_tokens: Token) -> Token:
    """Tokens of a context that one query attends to: all, at most a cap (window, chunk, top-k), or sqrt(context * sqrt_tokens).

    >>> float(attended_tokens(8192, 128, float("inf"))), float(attended_tokens(1e6, float("inf"), 1e4))
    (128.0, 100000.0)
    """
    return np.minimum(np.minimum(context, cap_tokens), np.sqrt(context * np.minimum(sqrt_tokens, NO_ROOT)))


@formula(source="definition; a window or chunk keeps no more than it can see")
def stored_elements(elements_per_token: PerToken, context: Token, cap_tokens: Token) -> Number:
    """Cache elements that one sequence of `context` tokens occupies.

    >>> float(stored_elements(2048.0, 8192, 4096))  # Mistral-7B-v0.1, one layer
    8388608.0
    """
    return elements_per_token * np.minimum(context, cap_tokens)


@formula(source="definition: what one more token adds far beyond every window")
def marginal_elements(elements_per_token: PerToken, cap_tokens: Token) -> PerToken:
    """Cache elements that one more token adds for good: 0 where a window drops an old token for each new one.

    >>> float(marginal_elements(2048.0, float("inf"))), float(marginal_elements(2048.0, 4096))
    (2048.0, 0.0)
    """
    return np.where(np.isinf(cap_tokens), elements_per_token, 0.0 * elements_per_token)


@formula(source="definition")
def kv_bytes(elements_per_token: PerToken, element_bytes: Byte) -> BytePerToken:
    """Cache bytes per token.

    >>> kv_bytes(35136.0, 2)  # DeepSeek-V3, all layers
    70272.0
    """
    return elements_per_token * element_bytes


@formula(source="vLLM's fp8_ds_mla and FlashMLA's sparse kernels, as their READMEs lay out a token; SGLang's the same")
def narrow_element_bytes(elements: Number, wide: Number, scales: Byte, element_bytes: Byte) -> Byte:
    """Mean bytes of a cache element where `wide` elements of a token stay in 16 bits and scales lie beside them; in 16 bits as stated.

    >>> 576 * float(narrow_element_bytes(576, 64, 16.0, 1.0))  # DeepSeek-V3.2 in fp8: 512 latents, 4 scales, a rotary key in bf16
    656.0
    """
    narrow = ((elements - wide) * element_bytes + wide * SIXTEEN_BITS + scales) / elements
    return np.where(element_bytes < SIXTEEN_BITS, narrow, element_bytes)


@formula(source="DeepSeek-V4 as vLLM 0.33.0 runs it (PyPI wheel), models/deepseek_v4/compressor.py: a value and a score for each element")
def forming_elements(width: Number, overlap: Number) -> PerToken:
    """Elements per token that a compressor holds until the token's entries are made.

    >>> forming_elements(512, 2)  # DeepSeek-V4, an entry per 4 tokens that sees the 4 before, too
    2048.0
    """
    return ENTRY * 2 * overlap * width


@formula(source="Yang et al. 2024, Gated DeltaNet (arXiv:2412.06464)")
def gated_delta_state(value_heads: Number, key_dim: Number, value_dim: Number) -> Number:
    """State elements of a gated delta layer: a key x value matrix per value head.

    >>> gated_delta_state(32, 128, 128)  # Qwen3-Next-80B-A3B, one layer
    524288
    """
    return value_heads * key_dim * value_dim


@formula(source="Gu and Dao 2023 (arXiv:2312.00752); Dao and Gu 2024 (arXiv:2405.21060)")
def ssm_state(channels: Number, state: Number) -> Number:
    """State elements of a state-space layer: `state` numbers per inner channel.

    >>> ssm_state(8192, 16)  # Jamba-1.5-Mini, one Mamba layer
    131072
    """
    return channels * state


@formula(source="a causal convolution of `kernel` taps needs the kernel - 1 inputs before this one")
def convolution_state(channels: Number, kernel: Number) -> Number:
    """State elements of a short convolution: the last `kernel - 1` inputs of each channel.

    >>> convolution_state(8192, 4)  # Jamba-1.5-Mini, one Mamba layer
    24576
    """
    return channels * (kernel - 1)


@formula(source="definition")
def convolution_channels(heads: Number, head_dim: Number, groups: Number, state: Number) -> Number:
    """Channels that pass the short convolution: values, and a B and a C (or query and key) per group.

    >>> convolution_channels(80, 64, 1, 128)  # mamba2-2.7b, one layer
    5376
    """
    return heads * head_dim + 2 * groups * state


@formula(source="Peng et al. 2023, RWKV (arXiv:2305.13048): two weighted sums, their maximum, and the last input of both mixings")
def rwkv_state(hidden: Number, inner: Number) -> Number:
    """State elements of an RWKV-4 layer.

    >>> rwkv_state(768, 768)  # RWKV-4-169M, one layer
    3840
    """
    return 3 * inner + 2 * hidden


@formula(source="definition")
def shared_elements(elements: Number, kv_share: Number) -> PerToken:
    """Cache elements that a token adds where only their number is known, and layers share them.

    >>> shared_elements(2048, 1)  # Llama-3.1-70B, one layer
    2048.0
    """
    return ENTRY * elements / kv_share
