"""Roots of increasing functions, with jumps: the same for one element as among many, where places are looked at one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.laws.queueing.root import MOST_AT_ONCE, increasing_root

MANY = np.random.default_rng(20).uniform(1.0, 40.0, MOST_AT_ONCE)  # more places than are looked at at once


def excess(of: Any) -> Any:
    """Falls back where it jumps, as throughput does where a rank decodes one sequence more: the first crossing counts."""
    return lambda x: x + 3 * np.sqrt(x) / (1 + np.ceil(x / 8)) - of


def test_increasing_root__one_of_many_is_the_root_that_it_has_alone() -> None:
    roots = increasing_root(excess(MANY), 0 * MANY, MANY, -MANY)
    alone = [float(increasing_root(excess(of), 0.0, of, -of)) for of in MANY[:300]]
    assert roots[:300].tolist() == alone
    assert all(
        abs(excess(of)(root)) < 1e-9 or excess(of)(root * (1 - 1e-9)) < 0 < excess(of)(root * (1 + 1e-9))
        for of, root in zip(MANY, roots, strict=True)
    )


def test_increasing_root__of_many_ends_a_round_where_the_last_sign_has_changed() -> None:
    asked: list[float] = []

    def low_root(x: Any) -> Any:
        asked.append(float(np.max(x)))
        return x - 0.25 * MANY

    assert np.allclose(increasing_root(low_root, 0 * MANY, MANY, -0.25 * MANY), 0.25 * MANY, rtol=1e-11)
    assert max(asked) <= 0.3 * MANY.max()  # the sixth of the first places, not the fifteenth
