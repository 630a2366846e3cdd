"""What one chip of a pipeline stage holds of a model: layers, parameters, and the ways that share them. Scalar or array alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.laws.compile_terms import mixer_params_chip, split_params
from headway.laws.params import routed_params
from headway.laws.shard import head_share
from headway.laws.sums import divided, sum_over_blocks, times, total
from headway.laws.topology import stage_chips
from headway.laws.training_state import expert_data_ways, expert_ways, stage_layers
from headway.model import UNITY
from headway.training.recipe import TrainingLayout
from headway.training.work import TrainingLayer, TrainingWork


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The fullest stage's chip, before embedding and head."""

    layers: Any  # of the whole model,
    layers_per_stage: Any  # and of this stage
    share: Any  # one over the other
    dense: Any  # parameters of all layers on a chip of this tensor-parallel way, experts apart
    experts: Any  # and routed ones
    largest: Any  # of one layer
    embedding: Any
    head: Any
    data_degree: Any  # chips that hold the same dense parameters,
    expert_data_degree: Any  # and the same experts


def stage(work: TrainingWork, layout: TrainingLayout) -> Stage:
    """What a chip of the fullest stage holds."""
    counts = tuple(kind.block.count for kind in work.layers)
    layers = sum_over_blocks(counts, tuple(UNITY for _ in counts))
    layers_per_stage = stage_layers(layers, layout.pp, layout.vpp)
    split = expert_ways(layout.ep, layout.tp)
    dense = tuple(dense_params(kind, layout.tp) for kind in work.layers)
    routed = tuple(divided(routed_params(kind.block.expert_params, kind.block.experts), split) for kind in work.layers)
    return Stage(
        layers=layers, layers_per_stage=layers_per_stage, share=divided(layers_per_stage, layers),
        dense=sum_over_blocks(counts, dense), experts=sum_over_blocks(counts, routed),
        largest=total((dense[-1], routed[-1])),
        embedding=divided(work.embedding, layout.tp), head=divided(work.head, layout.tp),
        data_degree=times(layout.dp, layout.cp),
        expert_data_degree=expert_data_ways(stage_chips(layout.tp, layout.cp, layout.dp), split),
    )  # fmt: skip


def dense_params(kind: TrainingLayer, tp: Any) -> Any:
    """Parameters of one layer on a tensor-parallel chip, routed experts apart."""
    b = kind.block
    mixer = mixer_params_chip(b.mixer_params, b.mixer_whole_params, b.mixer_kv_params, head_share(b.kv_heads, tp), tp)
    return total((mixer, split_params(b.dense_ffn_params, tp), b.other_params))


def common_params(kind: TrainingLayer, tp: Any) -> Any:
    """Parameters of one layer that every token is multiplied with on a chip."""
    b = kind.block
    mixer = mixer_params_chip(b.mixer_params, b.mixer_whole_params, b.mixer_kv_params, head_share(b.kv_heads, tp), tp)
    return total((mixer, split_params(b.dense_ffn_params, tp)))


def chosen_params(kind: TrainingLayer, tp: Any, imbalance: Any) -> Any:
    """Those of its experts; routed tokens are spread over the tensor-parallel group."""
    b = kind.block
    return split_params(times(times(b.expert_params, b.experts_per_token), imbalance), tp)
