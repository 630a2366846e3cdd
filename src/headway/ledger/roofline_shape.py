"""Claims on the shape of the roofline: which terms there are, how they grow with the batch, where they cross (RB, part one)."""

from __future__ import annotations

from typing import Any

from headway.laws.attention_balance import kv_write_share
from headway.laws.balance import (
    balanced_batch,
    balanced_batch_with_kv,
    compute_s_per_token,
    hardware_ratio,
    kv_balanced_context,
    kv_s_per_token,
    mfu,
    mfu_below_balance,
)
from headway.laws.batch_step import (
    batch_compute_s,
    batch_kv_s,
    kv_apart_step_s,
    latency_floor_s,
    memory_s,
    overlapped_step_s,
    roofline_s,
    serial_step_s,
)
from headway.laws.compare import relative
from headway.laws.cost import machine_s_per_token, machine_s_per_token_floor
from headway.laws.kv import attended_tokens
from headway.laws.lecture import board_compute_s, board_memory_s
from headway.laws.sums import times
from headway.ledger.register import Parts, recomputes


def _terms(inputs: Any, batch: Any) -> tuple[Any, Any, Any]:
    """Compute, weights and KV time of one step."""
    return (
        batch_compute_s(batch, inputs.active, inputs.peak),
        latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw),
        batch_kv_s(batch, inputs.context, inputs.kv_bytes, inputs.mem_bw),
    )


@recomputes("RB-01")
def lower_bound(inputs: Any) -> Parts:
    """The sum of the terms is the upper bound, so that the lower bound is off by at most 2."""
    terms = _terms(inputs, inputs.batch)
    return {"sum over maximum": relative(serial_step_s(*terms), overlapped_step_s(*terms))}


@recomputes("RB-02")
def compute_term(inputs: Any) -> Parts:
    """The board's compute time with each reading of FLOPs."""
    physical = batch_compute_s(inputs.batch, inputs.active, inputs.peak)
    multiplies = times(inputs.peak, inputs.multiplies_per_flop)
    return {
        "physical over board, FLOPs as multiplies/s": relative(physical, board_compute_s(inputs.batch, inputs.active, multiplies)),
        "physical over board, FLOPs as FLOP/s": relative(physical, board_compute_s(inputs.batch, inputs.active, inputs.peak)),
    }


@recomputes("RB-03")
def memory_term(inputs: Any) -> Parts:
    """The board's memory time for weights of one byte and of two."""
    board = board_memory_s(inputs.total, inputs.batch, inputs.context, inputs.kv_bytes, inputs.mem_bw)
    kv = batch_kv_s(inputs.batch, inputs.context, inputs.kv_bytes, inputs.mem_bw)
    return {
        f"physical over board, {name}": relative(memory_s(latency_floor_s(inputs.total, width, inputs.mem_bw), kv), board)
        for name, width in (("weights of 1 byte", inputs.weight_byte), ("weights of 2 bytes", inputs.wide_byte))
    }


@recomputes("RB-04")
def growth_with_batch(inputs: Any) -> Parts:
    """Each term at a larger batch over itself, and both plots' knees."""
    before, after = _terms(inputs, inputs.batch), _terms(inputs, times(inputs.batch, inputs.larger))
    knee = balanced_batch_with_kv(
        before[1], compute_s_per_token(inputs.active, inputs.peak), kv_s_per_token(inputs.context, inputs.kv_bytes, inputs.mem_bw)
    )
    compute, weights, kv = _terms(inputs, knee)
    cost_of_compute, cost_of_memory = machine_s_per_token(compute, knee), machine_s_per_token(memory_s(weights, kv), knee)
    return {
        "knee": knee,
        "compute at twice the batch": relative(after[0], before[0]),
        "KV at twice the batch": relative(after[2], before[2]),
        "weights at twice the batch": relative(after[1], before[1]),
        "memory over compute cost at the latency knee": relative(cost_of_memory, cost_of_compute),
    }


@recomputes("RB-05")
def latency_floor(inputs: Any) -> Parts:
    """The weights' read time, and the step at a small batch over it."""
    floor = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)
    compute = batch_compute_s(inputs.batch, inputs.active, inputs.peak)
    return {"latency floor": floor, "step over floor": relative(roofline_s(compute, floor), floor)}


@recomputes("RB-06")
def cost_by_batch(inputs: Any) -> Parts:
    """Each term's cost per token at twice the batch over itself."""
    larger = times(inputs.batch, inputs.larger)
    before = [machine_s_per_token(term, inputs.batch) for term in _terms(inputs, inputs.batch)]
    after = [machine_s_per_token(term, larger) for term in _terms(inputs, larger)]
    names = ("compute at twice the batch", "weights at twice the batch", "KV at twice the batch")
    return {name: relative(later, first) for name, later, first in zip(names, after, before, strict=True)}


@recomputes("RB-07")
def cost_floor(inputs: Any) -> Parts:
    """The limit of cost per token, and a very large batch's cost over it."""
    floor = machine_s_per_token_floor(
        compute_s_per_token(inputs.active, inputs.peak), kv_s_per_token(inputs.context, inputs.kv_bytes, inputs.mem_bw)
    )
    cost = machine_s_per_token(overlapped_step_s(*_terms(inputs, inputs.huge_batch)), inputs.huge_batch)
    return {"cost floor": floor, "cost at a huge batch over the floor": relative(cost, floor)}


@recomputes("RB-10")
def crossing(inputs: Any) -> Parts:
    """Ratio times sparsity against the batch at which the two times are equal."""
    product = balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)
    return {
        "ratio times sparsity": product,
        "weight time over compute time there": relative(
            latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw), batch_compute_s(product, inputs.active, inputs.peak)
        ),
    }


@recomputes("RB-14")
def scale_free(inputs: Any) -> Parts:
    """The balanced batch of a larger model of the same sparsity."""
    small = balanced_batch(inputs.ratio, inputs.total, inputs.active)
    return {
        "balanced batch": small,
        "of a larger model over it": relative(
            balanced_batch(inputs.ratio, times(inputs.total, inputs.scale), times(inputs.active, inputs.scale)), small
        ),
    }


@recomputes("RB-15")
def kv_raises_balance(inputs: Any) -> Parts:
    """The balanced batch when KV takes a share of the compute time, over the one without KV."""
    weights, compute = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw), compute_s_per_token(inputs.active, inputs.peak)
    without = balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)
    with_kv = balanced_batch_with_kv(weights, compute, times(compute, inputs.kv_over_compute))
    return {"balanced batch with KV": with_kv, "over the one without": relative(with_kv, without)}


@recomputes("RB-18")
def mfu_at_twice_the_context(inputs: Any) -> Parts:
    """MFU at twice the context where KV time equals compute time, over MFU there; with weights negligible and with weights."""
    per_token = compute_s_per_token(inputs.active, inputs.peak)
    match = kv_balanced_context(per_token, inputs.kv_bytes, inputs.mem_bw)
    compute, weights, kv = (
        batch_compute_s(inputs.batch, inputs.active, inputs.peak),
        latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw),
        [],
    )
    for context in (match, times(match, inputs.longer)):
        kv.append(batch_kv_s(inputs.batch, context, inputs.kv_bytes, inputs.mem_bw))
    kv_alone = [mfu(compute, roofline_s(compute, time)) for time in kv]
    with_weights = [mfu(compute, overlapped_step_s(compute, weights, time)) for time in kv]
    return {
        "MFU kept, weights negligible": relative(kv_alone[1], kv_alone[0]),
        "MFU kept, weights counted": relative(with_weights[1], with_weights[0]),
        "context where the slopes match": match,
    }


@recomputes("RB-19")
def sparse_attention(inputs: Any) -> Parts:
    """Tokens read at a longer context over tokens read at a shorter one, by kind of attention."""

    def growth(cap: Any, root: Any) -> Any:
        return relative(attended_tokens(times(inputs.context, inputs.longer), cap, root), attended_tokens(inputs.context, cap, root))

    return {
        "top-k of a lightning indexer": growth(inputs.top_k, inputs.no_limit),
        "square root": growth(inputs.no_limit, inputs.root),
        "dense": growth(inputs.no_limit, inputs.no_limit),
    }


@recomputes("RB-20")
def writes_over_reads(inputs: Any) -> Parts:
    """KV written over KV read."""
    return {"writes over reads": kv_write_share(inputs.context)}


@recomputes("RB-25")
def mfu_by_batch(inputs: Any) -> Parts:
    """MFU by the batch and by the times of the step."""
    balanced = balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)
    compute, weights = (
        batch_compute_s(inputs.batch, inputs.active, inputs.peak),
        latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw),
    )
    by_times = mfu(compute, roofline_s(compute, weights))
    by_batch = mfu_below_balance(inputs.batch, balanced)
    return {
        "MFU by the batch": by_batch,
        "MFU by the times over it": relative(by_times, by_batch),
        "MFU above balance": mfu_below_balance(times(balanced, inputs.above), balanced),
    }


@recomputes("RB-27")
def kv_apart(inputs: Any) -> Parts:
    """Attention not overlapped with the matrix products, over everything overlapped."""
    terms = _terms(inputs, inputs.batch)
    return {"KV apart over full overlap": relative(kv_apart_step_s(*terms), overlapped_step_s(*terms))}
