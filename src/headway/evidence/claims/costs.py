"""Claims on what tokens cost: long context and KV storage (CW, KT), token prices, fast and slow mode (AP, FM)."""

from __future__ import annotations

from typing import Any

from headway.core.quantity import known
from headway.core.units import Byte, BytePerSecond, Number, SecondPerToken, Token, UsdPerByteSecond
from headway.evidence.claims.claim import ClaimInputs, Parts, balance, compute_s, kv_s, recomputes, terms, token_s, weights_s
from headway.laws.architecture.kv import kv_bytes, kv_elements, kv_elements_read
from headway.laws.economics.cost import batch_ratio_identity, break_even_reads, cached_token_s, whole_reads
from headway.laws.economics.inversion import kv_at_knee, kv_joint
from headway.laws.roofline.balance import (
    attention_crossover_context,
    attention_flop_per_cached_byte,
    capacity_batch,
    capacity_context,
    drain_s,
    hardware_ratio,
    kv_s_per_token,
    mfu,
)
from headway.laws.roofline.batch_step import (
    batch_kv_s,
    context_multiple,
    covered_context,
    crossing_hold_s,
    kv_of_crossing,
    latency_floor_s,
    machine_s_per_token,
    machine_s_per_token_floor,
    memory_s,
    overlapped_step_s,
    roofline_s,
    slow_tier_saving,
)
from headway.laws.tiers import balanced_hold_s, break_even_hold_s, holding_usd, per_mtok


@recomputes("CW-02")
def attention_compute_matters(inputs: ClaimInputs) -> Parts:
    """Context at which attention needs the FLOPs of all weights."""
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
def memory_slope_is_steeper(inputs: ClaimInputs) -> Parts:
    """Memory slope over compute slope of attention, by query heads per KV head."""

    def slope(heads: Number, qk: Number, value: Number, cached: Number) -> Any:
        return inputs.peak / inputs.mem_bw / attention_flop_per_cached_byte(heads, qk, value, cached, inputs.kv_byte)

    return {
        "1 query head": slope(inputs.mha, inputs.head_width, inputs.head_width, inputs.cached_width),
        "8 query heads": slope(inputs.gqa_8, inputs.head_width, inputs.head_width, inputs.cached_width),
        "16 query heads": slope(inputs.gqa_16, inputs.head_width, inputs.head_width, inputs.cached_width),
        "128 query heads": slope(inputs.mqa_128, inputs.head_width, inputs.head_width, inputs.cached_width),
        "DeepSeek-V3, absorbed": slope(inputs.mqa_128, inputs.latent_width, inputs.latent_value, inputs.latent_width),
    }


@recomputes("CW-04")
def month_of_work(inputs: ClaimInputs) -> Parts:
    """KV of a sequence of a month's work, and the time to read it once."""
    llama = kv_bytes(kv_elements(inputs.heads, inputs.head_width, inputs.head_width, inputs.own) * inputs.layers, inputs.byte)
    return {
        "the lecture's KV": inputs.context * inputs.guess,
        "DeepSeek-V3, fp8": inputs.context * inputs.dsv3,
        "Llama-3.1-70B, int8": inputs.context * llama,
        "reading the lecture's KV": batch_kv_s(inputs.one, inputs.context, inputs.guess, inputs.mem_bw),
    }


@recomputes("CW-05")
def relief_of_the_root(inputs: ClaimInputs) -> Parts:
    """Cost per token at a month's context over cost at the crossing."""
    return {
        "dense": context_multiple(inputs.context, inputs.crossing, inputs.dense),
        "square root": context_multiple(inputs.context, inputs.crossing, inputs.root),
    }


@recomputes("CW-06")
def limits_of_context(inputs: ClaimInputs) -> Parts:
    """KV read time over weight compute and over attention compute at a month's context, and sequences that fit in memory."""
    kv = kv_s_per_token(inputs.context, inputs.kv_bytes, inputs.mem_bw)
    flop = attention_flop_per_cached_byte(inputs.heads, inputs.latent_width, inputs.latent_value, inputs.latent_width, inputs.byte)
    return {
        "KV reads over the arithmetic of weights": kv / token_s(inputs),
        "KV reads over the arithmetic of attention": inputs.peak / inputs.mem_bw / flop,
        "sequences that fit": capacity_batch(inputs.hbm, inputs.total * inputs.byte, inputs.context, inputs.kv_bytes),
    }


@recomputes("CW-07")
def longest_context(inputs: ClaimInputs) -> Parts:
    """Longest context that fits, at the board's batch and at the balanced batch."""
    weights = inputs.total * inputs.weight_byte
    return {
        "longest context": capacity_context(inputs.hbm, weights, inputs.batch, inputs.kv_bytes),
        "with the larger batch": capacity_context(inputs.hbm, weights, inputs.larger_batch, inputs.kv_bytes),
    }


NO_COST = known(0.0, "loading and writing", "USD/token", "constant", "left out, as in the lecture")


def _recompute(inputs: ClaimInputs) -> Any:
    """Cost of recomputing a token."""
    return token_s(inputs) * inputs.chip_price


def _holding_per_mtok(inputs: ClaimInputs, holding: UsdPerByteSecond) -> Any:
    """Cost of holding the KV of a million tokens for a time."""
    return per_mtok((inputs.kv_bytes * holding) * inputs.hold)


@recomputes("KT-01")
def rematerialise(inputs: ClaimInputs) -> Parts:
    """Cost of recomputing a million tokens."""
    return {"retrieve": per_mtok(_recompute(inputs))}


@recomputes("KT-02")
def hold_in_hbm(inputs: ClaimInputs) -> Parts:
    """Cost of holding the KV of a million tokens in HBM for an hour."""
    return {"hold for 1 h": _holding_per_mtok(inputs, inputs.chip_price / inputs.hbm)}


@recomputes("KT-03")
def hold_in_ddr(inputs: ClaimInputs) -> Parts:
    """Cost per million tokens of holding KV in a server's DDR for an hour, and of reading it if only the memory is paid for."""
    holding = holding_usd(inputs.price, inputs.overhead, inputs.life)
    return {
        "hold for 1 h": _holding_per_mtok(inputs, holding),
        "retrieve": per_mtok(cached_token_s(inputs.kv_bytes, inputs.bandwidth) * (holding * inputs.size)),
    }


@recomputes("KT-04")
def down_the_hierarchy(inputs: ClaimInputs) -> Parts:
    """Holding cost of each tier over the next tier's, and retrieval cost of the next tier over this tier's."""
    hbm = inputs.chip_price / inputs.hbm
    ddr, flash, disk = (
        holding_usd(price, inputs.overhead, inputs.life) for price in (inputs.ddr_price, inputs.tlc_price, inputs.disk_price)
    )

    def read(holding: UsdPerByteSecond, size: Byte, bandwidth: BytePerSecond) -> Any:
        return cached_token_s(inputs.kv_bytes, bandwidth) * (holding * size)

    loads = [read(ddr, inputs.ddr, inputs.ddr_bw), read(flash, inputs.tlc, inputs.tlc_bw), read(disk, inputs.disk, inputs.disk_bw)]
    return {
        "hold, HBM over DDR": hbm / ddr,
        "hold, DDR over flash": ddr / flash,
        "hold, flash over disk": flash / disk,
        "retrieve, flash over DDR": loads[1] / loads[0],
        "retrieve, disk over flash": loads[2] / loads[1],
        "retrieve, computing again over disk": _recompute(inputs) / loads[2],
    }


@recomputes("KT-05")
def balanced_hold(inputs: ClaimInputs) -> Parts:
    """Hold time at which a device's share for capacity equals its share for bandwidth."""
    hold = balanced_hold_s(inputs.size, inputs.bandwidth, inputs.one)
    kv = inputs.tokens * inputs.kv_bytes
    reading = drain_s(kv, inputs.bandwidth) / hold
    return {
        "share to read over share to hold": reading / (kv / inputs.size),
        "hold, one read": hold,
        "hold, three reads": balanced_hold_s(inputs.size, inputs.bandwidth, inputs.three),
    }


@recomputes("KT-06")
def drain_of_hbm(inputs: ClaimInputs) -> Parts:
    """Drain time of HBM."""
    return {
        "H100": drain_s(inputs.h100, inputs.h100_bw),
        "B200": drain_s(inputs.b200, inputs.b200_bw),
        "B300": drain_s(inputs.b300, inputs.b300_bw),
        "Rubin": drain_s(inputs.rubin, inputs.rubin_bw),
    }


@recomputes("KT-07")
def drain_of_ddr(inputs: ClaimInputs) -> Parts:
    """Drain time of host memory."""
    channels, links = drain_s(inputs.ddr, inputs.ddr_bw), drain_s(inputs.ddr, inputs.pcie_bw)
    return {"Grace": drain_s(inputs.grace, inputs.grace_bw), "2 TB, its channels": channels, "2 TB over PCIe": links}


@recomputes("KT-08")
def drain_of_flash(inputs: ClaimInputs) -> Parts:
    """Drain time of NVMe flash drives."""
    return {
        "TLC 3.84 TB, 7 GB/s": drain_s(inputs.small, inputs.slow_bw),
        "TLC 30.72 TB, 7 GB/s": drain_s(inputs.large, inputs.slow_bw),
        "QLC 122.88 TB, 7 GB/s": drain_s(inputs.qlc, inputs.slow_bw),
        "TLC 3.84 TB, 14 GB/s": drain_s(inputs.small, inputs.fast_bw),
        "TLC 30.72 TB, 14 GB/s": drain_s(inputs.large, inputs.fast_bw),
    }


@recomputes("KT-09")
def drain_of_disk(inputs: ClaimInputs) -> Parts:
    """Drain time of spinning disks."""
    return {"20 TB": drain_s(inputs.size, inputs.bandwidth), "4 TB": drain_s(inputs.old_size, inputs.old_bandwidth)}


@recomputes("KT-10")
def tiers_from_ttl(inputs: ClaimInputs) -> Parts:
    """Cache TTLs over drain times, and the hold time from which a tier costs less than the tier above it."""
    flash, disk = balanced_hold_s(inputs.tlc, inputs.tlc_bw, inputs.one), balanced_hold_s(inputs.disk, inputs.disk_bw, inputs.one)
    return {
        "5 min over flash's drain": inputs.short / flash,
        "1 h over disk's drain": inputs.long / disk,
        "1 h over flash's drain": inputs.long / flash,
        "flash costs less than DDR from": inputs.tlc_price * flash / inputs.ddr_price,
        "disk costs less than flash from": inputs.disk_price * disk / inputs.tlc_price,
    }


@recomputes("KT-11")
def price_of_time_to_live(inputs: ClaimInputs) -> Parts:
    """KV in HBM that the 1-hour premium pays for, and the 5-minute premium over the cost of the lecture's KV in HBM."""
    holding = inputs.chip_price / inputs.hbm
    longer = (inputs.write_1h - inputs.write_5min) / ((inputs.long - inputs.short) * holding)
    premium = inputs.write_5min - inputs.input
    short_fee = (inputs.kv_bytes * holding) * inputs.short
    return {
        "KV that 55 more minutes pay for": longer,
        "5 min of the lecture's KV": per_mtok(short_fee),
        "premium of 5 min": per_mtok(premium),
        "premium over cost": (premium / (inputs.short * holding)) / inputs.kv_bytes,
    }


@recomputes("KT-12")
def break_even_of_hbm(inputs: ClaimInputs) -> Parts:
    """Longest hold at which HBM costs less than recomputing: by the identity, and directly."""
    holding = inputs.chip_price / inputs.hbm
    direct = break_even_hold_s(inputs.one, _recompute(inputs), NO_COST, NO_COST, inputs.kv_bytes, holding)
    identity = crossing_hold_s(inputs.crossing, inputs.drain)
    return {
        "crossing x 20 ms": identity,
        "crossing x 15 ms": crossing_hold_s(inputs.crossing, inputs.shorter_drain),
        "directly": direct,
        "directly over the identity": direct / identity,
    }


def _cost(inputs: ClaimInputs, batch: Number, context: Token) -> SecondPerToken:
    """Machine time per output token by the step model."""
    return machine_s_per_token(overlapped_step_s(*terms(inputs, batch, context)), batch)


@recomputes("AP-01")
def step_at_200k(inputs: ClaimInputs) -> Parts:
    """List price of a long context over a short context."""
    return {"input": inputs.long_input / inputs.input, "output": inputs.long_output / inputs.output}


@recomputes("AP-02")
def cost_against_context(inputs: ClaimInputs) -> Parts:
    """Cost per token against context: flat below the knee, then the memory line (an offset plus a slope)."""
    weights = weights_s(inputs)
    lines = [
        memory_s(weights, kv_s(inputs, inputs.batch, context))
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
def kv_behind_the_step(inputs: ClaimInputs) -> Parts:
    """KV bytes per token if KV reads take the time of compute at the price step, with one byte per weight."""
    return {"KV bytes per token": kv_of_crossing(inputs.active, inputs.weight_byte, inputs.ratio, inputs.crossing)}


@recomputes("AP-05")
def kv_by_weight_width(inputs: ClaimInputs) -> Parts:
    """KV bytes per token implied by the price step, by bytes per weight, and with GB200's peak and bandwidth."""
    figures = {f"{name} byte weights": kv_of_crossing(inputs.active, width, inputs.ratio, inputs.crossing) for name, width in
             (("0.5", inputs.fp4), ("1", inputs.fp8), ("2", inputs.bf16))}  # fmt: skip
    gb200_kv = kv_of_crossing(inputs.active, inputs.fp8, hardware_ratio(inputs.fp8, inputs.peak, inputs.mem_bw), inputs.crossing)
    by_times = kv_at_knee(token_s(inputs), inputs.mem_bw, inputs.crossing)
    return figures | {"1 byte weights, GB200's ratio": gb200_kv, "the same over by its times": gb200_kv / by_times}


@recomputes("AP-06")
def kv_of_one_layer(inputs: ClaimInputs) -> Parts:
    """KV bytes per token of layers with a cache of their own, of eight KV heads of dimension 128."""
    elements = kv_elements(inputs.heads, inputs.head_width, inputs.head_width, 1) * inputs.layers
    return {"1-byte KV": kv_bytes(elements, inputs.fp8), "2-byte KV": kv_bytes(elements, inputs.bf16)}


@recomputes("AP-08")
def sharing_across_layers(inputs: ClaimInputs) -> Parts:
    """KV stored and read by layers that share one KV cache, over layers that do not."""
    dense = kv_elements(inputs.heads, inputs.head_width, inputs.head_width, inputs.own)
    return {
        "stored": kv_elements(inputs.heads, inputs.head_width, inputs.head_width, inputs.share) / dense,
        "read": kv_elements_read(inputs.heads, inputs.head_width, inputs.head_width) / dense,
    }


@recomputes("AP-09")
def sparsity_of_attention(inputs: ClaimInputs) -> Parts:
    """Factor by which attention would have to reduce KV reads."""
    llama = kv_bytes(kv_elements(inputs.heads, inputs.head_width, inputs.head_width, inputs.own) * inputs.layers, inputs.byte)
    implied = kv_of_crossing(inputs.active, inputs.byte, inputs.ratio, inputs.crossing)
    return {"Llama-3.1-70B, int8": llama / implied, "DeepSeek-V3, fp8": inputs.dsv3 / implied}


@recomputes("AP-10")
def output_over_input(inputs: ClaimInputs) -> Parts:
    """List price of output over input."""
    return {
        "Claude": inputs.claude_output / inputs.claude_input,
        "Gemini 3.1 Pro, up to 200 K": inputs.output / inputs.input,
        "Gemini 3.1 Pro, above 200 K": inputs.long_output / inputs.long_input,
    }


@recomputes("AP-11")
def time_by_length_of_pass(inputs: ClaimInputs) -> Parts:
    """Machine time per token of a pass over several tokens per sequence, and of a decode step."""

    def a_token(length: Token) -> SecondPerToken:
        tokens, memory = inputs.batch * length, memory_s(weights_s(inputs), kv_s(inputs, inputs.batch, inputs.context))
        return machine_s_per_token(roofline_s(compute_s(inputs, tokens), memory), tokens)

    return {
        "length 1 over a decode step": a_token(inputs.one) / _cost(inputs, inputs.batch, inputs.context),
        "length 1": a_token(inputs.one),
        "a pass over a prompt": a_token(inputs.length),
        "a pass over a prompt over compute alone": a_token(inputs.length) / token_s(inputs),
    }


@recomputes("AP-12")
def decode_mfu_from_prices(inputs: ClaimInputs) -> Parts:
    """Memory over compute time of a decode step implied by the price ratio, the resulting MFU, and the balanced pass length."""
    ratio = inputs.output / inputs.input
    compute = compute_s(inputs, inputs.batch)
    memory = compute * ratio
    longer = compute_s(inputs, inputs.batch * ratio)
    return {
        "memory over compute": ratio,
        "decode MFU over prefill MFU": mfu(compute, roofline_s(compute, memory)),
        "compute over memory at that length of pass": longer / memory,
    }


@recomputes("AP-13")
def both_at_once(inputs: ClaimInputs) -> Parts:
    """Batch and cost step that claims AP-04 and AP-12 imply together, and the KV that fits a given price step."""
    ratio, step = inputs.output / inputs.input, inputs.long_output / inputs.short_output
    balanced = balance(inputs)
    batch, weights = balanced / ratio, weights_s(inputs)
    kv = kv_at_knee(token_s(inputs), inputs.mem_bw, inputs.crossing)
    compute = compute_s(inputs, batch)
    long = overlapped_step_s(compute, weights, batch_kv_s(batch, inputs.crossing, kv, inputs.mem_bw))
    joint = {name: kv_joint(kv_of_crossing(inputs.guess, inputs.weight_byte, inputs.ratio, at), step, ratio) for name, at in
             (("200 K", inputs.crossing), ("500 K", inputs.farther), ("1 M", inputs.farthest))}  # fmt: skip
    return {
        "batch": inputs.board_batch / ratio,
        "cost at 200 K over at short contexts": long / roofline_s(compute, weights),
        **{f"joint KV, step at {name}": value for name, value in joint.items()},
    }


@recomputes("AP-14")
def what_the_step_covers(inputs: ClaimInputs) -> Parts:
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
def cache_hit(inputs: ClaimInputs) -> Parts:
    """List prices over the price of a cached token."""
    return {
        "over base input": inputs.input / inputs.read,
        "over the 5-min write": inputs.write_5min / inputs.read,
        "over the 1-h write": inputs.write_1h / inputs.read,
    }


@recomputes("AP-16")
def multipliers(inputs: ClaimInputs) -> Parts:
    """Cache list prices over the base input price."""
    return {
        "5-min write": inputs.write_5min / inputs.input,
        "1-h write": inputs.write_1h / inputs.input,
        "cached token": inputs.read / inputs.input,
    }


@recomputes("AP-17")
def break_even(inputs: ClaimInputs) -> Parts:
    """Reads within the TTL from which a cache write pays."""
    read = inputs.read / inputs.input
    short, long = (break_even_reads(write / inputs.input, read) for write in (inputs.write_5min, inputs.write_1h))
    return {"5 min": short, "1 h": long, "5 min, whole": whole_reads(short), "1 h, whole": whole_reads(long)}


@recomputes("AP-19")
def kv_behind_the_discount(inputs: ClaimInputs) -> Parts:
    """KV bytes per token if the cached price were load time, and recompute over load time of the lecture's KV."""
    share, again = inputs.read / inputs.input, token_s(inputs)
    return {
        "via PCIe": share * again * inputs.pcie,
        "via flash": share * again * inputs.flash,
        "recompute over load at 1667 B": again / cached_token_s(inputs.kv_bytes, inputs.pcie),
    }


@recomputes("AP-20")
def what_limits(inputs: ClaimInputs) -> Parts:
    """Memory over compute time of a prefill pass, and of a decode step."""
    weights = weights_s(inputs)

    def memory_over_compute(sequences: Number, tokens: Token) -> Any:
        kv = kv_s(inputs, sequences, inputs.context)
        return memory_s(weights, kv) / compute_s(inputs, tokens)

    return {"a prompt": memory_over_compute(inputs.one, inputs.length), "a decode step": memory_over_compute(inputs.batch, inputs.batch)}


def _step(inputs: ClaimInputs, batch: Number, mem_bw: BytePerSecond) -> Any:
    """Step time without KV reads."""
    return roofline_s(compute_s(inputs, batch), latency_floor_s(inputs.total, inputs.weight_byte, mem_bw))


@recomputes("FM-01")
def price_of_fast_mode(inputs: ClaimInputs) -> Parts:
    """List price of the fast mode over the standard mode."""
    return {
        "input": inputs.fast_input / inputs.standard_input,
        "output": inputs.fast_output / inputs.standard_output,
        "a later model's": inputs.later_fast / inputs.later_standard,
    }


@recomputes("FM-02")
def batches_behind_the_prices(inputs: ClaimInputs) -> Parts:
    """Slow over fast batch implied by the prices, and the identity over the batches of two modelled steps with KV."""
    fast, slow = (overlapped_step_s(*terms(inputs, batch, inputs.context)) for batch in (inputs.small, inputs.large))
    price = machine_s_per_token(fast, inputs.small) / machine_s_per_token(slow, inputs.large)
    return {
        "slow batch over fast batch": batch_ratio_identity(inputs.price_ratio, inputs.speed_ratio),
        "identity over the batches themselves": batch_ratio_identity(price, slow / fast) / (inputs.large / inputs.small),
    }


@recomputes("FM-03")
def closed_solution(inputs: ClaimInputs) -> Parts:
    """Standard and fast batch over the balanced batch, and their speed and price ratios by the step model."""
    balanced = balance(inputs)
    standard, fast = inputs.speed_ratio * balanced, balanced / inputs.price_ratio
    slow_step, fast_step = _step(inputs, standard, inputs.mem_bw), _step(inputs, fast, inputs.mem_bw)
    return {
        "standard batch over balanced": standard / balanced,
        "fast batch over balanced": fast / balanced,
        "speed by the step model": slow_step / fast_step,
        "price by the step model": machine_s_per_token(fast_step, fast) / machine_s_per_token(slow_step, standard),
        "fast step over the latency floor": fast_step / weights_s(inputs),
        "fast batch": fast,
    }


@recomputes("FM-04")
def floor_of_speed(inputs: ClaimInputs) -> Parts:
    """Speed over the standard tier at 1/100 of the balanced batch: on this machine, and with twice the bandwidth."""
    balanced = balance(inputs)
    standard = _step(inputs, inputs.speed_ratio * balanced, inputs.mem_bw)
    least = balanced / inputs.price_ratio
    return {
        "speed at 100 times the price": standard / _step(inputs, least, inputs.mem_bw),
        "speed with twice the bandwidth": standard / _step(inputs, least, inputs.mem_bw * inputs.twice),
    }


@recomputes("FM-05")
def slow_mode_saves(inputs: ClaimInputs) -> Parts:
    """Least machine time per token over that of a tier above the balanced batch, and savings from two smaller batches."""

    def best_and_actual(batch: Number, context: Token) -> tuple[SecondPerToken, SecondPerToken]:
        floor = machine_s_per_token_floor(token_s(inputs), kv_s_per_token(context, inputs.kv_bytes, inputs.mem_bw))
        return floor, _cost(inputs, batch, context)

    balanced = balance(inputs)
    best, standard = best_and_actual(inputs.speed_ratio * balanced, inputs.short)
    below, busy = best_and_actual(balanced / inputs.half, inputs.short), best_and_actual(inputs.batch, inputs.context)
    return {
        "cheapest over standard, above the balanced batch": best / standard,
        "saved, at half the balanced batch": slow_tier_saving(below[1], below[0]),
        "saved, 2,400 sequences of 8k": slow_tier_saving(busy[1], busy[0]),
    }


@recomputes("FM-06")
def drafts_as_a_lever(inputs: ClaimInputs) -> Parts:
    """Tokens per step with one draft token, and measured cost without drafts over with drafts, at equal speed."""
    return {
        "tokens per step, one draft": inputs.own + inputs.accepted,
        "cost without drafts over with": inputs.usd_without / inputs.usd_with,
    }
