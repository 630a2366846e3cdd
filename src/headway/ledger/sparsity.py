"""Claims on sparsity that the ground floor can check (SP)."""

from __future__ import annotations

from typing import Any

from headway.laws.balance import balanced_batch, hardware_ratio
from headway.laws.batch_step import batch_compute_s, latency_floor_s, roofline_s
from headway.laws.capacity import bytes_beside_weights, capacity_params
from headway.laws.compare import relative
from headway.laws.cost import machine_s_per_token
from headway.laws.memory import parameter_bytes
from headway.laws.params import sparsity
from headway.laws.sums import times
from headway.ledger.register import Parts, recomputes


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
