"""The time of one step: kernels (parts.py), collectives and fixed costs, the binding limit, overlap, and the floor below it.

The planner broadcasts `step_s`, `explain` replays it, a simulator may compile it; nothing else computes a step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Number, Second, Token
from headway.laws.collectives.cost import collectives_floor_s, collectives_s, two_batch_step_s
from headway.laws.step.coefficients import (
    FITTED,
    FULL,
    LLAMA_70B_TP8,  # noqa: F401 (the doctests' example)
    OPERATORS,
    TWO_BATCH,
    RankWork,
    StepCoefficients,
)
from headway.laws.step.parts import (
    MEETS,
    NONE,
    attention_compute_s,
    dense_compute_s,
    expert_activations_s,
    expert_compute_floor_s,
    expert_compute_s,
    expert_weights_s,
    images_s,
    index_kernels_s,
    kernels_s,
    kv_traffic_s,
    latent_expansion_s,
    place,
    smooth_max_s,
    stream_s,
    streamed_weights_s,
)
from headway.laws.step.remainder import remainder_step_s
from headway.laws.step.sparse import decode_filling_s, index_compute_s, index_floor_s

LECTURE = "Pope 2026 lecture, claims "
LAUNCH_NORM: Number = 2  # as compute and weights meet
NO_DRAFTS: Second = 0.0
NO_DECODING: Second = 0.0
NO_SHARE: Number = 0.0


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
    """Time of arithmetic and HBM traffic together under an overlap mode.

    >>> [float(overlapped_s(mode, 1.0, 4.0, 0.0, 0.0, 2.0, 1.0)) for mode in (0, 1, 2)]
    [5.0, 6.0, 8.0]
    """
    if overlap == FULL:
        return np.maximum(dense + expert + attention, dense_weights + expert_weights + kv)
    if overlap == OPERATORS:
        return np.maximum(attention, kv) + (np.maximum(dense, dense_weights) + np.maximum(expert, expert_weights))
    return attention + kv + (dense + dense_weights + expert + expert_weights)


@formula(source=LECTURE + "RB-02; a vision tower computes beside the layers of the decoder")
def tokens_compute_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Compute time at peak of what every token passes, and of the tower on the images of prompts.

    >>> float(tokens_compute_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 0, 0.0, 1000.0, 5e5)))
    0.0173005
    """
    dense = dense_compute_s(coefficients.dense_compute, rank_work.tokens, coefficients.head_compute, rank_work.sampled)
    return dense + images_s(coefficients.images, rank_work.prompt_tokens) if coefficients.images else dense


@formula(source=LECTURE + "RB-02, RB-03, with experts touched and attention")
def work_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of a step's arithmetic and HBM traffic at expected efficiency, without fixed costs and collectives.

    >>> round(float(work_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))), 6)
    0.008075
    """
    achieved = coefficients.achieved
    if coefficients.overlap == FITTED:
        return beside_host_s(coefficients, rank_work, kernels_s(coefficients, rank_work))
    work = overlapped_s(
        coefficients.overlap,
        tokens_compute_s(coefficients, rank_work) / achieved.compute,
        coefficients.dense_weights / achieved.memory,
        expert_compute_s(coefficients.experts, rank_work.group_tokens) * coefficients.imbalance / achieved.expert_compute,
        expert_weights_s(coefficients.experts, rank_work.group_tokens) / achieved.expert_memory,
        attention_work_s(coefficients, rank_work),
        kv_traffic_s(coefficients.spans, coefficients.state, coefficients.kv_write, rank_work) / achieved.decode_memory,
    )
    return beside_host_s(coefficients, rank_work, work)


def beside_host_s(coefficients: StepCoefficients, rank_work: RankWork, work: Second) -> Second:
    """Time of a step's work with what it moves from the host; the work alone where everything lies on the chip."""
    if not coefficients.transfers:
        return work
    return with_transfer_s(coefficients.overlap, work, host_transfer_s(coefficients, rank_work))


@formula(source=LECTURE + "RB-23 over the host's link: each expert that at least one token uses")
def host_transfer_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time to move a step's routed experts from the host's memory, at what copies reach of the link.

    >>> host_transfer_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 0.0, 0.0, 0.0))
    0.0
    """
    return expert_weights_s(coefficients.transfers, rank_work.group_tokens) / coefficients.achieved.host_link


@formula(
    source="vLLM 0.33.0, model_executor/offloader/uva.py: kernels read experts in the host's memory as they run, after the router has "
    "chosen them; NeuraLegion/shainet#130: 25 ms of kernels hid nothing of 116 ms of copies"
)
def with_transfer_s(overlap: Number, work: Second, transfer: Second) -> Second:
    """Time of work and of the experts that it moves: one after the other, since routing decides which; beside each other at best.

    >>> float(with_transfer_s(FITTED, 3e-3, 20e-3)), float(with_transfer_s(FULL, 3e-3, 20e-3))
    (0.023, 0.02)
    """
    return np.maximum(work, transfer) if overlap == FULL else work + transfer


@formula(source="definition; the step models that are not fitted take one efficiency for all attention")
def attention_work_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Compute time of attention, with the keys and values that are made again and the scores of index scans.

    >>> round(float(attention_work_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))) * 1e6, 2)
    35.2
    """
    achieved = coefficients.achieved
    work = attention_compute_s(coefficients.spans, rank_work) + latent_expansion_s(coefficients.spans, rank_work)
    attention = work / achieved.decode_compute
    return attention + index_compute_s(coefficients.indexes, rank_work) / achieved.index_compute if coefficients.indexes else attention


@formula(source="definition: whichever format a kernel multiplies the cache in")
def attention_floor_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Compute time of attention and index scans in the fastest formats that could multiply the cache as stored.

    >>> round(float(attention_floor_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))) * 1e6, 2)
    21.12
    """
    work = attention_compute_s(coefficients.spans, rank_work) / coefficients.attention_gain
    return work + index_floor_s(coefficients.indexes, rank_work) if coefficients.indexes else work


@formula(source=LECTURE + "RB-01 to RB-07, with collectives (alpha + bytes/bandwidth), t0 per kernel, the engine's work, what laws leave")
def step_s(
    coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token
) -> Second:
    """Expected time of one step in which a replica decodes `decode_sequences` and prefills `prefill_tokens`.

    >>> round(float(step_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)), 5)
    0.01238
    """
    load = (decode_sequences, kv_tokens, prefill_tokens, prefill_pairs)
    if coefficients.drafts or coefficients.draft_shares:
        return step_s(replace(coefficients, drafts=(), draft_shares=()), *load) + drafts_s(coefficients, *load)
    step, factors = law_step_s(coefficients, *load), (coefficients.achieved.decode_remainder, coefficients.achieved.prompt_remainder)
    if all(factor == 1 if isinstance(factor, float | int) else np.all(factor == 1) for factor in factors):
        return step
    measured = remainder_step_s(step, decoding_s(coefficients, step, *load[:3]), *factors)
    return np.maximum(measured, step_floor_s(coefficients, *load))


def decoding_s(coefficients: StepCoefficients, step: Second, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token) -> Second:
    """Time by the laws that a step's decoding sequences would take alone: all of it without prompts, none of it where nothing decodes."""
    if isinstance(prefill_tokens, np.ndarray | float | int) and not np.any(prefill_tokens):
        return step
    if isinstance(decode_sequences, np.ndarray | float | int) and not np.any(decode_sequences):
        return NO_DECODING
    return law_step_s(coefficients, decode_sequences, kv_tokens, NONE, NONE) * np.minimum(decode_sequences, 1)


@formula(source=LECTURE + "RB-01 to RB-07, with collectives (alpha + bytes/bandwidth), t0 per kernel and the engine's own work")
def law_step_s(
    coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token
) -> Second:
    """Time of one step by the laws, without its drafting and before what measured runs take beyond them.

    >>> round(float(law_step_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)), 5)
    0.01238
    """
    if coefficients.communication == TWO_BATCH:
        rank_work = place(coefficients, decode_sequences / 2, kv_tokens / 2, prefill_tokens / 2, prefill_pairs / 2)
        together = two_batch_step_s(
            fixed_s(coefficients, rank_work) + work_s(coefficients, rank_work),
            collectives_s(coefficients.collectives, rank_work.tokens),
            coefficients.layers,
        )
        return launched_step_s(together, host_s(coefficients, rank_work)) if coefficients.overlap == FITTED else together
    rank_work = place(coefficients, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs)
    work = work_s(coefficients, rank_work)
    network = collectives_s(coefficients.collectives, rank_work.tokens)
    step = fixed_s(coefficients, rank_work) + (np.maximum(work, network) if coefficients.overlap == FULL else work + network)
    return launched_step_s(step, host_s(coefficients, rank_work)) if coefficients.overlap == FITTED else step


@formula(source="Leviathan et al. 2023 (arXiv:2211.17192), algorithm 1: drafts come one by one, before the step that verifies them")
def drafts_s(
    coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token
) -> Second:
    """Time of a step's drafting: a pass over the new tokens, which leaves their cache, and one more for each further draft.

    >>> float(drafts_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))  # nothing drafts
    0.0
    """
    if coefficients.draft_shares:  # of a step without prompts, and nothing where no sequence decodes
        verified = step_s(replace(coefficients, drafts=(), draft_shares=()), decode_sequences, kv_tokens, NONE, NONE)
        return sum(coefficients.draft_shares, start=NO_SHARE) * verified * np.minimum(decode_sequences, 1)
    return sum(
        (
            step_s(term.first, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs)
            + term.count * step_s(term.further, decode_sequences, kv_tokens, NONE, NONE)
            + term.wait * np.minimum(decode_sequences, 1)
            for term in coefficients.drafts
        ),
        start=NO_DRAFTS,
    )


@formula(source="Leviathan et al. 2023 (arXiv:2211.17192), algorithm 1; each pass at peak rates")
def drafts_floor_s(
    coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token
) -> Second:
    """Floor of a step's drafting; nothing where nobody says what drafts, since looking up earlier text drafts for nothing.

    >>> float(drafts_floor_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))
    0.0
    """
    return sum(
        (
            term.in_floor
            * (
                step_floor_s(term.first, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs)
                + term.count * step_floor_s(term.further, decode_sequences, kv_tokens, NONE, NONE)
            )
            for term in coefficients.drafts
        ),
        start=NO_DRAFTS,
    )


@formula(source="captured graphs replay decode steps; kernels of other steps are launched by the host, one by one")
def host_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """The host's time to launch the kernels of a step with prompts, or of any step without graphs: none of what graphs replay.

    >>> round(float(host_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 8, 0.0, 1000.0, 5e5))), 4)
    0.0352
    """
    achieved = coefficients.achieved
    layers = coefficients.routed_layers * achieved.host_routed + coefficients.latent_layers * achieved.host_latent
    host = coefficients.launches * achieved.host_launch + layers
    beyond = np.maximum(rank_work.tokens - achieved.captured, 0)
    prompted = np.minimum(np.minimum(rank_work.prompt_tokens, beyond) / ONE_TOKEN, 1)
    return host * (achieved.uncaptured + (1 - achieved.uncaptured) * prompted)


@formula(source=MEETS + ": the host launches ahead of the chip, which waits where kernels are short")
def launched_step_s(step: Second, host: Second) -> Second:
    """Time of a step whose kernels a host launches meanwhile.

    >>> round(float(launched_step_s(30e-3, 40e-3)), 6), float(launched_step_s(30e-3, 0.0))
    (0.05, 0.03)
    """
    return smooth_max_s(step, host, LAUNCH_NORM)


@formula(source="definition")
def fixed_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Fixed cost of a step: launch time of all kernels (prefill attention's only when it runs), and engine overhead.

    >>> round(float(fixed_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 100, 0.0, 0.0, 0.0))), 6)
    0.0026
    """
    sampled = rank_work.sequences if rank_work.queries == 1 else rank_work.sequences * coefficients.sampled
    return (
        coefficients.achieved.fixed
        + coefficients.achieved.expert_fixed
        + coefficients.achieved.sequence * sampled
        + coefficients.achieved.prompted * np.minimum(rank_work.prompt_tokens / ONE_TOKEN, 1)
    )


@formula(source=LECTURE + "RB-01, RB-05: perfect overlap at peak rates; nothing real is faster")
def step_floor_s(
    coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token
) -> Second:
    """Floor of a step: the longest of all compute, all HBM traffic and all link traffic at peak rates.

    What is stored is read as it is stored, and multiplied in the fastest format of the chip that is at least as wide.

    >>> round(float(step_floor_s(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)), 6)
    0.005969
    """
    if coefficients.drafts or coefficients.queries != coefficients.least_queries:
        load, least = (decode_sequences, kv_tokens, prefill_tokens, prefill_pairs), coefficients.least_queries
        surely = replace(coefficients, queries=least, sampled=np.minimum(coefficients.sampled, least), drafts=())
        return step_floor_s(surely, *load) + drafts_floor_s(coefficients, *load)
    rank_work = place(coefficients, decode_sequences, kv_tokens, prefill_tokens, prefill_pairs)
    work = overlapped_s(
        FULL,
        dense_floor_s(coefficients, rank_work),
        coefficients.dense_weights,
        expert_compute_floor_s(coefficients.experts, rank_work.group_tokens),
        expert_weights_s(coefficients.experts, rank_work.group_tokens),
        attention_floor_s(coefficients, rank_work),
        kv_traffic_s(coefficients.spans, coefficients.state, coefficients.kv_write, rank_work),
    )
    alone = np.maximum(work, collectives_floor_s(coefficients.collectives, rank_work.tokens))
    return np.maximum(alone, expert_weights_s(coefficients.transfers, rank_work.group_tokens)) if coefficients.transfers else alone


@formula(source=LECTURE + "RB-02")
def compute_s(coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """Arithmetic time of a decode step at expected efficiency: projections, experts, attention, and their activations.

    >>> round(float(compute_s(LLAMA_70B_TP8, 64, 64 * 1000.0)), 6)
    0.002212
    """
    rank_work, achieved = place(coefficients, decode_sequences, kv_tokens, NONE, NONE), coefficients.achieved
    dense = dense_compute_s(coefficients.dense_compute, rank_work.tokens, coefficients.head_compute, rank_work.sampled) / achieved.compute
    experts = expert_compute_s(coefficients.experts, rank_work.group_tokens) * coefficients.imbalance / achieved.expert_compute
    if coefficients.overlap != FITTED:
        return attention_work_s(coefficients, rank_work) + (dense + experts)
    attention = attention_compute_s(coefficients.spans, rank_work) + decode_filling_s(coefficients.spans, rank_work)
    arithmetic = attention / achieved.decode_compute + (dense + experts)
    if coefficients.indexes:
        arithmetic = arithmetic + index_kernels_s(coefficients, rank_work)
    return arithmetic + activations_s(coefficients, rank_work)


@formula(source="definition; only the fitted step model counts it")
def activations_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """HBM time of the inputs and outputs of matmuls, norms and residuals, at expected efficiency.

    >>> round(float(activations_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 0.0, 0.0, 0.0))), 6)
    0.000753
    """
    achieved = coefficients.achieved
    routed = expert_activations_s(coefficients.experts, rank_work.group_tokens) * coefficients.imbalance / achieved.expert_activation
    return (
        coefficients.activations * rank_work.tokens / achieved.activation
        + coefficients.elementwise * rank_work.tokens / achieved.elementwise
        + routed
    )


@formula(source=LECTURE + "RB-02; at peak, routed work balanced")
def compute_floor_s(coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """Arithmetic time of a decode step at peak FLOP/s, in the fastest formats that could multiply what is stored.

    >>> round(float(compute_floor_s(LLAMA_70B_TP8, 64, 64 * 1000.0)), 6)
    0.00116
    """
    rank_work = place(coefficients, decode_sequences, kv_tokens, NONE, NONE)
    return attention_floor_s(coefficients, rank_work) + (
        dense_floor_s(coefficients, rank_work) + expert_compute_floor_s(coefficients.experts, rank_work.group_tokens)
    )


@formula(source=LECTURE + "RB-02, RB-05: whichever format a kernel multiplies the stored weights in")
def dense_floor_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Compute time of dense layers and head in the fastest formats that could multiply their stored weights.

    >>> round(float(dense_floor_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 0.0, 0.0, 0.0))), 6)
    0.001139
    """
    layers, head = coefficients.dense_compute / coefficients.dense_gain, coefficients.head_compute / coefficients.head_gain
    dense = dense_compute_s(layers, rank_work.tokens, head, rank_work.sampled)
    return dense + images_s(coefficients.images, rank_work.prompt_tokens) if coefficients.images else dense


@formula(source=LECTURE + "RB-03, RB-05, RB-23")
def weights_s(coefficients: StepCoefficients, decode_sequences: Number) -> Second:
    """Weight-read time of a decode step at expected efficiency: dense weights, and the routed experts that tokens use.

    >>> round(weights_s(LLAMA_70B_TP8, 64), 6)
    0.006341
    """
    rank_work = place(coefficients, decode_sequences, NONE, NONE, NONE)
    routed = expert_weights_s(coefficients.experts, rank_work.group_tokens)
    return streamed_weights_s(coefficients, rank_work.tokens) / coefficients.achieved.memory + routed / coefficients.achieved.expert_memory


@formula(source=LECTURE + "RB-03")
def kv_s(coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """Time of KV and state traffic of a decode step at expected efficiency, and the fixed time of each attention block.

    >>> round(float(kv_s(LLAMA_70B_TP8, 64, 64 * 1000.0)), 6)
    0.000957
    """
    rank_work = place(coefficients, decode_sequences, kv_tokens, NONE, NONE)
    return (
        kv_traffic_s(coefficients.spans, coefficients.state, coefficients.kv_write, rank_work) / coefficients.achieved.decode_memory
        + coefficients.blocks * rank_work.sequences * coefficients.achieved.block
        + stream_s(coefficients.spans, coefficients.achieved.stream, rank_work)
    )


@formula(source="alpha-beta model: Hockney 1994, Parallel Computing 20(3)")
def network_s(coefficients: StepCoefficients, decode_sequences: Number) -> Second:
    """Time of a decode step's collectives, each by its fastest algorithm at this size.

    >>> round(float(network_s(LLAMA_70B_TP8, 64)), 6)
    0.001779
    """
    return collectives_s(coefficients.collectives, place(coefficients, decode_sequences, NONE, NONE, NONE).tokens)


@formula(source=LECTURE + "RB-23 over the host's link")
def expert_transfer_s(coefficients: StepCoefficients, decode_sequences: Number) -> Second:
    """Time in which a decode step moves routed experts from the host's memory.

    >>> expert_transfer_s(LLAMA_70B_TP8, 64)
    0.0
    """
    return host_transfer_s(coefficients, place(coefficients, decode_sequences, NONE, NONE, NONE))


@formula(source="definition")
def overhead_s(coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token) -> Second:
    """Fixed cost of a decode step: kernel launches, engine overhead and, without graphs, what the chip waits for its host.

    >>> round(float(overhead_s(LLAMA_70B_TP8, 100, 0.0)), 6)
    0.0026
    """
    fixed = fixed_s(coefficients, place(coefficients, decode_sequences, NONE, NONE, NONE))
    if coefficients.overlap != FITTED or not np.any(coefficients.achieved.uncaptured):
        return fixed
    graphs = replace(coefficients, achieved=replace(coefficients.achieved, uncaptured=0))
    steps = [step_s(step, decode_sequences, kv_tokens, NONE, NONE) for step in (coefficients, graphs)]
    return fixed + (steps[0] - steps[1])
