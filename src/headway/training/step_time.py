"""Time of one optimiser step of a layout, part by part, with its collectives and its floor. Scalars and arrays broadcast."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from headway.core.quantity import known
from headway.laws.calibration import by_own_runs
from headway.laws.collectives.cost import collective_term_s
from headway.laws.collectives.expert_parallel import activation_bytes_per_token, mean_message
from headway.laws.step.layer_terms import head_share
from headway.laws.step.parts import smooth_max_s
from headway.laws.training.communication import (
    cache_bytes,
    copied_message,
    cp_exchanges,
    exchanging_stage,
    expert_exchanges,
    gathered_element,
    gathered_share,
    gathers_per_step,
    reduction_cover_s,
    reductions_per_step,
    tp_exchanges,
)
from headway.laws.training.memory import dropped_share, expert_ways, layers_on_chip, sharded_from, stream_bytes
from headway.laws.training.run import training_passes
from headway.laws.training.step import (
    exposed_s,
    forward_s,
    input_grad_s,
    micro_pairs,
    offload_s,
    pace_s,
    routing_wait_s,
    score_passes,
    traffic_passes,
    update_bytes,
    weight_traffic_bytes,
)
from headway.performance.collectives import RoutedLayer, all_to_all_term, exchange_term, gather_term, group, hop_term, most
from headway.performance.layout import Layout
from headway.training.achieved import SHARES
from headway.training.memory import STAGE_1, kept_per_token, logit_bytes, moved_per_token
from headway.training.pipeline import AS_EXPECTED, Placement, chosen_params, common_params, head_place, idle, most_params
from headway.training.recipe import BY_MODULE, FORWARD_AGAIN, REVERSIBLE, TrainingLayout, TrainingReach
from headway.training.work import WIDE, again_params, dispatched, is_captured, is_fused, over_layers, recomputed_matmuls, scores_again

NO_TIME = known(0.0, "no exchange", "s", "constant", "one way of this kind of parallelism sends nothing")
BOTH_WAYS = known(2, "directions of the pipeline", "", "constant", "activations forward, their gradients back")
TWO_FLOP = known(2.0, "FLOP per parameter", "flop/token", "constant", "a multiply and an add")
BESIDE_ALL = known(1, "share of offloading that runs beside work", "", "constant", "copies to the host need no core of the chip")
HALF_AGAIN = known(0.5, "exchanges of a layer made again", "", "constant", "of its two blocks the FFN runs again")
HYBRID_EP = "deepseek-ai/DeepEP, branch hybrid-ep: GB200, 8 to 36 ranks, bf16: 543 to 764 GB/s with a rank's own tokens, of 900"
HYBRID_SHARE = known(0.67, "share of scale-up bandwidth that HybridEP reaches", "", "constant", HYBRID_EP)
WRITTEN_AND_READ = known(2.0, "passes over what is kept of a logit", "1/token", "constant", "it is written and read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanges:
    """Seconds of one chip's collectives without overlap; tp, cp and ep are for a stage's layers on one micro-batch."""

    tp: Any
    cp: Any
    ep: Any
    hops: Any  # pipeline sends of a whole step
    parameters: Any  # gathers of weights and reductions of gradients of a whole step


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
    offload: Any  # activations to the host's memory and back
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


def by_runs(time: StepTime, factor: Any) -> StepTime:
    """The step and its parts by the factor of the user's own runs; its floor stays."""
    if factor is AS_EXPECTED:
        return time
    parts = {field.name: by_own_runs(getattr(time, field.name), factor) for field in fields(time) if field.name != "floor"}
    return replace(time, **parts)


def step_time(layout: TrainingLayout, schedule: str, work: StepWork, efficiency: TrainingReach) -> StepTime:
    """Time of a step at achieved rates, by part; its floor reaches every peak and hides all communication."""
    ideal = replace(work, exchanges=SILENT, unfused=NO_TIME, logits=NO_TIME, offload=NO_TIME)
    return replace(achieved_time(layout, schedule, work, efficiency), floor=achieved_time(layout, schedule, ideal, IDEAL).step)


def achieved_time(layout: TrainingLayout, schedule: str, work: StepWork, efficiency: TrainingReach) -> StepTime:
    """Time of a step at achieved rates, by part, without its floor."""
    dense = _matmul_pass(work.matmuls, work.weights, efficiency.eff_compute, efficiency)
    forward = dense + _matmul_pass(work.experts, work.expert_weights, efficiency.eff_expert, efficiency)
    score = work.scores / efficiency.eff_attention + work.recurrences / efficiency.eff_recurrence
    matmuls, scores = forward * (work.passes + work.again), score * work.score_passes
    once = work.traffic * efficiency.traffic
    traffic = once * traffic_passes(work.recomputed_share) + work.unfused / efficiency.eff_memory
    launch = work.layers_per_stage * efficiency.launch + routing_wait_s(work.routed_layers, efficiency.sync, work.captured)
    head = work.head / efficiency.eff_head * work.passes + work.logits / efficiency.eff_memory
    tp, cp = exposed_s(matmuls, work.exchanges.tp, efficiency.hidden_tp), exposed_s(scores, work.exchanges.cp, efficiency.hidden_cp)
    beside = matmuls + scores + traffic if schedule == "dualpipe" else matmuls  # work of another micro-batch
    ep = exposed_s(beside, work.exchanges.ep, efficiency.hidden_ep)
    traffic = traffic + exposed_s(matmuls + scores + traffic, work.offload, BESIDE_ALL)
    stage = matmuls + scores + (traffic + launch) + (tp + cp + ep)
    first, weight_grad = forward_s(forward, score, once), forward * work.trainable
    share = idle(schedule, layout, work.count, first, input_grad_s(stage, first, weight_grad), weight_grad)
    pace = pace_s(stage, head * work.head_share, work.layers_per_stage, work.spared)
    pipeline = work.count * (pace + share * stage) + work.exchanges.hops
    cover = reduction_cover_s(exchanging_stage(layout.zero, layout.pp), work.count, stage)
    parameters = exposed_s(cover, work.exchanges.parameters, efficiency.hidden_dp)
    update = work.update / efficiency.eff_memory
    step, count = pipeline + parameters + update, work.count
    return StepTime(
        step=step, floor=step, compute=matmuls * count, attention=scores * count, traffic=traffic * count, head=(pace - stage) * count,
        tp=tp * count, cp=cp * count, ep=ep * count, bubble=stage * share * count + work.exchanges.hops,
        parameters=parameters, update=update, launch=launch * count,
    )  # fmt: skip


def _matmul_pass(matmuls: Any, weights: Any, share: Any, efficiency: TrainingReach) -> Any:
    """Time of one pass over a stage's matmuls: arithmetic and the traffic of weights and gradients, as kernels overlap them."""
    return smooth_max_s(matmuls / share, weights / efficiency.eff_memory, efficiency.matmul_norm)


def step_work(at: Placement) -> StepWork:
    """Work of one step of a layout, in seconds at peak rates."""
    work, recipe, machine, optimizer = at.case.work, at.case.recipe, at.case.machine, at.case.optimizer
    part, layout, tokens = at.stage, at.layout, at.tokens
    dense = over_layers(work, lambda kind: common_params(kind, layout.tp)) * part.share  # that multiply a token on a chip
    routed = over_layers(work, lambda kind: chosen_params(kind, layout.tp, recipe.imbalance)) * part.share
    passes, traffic_bytes = training_passes(recipe.trainable), weight_traffic_bytes(optimizer.weight, optimizer.gradient, recipe.trainable)
    spared, head_share = head_place(recipe.schedule, part, layout)
    weights, expert_weights = (params * part.share * traffic_bytes / (passes * machine.hbm_bw)
                               for params in (part.dense, part.experts))  # fmt: skip
    again, repeated = recomputed_matmuls(recipe), 1 if recipe.recompute in FORWARD_AGAIN else 0
    if again is None:
        again = over_layers(work, lambda kind: again_params(kind, recipe)) * part.share / layout.tp / (dense + routed)
    if recipe.recompute in BY_MODULE:
        repeated = dropped_share(kept_per_token(at, recipe.recompute).layer, kept_per_token(at, "none").layer)
    return StepWork(
        matmuls=dense * tokens * TWO_FLOP / machine.peak, experts=routed * tokens * TWO_FLOP / machine.peak,
        scores=_scores(at), recurrences=_recurrences(at), weights=weights, expert_weights=expert_weights,
        routed_layers=over_layers(work, lambda kind: 1 if kind.work.experts > 0 else 0) * part.share,
        captured=is_captured(recipe),
        traffic=moved_per_token(at) * tokens * part.layers_per_stage / machine.hbm_bw,
        unfused=over_layers(work, lambda kind: kind.unfused) * part.share / layout.tp * tokens / machine.hbm_bw,
        offload=_offload(at),
        head=work.logits / layout.tp * tokens * TWO_FLOP / machine.wide_peak,
        logits=work.vocab / layout.tp * tokens * WRITTEN_AND_READ * logit_bytes(recipe) / machine.hbm_bw,
        update=update(at), exchanges=exchanges(at),
        layers_per_stage=part.layers_per_stage, spared=spared, head_share=head_share, count=at.count,
        passes=passes, again=again, score_passes=score_passes(is_fused(recipe), scores_again(recipe)),
        trainable=recipe.trainable, recomputed_share=repeated,
    )  # fmt: skip


def _offload(at: Placement) -> Any:
    """Seconds at peak of a micro-batch's activations on the way to the host's memory and back."""
    recipe, layers = at.case.recipe, at.stage.layers_per_stage
    if not recipe.offload_layers:
        return NO_TIME
    layer_bytes, link = kept_per_token(at, recipe.recompute).layer, at.case.system.chip.need("host_link_bw")
    return offload_s(layer_bytes * at.tokens, layers, layers_on_chip(layers, recipe.offload_layers), link)


def _scores(at: Placement) -> Any:
    """Seconds at peak of attention scores in one forward pass of a stage's layers."""
    seconds = []
    for b in (kind.work for kind in at.case.work.layers):
        share = at.stage.share * b.count * head_share(b.heads, at.layout.tp)
        for span in b.spans:
            pairs = micro_pairs(at.tokens, at.case.work.sequence, span.cap_tokens)
            seconds.append(span.prefill_score_flop * pairs / at.case.machine.wide_peak * share)
    return sum(seconds) if seconds else NO_TIME


def _recurrences(at: Placement) -> Any:
    """Seconds at peak of recurrences and convolutions in one forward pass of a stage's layers."""
    seconds = []
    for b in (kind.work for kind in at.case.work.layers):
        share = at.stage.share * b.count * head_share(b.heads, at.layout.tp)
        seconds.append(at.tokens * b.recurrence_flop_per_token / at.case.machine.wide_peak * share)
    return sum(seconds)


def update(at: Placement) -> Any:
    """Seconds at peak bandwidth of the update on the chip with most parameters: dense with the ends of the model, and routed experts."""
    optimizer, part = at.case.optimizer, at.stage
    bytes_per_param = update_bytes(optimizer.weight, optimizer.gradient, optimizer.states)
    dense, experts = most_params(part, at.chips)
    dense = dense / sharded_from(at.layout.zero, STAGE_1, part.data_degree)
    experts = experts / sharded_from(at.layout.zero, STAGE_1, part.expert_data_degree)
    return (dense + experts) * at.case.recipe.trainable * bytes_per_param / at.case.machine.hbm_bw


# -- collectives: group of chips, count and bytes, as the network laws take them ------------------------------------------------


def exchanges(at: Placement) -> Exchanges:
    """Time of every collective of a step, by kind."""
    recipe, machine, layout = at.case.recipe, at.case.machine, at.layout
    again = 1 if recipe.recompute in FORWARD_AGAIN else known(0, "recomputed", "", "constant", "the layers are not computed again")
    ffn_again, blocks_again = (1, HALF_AGAIN) if recipe.recompute == "ffn" else (again, again)
    vector = activation_bytes_per_token(at.case.work.hidden, WIDE)
    tp = hops = NO_TIME
    if most(layout.tp) > 1:
        often = over_layers(at.case.work, lambda kind: tp_exchanges(kind.sublayers, blocks_again)) * at.stage.share
        term = gather_term(machine.fabric, group(machine.fabric, layout.tp, 1), vector, machine.costs, often)
        tp = collective_term_s(term, at.tokens)
    if most(layout.pp) > 1:
        degrees = Layout(tp=layout.tp, cp=layout.cp, dp=layout.dp, pp=layout.pp)
        message = stream_bytes(vector) if recipe.recompute == REVERSIBLE else vector
        hops = collective_term_s(hop_term(machine.fabric, degrees, message / layout.tp, machine.costs), at.tokens) * BOTH_WAYS
    return Exchanges(tp=tp, cp=_context(at, again), ep=_experts(at, ffn_again), hops=hops, parameters=param_exchange_s(at))


def _context(at: Placement, again: Any) -> Any:
    layout, machine = at.layout, at.case.machine
    if most(layout.cp) == 1:
        return NO_TIME
    seconds = []
    for block in (kind.work for kind in at.case.work.layers):
        share = head_share(block.kv_heads, layout.tp)
        message = cache_bytes(tuple(store.elements_per_token for store in block.stores), WIDE) * share
        often = block.count * at.stage.share * cp_exchanges(again)
        term = gather_term(machine.fabric, group(machine.fabric, layout.cp, layout.tp), message, machine.costs, often)
        seconds.append(collective_term_s(term, at.tokens * layout.cp))
    return sum(seconds)


def _experts(at: Placement, again: Any) -> Any:
    """Time of dispatching tokens to experts and combining results, set by the busiest chip."""
    work, recipe, layout, machine = at.case.work, at.case.recipe, at.layout, at.case.machine
    vector, dispatch = (activation_bytes_per_token(work.hidden, element_bytes) * recipe.imbalance
                    for element_bytes in (WIDE, dispatched(recipe.dtype)))  # fmt: skip
    ranks = expert_ways(layout.ep, layout.tp)
    blocks = tuple(kind.work for kind in work.layers if kind.work.experts > 0)
    if not blocks or most(ranks) == 1:
        return NO_TIME
    among, seconds, costs = Layout(tp=1, cp=1, pp=1, dp=ranks, ep=layout.ep), [], machine.costs
    if recipe.dispatcher == "hybridep":
        costs = replace(costs, exchange=HYBRID_SHARE)
    for b in blocks:
        often = b.count * at.stage.share * expert_exchanges(again)
        if recipe.dispatcher == "alltoall":  # NCCL sends a copy to every expert
            message = copied_message(b.experts_per_token, dispatch, vector, ranks, layout.ep) / layout.tp
            peers = group(machine.fabric, ranks, 1)
            term = all_to_all_term(machine.fabric, peers, message, replace(costs, exchange=costs.efficiency), often)
            seconds.append(collective_term_s(term, at.tokens))
            continue
        routed = RoutedLayer(layers=b.count, experts=b.experts, active=b.experts_per_token, dispatch=dispatch, groups=b.expert_groups,
                        groups_chosen=b.groups_chosen)  # fmt: skip
        term = exchange_term(machine.fabric, among, routed, mean_message(dispatch, vector) / layout.tp, costs, often)
        seconds.append(collective_term_s(term, at.tokens))
    return sum(seconds)


def param_exchange_s(at: Placement) -> Any:
    """Time of gathering weights and reducing gradients, over the chips that replicate them: dense parameters, then experts."""
    part, layout, recipe, fabric = at.stage, at.layout, at.case.recipe, at.case.machine.fabric
    if most(part.data_degree) == 1 and most(part.expert_data_degree) == 1:
        return NO_TIME
    stage = exchanging_stage(layout.zero, layout.pp)
    element = gathered_element(stage, recipe.bytes_param_wire, recipe.bytes_gradient_wire)
    gathers = gathers_per_step(stage, at.count) * gathered_share(layout.zero, recipe.trainable)
    reductions = reductions_per_step(stage, at.count) * recipe.trainable
    split, seconds = expert_ways(layout.ep, layout.tp), []
    dense, experts = most_params(part, at.chips)
    for params, data_group in (
        (dense, group(fabric, part.data_degree, layout.tp)),
        (experts, group(fabric, part.expert_data_degree, split)),
    ):
        if most(params) == 0:
            continue
        for wire_bytes, often in ((element, gathers), (recipe.bytes_gradient_wire, reductions)):
            term = gather_term(fabric, data_group, params * wire_bytes / at.tokens, at.case.machine.costs, often)
            seconds.append(collective_term_s(term, at.tokens))
    return sum(seconds)
