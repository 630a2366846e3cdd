"""Whose kernels of routed experts run: the form in which they were fitted, and the kernel an engine selects (data/engines/experts.csv).

A table of measured kernels also holds what an engine falls back to; a line says which of them it selects, or whose stand in.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from headway.core.catalog import lines
from headway.performance.layout import Layout

TABLE = "engines/experts.csv"
BACKENDS = ("trtllm", "vllm", "sglang")  # engines whose kernels of routed experts were measured
EXCHANGING = ("vllm", "sglang")  # engines whose ranks exchange tokens by DeepEP
SPREAD_OUT = "deepep"  # its grouped kernels of routed experts
# Engines that run MXFP4 beside layers in 8 bits as other 4-bit weights below Blackwell: vLLM's oracle/mxfp4.py, sgl-project/sglang#24986.
MARLIN = (*EXCHANGING, SPREAD_OUT)
SPREAD = "no"  # of kernels whose rows count only where no rank holds some of the experts alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What an engine runs for a format on a family of chips."""

    measured: str  # form and backend of the measured kernels that count for it
    kernel: str = ""  # part of their names in the measured table; "": all of them
    without_spread: bool = False  # whether rows whose ranks hold some of the experts are left out


@functools.cache
def selected(engine: str, family: str, form: str) -> Selection:
    """Kernels of an engine; all that were measured in it where no line says which of them.

    >>> selected("sglang", "hopper", "mxfp4").measured, selected("sglang", "hopper", "fp8").measured
    ('mxfp4.vllm', 'fp8.sglang')
    """
    for line in lines(TABLE):
        if (line["engine"], line["family"], line["form"]) == (engine, family, form):
            return Selection(measured=line["measured"], kernel=line["kernel"], without_spread=line["spread"] == SPREAD)
    return Selection(measured=f"{form}.{engine}")


def expert_form(form: str, stored: str, converted: bool, backend: str, family: str, mixed: bool = False) -> str:
    """Format in which routed experts stored so were fitted, and whose kernels they are, if those were measured.

    `converted`: after training, to a scale for each tensor; checkpoints published in 8 bits have one for each block. `mixed`: the other
    layers are in 8 bits (DeepSeek-V4), not in 16 (gpt-oss, for which alone engines have kernels of Triton's).

    >>> expert_form("weight_only", "mxfp4", False, "sglang", "hopper"), expert_form("fp8", "fp8", True, "trtllm", "hopper")
    ('mxfp4.vllm', 'fp8_tensor.trtllm')
    >>> expert_form("weight_only", "mxfp4", False, "deepep", "hopper")  # none was measured: those of all engines stand in
    'mxfp4.deepep'
    >>> expert_form("weight_only", "mxfp4", False, "vllm", "hopper", mixed=True)
    'weight_only.vllm'
    """
    marlin = mixed and form == "weight_only" and backend in MARLIN
    if stored.startswith("mxfp4") and form in ("weight_only", "nvfp4") and not marlin:
        form = "mxfp4" if form == "weight_only" else "mxfp4_a8"
    if backend == SPREAD_OUT:
        return f"{form}.{backend}"
    if form == "fp8" and converted:
        form = "fp8_tensor"
    return selected(backend, family, form).measured if backend in BACKENDS else form


def expert_backend(engine: str, layout: Layout) -> str:
    """Whose kernels of routed experts run: where ranks with attention of their own exchange tokens, those made for the exchange."""
    spread = bool(np.all(np.logical_and(np.greater(layout.dp, 1), np.greater(layout.ep, 1))))
    return SPREAD_OUT if spread and engine in EXCHANGING else engine
