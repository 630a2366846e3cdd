"""What a model, a chip and a layout compile to: the record that `step_s` turns into a time, with its collectives as lines in the tokens.

Times are seconds at the datasheet peak, of the fullest chip, for the whole depth of the model (all pipeline stages, one after
the other); efficiencies and fixed costs stand beside them. Numbers only, scalar or array alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.core.units import Number, Second, SecondPerToken, Token


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveLine:
    """One algorithm: what it costs however short the message, and per token carried at the efficiency it reaches."""

    alpha: Second
    slope: SecondPerToken


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTerm:
    """Collectives of one kind in a step, one after the other."""

    count: Number
    lines: tuple[CollectiveLine, ...]
    floor: SecondPerToken  # the least slope of any algorithm, at the links' peak


FULL, OPERATORS, SERIAL, FITTED = 0, 1, 2, 3
OVERLAPS = {"fitted": FITTED, "full": FULL, "operators": OPERATORS, "serial": SERIAL}  # measured; everything; work within an operator; none

EXPOSED, TWO_BATCH = 0, 1
COMMUNICATIONS = {"exposed": EXPOSED, "two-batch": TWO_BATCH}  # hidden by nothing; by the work of the other half of the batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertTerm:
    """Routed experts of one kind of block."""

    compute: SecondPerToken  # per token of the expert group, on the chip that holds most experts
    weights: Second  # reading every expert that chip holds
    activations: SecondPerToken  # in and out of the grouped matmuls, per token of the expert group
    experts: Number
    active: Number  # experts per token


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTerm:
    """One way of looking back: dense, a window, a top-k, an index."""

    cap: Token  # attends to min(context, cap); inf for all
    root: Token  # and to sqrt(context * root) at most; inf for no such law
    read: SecondPerToken  # KV of one attended token, per sequence
    decode_compute: SecondPerToken  # scores and values of one new token against one attended token
    prefill_compute: SecondPerToken


@dataclass(frozen=True, slots=True, kw_only=True)
class Achieved:
    """What kernels reach of the datasheet, class by class, and what a step costs whatever it does."""

    compute: Number  # dense matmuls: share of peak FLOP/s,
    memory: Number  # of HBM bandwidth on weights
    activation: Number  # and on what goes in and comes out
    norm: Number  # of the smooth maximum of the first two
    expert_compute: Number  # the same of grouped matmuls
    expert_memory: Number
    expert_activation: Number
    expert_norm: Number
    decode_compute: Number  # attention of new tokens
    decode_memory: Number
    block: Second  # per block of attention: a sequence's one KV head in one layer
    prefill_compute: Number  # attention of prompts
    prefill_pad: Token  # tokens attended to in vain by each query of a prompt
    elementwise: Number  # share of HBM bandwidth of norms, residuals and the like
    fixed: Second  # per step: every kernel's t0, and the engine's own work
    sequence: Second  # per sequence of a rank: sampling, the engine's bookkeeping
    prompted: Second  # per step that has a prompt: t0 of its attention


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCost:
    """What an engine adds to a step, and its kernels against the best measured."""

    launch: Number  # factor on kernels' fixed costs: below 1 where it fuses what was measured apart, or launches ahead
    step: Second  # its own work in each step, exposed
    layer: Second  # and in each layer: launches that no graph hides, kernels that are not fused
    split: Second  # and in each layer for each chip that it is split over, where the host joins the parts
    sequence: Second  # for each sequence of a rank: sampling, bookkeeping
    compute: Number  # factor on shares of peak FLOP/s
    memory: Number  # on shares of HBM bandwidth
    attention: Number  # on both, in attention
    expert: Number  # and in routed experts
    dense: Number  # and in dense matmuls whose weights are widened first


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCoefficients:
    """A layout, compiled."""

    dense_compute: SecondPerToken  # projections, dense and shared FFN: per token of a chip
    head_compute: SecondPerToken  # the head: per token that is sampled from
    dense_weights: Second
    experts: tuple[ExpertTerm, ...]
    spans: tuple[SpanTerm, ...]
    state: Second  # recurrent state read and written, per sequence
    kv_write: SecondPerToken
    collectives: tuple[CollectiveTerm, ...]  # per token of a chip
    activations: SecondPerToken  # in and out of the dense matmuls, per token of a chip
    blocks: Number  # of attention, per sequence of a rank
    elementwise: SecondPerToken  # norms, residuals and the like, per token of a chip
    dp: Number
    pp: Number
    cp: Number
    layers: Number
    attention_gain: Number  # how much faster attention may be than its terms, at the peak of the cache's format
    imbalance: Number  # routed work of the busiest chip over the mean of chips that hold as many experts
    prefill_ranks: Number  # data-parallel ranks that a step's prompt tokens are spread over
    overlap: Number
    communication: Number  # what hides the collectives
    achieved: Achieved


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWork:
    """Where a step is evaluated: what one rank, and its group of experts, has to do."""

    sequences: Number  # decoding on the fullest rank, in one micro-batch
    context: Token
    prompt_tokens: Token  # prefilled on one rank
    start: Token  # context before them
    end: Token
    tokens: Token  # through the projections of one chip
    sampled: Token  # through the head of one chip
    group_tokens: Token  # through the experts of the replica
