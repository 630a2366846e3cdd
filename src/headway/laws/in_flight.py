"""How many micro-batches' activations the first stage of a pipeline keeps at once, by schedule, in units of its own layers.

Of a pipeline of one stage it is one micro-batch, whatever the schedule.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number

NARAYANAN = "Narayanan et al. 2021 (arXiv:2104.04473) section 2.2"
ZERO_BUBBLE = "Qi et al. 2023 (arXiv:2401.10241) and the sail-sg zero-bubble README, table of schedules"


@formula(source="Huang et al. 2018, GPipe (arXiv:1811.06965): every forward before the first backward")
def gpipe_in_flight(micro_batches: Number) -> Number:
    """GPipe keeps them all.

    >>> gpipe_in_flight(64)
    64
    """
    return micro_batches


@formula(source=NARAYANAN + ".1: the first stage runs p forwards before its first backward")
def one_forward_one_backward_in_flight(stages: Number, micro_batches: Number) -> Number:
    """1F1B, and ZB-H1 in the same memory: as many as there are stages, so that a pipeline does not cut the first stage's activations.

    >>> float(one_forward_one_backward_in_flight(8, 64)), float(one_forward_one_backward_in_flight(8, 4))
    (8.0, 4.0)
    """
    return np.minimum(stages, micro_batches)


@formula(source=NARAYANAN + ".2; Korthikanti et al. 2022 (arXiv:2205.05198) section 4.2.3: 1 + (p-1)/(p v)")
def interleaved_in_flight(stages: Number, micro_batches: Number, chunks: Number) -> Number:
    """Interleaved 1F1B runs ahead by up to a pass over the stages with each chunk.

    >>> round(float(interleaved_in_flight(8, 64, 3)), 3)
    10.333
    """
    return np.minimum(stages * (1 + (stages - 1) / (stages * chunks)), micro_batches)


@formula(source=ZERO_BUBBLE)
def zero_bubble_h2_in_flight(stages: Number, micro_batches: Number) -> Number:
    """ZB-H2 fills the start with more forwards: 2p - 1.

    >>> float(zero_bubble_h2_in_flight(8, 64))
    15.0
    """
    return np.minimum(2 * stages - 1, micro_batches)


@formula(source="deepseek-ai/DualPipe README, table of schedules: PP + 1 activations, twice the parameters")
def dualpipe_in_flight(stages: Number, micro_batches: Number) -> Number:
    """DualPipe: both directions together (a chip of one stage has no pipeline).

    >>> float(dualpipe_in_flight(16, 64)), float(dualpipe_in_flight(1, 64))
    (17.0, 1.0)
    """
    return np.where(stages > 1, np.minimum(stages + 1, micro_batches), 1)
