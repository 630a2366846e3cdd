"""Drain time: how long a memory takes to be read once, the natural beat of a decode step."""

from __future__ import annotations

from headway.formula import formula
from headway.units import Byte, BytePerFlopRate, BytePerSecond, FlopPerByte, FlopPerSecond, Number, Second


@formula(source="capacity over bandwidth")
def drain_s(capacity: Byte, mem_bw: BytePerSecond) -> Second:
    """The time to read all of a memory once: no step that uses all of it is shorter.

    >>> round(drain_s(80e9, 3.35e12), 4)  # H100
    0.0239
    """
    return capacity / mem_bw


@formula(source="step time over drain time")
def memory_reads(step_s: Second, memory_drain_s: Second) -> Number:
    """How often a step of this length could read the whole memory: more than once means reading the same bytes again.

    >>> round(memory_reads(30e-3, 14.4e-3), 2)  # Rubin
    2.08
    """
    return step_s / memory_drain_s


@formula(source="bandwidth times time")
def bytes_read(step_s: Second, mem_bw: BytePerSecond) -> Byte:
    """What a step of this length can read at most: the weights behind a stated step time.

    >>> round(bytes_read(15.625e-3, 576e12) / 1e12, 6)  # 64 steps a second on GB200 NVL72
    9.0
    """
    return step_s * mem_bw


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29, claim FS-04: w N_t / (G BW)")
def domain_read_s(weight_bytes: Byte, chips: Number, chip_bw: BytePerSecond) -> Second:
    """The time to read the weights once with a whole scale-up domain: its size and bandwidth set the latency floor.

    >>> round(domain_read_s(671e9, 72, 8e12) * 1e3, 3)  # DeepSeek-V3, fp8, on GB200 NVL72
    1.165
    """
    return weight_bytes / (chips * chip_bw)


@formula(source="peak over bandwidth")
def flop_per_byte(peak_flops: FlopPerSecond, mem_bw: BytePerSecond) -> FlopPerByte:
    """Arithmetic that a chip can do while it reads a byte.

    >>> round(flop_per_byte(989.4e12, 3.35e12))  # H100, bf16
    295
    """
    return peak_flops / mem_bw


@formula(source="capacity over peak")
def byte_per_flop_rate(capacity: Byte, peak_flops: FlopPerSecond) -> BytePerFlopRate:
    """Memory that comes with each FLOP/s: what a generation gives to weights and context beside speed.

    >>> f"{byte_per_flop_rate(80e9, 989.4e12):.3g}"  # H100, bf16
    '8.09e-05'
    """
    return capacity / peak_flops
