"""Attention against the rest: at which context its compute matters, and why its memory traffic matters first."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Byte, BytePerSecond, FlopPerByte, FlopPerSecond, FlopPerToken, Number, Token

MULTIPLY_ADD: FlopPerToken = 2.0  # one multiply and one add per parameter and token
ONE_TOKEN: Token = 1.0  # attention does its multiply-adds once per cached token


@formula(source="2 N_a = 2 layers heads (qk + v) L, solved for L")
def attention_crossover_context(active_params: Number, layers: Number, heads: Number, qk_width: Number, v_width: Number) -> Token:
    """The context at which attention computes as much as all matrix products with weights: shorter for many wide heads.

    >>> round(attention_crossover_context(70.6e9, 80, 64, 128, 128))  # Llama-3.1-70B
    53864
    """
    return MULTIPLY_ADD * active_params / (MULTIPLY_ADD / ONE_TOKEN * layers * heads * (qk_width + v_width))


@formula(source="multiply-adds per cached token over its bytes")
def attention_flop_per_cached_byte(
    query_heads: Number, qk_width: Number, v_width: Number, cached_width: Number, kv_byte: Byte
) -> FlopPerByte:
    """Arithmetic done on each byte of cache that decode reads: query heads that share a cache share the read.

    >>> round(attention_flop_per_cached_byte(128, 576, 512, 576, 1.0))  # DeepSeek-V3, absorbed MLA, fp8
    484
    """
    return MULTIPLY_ADD * query_heads * (qk_width + v_width) / (cached_width * kv_byte / ONE_TOKEN)


@formula(source="time to read a cached byte over time to compute on it")
def kv_slope_over_compute_slope(flop_per_cached_byte: FlopPerByte, peak_flops: FlopPerSecond, mem_bw: BytePerSecond) -> Number:
    """How much steeper memory time grows with context than attention compute does: above one, memory is met first.

    >>> round(kv_slope_over_compute_slope(2.0, 1978.9e12, 3.35e12))  # H100, fp8, one query head per cached head
    295
    """
    return peak_flops / mem_bw / flop_per_cached_byte


@formula(source="one token written for each L read")
def kv_write_share(context: Token) -> Number:
    """KV bytes written over KV bytes read in a decode step: memory traffic is almost all reads.

    >>> kv_write_share(1000)
    0.001
    """
    return ONE_TOKEN / context


@formula(source="Pope et al. 2022 (arXiv:2211.05102): heads are split over chips, and the fullest chip holds whole heads")
def multihead_width_per_chip(heads: Number, head_width: Number, chips: Number) -> Number:
    """Cache width per token on the fullest chip when each head has its own keys and values.

    >>> float(multihead_width_per_chip(48, 128, 64))  # PaLM-540B made multihead, on 64 TPU v4
    128.0
    """
    return np.ceil(heads / chips) * head_width


@formula(source="Pope et al. 2022 (arXiv:2211.05102): one shared head, each chip holds its share of the sequences")
def multiquery_width_per_chip(head_width: Number, chips: Number) -> Number:
    """Cache width per token and chip when the heads share keys and values and the batch is split over chips.

    >>> multiquery_width_per_chip(256, 64)  # PaLM-540B on 64 TPU v4
    4.0
    """
    return head_width / chips
