"""Drain time: how long a memory takes to be read once, the natural beat of a decode step."""

from __future__ import annotations

from headway.formula import formula
from headway.units import Byte, BytePerSecond, Number, Second


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
