"""The compiled loop is loaded once: a second run starts at once."""

from __future__ import annotations

import pytest

from headway.sim.fast import chosen, runner
from simulated import pace


def test_a_second_run_loads_nothing_again():
    pytest.importorskip("numba")
    law = pace("0.01 + 1e-4 * batch")
    first, second = (runner(law.source, law.step, 10, "compiled") for _ in range(2))
    assert second.step is first.step
    assert second.run_one is first.run_one


def test_many_small_runs_pay_for_compiling_together():
    pytest.importorskip("numba")
    law = pace("0.01 + 1e-4 * batch")
    assert chosen(law.source, 10_000_000, "auto") == "compiled"
    assert chosen(law.source, 10, "auto") == "auto"
    assert chosen(law.source, 10_000_000, "plain") == "plain"
