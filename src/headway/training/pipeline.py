"""Pipeline stages in training: parameters of one chip, and the idle time of each schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.laws.step.layer_terms import head_share, mixer_params_chip, split_params
from headway.laws.training.memory import dualpipe_copies, expert_ways, stage_layers
from headway.laws.training.step import dualpipe_bubble, interleaved_bubble, one_forward_one_backward_bubble, zero_bubble_h1, zero_bubble_h2
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
    data_degree: Any  # chips that have the same dense parameters, in DualPipe of both directions
    expert_data_degree: Any  # chips that have the same experts


def stage(work: TrainingWork, layout: TrainingLayout, schedule: str) -> Stage:
    """Layers and parameters of a chip in the fullest stage."""
    layers = over_layers(work, lambda _: 1)
    layers_per_stage = stage_layers(layers, layout.pp, layout.vpp)
    split, twice = expert_ways(layout.ep, layout.tp), copies(schedule, layout.pp)

    def routed_params(kind: TrainingLayer) -> Any:
        return kind.work.expert_params * kind.work.experts / split

    last = work.layers[-1]
    return Stage(
        layers=layers, layers_per_stage=layers_per_stage, share=layers_per_stage / layers,
        dense=over_layers(work, lambda kind: dense_params(kind, layout.tp)), experts=over_layers(work, routed_params),
        largest=dense_params(last, layout.tp) + routed_params(last),
        embedding=work.embedding / layout.tp, head=work.head / layout.tp,
        data_degree=layout.dp * layout.cp * twice,
        expert_data_degree=layout.tp * layout.cp * layout.dp * twice / split,
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
