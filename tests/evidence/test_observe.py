"""Measured rows as observations: slopes against the laws themselves, servers of known factors, and rows that no run is about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.evidence.calibration.linear import linear
from headway.evidence.calibration.observe import observe
from headway.evidence.rows.run_keys import task_key, task_month
from headway.evidence.rows.tasks import Task, tasks
from headway.evidence.serving.machines import machines
from headway.evidence.serving.predict import load_of, predict
from headway.laws.step.step import step_floor_s
from headway.performance.calibration.factors import PARAMETERS, RunFactors, calibrated
from headway.performance.calibration.posterior import posterior
from headway.performance.request import Requests, closed_loop, unloaded_ttft_s
from support.own_runs import inside, server_rows, simulated, under

NO_SCATTER = {"ttft": np.zeros(6), "tpot": np.zeros(6)}
LOGS = np.array([0.15, -0.2, 0.3, 0.0, 0.1])


def served(index: int = 0) -> list[Task]:
    return [task for task in tasks(server_rows(index)) if isinstance(task, Task)]


def values(logs: np.ndarray) -> dict[str, np.ndarray]:
    """Quantities of the rows of a server, and what its linear form says of a step of a hundredth from there."""
    rows = served()
    expected, slopes = linear("serving", machines([task.setup for task in rows]), load_of(rows), None, np.tile(logs, (len(rows), 1)))
    return {"ttft": expected.ttft, "tpot": expected.tpot, "ttft slopes": slopes["ttft"], "tpot slopes": slopes["tpot"]}


def test_slopes__of_the_laws_by_small_steps() -> None:
    there = values(np.zeros(5))
    for place in range(len(PARAMETERS)):
        ahead, back = values(0.05 * np.eye(5)[place]), values(-0.05 * np.eye(5)[place])
        for name in ("ttft", "tpot"):
            slope = np.log(ahead[name] / back[name]) / 0.1
            assert there[f"{name} slopes"][:, place] == pytest.approx(slope, abs=0.12)


def test_rows__as_each_alone() -> None:
    rows = under(server_rows(0), LOGS, NO_SCATTER)
    together = observe(rows, [task.row.id for task in rows])
    assert {observation.quantity for observation in together} == {"tpot", "ttft"}
    assert len(together) == 2 * len(rows)
    assert [observation.run for observation in together[::2]] == [task.row.id for task in rows]


def test_server_of_known_factors__is_predicted_at_other_loads() -> None:
    """Three runs of six, exact: the rest to a few percent, where the usual prediction is far off."""
    rows = under(server_rows(0), LOGS, NO_SCATTER)
    runs = observe(rows[::2], [f"mine:{task.row.id}" for task in rows[::2]])
    known = posterior(runs, task_key(rows[0]), task_month(rows[0]))
    assert known.mean[0] == pytest.approx(LOGS[0], abs=0.06)
    for task, before, after in zip(rows[1::2], predict(rows[1::2]), predict(rows[1::2], runs=runs), strict=True):
        assert before.tpot and after.tpot and before.ttft and after.ttft and task.row.tpot_s and task.row.ttft_s
        assert abs(np.log(after.tpot.expected / task.row.tpot_s)) < 0.02 < abs(np.log(before.tpot.expected / task.row.tpot_s))
        assert abs(np.log(after.ttft.expected / task.row.ttft_s)) < 0.06
        assert after.tpot.high / after.tpot.low < before.tpot.high / before.tpot.low
        assert after.tpot.low <= task.row.tpot_s <= after.tpot.high
        assert (after.tpot.floor, after.ttft.floor) == (before.tpot.floor, before.ttft.floor)
        assert after.posterior.runs == tuple(f"mine:{row.row.id}" for row in rows[::2])


def test_rows_that_no_run_is_about__to_the_last_digit() -> None:
    runs = observe(under(server_rows(0), LOGS, NO_SCATTER), ["mine:x"] * 6)
    sglang = [task for task in tasks([replace(row, engine="SGLang") for row in server_rows(0)]) if isinstance(task, Task)]
    mixed = [*sglang, *served()]
    for before, after in list(zip(predict(mixed), predict(mixed, runs=runs), strict=True))[: len(sglang)]:
        assert (before.tpot, before.ttft, before.rate, before.per_chip) == (after.tpot, after.ttft, after.rate, after.per_chip)
        assert after.posterior.runs == ()


def test_no_runs__none() -> None:
    assert observe([], []) == ()
    assert predict(served(), runs=()) == predict(served())


def test_factors__act_where_they_say() -> None:
    """Twice the step is twice TPOT where nothing else takes time; `first` is on TTFT alone; all of them 1 changes nothing."""
    rows = served(1)
    server, load = machines([task.setup for task in rows]), load_of(rows)
    requests = Requests(prompt=load.prompt, output=load.output)
    plain = closed_loop(server, requests, load.users)
    for factors in (RunFactors(), RunFactors(first=1.0)):
        again = closed_loop(calibrated(server, factors), requests, load.users)
        assert (again.tpot == plain.tpot).all() and (again.ttft == plain.ttft).all() and (again.rate == plain.rate).all()
    later = closed_loop(calibrated(server, RunFactors(first=1.5)), requests, load.users)
    assert (later.tpot == plain.tpot).all() and (later.rate == plain.rate).all()
    assert later.ttft == pytest.approx(1.5 * plain.ttft)
    both = (RunFactors(), RunFactors(first=2, step=2))
    floors = [unloaded_ttft_s(calibrated(server, factors), requests, step_floor_s) for factors in both]
    assert (floors[0] == floors[1]).all()
    slower = closed_loop(calibrated(server, RunFactors(step=2.0)), requests, load.users)
    assert slower.tpot == pytest.approx(2 * plain.tpot, rel=0.1)


def test_simulated_servers__factors_lie_in_their_intervals() -> None:
    """40 servers with factors from the priors and the scatter of a Student t: 32 to 40 of their 90 % intervals hold the truth."""
    assert all(32 <= count <= 40 for count in inside(simulated(40)).values())
