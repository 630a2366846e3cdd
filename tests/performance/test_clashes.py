"""Profiles of one deployment that contradict each other, by hand: two estimates of one factor, each of many exact runs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from headway.performance.calibration.key import RunKey
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.posterior import PRIOR, posterior

KEY = RunKey(model="llama-3.1-70b", chip="h100_sxm", chips=8, layout="tp=8", weights="bf16", kv="bf16", engine="vllm")
STEP = (1.0, 0.0, 0.0, 0.0, 0.0)


def runs(profile: str, ratio: float, count: int = 8) -> list[Observation]:
    return [
        Observation(run=f"{profile}:{place}", key=KEY, month="2026-11-20", quantity="tpot", slopes=STEP, excess=math.log(ratio))
        for place in range(count)
    ]


def test_clash__of_two_profiles_is_named_and_widens() -> None:
    alone, both = posterior(runs("a", 1.0), KEY, "2026-11-20"), posterior(runs("a", 1.0) + runs("b", 1.5), KEY, "2026-11-20")
    assert alone.clash is None and both.clash is not None
    assert set(both.clash.profiles) == {"a", "b"} and both.clash.deviations > 3
    # each shrinks a little to 1, so that they are nearly as far apart as they say
    assert abs(both.clash.apart) == pytest.approx(math.log(1.5), rel=0.1)
    far, near = math.log(1.5) - both.mean[0], both.mean[0]  # of each from both together, which a Student t puts near one of them
    added = both.covariance[0, 0] - alone.covariance[0, 0]
    assert added == pytest.approx((far**2 + near**2) / 2, rel=0.1)
    assert both.mean[0] + 1.645 * math.sqrt(both.covariance[0, 0]) > math.log(1.5)  # either may hold
    assert both.mean[0] - 1.645 * math.sqrt(both.covariance[0, 0]) < 0
    assert "a and b contradict each other (1." in both.clash.text


def test_clash__is_none_of_profiles_that_agree_nor_of_one_that_scatters() -> None:
    near = posterior(runs("a", 1.0) + runs("b", 1.03), KEY, "2026-11-20")
    assert near.clash is None
    one = posterior(runs("a", 1.0) + runs("a", 1.5), KEY, "2026-11-20")
    assert one.clash is None  # within a profile `calibrate` tells it


def test_clash__is_none_of_runs_that_say_nothing_here() -> None:
    other = [Observation(run="b:0", key=replace(KEY, engine="sglang"), month="", quantity="tpot", slopes=STEP, excess=0.7)]
    both = posterior(runs("a", 1.0) + other, KEY, "2026-11-20")
    assert both.clash is None
    np.testing.assert_array_equal(both.covariance, posterior(runs("a", 1.0), KEY, "2026-11-20").covariance)
    assert both.covariance[1, 1] == pytest.approx(PRIOR["fixed"] ** 2)
