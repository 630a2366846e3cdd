"""How long one optimiser step of a layout takes, part by part, with its floor. Scalar or array alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headway.fabric import Fabric, LinkCosts
from headway.laws.shard import head_share
from headway.laws.sums import sum_over_blocks, times, total
from headway.laws.training_flop import training_passes
from headway.laws.training_network import reduction_cover_s
from headway.laws.training_state import per_chip_params, sharded_from, stage_state_params
from headway.laws.training_step import (
    activation_traffic_s,
    exposed_s,
    forward_s,
    input_grad_s,
    launches_of_layers_s,
    matmuls_s,
    micro_pairs,
    optimiser_step_s,
    pipeline_s,
    score_passes,
    scores_s,
    stage_pass_s,
    traffic_passes,
    update_bytes,
    update_s,
)
from headway.model import NONE, ONE
from headway.quantity import known
from headway.training.exchange import NO_TIME, Exchanges, exchanges
from headway.training.memory import STAGE_1, kept_per_token
from headway.training.reach import TrainingReach
from headway.training.recipe import Optimizer, Recipe, TrainingLayout
from headway.training.schedules import idle
from headway.training.stage import Stage, active_params
from headway.training.work import TrainingWork

NO_TRAFFIC = known(0.0, "no traffic", "s", "constant", "the floor: everything between matmuls fused into them")
TWO_FLOP = known(2.0, "FLOP per parameter", "flop/token", "constant", "a multiply and an add")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a chip and its links can do, in the formats of a recipe."""

    peak: Any  # of the layers' matmuls
    wide_peak: Any  # of attention and the head
    hbm_bw: Any
    fabric: Fabric
    costs: LinkCosts


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of one optimiser step, and of its parts over all micro-batches of the slowest stage."""

    step: Any
    floor: Any
    compute: Any
    attention: Any
    traffic: Any
    head: Any
    tp: Any
    cp: Any
    ep: Any
    bubble: Any
    parameters: Any
    update: Any
    launch: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One micro-batch through one stage, forward and backward, by part."""

    matmuls: Any
    scores: Any
    traffic: Any
    launch: Any
    tp: Any
    cp: Any
    ep: Any
    head: Any
    forward: Any
    weight_grad: Any


def step_time(
    work: TrainingWork, part: Stage, layout: TrainingLayout, recipe: Recipe, optimizer: Optimizer, machine: Machine, reach: TrainingReach,
    tokens: Any, count: Any,
) -> StepTime:  # fmt: skip
    """Time of a step, expected; the floor beside it."""
    sent = exchanges(work, part, layout, recipe, machine.fabric, machine.costs, tokens, count)
    one = _pass(work, part, layout, recipe, machine, reach, tokens, sent)
    stage = stage_pass_s(one.matmuls, one.scores, total((one.traffic, one.launch)), total((one.tp, one.cp, one.ep)))
    share = idle(recipe.schedule, layout, count, one.forward, input_grad_s(stage, one.forward, one.weight_grad), one.weight_grad)
    pipeline = total((pipeline_s(total((stage, one.head)), stage, count, share), sent.hops))
    parameters = exposed_s(reduction_cover_s(layout.zero, count, stage), sent.parameters, reach.hidden_dp)
    update = _update(part, layout, recipe, optimizer, machine, reach)
    return StepTime(
        step=optimiser_step_s(pipeline, parameters, update), floor=_floor(work, part, layout, recipe, machine, tokens, count),
        compute=times(one.matmuls, count), attention=times(one.scores, count), traffic=times(one.traffic, count),
        head=times(one.head, count), tp=times(one.tp, count), cp=times(one.cp, count), ep=times(one.ep, count),
        bubble=total((times(times(stage, share), count), sent.hops)), parameters=parameters, update=update,
        launch=times(one.launch, count),
    )  # fmt: skip


def _pass(
    work: TrainingWork, part: Stage, layout: TrainingLayout, recipe: Recipe, machine: Machine, reach: TrainingReach, tokens: Any,
    sent: Exchanges,
) -> Pass:  # fmt: skip
    again, passes = _again(recipe), training_passes(recipe.trainable)
    forward = matmuls_s(_active(work, part, layout, recipe), tokens, TWO_FLOP, machine.peak, reach.compute)
    matmuls = times(forward, total((passes, again)))
    head = times(matmuls_s(per_chip_params(work.logits, layout.tp), tokens, TWO_FLOP, machine.wide_peak, reach.wide_compute), passes)
    score = _scores(work, part, layout, machine.wide_peak, reach.attention, tokens)
    scores = times(score, score_passes(recipe.fused_attention, _scores_again(recipe)))
    kept = kept_per_token(work, part, layout, replace(recipe, recompute="none")).layer
    traffic = activation_traffic_s(kept, tokens, part.held, reach.traffic, machine.hbm_bw)
    return Pass(
        matmuls=matmuls, scores=scores, head=head,
        traffic=times(traffic, traffic_passes(again)), launch=launches_of_layers_s(part.held, reach.launch),
        tp=exposed_s(matmuls, sent.tp, reach.hidden_tp), cp=exposed_s(scores, sent.cp, reach.hidden_cp),
        ep=exposed_s(matmuls, sent.ep, reach.hidden_ep),
        forward=forward_s(forward, score, traffic), weight_grad=times(forward, recipe.trainable),
    )  # fmt: skip


def _again(recipe: Recipe) -> Any:
    """Forward passes of the layers made again."""
    return ONE if recipe.recompute == "full" else NONE


def _scores_again(recipe: Recipe) -> Any:
    """Forward passes of attention made again: fused attention does so by itself unless the whole layer is run again."""
    return ONE if recipe.recompute == "full" or (recipe.recompute == "selective" and not recipe.fused_attention) else NONE


def _active(work: TrainingWork, part: Stage, layout: TrainingLayout, recipe: Recipe) -> Any:
    """Parameters that a token is multiplied with on a chip of the fullest stage."""
    counts = tuple(kind.block.count for kind in work.layers)
    each = tuple(active_params(kind, layout.tp, recipe.imbalance) for kind in work.layers)
    return times(sum_over_blocks(counts, each), part.share)


def _scores(work: TrainingWork, part: Stage, layout: TrainingLayout, peak: Any, reached: Any, tokens: Any) -> Any:
    """A forward pass through the scores of a stage's layers, windows and recurrences included."""
    found = []
    for kind in work.layers:
        b = kind.block
        share = times(times(part.share, b.count), head_share(b.heads, layout.tp))
        for span in b.spans:
            pairs = micro_pairs(tokens, work.sequence, span.cap_tokens)
            found.append(times(scores_s(span.prefill_score_flop, pairs, peak, reached), share))
        found.append(times(scores_s(b.recurrence_flop_per_token, tokens, peak, reached), share))
    return total(tuple(found))


def _update(part: Stage, layout: TrainingLayout, recipe: Recipe, optimizer: Optimizer, machine: Machine, reach: TrainingReach) -> Any:
    each = update_bytes(optimizer.weight, optimizer.gradient, optimizer.states)
    held = stage_state_params(
        per_chip_params(total((times(part.dense, part.share), part.head)), sharded_from(layout.zero, STAGE_1, part.ways)),
        per_chip_params(times(part.experts, part.share), sharded_from(layout.zero, STAGE_1, part.expert_ways)),
    )
    return update_s(times(held, recipe.trainable), each, machine.hbm_bw, reach.memory)


def _floor(work: TrainingWork, part: Stage, layout: TrainingLayout, recipe: Recipe, machine: Machine, tokens: Any, count: Any) -> Any:
    """The same step with every peak reached, everything hidden and nothing between matmuls."""
    forward = matmuls_s(_active(work, part, layout, recipe), tokens, TWO_FLOP, machine.peak, ONE)
    score = _scores(work, part, layout, machine.wide_peak, ONE, tokens)
    head = matmuls_s(per_chip_params(work.logits, layout.tp), tokens, TWO_FLOP, machine.wide_peak, ONE)
    passes = training_passes(recipe.trainable)
    matmuls = times(forward, total((passes, _again(recipe))))
    scores = times(score, score_passes(recipe.fused_attention, _scores_again(recipe)))
    stage = stage_pass_s(matmuls, scores, NO_TRAFFIC, NO_TIME)
    weight_grad = times(forward, recipe.trainable)
    first = forward_s(forward, score, NO_TRAFFIC)
    share = idle(recipe.schedule, layout, count, first, input_grad_s(stage, first, weight_grad), weight_grad)
    return pipeline_s(total((stage, times(head, passes))), stage, count, share)
