"""Claims on long context: when attention computes as much as the rest, and what fits (CW)."""

from __future__ import annotations

from typing import Any

from headway.laws.attention_balance import attention_crossover_context, attention_flop_per_cached_byte, kv_slope_over_compute_slope
from headway.laws.balance import compute_s_per_token, kv_s_per_token
from headway.laws.batch_step import batch_kv_s
from headway.laws.cache_bill import held_bytes
from headway.laws.capacity import capacity_batch, capacity_context
from headway.laws.compare import relative
from headway.laws.context_cost import context_multiple
from headway.laws.kv import kv_bytes, kv_elements
from headway.laws.memory import parameter_bytes
from headway.laws.sums import times
from headway.ledger.register import Parts, recomputes


@recomputes("CW-02")
def attention_compute_matters(i: Any) -> Parts:
    """The context at which attention computes as much as all weights."""
    return {
        "Llama-3.1-70B": attention_crossover_context(i.llama_matmul, i.llama_layers, i.llama_heads, i.head_width, i.head_width),
        "DeepSeek-V3, absorbed": attention_crossover_context(i.dsv3_active, i.dsv3_layers, i.dsv3_heads, i.latent_width, i.latent_value),
        "100 B, one global layer": attention_crossover_context(i.guess_active, i.global_layers, i.guess_heads, i.head_width, i.head_width),
    }


@recomputes("CW-03")
def memory_slope_is_steeper(i: Any) -> Parts:
    """Memory slope over compute slope, by query heads per cached head."""

    def slope(heads: Any, qk: Any, v: Any, cached: Any) -> Any:
        return kv_slope_over_compute_slope(attention_flop_per_cached_byte(heads, qk, v, cached, i.kv_byte), i.peak, i.mem_bw)

    return {
        "1 query head": slope(i.mha, i.head_width, i.head_width, i.cached_width),
        "8 query heads": slope(i.gqa_8, i.head_width, i.head_width, i.cached_width),
        "16 query heads": slope(i.gqa_16, i.head_width, i.head_width, i.cached_width),
        "128 query heads": slope(i.mqa_128, i.head_width, i.head_width, i.cached_width),
        "DeepSeek-V3, absorbed": slope(i.mqa_128, i.latent_width, i.latent_value, i.latent_width),
    }


@recomputes("CW-04")
def month_of_work(i: Any) -> Parts:
    """KV of one sequence of a month's work, and the time to read it once."""
    llama = kv_bytes(times(kv_elements(i.heads, i.head_width, i.head_width, i.own), i.layers), i.byte)
    return {
        "the lecture's KV": held_bytes(i.context, i.guess),
        "DeepSeek-V3, fp8": held_bytes(i.context, i.dsv3),
        "Llama-3.1-70B, int8": held_bytes(i.context, llama),
        "reading the lecture's KV": batch_kv_s(i.one, i.context, i.guess, i.mem_bw),
    }


@recomputes("CW-05")
def relief_of_the_root(i: Any) -> Parts:
    """Cost at a month's work over that at the crossing."""
    return {
        "dense": context_multiple(i.context, i.crossing, i.dense),
        "square root": context_multiple(i.context, i.crossing, i.root),
    }


@recomputes("CW-06")
def limits_of_context(i: Any) -> Parts:
    """At a month's work: KV reads over arithmetic of weights alone, over attention's, and the sequences that memory holds."""
    kv = kv_s_per_token(i.context, i.kv_bytes, i.mem_bw)
    flop = attention_flop_per_cached_byte(i.heads, i.latent_width, i.latent_value, i.latent_width, i.byte)
    return {
        "KV reads over the arithmetic of weights": relative(kv, compute_s_per_token(i.active, i.peak)),
        "KV reads over the arithmetic of attention": kv_slope_over_compute_slope(flop, i.peak, i.mem_bw),
        "sequences that fit": capacity_batch(i.hbm, parameter_bytes(i.total, i.byte), i.context, i.kv_bytes),
    }


@recomputes("CW-07")
def longest_context(i: Any) -> Parts:
    """The longest context that fits, at the board's batch and at the balanced one."""
    weights = parameter_bytes(i.total, i.weight_byte)
    return {
        "at 2400": capacity_context(i.hbm, weights, i.batch, i.kv_bytes),
        "at 5103": capacity_context(i.hbm, weights, i.larger_batch, i.kv_bytes),
    }
