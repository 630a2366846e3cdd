"""Claims on mixtures of experts: placement on racks, serving cost of sparsity, and quality gain of experts (MOE, SP)."""

from __future__ import annotations

from typing import Any

from headway.core.units import Number
from headway.evidence.claims.claim import ClaimInputs, Parts, balance, compute_s, recomputes, token_s, weights_s
from headway.laws.architecture.params import sparsity
from headway.laws.collectives.expert_parallel import (
    activation_bytes_per_token,
    distinct_experts,
    distinct_places,
    exchange_bytes,
    exchange_out,
    wire_bytes_per_token,
)
from headway.laws.collectives.topology import group_domains
from headway.laws.rack import hops_through_switches
from headway.laws.roofline.balance import bytes_beside_weights, capacity_params, compute_s_per_token, sent_s, tensor_ways_paid
from headway.laws.roofline.batch_step import latency_floor_s, machine_s_per_token, roofline_s
from headway.laws.scaling.power_laws import (
    dense_exponent,
    effective_params,
    experts_for_total,
    routed_exponent,
    routed_total_params,
    routing_cutoff,
    saturated,
)
from headway.laws.serving.pipeline import racks_slowdown, scale_up_ratio
from headway.laws.step.layer_terms import idle_chips
from headway.training.scaling.fits import routed


@recomputes("MOE-01")
def share_of_experts(inputs: ClaimInputs) -> Parts:
    """Active experts over all experts."""
    return {"share of the experts": inputs.experts_per_token / inputs.experts}


@recomputes("MOE-02")
def experts_on_a_chip(inputs: ClaimInputs) -> Parts:
    """Experts per chip at an even split."""
    return {"experts per chip": inputs.experts / inputs.used}


@recomputes("MOE-03")
def chips_left_idle(inputs: ClaimInputs) -> Parts:
    """Chips left idle by an even split, and experts per chip with redundant experts on all chips."""
    idle = idle_chips(inputs.chips, inputs.used)
    return {
        "idle chips": idle,
        "idle share": idle / inputs.chips,
        "experts per chip on 72": inputs.experts / inputs.chips,
        "with redundant experts": inputs.with_redundant / inputs.chips,
    }


@recomputes("MOE-04")
def two_exchanges(inputs: ClaimInputs) -> Parts:
    """Dispatch plus combine over one exchange for equal vectors, and their byte ratio in DeepSeek's formats."""
    vector = activation_bytes_per_token(inputs.hidden, inputs.bf16)
    dispatch = wire_bytes_per_token(inputs.hidden, inputs.fp8, inputs.scale, inputs.tile)
    both = exchange_bytes(inputs.tokens, inputs.copies, vector, vector)
    return {
        "exchanges": both / (vector * inputs.copies * inputs.tokens),
        "combine over dispatch, bytes per element": inputs.bf16 / inputs.fp8,
        "combine over dispatch, fp8 with scales": vector / dispatch,
    }


@recomputes("MOE-05")
def hops_in_a_rack(inputs: ClaimInputs) -> Parts:
    """Links between two chips: in one rack, and in eight racks on common switches."""
    return {
        "one rack": hops_through_switches(inputs.chips, inputs.ports),
        "eight racks in one domain": hops_through_switches(inputs.more_chips, inputs.ports),
    }


@recomputes("MOE-06")
def router_on_every_chip(inputs: ClaimInputs) -> Parts:
    """Router copy over a chip's weights, and tokens that each copy routes."""
    router = inputs.hidden * inputs.experts * inputs.moe_layers * inputs.bf16
    weights = inputs.total * inputs.fp8 / (inputs.chips * inputs.stages)
    return {"router over a chip's weights": router / weights, "tokens per router": inputs.batch / inputs.chips}


@recomputes("MOE-07")
def scale_out_is_slower(inputs: ClaimInputs) -> Parts:
    """Scale-up over scale-out bandwidth, per chip and direction."""
    return {
        "H100": scale_up_ratio(inputs.h100_up, inputs.h100_out),
        "GB300 with 800 Gb/s": scale_up_ratio(inputs.gb300_up, inputs.gb300_out),
        "GB200 with 400 Gb/s": scale_up_ratio(inputs.gb200_up, inputs.gb200_out),
    }


@recomputes("MOE-08")
def tokens_leave_the_rack(inputs: ClaimInputs) -> Parts:
    """Share of tokens that leaves a rack with experts over R racks, and the slowdown of the all-to-all."""
    ranks = inputs.rack * inputs.two
    slower = {f"slower over {racks} racks": racks_slowdown(inputs.ratio, count) for racks, count in
              ((2, inputs.two), (3, inputs.three), (4, inputs.four), (8, inputs.eight))}  # fmt: skip
    return {"share that leaves one of two": exchange_out(inputs.copies, ranks, inputs.rack) / inputs.copies, **slower}


@recomputes("MOE-09")
def experts_over_nodes(inputs: ClaimInputs) -> Parts:
    """Scale-up domains that DeepSeek's expert-parallel groups span."""
    return {
        "domains of the decode unit": group_domains(inputs.decode_ep, inputs.next_to, inputs.node),
        "domains of the prefill unit": group_domains(inputs.prefill_ep, inputs.next_to, inputs.node),
    }


@recomputes("MOE-10")
def experts_too_small_to_split(inputs: ClaimInputs) -> Parts:
    """Largest tensor parallel degree that pays, for one expert and for a dense layer."""
    return {
        "one expert of DeepSeek-V3": tensor_ways_paid(inputs.expert_width, inputs.link_bw, inputs.peak, inputs.element),
        "dense layer of Llama-3.1-70B": tensor_ways_paid(inputs.dense_width, inputs.link_bw, inputs.peak, inputs.element),
    }


@recomputes("MOE-11")
def all_to_all_time(inputs: ClaimInputs) -> Parts:
    """Dispatch and combine time of all layers over the weight read time, in a rack and over scale-out."""
    vectors = (activation_bytes_per_token(inputs.hidden, element) for element in (inputs.fp8, inputs.bf16))
    message_bytes = exchange_bytes(inputs.batch / inputs.chips, inputs.copies, *vectors)
    layer = sent_s(message_bytes, inputs.up_bw)
    weights = latency_floor_s(inputs.total, inputs.fp8, inputs.mem_bw)
    steps = {"in the rack": layer * inputs.moe_layers} | {
        f"at {name} GB/s": sent_s(message_bytes, bandwidth) * inputs.moe_layers
        for name, bandwidth in (("100", inputs.out_bw), ("50", inputs.slow_bw))
    }
    return {
        "in the rack over weight time": steps["in the rack"] / weights,
        "at 100 GB/s over weight time": steps["at 100 GB/s"] / weights,
        "bytes per chip and layer": message_bytes,
        "one layer in the rack": layer,
        **steps,
    }


@recomputes("MOE-12")
def sends_per_token(inputs: ClaimInputs) -> Parts:
    """Sends per token (one per expert), and expected chips reached: experts drawn without replacement, and independently."""
    return {
        "chips reached": distinct_places(inputs.chips, inputs.experts, inputs.active),
        "sends, one per expert": inputs.active,
        "chips reached, each draw alone": distinct_experts(inputs.chips, inputs.one, inputs.active),
        "chips reached by 32 experts": distinct_places(inputs.chips, inputs.experts, inputs.more_active),
        "chips reached by 32 experts, each draw alone": distinct_experts(inputs.chips, inputs.one, inputs.more_active),
    }


@recomputes("SP-01")
def which_way_up(inputs: ClaimInputs) -> Parts:
    """Both readings of sparsity: total over active, and active over total."""
    return {
        "total over active": sparsity(inputs.experts, inputs.board_experts_per_token),
        "active over total": sparsity(inputs.board_experts_per_token, inputs.experts),
    }


@recomputes("SP-07")
def free_given_users(inputs: ClaimInputs) -> Parts:
    """Machine time per token at multiples of the balanced batch, which must not depend on total parameters."""
    balanced = balance(inputs)
    weights = weights_s(inputs)

    def cost(multiple: Number) -> Any:
        batch = balanced * multiple
        step = roofline_s(compute_s(inputs, batch), weights)
        return machine_s_per_token(step, batch)

    return {"at half the balanced batch": cost(inputs.below), "at twice the balanced batch": cost(inputs.above)}


@recomputes("SP-08")
def paid_in_capacity(inputs: ClaimInputs) -> Parts:
    """Largest sparsity that leaves memory for the KV cache."""
    kv = inputs.kv_bytes * inputs.context * inputs.batch
    most = capacity_params(inputs.hbm, kv, inputs.weight_byte)
    kv_room = bytes_beside_weights(inputs.hbm, most * inputs.weight_byte)
    return {"largest sparsity": sparsity(most, inputs.active), "memory left for KV over KV": kv_room / kv}


def _effective(name: str, active: Number, experts: Number) -> Any:
    """Parameters of the equivalent dense model by one of the laws of Clark et al."""
    by = routed()[name]
    saturated_experts = saturated(experts, by.start, by.most)
    sparse, dense = routed_exponent(by.a, by.c, saturated_experts), routed_exponent(by.a, by.c, by.start)
    return effective_params(active, saturated_experts, by.start, sparse, dense, by.b)


@recomputes("SP-02")
def equal_dense_model(inputs: ClaimInputs) -> Parts:
    """Parameters of the equivalent dense model for each routing of Clark et al., with their published coefficients."""
    figures = {
        title: _effective(name, inputs.active, inputs.experts) for title, name in (("S-BASE", "s-base"), ("RL-R", "rl-r"), ("HASH", "hash"))
    }
    return figures | {"S-BASE, 55 experts": _effective("s-base", inputs.active, inputs.fewer)}


@recomputes("SP-03")
def gain_of_experts(inputs: ClaimInputs) -> Parts:
    """Equivalent dense model over active parameters: read off the figure, and by the law."""
    return {
        "read off": inputs.dense / inputs.active,
        "by the law": _effective("s-base", inputs.active, inputs.experts) / inputs.active,
    }


@recomputes("SP-04")
def experts_are_not_parameters(inputs: ClaimInputs) -> Parts:
    """Total parameters when only the routed FFNs are multiplied by experts."""
    total_params = routed_total_params(inputs.active, inputs.experts, inputs.blocks * inputs.ffn)
    return {
        "total over active": sparsity(total_params, inputs.active),
        "total": total_params,
        "total over equal dense": total_params / inputs.dense,
    }


@recomputes("SP-05")
def law_of_experts(inputs: ClaimInputs) -> Parts:
    """Equivalent dense model at the lecture's size by number of experts, and the paper's example."""
    counts = (
        ("8", inputs.e_8),
        ("16", inputs.e_16),
        ("32", inputs.e_32),
        ("64", inputs.experts),
        ("128", inputs.e_128),
        ("256", inputs.e_256),
        ("512", inputs.e_512),
    )
    figures = {f"E = {name}": _effective("s-base", inputs.active, count) for name, count in counts}
    return figures | {"5 M, E = 128": _effective("s-base", inputs.small, inputs.e_128)}


@recomputes("SP-06")
def total_for_active(inputs: ClaimInputs) -> Parts:
    """Exponent of total parameters in the rule, as stated and as read off the figure."""
    return {
        "exponent": dense_exponent(inputs.four, inputs.experts),
        "by the figure": dense_exponent(inputs.dense / inputs.active, inputs.experts),
    }


@recomputes("SP-09")
def ten_for_a_hundred(inputs: ClaimInputs) -> Parts:
    """Gain by the law for 100 times the total parameters, at the figure's and at a frontier size, and the size of no gain."""
    experts = experts_for_total(inputs.hundred, inputs.blocks * inputs.ffn)
    by = routed()["s-base"]
    return {
        "gain of 100 times the total": _effective("s-base", inputs.active, experts) / inputs.active,
        "the same at 100B active": _effective("s-base", inputs.large, experts) / inputs.large,
        "gain of 64 experts": _effective("s-base", inputs.active, inputs.experts) / inputs.active,
        "size where it ends": routing_cutoff(by.b, by.c),
    }


@recomputes("SP-10")
def what_limits_size(inputs: ClaimInputs) -> Parts:
    """Largest model on 8 domains as pipeline stages over one domain; compute per token at twice the active parameters."""
    largest = capacity_params(inputs.hbm, inputs.kv, inputs.weight_byte)
    more = capacity_params(inputs.hbm * inputs.stages, inputs.kv, inputs.weight_byte)
    compute = (compute_s_per_token(inputs.active * inputs.twice, inputs.peak), token_s(inputs))
    return {
        "largest model, 8 domains over one": more / largest,
        "compute of a token, twice the active": compute[0] / compute[1],
        "largest model of one domain": largest,
    }
