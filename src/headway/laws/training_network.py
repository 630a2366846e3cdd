"""How often training's collectives run, and how many bytes they carry. What one costs is in collective_lines.py."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Byte, BytePerToken, Number, Second, Token

KORTHIKANTI = "Korthikanti et al. 2022 (arXiv:2205.05198) section 4.2.2"
ONE_TOKEN: Token = 1.0
ZERO = "Rajbhandari et al. 2019, ZeRO (arXiv:1910.02054), section 7"


@formula(source=KORTHIKANTI + ": an all-gather and a reduce-scatter forward, and the same backward, of each block of matmuls")
def tp_exchanges(sublayers: Number, recomputed: Number) -> Number:
    """Gathers and scatters of a layer's activations on one micro-batch, over tensor-parallel ways.

    >>> tp_exchanges(2, 0), tp_exchanges(2, 1)  # a GPT layer, without and with full recomputation
    (8, 12)
    """
    return sublayers * (4 + 2 * recomputed)


@formula(source="Llama 3 (arXiv:2407.21783) section 3.3.2: keys and values are gathered forward and backward, their gradients scattered")
def cp_exchanges(recomputed: Number) -> Number:
    """Gathers and scatters of a layer's keys and values on one micro-batch, over context-parallel ways.

    >>> cp_exchanges(0)
    3
    """
    return 3 + recomputed


@formula(source="DeepSeek-V3 (arXiv:2412.19437) section 3.2.1: dispatch and combine forward, and backward")
def expert_exchanges(recomputed: Number) -> Number:
    """Pairs of dispatch and combine of a layer on one micro-batch.

    >>> expert_exchanges(0)
    2
    """
    return 2 + recomputed


@formula(source="FSDP in a pipeline keeps what it gathered, and whole gradients, until a step's last micro-batch")
def exchanging_stage(stage: Number, pp: Number) -> Number:
    """The ZeRO stage whose collectives a step holds: in a pipeline those of stage 1 instead of stage 3.

    >>> float(exchanging_stage(3, 16)), float(exchanging_stage(3, 1))  # Llama-3.1-405B over 16 stages; over none
    (1.0, 3.0)
    """
    return np.where((stage >= 3) & (pp > 1), 1, stage)


@formula(source=ZERO + ": stage 3 gathers weights forward and backward of every micro-batch, stages 1 and 2 once, stage 0 its gradients")
def gathers_per_step(stage: Number, count: Number) -> Number:
    """All-gathers of a chip's parameters in one step of `count` micro-batches.

    >>> float(gathers_per_step(3, 4)), float(gathers_per_step(1, 4))
    (8.0, 1.0)
    """
    return np.where(stage >= 3, 2 * count, 1)


@formula(source=ZERO + ": from stage 2 on gradients are reduced after every micro-batch, else once")
def reductions_per_step(stage: Number, count: Number) -> Number:
    """Reduce-scatters of a chip's gradients in one step.

    >>> float(reductions_per_step(3, 4)), float(reductions_per_step(0, 4))
    (4.0, 1.0)
    """
    return np.where(stage >= 2, count, 1)


@formula(source=ZERO + ": without sharding the reduced gradients are what is gathered")
def gathered_element(stage: Number, parameter: Byte, gradient: Byte) -> Byte:
    """Bytes of each number that is gathered.

    >>> float(gathered_element(1, 2, 4)), float(gathered_element(0, 2, 4))
    (2.0, 4.0)
    """
    return np.where(stage >= 1, parameter, gradient)


@formula(source="definition: a message of parameters, spread over the tokens of a micro-batch")
def parameter_message(params: Number, element: Byte, tokens: Token) -> BytePerToken:
    """Bytes of a collective over parameters, per token.

    >>> parameter_message(8e9, 2, 8192) * 8192 / 1e9
    16.0
    """
    return params * element / tokens


@formula(source="definition")
def key_value_message(params: Number, hidden: Number, element: Byte) -> BytePerToken:
    """One token's keys and values of a layer, from the size of the projections that make them (Llama-3.1-70B, all heads).

    >>> key_value_message(16777216, 8192, 2) * 1
    4096.0
    """
    return params / hidden * element / ONE_TOKEN


@formula(source="ZeRO-3 gathers behind every micro-batch; the others reduce behind the last one's backward pass alone")
def reduction_cover_s(stage: Number, count: Number, micro_batch: Second) -> Second:
    """Work that the collectives over parameters can hide behind.

    >>> float(reduction_cover_s(3, 4, 2.0)), float(reduction_cover_s(1, 4, 2.0))
    (8.0, 2.0)
    """
    return np.where(stage >= 2, count * micro_batch, micro_batch)


@formula(source="the first micro-batch passes every stage before the last one starts, and its gradients come back")
def fill_s(hops: Second, directions: Number) -> Second:
    """Hops between stages on the critical path of a step.

    >>> fill_s(0.001, 2)
    0.002
    """
    return hops * directions
