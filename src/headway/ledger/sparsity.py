"""Claims on sparsity: what it costs to serve, and what experts are worth (SP)."""

from __future__ import annotations

from typing import Any

from headway.laws.balance import balanced_batch, compute_s_per_token, hardware_ratio
from headway.laws.batch_step import batch_compute_s, latency_floor_s, roofline_s
from headway.laws.capacity import bytes_beside_weights, capacity_params
from headway.laws.compare import relative
from headway.laws.cost import machine_s_per_token
from headway.laws.memory import parameter_bytes
from headway.laws.params import sparsity
from headway.laws.routed import (
    dense_exponent,
    effective_params,
    experts_for_total,
    routed_exponent,
    routed_share,
    routed_total_params,
    routing_cutoff,
    saturated,
)
from headway.laws.sums import times
from headway.ledger.register import Parts, recomputes
from headway.scaling.fits import routed


@recomputes("SP-01")
def which_way_up(inputs: Any) -> Parts:
    """Both readings of the word."""
    return {
        "total over active": sparsity(inputs.experts, inputs.board_experts_per_token),
        "active over total": sparsity(inputs.board_experts_per_token, inputs.experts),
    }


@recomputes("SP-07")
def free_given_users(inputs: Any) -> Parts:
    """Machine time per token at multiples of the balanced batch: the total size must not matter."""
    balanced = balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)
    weights = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)

    def cost(multiple: Any) -> Any:
        batch = times(balanced, multiple)
        step = roofline_s(batch_compute_s(batch, inputs.active, inputs.peak), weights)
        return machine_s_per_token(step, batch)

    return {"at half the balanced batch": cost(inputs.below), "at twice the balanced batch": cost(inputs.above)}


@recomputes("SP-08")
def paid_in_capacity(inputs: Any) -> Parts:
    """The sparsest model that leaves room for the KV."""
    kv = times(times(inputs.kv_bytes, inputs.context), inputs.batch)
    most = capacity_params(inputs.hbm, kv, inputs.weight_byte)
    kv_room = bytes_beside_weights(inputs.hbm, parameter_bytes(most, inputs.weight_byte))
    return {"largest sparsity": sparsity(most, inputs.active), "memory left for KV over KV": relative(kv_room, kv)}


def _effective(name: str, active: Any, experts: Any) -> Any:
    """Parameters of the equal dense model by one of Clark's laws."""
    by = routed()[name]
    saturated_experts = saturated(experts, by.start, by.most)
    sparse, dense = routed_exponent(by.a, by.c, saturated_experts), routed_exponent(by.a, by.c, by.start)
    return effective_params(active, saturated_experts, by.start, sparse, dense, by.b)


@recomputes("SP-02")
def equal_dense_model(inputs: Any) -> Parts:
    """The equal dense model by each routing of Clark et al., published coefficients."""
    figures = {
        title: _effective(name, inputs.active, inputs.experts) for title, name in (("S-BASE", "s-base"), ("RL-R", "rl-r"), ("HASH", "hash"))
    }
    return figures | {"S-BASE, 55 experts": _effective("s-base", inputs.active, inputs.fewer)}


@recomputes("SP-03")
def gain_of_experts(inputs: Any) -> Parts:
    """The dense model of the figure over the active parameters, and the law's."""
    return {
        "read off": relative(inputs.dense, inputs.active),
        "by the law": relative(_effective("s-base", inputs.active, inputs.experts), inputs.active),
    }


@recomputes("SP-04")
def experts_are_not_parameters(inputs: Any) -> Parts:
    """All parameters where only the routed FFNs are copied."""
    total_params = routed_total_params(inputs.active, inputs.experts, routed_share(inputs.blocks, inputs.ffn))
    return {
        "total over active": sparsity(total_params, inputs.active),
        "total": total_params,
        "total over equal dense": relative(total_params, inputs.dense),
    }


@recomputes("SP-05")
def law_of_experts(inputs: Any) -> Parts:
    """The law at the lecture's size by experts, and the paper's own check."""
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
def total_for_active(inputs: Any) -> Parts:
    """The power of the rule, as stated and as the figure has it."""
    return {
        "exponent": dense_exponent(inputs.four, inputs.experts),
        "by the figure": dense_exponent(relative(inputs.dense, inputs.active), inputs.experts),
    }


@recomputes("SP-09")
def ten_for_a_hundred(inputs: Any) -> Parts:
    """What the law gives for a hundred times the total, at the figure's size and at a frontier one, and where it ends."""
    experts = experts_for_total(inputs.hundred, routed_share(inputs.blocks, inputs.ffn))
    by = routed()["s-base"]
    return {
        "gain of 100 times the total": relative(_effective("s-base", inputs.active, experts), inputs.active),
        "the same at 100B active": relative(_effective("s-base", inputs.large, experts), inputs.large),
        "gain of 64 experts": relative(_effective("s-base", inputs.active, inputs.experts), inputs.active),
        "size where it ends": routing_cutoff(by.b, by.c),
    }


@recomputes("SP-10")
def what_limits_size(inputs: Any) -> Parts:
    """The largest model when domains hold stages, over that of one; a token's compute by active parameters."""
    largest = capacity_params(inputs.hbm, inputs.kv, inputs.weight_byte)
    more = capacity_params(times(inputs.hbm, inputs.stages), inputs.kv, inputs.weight_byte)
    compute = (compute_s_per_token(times(inputs.active, inputs.twice), inputs.peak), compute_s_per_token(inputs.active, inputs.peak))
    return {
        "largest model, 8 domains over one": relative(more, largest),
        "compute of a token, twice the active": relative(*compute),
        "largest model of one domain": largest,
    }
