"""What lives on a chip of a pipeline: layers, ends of the model, and the micro-batches in flight, for each chip that can be the fullest.

Memory, the exchange of parameters and the optimiser's update all take a chip's parameters from here. `timeline` and `dualpipe` play the
schedules that these counts belong to.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.laws.training.memory import (
    dualpipe_in_flight,
    end_params,
    folded_layers,
    gpipe_in_flight,
    interleaved_in_flight,
    middle_layers,
    one_forward_one_backward_in_flight,
    parted,
    spared_first_layers,
    zero_bubble_h1_in_flight,
    zero_bubble_h2_in_flight,
)
from headway.laws.training.step import spared_layers
from headway.performance.collectives import most
from headway.training.pipeline import Stage, copies
from headway.training.recipe import TrainingLayout

FIRST = 0  # stages are counted from 0
SECOND = 1
ENDS = 2  # stages of a pipeline that has no chip between its ends
NO_ENDS = {"has_first": 0, "has_last": 0, "logits": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipContents:
    """Layers of a chip, of both its stages in DualPipe, and the ends of the model that it has."""

    layers: Any
    kept_layers: Any  # each layer counted for every micro-batch whose activations it keeps
    in_flight: Any  # micro-batches
    has_first: Any  # 1 with the embedding, else 0
    has_last: Any  # 1 with the head, else 0
    logits: Any  # micro-batches whose logits are kept


def in_flight(schedule: str, layout: TrainingLayout, count: Any, stage: Any) -> Any:
    """Micro-batches whose activations a stage keeps at once, in units of all its layers."""
    if schedule == "gpipe":
        return gpipe_in_flight(layout.pp, count)
    if schedule == "zb-h2":
        return zero_bubble_h2_in_flight(layout.pp, count)
    if schedule in ("zb-h1", "zb-v"):
        return zero_bubble_h1_in_flight(layout.pp, count)
    if schedule == "dualpipe":
        return dualpipe_in_flight(layout.pp, count, stage)
    if schedule == "interleaved":
        return interleaved_in_flight(layout.pp, count, layout.vpp, stage)
    return one_forward_one_backward_in_flight(layout.pp, count, stage)


def chip_contents(schedule: str, part: Stage, layout: TrainingLayout, count: Any) -> tuple[ChipContents, ...]:
    """The chips of a pipeline of which one is the fullest: at its ends, where layers may be fewer, and behind the first."""
    full, last_stage = part.layers_per_stage, layout.pp - 1
    first, last = full - spared_first_layers(part.layers, layout.pp, full), full - spared_layers(part.layers, layout.pp, full)
    between, is_parted = middle_layers(full, layout.pp), parted(layout.pp)

    def flying(stage: Any) -> Any:
        return in_flight(schedule, layout, count, stage)

    if schedule == "dualpipe":  # a chip's stages of the two directions are as far from the two ends
        outer = ChipContents(
            layers=first + last * is_parted, kept_layers=first * flying(FIRST) + last * flying(last_stage) * is_parted,
            in_flight=flying(FIRST) + flying(last_stage) * is_parted, has_first=1, has_last=1, logits=1,
        )  # fmt: skip
        both = flying(SECOND) + flying(last_stage - 1)
        inner = ChipContents(layers=between + between, kept_layers=between * both, in_flight=both, **NO_ENDS)
        return (outer, inner) if most(layout.pp) > ENDS else (outer,)
    if schedule == "zb-v":  # the first chunk and the last are on one chip
        outer = _one_way(folded_layers(first, last, full), flying(FIRST), 1, 1, 1)
        return outer, _one_way(full * is_parted, flying(SECOND) * is_parted, 0, 0, 0)
    logits = flying(last_stage) if schedule == "gpipe" else 1
    chips = (
        _one_way(first, flying(FIRST), 1, 1 - is_parted, logits),
        _one_way(last, flying(last_stage), 1 - is_parted, 1, logits),
        _one_way(between, flying(SECOND), 0, 0, 0),
    )
    return chips if most(layout.pp) > ENDS else chips[: int(most(layout.pp))]


def _one_way(layers: Any, flying: Any, has_first: Any, has_last: Any, logits: Any) -> ChipContents:
    return ChipContents(layers=layers, kept_layers=layers * flying, in_flight=flying, has_first=has_first, has_last=has_last, logits=logits)


def head_place(schedule: str, part: Stage, layout: TrainingLayout) -> tuple[Any, Any]:
    """Layers that the chip with the head has fewer than the fullest, and the share of micro-batches whose head it computes."""
    first, last = (of(part.layers, layout.pp, part.layers_per_stage) for of in (spared_first_layers, spared_layers))
    if schedule == "zb-v":
        return first + last, 1
    if schedule == "dualpipe":
        twice = copies(schedule, layout.pp)
        return (first + last) / twice, 1 / twice
    return last, 1


def dense_params(part: Stage, chip: ChipContents) -> Any:
    """Parameters of a chip that are no routed experts, with those of embedding and head."""
    return part.dense * (chip.layers / part.layers) + ends(part, chip)


def expert_params(part: Stage, chip: ChipContents) -> Any:
    """Routed-expert parameters of a chip."""
    return part.experts * (chip.layers / part.layers)


def ends(part: Stage, chip: ChipContents) -> Any:
    """Parameters of embedding and head on a chip."""
    return end_params(part.embedding, part.head, chip.has_first, chip.has_last)


def most_params(part: Stage, chips: tuple[ChipContents, ...]) -> tuple[Any, Any]:
    """Parameters of the chips that have most of them: dense with embedding and head, and routed experts."""
    dense, experts = (functools.reduce(np.maximum, [of(part, chip) for chip in chips]) for of in (dense_params, expert_params))
    return dense, experts
