"""Claims on token prices, and on fast and slow mode (AP, FM)."""

from __future__ import annotations

from typing import Any

from headway.evidence.claims.claim import Parts, recomputes
from headway.laws.architecture.kv import kv_bytes, kv_elements, kv_elements_read
from headway.laws.economics.cost import batch_ratio_identity, break_even_reads, cached_token_s, whole_reads
from headway.laws.economics.inversion import kv_at_knee, kv_joint
from headway.laws.roofline.balance import balanced_batch, compute_s_per_token, hardware_ratio, kv_s_per_token, mfu
from headway.laws.roofline.batch_step import (
    batch_compute_s,
    batch_kv_s,
    context_multiple,
    covered_context,
    kv_of_crossing,
    latency_floor_s,
    machine_s_per_token,
    machine_s_per_token_floor,
    memory_s,
    overlapped_step_s,
    roofline_s,
    slow_tier_saving,
)


def _cost(inputs: Any, batch: Any, context: Any) -> Any:
    """Machine time per output token by the step model."""
    kv = batch_kv_s(batch, context, inputs.kv_bytes, inputs.mem_bw)
    step = overlapped_step_s(
        batch_compute_s(batch, inputs.active, inputs.peak), latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw), kv
    )
    return machine_s_per_token(step, batch)


@recomputes("AP-01")
def step_at_200k(inputs: Any) -> Parts:
    """List price of a long context over a short context."""
    return {"input": inputs.long_input / inputs.input, "output": inputs.long_output / inputs.output}


@recomputes("AP-02")
def cost_against_context(inputs: Any) -> Parts:
    """Cost per token against context: flat below the knee, then the memory line (an offset plus a slope)."""
    weights = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)
    lines = [
        memory_s(weights, batch_kv_s(inputs.batch, context, inputs.kv_bytes, inputs.mem_bw))
        for context in (inputs.long, inputs.long * inputs.twice)
    ]
    beyond = _cost(inputs, inputs.batch, inputs.long)
    return {
        "cost at half the short context over at it": _cost(inputs, inputs.batch, inputs.short * inputs.half)
        / _cost(inputs, inputs.batch, inputs.short),
        "cost beyond the knee over the memory line": beyond / machine_s_per_token(lines[0], inputs.batch),
        "memory line at twice the long context over at it": lines[1] / lines[0],
        "cost at the long context over at the short one": beyond / _cost(inputs, inputs.batch, inputs.short),
    }


@recomputes("AP-04")
def kv_behind_the_step(inputs: Any) -> Parts:
    """KV bytes per token if KV reads take the time of compute at the price step, with one byte per weight."""
    return {"KV bytes per token": kv_of_crossing(inputs.active, inputs.weight_byte, inputs.ratio, inputs.crossing)}


@recomputes("AP-05")
def kv_by_weight_width(inputs: Any) -> Parts:
    """KV bytes per token implied by the price step, by bytes per weight, and with GB200's peak and bandwidth."""
    figures = {f"{name} byte weights": kv_of_crossing(inputs.active, width, inputs.ratio, inputs.crossing) for name, width in
             (("0.5", inputs.fp4), ("1", inputs.fp8), ("2", inputs.bf16))}  # fmt: skip
    gb200_kv = kv_of_crossing(inputs.active, inputs.fp8, hardware_ratio(inputs.fp8, inputs.peak, inputs.mem_bw), inputs.crossing)
    by_times = kv_at_knee(compute_s_per_token(inputs.active, inputs.peak), inputs.mem_bw, inputs.crossing)
    return figures | {"1 byte weights, GB200's ratio": gb200_kv, "the same over by its times": gb200_kv / by_times}


@recomputes("AP-06")
def kv_of_one_layer(inputs: Any) -> Parts:
    """KV bytes per token of layers with a cache of their own, of eight KV heads of dimension 128."""
    elements = kv_elements(inputs.heads, inputs.head_width, inputs.head_width, 1) * inputs.layers
    return {"1-byte KV": kv_bytes(elements, inputs.fp8), "2-byte KV": kv_bytes(elements, inputs.bf16)}


@recomputes("AP-08")
def sharing_across_layers(inputs: Any) -> Parts:
    """KV stored and read by layers that share one KV cache, over layers that do not."""
    dense = kv_elements(inputs.heads, inputs.head_width, inputs.head_width, inputs.own)
    return {
        "stored": kv_elements(inputs.heads, inputs.head_width, inputs.head_width, inputs.share) / dense,
        "read": kv_elements_read(inputs.heads, inputs.head_width, inputs.head_width) / dense,
    }


@recomputes("AP-09")
def sparsity_of_attention(inputs: Any) -> Parts:
    """Factor by which attention would have to reduce KV reads."""
    llama = kv_bytes(kv_elements(inputs.heads, inputs.head_width, inputs.head_width, inputs.own) * inputs.layers, inputs.byte)
    implied = kv_of_crossing(inputs.active, inputs.byte, inputs.ratio, inputs.crossing)
    return {"Llama-3.1-70B, int8": llama / implied, "DeepSeek-V3, fp8": inputs.dsv3 / implied}


@recomputes("AP-10")
def output_over_input(inputs: Any) -> Parts:
    """List price of output over input."""
    return {
        "Claude": inputs.claude_output / inputs.claude_input,
        "Gemini 3.1 Pro, up to 200 K": inputs.output / inputs.input,
        "Gemini 3.1 Pro, above 200 K": inputs.long_output / inputs.long_input,
    }


@recomputes("AP-11")
def time_by_length_of_pass(inputs: Any) -> Parts:
    """Machine time per token of a pass over several tokens per sequence, and of a decode step."""

    def a_token(length: Any) -> Any:
        tokens = inputs.batch * length
        memory = memory_s(
            latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw),
            batch_kv_s(inputs.batch, inputs.context, inputs.kv_bytes, inputs.mem_bw),
        )
        return machine_s_per_token(roofline_s(batch_compute_s(tokens, inputs.active, inputs.peak), memory), tokens)

    return {
        "length 1 over a decode step": a_token(inputs.one) / _cost(inputs, inputs.batch, inputs.context),
        "length 1": a_token(inputs.one),
        "a pass over a prompt": a_token(inputs.length),
        "a pass over a prompt over compute alone": a_token(inputs.length) / compute_s_per_token(inputs.active, inputs.peak),
    }


@recomputes("AP-12")
def decode_mfu_from_prices(inputs: Any) -> Parts:
    """Memory over compute time of a decode step implied by the price ratio, the resulting MFU, and the balanced pass length."""
    ratio = inputs.output / inputs.input
    compute = batch_compute_s(inputs.batch, inputs.active, inputs.peak)
    memory = compute * ratio
    longer = batch_compute_s(inputs.batch * ratio, inputs.active, inputs.peak)
    return {
        "memory over compute": ratio,
        "decode MFU over prefill MFU": mfu(compute, roofline_s(compute, memory)),
        "compute over memory at that length of pass": longer / memory,
    }


@recomputes("AP-13")
def both_at_once(inputs: Any) -> Parts:
    """Batch and cost step that claims AP-04 and AP-12 imply together, and the KV that fits a given price step."""
    ratio, step = inputs.output / inputs.input, inputs.long_output / inputs.short_output
    balanced = balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)
    batch, weights = balanced / ratio, latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)
    kv = kv_at_knee(compute_s_per_token(inputs.active, inputs.peak), inputs.mem_bw, inputs.crossing)
    compute = batch_compute_s(batch, inputs.active, inputs.peak)
    long = overlapped_step_s(compute, weights, batch_kv_s(batch, inputs.crossing, kv, inputs.mem_bw))
    joint = {name: kv_joint(kv_of_crossing(inputs.guess, inputs.weight_byte, inputs.ratio, at), step, ratio) for name, at in
             (("200 K", inputs.crossing), ("500 K", inputs.farther), ("1 M", inputs.farthest))}  # fmt: skip
    return {
        "batch": inputs.board_batch / ratio,
        "cost at 200 K over at short contexts": long / roofline_s(compute, weights),
        **{f"joint KV, step at {name}": value for name, value in joint.items()},
    }


@recomputes("AP-14")
def what_the_step_covers(inputs: Any) -> Parts:
    """Cost at long contexts over short contexts, and the context that a price step covers: dense and square-root attention."""
    step = inputs.long_output / inputs.output
    return {
        "dense, cost at 400 K": context_multiple(inputs.twice, inputs.crossing, inputs.dense),
        "dense, cost at 1 M": context_multiple(inputs.million, inputs.crossing, inputs.dense),
        "dense, covered to": covered_context(step, inputs.crossing, inputs.dense),
        "square root, cost at 1 M": context_multiple(inputs.million, inputs.crossing, inputs.root),
        "square root, covered to": covered_context(step, inputs.crossing, inputs.root),
    }


@recomputes("AP-15")
def cache_hit(inputs: Any) -> Parts:
    """List prices over the price of a cached token."""
    return {
        "over base input": inputs.input / inputs.read,
        "over the 5-min write": inputs.write_5min / inputs.read,
        "over the 1-h write": inputs.write_1h / inputs.read,
    }


@recomputes("AP-16")
def multipliers(inputs: Any) -> Parts:
    """Cache list prices over the base input price."""
    return {
        "5-min write": inputs.write_5min / inputs.input,
        "1-h write": inputs.write_1h / inputs.input,
        "cached token": inputs.read / inputs.input,
    }


@recomputes("AP-17")
def break_even(inputs: Any) -> Parts:
    """Reads within the TTL from which a cache write pays."""
    read = inputs.read / inputs.input
    short, long = (break_even_reads(write / inputs.input, read) for write in (inputs.write_5min, inputs.write_1h))
    return {"5 min": short, "1 h": long, "5 min, whole": whole_reads(short), "1 h, whole": whole_reads(long)}


@recomputes("AP-19")
def kv_behind_the_discount(inputs: Any) -> Parts:
    """KV bytes per token if the cached price were load time, and recompute over load time of the lecture's KV."""
    share, again = inputs.read / inputs.input, compute_s_per_token(inputs.active, inputs.peak)
    return {
        "via PCIe": share * again * inputs.pcie,
        "via flash": share * again * inputs.flash,
        "recompute over load at 1667 B": again / cached_token_s(inputs.kv_bytes, inputs.pcie),
    }


@recomputes("AP-20")
def what_limits(inputs: Any) -> Parts:
    """Memory over compute time of a prefill pass, and of a decode step."""
    weights = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)

    def memory_over_compute(sequences: Any, tokens: Any) -> Any:
        kv = batch_kv_s(sequences, inputs.context, inputs.kv_bytes, inputs.mem_bw)
        return memory_s(weights, kv) / batch_compute_s(tokens, inputs.active, inputs.peak)

    return {"a prompt": memory_over_compute(inputs.one, inputs.length), "a decode step": memory_over_compute(inputs.batch, inputs.batch)}


def _balanced(inputs: Any) -> Any:
    return balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)


def _step(inputs: Any, batch: Any, mem_bw: Any) -> Any:
    """Step time without KV reads."""
    return roofline_s(batch_compute_s(batch, inputs.active, inputs.peak), latency_floor_s(inputs.total, inputs.weight_byte, mem_bw))


@recomputes("FM-01")
def price_of_fast_mode(inputs: Any) -> Parts:
    """List price of the fast mode over the standard mode."""
    return {
        "input": inputs.fast_input / inputs.standard_input,
        "output": inputs.fast_output / inputs.standard_output,
        "a later model's": inputs.later_fast / inputs.later_standard,
    }


@recomputes("FM-02")
def batches_behind_the_prices(inputs: Any) -> Parts:
    """Slow over fast batch implied by the prices, and the identity over the batches of two modelled steps with KV."""
    steps = {
        name: overlapped_step_s(
            batch_compute_s(batch, inputs.active, inputs.peak),
            latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw),
            batch_kv_s(batch, inputs.context, inputs.kv_bytes, inputs.mem_bw),
        )
        for name, batch in (("fast", inputs.small), ("slow", inputs.large))
    }
    price = machine_s_per_token(steps["fast"], inputs.small) / machine_s_per_token(steps["slow"], inputs.large)
    ratio = batch_ratio_identity(price, steps["slow"] / steps["fast"])
    return {
        "slow batch over fast batch": batch_ratio_identity(inputs.price_ratio, inputs.speed_ratio),
        "identity over the batches themselves": ratio / (inputs.large / inputs.small),
    }


@recomputes("FM-03")
def closed_solution(inputs: Any) -> Parts:
    """Standard and fast batch over the balanced batch, and their speed and price ratios by the step model."""
    balanced = _balanced(inputs)
    standard, fast = inputs.speed_ratio * balanced, balanced / inputs.price_ratio
    slow_step, fast_step = _step(inputs, standard, inputs.mem_bw), _step(inputs, fast, inputs.mem_bw)
    return {
        "standard batch over balanced": standard / balanced,
        "fast batch over balanced": fast / balanced,
        "speed by the step model": slow_step / fast_step,
        "price by the step model": machine_s_per_token(fast_step, fast) / machine_s_per_token(slow_step, standard),
        "fast step over the latency floor": fast_step / latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw),
        "fast batch": fast,
    }


@recomputes("FM-04")
def floor_of_speed(inputs: Any) -> Parts:
    """Speed over the standard tier at 1/100 of the balanced batch: on this machine, and with twice the bandwidth."""
    balanced = _balanced(inputs)
    standard = _step(inputs, inputs.speed_ratio * balanced, inputs.mem_bw)
    least = balanced / inputs.price_ratio
    return {
        "speed at 100 times the price": standard / _step(inputs, least, inputs.mem_bw),
        "speed with twice the bandwidth": standard / _step(inputs, least, inputs.mem_bw * inputs.twice),
    }


@recomputes("FM-05")
def slow_mode_saves(inputs: Any) -> Parts:
    """Least machine time per token over that of a tier above the balanced batch, and savings from two smaller batches."""

    def best_and_actual(batch: Any, context: Any) -> tuple[Any, Any]:
        kv = batch_kv_s(batch, context, inputs.kv_bytes, inputs.mem_bw)
        step = overlapped_step_s(
            batch_compute_s(batch, inputs.active, inputs.peak), latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw), kv
        )
        floor = machine_s_per_token_floor(
            compute_s_per_token(inputs.active, inputs.peak), kv_s_per_token(context, inputs.kv_bytes, inputs.mem_bw)
        )
        return floor, machine_s_per_token(step, batch)

    balanced = _balanced(inputs)
    best, standard = best_and_actual(inputs.speed_ratio * balanced, inputs.short)
    below, busy = best_and_actual(balanced / inputs.half, inputs.short), best_and_actual(inputs.batch, inputs.context)
    return {
        "cheapest over standard, above the balanced batch": best / standard,
        "saved, at half the balanced batch": slow_tier_saving(below[1], below[0]),
        "saved, 2,400 sequences of 8k": slow_tier_saving(busy[1], busy[0]),
    }


@recomputes("FM-06")
def drafts_as_a_lever(inputs: Any) -> Parts:
    """Tokens per step with one draft token, and measured cost without drafts over with drafts, at equal speed."""
    return {
        "tokens per step, one draft": inputs.own + inputs.accepted,
        "cost without drafts over with": inputs.usd_without / inputs.usd_with,
    }
