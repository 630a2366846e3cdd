"""Time of an optimiser step: passes over a micro-batch, overlap of communication, and the pipeline with its bubble by schedule.

`forward`, `input_grad` and `weight_grad` are one stage's times for one micro-batch; a backward is `input_grad` + `weight_grad`.

Times are of the fullest chip. `hidden` is the share of the shorter of two times that overlaps with the longer one.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Byte, BytePerSecond, BytePerToken, FlopPerSecond, Number, Second, Token, Watt

ZERO_BUBBLE = "Qi et al. 2023, Zero Bubble Pipeline Parallelism (arXiv:2401.10241) section 2"
DUALPIPE = "deepseek-ai/DualPipe README, table of schedules"


@formula(
    source="Huang et al. 2018, GPipe (arXiv:1811.06965); the same for 1F1B, Narayanan et al. 2021 (arXiv:2104.04473) section 2.2.1",
    gives="bubble",
)
def one_forward_one_backward_bubble(stages: Number, micro_batches: Number) -> Number:
    """Bubble of GPipe and 1F1B over compute time, not over wall time (wall_time_share): the pipeline fills and drains once per step.

    >>> one_forward_one_backward_bubble(4, 16)
    0.1875
    """
    return (stages - 1) / micro_batches


@formula(source="Narayanan et al. 2021 (arXiv:2104.04473) section 2.2.2", gives="bubble")
def interleaved_bubble(stages: Number, micro_batches: Number, chunks: Number) -> Number:
    """Bubble of interleaved 1F1B over compute time: several chunks of layers per chip shorten the fill.

    >>> interleaved_bubble(8, 32, 4)
    0.0546875
    """
    return (stages - 1) / (chunks * micro_batches)


@formula(source=ZERO_BUBBLE)
def zero_bubble_h1(stages: Number, micro_batches: Number, forward: Second, input_grad: Second, weight_grad: Second) -> Number:
    """Bubble of ZB-H1 over compute time: weight gradients fill part of it, in the memory of 1F1B.

    >>> round(float(zero_bubble_h1(8, 24, 1.0, 1.0, 1.0)), 4)
    0.0972
    """
    idle = (stages - 1) * np.maximum(forward + input_grad - weight_grad, 0 * forward)
    return idle / (micro_batches * (forward + input_grad + weight_grad))


@formula(source=ZERO_BUBBLE)
def zero_bubble_h2(stages: Number, micro_batches: Number, forward: Second, input_grad: Second, weight_grad: Second) -> Number:
    """Bubble of ZB-H2 over compute time: 0 when the three times are equal, in twice the memory of 1F1B.

    >>> float(zero_bubble_h2(8, 24, 1.0, 1.0, 1.0))
    0.0
    """
    idle = (stages - 1) * np.maximum(forward + input_grad - 2 * weight_grad, 0 * forward)
    return idle / (micro_batches * (forward + input_grad + weight_grad))


@formula(source=DUALPIPE)
def dualpipe_bubble(
    stages: Number, micro_batches: Number, forward: Second, input_grad: Second, weight_grad: Second, both: Second
) -> Number:
    """Bubble of DualPipe over compute time: micro-batches enter from both ends; `both` is an overlapped forward and backward.

    >>> round(float(dualpipe_bubble(8, 24, 1.0, 1.0, 1.0, 3.0)), 4)
    0.0833
    """
    idle = np.maximum(stages / 2 - 1, 0) * np.maximum(both + input_grad - 2 * weight_grad, 0 * both)
    return idle / (micro_batches * (forward + input_grad + weight_grad))


@formula(source="definition: idle time over the whole step, not over the ideal one")
def wall_time_share(bubble: Number) -> Number:
    """Bubble over wall time, the idle share of a step, from the bubble over compute time (PP-07: 4 stages, 16 micro-batches: 0.158).

    >>> round(wall_time_share(3 / 16), 3)
    0.158
    """
    return bubble / (1 + bubble)


@formula(source="1F1B lower bound: the slowest stage paces all but the first micro-batch")
def unequal_stages_s(stage_s: tuple[Second, ...], micro_batches: Number) -> Second:
    """Time of a step whose stages take different times, such as a last stage with the head.

    >>> float(unequal_stages_s((1.0, 1.0, 1.0, 1.5), 16))
    27.0
    """
    return (micro_batches - 1) * max(stage_s) + sum(stage_s[1:], start=stage_s[0])


@formula(source="definition", needs="batch >= sequence * dp * micro_batch")
def micro_batches(batch: Token, sequence: Token, dp: Number, micro_batch: Number) -> Number:
    """Micro-batches per step and data-parallel rank (16 M tokens of 8 k over 128 ranks).

    >>> micro_batches(16 * 2**20, 8192, 128, 1)
    16.0
    """
    return batch / (sequence * dp * micro_batch)


@formula(source="Qi et al. 2023 (arXiv:2401.10241) table 4, Llama 3 (arXiv:2407.21783) section 3.3.2: ends of the model have layers fewer")
def spared_layers(layers: Number, pp: Number, stage_layers: Number) -> Number:
    """Layers that the last stage has fewer than the fullest: half of the layers that full stages would have too many.

    >>> float(spared_layers(126, 16, 8)), float(spared_layers(96, 8, 12))  # Llama-3.1-405B: 126 layers where 128 would fit
    (1.0, 0.0)
    """
    return np.minimum(np.ceil((pp * stage_layers - layers) / 2), stage_layers)


@formula(source="definition: the slowest stage sets the pace, a full one or the last with the head")
def pace_s(stage: Second, head: Second, stage_layers: Number, spared: Number) -> Second:
    """Time of a micro-batch on the slowest stage: a full stage, or the last one with the head.

    >>> float(pace_s(8.0, 1.0, 8, 1)), float(pace_s(8.0, 1.0, 8, 0))
    (8.0, 9.0)
    """
    return np.maximum(stage, stage * (1 - spared / stage_layers) + head)


@formula(source="Qi et al. 2023 (arXiv:2401.10241) section 2: a backward pass is input gradients and weight gradients")
def input_grad_s(both: Second, forward: Second, weight_grad: Second) -> Second:
    """Input-gradient time: the part of the backward pass that the previous stage waits for.

    >>> round(float(input_grad_s(0.9, 0.3, 0.2)), 6)
    0.4
    """
    return np.maximum(both - forward - weight_grad, 0 * both)


FLASH = "Dao 2023, FlashAttention-2 (arXiv:2307.08691) section 3.1: five matmuls backward for two forward, scores recomputed"
KORTHIKANTI = "Korthikanti et al. 2022 (arXiv:2205.05198)"


@formula(source="causal attention, work balanced over cp (zigzag)")
def micro_pairs(tokens: Token, sequence: Token, window: Token) -> Token:
    """(query, key) pairs of one micro-batch per chip: each token attends to half its sequence, or to a window.

    >>> float(micro_pairs(8192, 8192, float("inf"))), float(micro_pairs(8192, 8192, 1024))
    (33554432.0, 7864320.0)
    """
    attention_span = np.minimum(window, sequence)
    return tokens / ONE_TOKEN * (attention_span - attention_span * attention_span / (2 * sequence))


@formula(source=FLASH + "; unfused attention: Vaswani et al. 2017, two for each forward one")
def score_passes(fused: Number, recomputed: Number) -> Number:
    """Forward-pass equivalents of attention's forward and backward: 3.5 fused, 3 with kept scores, one more if recomputed.

    >>> float(score_passes(1, 0)), float(score_passes(0, 0)), float(score_passes(0, 1))
    (3.5, 3.0, 4.0)
    """
    return np.where(fused, 3.5, 3.0) + recomputed


@formula(source="definition: what communication adds to the work that it runs beside")
def exposed_s(work: Second, network: Second, hidden: Number) -> Second:
    """Communication time that compute does not hide.

    >>> float(exposed_s(3.0, 1.0, 0.75)), float(exposed_s(1.0, 3.0, 1.0))
    (0.25, 2.0)
    """
    return np.maximum(network - hidden * np.minimum(work, network), 0 * network)


@formula(source="definition: activations leave in the forward pass and come back in the backward pass")
def offload_s(layer_bytes: Byte, layers: Number, on_chip: Number, bandwidth: BytePerSecond) -> Second:
    """Time of a stage's offloaded activations over the link to the host (Llama-3.1-70B, 40 of 80 layers of 2 GB over 225 GB/s).

    >>> round(float(offload_s(2e9, 80, 0.5, 225e9)), 3)
    0.711
    """
    return 2 * layer_bytes * layers * (1 - on_chip) / bandwidth


@formula(source="definition: writing and reading activations is a third of it forward, two backward, as matmuls are")
def traffic_passes(recomputed: Number) -> Number:
    """Activation traffic of one micro-batch relative to a step without recomputation.

    >>> round(traffic_passes(1), 3)
    1.333
    """
    return 1 + recomputed / 3


# forward: product in 32 bits 4, sum 10, joined 8, narrowed 6; backward: widened 6, narrowed 6, bias 12, share 12, joined 4
BIAS_BYTES: Byte = 68.0
CLAMP_BYTES: Byte = 36.0  # forward: both halves 8, joined 8; backward: 12, 8


@formula(source="Megatron-LM of 2025-12, moe/experts.py and fusions/fused_bias_geglu.py: kernels that read and write whole tensors in turn")
def unfused_expert_bytes(active: Number, hidden: Number, width: Number, biased: Number, clamped: Number, captured: Number) -> BytePerToken:
    """HBM bytes per token of experts' output biases, weighted in 32 bits, and clamps; a captured step has fused kernels (gpt-oss-120b).

    >>> unfused_expert_bytes(4, 2880, 2880, 1, 1, 0)
    1198080.0
    """
    return active * (biased * BIAS_BYTES * hidden + clamped * CLAMP_BYTES * width) * (1 - captured) / ONE_TOKEN


@formula(source="definition")
def forward_s(matmuls: Second, scores: Second, traffic: Second) -> Second:
    """Time of a stage's forward pass over one micro-batch, with a third of the activation traffic.

    >>> round(forward_s(0.2, 0.02, 0.06), 6)
    0.24
    """
    return matmuls + scores + traffic / 3


@formula(source="definition: states are read and written, gradients read, weights written")
def update_bytes(weight: Byte, gradient: Byte, states: Byte) -> Byte:
    """HBM bytes of the optimiser update per parameter (mixed-precision Adam with 32-bit gradients: 30).

    >>> update_bytes(2, 4, 12)
    30
    """
    return weight + gradient + 2 * states


@formula(source="CMOS: dynamic power is f V^2; clocks rise between the square root and the first power of it; fitted exponent")
def clock_share(power: Watt, peak: FlopPerSecond, usual_power: Watt, usual_peak: FlopPerSecond, exponent: Number) -> Number:
    """Clock under load of a chip over that of a reference chip, by power per FLOP/s (H100 of 500 W against 700 W; GB300 against B200).

    >>> round(float(clock_share(500, 989.5e12, 700, 989.5e12, 0.5)), 3), round(float(clock_share(1400, 2.5e15, 1000, 2.25e15, 0.5)), 3)
    (0.845, 1.122)
    """
    return (power / peak * (usual_peak / usual_power)) ** exponent


@formula(source="definition: nothing runs faster than its peak")
def share_of_peak(usual_share: Number, clock: Number) -> Number:
    """Share of the peak that work reaches at another clock under load, at most all of it.

    >>> float(share_of_peak(0.5, 1.2)), float(share_of_peak(0.9, 1.2))
    (0.6, 1.0)
    """
    return np.minimum(usual_share * clock, 1.0)


@formula(source="definition: read forward and backward; a gradient is added to the one in memory, read and written")
def weight_traffic_bytes(weight: Byte, gradient: Byte, trained: Number) -> Byte:
    """HBM bytes per parameter of a micro-batch's matmuls (16-bit weights, 32-bit gradients; LoRA, whose base weights have none).

    >>> weight_traffic_bytes(2, 4, 1), weight_traffic_bytes(2, 4, 0)
    (12, 4)
    """
    return 2 * weight + 2 * trained * gradient


@formula(source="the host prepares sizes and launches of each routed layer again, unless a whole step is one captured graph")
def routing_wait_s(layers: Number, per_layer: Second, captured: Number) -> Second:
    """Time in which a stage waits for its host in routed layers, per micro-batch (Qwen3-30B-A3B, 48 layers; as one graph: none).

    >>> round(routing_wait_s(48, 5e-3, 0), 3), routing_wait_s(48, 5e-3, 1)
    (0.24, 0.0)
    """
    return layers * per_layer * (1 - captured)
