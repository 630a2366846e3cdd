"""Claims on the roofline: its terms and their growth with the batch, the hardware ratio and the balanced batch (RB)."""

from __future__ import annotations

from typing import Any

from headway.evidence.claims.claim import Parts, recomputes
from headway.laws.architecture.kv import attended_tokens
from headway.laws.architecture.params import sparsity
from headway.laws.collectives.expert_parallel import distinct_experts
from headway.laws.economics.cost import usd_per_mtok_out
from headway.laws.queueing.departures import tokens_in_flight, user_tokens_per_s
from headway.laws.roofline.balance import (
    balanced_batch,
    balanced_batch_per_expert,
    balanced_batch_with_kv,
    compute_s_per_token,
    hardware_ratio,
    kv_balanced_context,
    kv_s_per_token,
    kv_write_share,
    mfu,
    mfu_below_balance,
)
from headway.laws.roofline.batch_step import (
    batch_compute_s,
    batch_kv_s,
    board_balanced_batch,
    board_compute_s,
    board_memory_s,
    kv_apart_step_s,
    latency_floor_s,
    machine_s_per_token,
    machine_s_per_token_floor,
    memory_s,
    overlapped_step_s,
    roofline_s,
    serial_step_s,
)


def _terms(inputs: Any, batch: Any) -> tuple[Any, Any, Any]:
    """Compute, weight read and KV read time of a step."""
    return (
        batch_compute_s(batch, inputs.active, inputs.peak),
        latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw),
        batch_kv_s(batch, inputs.context, inputs.kv_bytes, inputs.mem_bw),
    )


@recomputes("RB-01")
def lower_bound(inputs: Any) -> Parts:
    """Sum over maximum of the terms: the sum is an upper bound, so the maximum is low by at most a factor of 2."""
    terms = _terms(inputs, inputs.batch)
    return {"sum over maximum": serial_step_s(*terms) / overlapped_step_s(*terms)}


@recomputes("RB-02")
def compute_term(inputs: Any) -> Parts:
    """Compute time over the board's, with each reading of FLOPs."""
    physical = batch_compute_s(inputs.batch, inputs.active, inputs.peak)
    multiplies = inputs.peak * inputs.multiplies_per_flop
    return {
        "physical over board, FLOPs as multiplies/s": physical / board_compute_s(inputs.batch, inputs.active, multiplies),
        "physical over board, FLOPs as FLOP/s": physical / board_compute_s(inputs.batch, inputs.active, inputs.peak),
    }


@recomputes("RB-03")
def memory_term(inputs: Any) -> Parts:
    """Memory time over the board's, for weights of one byte and of two."""
    board = board_memory_s(inputs.total, inputs.batch, inputs.context, inputs.kv_bytes, inputs.mem_bw)
    kv = batch_kv_s(inputs.batch, inputs.context, inputs.kv_bytes, inputs.mem_bw)
    return {
        f"physical over board, {name}": memory_s(latency_floor_s(inputs.total, width, inputs.mem_bw), kv) / board
        for name, width in (("weights of 1 byte", inputs.weight_byte), ("weights of 2 bytes", inputs.wide_byte))
    }


@recomputes("RB-04")
def growth_with_batch(inputs: Any) -> Parts:
    """Growth of each term at twice the batch, and the knees of both plots."""
    before, after = _terms(inputs, inputs.batch), _terms(inputs, inputs.batch * inputs.larger)
    knee = balanced_batch_with_kv(
        before[1], compute_s_per_token(inputs.active, inputs.peak), kv_s_per_token(inputs.context, inputs.kv_bytes, inputs.mem_bw)
    )
    compute, weights, kv = _terms(inputs, knee)
    cost_of_compute, cost_of_memory = machine_s_per_token(compute, knee), machine_s_per_token(memory_s(weights, kv), knee)
    return {
        "knee": knee,
        "compute at twice the batch": after[0] / before[0],
        "KV at twice the batch": after[2] / before[2],
        "weights at twice the batch": after[1] / before[1],
        "memory over compute cost at the latency knee": cost_of_memory / cost_of_compute,
    }


@recomputes("RB-05")
def latency_floor(inputs: Any) -> Parts:
    """Latency floor (weight read time), and the step at a small batch over it."""
    floor = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)
    compute = batch_compute_s(inputs.batch, inputs.active, inputs.peak)
    return {"latency floor": floor, "step over floor": roofline_s(compute, floor) / floor}


@recomputes("RB-06")
def cost_by_batch(inputs: Any) -> Parts:
    """Change in each term's cost per token at twice the batch."""
    larger = inputs.batch * inputs.larger
    before = [machine_s_per_token(term, inputs.batch) for term in _terms(inputs, inputs.batch)]
    after = [machine_s_per_token(term, larger) for term in _terms(inputs, larger)]
    names = ("compute at twice the batch", "weights at twice the batch", "KV at twice the batch")
    return {name: later / first for name, later, first in zip(names, after, before, strict=True)}


@recomputes("RB-07")
def cost_floor(inputs: Any) -> Parts:
    """Limit of cost per token, and cost at a very large batch over it."""
    floor = machine_s_per_token_floor(
        compute_s_per_token(inputs.active, inputs.peak), kv_s_per_token(inputs.context, inputs.kv_bytes, inputs.mem_bw)
    )
    cost = machine_s_per_token(overlapped_step_s(*_terms(inputs, inputs.huge_batch)), inputs.huge_batch)
    return {"cost floor": floor, "cost at a huge batch over the floor": cost / floor}


@recomputes("RB-10")
def crossing(inputs: Any) -> Parts:
    """Balanced batch as hardware ratio times sparsity, and weight over compute time at that batch."""
    product = balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)
    return {
        "ratio times sparsity": product,
        "weight time over compute time there": latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)
        / batch_compute_s(product, inputs.active, inputs.peak),
    }


@recomputes("RB-14")
def scale_free(inputs: Any) -> Parts:
    """Balanced batch, and that of a larger model of equal sparsity over it."""
    small = balanced_batch(inputs.ratio, inputs.total, inputs.active)
    return {
        "balanced batch": small,
        "of a larger model over it": balanced_batch(inputs.ratio, inputs.total * inputs.scale, inputs.active * inputs.scale) / small,
    }


@recomputes("RB-15")
def kv_raises_balance(inputs: Any) -> Parts:
    """Balanced batch with KV reads that take a share of compute time, over the balanced batch without KV."""
    weights, compute = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw), compute_s_per_token(inputs.active, inputs.peak)
    without = balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)
    with_kv = balanced_batch_with_kv(weights, compute, compute * inputs.kv_over_compute)
    return {"balanced batch with KV": with_kv, "over the one without": with_kv / without}


@recomputes("RB-18")
def mfu_at_twice_the_context(inputs: Any) -> Parts:
    """MFU at twice the context of equal KV and compute time, over MFU at that context; without and with weights."""
    per_token = compute_s_per_token(inputs.active, inputs.peak)
    match = kv_balanced_context(per_token, inputs.kv_bytes, inputs.mem_bw)
    compute, weights, kv = (
        batch_compute_s(inputs.batch, inputs.active, inputs.peak),
        latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw),
        [],
    )
    for context in (match, match * inputs.longer):
        kv.append(batch_kv_s(inputs.batch, context, inputs.kv_bytes, inputs.mem_bw))
    kv_alone = [mfu(compute, roofline_s(compute, time)) for time in kv]
    with_weights = [mfu(compute, overlapped_step_s(compute, weights, time)) for time in kv]
    return {
        "MFU kept, weights negligible": kv_alone[1] / kv_alone[0],
        "MFU kept, weights counted": with_weights[1] / with_weights[0],
        "context where the slopes match": match,
    }


@recomputes("RB-19")
def sparse_attention(inputs: Any) -> Parts:
    """Tokens read at a longer context over a shorter context, by kind of attention."""

    def growth(cap: Any, root: Any) -> Any:
        return attended_tokens(inputs.context * inputs.longer, cap, root) / attended_tokens(inputs.context, cap, root)

    return {
        "top-k of a lightning indexer": growth(inputs.top_k, inputs.no_limit),
        "square root": growth(inputs.no_limit, inputs.root),
        "dense": growth(inputs.no_limit, inputs.no_limit),
    }


@recomputes("RB-20")
def writes_over_reads(inputs: Any) -> Parts:
    """KV bytes written over KV bytes read in a decode step."""
    return {"writes over reads": kv_write_share(inputs.context)}


@recomputes("RB-25")
def mfu_by_batch(inputs: Any) -> Parts:
    """MFU below balance by the batch and by the step's times, and MFU above balance."""
    balanced = balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)
    compute, weights = (
        batch_compute_s(inputs.batch, inputs.active, inputs.peak),
        latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw),
    )
    by_times = mfu(compute, roofline_s(compute, weights))
    by_batch = mfu_below_balance(inputs.batch, balanced)
    return {
        "MFU by the batch": by_batch,
        "MFU by the times over it": by_times / by_batch,
        "MFU above balance": mfu_below_balance(balanced * inputs.above, balanced),
    }


@recomputes("RB-27")
def kv_apart(inputs: Any) -> Parts:
    """Step with attention not overlapped with matmuls, over the step with full overlap."""
    terms = _terms(inputs, inputs.batch)
    return {"KV apart over full overlap": kv_apart_step_s(*terms) / overlapped_step_s(*terms)}


@recomputes("RB-08")
def ratio_near_300(inputs: Any) -> Parts:
    """Hardware ratio (FLOP/s over byte/s) of H100 and B200 in each format."""
    return {
        "H100 bf16": hardware_ratio(inputs.bf16, inputs.h100_bf16, inputs.h100_bw),
        "H100 fp8": hardware_ratio(inputs.fp8, inputs.h100_fp8, inputs.h100_bw),
        "B200 bf16": hardware_ratio(inputs.bf16, inputs.b200_bf16, inputs.b200_bw),
        "B200 fp8": hardware_ratio(inputs.fp8, inputs.b200_fp8, inputs.b200_bw),
        "B200 fp4": hardware_ratio(inputs.fp4, inputs.b200_fp4, inputs.b200_bw),
        "B200 fp4 at 10 PF": hardware_ratio(inputs.fp4, inputs.b200_fp4_high, inputs.b200_bw),
    }


@recomputes("RB-09")
def ratio_by_generation(inputs: Any) -> Parts:
    """Hardware ratio by generation: lowest and highest of the lecture's three generations, then all chips."""
    ratios = {
        "A100-40 bf16": hardware_ratio(inputs.bf16, inputs.a100_bf16, inputs.a100_40_bw),
        "A100-80 bf16": hardware_ratio(inputs.bf16, inputs.a100_bf16, inputs.a100_80_bw),
        "H100 bf16": hardware_ratio(inputs.bf16, inputs.h100_bf16, inputs.h100_bw),
        "H200 bf16": hardware_ratio(inputs.bf16, inputs.h100_bf16, inputs.h200_bw),
        "B100 bf16": hardware_ratio(inputs.bf16, inputs.b100_bf16, inputs.b100_bw),
        "B200 bf16": hardware_ratio(inputs.bf16, inputs.b200_bf16, inputs.b200_bw),
        "B300 fp4": hardware_ratio(inputs.fp4, inputs.b300_fp4, inputs.b300_bw),
        "B300 fp8": hardware_ratio(inputs.fp8, inputs.b300_fp8, inputs.b300_bw),
        "Rubin fp4": hardware_ratio(inputs.fp4, inputs.rubin_fp4, inputs.rubin_bw),
        "TPU v5e bf16": hardware_ratio(inputs.bf16, inputs.v5e_bf16, inputs.v5e_bw),
        "TPU v5p bf16": hardware_ratio(inputs.bf16, inputs.v5p_bf16, inputs.v5p_bw),
        "TPU v6e bf16": hardware_ratio(inputs.bf16, inputs.v6e_bf16, inputs.v6e_bw),
    }
    return {
        "H100 over A100-80": ratios["H100 bf16"] / ratios["A100-80 bf16"],
        "H100 over B100": ratios["H100 bf16"] / ratios["B100 bf16"],
        "Rubin fp4 over A100-80": ratios["Rubin fp4"] / ratios["A100-80 bf16"],
        **ratios,
    }


@recomputes("RB-11")
def deepseek_experts(inputs: Any) -> Parts:
    """Balanced batch per expert and sparsity with DeepSeek's published routing, and with the board's."""
    return {
        "balanced batch per expert": balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.experts_per_token),
        "sparsity of the routed experts": sparsity(inputs.experts, inputs.experts_per_token),
        "with the board's 32 of 256": balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.board_experts_per_token),
    }


@recomputes("RB-12")
def deepseek_three_balances(inputs: Any) -> Parts:
    """Balanced batch of DeepSeek-V3 as a whole and per expert."""
    return {
        "whole model": balanced_batch(inputs.ratio, inputs.total, inputs.active),
        "whole model, the board's 700 B": balanced_batch(inputs.ratio, inputs.board_total, inputs.active),
        "per expert": balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.experts_per_token),
    }


@recomputes("RB-13")
def practical_batch(inputs: Any) -> Parts:
    """Practical batch: two and three times the balanced batch."""
    return {"double": inputs.balanced * inputs.double, "triple": inputs.balanced * inputs.triple}


@recomputes("RB-16")
def unit_of_batch(inputs: Any) -> Parts:
    """Sequences in the batch: tokens/s of the domain over tokens/s per user."""
    return {"sequences": tokens_in_flight(inputs.batch / inputs.step_s, user_tokens_per_s(inputs.step_s))}


@recomputes("RB-17")
def cost_of_not_batching(inputs: Any) -> Parts:
    """Cost per token at batch 1 over cost at balance: all weights read, or only the experts of one token."""
    return {
        "all weights, the board's sparsity": balanced_batch(inputs.ratio, inputs.experts, inputs.board_experts_per_token),
        "all weights, the true sparsity": balanced_batch(inputs.ratio, inputs.total, inputs.active),
        "only the active experts": balanced_batch(inputs.ratio, inputs.active, inputs.active),
    }


@recomputes("RB-21")
def rent_per_token(inputs: Any) -> Parts:
    """Rent of a rack over its tokens."""
    return {
        "2,000 sequences": usd_per_mtok_out(inputs.chip_price, inputs.chips, inputs.step_s, inputs.batch, 1),
        "2,400 sequences": usd_per_mtok_out(inputs.chip_price, inputs.chips, inputs.step_s, inputs.larger_batch, 1),
    }


@recomputes("RB-22")
def deepseek_size(inputs: Any) -> Parts:
    """Published total and active parameters of DeepSeek-V3."""
    return {"total": inputs.total, "active": inputs.active}


@recomputes("RB-23")
def experts_touched(inputs: Any) -> Parts:
    """Expected distinct experts activated, by batch."""
    return {
        f"batch {name}": distinct_experts(inputs.experts, inputs.experts_per_token, batch)
        for name, batch in (
            ("1", inputs.batch_1),
            ("8", inputs.batch_8),
            ("32", inputs.batch_32),
            ("64", inputs.batch_64),
            ("128", inputs.batch_128),
        )
    }


@recomputes("RB-24")
def expert_rows(inputs: Any) -> Parts:
    """Tokens per expert: the board's batch and routing, the correct pair, and the board's batch with the true routing."""
    board = balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.board_experts_per_token)
    right = balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.experts_per_token)
    return {
        "at 2400, 32 of 256": board * inputs.board_experts_per_token / inputs.experts,
        "at 9600, 8 of 256": right * inputs.experts_per_token / inputs.experts,
        "at 2400, 8 of 256": board * inputs.experts_per_token / inputs.experts,
    }


@recomputes("RB-26")
def production_decode(inputs: Any) -> Parts:
    """Sequences in flight in DeepSeek's decode unit, and over each balanced batch."""
    batch = tokens_in_flight(inputs.node_tok_per_s * inputs.nodes, inputs.user_tok_per_s)
    return {
        "sequences in flight": batch,
        "over ratio x true sparsity": batch / balanced_batch(inputs.h100_ratio, inputs.total, inputs.active),
        "over the board's 2400": batch / board_balanced_batch(inputs.experts, inputs.board_experts_per_token),
        "over the balance per expert": batch / balanced_batch_per_expert(inputs.h100_ratio, inputs.experts, inputs.experts_per_token),
    }
