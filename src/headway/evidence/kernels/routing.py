"""Skew of routing, from kernels of routed experts of equal shape that were measured with power-law and with balanced routing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headway.evidence.fit.result import FittedNumbers
from headway.evidence.kernels.rows import DOUBTFUL, OLD, KernelTable, shape_codes, table

POWER_LAW = "power_law_1.01"
BUSY_TOKENS = 64  # tokens of an expert from which arithmetic takes the time, so that the busiest chip shows
MEANING = "of routers: tokens^(1 - skew) evenly spread ones use as many experts, and the busiest of ep chips has (2 ep)^skew of the mean"


def routing_skew(folder: Path) -> FittedNumbers:
    """Median skew of the pairs of equal shape with many tokens, and its standard error over shapes."""
    rows = _sound(table(folder, "moe"))
    keys = ("chip", "backend", "kernel", "dtype", "hidden", "inter", "n_experts", "topk", "tp", "ep", "tokens")
    codes = shape_codes(*(getattr(rows, key) for key in keys))
    even, skewed = (np.flatnonzero(rows.distribution == name) for name in ("balanced", POWER_LAW))
    _, first, second = np.intersect1d(codes[even], codes[skewed], return_indices=True)
    even, skewed = even[first], skewed[second]
    busy = rows.tokens[even] * rows.topk[even] >= BUSY_TOKENS * rows.n_experts[even]
    even, skewed = even[busy], skewed[busy]
    skew = np.log(rows.latency_s[skewed] / rows.latency_s[even]) / np.log(2 * rows.ep[even])
    shapes = np.unique(shape_codes(*(getattr(rows, key)[even] for key in keys[:-1])), return_inverse=True)[1]
    means = np.bincount(shapes, weights=skew) / np.bincount(shapes)
    return FittedNumbers(
        section="routing.other.bf16", key="skew", value=float(np.median(skew)), unit="", error=float(means.std() / np.sqrt(len(means))),
        rows=len(skew), range="b200, h100, h200; gated experts, 64 and more tokens of an expert", meaning=MEANING,
        source="moe.parquet: NVIDIA aiconfigurator 095f58a (Apache-2.0)", date="2026-08",
    )  # fmt: skip


def _sound(rows: KernelTable) -> KernelTable:
    return rows.where((rows.level == "fused_moe") & (rows.n_mats == 3) & (rows.chip != OLD) & ((rows.flag & DOUBTFUL) == 0))
