"""Claims on the roofline, the hardware ratio and the balanced batch (RB), and on drain time, departures and token rates (TS)."""

from __future__ import annotations

from typing import Any

from headway.core.units import Token
from headway.evidence.claims.claim import ClaimInputs, Parts, balance, compute_s, kv_s, recomputes, terms, token_s, weights_s
from headway.laws.architecture.kv import attended_tokens
from headway.laws.architecture.params import sparsity
from headway.laws.collectives.expert_parallel import distinct_experts
from headway.laws.economics.cost import usd_per_mtok_out
from headway.laws.queueing.departures import (
    beat_response_s,
    beat_wait_s,
    filling_wait_s,
    timetable_wait_s,
    tokens_in_flight,
    train_rate,
    user_tokens_per_s,
    worst_latency_s,
)
from headway.laws.roofline.balance import (
    balanced_batch,
    balanced_batch_per_expert,
    balanced_batch_with_kv,
    bytes_read,
    drain_s,
    hardware_ratio,
    kv_balanced_context,
    kv_s_per_token,
    kv_write_share,
    mfu,
    mfu_below_balance,
)
from headway.laws.roofline.batch_step import (
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


@recomputes("RB-01")
def lower_bound(inputs: ClaimInputs) -> Parts:
    """Sum over maximum of the terms: the sum is an upper bound, so the maximum is low by at most a factor of 2."""
    step = terms(inputs, inputs.batch, inputs.context)
    return {"sum over maximum": serial_step_s(*step) / overlapped_step_s(*step)}


@recomputes("RB-02")
def compute_term(inputs: ClaimInputs) -> Parts:
    """Compute time over the board's, with each reading of FLOPs."""
    physical = compute_s(inputs, inputs.batch)
    multiplies = inputs.peak * inputs.multiplies_per_flop
    return {
        "physical over board, FLOPs as multiplies/s": physical / board_compute_s(inputs.batch, inputs.active, multiplies),
        "physical over board, FLOPs as FLOP/s": physical / board_compute_s(inputs.batch, inputs.active, inputs.peak),
    }


@recomputes("RB-03")
def memory_term(inputs: ClaimInputs) -> Parts:
    """Memory time over the board's, for weights of one byte and of two."""
    board = board_memory_s(inputs.total, inputs.batch, inputs.context, inputs.kv_bytes, inputs.mem_bw)
    kv = kv_s(inputs, inputs.batch, inputs.context)
    return {
        f"physical over board, {name}": memory_s(latency_floor_s(inputs.total, width, inputs.mem_bw), kv) / board
        for name, width in (("weights of 1 byte", inputs.weight_byte), ("weights of 2 bytes", inputs.wide_byte))
    }


@recomputes("RB-04")
def growth_with_batch(inputs: ClaimInputs) -> Parts:
    """Growth of each term at twice the batch, and the knees of both plots."""
    before, after = (terms(inputs, batch, inputs.context) for batch in (inputs.batch, inputs.batch * inputs.larger))
    knee = balanced_batch_with_kv(before[1], token_s(inputs), kv_s_per_token(inputs.context, inputs.kv_bytes, inputs.mem_bw))
    compute, weights, kv = terms(inputs, knee, inputs.context)
    cost_of_compute, cost_of_memory = machine_s_per_token(compute, knee), machine_s_per_token(memory_s(weights, kv), knee)
    return {
        "knee": knee,
        "compute at twice the batch": after[0] / before[0],
        "KV at twice the batch": after[2] / before[2],
        "weights at twice the batch": after[1] / before[1],
        "memory over compute cost at the latency knee": cost_of_memory / cost_of_compute,
    }


@recomputes("RB-05")
def latency_floor(inputs: ClaimInputs) -> Parts:
    """Latency floor (weight read time), and the step at a small batch over it."""
    floor = weights_s(inputs)
    return {"latency floor": floor, "step over floor": roofline_s(compute_s(inputs, inputs.batch), floor) / floor}


@recomputes("RB-06")
def cost_by_batch(inputs: ClaimInputs) -> Parts:
    """Change in each term's cost per token at twice the batch."""
    before, after = (
        [machine_s_per_token(term, batch) for term in terms(inputs, batch, inputs.context)]
        for batch in (inputs.batch, inputs.batch * inputs.larger)
    )
    names = ("compute at twice the batch", "weights at twice the batch", "KV at twice the batch")
    return {name: later / first for name, later, first in zip(names, after, before, strict=True)}


@recomputes("RB-07")
def cost_floor(inputs: ClaimInputs) -> Parts:
    """Limit of cost per token, and cost at a very large batch over it."""
    floor = machine_s_per_token_floor(token_s(inputs), kv_s_per_token(inputs.context, inputs.kv_bytes, inputs.mem_bw))
    cost = machine_s_per_token(overlapped_step_s(*terms(inputs, inputs.huge_batch, inputs.context)), inputs.huge_batch)
    return {"cost floor": floor, "cost at a huge batch over the floor": cost / floor}


@recomputes("RB-10")
def crossing(inputs: ClaimInputs) -> Parts:
    """Balanced batch as hardware ratio times sparsity, and weight over compute time at that batch."""
    product = balance(inputs)
    return {"ratio times sparsity": product, "weight time over compute time there": weights_s(inputs) / compute_s(inputs, product)}


@recomputes("RB-14")
def scale_free(inputs: ClaimInputs) -> Parts:
    """Balanced batch, and that of a larger model of equal sparsity over it."""
    small = balanced_batch(inputs.ratio, inputs.total, inputs.active)
    return {
        "balanced batch": small,
        "of a larger model over it": balanced_batch(inputs.ratio, inputs.total * inputs.scale, inputs.active * inputs.scale) / small,
    }


@recomputes("RB-15")
def kv_raises_balance(inputs: ClaimInputs) -> Parts:
    """Balanced batch with KV reads that take a share of compute time, over the balanced batch without KV."""
    compute = token_s(inputs)
    with_kv = balanced_batch_with_kv(weights_s(inputs), compute, compute * inputs.kv_over_compute)
    return {"balanced batch with KV": with_kv, "over the one without": with_kv / balance(inputs)}


@recomputes("RB-18")
def mfu_at_twice_the_context(inputs: ClaimInputs) -> Parts:
    """MFU at twice the context of equal KV and compute time, over MFU at that context; without and with weights."""
    match = kv_balanced_context(token_s(inputs), inputs.kv_bytes, inputs.mem_bw)
    steps = [terms(inputs, inputs.batch, context) for context in (match, match * inputs.longer)]
    kv_alone = [mfu(compute, roofline_s(compute, kv)) for compute, _, kv in steps]
    with_weights = [mfu(step[0], overlapped_step_s(*step)) for step in steps]
    return {
        "MFU kept, weights negligible": kv_alone[1] / kv_alone[0],
        "MFU kept, weights counted": with_weights[1] / with_weights[0],
        "context where the slopes match": match,
    }


@recomputes("RB-19")
def sparse_attention(inputs: ClaimInputs) -> Parts:
    """Tokens read at a longer context over a shorter context, by kind of attention."""

    def growth(cap: Token, root: Token) -> Any:
        return attended_tokens(inputs.context * inputs.longer, cap, root) / attended_tokens(inputs.context, cap, root)

    return {
        "top-k of a lightning indexer": growth(inputs.top_k, inputs.no_limit),
        "square root": growth(inputs.no_limit, inputs.root),
        "dense": growth(inputs.no_limit, inputs.no_limit),
    }


@recomputes("RB-20")
def writes_over_reads(inputs: ClaimInputs) -> Parts:
    """KV bytes written over KV bytes read in a decode step."""
    return {"writes over reads": kv_write_share(inputs.context)}


@recomputes("RB-25")
def mfu_by_batch(inputs: ClaimInputs) -> Parts:
    """MFU below balance by the batch and by the step's times, and MFU above balance."""
    balanced, compute = balance(inputs), compute_s(inputs, inputs.batch)
    by_batch = mfu_below_balance(inputs.batch, balanced)
    return {
        "MFU by the batch": by_batch,
        "MFU by the times over it": mfu(compute, roofline_s(compute, weights_s(inputs))) / by_batch,
        "MFU above balance": mfu_below_balance(balanced * inputs.above, balanced),
    }


@recomputes("RB-27")
def kv_apart(inputs: ClaimInputs) -> Parts:
    """Step with attention not overlapped with matmuls, over the step with full overlap."""
    step = terms(inputs, inputs.batch, inputs.context)
    return {"KV apart over full overlap": kv_apart_step_s(*step) / overlapped_step_s(*step)}


@recomputes("RB-08")
def ratio_near_300(inputs: ClaimInputs) -> Parts:
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
def ratio_by_generation(inputs: ClaimInputs) -> Parts:
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
def deepseek_experts(inputs: ClaimInputs) -> Parts:
    """Balanced batch per expert and sparsity with DeepSeek's published routing, and with the board's."""
    return {
        "balanced batch per expert": balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.experts_per_token),
        "sparsity of the routed experts": sparsity(inputs.experts, inputs.experts_per_token),
        "with the board's 32 of 256": balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.board_experts_per_token),
    }


@recomputes("RB-12")
def deepseek_three_balances(inputs: ClaimInputs) -> Parts:
    """Balanced batch of DeepSeek-V3 as a whole and per expert."""
    return {
        "whole model": balanced_batch(inputs.ratio, inputs.total, inputs.active),
        "whole model, the board's 700 B": balanced_batch(inputs.ratio, inputs.board_total, inputs.active),
        "per expert": balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.experts_per_token),
    }


@recomputes("RB-13")
def practical_batch(inputs: ClaimInputs) -> Parts:
    """Practical batch: two and three times the balanced batch."""
    return {"double": inputs.balanced * inputs.double, "triple": inputs.balanced * inputs.triple}


@recomputes("RB-16")
def unit_of_batch(inputs: ClaimInputs) -> Parts:
    """Sequences in the batch: tokens/s of the domain over tokens/s per user."""
    return {"sequences": tokens_in_flight(inputs.batch / inputs.step_s, user_tokens_per_s(inputs.step_s))}


@recomputes("RB-17")
def cost_of_not_batching(inputs: ClaimInputs) -> Parts:
    """Cost per token at batch 1 over cost at balance: all weights read, or only the experts of one token."""
    return {
        "all weights, the board's sparsity": balanced_batch(inputs.ratio, inputs.experts, inputs.board_experts_per_token),
        "all weights, the true sparsity": balanced_batch(inputs.ratio, inputs.total, inputs.active),
        "only the active experts": balanced_batch(inputs.ratio, inputs.active, inputs.active),
    }


@recomputes("RB-21")
def rent_per_token(inputs: ClaimInputs) -> Parts:
    """Rent of a rack over its tokens."""
    return {
        "2,000 sequences": usd_per_mtok_out(inputs.chip_price, inputs.chips, inputs.step_s, inputs.batch, 1),
        "2,400 sequences": usd_per_mtok_out(inputs.chip_price, inputs.chips, inputs.step_s, inputs.larger_batch, 1),
    }


@recomputes("RB-22")
def deepseek_size(inputs: ClaimInputs) -> Parts:
    """Published total and active parameters of DeepSeek-V3."""
    return {"total": inputs.total, "active": inputs.active}


@recomputes("RB-23")
def experts_touched(inputs: ClaimInputs) -> Parts:
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
def expert_rows(inputs: ClaimInputs) -> Parts:
    """Tokens per expert: the board's batch and routing, the correct pair, and the board's batch with the true routing."""
    board = balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.board_experts_per_token)
    right = balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.experts_per_token)
    return {
        "at 2400, 32 of 256": board * inputs.board_experts_per_token / inputs.experts,
        "at 9600, 8 of 256": right * inputs.experts_per_token / inputs.experts,
        "at 2400, 8 of 256": board * inputs.experts_per_token / inputs.experts,
    }


@recomputes("RB-26")
def production_decode(inputs: ClaimInputs) -> Parts:
    """Sequences in flight in DeepSeek's decode unit, and over each balanced batch."""
    batch = tokens_in_flight(inputs.node_tok_per_s * inputs.nodes, inputs.user_tok_per_s)
    return {
        "sequences in flight": batch,
        "over ratio x true sparsity": batch / balanced_batch(inputs.h100_ratio, inputs.total, inputs.active),
        "over the board's 2400": batch / board_balanced_batch(inputs.experts, inputs.board_experts_per_token),
        "over the balance per expert": batch / balanced_batch_per_expert(inputs.h100_ratio, inputs.experts, inputs.experts_per_token),
    }


@recomputes("TS-01")
def step_is_drain(inputs: ClaimInputs) -> Parts:
    """Drain time of the HBM of a B200."""
    return {"B200": drain_s(inputs.hbm, inputs.mem_bw)}


@recomputes("TS-02")
def rubin_drain(inputs: ClaimInputs) -> Parts:
    """Drain time of Rubin at the lecture's bandwidth and at the announced bandwidth."""
    return {"at 20 TB/s": drain_s(inputs.hbm, inputs.mem_bw), "at 22 TB/s": drain_s(inputs.hbm, inputs.later_bw)}


@recomputes("TS-03")
def drain_by_generation(inputs: ClaimInputs) -> Parts:
    """Drain time of HBM for ten chips."""
    return {
        "A100-40": drain_s(inputs.a100_40_hbm, inputs.a100_40_bw),
        "A100-80": drain_s(inputs.a100_80_hbm, inputs.a100_80_bw),
        "H100": drain_s(inputs.h100_hbm, inputs.h100_bw),
        "H200": drain_s(inputs.h200_hbm, inputs.h200_bw),
        "B200": drain_s(inputs.b200_hbm, inputs.b200_bw),
        "B300": drain_s(inputs.b300_hbm, inputs.b300_bw),
        "Rubin": drain_s(inputs.rubin_hbm, inputs.rubin_bw),
        "TPU v5e": drain_s(inputs.v5e_hbm, inputs.v5e_bw),
        "TPU v5p": drain_s(inputs.v5p_hbm, inputs.v5p_bw),
        "TPU v6e": drain_s(inputs.v6e_hbm, inputs.v6e_bw),
    }


@recomputes("TS-04")
def worst_case(inputs: ClaimInputs) -> Parts:
    """Worst latency: a full wait for the next departure, then the step."""
    return {"worst latency": worst_latency_s(inputs.step_s)}


@recomputes("TS-05")
def mean_wait(inputs: ClaimInputs) -> Parts:
    """Mean wait and latency with slots for all, and mean wait when random arrivals sometimes exceed the slots."""
    return {
        "mean wait": beat_wait_s(inputs.step_s),
        "mean wait and ride": beat_response_s(inputs.step_s),
        "mean wait, 32 seats 90 % full": timetable_wait_s(
            train_rate(inputs.load, inputs.step_s, inputs.seats), inputs.step_s, inputs.seats
        ),
        "mean wait, 4 seats 80 % full": timetable_wait_s(
            train_rate(inputs.few_load, inputs.step_s, inputs.few_seats), inputs.step_s, inputs.few_seats
        ),
    }


@recomputes("TS-06")
def second_read(inputs: ClaimInputs) -> Parts:
    """Reads of the full memory in a step longer than the drain time, and in a step that reads weights alone."""
    drain = drain_s(inputs.hbm, inputs.mem_bw)
    weights = latency_floor_s(inputs.total, inputs.weight_byte, inputs.domain_bw)
    return {"reads of the memory": inputs.step_s / drain, "reads by a step of weights alone": weights / drain}


@recomputes("TS-07")
def domain_rate(inputs: ClaimInputs) -> Parts:
    """Tokens per second of a domain at the stated step period and at the drain times."""
    return {
        "2,000 at 20 ms": inputs.batch / inputs.step_s,
        "2,000 at 64 steps/s": inputs.batch / inputs.step_64th,
        "2,400 at 64 steps/s": inputs.larger_batch / inputs.step_64th,
        "2,400 at 20 ms": inputs.larger_batch / inputs.step_s,
        "2,000 at 14.4 ms": inputs.batch / inputs.rubin_step_s,
        "2,400 at 14.4 ms": inputs.larger_batch / inputs.rubin_step_s,
    }


@recomputes("TS-08")
def share_of_gemini(inputs: ClaimInputs) -> Parts:
    """Share of Gemini's traffic that one system serves, at three dates."""
    return {
        name: inputs.tok_per_s / (tokens / inputs.month)
        for name, tokens in (("July 2025", inputs.july), ("May 2025", inputs.may), ("October 2025", inputs.october))
    }


@recomputes("TS-09")
def gemini_traffic(inputs: ClaimInputs) -> Parts:
    """Gemini's monthly tokens as tokens per second."""
    return {
        name: tokens / inputs.month
        for name, tokens in (
            ("July 2025", inputs.july),
            ("May 2025", inputs.may),
            ("October 2025", inputs.october),
            ("2026", inputs.next_year),
        )
    }


@recomputes("TS-10")
def balance_against_drain(inputs: ClaimInputs) -> Parts:
    """Step (weight read time) and rate (compute bound) at the balanced batch, and the model size they imply."""
    step = weights_s(inputs)
    balanced = balance(inputs)
    implied = bytes_read(inputs.stated_step, inputs.mem_bw)
    return {
        "step at balance": step,
        "tokens/s at balance": balanced / step,
        "weights implied by 128 k tokens/s": implied,
        "active parameters implied": implied / inputs.weight_byte / inputs.board_sparsity,
    }


@recomputes("TS-11")
def balance_with_full_memory(inputs: ClaimInputs) -> Parts:
    """Balanced batch and MFU when each step reads all of a full memory."""
    balanced = balance(inputs)
    weights = inputs.total * inputs.weight_byte
    needed = balanced * inputs.hbm / weights
    return {
        "balanced batch": needed,
        "MFU at 2400": mfu_below_balance(inputs.batch, needed),
        "MFU at the weight-only balance": weights / inputs.hbm,
    }


@recomputes("TS-12")
def user_rate(inputs: ClaimInputs) -> Parts:
    """Tokens per second per user, and the step of a faster mode."""
    rate = user_tokens_per_s(inputs.step_s)
    fast = rate * inputs.faster
    return {"tokens/s per user": rate, "2.5 times as fast": fast, "its step": inputs.step_s / inputs.faster}


@recomputes("TS-13")
def leaves_anyway(inputs: ClaimInputs) -> Parts:
    """Mean wait for a nearly empty batch that departs on schedule, and for a batch that departs only when full."""
    rate = train_rate(inputs.load, inputs.step_s, inputs.seats)
    return {
        "mean wait, leaving on the clock": timetable_wait_s(rate, inputs.step_s, inputs.seats),
        "mean wait, leaving when full": filling_wait_s(rate, inputs.seats),
    }
