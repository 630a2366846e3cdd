"""Limits on means and percentiles: read from flags, refused where they make no sense."""

from __future__ import annotations

import pytest

from headway.core import schema
from headway.core.errors import BadValue, HeadwayError
from headway.core.question import from_words
from headway.simulation.check.limits import (
    LatencyLimits,
    check_limits,
    check_requests,
    idle_limits,
    least_requests,
    limit_of,
    read_limits,
)


def read(*words: str) -> LatencyLimits:
    return read_limits(from_words(["plan", "llama-3.1-8b", "--on", "h100", *words]))


def test_limits__flags_give_quantity_statistic_and_value() -> None:
    limits = list(read("--ttft-p95", "1.5s", "--tpot", "40ms", "--itl-p99", "200ms", "--e2e", "30s"))
    assert [(limit.column, limit.most_s) for limit in limits] == [
        ("p95_ttft_s", 1.5), ("mean_tpot_s", 0.04), ("p99_itl_s", 0.2), ("mean_e2e_s", 30.0)
    ]  # fmt: skip
    assert [limit.flag for limit in limits] == ["--ttft-p95", "--tpot", "--itl-p99", "--e2e"]


def test_limits__every_latency_has_a_mean_and_four_percentiles() -> None:
    assert len(schema.fields(LatencyLimits)) == 4 * 5


@pytest.mark.parametrize(
    ("words", "wants"),
    [
        (("--ttft-p95", "0s"), "above 0 s"),
        (("--ttft-p95=-1s",), "above 0 s"),
        (("--tpot", "40"), "did you mean 40ms"),
        (("--itl-p50", "25s"), "did you mean 25ms"),
        (("--tpot-p95", "1s,2s"), "one time"),
        (("--e2e", "fast"), "--e2e"),
    ],
)
def test_limits__nonsense_is_refused_by_name(words: tuple[str, ...], wants: str) -> None:
    with pytest.raises(HeadwayError) as refused:
        read(*words)
    assert wants in str(refused.value) and words[0].partition("=")[0] in str(refused.value)


def test_limits__a_lower_limit_on_a_higher_percentile_is_fine() -> None:
    limits = read("--ttft-p95", "1s", "--ttft-p50", "2s", "--ttft", "3s")
    assert len(check_limits(limits, 100)) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--tpot", "50ms", "--tpot-p95", "40ms"), ["--tpot 50 ms hardly binds beside --tpot-p95 40 ms"]),
        (("--ttft", "3s", "--e2e", "2s"), ["--ttft 3 s never binds beside --e2e 2 s"]),
        (("--ttft-p95", "1s", "--ttft-p50", "2s"), ["--ttft-p50 2 s never binds beside --ttft-p95 1 s"]),
        (("--ttft-p99", "2s", "--e2e-p95", "1s"), []),  # a request may be late in TTFT alone
        (("--tpot", "40ms", "--tpot-p95", "50ms"), []),
        (("--e2e", "2s", "--ttft", "1s"), []),
    ],
)
def test_limits__one_that_another_makes_idle_is_noted(words: tuple[str, ...], says: list[str]) -> None:
    assert idle_limits(read(*words)) == says


def test_limits__two_of_one_statistic_are_refused() -> None:
    with pytest.raises(BadValue, match="one limit of p95 TTFT"):
        check_limits([limit_of("ttft_p95", 1.0), limit_of("ttft_p95", 2.0)], 100)


@pytest.mark.parametrize("name", ["tpot", "tpot_p95", "itl_p99"])
def test_limits__between_tokens_need_two_tokens(name: str) -> None:
    with pytest.raises(BadValue, match="at least 2 tokens"):
        check_limits([limit_of(name, 0.05)], 1)
    assert check_limits([limit_of("ttft_p95", 0.05)], 1)


def test_limits__percentile_beyond_the_requests_is_refused() -> None:
    """Of 90 measured requests 4.5 lie beyond the 95th percentile."""
    limits = [limit_of("ttft_p95", 1.0)]
    check_requests(limits, 112, 0.1)
    with pytest.raises(BadValue, match=r"--requests: got '100'; wants at least 112 requests for p95 TTFT"):
        check_requests(limits, 100, 0.1)
    assert least_requests([limit_of("ttft", 1.0)]) == 1
    check_requests([limit_of("ttft", 1.0)], 1, 0.0)
