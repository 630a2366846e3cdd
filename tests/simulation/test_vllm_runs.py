"""Runs of vLLM replayed: the reader on a run written by hand, the replay on runs whose step time is known, and real runs if there are any.

HEADWAY_VLLM_RUNS names a folder of recorded runs (requests.jsonl, timeseries.csv, meta.json in a folder each).
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headway.core.errors import BadFile
from headway.simulation import state as of
from headway.simulation.simulate import simulate
from headway.simulation.step_time import scaled
from reference.replayed_runs import (
    MeasuredRun,
    apart,
    fitted_replay,
    fleet_of,
    measured_stats,
    read_run,
    replay,
    sampled,
    traffic_of,
    with_prefixes,
)
from support.paths import DATA

HAND = DATA / "vllm_run"
GIVEN = os.environ.get("HEADWAY_VLLM_RUNS", "")
REAL = sorted(path.parent for path in Path(GIVEN).glob("*/requests.jsonl")) if GIVEN else []


def test_read_run__clocks_aligned_at_the_shortest_queueing_delay():
    run = read_run(HAND)
    assert run.arrival == pytest.approx([0, 0.5, 1.5], abs=1e-6)
    assert run.prompt.tolist() == [100, 200, 50]
    assert run.output.tolist() == [5, 11, 3]
    # The second request was queued 0.01 s after it came, so that is where the clocks meet.
    assert run.scheduled == pytest.approx([0.01, 0.52, 1.89], abs=1e-6)
    assert run.first == pytest.approx([0.04, 0.59, 1.99], abs=1e-6)
    assert run.at == pytest.approx([0.75, 1.75, 2.75], abs=1e-6)  # it was started a quarter of a second before the first arrival
    assert run.waiting.tolist() == [0, 1, 0]
    seen = measured_stats(run)
    assert seen.ttft_s == pytest.approx((0.04 + 0.09 + 0.49) / 3)
    assert seen.tpot_s == pytest.approx((0.01 + 0.02 + 0.05) / 3)


def test_fleet_of__engine_settings_set_the_scheduler():
    run = read_run(HAND)
    rules = fleet_of(run).scheduler.rules
    assert (rules.budget, rules.seats, rules.capacity, rules.block, rules.mixed) == (256, 4, 256, 16, 1)
    assert fleet_of(run).query.system.name == "h100-sxm"


@pytest.mark.parametrize(
    ("file", "text"),
    [("meta.json", "{"), ("meta.json", '{"model": "x"}'), ("requests.jsonl", '{"input_toks": 3}'), ("requests.jsonl", ""),
     ("timeseries.csv", "t,running\n1,2\n"), ("timeseries.csv", "t,running,waiting\n1,2,x\n")],
)  # fmt: skip
def test_read_run__bad_file_is_a_one_line_error(tmp_path, file, text):
    shutil.copytree(HAND, tmp_path / "run")
    (tmp_path / "run" / file).write_text(text)
    with pytest.raises(BadFile) as error:
        read_run(tmp_path / "run")
    assert "\n" not in str(error.value)


def test_read_run__hardware_from_the_folder_name(tmp_path):
    shutil.copytree(HAND, tmp_path / "A100-SXM-80GB_Llama")
    path = tmp_path / "A100-SXM-80GB_Llama" / "meta.json"
    meta = json.loads(path.read_text())
    del meta["hardware"]
    path.write_text(json.dumps(meta))
    assert read_run(path.parent).settings.hardware == "A100-SXM-80GB"


def test_with_prefixes__shared_blocks_are_prefilled_once(tmp_path):
    run, path = read_run(HAND), tmp_path / "prompts.jsonl"
    ids = [list(range(6)), [*range(5), *range(10, 17)], [0, 1, 2]]
    rows = [{"input_length": int(prompt), "hash_ids": one} for prompt, one in zip(run.prompt, ids, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shared = with_prefixes(run, path, 16)
    assert shared.block_start.tolist() == [0, 6, 18, 21]
    prefilled = []
    for one in (run, shared):
        made = fleet_of(one)
        played = simulate(traffic_of(one), made.pace, made.scheduler.rules, how="plain", prefix=made.prefix)  # type: ignore[arg-type]
        prefilled.append(played.total(of.PREFILLED))
    assert prefilled == [350, 350 - 5 * 16 - 3 * 16]  # five blocks of the second prompt, three of the third
    path.write_text(json.dumps(rows[0]))
    with pytest.raises(BadFile, match="3 prompts"):
        with_prefixes(run, path, 16)


def recorded(factor: float, count: int = 60) -> MeasuredRun:
    """A run as the simulated engine would have recorded it, its steps longer by a factor."""
    rng = np.random.default_rng(3)
    base = read_run(HAND)
    arrival = np.cumsum(rng.exponential(0.03, count))
    run = replace(base, arrival=arrival - arrival[0], prompt=rng.integers(50, 400, count), output=rng.integers(5, 60, count))
    made = fleet_of(run)
    assert made.pace is not None
    played = simulate(traffic_of(run), scaled(made.pace, factor), made.scheduler.rules, how="plain")
    at = np.arange(0.05, float(played.finish.max()), 0.05)
    curves = sampled(played, at)
    return replace(
        run, scheduled=played.scheduled, first=played.first, last=played.finish, at=at, running=curves[:, 0], waiting=curves[:, 1]
    )  # fmt: skip


def test_fitted_replay__recovers_a_known_step_factor():
    run = recorded(1.3)
    made = fleet_of(run)
    plain, found = replay(run, made), fitted_replay(run, made)
    assert plain.tpot_error < -0.1
    assert found.factor == pytest.approx(1.3, rel=2e-3)
    assert abs(found.ttft_error) < 0.02
    assert found.running_error < 0.02
    assert found.waiting_error < 0.02


def test_running_and_waiting_curves__count_requests():
    run = recorded(1.0)
    inside = (run.scheduled[:, None] <= run.at) & (run.last[:, None] > run.at)
    waits = (run.arrival[:, None] <= run.at) & (run.scheduled[:, None] > run.at)
    assert apart(run.running, inside.sum(axis=0)) < 0.05
    assert apart(run.waiting, waits.sum(axis=0)) < 0.08  # one that comes in the middle of a step is counted from the next on


@pytest.mark.skipif(not REAL, reason="HEADWAY_VLLM_RUNS names no folder of runs")
@pytest.mark.parametrize("folder", REAL, ids=lambda path: path.name)
def test_fitted_replay__ttft_and_running_of_real_runs(folder):
    run = read_run(folder)
    found = fitted_replay(run, fleet_of(run))
    assert abs(found.ttft_error) < 0.15
    assert found.running_error < 0.10
