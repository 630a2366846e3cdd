"""Model state of training on one chip: weights, gradients and optimiser states per parameter, and how ZeRO shards them.

Bytes per parameter follow the recipe (data/training/optimizers.toml): mixed-precision Adam keeps 2 + 2 + 12.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, Number, Truth

ZERO = "Rajbhandari et al. 2019, ZeRO (arXiv:1910.02054), section 5"
MEGATRON = "Megatron-LM, theoretical_memory_usage.py"


@formula(source=ZERO)
def sharded_from(stage: Number, first: Number, data_ranks: Number) -> Number:
    """Shards of one kind of state: all data-parallel ranks from ZeRO stage `first` on, one below it.

    >>> float(sharded_from(2, 1, 64)), float(sharded_from(2, 3, 64))  # ZeRO-2 splits optimiser states, not weights
    (64.0, 1.0)
    """
    return np.where(stage >= first, data_ranks, 1)


@formula(source="definition")
def states_bytes(params: Number, bytes_per_param: Byte) -> Byte:
    """Bytes of model state of a number of parameters on a chip.

    >>> round(states_bytes(174.6e9 / 64, 18) / 2**30, 2)  # GPT-3 175B, t=8, p=8: 45.56 GiB published
    45.73
    """
    return params * bytes_per_param


@formula(
    source=ZERO + "; FSDP keeps the layer at hand, the next one and the ends whole, under a pipeline the whole stage with its gradients"
)
def gathered_bytes(
    layer: Number, ends: Number, stage_params: Number, weight: Byte, gradient: Byte, layers_kept: Number, stage: Number, pp: Number
) -> Byte:
    """Bytes of unsharded weights that a chip holds temporarily under ZeRO-3.

    >>> float(gathered_bytes(855.7e6, 2.1e9, 70e9, 2, 4, 2, 3, 1)) / 1e9  # Llama-3.1-70B: two layers, embedding and head
    7.6228
    """
    gathered = np.where(pp > 1, stage_params * (weight + gradient), (layers_kept * layer + ends) * weight)
    return np.where(stage >= 3, gathered, 0 * layer * weight)


@formula(source="definition: a stage holds whole chunks of layers, the fullest of them the most")
def stage_layers(layers: Number, pp: Number, vpp: Number) -> Number:
    """Layers of the fullest pipeline stage (DeepSeek-V3's 61 over 16 stages: 4).

    >>> float(stage_layers(61, 16, 1)), float(stage_layers(96, 8, 3))
    (4.0, 12.0)
    """
    return vpp * np.ceil(layers / (pp * vpp))


QI = "Qi et al. 2023 (arXiv:2401.10241) table 4, Llama 3 (arXiv:2407.21783) section 3.3.2: ends of the model have layers fewer"


@formula(source=QI)
def spared_first_layers(layers: Number, pp: Number, stage_layers: Number) -> Number:
    """Layers that the first stage has fewer than the fullest: half of those too many, the last stage's share is the larger half.

    >>> float(spared_first_layers(126, 16, 8)), float(spared_first_layers(61, 16, 4))  # Llama-3.1-405B; DeepSeek-V3: 3 too many
    (1.0, 1.0)
    """
    return np.minimum(np.floor((pp * stage_layers - layers) / 2), stage_layers)


@formula(source=QI)
def middle_layers(stage_layers: Number, pp: Number) -> Number:
    """Layers of the stage behind the first, which has all that a stage can have; none where no stage is between the first and the last.

    >>> float(middle_layers(8, 16)), float(middle_layers(8, 2))
    (8.0, 0.0)
    """
    return np.where(pp > 2, stage_layers, 0)


@formula(source="Megatron-LM: chips of a tensor-parallel group never hold the same experts twice")
def expert_ways(ep: Number, tp: Number) -> Number:
    """Degree to which a layer's routed experts are divided: over ep, and their matrices over the part of tp beyond ep.

    >>> float(expert_ways(64, 1)), float(expert_ways(1, 8))
    (64.0, 8.0)
    """
    return np.maximum(ep, tp)


@formula(source=MEGATRON + ": where a pipeline parts a tied table, its last stage keeps a copy")
def last_table_params(embedding: Number, head: Number, pp: Number) -> Number:
    """Parameters of the output table on the last stage: a tied one (head 0) is the embedding itself only without a pipeline.

    >>> float(last_table_params(263e6, 0, 2)), float(last_table_params(263e6, 0, 1))  # Llama-3.2-1B
    (263000000.0, 0.0)
    """
    return np.where((pp > 1) & (head == 0), embedding, head)


@formula(source=MEGATRON + ": the embedding on the first stage, the head on the last, both on the only one")
def end_params(first: Number, last: Number, pp: Number, is_last: Number) -> Number:
    """Parameters of embedding or head on a stage, of both on a single stage.

    >>> float(end_params(1e9, 2e9, 1, 0)), float(end_params(1e9, 2e9, 8, 0)), float(end_params(1e9, 2e9, 8, 1))
    (3000000000.0, 1000000000.0, 2000000000.0)
    """
    return np.where(pp == 1, first + last, np.where(is_last, last, first))


@formula(source="definition")
def part_of_fuller(first: Byte, last: Byte, of_first: Byte, of_last: Byte) -> Byte:
    """One part of the memory of the fuller stage, first or last.

    >>> float(part_of_fuller(20e9, 1e9, 60e9, 50e9))
    20000000000.0
    """
    return np.where(of_first >= of_last, first, last)


@formula(source="definition")
def memory_fits(memory: Byte, capacity: Byte) -> Truth:
    """Whether training memory fits in the memory of a chip.

    >>> bool(memory_fits(75e9, 80e9))
    True
    """
    return memory <= capacity
