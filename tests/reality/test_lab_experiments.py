"""Experiments of the lab: predicted and hashed before they measure, kept when they are stopped, trains on a virtual clock inside."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.core.trace import Traced
from headway.evidence.claims.claim import claims
from headway.laws.queueing.departures import timetable_wait_s
from headway.reality.lab import experiment as frame
from headway.reality.lab import trains
from headway.reality.lab.batch import knee
from headway.reality.lab.catalogue import EXPERIMENTS, TRAINS
from headway.reality.lab.experiment import Noise, PredictedPoint, digest
from headway.reality.lab.train_setup import TrainSetup
from headway.report.lab.words import described
from support.command import Cli
from support.virtual_clock import VirtualClock

SETUP = TrainSetup(step=(0.001, 0.0001), requests=500)  # as --quick has
ABOUT = {"date": "2026-11-27", "machine": "a machine", "noise": Noise(load=0.0, cores=2)}
LATE = {"late_s": 1e-4}


class FakeChild:
    """A process that measures on a virtual clock, and stops after some points as a user would stop it."""

    def __init__(self, stops_after: int | None = None) -> None:
        self.stops_after, self.requests = stops_after, list[Mapping[str, Any]]()

    def __call__(self, module: str, request: Mapping[str, Any], threads: int, hear: Callable[[Any], None] = lambda part: None) -> dict:
        self.requests.append(request)
        if request["job"] == "calibrate":
            return LATE
        points: list[Any] = []

        def say(point: Any) -> None:
            if len(points) == self.stops_after:
                raise KeyboardInterrupt
            points.append(point)
            hear(point)

        return trains.measure(SETUP, request["plan"], say, VirtualClock())


def test_a_run_is_written_down_before_its_first_point_and_lies_inside():
    kept: list[Mapping[str, Any]] = []
    child = FakeChild()
    run = frame.run(TRAINS, SETUP, ABOUT, kept.append, child)
    assert [request["job"] for request in child.requests] == ["calibrate", "measure"]
    assert len(kept) == 1 and not any("measured" in point for point in kept[0]["points"])
    assert kept[0]["predictions_sha256"] == run.digest == digest(run.predictions)
    plan = child.requests[1]["plan"]
    assert [point["value"] for point in plan] == [float(point.value) for point in run.predictions]
    assert sum(bool(run.is_inside(place)) for place in run.points) >= 0.75 * len(run.predictions)
    assert json.loads(json.dumps(run.document()))["points"][0]["measured"] == run.points[0].value


def test_who_stops_keeps_the_points_so_far():
    run = frame.run(TRAINS, SETUP, ABOUT, lambda document: None, FakeChild(stops_after=4))
    assert run.interrupted and len(run.points) == 4
    assert run.is_inside(len(run.predictions) - 2) is None


def test_a_hash_changes_with_any_number():
    point = PredictedPoint(quantity="q", claim="TS-05", at=1.0, unit="s", value=1.0, low=0.9, high=1.1)
    others = [dataclasses.replace(point, **{name: getattr(point, name) + 1e-12}) for name in ("at", "value", "low", "high")]
    assert len({digest([one]) for one in (point, *others)}) == 5


def test_intervals_of_trains_are_no_wider_than_a_factor_of_two_and_know_their_law():
    for point in trains.predict(SETUP, {"late_s": 0.0}):
        assert point.low <= point.value * (1 + 1e-9) and point.value <= point.high * (1 + 1e-9), point
        assert point.high / point.low <= frame.WIDEST * (1 + 1e-9), point
        assert isinstance(point.value, Traced)


def test_waits_of_two_thousand_requests_lie_within_five_percent_of_the_law():
    """At a quarter, a half and three quarters of the seats, where the law is no more than what a queue of few adds to half an interval."""
    setup = dataclasses.replace(SETUP, requests=2000)
    for load in (0.25, 0.5, 0.75):
        passengers, _ = trains.ride(setup, load, trains.work(setup, clock := VirtualClock()), clock)
        wait = np.mean([passenger.departure - passenger.arrival for passenger in passengers])
        assert wait == pytest.approx(float(timetable_wait_s(load * setup.limit / setup.every, setup.every, setup.limit)), rel=0.05)


def test_a_knee_is_where_a_token_costs_twice_what_it_does_at_last():
    sizes = tuple(2**power for power in range(14))
    floor, slope = 0.5, 0.004
    found = knee(sizes, [floor + slope * size for size in sizes])
    last = (floor + slope * sizes[-1]) / sizes[-1]
    assert found is not None and (floor + slope * found) / found == pytest.approx(2 * last, rel=0.02)
    assert knee((1, 2), (1.0, 1.9)) is None


def test_every_experiment_tests_claims_that_there_are(cli: Cli):
    for entry in EXPERIMENTS.values():
        assert set(entry.claims) <= set(claims())
        for claim in entry.claims:
            assert f"headway lab {entry.name}" in cli("lecture", claim).text
    assert [row["experiment"] for row in cli.rows("lab")] == list(EXPERIMENTS)


@pytest.mark.parametrize(("limit", "requests"), [(1, 2000), (2, 100), (4, 100), (16, 100)])
def test_no_interval_is_wider_than_a_factor_of_two_and_none_stands_for_a_law_that_is_silent(limit, requests):
    setup = dataclasses.replace(SETUP, limit=limit, requests=requests)
    points = frame.sharp(trains.predict(setup, LATE))
    assert points and all(point.high <= point.low * frame.WIDEST * (1 + 1e-9) for point in points)
    full = any(point.quantity == trains.WORST for point in points)
    assert full == (limit == 16)  # fewer seats fill at a quarter of them, and a wait is longer than an interval


@pytest.mark.parametrize(("command", "word"), [
    (("--every", "4ms", "--step", "6ms+0.05ms"), "--every"), (("--every", "1ns"), "1 ms"), (("--every", "1h"), "10 s"),
    (("--quick", "--every", "1s"), "--quick"), (("--quick", "--limit", "1"), "--quick"), (("--quick", "--requests", "200"), "--requests"),
    (("--step", "2ms+0.1ms", "--experts", "4"), "--step"), (("--step", "2ms+0.1ms", "--threads", "2"), "--step"),
    (("--step", "1..2ms+1ms"), "--step"), (("--context", "100"), "--serve"), (("--serve", "--step", "2ms+0.1ms", "--seed", "3"), "--step"),
])  # fmt: skip
def test_what_cannot_be_predicted_or_changes_nothing_is_refused(cli: Cli, command, word):
    answer = cli("lab", "trains", *command)
    assert (answer.status, answer.err.count("\n")) == (2, 1) and word in answer.err


@pytest.mark.parametrize(("interval", "limit"), [(0.02, 16), (0.1, 16), (0.2, 16), (0.005, 1), (0.5, 64)])
def test_a_quick_run_takes_under_20_seconds(interval, limit):
    setup = trains.fitted(dataclasses.replace(SETUP, every=interval, limit=limit, requests=2000, quick=True))
    seconds = sum(setup.requests * interval / (load * limit) for load in trains.LOADS) + trains.SLEEPS * interval / 10
    assert 100 <= setup.requests <= 500 and seconds < 18


def test_who_stops_gets_no_verdict():
    run = frame.run(TRAINS, SETUP, ABOUT, lambda document: None, FakeChild(stops_after=4))
    rows = [{"quantity": point.quantity, "claim": point.claim, "unit": point.unit, "axis": "load", "at": point.at, "predicted": point.value,
             "predicted_lo": point.low, "predicted_hi": point.high, "inside": run.is_inside(place),
             "measured": run.points[place].value if place in run.points else None}
            for place, point in enumerate(run.predictions)]  # fmt: skip
    assert "no verdict, as it was interrupted" in str(described(run, rows).headline)


def test_a_late_machine_gives_no_verdict():
    assert trains.noise(SETUP, {"late_s": 0.004, "step_s": 0.03}) == [
        "the usual train left 20% of an interval late", "the usual step took 150% of an interval",
    ]  # fmt: skip
    assert trains.noise(SETUP, {"late_s": 1e-4, "step_s": 1e-3}) == []


def test_a_file_is_kept_whole_written_over_only_with_replace_and_checked_before_anything_is_measured(cli: Cli, tmp_path: Path, monkeypatch):
    path = tmp_path / "run.json"
    fake, real = FakeChild(), frame.run
    monkeypatch.setattr(frame, "run", lambda *args, **more: real(*args, **more, child=fake))
    command = ("lab", "trains", "--quick", "--step", "1ms+0.1ms", "--save", str(path))
    assert cli(*command).status == 0 and json.loads(path.read_text())["points"][0]["measured"]
    again = cli(*command)
    assert (again.status, again.err.count("\n")) == (2, 1) and "--replace" in again.err and len(fake.requests) == 2
    assert cli(*command, "--replace").status == 0 and list(tmp_path.iterdir()) == [path]
    assert cli("lab", "trains", "--save", str(tmp_path)).status == cli("lab", "trains", "--replace").status == 2


def test_points_that_cannot_be_kept_are_answered(cli: Cli, tmp_path: Path, monkeypatch):
    fake, real, folder = FakeChild(), frame.run, tmp_path / "folder"
    folder.mkdir()

    def run(*args: Any, **more: Any) -> Any:
        result = real(*args, **more, child=fake)
        shutil.rmtree(folder)
        return result

    monkeypatch.setattr(frame, "run", run)
    answer = cli("lab", "trains", "--quick", "--step", "1ms+0.1ms", "--save", str(folder / "run.json"))
    assert answer.status == 1 and "were not kept" in answer.out and "Requests wait" in answer.out


def test_save_wants_a_folder(cli: Cli, tmp_path: Path):
    answer = cli("lab", "trains", "--save", str(tmp_path / "none" / "run.json"))
    assert (answer.status, answer.err.count("\n")) == (2, 1) and "folder" in answer.err
