"""Pipeline bubbles in training: idle time over the ideal time of all micro-batches, by schedule.

`forward`, `input_grad` and `weight_grad` are one stage's times for one micro-batch; a backward is the sum of the last two.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number, Second

ZERO_BUBBLE = "Qi et al. 2023, Zero Bubble Pipeline Parallelism (arXiv:2401.10241) section 2"
DUALPIPE = "deepseek-ai/DualPipe README, table of schedules"


@formula(source="Huang et al. 2018, GPipe (arXiv:1811.06965); the same for 1F1B, Narayanan et al. 2021 (arXiv:2104.04473) section 2.2.1")
def one_forward_one_backward_bubble(stages: Number, micro_batches: Number) -> Number:
    """GPipe and 1F1B: the pipeline fills and drains once per step.

    >>> one_forward_one_backward_bubble(4, 16)
    0.1875
    """
    return (stages - 1) / micro_batches


@formula(source="Narayanan et al. 2021 (arXiv:2104.04473) section 2.2.2")
def interleaved_bubble(stages: Number, micro_batches: Number, chunks: Number) -> Number:
    """Interleaved 1F1B: each chip holds several chunks of the layers, and fills that much sooner.

    >>> interleaved_bubble(8, 32, 4)
    0.0546875
    """
    return (stages - 1) / (chunks * micro_batches)


@formula(source=ZERO_BUBBLE)
def zero_bubble_h1(stages: Number, micro_batches: Number, forward: Second, input_grad: Second, weight_grad: Second) -> Number:
    """ZB-H1: weight gradients fill part of the bubble, in the memory of 1F1B.

    >>> round(float(zero_bubble_h1(8, 24, 1.0, 1.0, 1.0)), 4)
    0.0972
    """
    idle = (stages - 1) * np.maximum(forward + input_grad - weight_grad, 0 * forward)
    return idle / (micro_batches * (forward + input_grad + weight_grad))


@formula(source=ZERO_BUBBLE)
def zero_bubble_h2(stages: Number, micro_batches: Number, forward: Second, input_grad: Second, weight_grad: Second) -> Number:
    """ZB-H2: none left when the three times are equal, in twice the memory.

    >>> float(zero_bubble_h2(8, 24, 1.0, 1.0, 1.0))
    0.0
    """
    idle = (stages - 1) * np.maximum(forward + input_grad - 2 * weight_grad, 0 * forward)
    return idle / (micro_batches * (forward + input_grad + weight_grad))


@formula(source=DUALPIPE)
def dualpipe_bubble(
    stages: Number, micro_batches: Number, forward: Second, input_grad: Second, weight_grad: Second, both: Second
) -> Number:
    """DualPipe: micro-batches enter from both ends; `both` is a forward and a backward run together.

    >>> round(float(dualpipe_bubble(8, 24, 1.0, 1.0, 1.0, 3.0)), 4)
    0.0833
    """
    idle = np.maximum(stages / 2 - 1, 0) * np.maximum(both + input_grad - 2 * weight_grad, 0 * both)
    return idle / (micro_batches * (forward + input_grad + weight_grad))


@formula(source="definition: idle time over the whole step, not over the ideal one")
def wall_time_share(bubble: Number) -> Number:
    """Share of a step's wall time that is idle (PP-07: 4 stages, 16 micro-batches: 0.158).

    >>> round(wall_time_share(3 / 16), 3)
    0.158
    """
    return bubble / (1 + bubble)


@formula(source="1F1B lower bound: the slowest stage paces all but the first micro-batch")
def unequal_stages_s(stage_s: tuple[Second, ...], micro_batches: Number) -> Second:
    """A step whose stages take different times, such as one with the head on its last stage.

    >>> float(unequal_stages_s((1.0, 1.0, 1.0, 1.5), 16))
    27.0
    """
    return (micro_batches - 1) * max(stage_s) + sum(stage_s[1:], start=stage_s[0])
