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
def which_way_up(i: Any) -> Parts:
    """Both readings of the word."""
    return {
        "total over active": sparsity(i.experts, i.board_experts_per_token),
        "active over total": sparsity(i.board_experts_per_token, i.experts),
    }


@recomputes("SP-07")
def free_given_users(i: Any) -> Parts:
    """Machine time per token at multiples of the balanced batch: the total size must not matter."""
    balanced = balanced_batch(hardware_ratio(i.weight_byte, i.peak, i.mem_bw), i.total, i.active)
    weights = latency_floor_s(i.total, i.weight_byte, i.mem_bw)

    def cost(multiple: Any) -> Any:
        batch = times(balanced, multiple)
        step = roofline_s(batch_compute_s(batch, i.active, i.peak), weights)
        return machine_s_per_token(step, batch)

    return {"at half the balanced batch": cost(i.below), "at twice the balanced batch": cost(i.above)}


@recomputes("SP-08")
def paid_in_capacity(i: Any) -> Parts:
    """The sparsest model that leaves room for the KV."""
    kv = times(times(i.kv_bytes, i.context), i.batch)
    most = capacity_params(i.hbm, kv, i.weight_byte)
    left = bytes_beside_weights(i.hbm, parameter_bytes(most, i.weight_byte))
    return {"largest sparsity": sparsity(most, i.active), "memory left for KV over KV": relative(left, kv)}


def _effective(name: str, active: Any, experts: Any) -> Any:
    """Parameters of the equal dense model by one of Clark's laws."""
    by = routed()[name]
    counted = saturated(experts, by.start, by.most)
    own, dense = routed_exponent(by.a, by.c, counted), routed_exponent(by.a, by.c, by.start)
    return effective_params(active, counted, by.start, own, dense, by.b)


@recomputes("SP-02")
def equal_dense_model(i: Any) -> Parts:
    """The equal dense model by each routing of Clark et al., published coefficients."""
    found = {title: _effective(name, i.active, i.experts) for title, name in (("S-BASE", "s-base"), ("RL-R", "rl-r"), ("HASH", "hash"))}
    return found | {"S-BASE, 55 experts": _effective("s-base", i.active, i.fewer)}


@recomputes("SP-03")
def gain_of_experts(i: Any) -> Parts:
    """The dense model of the figure over the active parameters, and the law's."""
    return {"read off": relative(i.dense, i.active), "by the law": relative(_effective("s-base", i.active, i.experts), i.active)}


@recomputes("SP-04")
def experts_are_not_parameters(i: Any) -> Parts:
    """All parameters where only the routed FFNs are copied."""
    whole = routed_total_params(i.active, i.experts, routed_share(i.blocks, i.ffn))
    return {"total over active": sparsity(whole, i.active), "total": whole, "total over equal dense": relative(whole, i.dense)}


@recomputes("SP-05")
def law_of_experts(i: Any) -> Parts:
    """The law at the lecture's size by experts, and the paper's own check."""
    counts = (("8", i.e_8), ("16", i.e_16), ("32", i.e_32), ("64", i.experts), ("128", i.e_128), ("256", i.e_256), ("512", i.e_512))
    found = {f"E = {name}": _effective("s-base", i.active, count) for name, count in counts}
    return found | {"5 M, E = 128": _effective("s-base", i.small, i.e_128)}


@recomputes("SP-06")
def total_for_active(i: Any) -> Parts:
    """The power of the rule, as stated and as the figure has it."""
    return {"exponent": dense_exponent(i.four, i.experts), "by the figure": dense_exponent(relative(i.dense, i.active), i.experts)}


@recomputes("SP-09")
def ten_for_a_hundred(i: Any) -> Parts:
    """What the law gives for a hundred times the total, at the figure's size and at a frontier one, and where it ends."""
    experts = experts_for_total(i.hundred, routed_share(i.blocks, i.ffn))
    by = routed()["s-base"]
    return {
        "gain of 100 times the total": relative(_effective("s-base", i.active, experts), i.active),
        "the same at 100B active": relative(_effective("s-base", i.large, experts), i.large),
        "gain of 64 experts": relative(_effective("s-base", i.active, i.experts), i.active),
        "size where it ends": routing_cutoff(by.b, by.c),
    }


@recomputes("SP-10")
def what_limits_size(i: Any) -> Parts:
    """The largest model when domains hold stages, over that of one; a token's compute by active parameters."""
    largest = capacity_params(i.hbm, i.kv, i.weight_byte)
    more = capacity_params(times(i.hbm, i.stages), i.kv, i.weight_byte)
    compute = (compute_s_per_token(times(i.active, i.twice), i.peak), compute_s_per_token(i.active, i.peak))
    return {
        "largest model, 8 domains over one": relative(more, largest),
        "compute of a token, twice the active": relative(*compute),
        "largest model of one domain": largest,
    }
