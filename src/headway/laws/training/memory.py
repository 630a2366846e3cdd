"""Memory of training: activations of a layer kept until its backward pass, micro-batches in flight by schedule, states, reversible layers.

With one pipeline stage, one micro-batch is in flight under every schedule.

Korthikanti et al. count a GPT layer as s b h (34 + 5 a s / h): 10 that tensor parallelism replicates, 24 that it splits, and the
scores. `replicated_bytes` and `split` are these parts for any block; sequence parallelism splits both.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Byte, BytePerToken, Number, Second, Token, Truth

NARAYANAN = "Narayanan et al. 2021 (arXiv:2104.04473) section 2.2"
ZERO_BUBBLE = "Qi et al. 2023 (arXiv:2401.10241) and the sail-sg zero-bubble README, table of schedules"


@formula(source="Huang et al. 2018, GPipe (arXiv:1811.06965): every forward before the first backward")
def gpipe_in_flight(stages: Number, micro_batches: Number) -> Number:
    """Micro-batches in flight on every stage under GPipe: all of a step.

    >>> float(gpipe_in_flight(8, 64)), float(gpipe_in_flight(1, 64))
    (64.0, 1.0)
    """
    return np.where(stages > 1, micro_batches, 1)


@formula(source=NARAYANAN + ".1: stage i runs p - i forwards before its first backward")
def one_forward_one_backward_in_flight(stages: Number, micro_batches: Number, stage: Number) -> Number:
    """Micro-batches in flight under 1F1B: one per stage from here to the last, so a pipeline does not cut the first stage's activations.

    >>> [float(one_forward_one_backward_in_flight(8, 64, stage)) for stage in (0, 1, 7)], float(one_forward_one_backward_in_flight(8, 4, 0))
    ([8.0, 7.0, 1.0], 4.0)
    """
    return np.minimum(stages - stage, micro_batches)


@formula(source=NARAYANAN + ".2; Megatron-LM, schedules.py: a warm-up of 2 (p - i - 1) + (v - 1) p chunks; with one chunk it is 1F1B")
def interleaved_in_flight(stages: Number, micro_batches: Number, chunks: Number, stage: Number) -> Number:
    """Micro-batches in flight under interleaved 1F1B, in units of all chunks of a stage (8 stages of 3 chunks: first, second, last).

    >>> [round(float(interleaved_in_flight(8, 64, 3, stage)), 3) for stage in (0, 1, 7)]
    [10.333, 9.667, 5.667]
    """
    ahead = np.where(chunks > 1, 2, 1) * (stages - stage - 1) + (chunks - 1) * stages
    return np.minimum((ahead + 1) / chunks, micro_batches)


@formula(source=ZERO_BUBBLE + ": weight gradients wait longer on later stages, so that all keep what the first does")
def zero_bubble_h1_in_flight(stages: Number, micro_batches: Number) -> Number:
    """Micro-batches in flight on every stage under ZB-H1, until their weight gradients are done; the same under ZB-V.

    >>> float(zero_bubble_h1_in_flight(8, 64))
    8.0
    """
    return np.minimum(stages, micro_batches)


@formula(source=ZERO_BUBBLE)
def zero_bubble_h2_in_flight(stages: Number, micro_batches: Number) -> Number:
    """Micro-batches in flight on every stage under ZB-H2, which starts with more forwards: 2p - 1.

    >>> float(zero_bubble_h2_in_flight(8, 64))
    15.0
    """
    return np.minimum(2 * stages - 1, micro_batches)


@formula(source="deepseek-ai/DualPipe README, table of schedules: PP + 1 activations on each chip; of a stage, one for each from here on")
def dualpipe_in_flight(stages: Number, micro_batches: Number, stage: Number) -> Number:
    """Micro-batches in flight under DualPipe on the chip at `stage`, of the direction that enters at stage 0.

    The other direction sees the chip as its stage p - 1 - i.

    >>> [float(dualpipe_in_flight(16, 64, stage)) for stage in (0, 15)], float(dualpipe_in_flight(1, 64, 0))
    ([16.0, 1.0], 1.0)
    """
    return np.where(stages > 1, np.minimum(stages - stage, micro_batches / 2), 1)


KORTHIKANTI = "Korthikanti et al. 2022 (arXiv:2205.05198)"
NORM_INPUTS: Number = 2.0  # two norms per layer
BLOCK_INPUTS: Number = 2.0  # two matmul blocks per layer: the mixer and the FFN
DROPOUT_MASKS: Number = 2.0  # one byte each, after the mixer and after the FFN
EXPERT_COPIES: Number = 3.0  # an expert's input, and its permuted copies in dispatch and combine
KEPT_SCORES: Number = 2.0  # softmax and its copy after dropout, with a mask between
FLOAT: Byte = 4.0


@formula(source=KORTHIKANTI + " section 4.2: norm inputs, block inputs, dropout masks")
def whole_activation_bytes(hidden: Number, element: Byte, mask: Byte) -> BytePerToken:
    """Activation bytes per token that tensor parallelism replicates on every chip: 10 h in 16 bits with dropout, 8 h without.

    >>> whole_activation_bytes(12288, 2, 1) / 12288, whole_activation_bytes(12288, 2, 0) / 12288
    (10.0, 8.0)
    """
    return hidden * ((NORM_INPUTS + BLOCK_INPUTS) * element + DROPOUT_MASKS * mask) / ONE_TOKEN


@formula(source=KORTHIKANTI + " section 4.1, for any matrices: each h x n matrix reads or makes one vector of n, which is kept")
def matmul_activation_bytes(params: Number, hidden: Number, element: Byte) -> BytePerToken:
    """Activation bytes per token of a layer's matmuls, split by tensor parallelism: 24 h for a GPT layer of 12 h^2 parameters.

    >>> matmul_activation_bytes(12 * 12288**2, 12288, 2) / 12288
    24.0
    """
    return params / hidden * element / ONE_TOKEN


@formula(source=KORTHIKANTI + " section 4.1; latent attention expands keys and values per head")
def latent_activation_bytes(
    heads: Number, nope_dim: Number, rope_dim: Number, value_dim: Number, ranks: Number, element: Byte
) -> BytePerToken:
    """Activation bytes per token of MLA: queries, keys, values and outputs of every head, and the latents.

    >>> latent_activation_bytes(128, 128, 64, 128, 1536 + 512 + 64, 2)  # DeepSeek-V3, one layer
    168064.0
    """
    return (2 * heads * (nope_dim + rope_dim + value_dim) + ranks) * element / ONE_TOKEN


@formula(source="Megatron-LM, recompute of MLA's up-projections; DeepSeek-V3 (arXiv:2412.19437) section 3.2.3")
def latent_selective_bytes(heads: Number, query_dim: Number, value_dim: Number, ranks: Number, element: Byte) -> BytePerToken:
    """Activation bytes per token of MLA with recomputed up-projections: latents, outputs, and full-rank queries (DeepSeek-V3: none).

    >>> latent_selective_bytes(128, 0, 128, 1536 + 512 + 64, 2)
    36992.0
    """
    return (heads * (query_dim + value_dim) + ranks) * element / ONE_TOKEN


@formula(source="Megatron-LM MoE: inputs of the chosen experts, permuted copies on the way there and back, what each expert makes")
def expert_moved_bytes(hidden: Number, params: Number, active: Number, imbalance: Number, element: Byte) -> BytePerToken:
    """Bytes per token that routed experts write (DeepSeek-V3, one layer, balanced: 8 experts of 2048).

    >>> expert_moved_bytes(7168, 3 * 7168 * 2048, 8, 1, 2)
    442368.0
    """
    return active * imbalance * (EXPERT_COPIES * hidden + params / hidden) * element / ONE_TOKEN


@formula(source="Megatron Core 0.13 (2025-07), moe/README.md: the router's share is applied to the activation, so that no output is kept")
def expert_activation_bytes(
    hidden: Number, params: Number, matrices: Number, active: Number, imbalance: Number, element: Byte, input_element: Byte
) -> BytePerToken:
    """Activation bytes per token of routed experts: what each reads, makes, and reads again (DeepSeek-V3, one layer, in bf16 and in fp8).

    >>> [expert_activation_bytes(7168, 3 * 7168 * 2048, 3, 8, 1, 2, read) for read in (2, 1)]
    [212992.0, 139264.0]
    """
    vectors = params / hidden
    outputs, inputs = vectors * (1 - 1 / matrices), hidden + vectors / matrices
    return active * imbalance * (outputs * element + inputs * input_element) / ONE_TOKEN


@formula(source="Megatron-LM MoE: permuted copies and activation functions are made again; what reaches an expert is kept")
def expert_selective_bytes(
    hidden: Number, params: Number, matrices: Number, active: Number, imbalance: Number, element: Byte, input_element: Byte
) -> BytePerToken:
    """Activation bytes per token of routed experts under selective recomputation (DeepSeek-V3, one layer, in fp8).

    >>> expert_selective_bytes(7168, 3 * 7168 * 2048, 3, 8, 1, 2, 1)
    122880.0
    """
    vectors = params / hidden * (1 - 1 / matrices)
    return active * imbalance * (hidden * input_element + vectors * element) / ONE_TOKEN


@formula(source=KORTHIKANTI + " equation 1: 5 a s per token; fused attention keeps one number per head and token")
def score_bytes(heads: Number, sequence: Token, element: Byte, mask: Byte, fused: Number) -> BytePerToken:
    """Bytes per token of stored attention scores: softmax, dropout mask and dropped scores; a log-sum-exp if attention is fused.

    >>> float(score_bytes(96, 2048, 2, 1, 0)) / (96 * 2048), float(score_bytes(96, 2048, 2, 1, 1)) / 96
    (5.0, 4.0)
    """
    return np.where(fused, heads * FLOAT / ONE_TOKEN, heads * (sequence / ONE_TOKEN) * (KEPT_SCORES * element + mask) / ONE_TOKEN)


@formula(source="selective checkpointing makes what a matmul reads again; Transformer Engine keeps it in 8 bits where it is so multiplied")
def kept_share(parts: Number, inputs: Number, spared: Number) -> Number:
    """Share of a part's 16-bit activations that is kept; of a gated FFN's three vectors one is read by a matmul (Llama-3.1-8B).

    >>> [round(kept_share(3, 1, spared), 3) for spared in (1, 0.5, 0)]  # made again, in 8 bits, whole
    [0.667, 0.833, 1.0]
    """
    return 1 - spared * inputs / parts


@formula(source="definition")
def dropped_share(stored_bytes: BytePerToken, total_bytes: BytePerToken) -> Number:
    """Share of a layer's activations that is recomputed instead of kept.

    >>> dropped_share(34.0, 114.0)  # GPT-3's scores, 80 of 114
    0.7017543859649122
    """
    return 1 - stored_bytes / total_bytes


@formula(source=KORTHIKANTI + " table 2, by recompute mode")
def layer_activation_bytes(
    replicated_bytes: BytePerToken, split: BytePerToken, scores: BytePerToken, keeps_scores: Number, tp: Number, sequence_degree: Number
) -> BytePerToken:
    """Activation bytes per token of one layer on one chip; `sequence_degree` is tp with sequence parallelism, else 1.

    >>> layer_activation_bytes(10.0, 24.0, 80.0, 1, 8, 1), layer_activation_bytes(10.0, 24.0, 80.0, 0, 8, 8)  # TP; TP, SP and selective
    (23.0, 4.25)
    """
    return replicated_bytes / sequence_degree + (split + keeps_scores * scores) / tp


@formula(source=KORTHIKANTI + " table 2: full recomputation keeps each layer's input alone")
def checkpoint_bytes(hidden: Number, element: Byte, sequence_degree: Number) -> BytePerToken:
    """Activation bytes per token of a fully recomputed layer: its input.

    >>> checkpoint_bytes(12288, 2, 1) / 12288
    2.0
    """
    return hidden * element / (sequence_degree * ONE_TOKEN)


@formula(source=KORTHIKANTI + " section 4.2.3; the layer being recomputed is whole for a while")
def activation_bytes_chip(layer_bytes: BytePerToken, at_hand: BytePerToken, tokens: Token, layers: Number) -> Byte:
    """Activation bytes on a chip: of its layers, each counted for every micro-batch that it has in flight, and of one in recomputation.

    >>> activation_bytes_chip(34.0 * 12288 / 8, 0.0, 2048, 12 * 8 * (1 + 7 / 24)) / 2**30  # GPT-3 175B, t=8, p=8, 3 chunks
    12.3515625
    """
    return (layer_bytes * layers + at_hand) * tokens


@formula(source="Megatron-LM, --fine-grained-activation-offloading: activations of whole layers wait in the host's memory")
def layers_on_chip(layers: Number, offloaded: Number) -> Number:
    """Share of a stage's layers whose activations stay on the chip (40 of Llama-3.1-70B's 80 layers offloaded).

    >>> float(layers_on_chip(80, 40)), float(layers_on_chip(20, 40))
    (0.5, 0.0)
    """
    return np.maximum(1 - offloaded / layers, 0)


@formula(source=KORTHIKANTI + " section 4.3: the last norm, what the head reads, logits in 32 bits")
def head_activation_bytes(hidden: Number, vocab: Number, element: Byte, logit: Byte, sequence_degree: Number, tp: Number) -> BytePerToken:
    """Activation bytes per token of the head on the last stage; `logit` is 4 where the loss is one kernel (Llama-3.1-8B, one chip).

    >>> head_activation_bytes(4096, 128256, 2, 4, 1, 1)
    529408.0
    """
    return (2.0 * hidden * element / sequence_degree + vocab * logit / tp) / ONE_TOKEN


@formula(source=KORTHIKANTI + " section 4.3: the embedding's dropout mask, for every micro-batch in flight")
def embedding_activation_bytes(hidden: Number, mask: Byte, in_flight: Number, sequence_degree: Number) -> BytePerToken:
    """Activation bytes per token of the embedding on the first stage.

    >>> embedding_activation_bytes(12288, 1, 8, 8) / 12288
    1.0
    """
    return hidden * mask * in_flight / (sequence_degree * ONE_TOKEN)


@formula(source="PyTorch's caching allocator holds freed blocks; CUDA contexts and communicators take a fixed part")
def allocated_bytes(tensor_bytes: Byte, fragmentation: Number, fixed: Byte) -> Byte:
    """Memory that a chip reports as allocated: tensors, fragmentation and a fixed part.

    >>> round(allocated_bytes(60e9, 0.05, 2e9) / 1e9, 3)
    65.0
    """
    return tensor_bytes * (1 + fragmentation) + fixed


@formula(source="definition: what tensors take over what they need, by the factor of runs of one's own on all of it; docs/own_runs.md")
def fragmentation_by_own_runs(fragmentation: Number, factor: Number) -> Number:
    """Share that a run's memory is beyond its tensors, where runs took so many times what was expected.

    >>> round(float(fragmentation_by_own_runs(0.05, 1.1)), 3), round(float(fragmentation_by_own_runs(0.05, 0.9)), 3)
    (0.155, -0.055)
    """
    return (1 + fragmentation) * factor - 1


# -- model state of training on one chip: weights, gradients and optimiser states per parameter, and how ZeRO shards them -------
# Bytes per parameter follow the recipe (data/training/optimizers.toml): mixed-precision Adam keeps 2 + 2 + 12.


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


# -- memory and time of training a reversible network: nothing is kept but the two streams behind the last layer ----------------
# The backward pass makes each layer's input again from its output, in lockstep, so that the activations of one layer exist at a time.


GOMEZ = "Gomez et al. 2017, RevNet (arXiv:1707.04585), section 3"
REFORMER = "Kitaev et al. 2020, Reformer (arXiv:2001.04451), section 3"
STREAMS: Number = 2.0  # each of the full width, as in Reformer: parameters and FLOP stay those of the ordinary network


@formula(source=REFORMER + ": two streams of the model's width")
def stream_bytes(hidden_bytes: BytePerToken) -> BytePerToken:
    """Activation bytes per token that a reversible network keeps at the end of its layers: both streams.

    >>> stream_bytes(2 * 4096)  # Llama-3.1-8B in bf16
    16384.0
    """
    return STREAMS * hidden_bytes


@formula(source=GOMEZ + ", table 1: O(1) in depth where others keep O(L)")
def reversible_bytes_chip(streams: BytePerToken, at_hand: BytePerToken, tokens: Token, micro_batches: Number) -> Byte:
    """Activation bytes on a chip of reversible training: streams of every micro-batch in flight, and one layer at hand.

    >>> reversible_bytes_chip(16384.0, 34.0 * 4096, 8192, 1) / 1e9  # Llama-3.1-8B, one sequence of 8k, whatever its depth
    1.275068416
    """
    return (streams * micro_batches + at_hand) * tokens


@formula(source=GOMEZ + ", section 3.2: one forward more, 33 % in theory; its implementations took 1.5 to 2 times as long")
def reversible_slowdown(passes: Number) -> Number:
    """Compute of reversible training over ordinary training, whose forward and backward cost `passes` forwards.

    >>> round(reversible_slowdown(3), 4)  # any model with all parameters trained: 6ND becomes 8ND
    1.3333
    """
    return (passes + 1) / passes


@formula(source=KORTHIKANTI + " section 4: one of a layer's two blocks; its norm keeps a mean and a deviation of each token")
def coupling_bytes(hidden: Number, params: Number, element: Byte, mask: Byte) -> BytePerToken:
    """Activation bytes per token that an ordinary backward pass reads of one residual block of `params` parameters, mask included.

    >>> coupling_bytes(64, 2 * 64 * 128, 4, 1)  # inputs of norm and block 512, mask 64, two vectors of 128, mean and deviation 8
    1608.0
    """
    return whole_activation_bytes(hidden, element, mask) / 2 + matmul_activation_bytes(params, hidden, element) + 2 * element / ONE_TOKEN


@formula(source="definition: each layer forward and backward, and forward again where its activations were not kept")
def layers_s(forward: Second, backward: Second, recomputed: Number, layers: Number) -> Second:
    """Time of a pass forward and backward through equal layers.

    >>> layers_s(1.0, 2.0, 0, 8), layers_s(1.0, 2.0, 1, 8)  # 4/3 of it
    (24.0, 32.0)
    """
    return (forward * (1 + recomputed) + backward) * layers
