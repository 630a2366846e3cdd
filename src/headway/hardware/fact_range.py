"""Ranges of facts of chips, systems and memories, declared once: no device known lies outside, so what does lacks its unit."""

from __future__ import annotations

from headway.core.schema import Field

PETABYTE = 1e15


def memory(text: str, usual: str = "GB", low: float = 1e6) -> Field:
    """Field of a memory's size."""
    return Field("byte", text, low=low, high=1e3 * PETABYTE, usual=(usual,))


def bandwidth(text: str) -> Field:
    """Field of a memory's bandwidth."""
    return Field("byte/s", text, low=1e6, high=1e3 * PETABYTE, usual=("TB/s", "GB/s"))


def link(text: str) -> Field:
    """Field of a link's bandwidth."""
    return Field("byte/s", text, low=1e5, high=1e3 * PETABYTE, usual=("GB/s",))


def peak_rate(text: str) -> Field:
    """Field of a peak rate of arithmetic."""
    return Field("flop/s", text, low=1e8, high=1e24, usual=("PFLOPS", "TFLOPS"))
