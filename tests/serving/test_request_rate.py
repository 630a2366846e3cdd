"""A rate of requests, whole numbers of chips, limits beyond TTFT and TPOT: against brute force and arithmetic."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from headway.core.errors import HeadwayError
from headway.laws.serving.replicas import nodes_needed, replicas_held
from headway.models.precision import Precision
from headway.performance.layout import Layout
from headway.performance.workload import SLO, Load
from headway.serving.serve import serve
from support.command import Cli
from support.one_pool import plan

SHORT = Load(prompt=2000, output=300)
BUSY = Load(prompt=2000, output=300, rate=40.0)


def test_nodes_needed__fewest_that_hold_the_replicas() -> None:
    for domain, replica, count in itertools.product((4, 8, 9), (1, 2, 3, 4, 12, 16, 18), range(1, 30)):
        fewest = next(nodes for nodes in itertools.count(1) if replicas_held(nodes * domain, domain, replica) >= count)
        assert nodes_needed(count, domain, replica) == fewest


def test_rate__bare_chip_gets_the_fewest_nodes_of_brute_force() -> None:
    """Brute force: each layout in whole nodes by `serve` at the rate, until its times keep the limits."""
    answer = plan("llama-3.1-70b", "h200-sxm", BUSY, ttft="1s", tpot="30ms", disaggregate="never")
    best = answer.table.row(0)
    fewest = math.inf
    for tp, pp, kv in itertools.product((1, 2, 4, 8), (1, 2, 3, 4, 5, 6, 7, 8), ("bf16", "fp8")):
        if tp * pp > 8:
            continue
        shares = [40.0 / (nodes * (8 // (tp * pp))) for nodes in range(1, 9)]  # replicas are alike, and share the rate
        alone = serve(
            "llama-3.1-70b", f"{tp * pp}xh200-sxm", Layout(tp=tp, pp=pp), rate=shares, prompt=2000, output=300, precision=Precision(kv=kv)
        )
        for nodes, row in enumerate(alone.rows(), start=1):
            if row["fits"] and row["utilisation"] < 1 and row["ttft_s"] <= 1 and row["tpot_s"] <= 0.030:
                fewest = min(fewest, nodes * 8)
                break
    assert best["chips"] == fewest and best["system"] == f"{fewest}xh200-sxm"
    assert best["utilisation"] == pytest.approx(40 / best["capacity_req_per_s"], rel=1e-12) and best["utilisation"] < 1
    assert best["rate"] == 40 and answer.fails == "" and best["tok_per_s"] == pytest.approx(40 * 300, rel=1e-12)
    full = (2000 * best["usd_per_mtok_in"] + 300 * best["usd_per_mtok_out"]) / 1e6
    assert answer.answer["value"] == pytest.approx(full, rel=1e-9)  # what is idle is paid for at this load
    layout = Layout(**{key: best[key] for key in ("tp", "pp", "dp", "ep", "replicas")})
    again = serve("llama-3.1-70b", best["system"], layout, rate=40.0, prompt=2000, output=300, precision=Precision(kv=best["kv"])).row(0)
    for key in ("ttft_s", "tpot_s", "capacity_req_per_s", "usd_per_mtok_out"):
        assert again[key] == pytest.approx(best[key], rel=1e-12)


@pytest.mark.parametrize("disaggregate", [False, True])
def test_rate__bare_chip_takes_several_domains_per_replica(disaggregate: bool) -> None:
    """DeepSeek-V3's 671 GB of fp8 do not fit in a node of eight H100: each replica takes two nodes or more."""
    load = Load(prompt=1000, output=500, rate=10.0)
    answer = plan("deepseek-v3", "h100-sxm", load, tpot="60ms", disaggregate=disaggregate)
    best = answer.table.row(0)
    replica = best["tp"] * best["dp"] * best["pp"]
    assert answer.fails == "" and best["fits"] and replica > 8 and replica % 8 == 0
    assert best["capacity_req_per_s"] >= 10 * (1 - 1e-12) and best["chips"] % 8 == 0
    own = best["replicas"] * replica
    pool = best["prefill_tp"] * best["prefill_dp"] * best["prefill_pp"] * best["prefill_replicas"] if disaggregate else 0
    assert best["chips"] == own + pool


def test_infeasible__memory_on_any_number_of_chips() -> None:
    answer = plan("deepseek-v3", "h100-sxm", Load(prompt=1000, output=500, rate=10.0), ways={"tp": 1, "dp": 1, "pp": 1})
    assert answer.fails == "memory" and "weights need" in answer.infeasible


def test_rate__above_capacity_is_infeasible_with_the_number() -> None:
    answer = plan("llama-3.1-70b", "8xh200-sxm", BUSY, ttft="1s", tpot="30ms", disaggregate="never")
    limits: Any = {"ttft": "1s", "tpot": "30ms", "disaggregate": "never"}
    most = plan("llama-3.1-70b", "8xh200-sxm", SHORT, objective="throughput", **limits).table.row(0)
    assert answer.fails == "rate" and not answer.table.row(0)["fits"]
    assert answer.table.row(0)["capacity_req_per_s"] == pytest.approx(most["capacity_req_per_s"], rel=1e-12)
    assert f"{most['capacity_req_per_s']:.3g}" in answer.infeasible and "40" in answer.infeasible


def test_rate__within_capacity_gives_utilisation() -> None:
    load = Load(prompt=2000, output=300, rate=4.0)
    one = plan("llama-3.1-70b", "8xh200-sxm", load, ttft="1s", tpot="30ms", elasticities=False).table.row(0)
    assert one["fits"] and one["utilisation"] == pytest.approx(4 / one["capacity_req_per_s"])
    fast = plan("llama-3.1-70b", "8xh200-sxm", load, objective="latency", elasticities=False).table.row(0)
    free = plan("llama-3.1-70b", "8xh200-sxm", SHORT, objective="latency", elasticities=False).table.row(0)
    assert fast["utilisation"] <= 1 and fast["tpot_s"] > free["tpot_s"] and free["batch"] == 1


def test_objective__chips_is_the_fewest_of_machine_and_bare_chip() -> None:
    load = Load(prompt=2000, output=300, rate=4.0)
    used = plan("llama-3.1-70b", "8xh200-sxm", load, tpot="30ms", objective="chips").table.row(0)
    bare = plan("llama-3.1-70b", "h200-sxm", load, tpot="30ms", objective="chips").table.row(0)
    assert (
        used["chips"] - used["chips_idle"] <= bare["chips"] == 8
    )  # clouds rent 1 or 8 h200, so that a replica of two takes a whole node, which holds as many replicas as it has room for
    least = plan("llama-3.1-8b", "h200-sxm", SHORT, objective="chips").table.row(0)
    assert least["chips"] == 1 and plan("llama-3.1-8b", "mi300x", SHORT, objective="chips").table.row(0)["chips"] == 8
    assert plan("llama-3.1-70b", "8xh200-sxm", SHORT, objective="chips").table.row(0)["chips_idle"] == 6


@pytest.mark.parametrize("objective", ["cost", "throughput", "latency", "chips"])
def test_plan__every_slo_is_met_and_the_answer_repeats(objective: str) -> None:
    slo = SLO(ttft=2.0, tpot=0.06, tpot_decode=0.05, e2e=30.0)
    load = Load(prompt=4000, output=1000)
    one, two = (plan("llama-3.1-70b", "8xh100-sxm", load, slo, objective=objective, elasticities=False).rows() for _ in range(2))
    assert one == two and one[0]["fits"]
    assert one[0]["tpot_s"] <= 0.06 and one[0]["tpot_decode_s"] <= 0.05 and one[0]["e2e_s"] <= 30
    assert one[0]["e2e_s"] == pytest.approx(one[0]["ttft_s"] + 999 * one[0]["tpot_s"], rel=1e-12)


def test_slo__decode_tpot_and_e2e_limits_bind() -> None:
    load = Load(prompt=4000, output=1000)
    free = plan("llama-3.1-70b", "8xh100-sxm", load, elasticities=False).table.row(0)
    for key, limit in (("tpot_decode", free["tpot_decode_s"] / 2), ("e2e", free["e2e_s"] / 2)):
        held = plan("llama-3.1-70b", "8xh100-sxm", load, **{key: limit}, elasticities=False).table.row(0)  # type: ignore[arg-type]
        assert held["fits"] and limit * 0.8 < held[f"{key}_s"] <= limit
    answer = plan("llama-3.1-70b", "8xh100-sxm", load, e2e="1s")
    assert answer.fails == "time" and answer.infeasible.startswith("E2E")
    assert plan("deepseek-v3", "4xh100-sxm", load).fails == "memory"


def test_tpot__littles_law_in_steady_state() -> None:
    """Little's law: users are as many as requests per second times the time of each; those who decode, by the time they decode."""
    row = serve("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), batch=64, prompt=4000, output=1000).row(0)
    rate = row["capacity_req_per_s"]
    assert rate * (row["ttft_s"] + 999 * row["tpot_s"]) == pytest.approx(64, rel=1e-9)
    assert row["ttft_unloaded_s"] * rate < 64 - 999 * row["tpot_s"] * rate < 64
    assert row["tpot_s"] > row["tpot_decode_s"]
    assert serve("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), batch=64, context=4000).row(0)["tpot_decode_s"] is None


def test_objective__speed_is_latency_and_bad_rates_are_errors() -> None:
    one, two = (plan("llama-3.1-8b", "h100-sxm", SHORT, objective=name, elasticities=False) for name in ("speed", "latency"))
    assert one.rows() == two.rows() and one.objective == "latency"
    with pytest.raises(HeadwayError, match="replicas"):
        plan("llama-3.1-8b", "h100-sxm", BUSY, ways={"replicas": 2})
    for rate in (0.0, -1.0, math.nan, "fast"):
        with pytest.raises(HeadwayError):
            plan("llama-3.1-8b", "h100-sxm", Load(prompt=10, output=10, rate=rate))


def test_serve_rate__beyond_the_capacity_is_said_and_overflows_no_memory(cli: Cli) -> None:
    """Arrivals wait for a seat: what does not fit waits, so that an overload is no lack of memory."""
    command = ("serve", "llama-3.1-70b", "--on", "8xh100-sxm", "--tp", "8", "--prompt", "4k", "--output", "600", "--rate")
    (row,) = cli.rows(*command, "40/s")
    assert row["fits"] and row["utilisation"] == pytest.approx(40 / row["capacity_req_per_s"], rel=1e-12) and row["utilisation"] > 1
    assert row["ttft_s"] is None and row["tpot_s"] is None and row["weights_bytes_chip"] + row["kv_bytes_chip"] < 80 * 2**30
    first = cli(*command, "40/s").out.split("\n")[0]
    assert "does not carry 40 requests/s" in first and f"{row['capacity_req_per_s']:.3g} requests/s with every seat taken" in first
    assert "2 of them overloaded" in cli(*command, "2,40,80/s").out.split("\n")[0]
    kept = cli.rows(*command, f"{row['capacity_req_per_s'] * 0.99:.4f}/s")[0]
    assert kept["utilisation"] < 1 and kept["tpot_s"] is not None
