"""Ranges of facts of chips, systems and memories, declared once: a number typed without a unit that is below any known device lacks it."""

from __future__ import annotations

from headway.core.schema import Field

PETABYTE = 1e15


def memory_size(text: str, usual: str = "GB", bare_least: float = 1e6) -> Field:
    """Field of a memory's size."""
    return Field("byte", text, bare_least=bare_least, high=1e3 * PETABYTE, usual=(usual,))


def bandwidth(text: str) -> Field:
    """Field of a memory's bandwidth."""
    return Field("byte/s", text, bare_least=1e6, high=1e3 * PETABYTE, usual=("TB/s", "GB/s"))


def link(text: str) -> Field:
    """Field of a link's bandwidth."""
    return Field("byte/s", text, bare_least=1e5, high=1e3 * PETABYTE, usual=("GB/s",))


def peak_rate(text: str) -> Field:
    """Field of a peak rate of arithmetic."""
    return Field("flop/s", text, bare_least=1e8, high=1e24, usual=("PFLOPS", "TFLOPS"))
