"""Time of one optimiser step of a layout, part by part, with its floor. Scalars and arrays broadcast."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from headway.core.quantity import known
from headway.laws.step.layer_terms import head_share
from headway.laws.step.parts import smooth_max_s
from headway.laws.training.communication import exchanging_stage, reduction_cover_s
from headway.laws.training.memory import dropped_share, sharded_from
from headway.laws.training.run import training_passes
from headway.laws.training.step import (
    exposed_s,
    forward_s,
    input_grad_s,
    micro_pairs,
    pace_s,
    routing_wait_s,
    score_passes,
    traffic_passes,
    update_bytes,
    weight_traffic_bytes,
)
from headway.performance.collectives import Fabric, LinkCosts
from headway.training.achieved import SHARES
from headway.training.chip_contents import chip_contents, head_place, most_params
from headway.training.communication import NO_TIME, Exchanges, exchanges
from headway.training.memory import STAGE_1, kept_per_token, logit_bytes
from headway.training.pipeline import Stage, chosen_params, common_params, idle
from headway.training.recipe import FORWARD_AGAIN, Optimizer, Recipe, TrainingLayout, TrainingReach
from headway.training.work import TrainingWork, is_captured, over_layers, recomputed_matmuls, scores_again

TWO_FLOP = known(2.0, "FLOP per parameter", "flop/token", "constant", "a multiply and an add")
WRITTEN_AND_READ = known(2.0, "passes over what is kept of a logit", "1/token", "constant", "it is written and read")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMachine:
    """Peak rates of a chip and its links, in the formats of a recipe."""

    peak: Any  # FLOP/s of the layers' matmuls
    wide_peak: Any  # FLOP/s of attention and the head
    hbm_bw: Any
    fabric: Fabric
    costs: LinkCosts


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of one optimiser step, and of its parts summed over all micro-batches of the slowest stage."""

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
class StepWork:
    """Work of a step in seconds at peak rates: one forward pass of the fullest stage over one micro-batch, exchanges, update."""

    matmuls: Any  # routed experts apart
    experts: Any
    scores: Any
    recurrences: Any  # states of fixed size: SSM, linear attention
    traffic: Any  # one pass over the activations kept for the backward pass
    unfused: Any  # kernels of experts that are not fused, all passes
    head: Any
    logits: Any  # logits and their gradients through HBM
    update: Any
    exchanges: Exchanges
    weights: Any  # weights and gradients of the layers through HBM in one pass, routed experts apart
    expert_weights: Any
    routed_layers: Any  # layers with routed experts in the fullest stage
    captured: Any  # 1 where a step is one graph
    layers_per_stage: Any  # layers of the fullest stage
    spared: Any  # layers that the chip with the head has fewer than the fullest, per micro-batch
    head_share: Any  # share of the micro-batches whose head the chip computes
    count: Any  # micro-batches
    passes: Any  # cost of forward and backward matmuls, in forward passes
    again: Any  # cost of recomputed matmuls, in forward passes
    score_passes: Any  # cost of attention, in forward passes
    recomputed_share: Any  # share of the activations that is recomputed
    trainable: Any


HARD = known(float("inf"), "perfect overlap", "", "constant", "definition of the floor")
IDEAL = TrainingReach(
    **dict.fromkeys((*SHARES, "eff_memory", "hidden_tp", "hidden_dp", "hidden_cp", "hidden_ep"), 1),
    traffic=0, launch=NO_TIME, sync=NO_TIME, matmul_norm=HARD,
)  # fmt: skip
SILENT = Exchanges(tp=NO_TIME, cp=NO_TIME, ep=NO_TIME, hops=NO_TIME, parameters=NO_TIME)


def at_mfu(time: StepTime, expected_mfu: Any, mfu: Any) -> StepTime:
    """The step and its parts if the run reached another MFU than the laws expect; its floor stays."""
    parts = {field.name: getattr(time, field.name) * expected_mfu / mfu for field in fields(time) if field.name != "floor"}
    return replace(time, **parts)


def step_time(layout: TrainingLayout, schedule: str, work: StepWork, efficiency: TrainingReach) -> StepTime:
    """Time of a step at achieved rates, by part; its floor reaches every peak and hides all communication."""
    ideal = replace(work, exchanges=SILENT, unfused=NO_TIME, logits=NO_TIME)
    return replace(_step_time(layout, schedule, work, efficiency), floor=_step_time(layout, schedule, ideal, IDEAL).step)


def _step_time(layout: TrainingLayout, schedule: str, work: StepWork, efficiency: TrainingReach) -> StepTime:
    dense = _matmul_pass(work.matmuls, work.weights, efficiency.eff_compute, efficiency)
    forward = dense + _matmul_pass(work.experts, work.expert_weights, efficiency.eff_expert, efficiency)
    score = work.scores / efficiency.eff_attention + work.recurrences / efficiency.eff_recurrence
    matmuls, scores = forward * (work.passes + work.again), score * work.score_passes
    once = work.traffic * efficiency.traffic
    traffic = once * traffic_passes(work.recomputed_share) + work.unfused / efficiency.eff_memory
    launch = work.layers_per_stage * efficiency.launch + routing_wait_s(work.routed_layers, efficiency.sync, work.captured)  # fmt: skip
    head = work.head / efficiency.eff_head * work.passes + work.logits / efficiency.eff_memory
    tp, cp = exposed_s(matmuls, work.exchanges.tp, efficiency.hidden_tp), exposed_s(scores, work.exchanges.cp, efficiency.hidden_cp)
    beside = matmuls + scores + traffic if schedule == "dualpipe" else matmuls  # work of another micro-batch
    ep = exposed_s(beside, work.exchanges.ep, efficiency.hidden_ep)
    stage = matmuls + scores + (traffic + launch) + (tp + cp + ep)
    first, weight_grad = forward_s(forward, score, once), forward * work.trainable
    share = idle(schedule, layout, work.count, first, input_grad_s(stage, first, weight_grad), weight_grad)
    pace = pace_s(stage, head * work.head_share, work.layers_per_stage, work.spared)
    pipeline = work.count * (pace + share * stage) + work.exchanges.hops
    cover = reduction_cover_s(exchanging_stage(layout.zero, layout.pp), work.count, stage)
    parameters = exposed_s(cover, work.exchanges.parameters, efficiency.hidden_dp)
    update = work.update / efficiency.eff_memory
    step = pipeline + parameters + update

    def all_of(seconds: Any) -> Any:
        return seconds * work.count

    return StepTime(
        step=step, floor=step, compute=all_of(matmuls), attention=all_of(scores), traffic=all_of(traffic),
        head=all_of(pace - stage),
        tp=all_of(tp), cp=all_of(cp), ep=all_of(ep), bubble=all_of(stage * share) + work.exchanges.hops,
        parameters=parameters, update=update, launch=all_of(launch),
    )  # fmt: skip


def _matmul_pass(matmuls: Any, weights: Any, share: Any, efficiency: TrainingReach) -> Any:
    """Time of one pass over a stage's matmuls: arithmetic and the traffic of weights and gradients, as kernels overlap them."""
    return smooth_max_s(matmuls / share, weights / efficiency.eff_memory, efficiency.matmul_norm)


def step_work(
    work: TrainingWork,
    part: Stage,
    layout: TrainingLayout,
    recipe: Recipe,
    optimizer: Optimizer,
    machine: TrainingMachine,
    tokens: Any,
    count: Any,
) -> StepWork:
    """Work of one step of a layout, in seconds at peak rates."""
    layer_bytes = kept_per_token(work, part, layout, replace(recipe, recompute="none")).layer
    dense, routed = _active(work, part, layout, recipe)
    passes, traffic_bytes = training_passes(recipe.trainable), weight_traffic_bytes(optimizer.weight, optimizer.gradient, recipe.trainable)
    chips = chip_contents(recipe.schedule, part, layout, count)
    spared, head_share = head_place(recipe.schedule, part, layout)
    weights, expert_weights = (params * part.share * traffic_bytes / (passes * machine.hbm_bw)
                               for params in (part.dense, part.experts))  # fmt: skip
    return StepWork(
        matmuls=dense * tokens * TWO_FLOP / machine.peak, experts=routed * tokens * TWO_FLOP / machine.peak,
        scores=_scores(work, part, layout, machine.wide_peak, tokens),
        recurrences=_recurrences(work, part, layout, machine.wide_peak, tokens),
        weights=weights, expert_weights=expert_weights,
        routed_layers=over_layers(work, lambda kind: 1 if kind.work.experts > 0 else 0) * part.share,
        captured=is_captured(recipe),
        traffic=layer_bytes * tokens * part.layers_per_stage / machine.hbm_bw,
        unfused=over_layers(work, lambda kind: kind.unfused) * part.share / layout.tp * tokens / machine.hbm_bw,
        head=work.logits / layout.tp * tokens * TWO_FLOP / machine.wide_peak,
        logits=work.vocab / layout.tp * tokens * WRITTEN_AND_READ * logit_bytes(recipe) / machine.hbm_bw,
        update=_update(part, most_params(part, chips), layout, recipe, optimizer, machine.hbm_bw),
        exchanges=exchanges(work, part, chips, layout, recipe, machine.fabric, machine.costs, tokens, count),
        layers_per_stage=part.layers_per_stage, spared=spared, head_share=head_share, count=count,
        passes=passes, again=_again(work, part, layout, recipe, dense + routed),
        score_passes=score_passes(recipe.fused_attention, scores_again(recipe)), trainable=recipe.trainable,
        recomputed_share=_recomputed_share(work, part, layout, recipe, layer_bytes),
    )  # fmt: skip


def _again(work: TrainingWork, part: Stage, layout: TrainingLayout, recipe: Recipe, active: Any) -> Any:
    """Recomputed matmuls in forward passes of a layer: one (full), every second or the latent up-projections (selective), or none."""
    share = recomputed_matmuls(recipe)
    if share is not None:
        return share
    return over_layers(work, lambda kind: kind.recomputed_params) * part.share / layout.tp / active


def _recomputed_share(work: TrainingWork, part: Stage, layout: TrainingLayout, recipe: Recipe, layer_bytes: Any) -> Any:
    """Share of the activation bytes of a layer's forward pass that is recomputed."""
    if recipe.recompute == "selective":
        return dropped_share(kept_per_token(work, part, layout, recipe).layer, layer_bytes)
    return 1 if recipe.recompute in FORWARD_AGAIN else 0


def _active(work: TrainingWork, part: Stage, layout: TrainingLayout, recipe: Recipe) -> tuple[Any, Any]:
    """Parameters that multiply a token on a chip of the fullest stage: dense parameters, and those of its routed experts."""
    dense = over_layers(work, lambda kind: common_params(kind, layout.tp)) * part.share
    return dense, over_layers(work, lambda kind: chosen_params(kind, layout.tp, recipe.imbalance)) * part.share


def _scores(work: TrainingWork, part: Stage, layout: TrainingLayout, peak: Any, tokens: Any) -> Any:
    """Seconds at peak of attention scores in one forward pass of a stage's layers."""
    seconds = []
    for kind in work.layers:
        b = kind.work
        share = part.share * b.count * head_share(b.heads, layout.tp)
        for span in b.spans:
            pairs = micro_pairs(tokens, work.sequence, span.cap_tokens)
            seconds.append(span.prefill_score_flop * pairs / peak * share)
    return sum(seconds) if seconds else NO_TIME


def _recurrences(work: TrainingWork, part: Stage, layout: TrainingLayout, peak: Any, tokens: Any) -> Any:
    """Seconds at peak of recurrences and convolutions in one forward pass of a stage's layers."""
    seconds = []
    for kind in work.layers:
        b = kind.work
        share = part.share * b.count * head_share(b.heads, layout.tp)
        seconds.append(tokens * b.recurrence_flop_per_token / peak * share)
    return sum(seconds)


def _update(part: Stage, most: tuple[Any, Any], layout: TrainingLayout, recipe: Recipe, optimizer: Optimizer, bandwidth: Any) -> Any:
    """Seconds at peak bandwidth of the update on the chip with `most` parameters: dense with the ends of the model, and routed experts."""
    bytes_per_param = update_bytes(optimizer.weight, optimizer.gradient, optimizer.states)
    dense = most[0] / sharded_from(layout.zero, STAGE_1, part.data_degree)
    experts = most[1] / sharded_from(layout.zero, STAGE_1, part.expert_data_degree)
    return (dense + experts) * recipe.trainable * bytes_per_param / bandwidth
