"""`headway compare`: ratios to the first by hand, at equal cost and power; models are not ranked; wrong input."""

from __future__ import annotations

import pytest

from support.command import Cli


def test_compare__ratios_are_of_published_facts(cli: Cli) -> None:
    first, second = cli.rows("compare h100-sxm,h200-sxm")
    assert (first["hbm_bw_ratio"], second["hbm_bw_ratio"]) == (1, pytest.approx(4.8 / 3.35, rel=1e-12))
    assert second["peak_bf16_ratio"] == pytest.approx(second["peak_bf16"] / first["peak_bf16"], rel=1e-12)


def test_compare__equal_cost_is_the_ratio_of_what_the_budget_rents(cli: Cli) -> None:
    first, second = cli.rows("compare h100-sxm b200-sxm --cost 100")
    of_budget = second["hbm_bw"] * second["chips_at_cost"] / (first["hbm_bw"] * first["chips_at_cost"])
    assert second["hbm_bw_ratio"] == pytest.approx(of_budget, rel=1e-12)
    assert first["chips_at_cost"] == pytest.approx(100 / 3600 / first["price"], rel=1e-12)
    assert [row["hbm_bw_ratio"] for row in cli.rows("compare h100-sxm b200-sxm --per usd")] == [1, second["hbm_bw_ratio"]]


def test_compare__equal_power_counts_the_share_of_the_rack(cli: Cli) -> None:
    first, second = cli.rows("compare h100-sxm gb200-nvl72 --power 120kW")
    assert (first["watts"], second["watts"]) == (10.2e3 / 8, pytest.approx(120e3 / 72, rel=1e-12))
    assert second["chips_at_power"] == pytest.approx(72, rel=1e-12)
    assert second["hbm_bw_ratio"] == pytest.approx(8 / 3.35 * (10.2e3 / 8) / (120e3 / 72), rel=1e-12)


def test_compare__machine_basis_counts_all_chips(cli: Cli) -> None:
    _, second = cli.rows("compare 8xh100-sxm,16xh100-sxm --per machine")
    assert second["hbm"] == 16 * 80e9 and second["hbm_ratio"] == 2


def test_compare__models_are_facts_and_no_ranking(cli: Cli) -> None:
    _, second = cli.rows("compare llama-3.1-70b,deepseek-v3")
    assert second["kv_bytes_per_token_ratio"] == pytest.approx(70272 / 327680, rel=1e-12)
    assert "not a ranking" in cli("compare llama-3.1-70b,deepseek-v3").text


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("compare h100-sxm", "two names or more"),
        ("compare h100-sxm,llama-3.1-8b", "not both"),
        ("compare h100-sxm,b200-sxm --per euro", "no --per value named 'euro'"),
        ("compare h100-sxm,b200-sxm --cost 100 --power 1kW", "one basis"),
        ("compare llama-3.1-70b,deepseek-v3 --per usd", "models have no price"),
        ("compare h100-sxm,b200-sxm --cost 3kg", "a quantity in USD/s"),
    ],
)
def test_compare__wrong_input_is_one_line(cli: Cli, command: str, part: str) -> None:
    answer = cli(command)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer
    assert part in answer.err


@pytest.mark.parametrize(
    ("command", "where", "key"),
    [
        ("compare h100-sxm,b200-sxm", "machine = b200-sxm", "hbm_bw_ratio"),
        ("capacity llama-3.1-8b --on h100-sxm --batch 1,64", "batch = 64", "chips_exact"),
        ("collective all-reduce 1MB,1GB --on 8xh100-sxm", "bytes = 1GB", "time_s"),
        ("matmul A[B,4096]W[4096,4096] B=128,256 --on h100-sxm", "B = 256", "time_s"),
        ("law hardware_ratio peak_flops=1PFLOP/s,2PFLOP/s mem_bw=3TB/s weight_byte=1", "peak_flops = 2e15", "result"),
        ("lecture RB-10 --with total=1T active=32B", "figure != none", "value"),
    ],
)
def test_explain__of_the_first_row_that_a_filter_leaves(cli: Cli, command: str, where: str, key: str) -> None:
    answer = cli(*command.split(), "--where", where, "--explain", key, "-o", "json").json
    assert answer["explain"][key]["value"] == pytest.approx(answer["rows"][0][key], rel=1e-12)
