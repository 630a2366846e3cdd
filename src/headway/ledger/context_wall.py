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
def attention_compute_matters(inputs: Any) -> Parts:
    """The context at which attention computes as much as all weights."""
    return {
        "Llama-3.1-70B": attention_crossover_context(
            inputs.llama_matmul, inputs.llama_layers, inputs.llama_heads, inputs.head_width, inputs.head_width
        ),
        "DeepSeek-V3, absorbed": attention_crossover_context(
            inputs.dsv3_active, inputs.dsv3_layers, inputs.dsv3_heads, inputs.latent_width, inputs.latent_value
        ),
        "100 B, one global layer": attention_crossover_context(
            inputs.guess_active, inputs.global_layers, inputs.guess_heads, inputs.head_width, inputs.head_width
        ),
    }


@recomputes("CW-03")
def memory_slope_is_steeper(inputs: Any) -> Parts:
    """Memory slope over compute slope, by query heads per cached head."""

    def slope(heads: Any, qk: Any, value: Any, cached: Any) -> Any:
        return kv_slope_over_compute_slope(
            attention_flop_per_cached_byte(heads, qk, value, cached, inputs.kv_byte), inputs.peak, inputs.mem_bw
        )

    return {
        "1 query head": slope(inputs.mha, inputs.head_width, inputs.head_width, inputs.cached_width),
        "8 query heads": slope(inputs.gqa_8, inputs.head_width, inputs.head_width, inputs.cached_width),
        "16 query heads": slope(inputs.gqa_16, inputs.head_width, inputs.head_width, inputs.cached_width),
        "128 query heads": slope(inputs.mqa_128, inputs.head_width, inputs.head_width, inputs.cached_width),
        "DeepSeek-V3, absorbed": slope(inputs.mqa_128, inputs.latent_width, inputs.latent_value, inputs.latent_width),
    }


@recomputes("CW-04")
def month_of_work(inputs: Any) -> Parts:
    """KV of one sequence of a month's work, and the time to read it once."""
    llama = kv_bytes(times(kv_elements(inputs.heads, inputs.head_width, inputs.head_width, inputs.own), inputs.layers), inputs.byte)
    return {
        "the lecture's KV": held_bytes(inputs.context, inputs.guess),
        "DeepSeek-V3, fp8": held_bytes(inputs.context, inputs.dsv3),
        "Llama-3.1-70B, int8": held_bytes(inputs.context, llama),
        "reading the lecture's KV": batch_kv_s(inputs.one, inputs.context, inputs.guess, inputs.mem_bw),
    }


@recomputes("CW-05")
def relief_of_the_root(inputs: Any) -> Parts:
    """Cost at a month's work over that at the crossing."""
    return {
        "dense": context_multiple(inputs.context, inputs.crossing, inputs.dense),
        "square root": context_multiple(inputs.context, inputs.crossing, inputs.root),
    }


@recomputes("CW-06")
def limits_of_context(inputs: Any) -> Parts:
    """At a month's work: KV reads over arithmetic of weights alone, over attention's, and the sequences that memory holds."""
    kv = kv_s_per_token(inputs.context, inputs.kv_bytes, inputs.mem_bw)
    flop = attention_flop_per_cached_byte(inputs.heads, inputs.latent_width, inputs.latent_value, inputs.latent_width, inputs.byte)
    return {
        "KV reads over the arithmetic of weights": relative(kv, compute_s_per_token(inputs.active, inputs.peak)),
        "KV reads over the arithmetic of attention": kv_slope_over_compute_slope(flop, inputs.peak, inputs.mem_bw),
        "sequences that fit": capacity_batch(inputs.hbm, parameter_bytes(inputs.total, inputs.byte), inputs.context, inputs.kv_bytes),
    }


@recomputes("CW-07")
def longest_context(inputs: Any) -> Parts:
    """The longest context that fits, at the board's batch and at the balanced one."""
    weights = parameter_bytes(inputs.total, inputs.weight_byte)
    return {
        "at 2400": capacity_context(inputs.hbm, weights, inputs.batch, inputs.kv_bytes),
        "at 5103": capacity_context(inputs.hbm, weights, inputs.larger_batch, inputs.kv_bytes),
    }
