"""What ordinary questions got wrong once: bases of prices, missing facts, ranges, thresholds, published constants."""

from __future__ import annotations

import pytest

from support.command import Answer, Cli


def test_sim__price_that_carries_the_prompts_says_so(cli: Cli) -> None:
    """All money over output tokens, by hand; `serve`'s column of output alone has another name."""
    load = "llama-3.1-8b --on h100 --rate 4 --prompt 1k --output 100"
    row, served = cli.json(f"sim {load} --requests 100 --loop plain")["rows"][0], cli.json(f"serve {load}")["rows"][0]
    assert "usd_per_mtok_out" not in row
    assert row["usd_per_mtok_out_and_prompt"] == pytest.approx(served["usd_per_hour"] / 3600 / row["output_tok_per_s"] * 1e6, rel=1e-9)


def test_a_chip_without_a_public_peak__answers_what_bandwidth_decides(cli: Cli) -> None:
    row = cli.json("serve llama-3.1-8b --on cerebras-wse3 --context 4k")["rows"][0]
    assert row["step_s"] > row["step_floor_s"] > 0.9 * (row["weights_bytes_chip"] + row["kv_bytes_chip"]) / 21e15
    refused = Answer.of(["serve", "llama-3.1-8b", "--on", "cerebras-wse3", "--prompt", "4k", "--output", "100"])
    assert refused.status == 2 and "chip.peak_bf16" in refused.err and "h100" not in refused.err


def test_scale__headline_is_by_a_law_that_takes_the_experts_per_token(cli: Cli) -> None:
    """Two counts of experts per token move the headline; laws fitted with one say what they were fitted with."""
    command = "scale --moe --active 37B --total 671B --tokens 14.8T --per-token"
    one, eight = (cli.json(f"{command} {count}") for count in (1, 8))
    assert one["answer"] != eight["answer"]
    assert all("experts per token" in row["beyond"] for row in eight["rows"] if row["experts"] == pytest.approx(one["rows"][0]["experts"]))


def test_tiers__memory_of_a_chip_is_priced_as_memory(cli: Cli) -> None:
    """Stacks of one kind cost alike whatever chip they sit on: within a factor of two, not the price of a whole chip."""
    prices = [row["device_usd_per_byte"] for row in cli.json("list tiers")["rows"] if row["memory"] == "hbm"]
    prices = [price for price in prices if price is not None]
    assert len(prices) >= 3 and max(prices) < 2 * min(prices)


def test_sentences__state_the_range_of_all_rows(cli: Cli) -> None:
    trend = cli.json("trend chips")
    ratios = [row["hardware_ratio_bf16"] for row in trend["rows"] if row["hardware_ratio_bf16"] is not None]
    assert f"from {min(ratios):.3g}" in trend["answer"] and f"to {max(ratios):.3g}" in trend["answer"]
    assert all(f"{chips} chips:" in cli.json("rack gb200-nvl72 --chips 72,144,576")["answer"] for chips in (72, 144, 576))


@pytest.mark.parametrize("rounds", [8, 16, 32])
def test_feistel__threshold_is_the_first_round_that_changes_half(cli: Cli, rounds: int) -> None:
    assert cli.json(f"feistel avalanche --rounds {rounds}")["answer"].startswith("From round 8,")
    before = cli.json("feistel avalanche --rounds 6")
    assert "From round" not in before["answer"]
    assert before["rows"][0]["changed_share"] < 0.47


def test_messages__name_what_is_missing_and_constants_are_those_published(cli: Cli) -> None:
    assert "--sheet" in Answer.of(["bill", "--cache", "none"]).err
    law = cli.json("law chinchilla_tokens params=100B")
    assert "2.085" in str(law["rows"]) or 2085.43 in law["rows"][0].values()
    assert "Besiroglu" in " ".join(law["notes"])
    assert cli.json("matmul A[I,J]*B[J,K]->C[I,K] --on 8xh100 I=4096 J=4096 K=4096")["rows"]
    assert "671B" in Answer.of(["price", "--sheet", "deepseek-v3", "--verbose"]).out


def test_solve__for_the_price_of_a_chip(cli: Cli) -> None:
    """The price at which a million output tokens cost $1, put back."""
    command = "llama-3.1-8b --on h100 --batch 8 --prompt 1k --output 200"
    found = cli.json(f"solve serve {command} --for chip_price --so-that usd_per_mtok_out=1")["rows"][0]["solution"]
    assert cli.json(f"serve {command} --chip-price {3600 * found!r}")["rows"][0]["usd_per_mtok_out"] == pytest.approx(1, rel=1e-6)


def test_train__energy_is_said_to_be_of_the_chips(cli: Cli) -> None:
    answer = cli.json("train llama-3.1-8b --on 64xh100-sxm --tokens 1T --optimizer adam,muon")
    assert {row["optimizer"] for row in answer["rows"] if row["kind"] == "best"} == {"adam", "muon"}  # the best first
    assert any("GWh of chips" in note or "MWh of chips" in note for note in answer["notes"])
