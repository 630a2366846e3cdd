"""Widths of intervals from few kinds of rows: shrunk to what quantities alike have, and covering what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from headway.evidence.fit.result import pooled_widths

NORMAL_90 = 1.6448536269514722
STEPS = ("decode", "prefill", "tpot", "offline")


def test_pooled_widths__many_kinds_keep_their_own() -> None:
    halves = dict(zip(STEPS, (0.3, 0.5, 0.4, 0.2), strict=True))
    assert pooled_widths(halves, dict.fromkeys(STEPS, 2000)) == pytest.approx(halves, rel=0.02)


def test_pooled_widths__two_kinds_lean_on_the_others() -> None:
    halves, kinds = dict(zip(STEPS, (0.4, 0.4, 0.4, 1.5), strict=True)), dict(zip(STEPS, (40, 40, 40, 2), strict=True))
    assert 0.4 < pooled_widths(halves, kinds)["offline"] < 1.0
    waits = pooled_widths(halves | {"ttft": 1.2}, kinds | {"ttft": 40})
    assert waits["offline"] == pytest.approx(pooled_widths(halves, kinds)["offline"])  # waits say nothing of steps
    assert waits["ttft"] == pytest.approx(1.2, rel=0.05)


def test_pooled_widths__cover_nine_tenths_where_little_was_seen() -> None:
    """Kinds err normally with one spread for all quantities; each spread is known from a few kinds."""
    random, held = np.random.default_rng(3), []
    for _ in range(400):
        seen = {key: random.normal(0.0, 0.2, count) for key, count in zip(STEPS, (30, 30, 30, 3), strict=True)}
        halves = {key: NORMAL_90 * float(np.sqrt(np.mean(errors**2))) for key, errors in seen.items()}
        width = pooled_widths(halves, {key: len(errors) for key, errors in seen.items()})["offline"]
        held.append(np.mean(np.abs(random.normal(0.0, 0.2, 200)) <= width))
    assert 0.86 < float(np.mean(held)) < 0.96
