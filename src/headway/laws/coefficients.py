"""What a model, a chip and a layout compile to: the record that `step_s` turns into a time.

Times are seconds at the datasheet peak, of the fullest chip, for the whole depth of the model (all pipeline stages, one after
the other); efficiencies and fixed costs stand beside them. Numbers only, scalar or array alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.laws.lines import CollectiveTerm
from headway.units import Number, Second, SecondPerToken, Token

FULL, OPERATORS, SERIAL = 0, 1, 2
OVERLAPS = {"full": FULL, "operators": OPERATORS, "serial": SERIAL}  # what overlaps: everything; work within an operator; nothing

EXPOSED, TWO_BATCH = 0, 1
COMMUNICATIONS = {"exposed": EXPOSED, "two-batch": TWO_BATCH}  # hidden by nothing; by the work of the other half of the batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertTerm:
    """Routed experts of one kind of block."""

    compute: SecondPerToken  # per token of the expert group, on the chip that holds most experts
    weights: Second  # reading every expert that chip holds
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
    operators: Number  # kernels in one step, each costing t0
    dp: Number
    pp: Number
    cp: Number
    layers: Number
    imbalance: Number  # routed work of the busiest chip over the mean of chips that hold as many experts
    prefill_ranks: Number  # data-parallel ranks that a step's prompt tokens are spread over
    overlap: Number
    communication: Number  # what hides the collectives
    eff_compute: Number
    eff_memory: Number
    t0: Second


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Where a step is evaluated: what one rank, and its group of experts, has to do."""

    sequences: Number  # decoding on the fullest rank, in one micro-batch
    context: Token
    prompt_tokens: Token  # prefilled on one rank
    start: Token  # context before them
    end: Token
    tokens: Token  # through the projections of one chip
    sampled: Token  # through the head of one chip
    group_tokens: Token  # through the experts of the replica
