"""Tiers of memory: the facts' promises, published tables worked again from them, tiers as text, loads and what they wear."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import numpy as np
import pytest

from headway.core import catalog as facts
from headway.core.catalog import PACKAGED, Catalog, open_catalog
from headway.core.errors import BadFile, BadValue, HeadwayError, MissingFact, UnknownName
from headway.core.quantity import Sourced
from headway.hardware.memory_tier import MEMORIES, MemoryTier, holding_of, price_of, tier, tiers, wear_of
from headway.laws import tiers as laws
from headway.laws import tiers as wear
from headway.laws.roofline.balance import drain_s
from headway.simulation import compiled
from headway.simulation.hit_rates import replayed
from headway.simulation.kv_pools import (
    BELOW,
    CAPACITY,
    NOWHERE,
    POOL,
    WRITES,
    admits,
    count_lookups,
    expire,
    free_pages,
    hold,
    hold_just,
    leave,
    match,
    publish,
    release,
    take,
)
from headway.simulation.prefix_tiers import (
    NEVER,
    cache_tier,
    fetched_s,
    least_by_cost,
    least_by_time,
    parse_tiers,
    parse_ttls,
    paths_of,
    pools_of,
)
from reference.tier_use import tier_use
from support.each import for_each

PATHS = sorted((PACKAGED / "tiers").glob("*.toml"))
HOUR, DAY, YEAR, GB, TB = 3600.0, 86400.0, 365.25 * 86400, 1e9, 1e12
H100_USD_PER_S = 2 / HOUR


# -- facts ----------------------------------------------------------------------------------------------------------------------


@for_each(PATHS, name=lambda path: path.stem)
def test_memory_tier__every_fact_has_its_origin(path) -> None:
    document = tomllib.loads(path.read_text())
    for key, line in document["facts"].items():
        assert set(line) == {"value", "unit", "source", "date", "kind"}, key
        assert line["kind"] in {"datasheet", "measured", "derived", "estimate"}, key
        assert all(source in document["sources"] for source in line["source"].split(", ")), key
        assert line["date"] == "undated" or line["date"].startswith("20"), key
        assert "unverified" not in facts.origin(line, key, document["sources"], path)[1] or line["kind"] == "estimate", key
        if key.startswith("price") or key == "fee":
            assert line["date"] != "undated" or line["kind"] == "estimate", key
    used = {source for line in document["facts"].values() for source in line["source"].split(", ")}
    assert used == set(document["sources"]), "every source is of some fact"


def test_memory_tier__catalogue_is_complete_and_in_order() -> None:
    every = tiers()
    assert len(every) == len(PATHS) == 23
    assert {one.memory for one in every} == set(MEMORIES)
    for one in every:
        known = [value for key in facts.declared(MemoryTier) if (value := getattr(one, key)) is not None]
        assert all(isinstance(value, Sourced) and value.source for value in known)
        for low, high in (("latency_low", "latency_high"), ("price_low", "price_high"), ("drive_writes", "drive_writes_high")):
            assert (getattr(one, low) is None) == (getattr(one, high) is None)
            assert getattr(one, low) is None or getattr(one, low) <= getattr(one, high), (one.name, low)
        if one.price is not None and one.memory != "hbm":
            assert one.price_low <= one.price <= one.price_high, one.name
        assert one.capacity is None or 1e10 < one.capacity < 1e15
        assert one.latency_high is None or 1e-8 < one.latency_high < 1


def test_memory_tier__hbm_equals_the_chip_file() -> None:
    from headway.hardware.chip import chip

    for name, of in (("hbm3_h100", "h100"), ("hbm3e_h200", "h200"), ("hbm3e_gb300", "gb300")):
        assert tier(name).capacity == pytest.approx(chip(of).hbm, rel=0.04)  # a GB300 is sold with 277 to 288 GB
        assert tier(name).read_bw == chip(of).hbm_bw


# Drain times of reading and writing as printed beside the facts, seconds.
DRAINS = {
    "hbm3_h100": (0.0239, 0.0239), "hbm3e_h200": (0.0294, 0.0294), "hbm3e_b200": (0.0225, 0.0225), "hbm3e_gb300": (0.036, 0.036),
    "hbm4_rubin": (0.0131, 0.0131), "hbm3e_tpu_v7": (0.0261, 0.0261), "lpddr5x_grace": (0.9375, 0.9375), "ddr5_local": (1.2508, 1.2508),
    "ddr5_pcie": (6.9818, 6.9818), "ddr5_rdma": (5.3895, 5.3895), "cxl_2tb": (37.2364, 45.5111), "tlc_4tb": (274.2857, 548.5714),
    "tlc_15tb": (1097.1429, 1536.0), "tlc_31tb": (2194.2857, 3072.0), "tlc_31tb_pcie6": (1097.1429, 2194.2857),
    "qlc_61tb": (8777.1429, 18618.1818), "qlc_123tb": (16605.4054, 38400.0), "qlc_246tb": (20480.0, 81920.0),
    "hdd_24tb": (84210.5263, 84210.5263), "hdd_30tb": (109090.9091, 109090.9091), "hdd_36tb_smr": (130909.0909, 180000.0),
    "hdd_18tb_dual": (32490.9747, 32490.9747),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAINS)
def test_drain_s__published_times(name: str) -> None:
    device = tier(name)
    assert (drain_s(device.capacity, device.read_bw), drain_s(device.capacity, device.write_bw)) == pytest.approx(DRAINS[name], rel=0.003)


# Holding cost as printed beside the facts, USD per GB and hour at the ends of the price range.
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("hbm3_h100", 2.84e-4, 4.11e-4), ("hbm4_rubin", 4.79e-4, 6.64e-4), ("ddr5_local", 4.11e-4, 9.25e-4), ("tlc_4tb", 1.23e-5, 1.54e-5),
     ("tlc_31tb", 1.22e-5, 1.22e-5), ("qlc_123tb", 6.85e-6, 1.03e-5), ("hdd_30tb", 7.53e-7, 1.06e-6)],
)  # fmt: skip
def test_holding_usd__published_costs(name: str, low: float, high: float) -> None:
    device = tier(name)
    for price, expected in ((device.price_low, low), (device.price_high, high)):
        assert laws.holding_usd(price, device.overhead, device.life) * GB * HOUR == pytest.approx(expected, rel=0.005)


def test_holding_usd__rented_store_costs_its_fee() -> None:
    assert holding_of(tier("s3")) * GB * HOUR == pytest.approx(3.15e-5, rel=0.001)


# -- published tables, worked again from the facts ----------------------------------------------------------------------------


def crossing(above: str, below: str, uses: float, price: str = "price") -> float:
    upper, lower = tier(above), tier(below)
    balanced = laws.balanced_hold_s(lower.capacity, lower.read_bw, uses)
    return getattr(lower, price) * balanced / getattr(upper, price)


def test_crossing__cheapest_device_by_hold_time() -> None:
    assert crossing("hbm", "ddr", 1) == pytest.approx(0.28, rel=0.02)
    assert crossing("ddr", "flash", 1) == pytest.approx(52, rel=0.02)
    assert crossing("flash", "disk", 1) == pytest.approx(2.1 * HOUR, rel=0.02)
    assert crossing("ddr", "flash", 3) == pytest.approx(2.6 * 60, rel=0.02)
    assert crossing("flash", "disk", 3) == pytest.approx(6.4 * HOUR, rel=0.02)
    assert crossing("flash", "disk", 1, "price_earlier") == pytest.approx(5.0 * HOUR, rel=0.02)


@pytest.mark.parametrize(("above", "below", "uses"), [("hbm", "ddr", 1), ("ddr", "flash", 1), ("flash", "disk", 3)])
def test_crossing__both_devices_cost_the_same(above: str, below: str, uses: float) -> None:
    hold = crossing(above, below, uses)
    cost = {}
    for name in (above, below):
        device = tier(name)
        factor = laws.devices_per_full(laws.balanced_hold_s(device.capacity, device.read_bw, uses), hold)
        cost[name] = laws.device_usd_per_byte(device.price, factor)
    assert cost[above] == pytest.approx(cost[below], rel=1e-9)


def test_wear__flash_by_hand() -> None:
    flash = tier("flash")
    assert wear.rewrites(300.0) * DAY == pytest.approx(288)
    assert wear.rewrites(HOUR) * DAY == pytest.approx(24)
    assert wear.endurance(flash.capacity, flash.drive_writes, flash.rated_life) == pytest.approx(56e15, rel=0.005)
    assert wear_of(flash) * GB == pytest.approx(1.95e-4, rel=0.005)
    assert holding_of(flash) * GB * HOUR == pytest.approx(1.2e-5, rel=0.02)
    earned = wear.wear_earned_s(wear_of(flash), holding_of(tier("ddr")), holding_of(flash))
    assert 22 * 60 < earned < 26 * 60  # "about 25 minutes", from figures of two digits
    assert np.minimum(tier("disk").read_bw, tier("disk").rated_bw) == pytest.approx(550e12 / YEAR, rel=0.001)


def cost_of_hold(name: str, hold: float) -> float:
    """USD per GB for one write and the hold, with wear and with a disk's rated workload."""
    device = tier(name)
    bandwidth = device.read_bw if device.rated_bw is None else np.minimum(device.read_bw, device.rated_bw)
    factor = laws.devices_per_full(laws.balanced_hold_s(device.capacity, bandwidth, 1), hold)
    return float(wear.hold_usd_per_byte(holding_of(device), factor, hold, wear_of(device))) * GB


def test_wear__five_minutes_on_ddr_an_hour_on_flash_a_day_on_disk() -> None:
    for kept, best in ((300.0, "ddr"), (HOUR, "flash"), (DAY, "disk")):
        assert min(("ddr", "flash", "disk"), key=lambda name, kept=kept: cost_of_hold(name, kept)) == best


# Models: KV bytes a token, seconds a fresh token takes; then the break-even hold in HBM, DDR5, TLC, disk.
V3_S, LLAMA_S = 1 / 4030, 2 * 70.55e9 / (1978.9e12 * 0.5)
HOLDS = [
    (35136, V3_S, (9.4 * 60, 7.6 * HOUR, 13 * DAY, 191 * DAY)),
    (163840, LLAMA_S, (70, 57 * 60, 40 * HOUR, 24 * DAY)),
    (2000, 2 * 100e9 / (1978.9e12 * 0.5), (2.2 * HOUR, 5 * DAY, 191 * DAY, 7 * YEAR)),
    (3440, V3_S * 13 / 37, (34 * 60, 27 * HOUR, 48 * DAY, 2 * YEAR)),
]


@pytest.mark.parametrize(("kv", "seconds", "expected"), HOLDS, ids=("DeepSeek-V3", "Llama 3.3 70B", "the lecture's", "V4-Flash"))
def test_break_even_hold_s__published_holds(kv: float, seconds: float, expected: tuple[float, ...]) -> None:
    again = seconds * H100_USD_PER_S
    chip = H100_USD_PER_S / tier("hbm").capacity
    holding = (chip, *(holding_of(tier(name)) for name in ("ddr", "flash", "disk")))
    found = [laws.break_even_hold_s(1, again, 0.0, 0.0, kv, one) for one in holding]
    # printed with one or two digits: half a unit of the last one, beside 2 %
    assert found == pytest.approx(expected, rel=0.02, abs=0) or all(
        abs(one - wanted) <= max(0.02 * wanted, unit) for one, wanted, unit in zip(found, expected, half_digits(expected), strict=True)
    ), [one / wanted for one, wanted in zip(found, expected, strict=True)]


def half_digits(expected: tuple[float, ...]) -> list[float]:
    """Half of the last digit that each figure is printed with."""
    found = []
    for value in expected:
        unit = next(one for one in (YEAR, DAY, HOUR, 60.0, 1.0) if value >= one and abs(value / one * 10 - round(value / one * 10)) < 1e-6)
        whole = abs(value / unit - round(value / unit)) < 1e-6
        found.append(unit * (0.51 if whole else 0.051))
    return found


def test_break_even_hold_s__storing_gains_nothing_there() -> None:
    again, load, write, kv, holding = 0.138e-6, 0.01e-6, 0.007e-6, 35136, holding_of(tier("flash"))
    hold = laws.break_even_hold_s(0.4, again, load, write, kv, holding)
    held = kv * wear.hold_usd_per_byte(holding, 1.0, hold, 0.0)
    assert laws.storing_gain_usd(0.4, again, load, write, held) == pytest.approx(0.0, abs=1e-12 * again)


@pytest.mark.parametrize(
    ("kv", "seconds", "expected"),
    [(65536, 2 * 8.03e9 / 989.4e12, 4.0), (163840, 2 * 70.55e9 / 989.4e12, 1.15), (35136, V3_S, 0.14), (3440, V3_S * 13 / 37, 0.04)],
)
def test_break_even_bandwidth__published_values(kv: float, seconds: float, expected: float) -> None:
    found = (kv / seconds) / GB
    assert abs(found - expected) <= max(0.02 * expected, 0.0051)


def test_kv_bytes_paid_for__published_fees() -> None:
    chip = H100_USD_PER_S / tier("hbm").capacity
    assert laws_paid(5e-6, chip) == pytest.approx(200e3, rel=0.02)
    assert laws_paid(5e-6, holding_of(tier("ddr"))) == pytest.approx(10e6, rel=0.03)  # printed as 10 MB
    assert laws_paid(5e-6, holding_of(tier("flash"))) == pytest.approx(400e6, rel=0.03)  # printed as 400 MB
    assert laws_paid(4.5e-6, chip) == pytest.approx(180e3, rel=0.02)
    assert laws_paid(4.5e-6, holding_of(tier("ddr"))) == pytest.approx(8.8e6, rel=0.02)


def laws_paid(fee: float, holding: float) -> float:
    return fee / (HOUR * holding)


# A day of DeepSeek's service: TTL, bytes, drives by capacity, million USD in TLC, disks and DDR5.
SIZES = [(300.0, 106e12, 3, 4, 0.49, 1.72, 1.6), (HOUR, 1.27e15, 41, 42, 0.49, 1.72, 19), (DAY, 30.5e15, 993, 1017, 10.9, 1.72, 457)]


@pytest.mark.parametrize(("ttl", "size", "flash", "disks", "usd_flash", "usd_disk", "usd_ddr"), SIZES)
def test_cache_size__devices_and_cost_for_a_published_day(ttl, size, flash, disks, usd_flash, usd_disk, usd_ddr) -> None:
    read, written = (tokens / DAY * 70272 for tokens in (342e9, 434e9))
    assert (read / GB, written / GB) == pytest.approx((278, 353), rel=0.002)
    bytes_held = written * ttl
    assert bytes_held == pytest.approx(size, rel=0.005)
    assert [round(bytes_held / tier(name).capacity) for name in ("flash", "disk")] == [flash, disks]
    traffic = {name: (read + written) / tier(name).read_bw for name in ("flash", "disk")}
    assert (traffic["flash"], traffic["disk"]) == pytest.approx((45, 2295), rel=0.003)
    money = []
    for name in ("flash", "disk", "ddr"):
        device = tier(name)
        count = np.maximum(bytes_held / device.capacity, (read + written) / device.read_bw)
        money.append((count * device.capacity * device.price) / 1e6)
    assert money == pytest.approx([usd_flash, usd_disk, usd_ddr], rel=0.02)


# -- tiers as text ----------------------------------------------------------------------------------------------------------------


def test_parse_tiers__sizes_bandwidths_and_ttls() -> None:
    found = parse_tiers("hbm:60GB, ddr:1TB,flash:30TB", "5min,1h")
    assert [(one.name, one.device.name, one.capacity, one.ttl) for one in found] == [
        ("hbm", "hbm3_h100", 60e9, 300.0), ("ddr", "ddr5_pcie", 1e12, 3600.0), ("flash", "tlc_31tb", 30e12, math.inf)]  # fmt: skip
    assert [one.in_place for one in found] == [True, False, False]
    assert found[2].read_bw == 14e9
    assert [one.kind for one in (found[0].capacity, found[1].capacity)] == ["input", "input"]
    assert parse_tiers("hdd_24tb:1PB")[0].devices == 42
    assert parse_tiers("ddr:1TB@200GB/s")[0].read_bw == 200e9
    assert parse_tiers("ddr:1TiB")[0].capacity == 2**40
    assert all(one.ttl == 300.0 for one in parse_tiers("hbm:60GB,ddr:1TB", "5min"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "such as hbm:60GB"),
        ("hbm", "such as hbm:60GB"),
        ("hbm:", "such as hbm:60GB"),
        (":60GB", "such as hbm:60GB"),
        ("hbm:60GB,", "such as hbm:60GB"),
        ("hbm:60GB,ddr:1TB@", "such as hbm:60GB"),
        ("hbm:60", "nothing"),
        ("hbm:60s", "byte"),
        ("hbm:many", "byte"),
        ("hbm:-1GB", "above 0"),
        ("hbm:0GB", "above 0"),
        ("hbm:nan", "finite"),
        ("hbm:inf", "finite"),
        ("ddr:1TB@0GB/s", "above 0"),
        ("ddr:1TB@1GB", "byte/s"),
        ("dr:1TB", "ddr"),
        ("ddr:1TB,hbm:60GB", "HBM first"),
        ("hbm:60GB,hbm:60GB", "HBM first"),
        ("hbm:60GB,disk:1TB,flash:1TB", "fastest first"),
        ("ddr:1TB,ddr:1TB", "twice"),
        ("store:1PB", "read_bw"),
        ("hbm:60GB:shared", "of each replica"),
        ("hbm:60GB,ddr:1TB:all", "such as hbm:60GB"),
    ],
)
def test_parse_tiers__malformed_text_is_one_line(text: str, says: str) -> None:
    if says == "nothing":
        assert parse_tiers(text)[0].capacity == 60.0  # a bare number is bytes, as everywhere
        return
    with pytest.raises(HeadwayError, match=says) as caught:
        parse_tiers(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "5", "0s", "-5min", "nan", "1h,5min", "1min,2min,3min,4min", "5 parsecs", "5min,,1h"])
def test_parse_ttls__malformed_text_is_one_line(text: str) -> None:
    if text == "5":
        assert parse_ttls(text, 2) == (5.0, 5.0)
        return
    with pytest.raises(BadValue, match="--ttl") as caught:
        parse_ttls(text, 3)
    assert "\n" not in str(caught.value)


def test_memory_tier__store_needs_a_user_bandwidth() -> None:
    assert parse_tiers("hbm:60GB,store:1PB@5GB/s")[1].read_bw == 5e9
    with pytest.raises(MissingFact, match=r"tiers/s3_standard\.toml"):
        cache_tier(tier("s3"), 1e15)
    with pytest.raises(UnknownName, match="read_bw"):
        tier("s3").need("readbw")
    with pytest.raises(UnknownName, match="name a usual device"):
        tier("punched cards")


def test_memory_tier__user_device(tmp_path) -> None:
    (tmp_path / "tiers").mkdir()
    (tmp_path / "tiers" / "mine.toml").write_text(
        'memory = "flash"\n[facts]\ncapacity = "8 TB"\nread_bw = "20 GB/s"\nwrite_bw = "10 GB/s"\nlatency_high = "50us"\n'
    )
    catalog = open_catalog([tmp_path])
    found = parse_tiers("hbm:1GB,mine:16TB", catalog=catalog)[1]
    assert (found.devices, found.read_bw, found.write_bw) == (2, 40e9, 20e9)
    assert (price_of(found.device), holding_of(found.device), wear_of(found.device)) == (None, None, None)
    (tmp_path / "tiers" / "mine.toml").write_text('memory = "tape"\n')
    with pytest.raises(BadFile, match="tape"):
        tier("mine", catalog)


def test_memory_tier__every_alias_is_a_tier() -> None:
    catalog = Catalog()
    aliases = catalog.aliases("tiers")
    assert set(aliases.values()) <= set(catalog.files("tiers"))
    assert not set(aliases) & set(catalog.files("tiers"))
    assert {"hbm", "ddr", "flash", "disk", "remote"} <= set(aliases)


# -- pools, loads, use ------------------------------------------------------------------------------------------------------------


def test_pools_of__tiers_of_each_replica() -> None:
    found = parse_tiers("hbm:60GB,ddr:1TB,remote:2TB,flash:30TB")
    pools = pools_of(found, 10, 1e9, replicas=2)
    assert pools.pool[CAPACITY::POOL].tolist() == [60, 1000, 60, 1000, 2000, 30000]
    assert pools.pool[BELOW::POOL].tolist() == [1, 4, 3, 4, 5, NOWHERE]
    assert pools_of(found[:2], 10, 1e9, replicas=2).pool[BELOW::POOL].tolist() == [1, NOWHERE, 3, NOWHERE]
    assert pools_of(found, 10, 1e9, pages=32).pool[CAPACITY::POOL].tolist()[0] == 60 * 32
    for wrong in (lambda: pools_of(found, 10, 0.0), lambda: pools_of(found[2:], 10, 1e9), lambda: pools_of(found, 10, 1e9, replicas=0)):
        with pytest.raises(BadValue):
            wrong()


def test_parse_tiers__tiers_below_a_shared_tier_are_shared() -> None:
    found = parse_tiers("hbm:60GB,ddr:1TB@100GB/s:shared,flash:30TB")
    assert [one.shared for one in found] == [False, True, True] and found[1].read_bw == 100e9
    assert [one.shared for one in parse_tiers("hbm:60GB,ddr:1TB,remote:2TB")] == [False, False, True]
    pools = pools_of(found, 10, 1e9, replicas=3)
    assert pools.shared == 3 and pools.pool[BELOW::POOL].tolist() == [3, 3, 3, 4, NOWHERE]


def test_least_by_time_and_cost__load_or_recompute() -> None:
    found = parse_tiers("hbm:60GB,ddr:1TB,flash:30TB,disk:30TB")
    block = 512 * 35136.0
    block_s = 512 * V3_S / 8
    assert least_by_time(found, block_bytes=block, block_s=block_s).tolist() == [0, 1, 1, NEVER]  # a disk takes 65 ms, computing 16
    slow = least_by_time(found, block_bytes=block, block_s=512 * V3_S)
    assert slow[3] == math.ceil(0.012 / (512 * V3_S - block / 0.275e9))
    for n, faster in ((slow[3], True), (slow[3] - 1, False)):
        gain = laws.load_gain_s(n * 512, V3_S, 35136 / 0.275e9, 0.012)
        assert (gain > 0) == faster
    cheap = least_by_cost(found, block_bytes=block, block_s=512 * V3_S, usd_per_s=H100_USD_PER_S, waiting=0.0)
    dear = least_by_cost(found, block_bytes=block, block_s=512 * V3_S, usd_per_s=H100_USD_PER_S)
    assert np.all(cheap <= dear) and np.all(slow <= dear)


def test_fetched_s__loads_queue_per_device_and_devices_overlap() -> None:
    found = parse_tiers("hbm:60GB,ddr:1TB@100GB/s,flash:30TB@10GB/s")
    pools, paths = pools_of(found, 10, 1e9), paths_of(found)
    hits = np.array([3, 2, 0])
    assert fetched_s(paths, pools, 0, hits, 1e9, 5.0) == pytest.approx(5.02 + 10e-6)
    assert fetched_s(paths, pools, 0, hits, 1e9, 5.01) == pytest.approx(5.04 + 10e-6), "behind the first"
    assert fetched_s(paths, pools, 0, np.array([0, 1, 1]), 1e9, 6.0) == pytest.approx(6.1 + 80e-6), "the slower of two at once"
    assert fetched_s(paths, pools, 0, np.array([9, 0, 0]), 1e9, 7.0) == 7.0, "HBM is read in place"


def served(pools: Any, requests: list[list[int]]) -> Any:
    ids = np.array([block for prompt in requests for block in prompt], np.int32)
    starts = np.concatenate(([0], np.cumsum([len(prompt) for prompt in requests])))
    return replayed(pools, ids, starts, np.arange(float(len(requests))), leaf_first=True)


def test_tier_use__hits_reads_and_writes() -> None:
    found = parse_tiers("hbm:4GB,ddr:1TB,flash:30TB", "2s,never,never")
    pools = pools_of(found, 8, 1e9)
    hits = served(pools, [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3], [0, 1, 2, 3]])
    assert hits.tolist() == [[0, 0, 0], [0, 0, 0], [0, 4, 0], [4, 0, 0]]
    used = tier_use(found, pools, hits.sum(axis=0), block_bytes=1e9, span_s=10.0)
    assert [one.hits for one in used] == [4, 4, 0]
    assert [one.written_bytes for one in used] == [12e9, 8e9, 0.0]
    assert [one.read_bytes for one in used] == [0.0, 4e9, 0.0]
    assert used[1].read_share == pytest.approx(4e9 / 10 / 440e9)
    assert used[2].worn_out_s is None and used[1].wear_usd == 0.0
    assert used[1].holding_usd == pytest.approx(1e12 * 10 * 15e-9 * 1.2 / (4 * YEAR))
    with pytest.raises(BadValue, match="span"):
        tier_use(found, pools, hits.sum(axis=0), block_bytes=1e9, span_s=0.0)


def test_tier_use__flash_wears_by_bytes_written() -> None:
    found = parse_tiers("hbm:2GB,flash:30.72TB")
    pools = pools_of(found, 40, 1e9)
    served(pools, [[2 * n, 2 * n + 1] for n in range(20)])
    used = tier_use(found, pools, [0, 0], block_bytes=1e9, span_s=20.0)[1]
    assert pools.pool[POOL + WRITES] == 38
    assert used.wear_usd == pytest.approx(38 * 1.95e-4, rel=0.01)
    assert used.worn_out_s == pytest.approx(30.72e12 * 5 * 365.25 / 1.9e9, rel=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
def test_fetched_s__compiled_equals_plain() -> None:
    found = parse_tiers("hbm:6GB,ddr:1TB@100GB/s")
    plain, fast = (pools_of(found, 12, 1e9) for _ in range(2))
    ways = ((plain, paths_of(found), one_request), (fast, paths_of(found), compiled.compiled(one_request)))
    prompts = [np.arange(first, first + 4) for first in (0, 4, 0, 8, 2)]
    ends = [[float(run(pools, paths, prompt, float(now))) for now, prompt in enumerate(prompts)] for pools, paths, run in ways]
    assert ends[0] == ends[1]
    assert all(np.array_equal(one, other) for one, other in zip(plain, fast, strict=True))


def one_request(pools: Any, paths: Any, prompt: Any, now: float) -> float:
    """Every function that a loop calls, in its order."""
    found, least, counted = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(5, np.int64)
    expire(pools, 0, now)
    hits = match(pools, 0, prompt, 0, 4, now, least, found)
    if not admits(pools, 0, prompt, 0, hits, 5 - hits):
        return -1.0
    count_lookups(pools, counted, found, 4, False)
    ready = fetched_s(paths, pools, 0, found, 1e9, now)
    take(pools, 0, prompt, 0, hits, now)
    hold(pools, 0, 5 - hits, now)
    publish(pools, 0, prompt, hits, 4, ready)
    hold_just(pools, 0, 2, ready)
    release(pools, 0, 2)
    leave(pools, 0, prompt, 0, 4, ready)
    return ready + free_pages(pools, 0)
