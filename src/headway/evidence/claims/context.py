"""Claims on long context and KV storage: attention compute, contexts that fit, cost and drain time of memory tiers (CW, KT)."""

from __future__ import annotations

from typing import Any

from headway.core.quantity import known
from headway.evidence.claims.claim import Parts, recomputes
from headway.laws.architecture.kv import kv_bytes, kv_elements
from headway.laws.economics.cost import cached_token_s
from headway.laws.roofline.balance import (
    attention_crossover_context,
    attention_flop_per_cached_byte,
    capacity_batch,
    capacity_context,
    compute_s_per_token,
    drain_s,
    kv_s_per_token,
)
from headway.laws.roofline.batch_step import batch_kv_s, context_multiple, crossing_hold_s
from headway.laws.tiers import balanced_hold_s, break_even_hold_s, holding_usd, per_mtok


@recomputes("CW-02")
def attention_compute_matters(inputs: Any) -> Parts:
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
def memory_slope_is_steeper(inputs: Any) -> Parts:
    """Memory slope over compute slope of attention, by query heads per KV head."""

    def slope(heads: Any, qk: Any, value: Any, cached: Any) -> Any:
        return inputs.peak / inputs.mem_bw / attention_flop_per_cached_byte(heads, qk, value, cached, inputs.kv_byte)

    return {
        "1 query head": slope(inputs.mha, inputs.head_width, inputs.head_width, inputs.cached_width),
        "8 query heads": slope(inputs.gqa_8, inputs.head_width, inputs.head_width, inputs.cached_width),
        "16 query heads": slope(inputs.gqa_16, inputs.head_width, inputs.head_width, inputs.cached_width),
        "128 query heads": slope(inputs.mqa_128, inputs.head_width, inputs.head_width, inputs.cached_width),
        "DeepSeek-V3, absorbed": slope(inputs.mqa_128, inputs.latent_width, inputs.latent_value, inputs.latent_width),
    }


@recomputes("CW-04")
def month_of_work(inputs: Any) -> Parts:
    """KV of a sequence of a month's work, and the time to read it once."""
    llama = kv_bytes(kv_elements(inputs.heads, inputs.head_width, inputs.head_width, inputs.own) * inputs.layers, inputs.byte)
    return {
        "the lecture's KV": inputs.context * inputs.guess,
        "DeepSeek-V3, fp8": inputs.context * inputs.dsv3,
        "Llama-3.1-70B, int8": inputs.context * llama,
        "reading the lecture's KV": batch_kv_s(inputs.one, inputs.context, inputs.guess, inputs.mem_bw),
    }


@recomputes("CW-05")
def relief_of_the_root(inputs: Any) -> Parts:
    """Cost per token at a month's context over cost at the crossing."""
    return {
        "dense": context_multiple(inputs.context, inputs.crossing, inputs.dense),
        "square root": context_multiple(inputs.context, inputs.crossing, inputs.root),
    }


@recomputes("CW-06")
def limits_of_context(inputs: Any) -> Parts:
    """KV read time over weight compute and over attention compute at a month's context, and sequences that fit in memory."""
    kv = kv_s_per_token(inputs.context, inputs.kv_bytes, inputs.mem_bw)
    flop = attention_flop_per_cached_byte(inputs.heads, inputs.latent_width, inputs.latent_value, inputs.latent_width, inputs.byte)
    return {
        "KV reads over the arithmetic of weights": kv / compute_s_per_token(inputs.active, inputs.peak),
        "KV reads over the arithmetic of attention": inputs.peak / inputs.mem_bw / flop,
        "sequences that fit": capacity_batch(inputs.hbm, inputs.total * inputs.byte, inputs.context, inputs.kv_bytes),
    }


@recomputes("CW-07")
def longest_context(inputs: Any) -> Parts:
    """Longest context that fits, at the board's batch and at the balanced batch."""
    weights = inputs.total * inputs.weight_byte
    return {
        "longest context": capacity_context(inputs.hbm, weights, inputs.batch, inputs.kv_bytes),
        "with the larger batch": capacity_context(inputs.hbm, weights, inputs.larger_batch, inputs.kv_bytes),
    }


NO_COST = known(0.0, "loading and writing", "USD/token", "constant", "left out, as in the lecture")


def _recompute(inputs: Any) -> Any:
    """Cost of recomputing a token."""
    return compute_s_per_token(inputs.active, inputs.peak) * inputs.chip_price


def _holding_per_mtok(inputs: Any, holding: Any) -> Any:
    """Cost of holding the KV of a million tokens for a time."""
    return per_mtok((inputs.kv_bytes * holding) * inputs.hold)


@recomputes("KT-01")
def rematerialise(inputs: Any) -> Parts:
    """Cost of recomputing a million tokens."""
    return {"retrieve": per_mtok(_recompute(inputs))}


@recomputes("KT-02")
def hold_in_hbm(inputs: Any) -> Parts:
    """Cost of holding the KV of a million tokens in HBM for an hour."""
    return {"hold for 1 h": _holding_per_mtok(inputs, inputs.chip_price / inputs.hbm)}


@recomputes("KT-03")
def hold_in_ddr(inputs: Any) -> Parts:
    """Cost per million tokens of holding KV in a server's DDR for an hour, and of reading it if only the memory is paid for."""
    holding = holding_usd(inputs.price, inputs.overhead, inputs.life)
    return {
        "hold for 1 h": _holding_per_mtok(inputs, holding),
        "retrieve": per_mtok(cached_token_s(inputs.kv_bytes, inputs.bandwidth) * (holding * inputs.size)),
    }


@recomputes("KT-04")
def down_the_hierarchy(inputs: Any) -> Parts:
    """Holding cost of each tier over the next tier's, and retrieval cost of the next tier over this tier's."""
    hbm = inputs.chip_price / inputs.hbm
    ddr, flash, disk = (
        holding_usd(price, inputs.overhead, inputs.life) for price in (inputs.ddr_price, inputs.tlc_price, inputs.disk_price)
    )

    def read(holding: Any, size: Any, bandwidth: Any) -> Any:
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
def balanced_hold(inputs: Any) -> Parts:
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
def drain_of_hbm(inputs: Any) -> Parts:
    """Drain time of HBM."""
    return {
        "H100": drain_s(inputs.h100, inputs.h100_bw),
        "B200": drain_s(inputs.b200, inputs.b200_bw),
        "B300": drain_s(inputs.b300, inputs.b300_bw),
        "Rubin": drain_s(inputs.rubin, inputs.rubin_bw),
    }


@recomputes("KT-07")
def drain_of_ddr(inputs: Any) -> Parts:
    """Drain time of host memory."""
    channels, links = drain_s(inputs.ddr, inputs.ddr_bw), drain_s(inputs.ddr, inputs.pcie_bw)
    return {"Grace": drain_s(inputs.grace, inputs.grace_bw), "2 TB, its channels": channels, "2 TB over PCIe": links}


@recomputes("KT-08")
def drain_of_flash(inputs: Any) -> Parts:
    """Drain time of NVMe flash drives."""
    return {
        "TLC 3.84 TB, 7 GB/s": drain_s(inputs.small, inputs.slow_bw),
        "TLC 30.72 TB, 7 GB/s": drain_s(inputs.large, inputs.slow_bw),
        "QLC 122.88 TB, 7 GB/s": drain_s(inputs.qlc, inputs.slow_bw),
        "TLC 3.84 TB, 14 GB/s": drain_s(inputs.small, inputs.fast_bw),
        "TLC 30.72 TB, 14 GB/s": drain_s(inputs.large, inputs.fast_bw),
    }


@recomputes("KT-09")
def drain_of_disk(inputs: Any) -> Parts:
    """Drain time of spinning disks."""
    return {"20 TB": drain_s(inputs.size, inputs.bandwidth), "4 TB": drain_s(inputs.old_size, inputs.old_bandwidth)}


@recomputes("KT-10")
def tiers_from_ttl(inputs: Any) -> Parts:
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
def price_of_time_to_live(inputs: Any) -> Parts:
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
def break_even_of_hbm(inputs: Any) -> Parts:
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
