"""Which layouts of a training run are legal, and why others are not. A rule is a line here, for one layout or for many at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.layout import ModelShape, shape
from headway.model import Model, MoE
from headway.training.recipe import TrainingLayout
from headway.whole_model import works

CHUNKED = ("1f1b", "interleaved")  # 1F1B with chunks of layers is the interleaved schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a layout has to divide."""

    shape: ModelShape
    chips: int
    sequence: int
    sequences: int  # of one step
    schedule: str


def bounds(model: Model, chips: int, sequence: int, sequences: int, schedule: str = "1f1b") -> Bounds:
    """The bounds of a model on so many chips."""
    model_shape = shape(works(model))
    experts = tuple(int(block.ffn.experts) for block in model.blocks if isinstance(block.ffn, MoE))
    return Bounds(
        shape=ModelShape(heads=model_shape.heads, experts=min(experts, default=0), layers=model_shape.layers),
        chips=chips, sequence=sequence, sequences=sequences, schedule=schedule,
    )  # fmt: skip


def rules(layout: TrainingLayout, of: Bounds) -> Iterator[tuple[Any, str]]:
    """Every rule: where it is broken, and what it says."""
    tp, cp, pp, vpp, ep, dp = layout.tp, layout.cp, layout.pp, layout.vpp, layout.ep, layout.dp
    for heads in of.shape.heads:
        yield heads % tp != 0, f"tp does not divide {heads} attention heads"
    yield tp * cp * pp * dp > of.chips, f"tp x cp x pp x dp is more than the {of.chips} chips"
    yield of.sequence % cp != 0, f"cp does not divide a sequence of {of.sequence} tokens"
    yield pp * vpp > of.shape.layers, f"pp x vpp is more than the {of.shape.layers} layers"
    yield (vpp > 1) & (pp == 1), "vpp needs more than one pipeline stage"
    yield of.sequences % (dp * layout.micro_batch) != 0, f"dp x micro_batch does not divide the {of.sequences} sequences of a step"
    uneven = of.sequences // (dp * layout.micro_batch) % pp != 0
    yield (vpp > 1) & (of.schedule not in CHUNKED), f"vpp is of the interleaved schedule, not of {of.schedule}"
    yield (vpp > 1) & uneven, "the interleaved schedule wants micro-batches in multiples of pp"
    if of.schedule == "dualpipe":
        yield (pp > 1) & (pp % 2 == 1), "DualPipe wants an even number of stages"
        yield (pp > 1) & (of.sequences // (dp * layout.micro_batch) % 2 == 1), "DualPipe wants an even number of micro-batches"
    if of.schedule == "zb-v":
        yield 2 * pp > of.shape.layers, f"zb-v puts two chunks of the {of.shape.layers} layers on each stage"
    yield (ep > 1) & (of.shape.experts == 0), "ep needs routed experts, and the model has none"
    yield (of.shape.experts > 0) & (of.shape.experts % ep != 0), f"ep does not divide the {of.shape.experts} routed experts"
    yield (of.shape.experts > 0) & ((tp * cp * dp) % ep != 0), "ep does not divide tp x cp x dp"
    yield (ep % tp != 0) & (tp % ep != 0), "ep and tp: one does not divide the other"


def legal(layout: TrainingLayout, of: Bounds) -> Any:
    """Which of many layouts keep every rule."""
    is_legal = np.ones(np.shape(layout.tp), bool)
    for broken, _ in rules(layout, of):
        is_legal &= ~np.asarray(broken)
    return is_legal


def why_illegal(layout: TrainingLayout, of: Bounds) -> str:
    """Every rule that one layout breaks, or ""."""
    return ", and ".join(reason for broken, reason in rules(layout, of) if bool(broken))
