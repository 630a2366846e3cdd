"""Money in answers of `plan` and `serve`: per hour, month and token by hand, the price's metric and source, and a spare node."""

from __future__ import annotations

from typing import Any

import pytest

from support.command import Cli

SERVE = "serve llama-3.1-8b --tp 1 --prompt 2000 --output 500"
NODE = f"{SERVE} --on 8xh100-sxm --replicas 8"
LOAD = "plan llama-3.1-8b --on h100-sxm --prompt 2k --output 300 --rate 60 --tp 1 --pp 1 --cp 1 --kv fp8"


def money(row: dict[str, Any]) -> tuple[float, float]:
    return row["usd_per_hour"], row["usd_per_month"]


# -- the machine and its tokens ------------------------------------------------------------------------------------------------


def test_money__of_a_node_by_hand(cli: Cli) -> None:
    """8 chips at $2.5 are $20 an hour, and $14,600 in a month of 730 hours."""
    (row,) = cli.rows(f"{NODE} --batch 16 --chip-price $2.5/h")
    assert money(row) == pytest.approx((20.0, 14_600.0), rel=1e-12)
    assert row["usd_per_mtok_out_full"] == row["usd_per_mtok_out"], "users who wait for their answers are the load that it carries"


def test_money__tokens_at_a_rate_add_up_to_the_hour(cli: Cli) -> None:
    """Input and output of the requests of an hour cost what the machine costs in an hour; at full load the load's share of it."""
    (row,) = cli.rows(f"{NODE} --rate 4 --chip-price 2.5")
    spent = 4 * 3600 * (2000 * row["usd_per_mtok_in"] + 500 * row["usd_per_mtok_out"]) / 1e6
    assert spent == pytest.approx(20.0, rel=1e-9)
    full = row["usd_per_mtok_out"] * 4 / row["capacity_req_per_s"]
    assert row["usd_per_mtok_out_full"] == pytest.approx(full, rel=1e-12) and full < row["usd_per_mtok_out"]


def test_money__idle_chips_are_paid_for(cli: Cli) -> None:
    (row,) = cli.rows(f"{SERVE} --on 8xh100-sxm --batch 16 --chip-price 2.5")
    assert row["chips_idle"] == 7 and row["usd_per_hour"] == pytest.approx(20.0)


def test_money__null_for_a_single_step(cli: Cli) -> None:
    (row,) = cli.rows("serve llama-3.1-8b --on h100-sxm --context 1k")
    assert row["usd_per_hour"] is None and row["usd_per_mtok_out_full"] is None


def test_money__explained_from_price_and_chips(cli: Cli) -> None:
    text = cli(f"{NODE} --batch 16 --explain usd_per_month").out
    assert "month_usd" in text and "hour_usd" in text and "2026-10-24" in text
    assert "full_load_usd" in cli(f"{NODE} --rate 4 --explain usd_per_mtok_out_full").out


# -- which price ---------------------------------------------------------------------------------------------------------------


def test_price__on_demand_unless_told(cli: Cli) -> None:
    """The newest on-demand figure of an H100 is $3.55 (2026-10-24); three years cost $1.3: 8 x 3.55 = 28.4, 8 x 1.3 = 10.4."""
    answer = cli.json(f"{NODE} --batch 16")
    assert money(answer["rows"][0]) == pytest.approx((28.4, 20_732.0), rel=1e-9)
    (note,) = [note for note in answer["notes"] if note.startswith("chip price ")]
    assert "$3.55/h, of $2.11 .. $6.16 (h100_sxm rental_on_demand: " in note and "2026-10-24" in note and "--chip-price" in note
    (row,) = cli.rows(f"{NODE} --batch 16 --price-metric rental_3yr")
    assert money(row) == pytest.approx((10.4, 7_592.0), rel=1e-9)


def test_chip_price__list_is_an_axis(cli: Cli) -> None:
    rows = cli.rows(f"{NODE} --batch 16 --chip-price 2,3")
    assert [row["usd_per_hour"] for row in rows] == pytest.approx([16.0, 24.0])


@pytest.mark.parametrize("extra", ["--price-metric rental_3yr", "--set chip.price=$1/h", "--set chip.price=$1/h --price-metric rental_3yr"])
def test_chip_price__stands_alone(cli: Cli, extra: str) -> None:
    refused = cli(f"{NODE} --batch 16 --chip-price 2 {extra}")
    assert refused.status == 2 and "each says what a chip costs" in refused.err


@pytest.mark.parametrize("price", ["0", "-2", "2EUR", "cheap"])
def test_chip_price__wrong_input_is_one_line(cli: Cli, price: str) -> None:
    refused = cli(f"{NODE} --batch 16 --chip-price={price}")
    assert refused.status == 2 and refused.err.count("\n") == 1 and "--chip-price" in refused.err


def test_unpriced_machine__named_in_the_first_sentence(cli: Cli) -> None:
    """GB300 has prices of other metrics alone, which count only where no metric is named."""
    alone = cli.json(f"{SERVE} --on gb300 --batch 16 --price-metric rental_on_demand")
    assert "gb300 has no on-demand price" in alone["answer"] and alone["rows"][0]["usd_per_hour"] is None
    pair = cli.json(f"{SERVE} --on h100-sxm,gb300 --batch 16 --price-metric rental_on_demand")
    assert "gb300 has no on-demand price" in pair["answer"]
    known = cli.json(f"{SERVE} --on h100-sxm,gb300 --batch 16")
    assert "price" not in known["answer"] and [row["usd_per_hour"] for row in known["rows"]] == pytest.approx([1.3, 3.96])
    nothing = cli.json(f"{SERVE} --on apple-m2 --batch 16")
    assert "apple-m2 has no price" in nothing["answer"]
    plans = cli.json("plan llama-3.1-8b --on gb300,h100-sxm --tp 1 --pp 1 --prompt 2k --output 300 --price-metric rental_on_demand")
    assert "gb300 has no on-demand price" in plans["answer"] and plans["rows"][0]["system"] == "h100-sxm"
    assert len(plans["answer"].split()) <= 30


# -- a load and a spare node ---------------------------------------------------------------------------------------------------


def test_spare__limits_hold_on_the_other_cards(cli: Cli) -> None:
    """With one card to spare the same replicas carry the load, as simulated, and one card more is paid for."""
    plain, spared = (cli.json(f"{LOAD} --tpot-p95 40ms --chip-price 2.5 {flag}") for flag in ("", "--spare 1"))
    first, second = plain["rows"][0], spared["rows"][0]
    cards = int(first["chips"])
    assert (first["node_chips"], first["nodes"], second["nodes"], second["spare_nodes"]) == (1, cards, cards + 1, 1)
    assert money(first) == pytest.approx((2.5 * cards, 1825 * cards))
    assert money(second) == pytest.approx((2.5 * (cards + 1), 1825 * (cards + 1)))
    assert second["chips_idle"] - first["chips_idle"] == 1
    for key in ("replicas", "utilisation", "p95_tpot_s", "confidence", "tp"):
        assert second[key] == first[key], key
    assert spared["answer"].startswith(f"{cards + 1} h100-sxm, 1 of them spare, carry 60 requests/s for ${1825 * (cards + 1):,}/month")
    assert any(f"those of {cards} machines with 1 of {cards + 1} lost" in note for note in spared["notes"])


def test_spare__node_where_nobody_rents_less(cli: Cli) -> None:
    """MI300X come eight together: every row pays for its own spare node, and none costs less than two nodes."""
    rows = cli.rows(f"{LOAD.replace('h100-sxm', 'mi300x')} --no-check --chip-price 2.5 --spare 1")
    assert all(
        row["chips"] % 8 == 0 and row["chips"] - row["chips_idle"] <= row["chips"] - 8 for row in rows if row["kind"] != "elasticity"
    )
    assert min(row["usd_per_hour"] for row in rows) == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("command", "wants"),
    [
        (f"{LOAD} --spare -1", "--spare"),
        (f"{LOAD} --spare 1.5", "whole number"),
        (f"{LOAD.replace('h100-sxm', '8xh100-sxm')} --spare 1", "a machine without a number, such as h100"),
        (f"{LOAD.replace('--rate 60', '')} --spare 1", "one load beside it"),
    ],
)
def test_spare__wrong_input_is_one_line(cli: Cli, command: str, wants: str) -> None:
    refused = cli(command)
    assert refused.status == 2 and refused.err.count("\n") == 1 and wants in refused.err
