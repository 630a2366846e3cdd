"""Model state of training on one chip: weights, gradients and optimiser states per parameter, and how ZeRO shards them.

Bytes per parameter follow the recipe (data/training/optimizers.toml): mixed-precision Adam keeps 2 + 2 + 12.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, Number, Truth

ZERO = "Rajbhandari et al. 2019, ZeRO (arXiv:1910.02054), section 5"
MEGATRON = "Megatron-LM, theoretical_memory_usage.py"
QI = "Qi et al. 2023 (arXiv:2401.10241) table 4, Llama 3 (arXiv:2407.21783) section 3.3.2: ends of the model have layers fewer"


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


@formula(source=QI + "; ZB-V folds the model, so that one chip has both ends")
def folded_layers(first: Number, last: Number, stage_layers: Number) -> Number:
    """Layers of the chip with both ends, from those that a first and a last stage would have of its number.

    >>> float(folded_layers(7, 7, 8))
    6.0
    """
    return np.maximum(first + last - stage_layers, 0)


@formula(source="definition")
def parted(pp: Number) -> Number:
    """1 where a model is on several pipeline stages, 0 where one stage has both its ends.

    >>> int(parted(8)), int(parted(1))
    (1, 0)
    """
    return np.where(pp > 1, 1, 0)


@formula(source="deepseek-ai/DualPipe README: twice the parameters, a chip holds a stage of either direction; one stage has no directions")
def dualpipe_copies(pp: Number) -> Number:
    """Chips that hold the same stage under DualPipe.

    >>> float(dualpipe_copies(16)), float(dualpipe_copies(1))
    (2.0, 1.0)
    """
    return np.where(pp > 1, 2, 1)


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


@formula(source=MEGATRON + ": the embedding on the first stage, the head on the last; where a pipeline parts a tied table, both have it")
def end_params(embedding: Number, head: Number, has_first: Number, has_last: Number) -> Number:
    """Parameters of embedding and head on a chip with the first, the last, both or neither end; a tied head has none of its own.

    >>> [float(end_params(1e9, *of)) for of in ((2e9, 1, 1), (2e9, 0, 1), (0, 0, 1), (0, 1, 1))]
    [3000000000.0, 2000000000.0, 1000000000.0, 1000000000.0]
    """
    return has_first * embedding + has_last * np.where((head == 0) & (has_first == 0), embedding, head)


@formula(source="definition")
def part_of_fuller(first: Byte, second: Byte, of_first: Byte, of_second: Byte) -> Byte:
    """One part of the memory of the fuller of two chips.

    >>> float(part_of_fuller(20e9, 1e9, 60e9, 50e9))
    20000000000.0
    """
    return np.where(of_first >= of_second, first, second)


@formula(source="definition")
def memory_fits(memory: Byte, capacity: Byte) -> Truth:
    """Whether training memory fits in the memory of a chip.

    >>> bool(memory_fits(75e9, 80e9))
    True
    """
    return memory <= capacity
