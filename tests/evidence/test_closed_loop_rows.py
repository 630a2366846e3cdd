"""The fixed point of a closed loop against the same loop simulated request by request, each premise alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway.evidence.rows.row import MeasuredRow
from headway.evidence.rows.tasks import Task, tasks
from reference.closed_loops import fixed_points, simulated_loops, spread_tasks

LOADS = ((1, 1000, 200), (8, 1000, 500), (32, 2000, 500), (64, 500, 500))


def asked(engine: str, loads: tuple[tuple[int, int, int], ...] = LOADS, **more: Any) -> list[Task]:
    """Closed loops of one 8B model on one H100; lengths spread as InferenceX's unless a row says otherwise."""
    rows = [
        MeasuredRow(
            line=line,
            id=f"r{line}",
            model="Llama-3.1-8B",
            hardware="H100-SXM-80GB",
            mode="serving_concurrency",
            chips=1,
            engine=engine,
            tp=1,
            weights="bf16",
            prompt=prompt,
            output=output,
            concurrency=users,
            ttft_s=0.1,
            tpot_s=0.01,
            reliability="A",
            **({"source": "inferencex"} | more),
        )
        for line, (users, prompt, output) in enumerate(loads)
    ]
    found = [task for task in tasks(rows) if isinstance(task, Task)]
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("engine", ["vLLM", "TensorRT-LLM", "SGLang"])
def test_closed_loop__users_at_once_equal_synchronised_fixed_point(engine):
    loops = asked(engine)
    ttft, _ = fixed_points(loops, first_round_share=1.0, concurrent_prompts=0.0)
    for run, expected in zip(simulated_loops(loops, per_user=2, how="plain"), ttft, strict=True):
        assert run.first_ttft_s == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("engine", ["vLLM", "TensorRT-LLM"])
def test_closed_loop__spread_users_equal_unsynchronised_fixed_point(engine):
    loops = asked(engine)
    ttft, tpot = fixed_points(loops, first_round_share=0.0, concurrent_prompts=0.0)
    ramp = [float(first + each * task.output) for first, each, task in zip(ttft, tpot, loops, strict=True)]  # type: ignore[operator]
    for run, first, each in zip(simulated_loops(loops, ramp=ramp, how="plain"), ttft, tpot, strict=True):
        assert run.later_ttft_s == pytest.approx(first, rel=0.15)
        assert run.later_tpot_s == pytest.approx(each, rel=0.05)


def test_closed_loop__one_user_is_exact_but_for_context_growth():
    loops = asked("vLLM", source="own", length_cv=0.0, loads=((1, 1000, 200),))
    run, (ttft, tpot) = simulated_loops(loops, how="plain")[0], fixed_points(loops)
    assert run.tpot_s == pytest.approx(tpot[0], rel=0.002)
    assert run.ttft_s == pytest.approx(ttft[0], rel=0.02)
    assert run.ttft_s == pytest.approx(run.later_ttft_s)


def test_closed_loop__equal_answers_keep_users_synchronised():
    loops = asked("SGLang", source="own", length_cv=0.0, loads=((16, 1000, 200),))
    run = simulated_loops(loops, how="plain")[0]
    assert run.later_ttft_s == pytest.approx(run.first_ttft_s, rel=0.01)
    loose = simulated_loops([replace(loops[0], spread=0.2)], how="plain")[0]
    assert loose.later_ttft_s < 0.7 * run.later_ttft_s


def test_spread_tasks__even_sample_of_closed_loops():
    loops = asked("vLLM", loads=LOADS * 5)
    some = spread_tasks([*loops, replace(loops[0], kind="decode")], 5)
    assert [int(task.row.id[1:]) for task in some] == [0, 5, 10, 14, 19]
