"""Decode replicas under arrivals: as many decode as finish per second times the time of their answers, at most all seats."""

import pytest

from headway.laws.queueing.handed import handed_decoding
from headway.laws.step.coefficients import LLAMA_70B_TP8
from headway.laws.step.step import step_s


@pytest.mark.parametrize("rate", [0.01, 1.0, 10.0, 40.0])
@pytest.mark.parametrize("accept", [1.0, 2.5])
def test_handed_decoding__by_littles_law(rate: float, accept: float) -> None:
    decoding = float(handed_decoding(LLAMA_70B_TP8, 2000, 300, accept, rate, 4096))
    token = float(step_s(LLAMA_70B_TP8, decoding, decoding * 2150, 0.0, 0.0)) / accept
    assert rate * 299 * token == pytest.approx(decoding, rel=1e-9)


def test_handed_decoding__takes_all_seats_of_a_pool_that_does_not_keep_up() -> None:
    assert float(handed_decoding(LLAMA_70B_TP8, 2000, 300, 1.0, 1e4, 64)) == 64.0
