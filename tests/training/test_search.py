"""The search for a layout against every legal one, and its questions: fewest chips, lowest cost."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import headway as hw
from headway.hardware.system import system
from headway.models.config import model
from headway.training.estimate import estimate
from headway.training.recipe import RECOMPUTE, Recipe, TrainingLayout, TrainingRun
from headway.training.run import case_of
from headway.training.search import (
    AT_ONCE,
    FEWEST_TOKENS,
    MICRO_BATCHES,
    NAMES,
    bounds,
    candidates,
    legal,
    rows,
    rules,
    search,
    why_illegal,
    with_recipe,
)
from headway.training.train import TrainingQuestion, cases
from support.work import calls

DAY = 86400


def asked(name: str, machine: str, **given: Any) -> Any:
    run = {key: given.pop(key) for key in ("seq", "global_batch") if key in given}
    return cases([model(name)], [system(machine)], TrainingQuestion(records={TrainingRun: run, Recipe: given}))[0]


def every_legal(of: Any, micro: int) -> TrainingLayout:
    """All layouts of small numbers that keep the rules."""
    chips = range(1, of.chips + 1)
    contexts = [n for n in chips if of.sequence % n == 0 and of.sequence // n >= FEWEST_TOKENS]
    ways = [
        (tp, cp, pp, vpp, ep, dp, batch, zero)
        for tp, cp, pp in itertools.product(chips, contexts, range(1, min(of.shape.layers, of.chips) + 1)) if tp * cp * pp <= of.chips
        for dp in range(1, of.chips // (tp * cp * pp) + 1) for batch in range(1, micro + 1)
        for vpp in range(1, of.shape.layers + 1) for ep in range(1, max(of.shape.experts, 1) + 1) for zero in range(4)
    ]  # fmt: skip
    table = np.array(ways, dtype=np.int64)
    found = TrainingLayout(**{name: table[:, index] for index, name in enumerate(NAMES)})
    return rows(found, np.flatnonzero(legal(found, of)))


@pytest.mark.parametrize(
    ("name", "machine", "sequences", "seq"),
    [
        ("qwen2.5-0.5b", "8xh100-sxm", 12, 4096),
        ("llama-3.1-8b", "16xh100-sxm", 16, 2048),
        ("llama-3.1-8b", "16xh100-sxm", 24, 8192),
        ("llama-3.1-8b", "16xa100-sxm-80", 4, 8192),
        ("gpt-oss-20b", "16xh100-sxm", 16, 4096),
    ],
)
def test_search__no_legal_layout_is_faster(name: str, machine: str, sequences: int, seq: int) -> None:
    """Every legal layout with at most 6 sequences a micro-batch and 1,024 tokens of a sequence a chip, of every ZeRO stage."""
    request = asked(name, machine, seq=seq, global_batch=sequences * seq)
    case = case_of(request)
    of = bounds(model(name), int(case.system.chips), seq, sequences)
    found = search(request, case)
    every = every_legal(of, 6)
    best = np.inf
    for mode, chunked in itertools.product(RECOMPUTE, (False, True)):
        some = rows(every, np.flatnonzero((every.vpp > 1) == chunked))
        if not len(some.tp):
            continue
        recipe = replace(case.recipe, recompute=mode, schedule="interleaved" if chunked else "1f1b")
        made = estimate(with_recipe(case, model(name), recipe), some)
        best = min(best, float(np.where(made.fits, made.time.step, np.inf).min()))
    assert found.layouts[0].fits
    assert found.layouts[0].step == pytest.approx(best, rel=1e-9)


def test_candidates__legal_and_distinct() -> None:
    of = bounds(model("deepseek-v3"), 2048, 4096, 15360)
    found = candidates(of, 8, {})
    assert legal(found, of).all()
    table = np.stack([getattr(found, name) for name in NAMES], axis=1)
    assert len(np.unique(table, axis=0)) == len(table) > 10_000
    assert set(np.unique(found.micro_batch)) <= set(MICRO_BATCHES) and set(np.unique(found.zero)) == {1, 2, 3}
    for values in (found.tp, found.cp, found.pp, found.vpp, found.ep, found.dp):
        assert len(np.unique(values)) > 2
    assert (found.tp * found.cp * found.pp * found.dp <= 2048).all()


def test_candidates__pinned_degrees_are_kept() -> None:
    of = bounds(model("llama-3.1-405b"), 16384, 8192, 2048)
    found = candidates(of, 8, {"tp": (8,), "pp": (8, 16), "zero": (1,)})
    assert set(found.tp) == {8} and set(found.pp) == {8, 16} and set(found.zero) == {1}


def test_legal__same_for_one_layout_as_for_an_array() -> None:
    of = bounds(model("deepseek-v3"), 64, 4096, 96, "dualpipe")
    rng = np.random.default_rng(0)
    table = rng.integers(1, 9, size=(400, len(NAMES)))
    many = TrainingLayout(**{name: table[:, index] for index, name in enumerate(NAMES)})
    together = legal(many, of)
    for index, kept in enumerate(together):
        one = TrainingLayout(**{name: int(table[index, place]) for place, name in enumerate(NAMES)})
        assert (why_illegal(one, of) == "") == kept
    assert len(list(rules(many, of))) >= 14


def test_estimate__same_for_one_layout_as_for_an_array() -> None:
    """Arrays and scalars through the same laws."""
    case = case_of(asked("deepseek-v3", "2048xh800", seq=4096, global_batch=15360 * 4096))
    of = bounds(model("deepseek-v3"), 2048, 4096, 15360)
    every = rows(candidates(of, 8, {"vpp": (1,)}), slice(0, 50_000, 997))
    many = estimate(case, every)
    for index in range(0, len(every.tp), 5):
        alone = estimate(case, TrainingLayout(**{name: int(getattr(every, name)[index]) for name in NAMES}))
        assert float(alone.time.step) == pytest.approx(float(many.time.step[index]), rel=1e-12)
        assert float(alone.memory.total) == pytest.approx(float(many.memory.total[index]), rel=1e-12)


def test_estimate__work_does_not_grow_with_the_number_of_layouts() -> None:
    """However many there are, each law is evaluated about once; bench/bench_training.py measures how many that is a second."""
    case = case_of(asked("deepseek-v3", "2048xh800", seq=4096, global_batch=15360 * 4096))
    of = bounds(model("deepseek-v3"), 2048, 4096, 15360)
    few, many = (rows(candidates(of, 8, {"vpp": (1,)}), slice(0, count)) for count in (10, AT_ONCE))
    assert len(many.tp) == AT_ONCE
    assert calls(lambda: estimate(case, many)) < 2 * calls(lambda: estimate(case, few)) < 5000


RUN: dict[str, Any] = {"tokens": "1T", "seq": 8192, "global_batch": 512 * 8192}


@pytest.mark.parametrize("machine", ["h100-sxm", "1024xh100-sxm"])
def test_deadline__fewest_nodes_that_keep_it_with_the_confidence(machine: str) -> None:
    """Of every count of whole nodes, by their own intervals as a lognormal: the first that is in time in 80 of 100 worlds."""
    some = next(iter(hw.train("llama-3.1-8b", machine, deadline="20d", **RUN)))
    assert some["fits"] and some["kind"] == "best" and some["confidence"] >= 0.8

    def sure(chips: int) -> float:
        row = next(iter(hw.train("llama-3.1-8b", f"{chips}xh100-sxm", **RUN)))
        deviation = math.log(row["run_hi_s"] / row["run_s"]) / 1.6449
        return NormalDist().cdf(math.log(20 * DAY / row["run_s"]) / deviation)

    fewer = range(some["chips"] // 2 // 8 * 8, some["chips"], 8)
    assert sure(some["chips"]) == pytest.approx(some["confidence"], abs=1e-4) and max(map(sure, fewer)) < 0.8


def test_deadline__less_confidence_wants_no_more_chips() -> None:
    counts = [next(iter(hw.train("llama-3.1-8b", "h100-sxm", deadline="20d", confidence=share, **RUN)))["chips"]
              for share in (0.5, 0.99)]  # fmt: skip
    assert counts[0] < counts[1]


def test_deadline__missed_is_said_with_the_chips_that_would_keep_it() -> None:
    found = hw.train("llama-3.1-8b", "64xh100-sxm", deadline="10d", **RUN)
    row = next(iter(found))
    assert row["run_s"] > 10 * DAY and row["kind"] == "over a limit" and "misses the deadline of 10 d" in row["why"]
    first = found.answer
    assert "misses the deadline of 10 d (chance under 1%)" in first
    machine = re.search(r"--on (\d+xh100-sxm)", first)
    assert machine and found.helps[0].change.endswith(f"(--on {machine[1]})")
    enough = next(iter(hw.train("llama-3.1-8b", machine[1], deadline="10d", **RUN)))
    assert enough["kind"] == "best" and f"{enough['chips']:,} chips" in found.helps[0].change


def test_budget__the_fastest_run_that_keeps_it() -> None:
    """No count of a few weighed is faster within the budget, and a deadline beside it takes fewer chips."""
    row = next(iter(hw.train("llama-3.1-8b", "h100-sxm", budget="150kUSD", **RUN)))
    assert row["kind"] == "best" and row["run_usd"] < 150e3 and row["confidence"] >= 0.8
    factor = row["run_hi_s"] / row["run_s"]
    surely = math.exp(math.log(factor) / 1.6449 * NormalDist().inv_cdf(0.8))
    for chips in (256, 512, 2048):
        other = next(iter(hw.train("llama-3.1-8b", f"{chips}xh100-sxm", **RUN)))
        assert other["run_s"] >= row["run_s"] * (1 - 1e-9) or other["run_usd"] * surely > 150e3
    both = next(iter(hw.train("llama-3.1-8b", "h100-sxm", budget="150kUSD", deadline=row["run_s"] * 4, **RUN)))
    assert both["chips"] < row["chips"] and both["kind"] == "best"
    dear = hw.train("llama-3.1-8b", "h100-sxm", budget="1kUSD", **RUN)
    assert "misses the budget of $1,000" in dear.answer


def test_objective_cost__no_part_of_the_machine_is_cheaper() -> None:
    """On fewer chips less is sent: a part of the machine costs less than all of it, and none of those weighed costs less."""
    ask: dict[str, Any] = {"tokens": "1T", "seq": 8192, "global_batch": 512 * 8192}
    cheap = next(iter(hw.train("llama-3.1-70b", "1024xh100-sxm", objective="cost", **ask)))
    for chips in (1024, 512, 256):
        assert next(iter(hw.train("llama-3.1-70b", f"{chips}xh100-sxm", **ask)))["run_usd"] >= cheap["run_usd"] * (1 - 1e-9)


def test_train__notes_say_what_would_fit() -> None:
    found = hw.train("llama-3.1-70b", "8xh100-sxm", seq=8192)
    row = next(iter(found))
    assert not row["fits"] and "optimiser's states" in row["why"]
    assert any("32 of these chips" in note for note in found.notes)
    assert next(iter(hw.train("llama-3.1-70b", "32xh100-sxm", seq=8192)))["fits"]
    assert not next(iter(hw.train("llama-3.1-70b", "16xh100-sxm", seq=8192)))["fits"]
    leaner = hw.train("llama-3.1-8b", "1xh200-sxm", seq=4096)
    assert any("adam-8bit" in note for note in leaner.notes)
    assert next(iter(hw.train("llama-3.1-8b", "1xh200-sxm", seq=4096, optimizer="adam-8bit")))["fits"]


def test_chips_idle__note_gives_a_global_batch_that_uses_them() -> None:
    found = hw.train("llama-3.1-405b", "16384xh100-sxm", seq=8000, global_batch=16_000_000)
    assert next(iter(found))["chips_idle"] > 0
    assert any("--global-batch 16384000" in change.change for change in found.helps)
