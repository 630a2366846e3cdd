"""The pipeline of a training step: micro-batches, the pace of the slowest stage, what fills and drains."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number, Second, Token


@formula(source="definition")
def micro_batches(batch: Token, sequence: Token, dp: Number, micro_batch: Number) -> Number:
    """Micro-batches of one step that each data-parallel rank runs (16 M tokens of 8 k over 128 ranks).

    >>> micro_batches(16 * 2**20, 8192, 128, 1)
    16.0
    """
    return batch / (sequence * dp * micro_batch)


@formula(source="Qi et al. 2023 (arXiv:2401.10241) table 4, Llama 3 (arXiv:2407.21783) section 3.3.2: ends of the model have layers fewer")
def spared_layers(layers: Number, pp: Number, stage_layers: Number) -> Number:
    """Layers that the last stage has fewer than the fullest: half of what full stages would have too many.

    >>> float(spared_layers(126, 16, 8)), float(spared_layers(96, 8, 12))  # Llama-3.1-405B: 126 layers where 128 would fit
    (1.0, 0.0)
    """
    return np.minimum(np.ceil((pp * stage_layers - layers) / 2), stage_layers)


@formula(source="definition: the slowest stage sets the pace, a full one or the last with the head")
def pace_s(stage: Second, head: Second, stage_layers: Number, spared: Number) -> Second:
    """Time of a micro-batch at the stage that all others wait for.

    >>> float(pace_s(8.0, 1.0, 8, 1)), float(pace_s(8.0, 1.0, 8, 0))
    (8.0, 9.0)
    """
    return np.maximum(stage, stage * (1 - spared / stage_layers) + head)


@formula(source="definition")
def head_wait_s(pace: Second, stage: Second) -> Second:
    """What the head adds to a micro-batch: time that full stages wait for the last one.

    >>> head_wait_s(9.0, 8.0)
    1.0
    """
    return pace - stage


@formula(source="definition; `idle` is a schedule's share of the ideal time of all micro-batches of a stage without the head")
def pipeline_s(pace: Second, stage: Second, count: Number, idle: Number) -> Second:
    """All micro-batches through the pipeline: at the pace of the slowest stage, and the time that filling and draining leaves idle.

    >>> pipeline_s(1.0, 1.0, 64, 7 / 64)  # 1F1B over 8 stages
    71.0
    """
    return count * (pace + idle * stage)


@formula(source="Qi et al. 2023 (arXiv:2401.10241) section 2: a backward pass is input gradients and weight gradients")
def input_grad_s(both: Second, forward: Second, weight_grad: Second) -> Second:
    """The part of the backward pass that the stage before waits for.

    >>> round(float(input_grad_s(0.9, 0.3, 0.2)), 6)
    0.4
    """
    return np.maximum(both - forward - weight_grad, 0 * both)
