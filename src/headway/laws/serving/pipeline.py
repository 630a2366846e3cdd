"""Pipelined inference: weights and KV cache per stage, time of a hop, and when scale-out keeps up with scale-up."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerSecond, BytePerToken, Number, Second, Token

LECTURE = "Pope 2026 lecture, claims "


@formula(source="definition: stages are outermost; stages that share a scale-up domain hop inside it")
def hops_out(stages: Number, domains: Number) -> Number:
    """Hops between pipeline stages that cross scale-out, of stages - 1 in all.

    >>> float(hops_out(4, 4)), float(hops_out(4, 2))
    (3.0, 1.0)
    """
    return np.minimum(stages, domains) - 1


@formula(source="definition")
def hops_up(stages: Number, domains: Number) -> Number:
    """Hops between pipeline stages inside a scale-up domain.

    >>> float(hops_up(4, 1)), float(hops_up(4, 4))
    (3.0, 0.0)
    """
    return stages - np.minimum(stages, domains)


@formula(source=LECTURE + "PP-12; a hop is one message")
def hop_s(tokens: Token, vector: BytePerToken, chips: Number, bandwidth: BytePerSecond, alpha: Second) -> Second:
    """Time to send one micro-batch to the next stage, each chip its share (2000 tokens over 64 links of 50 GB/s).

    >>> round(hop_s(2000, 14336.0, 64, 50e9, 0.0) * 1e6, 2)
    8.96
    """
    return alpha + tokens * vector / chips / bandwidth


@formula(source=LECTURE + "PP-05, PP-12: a token passes every stage, and its successor starts where it ended")
def pipelined_token_s(depth_s: Second, stages: Number, hop: Second) -> Second:
    """Time per token of a pipelined decode: all layers in sequence, and a hop per stage (the board: 20 ms to 30 ms).

    >>> round(float(pipelined_token_s(20e-3, 4, 2.5e-3)) * 1e3, 6), float(pipelined_token_s(20e-3, 1, 2.5e-3))
    (30.0, 0.02)
    """
    return depth_s + np.where(stages > 1, stages, 0) * hop


@formula(source=LECTURE + "PP-08")
def micro_batches_needed(stages: Number) -> Number:
    """Micro-batches that keep every stage of a decode pipeline busy.

    >>> micro_batches_needed(4)
    4
    """
    return stages


@formula(source=LECTURE + "PP-06: with one micro-batch all stages but one wait")
def pipeline_idle_share(stages: Number, in_flight: Number) -> Number:
    """Idle share of a pipeline's time with fewer micro-batches in flight than stages.

    >>> float(pipeline_idle_share(4, 1)), float(pipeline_idle_share(4, 4))
    (0.75, 0.0)
    """
    return np.maximum(1 - in_flight / stages, 0)


@formula(source=LECTURE + "PP-10, PP-11: a stage keeps 1/stages of the layers of stages times the sequences")
def stage_kv_bytes(micro_batch: Number, context: Token, kv_bytes_per_token: BytePerToken, chips: Number, stages: Number) -> Byte:
    """Bytes of KV cache per chip: stages do not divide it (2400 sequences of 100k tokens at 1,667 bytes).

    >>> [round(stage_kv_bytes(2400, 100e3, 1667.0, 64, stages) / 1e9, 2) for stages in (1, 8)]
    [6.25, 6.25]
    """
    return (stages * micro_batch) * context * kv_bytes_per_token / stages / chips


@formula(source=LECTURE + "MOE-07")
def scale_up_ratio(scale_up_bw: BytePerSecond, scale_out_bw: BytePerSecond) -> Number:
    """Scale-up bandwidth over scale-out bandwidth, per chip and direction (GB200 with 400 Gb/s: 18).

    >>> scale_up_ratio(900e9, 50e9)
    18.0
    """
    return scale_up_bw / scale_out_bw


@formula(source=LECTURE + "PP-01, PP-03: dispatch and combine of k copies per layer against one vector per stage")
def scale_up_over_hop(active: Number, layers_per_stage: Number, ratio: Number) -> Number:
    """Time in a stage's all-to-alls over time of its hop to the next stage: above 1, scale-out keeps up.

    >>> [scale_up_over_hop(k, 1, 8) for k in (1, 2, 4, 8)]
    [0.25, 0.5, 1.0, 2.0]
    """
    return 2 * active * layers_per_stage / ratio


@formula(source=LECTURE + "PP-02, PP-04")
def fewest_layers_per_stage(active: Number, ratio: Number) -> Number:
    """Fewest layers per stage whose all-to-alls take as long as the hop.

    >>> [float(fewest_layers_per_stage(k, 8)) for k in (1, 2, 4)], float(fewest_layers_per_stage(8, 18))
    ([4.0, 2.0, 1.0], 2.0)
    """
    return np.ceil(ratio / (2 * active))


@formula(source=LECTURE + "MOE-08: 1 - 1/R of the tokens leave the rack, over a link that much slower; inside, the rest hides")
def racks_slowdown(ratio: Number, racks: Number) -> Number:
    """Time of an expert layer's all-to-all over several racks relative to one rack.

    >>> [round(float(racks_slowdown(8, racks)), 2) for racks in (1, 2, 3, 4, 8)]
    [1.0, 4.0, 5.33, 6.0, 7.0]
    """
    return np.maximum(ratio * (1 - 1 / racks), 1)
