"""The price of a chip by default: the middle of its newest quotes, one basis for all machines of an answer, a quote by its name."""

import re
from statistics import median

import pytest

from headway.hardware.chip import chip, price_quote
from headway.hardware.chip_price import METRICS, price_origin
from headway.hardware.system import market_kinds, system, with_market
from support.command import Cli


def usd_per_hour(quote: object) -> float:
    return float(quote.value) * 3600


def test_several_quotes_give_their_middle_and_their_range() -> None:
    quote = price_quote(chip("b200-sxm"))
    assert usd_per_hour(quote) == pytest.approx(median([5.00, 5.98, 6.79]))
    assert (quote.low * 3600, quote.high * 3600) == (pytest.approx(5.00), pytest.approx(6.79))
    assert "of $5 .. $6.79" in price_origin(quote)


def test_two_quotes_give_their_mean() -> None:
    quote = price_quote(chip("gb200"))
    assert usd_per_hour(quote) == pytest.approx((4.54 + 10.5) / 2)
    assert quote.value.date == "2026-07-01"


def test_a_middle_of_16_offers_outweighs_one_offer_and_an_old_quote_does_not_count() -> None:
    quote = price_quote(chip("h100-sxm"))
    assert usd_per_hour(quote) == pytest.approx(3.55)
    assert quote.note == "the middle of 18 offers by 3 quotes"  # the index of 2025 is older than half a year


@pytest.mark.parametrize("name", ["gb200", "gb300", "l4", "l40s", "rtx3090", "rtx4090", "mi355x", "h20-sxm", "h800-sxm"])
def test_the_quote_that_exists_is_taken_and_named(name: str) -> None:
    quote = price_quote(chip(name))
    assert quote is not None
    assert quote.metric in METRICS
    assert f"{chip(name).name} {quote.metric}" in price_origin(quote)


def test_all_machines_of_a_question_are_priced_by_one_metric() -> None:
    machines = with_market([system(name) for name in ("8xh100-sxm", "8xmi300x", "gb300-nvl72")])
    assert {price_quote(machine.chip).metric for machine in machines} == {"rental_3yr"}
    assert market_kinds(machines) == ""


def test_machines_without_a_common_metric_are_said_to_have_none() -> None:
    machines = with_market([system("8xl4"), system("gb300-nvl72")])
    assert market_kinds(machines) == "prices of different kinds: rental_on_demand of 8xl4; rental_3yr of gb300-nvl72"


@pytest.mark.parametrize("verb", ["serve llama-3.1-8b --tp 1 --batch 8 --prompt 2k --output 200", "train llama-3.1-8b --tokens 1T"])
def test_serving_and_training_state_the_same_price(cli: Cli, verb: str) -> None:
    notes = cli.json(f"{verb} --on 8xh100-sxm")["notes"]
    assert [note for note in notes if note.startswith("chip price $3.55/h, of $2.11 .. $6.16 (h100_sxm rental_on_demand")]


def test_a_metric_that_is_typed_stays_what_was_typed(cli: Cli) -> None:
    document = cli.json("serve llama-3.1-8b --on l4 --batch 8 --context 4k --price-metric rental_3yr")
    assert any(note.startswith("l4 has no rental_3yr price") for note in document["notes"])


def test_a_price_of_the_user_is_of_one_kind(cli: Cli) -> None:
    machines = "serve llama-3.1-8b --on l4,gb300 --batch 4 --context 4k"
    assert any(note.startswith("prices of different kinds") for note in cli.json(machines)["notes"])
    for price in ("--chip-price $2/h", "--set chip.price=$2/h", "--price-metric rental_3yr"):
        assert not any(note.startswith("prices of different kinds") for note in cli.json(f"{machines} {price}")["notes"])


@pytest.mark.parametrize("machine", ["8xh100-sxm", "8xl20"])
def test_training_says_what_its_cost_rests_on_with_flags_that_it_has(cli: Cli, machine: str) -> None:
    (note,) = [note for note in cli.json(f"train llama-3.1-8b --on {machine} --tokens 1B --tp 8")["notes"] if "price" in note]
    flags = {word for word in note.replace("=", " ").split() if word.startswith("--")}
    assert flags and flags <= set(re.findall(r"--[\w-]+", cli("train --help").text))


def test_spot_offers_are_no_list_prices() -> None:
    quote = price_quote(chip("h100-sxm"), "rental_cloud_list")
    assert usd_per_hour(quote) == pytest.approx(5.191)
