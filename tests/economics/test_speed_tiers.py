"""The ladder against the lecture's closed solution, arithmetic on its own rows and the planner; offers against their prices."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from headway.cli.main import main
from headway.core.catalog import PACKAGED, open_catalog
from headway.core.errors import BadFile, HeadwayError
from headway.core.formula import anonymous, replay
from headway.core.quantity import user_input
from headway.core.schema import defaults
from headway.economics.speed_tiers import LAID, MULTIPLES, Offer, SpeedTiers, catalogue_offers, ladder, widened
from headway.hardware.edit import edit
from headway.hardware.system import System, system
from headway.laws.economics.cost import batch_ratio_identity, between_rungs
from headway.models.config import from_data
from headway.models.model import Model
from headway.models.variants import override
from headway.performance.assumptions import Assumptions
from headway.performance.workload import Load
from headway.serving.plan.candidates import PLAIN_WITHIN
from headway.serving.plan.plan import plan
from headway.serving.serve import serve
from support.cases import FLAT
from support.command import command
from support.facts import DATE

pytestmark = pytest.mark.slow

CHAT = Load(prompt=4000, output=1000)
ASKED = ("speed", "deepseek-v3", "--on", "gb200-nvl72", "--prompt", "4k", "--output", "1k")
FAR = (*ASKED, "--overlap", "operators")  # whose ladder reaches far: few fixed costs
TAKEN = {
    "fitted": defaults(Assumptions),
    "operators": defaults(Assumptions, {key: value if isinstance(value, str) else user_input(value, key) for key, value in FLAT.items()}),
}
FIRST_FAST_MODE = Offer(
    offer="first",
    provider="anthropic",
    model="m",
    tier="fast",
    price_multiple=user_input(6.0, "price"),
    speed_multiple=user_input(2.5, "speed"),
)


@functools.cache
def priced_rack() -> System:
    """GB200 NVL72, whose chips have no on-demand price, at $3.3 an hour and chip."""
    return edit(system("gb200-nvl72"), "chip.price", 3.3 / 3600)


@functools.cache
def rack(overlap: str = "operators") -> SpeedTiers:
    return ladder("deepseek-v3", priced_rack(), CHAT, assumptions=TAKEN[overlap])


@functools.cache
def rows(kind: str, overlap: str = "operators") -> list[dict[str, Any]]:
    kinds = {"ladder": ("standard", "rung", "floor")}.get(kind, (kind,))
    return [row for row in rack(overlap).plain if row["kind"] in kinds]


both = pytest.mark.parametrize("overlap", ["fitted", "operators"])


# -- the lecture's closed solution ------------------------------------------------------------------------------------------------

IDEAL = defaults(Assumptions, {"eff_compute": 1, "eff_memory": 1, "eff_network": 1, "t0": 0.0, "alpha": 0.0, "overlap": "full"})
BALANCED = 989.4e12 / 3.35e12  # H100 in bf16: 2 B N / F = 2 N / BW
LONG = Load(prompt=1, output=1_000_000)  # decode alone


@functools.cache
def without_kv() -> Model:
    """A dense model that attends to one token: compute in proportion to the batch, weights constant, next to no KV."""
    data = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 8192, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu",
    }  # fmt: skip
    return override(from_data(data, "dense", "test"), "window:1", None)


def step(batch: float) -> float:
    found = serve(without_kv(), "h100-sxm", batch=[round(batch)], prompt=1, output=1_000_000, assumptions=IDEAL).row(0)
    return found["tpot_s"]


def test_step_price__claim_fm_03_on_a_machine_without_kv() -> None:
    """6x for 2.5x: standard at 2.5 B*, fast at B*/6, which the step model itself times and prices."""
    standard, fast = 2.5 * BALANCED, BALANCED / 6.0
    assert step(standard) / step(fast) == pytest.approx(2.5, rel=0.01)
    price = (step(fast) / round(fast)) / (step(standard) / round(standard))
    assert price == pytest.approx(6.0, rel=0.02)  # batches are whole
    assert standard / fast == pytest.approx(batch_ratio_identity(6.0, 2.5)) == 15
    assert step(fast) == pytest.approx(step(1), rel=0.01)  # fast sits on the latency floor
    assert step(BALANCED / 100) == pytest.approx(step(fast), rel=0.01)  # FM-04: a hundred times the price buys nothing more


def test_ladder__without_kv_every_speed_up_to_the_floor_costs_the_same() -> None:
    late = Offer(
        offer="late",
        provider="x",
        model="m",
        tier="fast",
        price_multiple=user_input(100.0, "price"),
        speed_multiple=user_input(2.6, "speed"),
    )
    limit = step(2.5 * BALANCED)
    found = ladder(without_kv(), "h100-sxm", LONG, tpot=limit, assumptions=IDEAL, kv="bf16", offers=(FIRST_FAST_MODE, late), domains=(2, 4))
    plain = {row["kind"]: row for row in found.plain}
    assert found.standard.row["batch"] == pytest.approx(2.5 * BALANCED, rel=0.01)
    fastest = found.plain[len(found.rungs) - 1]
    assert fastest["speed_multiple"] == pytest.approx(2.5, rel=0.01)
    assert min(row["price_multiple"] for row in found.plain if row["kind"] != "offer") == pytest.approx(1, rel=0.01)  # FM-05
    first, second = (row for row in found.plain if row["kind"] == "offer")
    assert first["standing"] in ("above the ladder", "faster than any rung")
    assert second["standing"] == "faster than any rung" and second["ladder_price_multiple"] is None
    assert plain["domain_floor"]["speed_multiple"] == pytest.approx(4 * 2.5, rel=0.05)  # the lever: four chips read four times as fast
    assert plain["domain_floor"]["scale_up_domain"] == 4


def test_ladder__batch_beyond_the_balanced_one_costs_the_same() -> None:
    """Of the price of 6 x, none is batch: at 2.4x the ladder asks about 1."""
    found = ladder(
        without_kv(),
        "h100-sxm",
        LONG,
        tpot=step(2.5 * BALANCED),
        assumptions=IDEAL,
        kv="bf16",
        domains=(),
        at=user_input(2.4, "at"),
        offers=(),
    )
    price = found.between("speed_multiple", 2.4, "price_multiple")
    assert price == pytest.approx(1, rel=0.02)


# -- identities on real rows ------------------------------------------------------------------------------------------------------


def cost(row: dict[str, Any]) -> float:
    return (row["prompt"] * row["usd_per_mtok_in"] + row["output"] * row["usd_per_mtok_out"]) / 1e6


def decoders(row: dict[str, Any]) -> int:
    """Chips that decode: one pool of two, or all."""
    return row["decode_chips"] or row["chips"]


@both
def test_other_way__of_the_standard_rung_costs_more_and_is_beside_it(overlap: str) -> None:
    """The rack parts prefill by itself; what one pool costs within the same limit is what a plan of one pool costs."""
    plain = rack(overlap).plain
    at = next(place for place, row in enumerate(plain) if row["kind"] == "standard")
    standard, beside = plain[at], plain[at + 1]
    assert beside["kind"] == "together" and standard["prefill_chips"] and beside["prefill_chips"] is None
    one_pool = plan("deepseek-v3", priced_rack(), CHAT, tpot=0.020, disaggregate="never", elasticities=False, assumptions=TAKEN[overlap])
    assert cost(beside) == pytest.approx(cost(one_pool.table.row(0)), rel=1e-9)
    assert beside["price_multiple"] == pytest.approx(cost(beside) / cost(standard), rel=1e-9) and beside["price_multiple"] > 1


@both
def test_standard_rung__multiples_are_one(overlap: str) -> None:
    (row,) = rows("standard", overlap)
    named = ("speed_multiple", "price_multiple", "decode_price_multiple", "batch_ratio", "batch_ratio_identity", "batch_ratio_of_price")
    assert [row[key] for key in named] == [1] * len(named)
    assert row["tpot_s"] <= 0.020


@both
def test_ladder__multiples_by_hand_from_the_rows(overlap: str) -> None:
    (standard,) = rows("standard", overlap)
    for row in rows("ladder", overlap):
        assert row["price_multiple"] == pytest.approx(cost(row) / cost(standard), rel=1e-9)
        assert row["speed_multiple"] == pytest.approx(row["tok_per_s_user"] / standard["tok_per_s_user"], rel=1e-9)
        mine, theirs = (one["tpot_s"] * decoders(one) / one["concurrency"] for one in (row, standard))  # chip time per token in service
        assert row["decode_price_multiple"] == pytest.approx(mine / theirs, rel=1e-9)
        fewer = standard["concurrency"] / decoders(standard) / (row["concurrency"] / decoders(row))
        assert row["batch_ratio"] == pytest.approx(fewer, rel=1e-9)
        assert row["batch_ratio_identity"] == pytest.approx(row["batch_ratio"], rel=1e-9)  # FM-02, for any t(B)
        assert row["batch_ratio_of_price"] == pytest.approx(row["price_multiple"] * row["speed_multiple"], rel=1e-9)


@both
def test_ladder__rises_to_the_fastest_plan(overlap: str) -> None:
    found, taken = rows("ladder", overlap), TAKEN[overlap]
    assert [row["kind"] for row in found].count("standard") == 1 and found[-1]["kind"] == "floor"
    for slower, faster in itertools.pairwise(found):
        assert slower["speed_multiple"] < faster["speed_multiple"] and slower["price_multiple"] < faster["price_multiple"]
        assert faster["speed_bought"] > 0
    fastest = plan("deepseek-v3", priced_rack(), CHAT, objective="speed", elasticities=False, assumptions=taken).table.row(0)
    assert found[-1]["tpot_s"] == pytest.approx(fastest["tpot_s"], rel=PLAIN_WITHIN)  # a plan takes the plainest of those so near
    cheapest = plan("deepseek-v3", priced_rack(), CHAT, elasticities=False, assumptions=taken).table.row(0)
    assert cost(found[0]) == pytest.approx(cost(cheapest), rel=PLAIN_WITHIN)


@pytest.mark.parametrize("speed", [1.3, 2.5, 3.0, 3.5, 6.0])
def test_ladder__near_the_plan_between_two_rungs(speed: float) -> None:
    (standard,) = rows("standard")
    asked: dict[str, Any] = {"tpot": standard["tpot_s"] / speed, "elasticities": False, "assumptions": TAKEN["operators"]}
    exact = plan("deepseek-v3", priced_rack(), CHAT, **asked).table.row(0)
    price = rack().between("speed_multiple", speed, "price_multiple")
    slower, faster = next(
        pair for pair in itertools.pairwise(rows("ladder")) if pair[0]["speed_multiple"] <= speed <= pair[1]["speed_multiple"]
    )
    assert slower["price_multiple"] <= price <= faster["price_multiple"]
    # A limit at a lower speed costs no more, but for the plainest of those within 3 %; users are whole, so the price rises in steps.
    low, high = slower["price_multiple"] / (1 + PLAIN_WITHIN), faster["price_multiple"] * (1 + PLAIN_WITHIN)
    assert low <= cost(exact) / cost(standard) <= high
    if speed in (1.3, 2.5):  # between rungs whose prices are near: with prefill apart the next differ four times, from 3.0 to 4.0
        assert price == pytest.approx(cost(exact) / cost(standard), rel=0.15)
    assert rack().between("price_multiple", price, "speed_multiple") == pytest.approx(speed, rel=1e-6)


def test_between_rungs__exact_at_rungs_and_for_powers() -> None:
    assert between_rungs(2.0, 2.0, 3.0, 5.0, 7.0) == pytest.approx(5.0)
    assert between_rungs(3.0, 2.0, 3.0, 5.0, 7.0) == pytest.approx(7.0)
    assert between_rungs(4.0, 2.0, 8.0, 2.0**1.7, 8.0**1.7) == pytest.approx(4.0**1.7)


# -- the lever --------------------------------------------------------------------------------------------------------------------


def test_scale_up_domain__larger_is_no_slower_and_no_dearer() -> None:
    for row in rows("domain"):
        own = rack().between("speed_multiple", row["speed_multiple"], "price_multiple")
        assert row["speed_multiple"] >= 2.5 * (1 - 1e-9) and row["price_multiple"] <= own * 1.001
        assert row["scale_up_domain"] in (144, 288, 576)
    floor = rows("floor")[0]
    assert all(row["tpot_s"] <= floor["tpot_s"] * (1 + 1e-9) for row in rows("domain_floor"))
    assert len(rows("domain_floor")) == 3


def test_scale_up_domain__dense_model_gets_faster() -> None:
    found = ladder("llama-3.1-8b", "h200", CHAT, domains=(2, 4), assumptions=TAKEN["operators"])
    floors = [row["tpot_s"] for row in found.plain if row["kind"] in ("floor", "domain_floor")]
    assert floors[0] > 1.3 * floors[1] > 1.3 * 1.2 * floors[2]


def test_scale_up_domain__grows_within_the_chips_of_the_machine_first() -> None:
    wide = widened(system("4xgb200-nvl72"), 2)
    assert (wide.chips, wide.scale_up_domain) == (288, 144)
    assert widened(system("gb200-nvl72"), 2).chips == 144
    torus = widened(system("tpu-v5p-4x4x8"), 2)
    assert sorted(torus.shape) == [4, 8, 8] and torus.scale_up_domain == 256


# -- offers -----------------------------------------------------------------------------------------------------------------------


def test_offers__source_and_date() -> None:
    every = catalogue_offers()
    assert len(every) >= 15
    for one in every:
        for number in (one.price_multiple, one.speed_multiple):
            assert number is None or (number.source.strip() and DATE.fullmatch(number.date) and number.unit == ""), one.offer
        assert one.provider and one.model and one.tier and one.notes
    assert [one.price_multiple.date for one in every] == sorted(one.price_multiple.date for one in every)


def test_offers__price_multiple_equals_prices_in_the_notes() -> None:
    """$30/$150 against $5/$25 is 6x: checked wherever the notes name both, by output."""
    checked = 0
    for one in catalogue_offers():
        both = re.match(r"\$[\d.]+/\$([\d.]+) against \$[\d.]+/\$([\d.]+)", one.notes)
        if both:
            checked += 1
            assert float(both[1]) / float(both[2]) == pytest.approx(one.price_multiple, rel=0.01), one.offer
    assert checked >= 5


def test_offers__claude_premium_fell_from_six_to_two() -> None:
    claude = [one for one in catalogue_offers() if one.provider == "anthropic"]
    assert [(float(one.price_multiple), float(one.speed_multiple)) for one in claude] == [(6.0, 2.5)] * 2 + [(2.0, 2.5)] * 4


def test_offers__compared_with_the_ladder_at_equal_speed() -> None:
    by_name = {row["offer"]: row for row in rows("offer")}
    first, later, ultra = (by_name[name] for name in ("claude-opus-4-6-fast", "claude-opus-4-8-fast", "gpt-6-astra-ultrafast"))
    assert first["batch_ratio_of_price"] == 15
    assert first["ladder_price_multiple"] == later["ladder_price_multiple"]
    for row in (first, later, ultra):
        over = row["price_multiple"] / row["ladder_price_multiple"]
        assert row["offer_over_ladder"] == pytest.approx(over)
        assert row["standing"] == ("above the ladder" if over > 1 else "below the ladder")
    silent = by_name["cursor-composer-2-5-fast"]
    assert silent["speed_multiple"] is None and silent["standing"] == "speed not published" and silent["ladder_speed_multiple"] > 2


def test_offers__slow_tier_may_be_cheaper_than_any_rung() -> None:
    """Half the price without a speed: with prefill apart prompts are most of the cost, and slower answers save none of it."""
    cheapest = rows("ladder")[0]["price_multiple"]
    half = next(row for row in rows("offer") if row["offer"] == "flex")
    assert 0.5 < cheapest < 1 and half["price_multiple"] == 0.5 and half["standing"] == "cheaper than any rung"
    gift = Offer(offer="gift", provider="x", model="m", tier="slow", price_multiple=user_input(0.01, "price"))
    assert dataclasses.replace(rack(), offers=(gift,)).plain[-1]["standing"] == "cheaper than any rung"


def test_offers__read_from_a_user_catalogue(tmp_path: Path) -> None:
    (tmp_path / "offers").mkdir()
    path = tmp_path / "offers" / "mine.toml"
    path.write_text('[offers.mine]\nmodel = "m"\ntier = "fast"\nprice_multiple = "3"\nspeed_multiple = "2x"\n')
    mine = next(one for one in catalogue_offers(open_catalog([tmp_path])) if one.offer == "mine")
    assert (float(mine.price_multiple), float(mine.speed_multiple), mine.provider) == (3, 2, "mine")
    for text, named in (
        ("[offers.mine]\nmodel = 'm'\n", "price_multiple: missing"),
        ("[offers.mine]\nprice_multiple = '3'\nspeed = '2'\n", "speed: no such entry"),
        ("[offers.mine]\nprice_multiple = '-3'\n", "above 0"),
        ("[offers.mine]\nprice_multiple = '3'\nbasis = 'guess'\n", "price, cost"),
        ("offers = 3\n", "table"),
        ("[offers]\nmine = 3\n", "table"),
    ):
        path.write_text(text)
        with pytest.raises(BadFile, match=named):
            catalogue_offers(open_catalog([tmp_path]))


# -- explanations -----------------------------------------------------------------------------------------------------------------


@both
def test_explain__every_number_of_every_kind_of_row(overlap: str) -> None:
    found = rack(overlap).rows
    seen: dict[str, int] = {}
    for number, row in enumerate(found):
        name = row["kind"] if row["kind"] != "offer" else f"offer {row['standing']}"
        seen[name] = seen.get(name, 0) + 1
        if seen[name] != (2 if name == "rung" else 1):
            continue
        multiples = [*MULTIPLES, *LAID] if name == "rung" or row["kind"] == "offer" else ["price_multiple", "batch_ratio"]
        for key in (*multiples, "tpot_s", "batch", "usd_per_mtok_out"):
            if row[key] is None:
                continue
            tree = found.explain(key, number)
            assert anonymous(tree) == [], (name, key)
            assert float(tree) == pytest.approx(row[key], rel=1e-12) == float(replay(tree)), (name, key)
    assert {"standard", "rung", "floor", "domain_floor"} < seen.keys()
    assert overlap == "fitted" or ("domain" in seen and len(seen) >= 8)


def test_explain__refused_for_empty_and_unknown_columns() -> None:
    number = next(index for index, row in enumerate(rack().plain) if row["offer"] == "flex")
    for key in ("ladder_price_multiple", "tpot_s", "standing"):
        with pytest.raises(HeadwayError):
            rack().rows.explain(key, number)
    with pytest.raises(HeadwayError):
        rack().rows.explain("nope", 0)


# -- the command ------------------------------------------------------------------------------------------------------------------


def test_speed__first_line_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FAR, "--verbose"]) == 0
    lines = capsys.readouterr().out.splitlines()
    way = "deepseek-v3 on gb200-nvl72, prefill apart: "
    assert re.match(way + r"2\.5x the speed of the standard tier costs [\d.]+x its price, with ", lines[0])
    assert any(line.startswith("note: the standard tier is the cheapest with TPOT <= 20 ms: ") for line in lines)
    assert {"Binds", "note"} <= {line.partition(":")[0] for line in lines}
    assert {"offer", "cost"} <= {line.split(":")[1].strip() for line in lines if line.startswith("note: ")}


def test_speed__markdown_table_of_offers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FAR, "--where", "kind = offer and speed_multiple >= 6", "-o", "md"]) == 0
    out = capsys.readouterr().out
    assert "| gpt-6-astra | ultrafast |" in out and "below the ladder |" in out


def test_speed__json_contract(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASKED, "--tpot", "25ms", "--at", "2", "--domains", "2", "--explain", "price_multiple", "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {"answer", "binds", "helps", "launch", "checked"} <= answer.keys()
    assert {"headway", "command", "columns", "rows", "notes", "explain"} <= answer.keys()
    assert all(answer["columns"][key]["doc"] for key in answer["rows"][0])
    assert answer["columns"]["tpot_s"]["unit"] == "s" and answer["columns"]["speed_multiple"]["unit"] == ""
    assert all(row.keys() == answer["rows"][0].keys() for row in answer["rows"])
    standard = next(row for row in answer["rows"] if row["kind"] == "standard")
    assert 0.020 < standard["tpot_s"] <= 0.025 and isinstance(standard["replicas"], int)
    assert {row["scale_up_domain"] for row in answer["rows"]} == {72, 144, None}


def test_speed__several_ladders_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["speed", "llama-3.1-8b", "--on", "h100-sxm,h200", "--prompt", "1k", "--output", "1k", "--tpot", "15ms,30ms", "--domains", "2"]
    assert main([*asked, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    standards = [(row["system"], row["tpot"]) for row in found if row["kind"] == "standard"]
    assert standards == [(name, limit) for name in ("h100-sxm", "h200-sxm") for limit in (0.015, 0.030)]
    assert main([*asked, "--where", "kind = standard", "--explain", "tpot_s", "--verbose"]) == 0
    out = capsys.readouterr().out
    assert "llama-3.1-8b on h100-sxm" in out and "note: llama-3.1-8b on h200-sxm: chip price" in out


def test_standard_rung__cheapest_plan_if_the_default_tpot_is_not_met(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["speed", "llama-3.1-405b", "--on", "8xh100-sxm", "--prompt", "4k", "--output", "1k"]
    assert main([*asked, "--weights", "bf16,fp8", "--overlap", "serial"]) == 0
    out = capsys.readouterr().out
    assert "nothing meets the default TPOT" in out and "the standard tier is the cheapest of all" in out


def test_speed__infeasible_limit_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASKED, "--tpot", "10us", "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["fits"] is False and "TPOT" in row["why"] and row["price_multiple"] is None
    assert main([*ASKED, "--tpot", "10us"]) == 0
    assert "nothing meets every limit" in capsys.readouterr().out.splitlines()[0]
    assert main(["speed", "llama-3.1-405b", "--on", "h100", "--prompt", "1k", "--output", "1k"]) == 0
    assert "weights need" in capsys.readouterr().out.splitlines()[0]


def test_speed__unreachable_speed_is_stated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASKED, "--at", "50"]) == 0
    assert "no price buys 50x the speed" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--at", "0.5"], "--at"), (["--at", "x"], "--at"), (["--domains", "1"], "--domains"), (["--domains", "2.5"], "--domains"),
        (["--tpot", "-1s"], "--tpot"), (["--tpot", "0"], "--tpot"), (["--tp", "3"], "tp"), (["--speed", "2"], "--speed"),
        (["--weights", "fp3"], "weights"), (["--domains", "2..100"], "--domains"),
    ],
)  # fmt: skip
def test_speed__wrong_input_is_one_line(argv: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASKED, *argv]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("headway: ") and len(err.splitlines()) == 1 and named in err


def test_speed__prompt_and_machine_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    half, unknown = (*ASKED[:4], "--output", "1k"), ("speed", "deepseek-v33", *ASKED[2:])
    for argv, named in ((half, "--prompt"), (ASKED[:2], "--on"), (unknown, "deepseek-v3")):
        assert main(argv) == 2
        assert named in capsys.readouterr().err


def test_scale_up_domain__too_large_is_left_out_with_a_note() -> None:
    found = ladder("llama-3.1-8b", "8xh100-sxm", Load(prompt=1000, output=1000), domains=(10**7,))
    assert any("10000000x" in note or "1e+07x" in note for note in found.notes)


def test_speed__plot(tmp_path: Path) -> None:
    path = tmp_path / "ladder.svg"
    assert main([*ASKED, "--plot", str(path), "-o", "csv"]) == 0
    text = path.read_text()
    assert "sold: gpt-6-astra" in text and "Price per token over the standard tier" in text


def test_offers__file_name_equals_its_name() -> None:
    for path in sorted((PACKAGED / "offers").glob("*.toml")):
        assert tomllib.loads(path.read_text())["name"] == path.stem


def test_slow_tiers__the_verdict_of_the_claim_is_that_of_the_verb() -> None:
    """FM-05 says that a slow mode saves almost nothing: true only if no slower tier of `speed` costs much less than the standard one."""
    from headway.evidence.claims import claim

    rows = command("speed llama-3.1-8b --on 8xh100-sxm --prompt 8k --output 1k --tp 1 -o json").rows
    slower = [row["price_multiple"] for row in rows if row["kind"] == "rung" and row["speed_multiple"] < 1]
    assert (min(slower) < 0.9) == (claim("FM-05")[0].verdict == "differs")


def test_stable_ratio__the_verdict_is_that_of_the_facts() -> None:
    """RB-09: within a factor of 2 from generation to generation, not of 3; a ratio 2.5 times another's would differ."""
    from headway.evidence.claims import claim
    from headway.evidence.claims.rows import within

    (row,) = claim("RB-09")
    judged = {part.name: part for part in row.parts if part.verdict}
    assert set(judged) == {"H100 over A100-80", "H100 over B100"}
    assert all((part.verdict == "agrees") == (0.5 <= part.recomputed <= 2) for part in judged.values())
    assert within(2.5, 0.5, 2.0) == "differs" and row.tolerance == "0.5 .. 2"
