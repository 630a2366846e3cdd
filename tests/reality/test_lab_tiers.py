"""The lab's cache in three tiers: what it finds and holds beside a brute-force replay, bytes as they were written, prices as `cache`'s."""

from __future__ import annotations

import dataclasses
import math
import os
import random
import shlex
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headway.core.errors import BadValue
from headway.core.trace import Traced
from headway.laws.tiers import hit_share, mean_hold_s
from headway.reality.lab import experiment as frame
from headway.reality.lab import tier_prices, tiers
from headway.reality.lab.catalogue import TIERS
from headway.reality.lab.decoder import random_decoder
from headway.reality.lab.shape import LabShape
from headway.reality.lab.tier_setup import TierSetup
from headway.reality.lab.tier_store import FileBlocks, MemoryBlocks, SlowFileBlocks, TierStore, fill
from headway.reality.lab.tier_traffic import ARRIVALS, TURN, TURNS, reuse_draw, visits
from headway.report.lab import tiers as words
from support.command import Cli
from support.virtual_clock import VirtualClock

COUNT = 200_000
TINY = LabShape(layers=1, hidden=8, heads=2, kv_heads=1, head_dim=4, experts=0, shared_width=8, vocab=16)
SETUP = TierSetup(shape=TINY, quick=True, throttle=1e9)
CALIBRATION = {"prefills": [[3.4e-4] * 3, [3.7e-4] * 3], "loads": [[0.9e-6, 1e-6, 1.1e-6], [1.9e-6, 2e-6, 2.2e-6]], "late_s": 1e-4}
FACTS = {
    "again_s": 3.5e-4, "computed_tokens": 1e6, "returns": 100, "traffic_s": 1e4, "wall_s": 10.0,
    "tiers": [{"hits": 9, "loaded_tokens": 1e5, "load_s": 0.1, "written_bytes": 1e9, "held_byte_s": 1e12, "loads": []}] * 3,
}  # fmt: skip


def test_laws_of_an_exponential_pause_equal_many_draws():
    draw = random.Random(5)
    waits = [draw.expovariate(1 / 240) for _ in range(COUNT)]
    for ttl in (10.0, 240.0, 3600.0):
        assert float(hit_share(ttl, 240.0)) == pytest.approx(sum(wait <= ttl for wait in waits) / COUNT, abs=4e-3)
        assert float(mean_hold_s(ttl, 240.0)) == pytest.approx(math.fsum(min(wait, ttl) for wait in waits) / COUNT, rel=8e-3)


def test_drawings_scatter_about_the_laws():
    points = {(point.quantity, point.at): point for point in tiers.predict(TierSetup(shape=TINY), CALIBRATION)}
    many = reuse_draw(100_000, SETUP.pause, SETUP.ttl, 3)
    kv = float(tiers.token_bytes(SETUP))
    for tier, ttl in enumerate(SETUP.ttl):
        assert float(points[tiers.HITS, ttl].value) == pytest.approx(many.hit_shares[tier], rel=0.01)
        assert float(points[tiers.BYTES, ttl].value) == pytest.approx(ARRIVALS * kv * many.token_s[tier], rel=0.01)


def test_every_prediction_knows_its_law_and_lies_in_its_interval():
    points = frame.sharp(tiers.predict(SETUP, CALIBRATION))
    assert len(points) >= 8 and len({point.quantity for point in points}) >= 3
    for point in points:
        assert isinstance(point.value, Traced), point.quantity
        assert point.low <= point.value <= point.high <= point.low * frame.WIDEST * (1 + 1e-9), point
    assert {point.claim for point in points} == {"", *TIERS.claims}


def replayed(setup: TierSetup) -> tuple[list[int], list[float]]:
    """Returns found by tier, and byte-seconds held, from the visits alone: no store, every second of every cache."""
    found, held = [0, 0, 0, 0], [0.0, 0.0, 0.0]
    turns: dict[int, list[tuple[float, int]]] = {}
    for visit in visits(tiers.conversations(setup), setup.pause, setup.seed):
        turns.setdefault(visit.conversation, []).append((visit.moment, visit.turn * TURN))
    for moments in turns.values():
        for place, (moment, tokens) in enumerate(moments):
            wait = moments[place + 1][0] - moment if place + 1 < len(moments) else math.inf
            if wait < math.inf:
                found[sum(wait > ttl for ttl in setup.ttl)] += 1
            for tier, (begin, end) in enumerate(zip((0.0, *setup.ttl[:-1]), setup.ttl, strict=True)):
                held[tier] += tokens * max(0.0, min(wait, end) - begin)
    return found, held


def test_the_store_finds_holds_and_moves_what_a_replay_says():
    points: dict[int, float] = {}
    plan = [point.plain() for point in tiers.predict(SETUP, CALIBRATION)]
    facts = tiers.measure(SETUP, plan, lambda point: points.update({int(point[0]): point[1]}), VirtualClock())
    found, held = replayed(SETUP)
    kv = float(tiers.token_bytes(SETUP))
    assert [use["hits"] for use in facts["tiers"]] == found[:3] and facts["returns"] == sum(found)
    assert [use["held_byte_s"] for use in facts["tiers"]] == pytest.approx([kv * seconds for seconds in held])
    turn_bytes = kv * TURN * sum(range(1, TURNS + 1)) * tiers.conversations(SETUP)
    assert facts["tiers"][0]["written_bytes"] == turn_bytes
    measured = {(entry["quantity"], entry["at"]): points[place] for place, entry in enumerate(plan) if place in points}
    assert measured[tiers.HITS, SETUP.ttl[1]] == pytest.approx((found[0] + found[1]) / sum(found))
    assert measured[tiers.BYTES, SETUP.ttl[2]] == pytest.approx(kv * held[2] * ARRIVALS / tiers.conversations(SETUP))


@pytest.mark.parametrize("kind", [MemoryBlocks(), FileBlocks(), SlowFileBlocks(1e6, VirtualClock())])
def test_a_cache_comes_back_from_each_tier_as_it_was(kind):
    decoder, block = random_decoder(TINY), np.random.default_rng(2).standard_normal((2, 1, 1, 7, 4), np.float32)
    handle, kept = kind.write(block), block.copy()
    block[:] = 0  # what is kept shares no memory with what was given
    cache = decoder.cache(1, 9)
    assert fill(cache, kind.read(handle, kept.shape)) == 7 == cache.lengths[0]
    kind.drop(handle)
    assert np.array_equal(cache.keys[:, 0, :, :7], kept[0]) and np.array_equal(cache.values[:, 0, :, :7], kept[1])


def test_a_loaded_cache_goes_on_as_one_that_was_never_put_away():
    decoder, tokens = random_decoder(TINY, seed=4), np.random.default_rng(3).integers(TINY.vocab, size=(1, 12))
    store = TierStore(tiers=(MemoryBlocks(), FileBlocks(), SlowFileBlocks(1e9, VirtualClock())), lives=(1.0, 2.0, 3.0))
    whole, first = decoder.cache(1, 12), decoder.cache(1, 12)
    expected = decoder.step(tokens, whole).logits
    decoder.step(tokens[:, :8], first)
    store.keep(0, first, 0.0)
    for now, tier in ((0.5, 0), (1.5, 1), (2.5, 2), (3.5, None)):
        again = decoder.cache(1, 12)
        assert store.load(0, again, now) == tier
        if tier is not None:
            assert np.allclose(decoder.step(tokens[:, 8:], again).logits, expected, atol=1e-5)


def test_a_slow_file_keeps_its_rate_on_a_clock_of_its_own():
    clock = VirtualClock()
    slow, block = SlowFileBlocks(1e6, clock), np.zeros(250_000, np.float32)
    handle = slow.write(block)
    assert clock.now() == pytest.approx(1.0)
    slow.read(handle, block.shape)
    slow.drop(handle)
    assert clock.now() == pytest.approx(2.0)


def test_files_have_no_name_that_could_be_left(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    handle = FileBlocks().write(np.ones(1000, np.float32))
    nameless = not list(tmp_path.iterdir()) and os.fstat(handle.fileno()).st_nlink == 0
    FileBlocks().drop(handle)
    assert nameless or os.name == "nt"


def test_a_full_disk_is_refused_before_anything_is_measured(monkeypatch):
    monkeypatch.setattr(tiers.shutil, "disk_usage", lambda folder: SimpleNamespace(free=10.0))
    with pytest.raises(BadValue, match="TMPDIR"):
        tiers.fitted(SETUP)


@pytest.mark.parametrize("ttl", ["5min", "5min,1min,1h", "1min,1min,1h", "1,2,3,4"])
def test_times_to_live_rise_one_for_each_tier(cli: Cli, ttl):
    answer = cli("lab", "tiers", "--ttl", ttl)
    assert (answer.status, answer.err.count("\n")) == (2, 1) and "--ttl" in answer.err


def test_prices_recover_what_the_run_cost_and_cache_says_the_same_of_a_hold(cli: Cli):
    kv, price = tiers.token_bytes(TierSetup()), 0.05 / 3600
    sheet = tier_prices.sheet(SETUP.ttl, FACTS, kv, price)
    places = tier_prices.places()
    costs = [1e12 * float(place.holding.value) + 1e9 * float(place.wear.value) for place in places]
    assert [entry.write for entry in sheet] == pytest.approx([sum(costs[: tier + 1]) for tier in range(3)])  # of a million tokens
    assert [entry.hit for entry in sheet] == pytest.approx([0.1 * price / 1e5 * 1e6] * 3)
    words = shlex.split(tier_prices.command(SETUP.ttl, FACTS["again_s"], kv, price))
    rows = {(row["tier"], row["hold"]): row for row in cli.rows(*words[1:])}
    for entry, name in zip(sheet, tier_prices.DEVICES, strict=True):
        row = rows[name, entry.live]
        assert entry.cache_write == pytest.approx(row["usd_per_mtok_room"] + row["usd_per_mtok_write"], rel=1e-4)
        assert entry.cache_hit == pytest.approx(row["usd_per_mtok_load"], rel=1e-4)


def test_loads_that_miss_their_stated_rate_are_noise():
    assert tiers.noise(SETUP, {"share": 0.95, "again_spread": 0.01, "slow_spread": 0.01}) == []
    assert len(tiers.noise(SETUP, {"share": 0.5, "again_spread": 0.5, "slow_spread": 0.2})) == 3


def test_an_unlike_price_of_the_machine_moves_the_break_even_alone():
    def values(setup: TierSetup) -> dict[tuple[str, float], float]:
        return {(point.quantity, point.at): float(point.value) for point in tiers.predict(setup, CALIBRATION)}

    usual, dear = values(SETUP), values(dataclasses.replace(SETUP, machine_price=SETUP.machine_price * 2))
    (key,) = {key for key in usual if usual[key] != dear[key]}
    assert key == (tiers.BREAK_EVEN, SETUP.ttl[0]) and dear[key] == pytest.approx(2 * usual[key], rel=1e-3)


def test_words_of_a_run_name_hits_drain_times_and_the_question_to_cache():
    def child(module: str, request: Mapping[str, Any], threads: int, hear: Callable[[Any], None] = lambda part: None) -> dict[str, Any]:
        return CALIBRATION if request["job"] == "calibrate" else tiers.measure(SETUP, request["plan"], hear, VirtualClock())

    about = {"date": "2026-11-27", "machine": "a machine", "noise": frame.Noise(load=0.0, cores=2)}
    run = frame.run(TIERS, SETUP, about, lambda document: None, child)
    rows = [
        {"quantity": point.quantity, "at": point.at, "measured": run.points[place].value} for place, point in enumerate(run.predictions)
    ]
    found, _ = replayed(SETUP)
    shares = [f"{sum(found[:count]) / sum(found):.0%}" for count in (1, 2)]
    assert ", ".join(shares) in words.headline(run, rows) and "1 min, 5 min" in words.headline(run, rows).replace("60 s", "1 min")
    ran, drains, _, asked = words.below(run, rows)
    assert f"memory {found[0]} loads" in ran and "memory in" in drains and "headway cache --kv-bytes" in asked
