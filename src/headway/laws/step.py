"""The step time: what binds, how it adds up, and the floor below it.

The planner broadcasts `step_s`, `explain` replays it, a simulator may compile it; nothing else computes a step.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.laws.coefficients import EXPOSED, FITTED, FULL, OPERATORS, TWO_BATCH, Point, Reach, SpanTerm, StepCoefficients
from headway.laws.collective_lines import collectives_floor_s, collectives_s, exposed_step_s, two_batch_step_s
from headway.laws.kernels import decode_attention_s, matmul_s, prefill_attention_s
from headway.laws.lines import CollectiveTerm, Line
from headway.laws.step_parts import (
    NEW_TOKEN,
    NONE,
    attention_compute_s,
    decode_score_s,
    dense_compute_s,
    expert_activations_s,
    expert_compute_s,
    expert_weights_s,
    kv_traffic_s,
    place,
    prefill_pad_s,
    prefill_score_s,
)
from headway.units import Number, Second, Token

LECTURE = "Pope 2026 lecture, claims "

# Llama-3.1-70B in bf16 on 8 H100 SXM, tensor parallel, rounded: the record that the doctests below are worked on.
LLAMA_70B_TP8 = StepCoefficients(
    dense_compute=1.73e-5, head_compute=5e-7, dense_weights=5.2e-3, experts=(), state=0.0, kv_write=1.2e-8,
    activations=3.3e-6, elementwise=3.1e-6, blocks=80,
    collectives=(CollectiveTerm(count=160, lines=(Line(alpha=6e-6, slope=8e-8),), floor=6.4e-8),),
    spans=(SpanTerm(cap=np.inf, root=np.inf, read=1.2e-8, decode_compute=3.3e-10, prefill_compute=3.3e-10),),
    dp=1, pp=1, cp=1, layers=80, attention_gain=1, imbalance=1, prefill_ranks=1, overlap=FITTED, communication=EXPOSED,
    reach=Reach(
        compute=0.8, memory=0.82, activation=0.5, norm=3, expert_compute=0.5, expert_memory=0.82, expert_activation=0.3, expert_norm=3,
        decode_compute=0.6, decode_memory=0.9, block=2e-8, prefill_compute=0.65, prefill_pad=300.0, elementwise=0.6,
        fixed=2.4e-3, sequence=2e-6, prompted=1e-3,
    ),
)  # fmt: skip


@formula(source=LECTURE + "RB-01, RB-27; 'full' is the roofline, 'serial' the sum, 'operators' each operator's own roofline, summed")
def overlapped_s(
    overlap: Number,
    dense: Second,
    dense_weights: Second,
    expert: Second,
    expert_weights: Second,
    attention: Second,
    kv: Second,
) -> Second:
    """How arithmetic and HBM traffic add up under a named overlap.

    >>> [float(overlapped_s(mode, 1.0, 4.0, 0.0, 0.0, 2.0, 1.0)) for mode in (0, 1, 2)]
    [5.0, 6.0, 8.0]
    """
    if overlap == FULL:
        return np.maximum(dense + expert + attention, dense_weights + expert_weights + kv)
    if overlap == OPERATORS:
        return np.maximum(attention, kv) + (np.maximum(dense, dense_weights) + np.maximum(expert, expert_weights))
    return attention + kv + (dense + dense_weights + expert + expert_weights)


@formula(source="one law per class of kernel (laws/kernels.py), classes one after the other")
def kernels_s(c: StepCoefficients, p: Point, zero: Second) -> Second:
    """Arithmetic and HBM traffic of a step as kernels were measured to do it.

    >>> p = place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)
    >>> round(float(kernels_s(LLAMA_70B_TP8, p, 0.0)), 6)
    0.008075
    """
    r = c.reach
    dense = matmul_s(
        dense_compute_s(c.dense_compute, p.tokens, c.head_compute, p.sampled), c.dense_weights, c.activations * p.tokens,
        r.compute, r.memory, r.activation, r.norm,
    )  # fmt: skip
    if c.experts:
        dense = dense + matmul_s(
            expert_compute_s(c.experts, p.group_tokens, zero) * c.imbalance, expert_weights_s(c.experts, p.group_tokens, zero),
            expert_activations_s(c.experts, p.group_tokens, zero) * c.imbalance,
            r.expert_compute, r.expert_memory, r.expert_activation, r.expert_norm,
        )  # fmt: skip
    decode = decode_attention_s(
        decode_score_s(c.spans, p, zero), kv_traffic_s(c.spans, c.state, c.kv_write, p), c.blocks * p.sequences,
        r.decode_compute, r.decode_memory, r.block,
    )  # fmt: skip
    prefill = prefill_attention_s(prefill_score_s(c.spans, p, zero), prefill_pad_s(c.spans, p, r.prefill_pad, zero), r.prefill_compute)
    return decode + prefill + (dense + c.elementwise * p.tokens / r.elementwise)


@formula(source=LECTURE + "RB-02, RB-03, with experts touched and attention")
def work_s(c: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token) -> Second:
    """Arithmetic and HBM traffic of a step at the expected efficiency, without fixed costs and collectives.

    >>> round(float(work_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)), 6)
    0.008075
    """
    p, zero, r = place(c, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs), 0 * c.dense_weights, c.reach
    if c.overlap == FITTED:
        return kernels_s(c, p, zero)
    return overlapped_s(
        c.overlap,
        dense_compute_s(c.dense_compute, p.tokens, c.head_compute, p.sampled) / r.compute,
        c.dense_weights / r.memory,
        expert_compute_s(c.experts, p.group_tokens, zero) * c.imbalance / r.expert_compute,
        expert_weights_s(c.experts, p.group_tokens, zero) / r.expert_memory,
        attention_compute_s(c.spans, p, zero) / r.decode_compute,
        kv_traffic_s(c.spans, c.state, c.kv_write, p) / r.decode_memory,
    )


@formula(source=LECTURE + "RB-01 to RB-07, with collectives (alpha + bytes/bandwidth), t0 per kernel and the engine's own work")
def step_s(c: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token) -> Second:
    """Expected time of one step in which a replica decodes `decode_sequences` and prefills `prefill_tokens`.

    >>> round(float(step_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)), 5)
    0.01238
    """
    zero = 0 * c.dense_weights
    if c.communication == TWO_BATCH:
        half = (decode_sequences / 2, kv_tokens / 2, prefill_tokens / 2, prefill_pairs / 2)
        p = place(c, *half)
        return two_batch_step_s(fixed_s(c, p) + work_s(c, *half), collectives_s(c.collectives, p.tokens, zero), c.layers)
    p = place(c, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs)
    work = work_s(c, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs)
    network = collectives_s(c.collectives, p.tokens, zero)
    return fixed_s(c, p) + (np.maximum(work, network) if c.overlap == FULL else exposed_step_s(work, network))


@formula(source="definition")
def fixed_s(c: StepCoefficients, p: Point) -> Second:
    """What a step costs beside its work: t0 of each kernel, of prompts' attention too where there is one, and the engine's own work.

    >>> round(float(fixed_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 100, 0.0, 0.0, 0.0))), 6)
    0.0026
    """
    return c.reach.fixed + c.reach.sequence * p.sequences + c.reach.prompted * np.minimum(p.prompt_tokens / NEW_TOKEN, 1)


@formula(source=LECTURE + "RB-01, RB-05: perfect overlap at peak rates; nothing real is faster")
def step_floor_s(c: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token) -> Second:
    """The roofline of that step: the largest of all compute, all HBM traffic, all link traffic.

    >>> round(float(step_floor_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)), 6)
    0.005969
    """
    p, zero = place(c, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs), 0 * c.dense_weights
    work = overlapped_s(
        FULL,
        dense_compute_s(c.dense_compute, p.tokens, c.head_compute, p.sampled),
        c.dense_weights,
        expert_compute_s(c.experts, p.group_tokens, zero),
        expert_weights_s(c.experts, p.group_tokens, zero),
        attention_compute_s(c.spans, p, zero) / c.attention_gain,
        kv_traffic_s(c.spans, c.state, c.kv_write, p),
    )
    return np.maximum(work, collectives_floor_s(c.collectives, p.tokens, zero))


@formula(source=LECTURE + "RB-02")
def compute_s(c: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """A decode step's arithmetic at the expected efficiency: projections, experts and attention, and the activations they move.

    >>> round(float(compute_s(LLAMA_70B_TP8, 64, 64 * 1000.0)), 6)
    0.002212
    """
    p, zero, r = place(c, decode_sequences, kv_tokens, NONE, NONE), 0 * c.dense_weights, c.reach
    dense = dense_compute_s(c.dense_compute, p.tokens, c.head_compute, p.sampled) / r.compute
    experts = expert_compute_s(c.experts, p.group_tokens, zero) * c.imbalance / r.expert_compute
    return attention_compute_s(c.spans, p, zero) / r.decode_compute + (dense + experts) + activations_s(c, p, zero)


@formula(source="definition; the step models that are not fitted leave it out")
def activations_s(c: StepCoefficients, p: Point, zero: Second) -> Second:
    """What goes in and out of matmuls, norms and residuals, through the HBM at the expected efficiency.

    >>> round(float(activations_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 0.0, 0.0, 0.0), 0.0)), 6)
    0.000753
    """
    if c.overlap != FITTED:
        return zero
    r = c.reach
    routed = expert_activations_s(c.experts, p.group_tokens, zero) * c.imbalance / r.expert_activation
    return c.activations * p.tokens / r.activation + c.elementwise * p.tokens / r.elementwise + routed


@formula(source=LECTURE + "RB-02; at peak, routed work balanced")
def compute_floor_s(c: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """A decode step's arithmetic that no efficiency gets below.

    >>> round(float(compute_floor_s(LLAMA_70B_TP8, 64, 64 * 1000.0)), 6)
    0.00116
    """
    p, zero = place(c, decode_sequences, kv_tokens, NONE, NONE), 0 * c.dense_weights
    dense = dense_compute_s(c.dense_compute, p.tokens, c.head_compute, p.sampled)
    return attention_compute_s(c.spans, p, zero) / c.attention_gain + (dense + expert_compute_s(c.experts, p.group_tokens, zero))


@formula(source=LECTURE + "RB-03, RB-05, RB-23")
def weights_s(c: StepCoefficients, decode_sequences: Number) -> Second:
    """A decode step's weight reads at the expected efficiency: the flat line, and the experts touched.

    >>> round(weights_s(LLAMA_70B_TP8, 64), 6)
    0.006341
    """
    tokens = place(c, decode_sequences, NONE, NONE, NONE).group_tokens
    routed = expert_weights_s(c.experts, tokens, 0 * c.dense_weights)
    return c.dense_weights / c.reach.memory + routed / c.reach.expert_memory


@formula(source=LECTURE + "RB-03")
def kv_s(c: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """A decode step's KV and state traffic at the expected efficiency, and what each sequence's attention costs beside it.

    >>> round(float(kv_s(LLAMA_70B_TP8, 64, 64 * 1000.0)), 6)
    0.000957
    """
    p = place(c, decode_sequences, kv_tokens, NONE, NONE)
    return kv_traffic_s(c.spans, c.state, c.kv_write, p) / c.reach.decode_memory + c.blocks * p.sequences * c.reach.block


@formula(source="alpha-beta model: Hockney 1994, Parallel Computing 20(3)")
def network_s(c: StepCoefficients, decode_sequences: Number) -> Second:
    """A decode step's collectives, each by the algorithm that is fastest for its size.

    >>> round(float(network_s(LLAMA_70B_TP8, 64)), 6)
    0.001779
    """
    return collectives_s(c.collectives, place(c, decode_sequences, NONE, NONE, NONE).tokens, 0 * c.dense_weights)


@formula(source="definition")
def overhead_s(c: StepCoefficients, decode_sequences: Number) -> Second:
    """What a decode step costs beside its work.

    >>> round(float(overhead_s(LLAMA_70B_TP8, 100)), 6)
    0.0026
    """
    return fixed_s(c, place(c, decode_sequences, NONE, NONE, NONE))
