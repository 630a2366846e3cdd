"""Pipeline bubbles against schedules played out step by step, and against each other."""

from __future__ import annotations

import pytest

from headway.laws.training.step import (
    dualpipe_bubble,
    interleaved_bubble,
    one_forward_one_backward_bubble,
    unequal_stages_s,
    wall_time_share,
    zero_bubble_h1,
    zero_bubble_h2,
)


def gpipe_s(forward: list[float], backward: list[float], micro_batches: int) -> float:
    """All forwards, then all backwards: each task waits for its chip and for the stage before it."""
    stages = len(forward)
    free = [0.0] * stages
    done: dict[tuple[int, int], float] = {}
    for batch in range(micro_batches):
        for stage in range(stages):
            free[stage] = max(free[stage], done.get((batch, stage - 1), 0.0)) + forward[stage]
            done[batch, stage] = free[stage]
    back: dict[tuple[int, int], float] = {}
    for batch in range(micro_batches):
        for stage in reversed(range(stages)):
            free[stage] = max(free[stage], back.get((batch, stage + 1), done[micro_batches - 1, stages - 1])) + backward[stage]
            back[batch, stage] = free[stage]
    return max(free)


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 4), (2, 3), (4, 4), (4, 16), (8, 32)])
def test_one_forward_one_backward_bubble__equals_simulated_gpipe(stages: int, micro_batches: int) -> None:
    played = gpipe_s([1.0] * stages, [2.0] * stages, micro_batches)
    bubble = one_forward_one_backward_bubble(stages, micro_batches)
    assert played == pytest.approx(micro_batches * 3.0 * (1 + bubble))
    assert wall_time_share(bubble) == pytest.approx((stages - 1) / (micro_batches + stages - 1))  # lecture PP-07


def test_unequal_stages_s__slowest_stage_paces() -> None:
    stages = [1.0, 1.0, 1.5, 1.0]
    assert unequal_stages_s(tuple(stages), 16) == pytest.approx(gpipe_s(stages, [0.0] * 4, 16))


@pytest.mark.parametrize("micro_batches", [8, 16, 64, 1024])
def test_pipeline_bubble__smaller_in_each_later_schedule(micro_batches: int) -> None:
    plain = one_forward_one_backward_bubble(8, micro_batches)
    assert interleaved_bubble(8, micro_batches, 1) == plain
    assert interleaved_bubble(8, micro_batches, 4) == plain / 4
    h1, h2 = (law(8, micro_batches, 1.0, 1.0, 1.0) for law in (zero_bubble_h1, zero_bubble_h2))
    dual = dualpipe_bubble(8, micro_batches, 1.0, 1.0, 1.0, 3.0)
    assert h2 == 0 < dual < h1 < plain
    assert h1 == pytest.approx(plain / 3)  # the weight gradient, a third of the work, fills the rest
