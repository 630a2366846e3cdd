"""Pipeline stages in training: parameters of one chip, and the idle time and micro-batches in flight of each schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.laws.step.layer_terms import head_share, mixer_params_chip, split_params
from headway.laws.training.activations import (
    dualpipe_in_flight,
    gpipe_in_flight,
    interleaved_in_flight,
    one_forward_one_backward_in_flight,
    second_interleaved_in_flight,
    zero_bubble_h2_in_flight,
)
from headway.laws.training.state import expert_ways, stage_layers
from headway.laws.training.step import dualpipe_bubble, interleaved_bubble, one_forward_one_backward_bubble, zero_bubble_h1, zero_bubble_h2
from headway.models.model import UNITY
from headway.training.recipe import TrainingLayout
from headway.training.work import TrainingLayer, TrainingWork, over_layers


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
    data_degree: Any  # chips that replicate the dense parameters
    expert_data_degree: Any  # chips that replicate the experts


def stage(work: TrainingWork, layout: TrainingLayout) -> Stage:
    """Layers and parameters of a chip in the fullest stage."""
    layers = over_layers(work, lambda _: UNITY)
    layers_per_stage = stage_layers(layers, layout.pp, layout.vpp)
    split = expert_ways(layout.ep, layout.tp)

    def routed_params(kind: TrainingLayer) -> Any:
        return kind.work.expert_params * kind.work.experts / split

    last = work.layers[-1]
    return Stage(
        layers=layers, layers_per_stage=layers_per_stage, share=layers_per_stage / layers,
        dense=over_layers(work, lambda kind: dense_params(kind, layout.tp)), experts=over_layers(work, routed_params),
        largest=dense_params(last, layout.tp) + routed_params(last),
        embedding=work.embedding / layout.tp, head=work.head / layout.tp,
        data_degree=layout.dp * layout.cp,
        expert_data_degree=layout.tp * layout.cp * layout.dp / split,
    )  # fmt: skip


def dense_params(kind: TrainingLayer, tp: Any) -> Any:
    """Parameters of one layer on a tensor-parallel chip, routed experts apart."""
    return common_params(kind, tp) + kind.work.other_params


def common_params(kind: TrainingLayer, tp: Any) -> Any:
    """Parameters of one layer on a chip that multiply every token."""
    b = kind.work
    mixer = mixer_params_chip(b.mixer_params, b.mixer_whole_params, b.mixer_kv_params, head_share(b.kv_heads, tp), tp)
    return mixer + split_params(b.dense_ffn_params, tp)


def chosen_params(kind: TrainingLayer, tp: Any, imbalance: Any) -> Any:
    """Routed-expert parameters of one layer on a chip that multiply a token; tensor-parallel chips share the routed tokens."""
    b = kind.work
    return split_params(b.expert_params * b.experts_per_token * imbalance, tp)


ONE_COPY = known(1, "copies of the weights", "", "constant", "by definition")
TWO_COPIES = known(2, "copies of the weights", "", "constant", "deepseek-ai/DualPipe README: each chip holds a stage of either direction")


def in_flight(schedule: str, layout: TrainingLayout, count: Any) -> Any:
    """Micro-batches whose activations the first stage keeps at once, in units of all its layers."""
    if schedule == "gpipe":
        return gpipe_in_flight(count)
    if schedule == "zb-h2":
        return zero_bubble_h2_in_flight(layout.pp, count)
    if schedule == "dualpipe":
        return dualpipe_in_flight(layout.pp, count)
    if schedule == "interleaved":
        return interleaved_in_flight(layout.pp, count, layout.vpp)
    return one_forward_one_backward_in_flight(layout.pp, count)


def second_in_flight(schedule: str, layout: TrainingLayout, count: Any) -> Any:
    """The same of the second stage: fewer under 1F1B; GPipe, zero bubble and DualPipe fill all stages alike."""
    if schedule == "interleaved":
        return second_interleaved_in_flight(layout.pp, count, layout.vpp)
    if schedule == "1f1b":
        return one_forward_one_backward_in_flight(layout.pp - UNITY, count)
    return in_flight(schedule, layout, count)


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


def copies(schedule: str) -> Any:
    """Copies of a stage's weights on each chip."""
    return TWO_COPIES if schedule == "dualpipe" else ONE_COPY
