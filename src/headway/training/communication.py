"""Collectives of a training step by kind of parallelism: group of chips, count and bytes, as the network laws take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.laws.collectives.cost import collective_term_s
from headway.laws.collectives.expert_parallel import activation_bytes_per_token, mean_message
from headway.laws.step.layer_terms import head_share
from headway.laws.training.communication import (
    cache_bytes,
    cp_exchanges,
    exchanging_stage,
    expert_exchanges,
    gathered_element,
    gathered_share,
    gathers_per_step,
    reductions_per_step,
    tp_exchanges,
)
from headway.laws.training.memory import expert_ways, stream_bytes
from headway.performance.collectives import Fabric, LinkCosts, RoutedLayer, exchange_term, gather_term, group, hop_term, most
from headway.performance.layout import Layout
from headway.training.chip_contents import ChipContents, most_params
from headway.training.pipeline import Stage
from headway.training.recipe import FORWARD_AGAIN, REVERSIBLE, Recipe, TrainingLayout
from headway.training.work import WIDE, TrainingWork, dispatched, over_layers

NO_TIME = known(0.0, "no exchange", "s", "constant", "one way of this kind of parallelism sends nothing")
BOTH_WAYS = known(2, "directions of the pipeline", "", "constant", "activations forward, their gradients back")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanges:
    """Seconds of one chip's collectives without overlap; tp, cp and ep are for a stage's layers on one micro-batch."""

    tp: Any
    cp: Any
    ep: Any
    hops: Any  # pipeline sends of a whole step
    parameters: Any  # gathers of weights and reductions of gradients of a whole step


def exchanges(
    work: TrainingWork,
    part: Stage,
    chips: tuple[ChipContents, ...],
    layout: TrainingLayout,
    recipe: Recipe,
    fabric: Fabric,
    costs: LinkCosts,
    tokens: Any,
    count: Any,
) -> Exchanges:
    """Time of every collective of a step, by kind."""
    again = 1 if recipe.recompute in FORWARD_AGAIN else known(0, "recomputed", "", "constant", "the layers are not computed again")
    vector = activation_bytes_per_token(work.hidden, WIDE)
    return Exchanges(
        tp=_tensor(work, part, layout, fabric, costs, tokens, vector, again),
        cp=_context(work, part, layout, fabric, costs, tokens, again),
        ep=_experts(work, part, layout, recipe, fabric, costs, tokens, again),
        hops=_hops(layout, fabric, costs, tokens, stream_bytes(vector) if recipe.recompute == REVERSIBLE else vector),
        parameters=_parameters(part, chips, layout, recipe, fabric, costs, tokens, count),
    )


def _tensor(
    work: TrainingWork, part: Stage, layout: TrainingLayout, fabric: Fabric, costs: LinkCosts, tokens: Any, vector: Any, again: Any
) -> Any:
    if most(layout.tp) == 1:
        return NO_TIME
    often = over_layers(work, lambda kind: tp_exchanges(kind.sublayers, again)) * part.share
    return collective_term_s(gather_term(fabric, group(fabric, layout.tp, 1), vector, costs, often), tokens)


def _context(work: TrainingWork, part: Stage, layout: TrainingLayout, fabric: Fabric, costs: LinkCosts, tokens: Any, again: Any) -> Any:
    if most(layout.cp) == 1:
        return NO_TIME
    seconds = []
    for kind in work.layers:
        block = kind.work
        share = head_share(block.kv_heads, layout.tp)
        message = cache_bytes(tuple(store.elements_per_token for store in block.stores), WIDE) * share
        often = block.count * part.share * cp_exchanges(again)
        term = gather_term(fabric, group(fabric, layout.cp, layout.tp), message, costs, often)
        seconds.append(collective_term_s(term, tokens * layout.cp))
    return sum(seconds)


def _experts(
    work: TrainingWork, part: Stage, layout: TrainingLayout, recipe: Recipe, fabric: Fabric, costs: LinkCosts, tokens: Any, again: Any
) -> Any:
    """Time of dispatching tokens to experts and combining results, set by the busiest chip."""
    vector, dispatch = (activation_bytes_per_token(work.hidden, element_bytes) * recipe.imbalance
                    for element_bytes in (WIDE, dispatched(recipe.dtype)))  # fmt: skip
    ranks = expert_ways(layout.ep, layout.tp)
    kinds = tuple(kind for kind in work.layers if kind.work.experts > 0)
    if not kinds or most(ranks) == 1:
        return NO_TIME
    among, seconds = Layout(tp=1, cp=1, pp=1, dp=ranks, ep=layout.ep), []
    for kind in kinds:
        b = kind.work
        routed = RoutedLayer(layers=b.count, experts=b.experts, active=b.experts_per_token, dispatch=dispatch, groups=b.expert_groups,
                        groups_chosen=b.groups_chosen)  # fmt: skip
        often = b.count * part.share * expert_exchanges(again)
        term = exchange_term(fabric, among, routed, mean_message(dispatch, vector) / layout.tp, costs, often)
        seconds.append(collective_term_s(term, tokens))
    return sum(seconds)


def _hops(layout: TrainingLayout, fabric: Fabric, costs: LinkCosts, tokens: Any, vector: Any) -> Any:
    if most(layout.pp) == 1:
        return NO_TIME
    placed = Layout(tp=layout.tp, cp=layout.cp, dp=layout.dp, pp=layout.pp)
    return collective_term_s(hop_term(fabric, placed, vector / layout.tp, costs), tokens) * BOTH_WAYS


def _parameters(
    part: Stage,
    chips: tuple[ChipContents, ...],
    layout: TrainingLayout,
    recipe: Recipe,
    fabric: Fabric,
    costs: LinkCosts,
    tokens: Any,
    count: Any,
) -> Any:
    """Time of gathering weights and reducing gradients, over the chips that replicate them: dense parameters, then experts."""
    if most(part.data_degree) == 1 and most(part.expert_data_degree) == 1:
        return NO_TIME
    stage = exchanging_stage(layout.zero, layout.pp)
    element = gathered_element(stage, recipe.bytes_param_wire, recipe.bytes_gradient_wire)
    gathers = gathers_per_step(stage, count) * gathered_share(layout.zero, recipe.trainable)
    reductions = reductions_per_step(stage, count) * recipe.trainable
    split, seconds = expert_ways(layout.ep, layout.tp), []
    dense, experts = most_params(part, chips)
    for params, data_group in (
        (dense, group(fabric, part.data_degree, layout.tp)),
        (experts, group(fabric, part.expert_data_degree, split)),
    ):
        if most(params) == 0:
            continue
        for wire_bytes, often in ((element, gathers), (recipe.bytes_gradient_wire, reductions)):
            term = gather_term(fabric, data_group, params * wire_bytes / tokens, costs, often)
            seconds.append(collective_term_s(term, tokens))
    return sum(seconds)
