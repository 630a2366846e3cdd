"""What a token leaves behind: cache elements stored per token, elements read per step, and state of fixed size.

Stored and read are two quantities: a window drops what it no longer sees, a top-k keeps everything and reads little.
An element is one number of the cache; bytes come from its data type.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerToken, Number, PerToken, Token

ENTRY: PerToken = 1.0  # one cache entry for each token
NO_ROOT: Token = 1e200  # stands for infinity where the context may be 0
GQA = "Pope et al. 2022 (arXiv:2211.05102), section 3.3; Ainslie et al. 2023 (arXiv:2305.13245)"


@formula(source=GQA)
def kv_elements(kv_heads: Number, head_dim: Number, value_dim: Number, kv_share: Number) -> PerToken:
    """A key and a value per KV head, once for all layers that share it.

    >>> kv_elements(8, 128, 128, 1)  # Llama-3.1-70B, one layer
    2048.0
    """
    return ENTRY * kv_heads * (head_dim + value_dim) / kv_share


@formula(source=GQA)
def kv_elements_read(kv_heads: Number, head_dim: Number, value_dim: Number) -> PerToken:
    """A key and a value per KV head; a layer that shares its KV still reads it.

    >>> kv_elements_read(8, 128, 128)  # Llama-3.1-70B, one layer
    2048.0
    """
    return ENTRY * kv_heads * (head_dim + value_dim)


@formula(source="DeepSeek-V2 (arXiv:2405.04434), section 2.1.4, table 1")
def latent_elements(kv_rank: Number, rope_dim: Number, kv_share: Number) -> PerToken:
    """MLA: one latent and one rotary key, whatever the number of heads.

    >>> latent_elements(512, 64, 1)  # DeepSeek-V3, one layer
    576.0
    """
    return ENTRY * (kv_rank + rope_dim) / kv_share


@formula(source="DeepSeek-V2 (arXiv:2405.04434), section 2.1.4")
def latent_elements_read(kv_rank: Number, rope_dim: Number) -> PerToken:
    """MLA reads the latent and the rotary key; a layer that shares them still reads them.

    >>> latent_elements_read(512, 64)  # DeepSeek-V3, one layer
    576.0
    """
    return ENTRY * (kv_rank + rope_dim)


@formula(source="one entry of `dim` numbers for each token: DeepSeek-V3.2 (arXiv:2512.02556), section 2.1")
def entry_elements(dim: Number) -> PerToken:
    """One vector per token: an index key, or an uncompressed shared entry.

    >>> entry_elements(128)  # DeepSeek-V3.2, the index key of one layer
    128.0
    """
    return ENTRY * dim


@formula(source="DeepSeek-V4 report, compressed attention")
def compressed_elements(dim: Number, ratio: Token) -> PerToken:
    """One vector for every `ratio` tokens.

    >>> compressed_elements(512, 4)  # DeepSeek-V4-Flash, a layer of ratio 4
    128.0
    """
    return dim / ratio


@formula(source="DeepSeek-V4 report, compressed attention")
def compressed_cap(top_entries: Number, ratio: Token) -> Token:
    """The tokens that the picked entries stand for.

    >>> compressed_cap(512, 4)  # DeepSeek-V4-Flash
    2048
    """
    return top_entries * ratio


@formula(source="definition; the square-root law is a what-if, no published model")
def attended_tokens(context: Token, cap_tokens: Token, sqrt_tokens: Token) -> Token:
    """Of a context, the tokens that one query looks at: all, at most a cap (window, chunk, top-k), or sqrt(context * sqrt_tokens).

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


@formula(source="definition")
def read_elements(elements_per_token: PerToken, attended: Token) -> Number:
    """Cache elements that one decoded token reads.

    >>> read_elements(2048.0, 8192)
    16777216.0
    """
    return elements_per_token * attended


@formula(source="definition: what one more token adds far beyond every window")
def marginal_elements(elements_per_token: PerToken, cap_tokens: Token) -> PerToken:
    """Elements that one more token adds for ever: none where a window drops an old one for each new one.

    >>> float(marginal_elements(2048.0, float("inf"))), float(marginal_elements(2048.0, 4096))
    (2048.0, 0.0)
    """
    return np.where(np.isinf(cap_tokens), elements_per_token, 0.0 * elements_per_token)


@formula(source="definition")
def kv_bytes(elements_per_token: PerToken, element_bytes: Byte) -> BytePerToken:
    """Bytes per token of a cache.

    >>> kv_bytes(35136.0, 2)  # DeepSeek-V3, all layers
    70272.0
    """
    return elements_per_token * element_bytes


@formula(source="definition")
def cache_bytes(elements: Number, element_bytes: Byte) -> Byte:
    """Bytes of so many cache or state elements.

    >>> cache_bytes(19759104, 2)  # Qwen3-Next-80B-A3B, the state of one sequence
    39518208
    """
    return elements * element_bytes


@formula(source="definition")
def bytes_per_context_token(read: Byte, context: Token) -> BytePerToken:
    """What a decoded token reads, by token of its context.

    >>> bytes_per_context_token(575668224, 8192)  # DeepSeek-V3 at 8,192
    70272.0
    """
    return read / context


@formula(source="Yang et al. 2024, Gated DeltaNet (arXiv:2412.06464)")
def gated_delta_state(value_heads: Number, key_dim: Number, value_dim: Number) -> Number:
    """A key x value matrix per value head.

    >>> gated_delta_state(32, 128, 128)  # Qwen3-Next-80B-A3B, one layer
    524288
    """
    return value_heads * key_dim * value_dim


@formula(source="Gu and Dao 2023 (arXiv:2312.00752); Dao and Gu 2024 (arXiv:2405.21060)")
def ssm_state(channels: Number, state: Number) -> Number:
    """`state` numbers per inner channel.

    >>> ssm_state(8192, 16)  # Jamba-1.5-Mini, one Mamba layer
    131072
    """
    return channels * state


@formula(source="a causal convolution of `kernel` taps needs the kernel - 1 inputs before this one")
def convolution_state(channels: Number, kernel: Number) -> Number:
    """The inputs that a short convolution has to remember.

    >>> convolution_state(8192, 4)  # Jamba-1.5-Mini, one Mamba layer
    24576
    """
    return channels * (kernel - 1)


@formula(source="definition")
def convolution_channels(heads: Number, head_dim: Number, groups: Number, state: Number) -> Number:
    """Channels that go through the short convolution: values, and a B and a C (or query and key) per group.

    >>> convolution_channels(80, 64, 1, 128)  # mamba2-2.7b, one layer
    5376
    """
    return heads * head_dim + 2 * groups * state


@formula(source="definition")
def state_sum(recurrent: Number, convolution: Number) -> Number:
    """Everything of fixed size that a layer remembers for a sequence.

    >>> state_sum(131072, 24576)  # Jamba-1.5-Mini, one Mamba layer
    155648
    """
    return recurrent + convolution
