"""Subject of an estimate: a case, a layout placed on it, its fullest stage, what lives on each chip that can be the fullest, and idle time.

Memory, the exchange of parameters and the optimiser's update all take a chip's parameters from here. `timeline` plays the schedules that
these counts belong to.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.core.schema import defaults
from headway.hardware.system import System
from headway.laws.step.layer_terms import even_share, head_share, mixer_params_chip, split_params
from headway.laws.training.memory import (
    dualpipe_copies,
    dualpipe_in_flight,
    end_params,
    expert_ways,
    folded_layers,
    gpipe_in_flight,
    interleaved_in_flight,
    middle_layers,
    one_forward_one_backward_in_flight,
    parted,
    spared_first_layers,
    stage_layers,
    zero_bubble_h1_in_flight,
    zero_bubble_h2_in_flight,
)
from headway.laws.training.step import (
    dualpipe_bubble,
    interleaved_bubble,
    micro_batches,
    one_forward_one_backward_bubble,
    spared_layers,
    zero_bubble_h1,
    zero_bubble_h2,
)
from headway.performance.assumptions import Assumptions
from headway.performance.collectives import FAR, Fabric, LinkCosts, fabric, link_costs, most
from headway.performance.formats import has_peak, peak
from headway.training.recipe import ARITHMETIC, Optimizer, Recipe, TrainingLayout, TrainingReach
from headway.training.work import TrainingLayer, TrainingWork, over_layers


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMachine:
    """Peak rates of a chip and its links, in the formats of a recipe."""

    peak: Any  # FLOP/s of the layers' matmuls
    wide_peak: Any  # FLOP/s of attention and the head
    hbm_bw: Any
    fabric: Fabric
    costs: LinkCosts


AS_EXPECTED = known(1, "step factor", "", "constant", "without runs of one's own")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCase:
    """Subject of an estimate: the model's work, the machine, the recipe and the tokens of a step."""

    work: TrainingWork
    system: System
    machine: TrainingMachine
    recipe: Recipe
    optimizer: Optimizer
    efficiency: TrainingReach
    batch: Any  # tokens of one step
    step_factor: Any = AS_EXPECTED  # by the user's own runs


def machine(system: System, dtype: str) -> TrainingMachine:
    """Peaks, bandwidth and links of a system, as the training laws take them."""
    chip = system.chip
    if not has_peak(chip):
        chip.need("peak_bf16")
    alone = Fabric(kind="switch", domain=system.scale_up_domain, up=FAR, exchange=FAR, out=FAR)  # one chip needs no links
    return TrainingMachine(
        peak=peak(chip, ARITHMETIC.get(dtype, dtype))[1], wide_peak=peak(chip, "bf16")[1], hbm_bw=chip.need("hbm_bw"),
        fabric=alone if int(system.chips) == 1 else fabric(system), costs=link_costs(system, defaults(Assumptions)),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Parameters and layers of a chip in the fullest stage, before embedding and head."""

    layers: Any  # layers of the whole model
    layers_per_stage: Any  # layers of this stage
    share: Any  # layers of this stage over layers of the model
    dense: Any  # parameters of all layers on a chip after tensor parallelism, routed experts apart
    experts: Any  # routed-expert parameters of all layers on a chip
    largest: Any  # parameters of one layer of the last kind on a chip, routed experts included
    embedding: Any
    head: Any
    data_degree: Any  # chips that have the same dense parameters, in DualPipe of both directions
    expert_data_degree: Any  # chips that have the same experts


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipContents:
    """Layers of a chip, of both its stages in DualPipe, and the ends of the model that it has."""

    layers: Any
    kept_layers: Any  # each layer counted for every micro-batch whose activations it keeps
    in_flight: Any  # micro-batches
    has_first: Any  # 1 with the embedding, else 0
    has_last: Any  # 1 with the head, else 0
    logits: Any  # micro-batches whose logits are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A layout of a case, as memory and step time take it."""

    case: TrainingCase
    layout: TrainingLayout
    stage: Stage  # the fullest
    chips: tuple[ChipContents, ...]  # of which one is the fullest
    tokens: Any  # of a micro-batch on a chip
    count: Any  # micro-batches of a step


def placement(case: TrainingCase, layout: TrainingLayout, count: Any = None) -> Placement:
    """A layout placed on a case, with as many micro-batches as its batch gives unless `count` says otherwise."""
    sequence, schedule = case.work.sequence, case.recipe.schedule
    count = micro_batches(case.batch, sequence, layout.dp, layout.micro_batch) if count is None else count
    fullest = stage(case.work, layout, schedule)
    return Placement(
        case=case, layout=layout, stage=fullest, chips=chip_contents(schedule, fullest, layout, count),
        tokens=layout.micro_batch * sequence / layout.cp, count=count,
    )  # fmt: skip


def stage(work: TrainingWork, layout: TrainingLayout, schedule: str) -> Stage:
    """Layers and parameters of a chip in the fullest stage."""
    layers = over_layers(work, lambda _: 1)
    layers_per_stage = stage_layers(layers, layout.pp, layout.vpp)
    split, twice = expert_ways(layout.ep, layout.tp), copies(schedule, layout.pp)

    def dense(kind: TrainingLayer) -> Any:
        return common_params(kind, layout.tp) + kind.work.other_params

    def routed(kind: TrainingLayer) -> Any:
        return kind.work.expert_params * kind.work.experts / split

    last = work.layers[-1]
    return Stage(
        layers=layers, layers_per_stage=layers_per_stage, share=layers_per_stage / layers,
        dense=over_layers(work, dense), experts=over_layers(work, routed), largest=dense(last) + routed(last),
        embedding=work.embedding / layout.tp, head=work.head / layout.tp,
        data_degree=layout.dp * layout.cp * twice,
        expert_data_degree=layout.tp * layout.cp * layout.dp * twice / split,
    )  # fmt: skip


def common_params(kind: TrainingLayer, tp: Any) -> Any:
    """Parameters of one layer on a chip that multiply every token."""
    b = kind.work
    kv_share = head_share(b.kv_heads, tp)
    mixer = mixer_params_chip(b.mixer_params, b.mixer_whole_params, 0, b.mixer_kv_params, even_share(tp), 1, 1, kv_share)
    return mixer + split_params(b.dense_ffn_params, tp)


def chosen_params(kind: TrainingLayer, tp: Any, imbalance: Any) -> Any:
    """Routed-expert parameters of one layer on a chip that multiply a token; tensor-parallel chips share the routed tokens."""
    b = kind.work
    return split_params(b.expert_params * b.experts_per_token * imbalance, tp)


def idle(schedule: str, layout: TrainingLayout, count: Any, forward: Any, input_grad: Any, weight_grad: Any) -> Any:
    """Pipeline bubble: idle time over the ideal time of all micro-batches."""
    if schedule == "zb-h1":
        return zero_bubble_h1(layout.pp, count, forward, input_grad, weight_grad)
    if schedule in ("zb-h2", "zb-v"):
        return zero_bubble_h2(layout.pp, count, forward, input_grad, weight_grad)
    if schedule == "dualpipe":
        both = forward + input_grad + weight_grad
        return dualpipe_bubble(layout.pp, count, forward, input_grad, weight_grad, both)
    if schedule == "interleaved":
        return interleaved_bubble(layout.pp, count, layout.vpp)
    return one_forward_one_backward_bubble(layout.pp, count)


def copies(schedule: str, pp: Any) -> Any:
    """Chips of a pipeline that have the same stage: two in DualPipe, one for each direction."""
    return dualpipe_copies(pp) if schedule == "dualpipe" else 1


# -- what lives on a chip ------------------------------------------------------------------------------------------------------


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

    def chip(layers: Any, count: Any, has_first: Any = 0, has_last: Any = 0, logits: Any = 0) -> ChipContents:
        return ChipContents(
            layers=layers, kept_layers=layers * count, in_flight=count, has_first=has_first, has_last=has_last, logits=logits
        )

    if schedule == "dualpipe":  # a chip's stages of the two directions are as far from the two ends
        outer = ChipContents(
            layers=first + last * is_parted, kept_layers=first * flying(0) + last * flying(last_stage) * is_parted,
            in_flight=flying(0) + flying(last_stage) * is_parted, has_first=1, has_last=1, logits=1,
        )  # fmt: skip
        both = flying(1) + flying(last_stage - 1)
        inner = replace(chip(between, both), layers=between + between)
        return (outer, inner) if most(layout.pp) > 2 else (outer,)
    if schedule == "zb-v":  # the first chunk and the last are on one chip
        outer = chip(folded_layers(first, last, full), flying(0), 1, 1, 1)
        return outer, chip(full * is_parted, flying(1) * is_parted)
    logits = flying(last_stage) if schedule == "gpipe" else 1
    chips = (
        chip(first, flying(0), 1, 1 - is_parted, logits),
        chip(last, flying(last_stage), 1 - is_parted, 1, logits),
        chip(between, flying(1)),
    )
    return chips if most(layout.pp) > 2 else chips[: int(most(layout.pp))]


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
