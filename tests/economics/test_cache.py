"""Where a KV cache should live: the published tables worked again by the verb itself, criteria beside each other, bad input."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

import headway as hw
from headway.cli.main import main
from headway.core.errors import HeadwayError
from headway.core.formula import anonymous, replay
from headway.economics.cache.placement import TierInterval, money_bands, wear_bands
from headway.economics.cache.tiers import CacheTier, place_of
from headway.hardware.memory_tier import tier, tiers
from headway.laws.roofline.balance import drain_s
from support.cache_rows import listing

MIN, HOUR, DAY, YEAR, GB = 60.0, 3600.0, 86400.0, 365.25 * 86400, 1e9
H100 = ("--on", "h100", "--set", "chip.price=$2/h")


def by_tier(*argv: str) -> dict[str, dict[str, Any]]:
    return {row["tier"]: row for row in listing(*argv)}


def printed(found: float, expected: float, unit: float) -> bool:
    """Within 2 %, or the same when rounded to the last digit printed, which counts `unit`."""
    return abs(found - expected) <= max(0.02 * expected, 0.5001 * unit)


# -- B: drain times -----------------------------------------------------------------------------------------------------------------

# device -> drain time and what its last printed digit counts, s
DRAINS = {
    "hbm3_h100": (24e-3, 1e-3), "hbm3e_b200": (22e-3, 1e-3), "hbm3e_gb300": (36e-3, 1e-3), "hbm4_rubin": (13e-3, 1e-3),
    "lpddr5x_grace": (0.94, 0.01), "ddr5_local": (1.3, 0.1), "ddr5_pcie": (7.0, 0.1), "cxl_2tb": (37.0, 1.0),
    "tlc_4tb": (4.6 * MIN, 0.1 * MIN), "tlc_15tb": (18 * MIN, MIN), "tlc_31tb": (37 * MIN, MIN),
    "qlc_61tb": (2.4 * HOUR, 0.1 * HOUR), "qlc_123tb": (4.6 * HOUR, 0.1 * HOUR), "qlc_246tb": (5.7 * HOUR, 0.1 * HOUR),
    "hdd_24tb": (23 * HOUR, HOUR), "hdd_30tb": (30 * HOUR, HOUR), "hdd_36tb_smr": (36 * HOUR, HOUR),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAINS)
def test_drain_time__published(name: str) -> None:
    device, (expected, unit) = tier(name), DRAINS[name]
    assert printed(drain_s(device.capacity, device.read_bw), expected, unit)


def test_drain_time__tiers_chosen_by_hold() -> None:
    rows = listing("--kv-bytes", "35kB", "--fresh", "4030/s", *H100, "--tier", "hbm,ddr5_local,ddr5_pcie,tlc_4tb,tlc_31tb,hdd_30tb")
    drained = {row["hold"]: row["tier"] for row in rows if "drain time" in row["chosen_by"]}
    assert drained == {300.0: "tlc_4tb", 3600.0: "tlc_31tb", 86400.0: "hdd_30tb"}
    assert all(printed(row["drain_s"], *DRAINS[row["tier"]]) for row in rows if row["tier"] in DRAINS)


# -- B2: least money in devices -----------------------------------------------------------------------------------------------------

MEMORIES = ("hbm3_h100", "ddr", "flash", "disk")


def places(*names: str) -> list[CacheTier]:
    return [place_of(tier(name), name) for name in names]


def ends(bands: list[TierInterval]) -> list[tuple[str, Any]]:
    return [(one.tier, one.until) for one in bands]


@pytest.mark.parametrize(
    ("uses", "expected"), [(1, {"hbm3_h100": 0.28, "ddr": 52, "flash": 2.1 * HOUR}), (3, {"ddr": 2.6 * MIN, "flash": 6.4 * HOUR})]
)
def test_cost_bands__published_crossings(uses: int, expected: dict[str, float]) -> None:
    found = dict(ends(money_bands(places(*MEMORIES), uses)))
    assert list(found) == list(MEMORIES) and found["disk"] is None
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=0.02)


def test_cost_bands__flash_reaches_further_at_earlier_prices() -> None:
    then = [replace(tier(name), price=(old := tier(name).price_earlier), price_low=old, price_high=old) for name in ("flash", "disk")]
    assert ends(money_bands([place_of(one) for one in then], 1))[0][1] == pytest.approx(5.0 * HOUR, rel=0.02)


def test_cost_bands__dense_flash_against_disk() -> None:
    """Published as never winning. So it is for the two large drives; the 61 TB one, of 7 GB/s, drains fast enough for a band of its own."""
    for name in ("qlc_123tb", "qlc_246tb"):
        assert [one.tier for one in money_bands(places(*MEMORIES, name), 1)] == list(MEMORIES)
        assert [one.tier for one in money_bands(places(name, "disk"), 1)] == ["disk"]
    found = ends(money_bands(places(*MEMORIES, "qlc_61tb"), 1))
    assert [name for name, _ in found] == ["hbm3_h100", "ddr", "flash", "qlc_61tb", "disk"]
    assert [until / HOUR for _, until in found[2:4]] == pytest.approx([1.68, 3.09], rel=0.01)


@pytest.mark.parametrize("made", [money_bands, wear_bands])
def test_cost_bands__equal_the_choice_at_every_hold(made: Any) -> None:
    """The crossings against the rows of a grid of holds, which know nothing of crossings."""
    criterion = "least cost" if made is money_bands else "cost with wear"
    names = ("ddr", "cxl", "flash", "tlc_4tb", "disk")
    holds = [f"{seconds:.6g}s" for seconds in (0.3 * 1.7**step for step in range(30))]
    rows = listing("--kv-bytes", "35kB", "--fresh", "4030/s", *H100, "--tier", ",".join(names), "--hold", ",".join(holds), "--uses", "2")
    bands = made(places(*names), 2)
    for row in rows:
        if criterion in row["chosen_by"]:
            assert next(one.tier for one in bands if one.until is None or row["hold"] < one.until) == row["tier"], row["hold"]


# -- B3: wear -----------------------------------------------------------------------------------------------------------------------


def test_wear__short_holds_wear_flash_out() -> None:
    rows = {
        (row["hold"], row["tier"]): row
        for row in listing("--kv-bytes", "1GB", "--fresh", "1/s", *H100, "--tier", "ddr,flash,disk", "--hold", "5min,1h,24h")
    }  # 1 GB a token, so that USD/Mtok are USD per 1e6 GB
    assert [rows[hold, "flash"]["over_rated"] for hold in (300.0, 3600.0)] == pytest.approx([288, 24])
    assert rows[300.0, "flash"]["usd_per_mtok_write"] / 1e6 == pytest.approx(1.95e-4, rel=0.02)
    assert rows[3600.0, "flash"]["usd_per_mtok_room"] / 1e6 == pytest.approx(1.2e-5, rel=0.02)
    assert printed(rows[300.0, "ddr"]["usd_per_mtok_room"] / 1e6, 4e-5, 1e-5)
    best = {hold: name for (hold, name), row in rows.items() if "cost with wear" in row["chosen_by"]}
    assert best == {300.0: "ddr", 3600.0: "flash", 86400.0: "disk"}


def test_wear__hold_from_which_flash_pays() -> None:
    """Printed as about 25 min: that is what the table's own rounded figures give; the facts, unrounded, give 23.7."""
    worn, flash_hour, ddr_five = 1.95e-4, 1.2e-5, 4e-5
    assert worn / (ddr_five / 300 - flash_hour / HOUR) == pytest.approx(25 * MIN, rel=0.02)
    found = dict(ends(wear_bands(places("ddr", "flash"), 1)))["ddr"]
    assert found == pytest.approx(23.7 * MIN, rel=0.005)


# -- B4: store or recompute ---------------------------------------------------------------------------------------------------------

V3 = ("deepseek-v3", "--kv", "fp8", "--fresh", "4030/s")
LLAMA = ("llama-3.3-70b", "--kv", "fp8", "--mfu", "0.5", "--compute", "fp8")
LECTURE = ("--kv-bytes", "2kB", "--active", "100B", "--mfu", "0.5", "--compute", "fp8")
# V3's rate by the active parameters of both; the table counts a byte an element, engines keep 584 bytes for 512 (tests/models).
FLASH = ("--kv-bytes", "3440", "--fresh", f"{4030 * 37 / 13}/s")
# recompute USD/Mtok, KV bytes, then break-even holds in HBM, DDR5, TLC, disk, each with what its last printed digit counts
B4 = {
    V3: (0.138, 35136, (9.4 * MIN, 0.1 * MIN), (7.6 * HOUR, 0.1 * HOUR), (13 * DAY, DAY), (191 * DAY, DAY)),
    LLAMA: (0.079, 163840, (70, 1), (57 * MIN, MIN), (40 * HOUR, HOUR), (24 * DAY, DAY)),
    LECTURE: (0.112, 2000, (2.2 * HOUR, 0.1 * HOUR), (5 * DAY, DAY), (191 * DAY, DAY), (7 * YEAR, YEAR)),
    FLASH: (0.049, 3440, (34 * MIN, MIN), (27 * HOUR, HOUR), (48 * DAY, DAY), (2 * YEAR, YEAR)),
}


@pytest.mark.parametrize("subject", B4, ids=("DeepSeek-V3", "Llama 3.3 70B", "the lecture's", "V4-Flash"))
def test_hold_bound__published(subject: tuple[str, ...]) -> None:
    again, kv, *expected = B4[subject]
    rows = by_tier(*subject, *H100, "--hold", "5min")
    assert printed(rows["ddr"]["usd_per_mtok_recompute"], again, 0.001) and rows["ddr"]["kv_bytes"] == kv
    for name, (hold, unit) in zip(("hbm", "ddr", "flash", "disk"), expected, strict=True):
        assert printed(rows[name]["hold_bound_s"], hold, unit), (name, rows[name]["hold_bound_s"] / hold)


def test_store_or_recompute__tiers_chosen_by_hold() -> None:
    found = {row["hold"]: row["tier"] for row in listing(*V3, *H100) if "store-or-recompute" in row["chosen_by"]}
    assert found == {300.0: "hbm", 3600.0: "ddr", 86400.0: "flash"}


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (("llama-3.1-8b", "--kv", "fp8", "--mfu", "1", "--compute", "bf16"), 4.0),
        (("llama-3.3-70b", "--kv", "fp8", "--mfu", "1", "--compute", "bf16"), 1.15),
        (V3, 0.14),
        (FLASH, 0.04),
    ],
)
def test_break_even_bw__published(subject: tuple[str, ...], expected: float) -> None:
    assert printed(by_tier(*subject, *H100, "--hold", "5min")["ddr"]["break_even_bw"] / GB, expected, 0.01)


# -- B5: fees against holding -------------------------------------------------------------------------------------------------------


def test_paid_bytes__write_and_storage_fees() -> None:
    write = by_tier("--kv-bytes", "2kB", *H100, "--fee", "$5/Mtok", "--hold", "1h")
    paid = [write[name]["paid_bytes"] for name in ("hbm", "ddr", "flash")]
    assert all(map(printed, paid, (200e3, 10e6, 400e6), (1e3, 1e6, 100e6)))
    assert printed(write["hbm"]["markup"], 100, 1) and printed(write["ddr"]["markup"], 5000, 1000)
    storage = by_tier("--kv-bytes", "2kB", *H100, "--storage", "$4.50/Mtok/h", "--hold", "1h")
    assert all(map(printed, [storage[name]["paid_bytes"] for name in ("hbm", "ddr")], (180e3, 8.8e6), (1e3, 1e5)))


def test_usd_per_mtok_fee__beyond_the_input_rate() -> None:
    """5 min at $6.25 and 1 h at $10 for $5 of input; the step between them as 393 kB in 192 GB of HBM at $2/h, 900x cost at 1.7 kB."""
    machine = ("--on", "b200", "--set", "chip.price=$2/h", "--set", "chip.hbm=192GB", "--tier", "hbm")
    rows = listing("--kv-bytes", "1667B", *machine, "--sheet", "claude-opus-4.6")
    assert [(row["fee_of"], row["hold"], round(row["usd_per_mtok_fee"], 6)) for row in rows] == [
        ("cache write", 300.0, 1.25), ("cache write", 3600.0, 5.0), ("longer cache write", 3300.0, 3.75)]  # fmt: skip
    assert rows.plain[2]["paid_bytes"] == pytest.approx(393e3, rel=0.02)
    assert printed(rows.plain[0]["markup"], 900, 100)


def test_paid_bytes__read_rate_of_a_tenth() -> None:
    asked = ("--kv-bytes", "2kB", "--active", "100B", "--mfu", "1", "--compute", "fp8", "--on", "b200", "--set", "chip.peak_fp8=4.5PFLOPS")
    sets = ("--set", "tier.ddr.read_bw=64GB/s", "--set", "tier.flash.read_bw=7GB/s", "--set", "chip.price=$2/h")
    rows = {row["tier"]: row for row in listing(*asked, *sets, "--sheet", "claude-opus-4.6") if row["fee_of"] == "cache read"}
    assert [rows[name]["paid_bytes"] for name in ("ddr", "flash")] == pytest.approx([284e3, 31e3], rel=0.02)


# -- B6: sizes ----------------------------------------------------------------------------------------------------------------------

DAY_6 = ("deepseek-v3", "--kv", "bf16", "--hit-tokens", "342B/d", "--new-tokens", "434B/d")
# TTL -> bytes, drives by capacity (TLC, disk), million USD (TLC, disk, DDR5) and what the last digits count
B6 = {
    300.0: (106e12, (3, 4), (0.49, 1.72, 1.6), (0.01, 0.01, 0.1)),
    HOUR: (1.27e15, (41, 42), (0.49, 1.72, 19), (0.01, 0.01, 1)),
    DAY: (30.5e15, (993, 1017), (10.9, 1.72, 457), (0.1, 0.01, 1)),
}


def test_cache_bytes__published_day() -> None:
    rows = {(row["hold"], row["tier"]): row for row in listing(*DAY_6, "--hold", "5min,1h,24h")}
    assert {row["kv_bytes"] for row in rows.values()} == {70272}
    for hold, (size, drives, usd, units) in B6.items():
        flash, disk, ddr = (rows[hold, name] for name in ("flash", "disk", "ddr"))
        assert flash["cache_read"] == pytest.approx(278e9, rel=0.02) and flash["cache_written"] == pytest.approx(353e9, rel=0.02)
        assert flash["cache_bytes"] == pytest.approx(size, rel=0.02)
        assert [round(one["devices_by_capacity"]) for one in (flash, disk)] == list(drives)
        assert [one["devices_by_bandwidth"] for one in (flash, disk)] == pytest.approx([45, 2295], rel=0.02)
        money = [one["devices_usd"] / 1e6 for one in (flash, disk, ddr)]
        assert all(map(printed, money, usd, units)), (hold, money)
    assert rows[HOUR, "flash"]["balanced_hold_s"] == pytest.approx(1.1 * HOUR, rel=0.02)
    assert printed(rows[HOUR, "disk"]["balanced_hold_s"], 54 * HOUR, HOUR)


def test_cache__described_service_equals_its_rates() -> None:
    """608B prompt and 168B output tokens a day, 342B of them found: as one request of their mean, so often."""
    prompt, output, hits = 608, 168, 342 / 608
    told = ("--rate", "1000/s", "--hit-rate", str(hits), "--prompt", str(prompt), "--output", str(output))
    (row,) = listing("deepseek-v3", *told, "--hold", "1h", "--tier", "flash")
    assert (row["hit_tokens"], row["new_tokens"]) == pytest.approx((342e3, 434e3))
    several = listing("deepseek-v3", *told[:2], "--hit-rate", "0.5,0.6,0.99", "--hold", "1h", "--tier", "flash")
    assert len(list(several)) == 3  # a hit rate is the service's, and not one of the estimate as well


# -- the answer ---------------------------------------------------------------------------------------------------------------------


def test_usd_per_mtok_recompute__equals_prefill_estimate_of_plan() -> None:
    from headway.performance.workload import Load
    from headway.serving.plan.plan import plan

    (row,) = listing("deepseek-v3", "--on", "8xh200", "--hold", "1h", "--tier", "ddr", "--kv", "fp8", "--reuse", "0.8")
    own = plan("deepseek-v3", "8xh200", Load(prompt=8000, output=1000), kv="fp8", elasticities=False).table.row(0)
    ends = ("usd_per_mtok_in", "usd_per_mtok_in_lo", "usd_per_mtok_in_hi")
    again = [row[f"usd_per_mtok_recompute{end}"] for end in ("", "_lo", "_hi")]
    assert again == pytest.approx([own[key] for key in ends], rel=1e-12)
    gain = 0.8 * (row["usd_per_mtok_recompute"] - row["usd_per_mtok_load"]) - row["usd_per_mtok_write"] - row["usd_per_mtok_room"]
    assert row["usd_per_mtok_gain"] == pytest.approx(gain, rel=1e-12)


def test_break_even_hold__no_gain_there() -> None:
    for name, row in by_tier(*V3, *H100, "--hold", "1h", "--reuse", "0.4", "--waiting", "0.5").items():
        if row["break_even_hold_s"] is None:
            continue  # its devices cost more than computing again even when they are always busy
        again = by_tier(*V3, *H100, "--hold", f"{row['break_even_hold_s']:.17g}s", "--reuse", "0.4", "--waiting", "0.5")[name]
        assert again["usd_per_mtok_gain"] == pytest.approx(0, abs=1e-9 * row["usd_per_mtok_recompute"]), name
        assert row["break_even_hold_lo_s"] <= row["break_even_hold_s"] <= row["break_even_hold_hi_s"] <= row["hold_bound_s"] * 4


def test_store_or_recompute__recompute_without_reuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", *V3, *H100, "--hold", "1h", "--reuse", "0"]) == 0
    out = capsys.readouterr().out
    assert "; computing again is cheaper for 1 h." in out.splitlines()[0]
    assert "recompute by store-or-recompute" in out


def test_cache__first_line_names_least_cost_and_notes_every_criterion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", *V3, *H100, "--hold", "5min,24h"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("A KV cache of deepseek-v3 on h100-sxm costs least, wear included, in DDR for 5 min, in disk for 1 d.\n")
    assert "5 min: flash by drain time and least cost, ddr by cost with wear, hbm by store-or-recompute (4 criteria, 3 answers)" in text
    assert "1 d: disk by drain time and least cost and cost with wear, flash by store-or-recompute" in text


def test_cache__headline_held_and_gain_name_one_tier(capsys: pytest.CaptureFixture[str]) -> None:
    """Over holds, reuse and waiting drawn from a seed: the tier of the sentence has the least cost held and the most gain."""
    draw = random.Random(12)
    tiers_named = set()
    for _ in range(12):
        hold, reuse = f"{10 ** draw.uniform(-1, 6.5):.3g}s", f"{draw.uniform(0.1, 1):.2f}"
        words = (*draw.choice((V3, LLAMA)), *H100, "--hold", hold, "--reuse", reuse, "--waiting", draw.choice(("0", "0", "0.5", "1")))
        assert main(["cache", *words]) == 0
        sentence = capsys.readouterr().out.splitlines()[0]
        rows = by_tier(*words)
        cheapest = min((row for row in rows.values() if row["read_bw"]), key=lambda row: row["usd_per_mtok_held"])
        gain = max((row for row in rows.values() if row["read_bw"]), key=lambda row: row["usd_per_mtok_gain"])
        assert cheapest["tier"] == gain["tier"] and f" in {cheapest['tier']} for " in sentence.replace("DDR", "ddr"), (words, sentence)
        assert gain["usd_per_mtok_gain"] == pytest.approx(float(reuse) * gain["usd_per_mtok_recompute"] - gain["usd_per_mtok_held"])
        tiers_named.add(cheapest["tier"])
    assert len(tiers_named) >= 3


def test_contends__price_range_names_contenders() -> None:
    rows = by_tier(*V3, *H100, "--tier", "flash,disk", "--hold", "15h")
    assert rows["flash"]["chosen_by"].endswith("store-or-recompute")
    for row in rows.values():
        for key in ("price_per_byte", "device_usd_per_byte", "usd_per_mtok_held"):
            assert row[f"{key}_lo"] <= row[key] <= row[f"{key}_hi"]
    assert rows["flash"]["contends"] or rows["disk"]["contends"]


def test_cache__row_for_every_priced_tier() -> None:
    able = [one.name for one in tiers() if one.memory != "hbm"]
    rows = by_tier(*V3, *H100, "--hold", "1h", "--tier", ",".join(able))
    assert list(rows) == able
    rented = rows["s3_standard"]
    assert rented["drain_s"] is None and rented["device_usd_per_byte"] is None and rented["usd_per_mtok_held"] > 0
    assert rows["qlc_123tb"]["usd_per_mtok_held"] is None  # its rated writes are not public


def test_tier__user_catalogue_and_price(tmp_path: Any) -> None:
    folder = tmp_path / "tiers"
    folder.mkdir()
    facts = 'capacity = "10TB"\nread_bw = "10GB/s"\nwrite_bw = "10GB/s"\nprice = "$1/GB"\nlife = "1000d"\noverhead = "0.5"\n'
    (folder / "mine.toml").write_text(f'memory = "cxl"\n[facts]\n{facts}')
    rows = by_tier(*V3, *H100, "--catalog", str(tmp_path), "--tier", "mine,ddr", "--hold", "1h", "--set", "tier.ddr.price=$3/GB")
    assert rows["mine"]["drain_s"] == 1000
    assert rows["mine"]["usd_per_mtok_held"] == pytest.approx(35136 * 1.5e-9 / (1000 * DAY) * HOUR * 1e6)
    assert rows["ddr"]["price_per_byte"] == rows["ddr"]["price_per_byte_hi"] == pytest.approx(3e-9)


# -- explanations -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        (*LLAMA, *H100, "--hold", "1h", "--tier", "hbm,flash,disk,s3"),
        (*DAY_6, "--hold", "1h"),
        ("deepseek-v3", "--rate", "10/s", "--hit-rate", "0.5", "--hold", "1h"),
        (*LLAMA, *H100, "--sheet", "claude-opus-4.6", "--storage", "$1/Mtok/h"),
    ],
    ids=("criteria", "sizes", "described", "fees"),
)
def test_explain__every_number_of_a_cache(argv: tuple[str, ...]) -> None:
    rows = listing(*argv)
    for number, row in enumerate(rows.plain):
        for key, value in row.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                tree = rows.explain(key, number)
                assert anonymous(tree) == [], key
                assert math.isclose(float(replay(tree)), value, rel_tol=1e-12), key


def test_explain__numbers_from_the_prefill_estimate() -> None:
    rows = listing("deepseek-v3", "--on", "8xh200", "--hold", "1h", "--tier", "ddr")
    for key in ("usd_per_mtok_gain", "break_even_hold_lo_s"):
        tree = rows.explain(key)
        assert anonymous(tree) == [] and math.isclose(float(replay(tree)), rows.plain[0][key], rel_tol=1e-12)


def test_tier__object_store_is_never_chosen() -> None:
    rows = by_tier(*V3, *H100, "--hold", "1h", "--tier", "all")
    assert {"hbm", "ddr5_local", "s3_standard"} < rows.keys() and "hbm3_h100" not in rows
    assert rows["s3_standard"]["usd_per_mtok_held"] == min(row["usd_per_mtok_held"] or math.inf for row in rows.values())
    assert rows["s3_standard"]["chosen_by"] == rows["s3_standard"]["contends"] == ""
    (alone,) = listing(*V3, *H100, "--hold", "1h", "--tier", "s3")
    assert alone["chosen_by"] == ""


# -- bad input ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ((), "a model"),
        (("deepseek-v3",), "--on"),
        (("deepseek-v3", "--on", "h100"), "a machine that holds the model"),
        (("deepseek-v3", "--on", "8xh200", "--hold", "-5min"), "above 0 s"),
        (("deepseek-v3", "--on", "8xh200", "--hold", "0s"), "above 0 s"),
        (("deepseek-v3", "--on", "8xh200", "--hold", "nan"), "finite"),
        (("deepseek-v3", "--on", "8xh200", "--hold", "5GB"), "20ms"),
        (("deepseek-v3", "--on", "8xh200", "--reuse", "1.2"), "at most 1"),
        (("deepseek-v3", "--on", "8xh200", "--uses", "0"), "above 0"),
        (("deepseek-v3", "--on", "8xh200", "--waiting", "2"), "at most 1"),
        (("deepseek-v3", "--on", "8xh200", "--tier", "flsh"), "flash"),
        (("deepseek-v3", "--on", "8xh200", "--tier", "ddr,"), "each once"),
        (("deepseek-v3", "--on", "8xh200", "--tier", "ddr,ddr"), "each once"),
        (("deepseek-v3", "--on", "8xh200", "--tier", "hbm4_rubin"), "HBM is not sold alone"),
        (("deepseek-v3", "--on", "8xh200", "--set", "tier.flash.price=-1"), "above"),
        (("deepseek-v3", "--on", "8xh200", "--set", "tier.flash.prices=1"), "price"),
        (("deepseek-v3", "--on", "8xh200", "--set", "tier.tape.price=1"), "tiers asked for"),
        (("deepseek-v3", "--on", "8xh200", "--mfu", "1.5"), "at most 1"),
        (("deepseek-v3", "--on", "8xh200", "--mfu", "0.5", "--fresh", "4k/s"), "one of them"),
        (("--kv-bytes", "1kB", "--on", "h100", "--mfu", "0.5"), "--active"),
        (("--kv-bytes", "0", "--on", "h100", "--fresh", "1/s"), "above 0"),
        (("deepseek-v3", "--on", "8xh200", "--active", "10B"), "--mfu beside it"),
        (("deepseek-v3", "--hit-tokens", "1G/s", "--new-tokens", "1G/s", "--fee", "$5/Mtok"), "question of their own"),
        (("deepseek-v3", "--on", "8xh200", "--fee", "$5/Mtok", "--reuse", "0.5"), "used or not"),
        (("deepseek-v3", "--hit-tokens", "1G/s"), "--new-tokens"),
        (("deepseek-v3", "--hit-tokens", "1G/s", "--rate", "1/s"), "--new-tokens"),
        (("deepseek-v3", "--hit-tokens", "nan", "--new-tokens", "1/s"), "finite"),
        (("deepseek-v3", "--on", "8xh200", "--sheet", "nobody"), "nobody"),
        (("deepseek-v3", "--on", "8xh200", "--fee", "0"), "more than 0"),
        (("deepseek-v3", "--on", "8xh200", "--fee", "$5"), "/Mtok"),
        (("deepseek-v3", "--on", "8xh200", "--ttl", "5min"), "--workload"),
    ],
)
def test_cache__wrong_input_is_one_line(argv: tuple[str, ...], says: str) -> None:
    with pytest.raises(HeadwayError) as told:
        listing(*argv)
    assert says in str(told.value) and "\n" not in str(told.value)


def test_tier__without_a_price_is_refused(tmp_path: Any) -> None:
    folder = tmp_path / "tiers"
    folder.mkdir()
    (folder / "mine.toml").write_text('memory = "cxl"\n[facts]\ncapacity = "10TB"\nread_bw = "10GB/s"\n')
    with pytest.raises(HeadwayError, match=r"price is not known.*--set tier\.mine\.price"):
        listing(*V3, *H100, "--catalog", str(tmp_path), "--tier", "mine")


def test_cache__call_equals_verb() -> None:
    import headway as hw

    rows = by_tier("deepseek-v3", "--on", "8xh200", "--hold", "5min", "--reuse", "0.8", "--kv", "fp8")
    assert {row["tier"]: row for row in hw.cache("deepseek-v3", "8xh200", "5min", reuse=0.8, kv="fp8")} == rows
    for wrong in ({"hold": -1.0}, {"reuse": 2.0}, {"kv": "fp9"}, {"mfu": math.nan}):
        with pytest.raises(HeadwayError):
            hw.cache("deepseek-v3", "8xh200", **{"hold": 60.0} | wrong)


def test_cache__plot_over_holds(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("vl_convert")
    picture = tmp_path / "holds.svg"
    assert main(["cache", *V3, *H100, "--hold", "1min..48h*4", "--picture", "holds", "--plot", str(picture)]) == 0
    assert "computing again" in picture.read_text()
    assert main(["cache", *V3, *H100, "--hold", "1h", "--picture", "holds", "--plot", str(picture)]) == 2
    assert "several, such as" in capsys.readouterr().err


def test_cache__where_does_not_change_the_first_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", *V3, *H100, "--hold", "5min", "--where", "tier = disk"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].endswith("costs least, wear included, in DDR for 5 min.") and "TLC" not in out.splitlines()[3]


def test_cache__names_the_longest_of_the_holds_that_share_a_tier_in_any_order() -> None:
    words = "cache deepseek-v3 --on h100 --fresh 4030/s --hold "
    assert hw.command(words + "4min,1min,48h").answer == hw.command(words + "1min,4min,48h").answer
    assert "in DDR up to 4 min" in hw.command(words + "4min,1min,48h").answer
