"""The step time: what binds, how it adds up, and the floor below it.

The planner broadcasts `step_s`, `explain` replays it, a simulator may compile it; nothing else computes a step.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.laws.coefficients import EXPOSED, FULL, OPERATORS, TWO_BATCH, SpanTerm, StepCoefficients
from headway.laws.collective_lines import collectives_floor_s, collectives_s, exposed_step_s, two_batch_step_s
from headway.laws.lines import CollectiveTerm, Line
from headway.laws.step_parts import (
    NONE,
    attention_compute_s,
    dense_compute_s,
    expert_compute_s,
    expert_weights_s,
    kv_traffic_s,
    place,
)
from headway.units import Number, Second, Token

LECTURE = "Pope 2026 lecture, claims "

# Llama-3.1-70B in bf16 on 8 H100 SXM, tensor parallel, rounded: the record that the doctests below are worked on.
LLAMA_70B_TP8 = StepCoefficients(
    dense_compute=1.73e-5, head_compute=5e-7, dense_weights=5.2e-3, experts=(), state=0.0, kv_write=1.2e-8, operators=480,
    collectives=(CollectiveTerm(count=160, lines=(Line(alpha=6e-6, slope=8e-8),), floor=6.4e-8),),
    spans=(SpanTerm(cap=np.inf, root=np.inf, read=1.2e-8, decode_compute=3.3e-10, prefill_compute=3.3e-10),),
    dp=1, pp=1, cp=1, layers=80, imbalance=1, prefill_ranks=1, overlap=OPERATORS, communication=EXPOSED,
    eff_compute=0.7, eff_memory=0.8, t0=3e-6,
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


@formula(source=LECTURE + "RB-02, RB-03, with experts touched, attention and t0 per kernel")
def work_s(c: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token) -> Second:
    """Arithmetic and HBM traffic of a step at the expected efficiency, without kernels' fixed cost and collectives.

    >>> round(float(work_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)), 6)
    0.007461
    """
    p, zero = place(c, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs), 0 * c.dense_weights
    return overlapped_s(
        c.overlap,
        dense_compute_s(c.dense_compute, p.tokens, c.head_compute, p.sampled) / c.eff_compute,
        c.dense_weights / c.eff_memory,
        expert_compute_s(c.experts, p.group_tokens, zero) * c.imbalance / c.eff_compute,
        expert_weights_s(c.experts, p.group_tokens, zero) / c.eff_memory,
        attention_compute_s(c.spans, p, zero) / c.eff_compute,
        kv_traffic_s(c.spans, c.state, c.kv_write, p) / c.eff_memory,
    )


@formula(source=LECTURE + "RB-01 to RB-07, with collectives (alpha + bytes/bandwidth) and t0 per kernel")
def step_s(c: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token) -> Second:
    """Expected time of one step in which a replica decodes `decode_sequences` and prefills `prefill_tokens`.

    >>> round(float(step_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)), 5)
    0.01068
    """
    zero, fixed = 0 * c.dense_weights, c.t0 * c.operators
    if c.communication == TWO_BATCH:
        half = (decode_sequences / 2, kv_tokens / 2, prefill_tokens / 2, prefill_pairs / 2)
        return two_batch_step_s(fixed + work_s(c, *half), collectives_s(c.collectives, place(c, *half).tokens, zero), c.layers)
    work = work_s(c, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs)
    network = collectives_s(c.collectives, place(c, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs).tokens, zero)
    return fixed + (np.maximum(work, network) if c.overlap == FULL else exposed_step_s(work, network))


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
        attention_compute_s(c.spans, p, zero),
        kv_traffic_s(c.spans, c.state, c.kv_write, p),
    )
    return np.maximum(work, collectives_floor_s(c.collectives, p.tokens, zero))


@formula(source=LECTURE + "RB-02")
def compute_s(c: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """A decode step's arithmetic at the expected efficiency: projections, experts and attention.

    >>> round(float(compute_s(LLAMA_70B_TP8, 64, 64 * 1000.0)), 6)
    0.001658
    """
    p, zero = place(c, decode_sequences, kv_tokens, NONE, NONE), 0 * c.dense_weights
    dense = dense_compute_s(c.dense_compute, p.tokens, c.head_compute, p.sampled)
    experts = expert_compute_s(c.experts, p.group_tokens, zero) * c.imbalance
    return (attention_compute_s(c.spans, p, zero) + (dense + experts)) / c.eff_compute


@formula(source=LECTURE + "RB-03, RB-05, RB-23")
def weights_s(c: StepCoefficients, decode_sequences: Number) -> Second:
    """A decode step's weight reads at the expected efficiency: the flat line, and the experts touched.

    >>> weights_s(LLAMA_70B_TP8, 64)
    0.0065
    """
    tokens = place(c, decode_sequences, NONE, NONE, NONE).group_tokens
    return (c.dense_weights + expert_weights_s(c.experts, tokens, 0 * c.dense_weights)) / c.eff_memory


@formula(source=LECTURE + "RB-03")
def kv_s(c: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """A decode step's KV and state traffic at the expected efficiency.

    >>> round(float(kv_s(LLAMA_70B_TP8, 64, 64 * 1000.0)), 6)
    0.000961
    """
    return kv_traffic_s(c.spans, c.state, c.kv_write, place(c, decode_sequences, kv_tokens, NONE, NONE)) / c.eff_memory


@formula(source="alpha-beta model: Hockney 1994, Parallel Computing 20(3)")
def network_s(c: StepCoefficients, decode_sequences: Number) -> Second:
    """A decode step's collectives, each by the algorithm that is fastest for its size.

    >>> round(float(network_s(LLAMA_70B_TP8, 64)), 6)
    0.001779
    """
    return collectives_s(c.collectives, place(c, decode_sequences, NONE, NONE, NONE).tokens, 0 * c.dense_weights)


@formula(source="definition")
def overhead_s(c: StepCoefficients) -> Second:
    """What a step costs before any work: t0 for each kernel.

    >>> overhead_s(LLAMA_70B_TP8)
    0.00144
    """
    return c.t0 * c.operators
