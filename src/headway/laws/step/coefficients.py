"""Coefficients of a step: the record that `step_s` turns into a time, compiled from a model, a chip and a layout; an example at the end.

Times are seconds at the datasheet peak on the fullest chip, for the whole depth of the model (all pipeline stages in sequence);
efficiencies and fixed costs are separate fields. Every field is a scalar or an array.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headway.core.units import Number, Second, SecondPerToken, Token


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveLine:
    """One collective algorithm: latency of a call, and time per token at the bandwidth that it achieves."""

    alpha: Second
    slope: SecondPerToken


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTerm:
    """Collectives of one kind in a step, run in sequence."""

    count: Number
    lines: tuple[CollectiveLine, ...]
    floor: SecondPerToken  # smallest time per token of any algorithm, at the links' peak bandwidth


FULL, OPERATORS, SERIAL, FITTED = 0, 1, 2, 3
OVERLAPS = {"fitted": FITTED, "full": FULL, "operators": OPERATORS, "serial": SERIAL}  # measured; everything; within an operator; none

EXPOSED, TWO_BATCH = 0, 1
COMMUNICATIONS = {"exposed": EXPOSED, "two-batch": TWO_BATCH}  # not overlapped; overlapped with the other half batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertTerm:
    """Routed experts of all layers of one kind."""

    compute: SecondPerToken  # per token of the expert group, on the chip that holds most experts
    weights: Second  # time to read every expert of the fullest chip
    activations: SecondPerToken  # matmul inputs and outputs, per token of the expert group
    experts: Number
    active: Number  # experts per token
    skew: Number = 0  # of the routing: 0 where every expert is as likely as any
    gain: Number = 1  # speed-up in the fastest format that could multiply the stored weights


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTerm:
    """One attention span: dense, a window, a top-k, an index."""

    cap: Token  # attends to min(context, cap) tokens; inf for all
    root: Token  # attends to at most sqrt(context * root) tokens; inf without this limit
    read: SecondPerToken  # KV cache of one attended token, per sequence
    decode_compute: SecondPerToken  # scores and values of one new token against one attended token
    prefill_compute: SecondPerToken
    expand: SecondPerToken = 0.0  # keys and values of a latent before a prompt chunk, made again
    decode_filling: SecondPerToken = 0.0  # and of heads that fill up a block in which a kernel takes them
    prefill_filling: SecondPerToken = 0.0
    stream: SecondPerToken = 0.0  # KV cache of one attended token and one KV head, of each layer, per sequence
    prefill_slot: SecondPerToken = 0.0  # and of each slot of the top k that a prompt's query has no token for


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTerm:
    """The scans of an index that picks the tokens of sparse attention, of all layers; their keys are read as a span's."""

    compute: SecondPerToken  # scores of one query against one token of its context
    read: SecondPerToken  # of its key, counted in a span too
    choice: SecondPerToken  # the score read again, twice, to choose the largest
    gain: Number = 1  # speed-up in the fastest format that could multiply the keys


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTerm:
    """Layers whose state passes over a prompt in chunks, each after the one before (gated delta rule)."""

    layers: Number
    heads: Number  # of a layer on one chip


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTerm:
    """The images of prompts, in proportion to their tokens."""

    compute: SecondPerToken  # of a vision tower, per token of the prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Achieved:
    """Achieved shares of datasheet peaks by kernel class, and fixed costs of a step."""

    compute: Number  # dense matmuls: share of peak FLOP/s
    memory: Number  # dense matmuls: share of HBM bandwidth on weights
    activation: Number  # dense matmuls: share of HBM bandwidth on activations
    norm: Number  # dense matmuls: norm of the smooth maximum of compute and weight reads
    packing: Number = 0  # dense matmuls of more than one row: copies of the weights in a kernel's order, in times of their read
    expert_compute: Number  # grouped matmuls of experts: share of peak FLOP/s
    expert_memory: Number
    expert_activation: Number
    expert_norm: Number
    decode_compute: Number  # decode attention: share of peak FLOP/s
    decode_memory: Number
    block: Second  # per block of decode attention: one KV head of one sequence in one layer
    stream: Number = 0.0  # HBM bandwidth over that of one stream: the cache of one KV head of one sequence
    prefill_compute: Number  # prefill attention: share of peak FLOP/s
    prefill_pad: Token  # masked tokens that each prompt query computes in vain
    elementwise: Number  # share of HBM bandwidth of norms, residuals and other elementwise kernels
    fixed: Second  # per step: launch time of all kernels but experts, and engine overhead
    expert_fixed: Second  # per step: routing, permuting and finalising of all expert layers, each one captured sequence of kernels
    sequence: Second  # per sequence of a rank: sampling, the engine's bookkeeping
    prompted: Second  # per step with prompt tokens: launch time of prefill attention
    host_launch: Second = 0.0  # the host's time for each kernel of a step with prompts, which no captured graph replays
    host_routed: Second = 0.0  # and for each layer of routed experts: their choice, sorting, grouped kernels
    host_latent: Second = 0.0  # and for each layer of latent attention: the latents expanded to keys and values of heads, in parts
    captured: Token = 0.0  # tokens of a step with prompts up to which captured graphs replay its kernels
    uncaptured: Number = 0  # share of the other steps without graphs: 1 where the host launches the kernels of every step
    scan_chunk: Second = 0.0  # scans of prompts: one chunk of as many heads as run at once
    scan_heads: Number = 1  # heads of all sequences that run at once
    index_compute: Number = 1  # scores of an index scan: share of peak FLOP/s
    host_link: Number = 1  # what is moved from the host: share of the link's bandwidth
    decode_remainder: Number = 1  # measured time over that of the laws: of a step without prompts
    prompt_remainder: Number = 1  # and of what prompts add to a step


UNLIMITED: Number = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCost:
    """Overhead that an engine adds to a step, and its kernel efficiency relative to the best measured kernels."""

    prompt_launch_s: Second  # the host's time for each kernel of a step with prompts, which no captured graph replays
    prompt_routed_s: Second  # and for each layer of routed experts
    captured_tokens: Token  # tokens of a step with prompts up to which captured graphs replay its kernels
    launch_factor: Number  # factor on kernels' launch time: below 1 where the engine fuses kernels or launches ahead
    step_overhead_s: Second  # engine work per step, exposed
    layer_overhead_s: Second  # per layer: launches that no graph hides, kernels that are not fused
    split_overhead_s: Second  # per layer and tensor-parallel chip, where the host joins the parts
    sequence_overhead_s: Second  # per sequence of a rank: sampling, bookkeeping
    compute_factor: Number  # factor on shares of peak FLOP/s
    memory_factor: Number  # factor on shares of HBM bandwidth
    attention_factor: Number  # factor on both shares, in attention
    expert_factor: Number  # factor on both shares, in routed experts
    weight_only_factor: Number  # factor on both shares, in dense matmuls with weight-only quantisation
    prompt_latent_s: Second = 0.0  # of the host in a step with prompts, for each layer of latent attention
    unpacking: Number = UNLIMITED  # share of HBM bandwidth at which all arithmetic goes into unpacking weights
    uncaptured: Number = 0  # 1 where no step is a captured graph
    decode_remainder: Number = 1  # measured time over that of the laws: of a step without prompts
    prompt_remainder: Number = 1  # and of what prompts add to a step


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTerm:
    """The drafting of a step: a head or a model proposes tokens, one after the other, which the next step verifies."""

    first: StepCoefficients  # its pass over the tokens that were verified, and over those of prompts
    further: StepCoefficients  # each later pass, over one token of each sequence
    count: Number  # of later passes
    wait: Second = 0.0  # of the host in each step, for which tokens were accepted
    in_floor: Number = 1  # share of it that the floor counts: none where nobody says what drafts


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCoefficients:
    """A compiled layout: the coefficients of its step time."""

    dense_compute: SecondPerToken  # projections, dense and shared FFN: per token of a chip
    head_compute: SecondPerToken  # output head: per sampled token
    dense_weights: Second
    experts: tuple[ExpertTerm, ...]
    spans: tuple[SpanTerm, ...]
    state: Second  # recurrent state read and written, per sequence
    kv_write: SecondPerToken
    collectives: tuple[CollectiveTerm, ...]  # times per token of a chip
    activations: SecondPerToken  # inputs and outputs of dense matmuls, per token of a chip
    blocks: Number  # blocks of decode attention, per sequence of a rank
    elementwise: SecondPerToken  # norms, residuals and other elementwise kernels, per token of a chip
    dp: Number
    pp: Number
    cp: Number
    layers: Number
    attention_gain: Number  # speed-up of attention in the fastest format that could multiply the cache
    imbalance: Number  # routed work of the busiest chip over the mean of chips with equally many experts
    prefill_ranks: Number  # data-parallel ranks, in all micro-batches, that share a step's prompt tokens
    overlap: Number
    communication: Number  # overlap of collectives: EXPOSED or TWO_BATCH
    achieved: Achieved
    rank_prompts: Number = 1  # prompts whose new tokens each of those ranks computes in a step
    launches: Number = 0  # kernels of a step as an engine launches them, routed experts apart
    routed_layers: Number = 0  # layers of routed experts on one chip
    latent_layers: Number = 0  # and of latent attention
    scans: tuple[ScanTerm, ...] = ()
    indexes: tuple[IndexTerm, ...] = ()
    transfers: tuple[ExpertTerm, ...] = ()  # routed experts in the host's memory: `weights` is the time over its link
    images: tuple[ImageTerm, ...] = ()
    dense_gain: Number = 1  # speed-up of dense matmuls in the fastest formats that could multiply the stored weights
    head_gain: Number = 1
    queries: Number = 1  # new tokens of a decoding sequence: 1, and the drafts that are verified with it
    sampled: Number = 1  # of them, those that pass through the head
    least_queries: Number = 1  # of the floor: those that were surely computed
    drafts: tuple[DraftTerm, ...] = ()
    draft_shares: tuple[Number, ...] = ()  # of a decode step, which drafting takes where the user says so


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWork:
    """Work of one step on one rank and on its expert group; its prompts are alike."""

    sequences: Number  # decoding on the fullest rank, in one micro-batch
    context: Token
    prompt_tokens: Token  # prefilled on one rank
    start: Token  # context before the prompt tokens
    end: Token
    tokens: Token  # through the projections of one chip
    sampled: Token  # through the head of one chip
    group_tokens: Token  # through the experts of the replica
    prompts: Number = 1  # whose new tokens they are
    queries: Number = 1  # new tokens of each decoding sequence


# Llama-3.1-70B in bf16 on 8 H100 SXM, tensor parallel, rounded: the record of the doctests of step.py and parts.py.
LLAMA_70B_TP8 = StepCoefficients(
    dense_compute=1.73e-5, head_compute=5e-7, dense_weights=5.2e-3, experts=(), state=0.0, kv_write=1.2e-8,
    activations=3.3e-6, elementwise=3.1e-6, blocks=80,
    collectives=(CollectiveTerm(count=160, lines=(CollectiveLine(alpha=6e-6, slope=8e-8),), floor=6.4e-8),),
    spans=(SpanTerm(cap=math.inf, root=math.inf, read=1.2e-8, decode_compute=3.3e-10, prefill_compute=3.3e-10),),
    dp=1, pp=1, cp=1, layers=80, attention_gain=1, imbalance=1, prefill_ranks=1, overlap=FITTED, communication=EXPOSED,
    achieved=Achieved(
        compute=0.8, memory=0.82, activation=0.5, norm=3, expert_compute=0.5, expert_memory=0.82, expert_activation=0.3, expert_norm=3,
        decode_compute=0.6, decode_memory=0.9, block=2e-8, prefill_compute=0.65, prefill_pad=300.0, elementwise=0.6,
        fixed=2.4e-3, expert_fixed=0.0, sequence=2e-6, prompted=1e-3, host_launch=4e-5,
    ),
    launches=880,
)  # fmt: skip
