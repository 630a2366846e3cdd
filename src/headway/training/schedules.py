"""What a pipeline schedule costs: idle time, and micro-batches kept in flight. Laws do the arithmetic; this file chooses."""

from __future__ import annotations

from typing import Any

from headway.laws.bubble import dualpipe_bubble, interleaved_bubble, one_forward_one_backward_bubble, zero_bubble_h1, zero_bubble_h2
from headway.laws.in_flight import (
    dualpipe_in_flight,
    gpipe_in_flight,
    interleaved_in_flight,
    one_forward_one_backward_in_flight,
    zero_bubble_h2_in_flight,
)
from headway.laws.sums import total
from headway.quantity import known
from headway.training.recipe import TrainingLayout

ONE_COPY = known(1, "copies of the weights", "", "constant", "by definition")
TWO_COPIES = known(2, "copies of the weights", "", "constant", "deepseek-ai/DualPipe README: each chip holds a stage of either direction")


def in_flight(schedule: str, layout: TrainingLayout, count: Any) -> Any:
    """Micro-batches whose activations the first stage keeps at once, in units of its layers."""
    if schedule == "gpipe":
        return gpipe_in_flight(count)
    if schedule == "zb-h2":
        return zero_bubble_h2_in_flight(layout.pp, count)
    if schedule == "dualpipe":
        return dualpipe_in_flight(layout.pp, count)
    if schedule == "interleaved":
        return interleaved_in_flight(layout.pp, count, layout.vpp)
    return one_forward_one_backward_in_flight(layout.pp, count)


def idle(schedule: str, layout: TrainingLayout, count: Any, forward: Any, input_grad: Any, weight_grad: Any) -> Any:
    """Idle time over the ideal time of all micro-batches."""
    if schedule == "zb-h1":
        return zero_bubble_h1(layout.pp, count, forward, input_grad, weight_grad)
    if schedule in ("zb-h2", "zb-v"):
        return zero_bubble_h2(layout.pp, count, forward, input_grad, weight_grad)
    if schedule == "dualpipe":
        both = total((forward, input_grad, weight_grad))
        return dualpipe_bubble(layout.pp, count, forward, input_grad, weight_grad, both)
    if schedule == "interleaved":
        return interleaved_bubble(layout.pp, count, layout.vpp)
    return one_forward_one_backward_bubble(layout.pp, count)


def copies(schedule: str) -> Any:
    """Copies of its weights that a chip holds."""
    return TWO_COPIES if schedule == "dualpipe" else ONE_COPY
