"""Which layouts of a training run are legal, and why others are not. A rule is a line here, for one layout or for many at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.layout import Shape, shape
from headway.model import Model, MoE
from headway.training.recipe import TrainingLayout
from headway.whole_model import works


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a layout has to divide."""

    shape: Shape
    chips: int
    sequence: int
    sequences: int  # of one step
    schedule: str


def bounds(model: Model, chips: int, sequence: int, sequences: int, schedule: str = "") -> Bounds:
    """The bounds of a model on so many chips."""
    counted = shape(works(model))
    experts = tuple(int(block.ffn.experts) for block in model.blocks if isinstance(block.ffn, MoE))
    return Bounds(
        shape=Shape(heads=counted.heads, experts=min(experts, default=0), layers=counted.layers),
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
    yield (vpp > 1) & uneven, "the interleaved schedule wants micro-batches in multiples of pp"
    yield (pp > 1) & (layout.zero == 3), "ZeRO-3 gathers every micro-batch's weights again in each stage: no schedule does"
    yield (ep > 1) & (of.shape.experts == 0), "ep needs routed experts, and the model has none"
    yield ep > max(of.shape.experts, 1), f"ep is more than the {of.shape.experts} routed experts"
    yield (tp * cp * dp) % ep != 0, "ep does not divide tp x cp x dp"
    yield (ep % tp != 0) & (tp % ep != 0), "ep and tp: one does not divide the other"


def legal(layout: TrainingLayout, of: Bounds) -> Any:
    """Which of many layouts keep every rule."""
    found = np.ones(np.shape(layout.tp), bool)
    for broken, _ in rules(layout, of):
        found &= ~np.asarray(broken)
    return found


def why_illegal(layout: TrainingLayout, of: Bounds) -> str:
    """Why one layout breaks a rule, or ""."""
    return next((f"{said} ({_shown(layout)})" for broken, said in rules(layout, of) if bool(broken)), "")


def _shown(layout: TrainingLayout) -> str:
    return f"tp={layout.tp} cp={layout.cp} pp={layout.pp} vpp={layout.vpp} ep={layout.ep} dp={layout.dp} micro_batch={layout.micro_batch}"
