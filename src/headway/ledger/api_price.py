"""Claims on prices of tokens: what a sheet says of context, KV, decode and cache (AP)."""

from __future__ import annotations

from typing import Any

from headway.laws.balance import balanced_batch, compute_s_per_token, hardware_ratio, mfu
from headway.laws.batch_step import batch_compute_s, batch_kv_s, latency_floor_s, memory_s, overlapped_step_s, roofline_s
from headway.laws.cache_fees import kv_bytes_read_for
from headway.laws.compare import relative
from headway.laws.context_cost import context_multiple, covered_context, kv_of_crossing
from headway.laws.cost import machine_s_per_token
from headway.laws.inversion import kv_at_knee, kv_joint
from headway.laws.kv import kv_bytes, kv_elements, kv_elements_read
from headway.laws.money import cached_token_s
from headway.laws.pricing import break_even_reads, whole_reads
from headway.laws.speed import closed_fast_batch
from headway.laws.sums import times
from headway.ledger.register import Parts, recomputes


def _cost(i: Any, batch: Any, context: Any) -> Any:
    """Machine time of an output token by the step model."""
    kv = batch_kv_s(batch, context, i.kv_bytes, i.mem_bw)
    step = overlapped_step_s(batch_compute_s(batch, i.active, i.peak), latency_floor_s(i.total, i.weight_byte, i.mem_bw), kv)
    return machine_s_per_token(step, batch)


@recomputes("AP-01")
def step_at_200k(i: Any) -> Parts:
    """List prices, long over short."""
    return {"input": relative(i.long_input, i.input), "output": relative(i.long_output, i.output)}


@recomputes("AP-02")
def cost_against_context(i: Any) -> Parts:
    """Flat below the knee; beyond it the memory line, which grows more slowly than the context for its offset."""
    weights = latency_floor_s(i.total, i.weight_byte, i.mem_bw)
    lines = [memory_s(weights, batch_kv_s(i.batch, context, i.kv_bytes, i.mem_bw)) for context in (i.long, times(i.long, i.twice))]
    beyond = _cost(i, i.batch, i.long)
    return {
        "cost at half the short context over at it": relative(_cost(i, i.batch, times(i.short, i.half)), _cost(i, i.batch, i.short)),
        "cost beyond the knee over the memory line": relative(beyond, machine_s_per_token(lines[0], i.batch)),
        "memory line at twice the long context over at it": relative(lines[1], lines[0]),
        "cost at the long context over at the short one": relative(beyond, _cost(i, i.batch, i.short)),
    }


@recomputes("AP-04")
def kv_behind_the_step(i: Any) -> Parts:
    """KV bytes per token if the step is where KV reads take as long as arithmetic, one byte per weight."""
    return {"KV bytes per token": kv_of_crossing(i.active, i.weight_byte, i.ratio, i.crossing)}


@recomputes("AP-05")
def kv_by_weight_width(i: Any) -> Parts:
    """The same by bytes of a weight, and by a chip's own peak and bandwidth."""
    found = {f"{name} byte weights": kv_of_crossing(i.active, width, i.ratio, i.crossing) for name, width in
             (("0.5", i.fp4), ("1", i.fp8), ("2", i.bf16))}  # fmt: skip
    own = kv_of_crossing(i.active, i.fp8, hardware_ratio(i.fp8, i.peak, i.mem_bw), i.crossing)
    by_times = kv_at_knee(compute_s_per_token(i.active, i.peak), i.mem_bw, i.crossing)
    return found | {"1 byte weights, GB200's ratio": own, "the same over by its times": relative(own, by_times)}


@recomputes("AP-06")
def kv_of_one_layer(i: Any) -> Parts:
    """Keys and values of eight heads of 128, one layer."""
    elements = kv_elements(i.heads, i.head_width, i.head_width, i.layers)
    return {"1-byte KV": kv_bytes(elements, i.fp8), "2-byte KV": kv_bytes(elements, i.bf16)}


@recomputes("AP-08")
def sharing_across_layers(i: Any) -> Parts:
    """What layers that share one KV store and read, over layers that do not."""
    dense = kv_elements(i.heads, i.head_width, i.head_width, i.own)
    return {
        "stored": relative(kv_elements(i.heads, i.head_width, i.head_width, i.share), dense),
        "read": relative(kv_elements_read(i.heads, i.head_width, i.head_width), dense),
    }


@recomputes("AP-09")
def sparsity_of_attention(i: Any) -> Parts:
    """How many times less than all of it would have to be read."""
    llama = kv_bytes(times(kv_elements(i.heads, i.head_width, i.head_width, i.own), i.layers), i.byte)
    implied = kv_of_crossing(i.active, i.byte, i.ratio, i.crossing)
    return {"Llama-3.1-70B, int8": relative(llama, implied), "DeepSeek-V3, fp8": relative(i.dsv3, implied)}


@recomputes("AP-10")
def output_over_input(i: Any) -> Parts:
    """List prices, output over input."""
    return {
        "Claude": relative(i.claude_output, i.claude_input),
        "Gemini 3.1 Pro, up to 200 K": relative(i.output, i.input),
        "Gemini 3.1 Pro, above 200 K": relative(i.long_output, i.long_input),
    }


@recomputes("AP-11")
def time_by_length_of_pass(i: Any) -> Parts:
    """Machine time per token of a pass over so many tokens of each sequence, beside the step that decodes."""

    def a_token(length: Any) -> Any:
        tokens = times(i.batch, length)
        memory = memory_s(latency_floor_s(i.total, i.weight_byte, i.mem_bw), batch_kv_s(i.batch, i.context, i.kv_bytes, i.mem_bw))
        return machine_s_per_token(roofline_s(batch_compute_s(tokens, i.active, i.peak), memory), tokens)

    return {
        "length 1 over a decode step": relative(a_token(i.one), _cost(i, i.batch, i.context)),
        "length 1": a_token(i.one),
        "a pass over a prompt": a_token(i.length),
        "a pass over a prompt over compute alone": relative(a_token(i.length), compute_s_per_token(i.active, i.peak)),
    }


@recomputes("AP-12")
def decode_mfu_from_prices(i: Any) -> Parts:
    """Memory over compute of a decode step from the price ratio, the MFU that leaves, and the pass that balances."""
    ratio = relative(i.output, i.input)
    compute = batch_compute_s(i.batch, i.active, i.peak)
    memory = times(compute, ratio)
    longer = batch_compute_s(times(i.batch, ratio), i.active, i.peak)
    return {
        "memory over compute": ratio,
        "decode MFU over prefill MFU": mfu(compute, roofline_s(compute, memory)),
        "compute over memory at that length of pass": relative(longer, memory),
    }


@recomputes("AP-13")
def both_at_once(i: Any) -> Parts:
    """What AP-04 and AP-12 give together, and the KV that fits a step of so much."""
    ratio, step = relative(i.output, i.input), relative(i.long_output, i.short_output)
    balanced = balanced_batch(hardware_ratio(i.weight_byte, i.peak, i.mem_bw), i.total, i.active)
    batch, weights = closed_fast_batch(ratio, balanced), latency_floor_s(i.total, i.weight_byte, i.mem_bw)
    kv = kv_at_knee(compute_s_per_token(i.active, i.peak), i.mem_bw, i.crossing)
    compute = batch_compute_s(batch, i.active, i.peak)
    long = overlapped_step_s(compute, weights, batch_kv_s(batch, i.crossing, kv, i.mem_bw))
    joint = {name: kv_joint(kv_of_crossing(i.guess, i.weight_byte, i.ratio, at), step, ratio) for name, at in
             (("200 K", i.crossing), ("500 K", i.farther), ("1 M", i.farthest))}  # fmt: skip
    return {
        "batch": closed_fast_batch(ratio, i.board_batch),
        "cost at 200 K over at short contexts": relative(long, roofline_s(compute, weights)),
        **{f"joint KV, step at {name}": value for name, value in joint.items()},
    }


@recomputes("AP-14")
def what_the_step_covers(i: Any) -> Parts:
    """Cost at long contexts over the short one, and how far a price step covers it, dense and by the square root."""
    step = relative(i.long_output, i.output)
    return {
        "dense, cost at 400 K": context_multiple(i.twice, i.crossing, i.dense),
        "dense, cost at 1 M": context_multiple(i.million, i.crossing, i.dense),
        "dense, covered to": covered_context(step, i.crossing, i.dense),
        "square root, cost at 1 M": context_multiple(i.million, i.crossing, i.root),
        "square root, covered to": covered_context(step, i.crossing, i.root),
    }


@recomputes("AP-15")
def cache_hit(i: Any) -> Parts:
    """List prices over that of a cached token."""
    return {
        "over base input": relative(i.input, i.read),
        "over the 5-min write": relative(i.write_5min, i.read),
        "over the 1-h write": relative(i.write_1h, i.read),
    }


@recomputes("AP-16")
def multipliers(i: Any) -> Parts:
    """List prices over base input."""
    return {
        "5-min write": relative(i.write_5min, i.input),
        "1-h write": relative(i.write_1h, i.input),
        "cached token": relative(i.read, i.input),
    }


@recomputes("AP-17")
def break_even(i: Any) -> Parts:
    """Reads within the time to live from which a write pays."""
    read = relative(i.read, i.input)
    short, long = (break_even_reads(relative(write, i.input), read) for write in (i.write_5min, i.write_1h))
    return {"5 min": short, "1 h": long, "5 min, whole": whole_reads(short), "1 h, whole": whole_reads(long)}


@recomputes("AP-19")
def kv_behind_the_discount(i: Any) -> Parts:
    """KV bytes per token if a cached token's price were the time to load it, and what loading the lecture's KV takes."""
    share, again = relative(i.read, i.input), compute_s_per_token(i.active, i.peak)
    return {
        "via PCIe": kv_bytes_read_for(share, again, i.pcie),
        "via flash": kv_bytes_read_for(share, again, i.flash),
        "recompute over load at 1667 B": relative(again, cached_token_s(i.kv_bytes, i.pcie)),
    }


@recomputes("AP-20")
def what_limits(i: Any) -> Parts:
    """Memory time over compute time of a pass over one prompt, and of a decode step."""
    weights = latency_floor_s(i.total, i.weight_byte, i.mem_bw)

    def memory_over_compute(sequences: Any, tokens: Any) -> Any:
        kv = batch_kv_s(sequences, i.context, i.kv_bytes, i.mem_bw)
        return relative(memory_s(weights, kv), batch_compute_s(tokens, i.active, i.peak))

    return {"a prompt": memory_over_compute(i.one, i.length), "a decode step": memory_over_compute(i.batch, i.batch)}
