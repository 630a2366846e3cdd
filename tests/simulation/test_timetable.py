"""Departures on a timetable as `headway sim` reports them; what plain Python needs to measure the capacity of many ranks."""

from __future__ import annotations

import numpy as np
import pytest

from headway.simulation.capacity import saturated_sample
from headway.simulation.compiled import COMPILE_S, NO_RULES, saturated_s
from headway.simulation.state import place_of
from headway.simulation.traffic.requests import Traffic
from support.command import Cli

SMALL = "sim llama-3.1-8b --on h100-sxm --rate 4/s --prompt 500 --output 40 --requests 60 --sensitivity 0"


def test_departures_drain__is_capacity_over_bandwidth(cli: Cli) -> None:
    document = cli.json(f"{SMALL} --departures drain")
    (row,) = document["rows"]
    assert row["departures_s"] == pytest.approx(80e9 / 3.35e12, rel=1e-12)
    assert any(note.startswith("departures every 23.9 ms") for note in document["notes"])
    assert row == cli.rows(f"{SMALL} --departures {80e9 / 3.35e12!r}s")[0] | {key: row[key] for key in ("compile_s", "wall_s")}


def test_departures__half_the_interval_halves_the_step_and_the_wait(cli: Cli) -> None:
    """Steps of this model are shorter than either interval, so that a decode step takes one interval, and a wait half of one at least."""
    (row,) = cli.rows(f"{SMALL} --departures 100ms")
    assert row["mean_tpot_s"] == pytest.approx(0.1, rel=0.02) and row["half_mean_tpot_s"] == pytest.approx(0.05, rel=0.02)
    assert row["mean_queue_s"] == pytest.approx(0.05, rel=0.25) and row["half_mean_queue_s"] < 0.7 * row["mean_queue_s"]
    assert row["half_train_fill"] < row["train_fill"] < 1  # shorter service, fewer in service: Little's law
    assert row["train_fill"] == pytest.approx(row["decode_batch_mean"] / 1024, rel=1e-9)


def test_departures__steps_longer_than_the_interval_say_so(cli: Cli) -> None:
    """By hand: a decode step reads 16 GB at 3.35 TB/s, so it takes more than one interval of 2 ms, and the timetable is not kept."""
    note = next(note for note in cli.json(f"{SMALL} --departures 100ms")["notes"] if note.startswith("A step leaves every"))
    assert note.startswith("A step leaves every 100 ms; it is ")
    document = cli.json(f"{SMALL} --departures 2ms")
    (row,) = document["rows"]
    assert 16.06e9 / 3.35e12 < row["train_period_s"] < row["mean_tpot_s"] * 2
    note = next(note for note in document["notes"] if note.startswith("A step leaves every"))
    assert f"{row['train_period_s'] / 2e-3:.1f} intervals, since a step takes longer than one" in note


def test_departures__without_a_timetable_there_is_no_train(cli: Cli) -> None:
    assert cli.rows(SMALL)[0].get("departures_s") is None


def test_saturated_sample__counts_sequences_of_all_ranks() -> None:
    traffic = Traffic.of(np.zeros(10), 100, 50)
    few, many = (saturated_sample(traffic, NO_RULES._replace(seats=seats, capacity=100_000_000))[0] for seats in (1024, 72 * 1024))
    assert few == 1024 + 20_000 and many == 72 * 1024 * 7
    assert saturated_s(many, 50.0) > COMPILE_S > saturated_s(few, 50.0)


def test_place_of__finds_every_name() -> None:
    heap = [value for pair in ((1.0, 5.0), (2.0, 3.0), (3.0, 9.0)) for value in pair]
    assert [place_of(heap, 3, name) for name in (5, 3, 9)] == [0, 1, 2]
