"""Terms of a step from parameters and a layout: shares by chip, and each term as seconds at peak on the fullest chip."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import (
    Byte,
    BytePerSecond,
    BytePerToken,
    Flop,
    FlopPerSecond,
    FlopPerToken,
    Number,
    PerToken,
    Same,
    Second,
    SecondPerToken,
)


@formula(source="definition; expert parallelism re-uses the chips of the other ways")
def replica_chips(tp: Number, cp: Number, dp: Number, pp: Number) -> Number:
    """Chips of one replica.

    >>> replica_chips(4, 1, 2, 3)
    24
    """
    return tp * cp * dp * pp


@formula(source="definition; a system is rented whole")
def idle_chips(chips: Number, busy_chips: Number) -> Number:
    """Chips of the system that no replica uses but that are paid for.

    >>> int(idle_chips(72, 64))
    8
    """
    return np.maximum(chips - busy_chips, 0)


@formula(source="lecture PP-10; the fullest stage holds ceil(layers/pp)")
def stage_share(layers: Number, pp: Number) -> Number:
    """Share of the layers on the fullest pipeline stage (DeepSeek-V3's 61 layers over 4 stages: 16).

    >>> round(float(stage_share(61, 4)) * 61, 9)
    16.0
    """
    return np.ceil(layers / pp) / layers


@formula(source="lecture PP-05, PP-18: stages run one after the other; the slowest sets the pace")
def depth_factor(layers: Number, pp: Number) -> Number:
    """Time of all pipeline stages over that of an even split: pp * ceil(layers/pp) / layers.

    >>> round(float(depth_factor(61, 4)), 4)
    1.0492
    """
    return pp * np.ceil(layers / pp) / layers


@formula(source="definition; the fullest chip, KV heads replicated once tp exceeds them")
def head_share(heads: Number, tp: Number) -> Number:
    """Share of the heads (KV heads, or 1 for a shared latent) that the fullest tensor-parallel chip holds.

    >>> float(head_share(8, 4)), float(head_share(8, 16)), float(head_share(1, 8))
    (0.25, 0.125, 1.0)
    """
    return np.ceil(heads / tp) / heads


@formula(source="definition")
def even_share(degree: Number) -> Number:
    """Share of an operator on a chip, where so many chips divide it evenly.

    >>> float(even_share(8))
    0.125
    """
    return 1 / degree


@formula(source="definition: a kernel takes heads in whole blocks, and computes the rest of a block as if it were there")
def block_share(heads: Number, tp: Number, block: Number) -> Number:
    """Work of a tensor-parallel chip over that of all heads, at least a share of them, rounded up to whole blocks of heads.

    >>> float(block_share(128, 8, 64)), float(block_share(128, 1, 64))  # DeepSeek-V3.2's sparse attention on Hopper
    (0.5, 1.0)
    """
    return np.ceil(np.ceil(heads / tp) / block) * block / heads


@formula(source="lecture MOE-02, MOE-03: the fullest chip holds ceil(E/ep)")
def experts_held(experts: Number, redundant: Number, ep: Number) -> Number:
    """Routed experts on the fullest chip, copies of busy ones included (256 over 72 chips: 4; with 32 copies, 4 on every chip).

    >>> float(experts_held(256, 0, 72)), float(experts_held(256, 32, 72))
    (4.0, 4.0)
    """
    return np.ceil((experts + redundant) / ep)


@formula(source="uniform routing: the fullest chip's experts over all, copies sharing their tokens; lecture MOE-03")
def expert_load(experts: Number, redundant: Number, chip_experts: Number, tensor_degree: Number) -> Number:
    """Share of the group's routed work done by the fullest chip (256 experts over 72 chips, without copies and with 32).

    >>> round(72 * expert_load(256, 0, 4, 1), 3), 72 * expert_load(256, 32, 4, 1)
    (1.125, 1.0)
    """
    return chip_experts / (experts + redundant) / tensor_degree


@formula(source="definition")
def expert_share_held(experts: Number, chip_experts: Number, tensor_degree: Number) -> Number:
    """Share of the routed weights on the fullest chip.

    >>> expert_share_held(256, 4, 1)
    0.015625
    """
    return chip_experts / experts / tensor_degree


MULTIPLY_ADD: FlopPerToken = 2.0  # one multiply and one add, per parameter and token
CLAIMS = "Pope 2026 lecture, claims "


@formula(source="Megatron-LM (arXiv:1909.08053), section 3: columns and rows of every matrix are split over tp")
def split_params(params: Number, tp: Number) -> Number:
    """Matrix parameters per tensor-parallel chip.

    >>> split_params(704_643_072, 8)  # Llama-3.1-70B, the FFN of one layer
    88080384.0
    """
    return params / tp


@formula(source="definition")
def chip_params(params: Number, share: Number) -> Number:
    """Parameters of a part of a model on one chip.

    >>> chip_params(1_050_673_152, 1 / 8)  # Llama-3.1-70B, the output head over 8 chips
    131334144.0
    """
    return params * share


@formula(source="definition: parts of a mixer, each times its share on a chip (data/engines/splits.csv)")
def mixer_params_chip(
    params: Number, common: Number, scan: Number, kv: Number, head_share: Number, down_share: Number, scan_share: Number, kv_share: Number
) -> Number:
    """Parameters of a mixer on the fullest chip: of what all heads share (down-projections, an indexer), of KV heads, and of the rest.

    >>> mixer_params_chip(187_105_280, 15_138_816, 0, 0, 1 / 8, 1, 1, 1)  # DeepSeek-V3, one layer over 8 chips
    36634624.0
    """
    return (params - common - kv) * head_share + (common - scan) * down_share + scan * scan_share + kv * kv_share


@formula(source="definition: parts of a layer's feed-forward part, each times its share on a chip (data/engines/splits.csv)")
def common_params_chip(
    params: Number, router: Number, latent: Number, ffn_share: Number, router_share: Number, latent_share: Number
) -> Number:
    """Parameters that every token uses in a feed-forward part, on one chip: router, projections of latent experts, and the rest.

    >>> common_params_chip(45_875_200, 1_835_008, 0, 1 / 8, 1, 1)  # DeepSeek-V3, one layer of experts over 8 chips
    7340032.0
    """
    return (params - router - latent) * ffn_share + router * router_share + latent * latent_share


@formula(source=CLAIMS + "RB-05: weights over bandwidth")
def dense_weights_s(layers: Byte, head: Byte, depth: Number, bandwidth: BytePerSecond) -> Second:
    """Time to read one chip's weights that every step uses.

    >>> round(dense_weights_s(17.1e9, 0.26e9, 1.0, 3.35e12) * 1e3, 3)
    5.182
    """
    return (layers * depth + head) / bandwidth


@formula(source=CLAIMS + "RB-24, MOE-02")
def expert_s_per_token(params: Number, active: Number, load: Number, depth: Number, peak: FlopPerSecond) -> SecondPerToken:
    """Time per token of the routed experts on the fullest chip.

    >>> round(expert_s_per_token(44e6 * 58, 8, 4 / 256, 1.0, 5e15) * 1e9, 3)
    127.6
    """
    return MULTIPLY_ADD * params * active * load * depth / peak


@formula(source=CLAIMS + "RB-05, MOE-02")
def expert_read_s(params: Number, element: Byte, experts: Number, load: Number, depth: Number, bandwidth: BytePerSecond) -> Second:
    """Time to read all routed experts of the fullest chip.

    >>> round(expert_read_s(44e6 * 58, 1, 256, 4 / 256, 1.0, 8e12) * 1e3, 3)
    1.276
    """
    return params * experts * load * element * depth / bandwidth


@formula(source=CLAIMS + "RB-03; KV heads split over tp, sequence over cp")
def span_read_s(elements: PerToken, element: Byte, share: Number, cp: Number, depth: Number, bandwidth: BytePerSecond) -> SecondPerToken:
    """Time per attended token to read its KV cache on the fullest chip, of one layer or of several equal layers.

    >>> round(span_read_s(2048 * 80, 2, 1 / 8, 1, 1.0, 3.35e12) * 1e9, 3)
    12.227
    """
    return elements * element * share * depth / cp / bandwidth


@formula(source="definition: the cache of one KV head of those on the fullest chip")
def stream_read_s(read: SecondPerToken, heads: Number, share: Number) -> SecondPerToken:
    """Time per attended token to read one KV head's cache in each layer.

    >>> [round(float(stream_read_s(12.227e-9, 8, share)) * 1e9, 3) for share in (1 / 8, 1)]
    [12.227, 1.528]
    """
    return read / np.maximum(heads * share, 1)


@formula(source=CLAIMS + "CW-02: 4*d_head FLOP per head and attended token")
def span_score_s(flop: FlopPerToken, share: Number, cp: Number, depth: Number, peak: FlopPerSecond) -> SecondPerToken:
    """Time of scores and values of one query against one attended token, on the fullest chip.

    >>> round(span_score_s(4 * 128 * 64 * 80, 1 / 8, 1, 1.0, 989.4e12) * 1e12, 1)
    331.2
    """
    return flop * share * depth / cp / peak


LOGIT: Byte = 4.0  # the scores of an index scan are 32-bit numbers


@formula(source="definition; FlashMLA: sparse kernels take query heads in whole blocks")
def span_filling_s(
    flop: FlopPerToken, block_share: Number, share: Number, cp: Number, depth: Number, peak: FlopPerSecond
) -> SecondPerToken:
    """Time of the heads that fill up a kernel's blocks, of one query against one attended token, on the fullest chip.

    >>> round(float(span_filling_s(278_528 * 61, 64 / 128, 16 / 128, 1, 1.0, 989.4e12)) * 1e9, 2)  # DeepSeek-V3.2 over 8 H200
    6.44
    """
    return flop * np.maximum(block_share - share, 0 * share) * depth / cp / peak


@formula(source="vLLM and TensorRT-LLM, top_k_per_row: a pass over 32-bit scores counts them by size, another collects the largest")
def index_choice_s(layers: PerToken, share: Number, cp: Number, depth: Number, bandwidth: BytePerSecond) -> SecondPerToken:
    """Time per query and token of its context to read the scores of an index scan twice, in all layers that scan, at the HBM bandwidth.

    `layers` are those with a score per token: a layer that scores an entry for every 4 tokens counts a quarter.

    >>> round(float(index_choice_s(61, 1, 1, 1.0, 4.8e12)) * 1e12, 1)  # DeepSeek-V3.2 on an H200
    101.7
    """
    return 2 * LOGIT * layers * share * depth / cp / bandwidth


@formula(source="a recurrent state is read and written at each step")
def state_s(elements: Number, element: Byte, depth: Number, bandwidth: BytePerSecond) -> Second:
    """Time to read and write so many elements of recurrent state, of one sequence on one chip (Qwen3-Next: 19.8 M elements).

    >>> round(state_s(19.76e6, 2, 1.0, 3.35e12) * 1e6, 2)
    23.59
    """
    return 2 * elements * element * depth / bandwidth


KERNELS_PER_MIXER: Number = 4  # norm, projections, attention, output projection
KERNELS_PER_FFN: Number = 3  # norm, up (with gate), down
KERNELS_PER_MOE: Number = 5  # norm, router, permute, grouped up, grouped down


@formula(source="count of launches in a fused implementation; unfitted")
def kernels_per_step(mixers: Number, ffns: Number, moes: Number, depth: Number) -> Number:
    """Kernels that one chip launches in sequence in a step.

    >>> kernels_per_step(80, 80, 0, 1.0)
    560.0
    """
    return (mixers * KERNELS_PER_MIXER + ffns * KERNELS_PER_FFN + moes * KERNELS_PER_MOE) * depth


@formula(source="count of launches in vLLM, SGLang and TensorRT-LLM where kernels are launched one by one")
def engine_launches(matmuls: Number, attentions: Number, small: Number, each_matmul: Number, depth: Number) -> Number:
    """Kernels that an engine launches in a step, routed experts apart: Llama-3.1-70B, 4 matmuls, attention and 4 small ones a layer.

    >>> engine_launches(321, 80, 320, 1, 1.0)
    721.0
    """
    return (matmuls * each_matmul + attentions + small) * depth


ACTIVATION: BytePerToken = 2.0  # a 16-bit activation element
VECTORS: Number = 4  # a norm reads its input and the residual, and writes both


@formula(source="each matrix reads and writes one vector of the hidden size, and its other side once")
def matmul_activations_s(params: Number, hidden: Number, matmuls: Number, bandwidth: BytePerSecond) -> SecondPerToken:
    """Time per token of a layer's matmul inputs and outputs on one chip (Llama-3.1-70B: 4 over a hidden size of 8192).

    >>> round(matmul_activations_s(855_638_016, 8192, 4, 3.35e12) * 1e9, 1)
    81.9
    """
    return ACTIVATION * (matmuls * hidden + params / hidden) / bandwidth


@formula(source="count of a fused implementation: residual and norm in one kernel, read and written")
def elementwise_s(hidden: Number, sublayers: Number, depth: Number, bandwidth: BytePerSecond) -> SecondPerToken:
    """HBM time per token of norms and residuals, which every tensor-parallel chip computes in full.

    >>> round(elementwise_s(8192, 160, 1.0, 3.35e12) * 1e6, 2)  # Llama-3.1-70B
    3.13
    """
    return ACTIVATION * VECTORS * hidden * sublayers * depth / bandwidth


@formula(source="definition: a token visits `active` experts; each copies it in and out and writes its inner vectors")
def expert_activation_s(
    params: Number,
    hidden: Number,
    active: Number,
    load: Number,
    tensor_degree: Number,
    count: Number,
    depth: Number,
    bandwidth: BytePerSecond,
) -> SecondPerToken:
    """Time of the routed experts' inputs and outputs on the fullest chip, per token of the expert group.

    An expert split over `tensor_degree` chips is entered in each. Gathering the tokens and scattering the results count too.

    >>> round(expert_activation_s(44_040_192, 7168, 8, 1 / 8, 1, 58, 1.0, 3.35e12) * 1e9)  # DeepSeek-V3 over 8 chips
    1206
    """
    entered = active * load * tensor_degree
    elements = 2 * hidden * (entered + np.minimum(entered, 1)) + active * load * params / hidden
    return ACTIVATION * elements * count * depth / bandwidth


@formula(source="definition; llama.cpp joins the parts of a split layer on the host, one chip after the other")
def engine_s(step: Second, layers: Number, layer: Second, split: Second, tp: Number, pp: Number) -> Second:
    """Engine overhead of a step, exposed: per step in every pipeline stage, per layer, and per layer and tensor-parallel chip.

    >>> round(float(engine_s(1.5e-3, 80, 2e-6, 0.0, 8, 1)) * 1e6, 1)
    1660.0
    """
    return step * pp + layers * (layer + np.where(tp > 1, split * tp, 0 * split))


@formula(source="definition")
def partial_work_s(step: Second, share: Number) -> Second:
    """The engine's own work in a pass that is a part of a step.

    >>> partial_work_s(4.6e-4, 0)
    0.0
    """
    return step * share


@formula(source="fitted: engines take kernels together, launch them ahead and do less between steps, year after year")
def aged(cost: Same, growth: Number, years: Number) -> Same:
    """A fixed cost of an engine that is `years` older than today's, which were fitted to.

    >>> round(float(aged(1.0e-3, 0.2, 1.5)) * 1e3, 3)
    1.35
    """
    return cost * np.exp(growth * years)


@formula(source="definition: an engine's kernels against the best measured; never above the datasheet")
def engine_reach(efficiency: Number, factor: Number, class_factor: Number) -> Number:
    """Share of a peak that an engine's kernels achieve; attention and routed experts have their own class factor.

    >>> round(float(engine_reach(0.8, 0.9, 1)), 3), float(engine_reach(0.8, 1.5, 1))
    (0.72, 1.0)
    """
    return np.minimum(efficiency * factor * class_factor, 1)


@formula(source="definition: arithmetic to unpack a weight, on units that have so much of it for each byte that the memory moves")
def unpacking_limit(element: Byte, unpacking: Flop, peak: FlopPerSecond, bandwidth: BytePerSecond) -> Number:
    """Share of a memory's bandwidth at which all arithmetic goes into unpacking weights (Apple's M1 Max, Q4_K_M).

    >>> round(float(unpacking_limit(0.6, 30.0, 10.4e12, 400e9)), 2)
    0.52
    """
    return element * peak / (unpacking * bandwidth)


@formula(source="as arithmetic and weights meet in matmuls")
def unpacked_reach(efficiency: Number, limit: Number, norm: Number) -> Number:
    """Share of a bandwidth that kernels reach which unpack what they read.

    >>> float(unpacked_reach(0.8, np.inf, 2)), round(float(unpacked_reach(0.6, 0.8, 2)), 2)
    (0.8, 0.48)
    """
    return np.where(np.isinf(limit), efficiency, (efficiency**-norm + limit**-norm) ** (-1 / norm))


FULL_HEAD: Number = 128


@formula(source="fitted to prefill kernels: tiles are made for heads of 128")
def narrow_reach(efficiency: Number, head: Number, narrow: Number) -> Number:
    """Share of peak that attention achieves on heads narrower than a tile (64: about 0.6 of it).

    >>> round(float(narrow_reach(0.6, 64, 0.77)), 3), float(narrow_reach(0.6, 256, 0.77))
    (0.352, 0.6)
    """
    return efficiency * np.minimum(head / FULL_HEAD, 1) ** narrow
