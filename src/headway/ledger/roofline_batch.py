"""Claims with figures on the hardware ratio and the balanced batch (RB, part two)."""

from __future__ import annotations

from typing import Any

from headway.laws.balance import balanced_batch, balanced_batch_per_expert, hardware_ratio
from headway.laws.compare import relative
from headway.laws.departures import step_tokens_per_s, tokens_in_flight, user_tokens_per_s
from headway.laws.lecture import board_balanced_batch
from headway.laws.moe import distinct_experts, tokens_per_expert
from headway.laws.money import usd_per_mtok_out
from headway.laws.params import sparsity
from headway.laws.sums import times
from headway.ledger.register import Parts, recomputes
from headway.model import ONE


@recomputes("RB-08")
def ratio_near_300(i: Any) -> Parts:
    """The hardware ratio in each format of the two chips."""
    return {
        "H100 bf16": hardware_ratio(i.bf16, i.h100_bf16, i.h100_bw),
        "H100 fp8": hardware_ratio(i.fp8, i.h100_fp8, i.h100_bw),
        "B200 bf16": hardware_ratio(i.bf16, i.b200_bf16, i.b200_bw),
        "B200 fp8": hardware_ratio(i.fp8, i.b200_fp8, i.b200_bw),
        "B200 fp4": hardware_ratio(i.fp4, i.b200_fp4, i.b200_bw),
        "B200 fp4 at 10 PF": hardware_ratio(i.fp4, i.b200_fp4_high, i.b200_bw),
    }


@recomputes("RB-09")
def ratio_by_generation(i: Any) -> Parts:
    """The spread of the ratio over generations: the lowest and highest of the lecture's three, then all."""
    ratios = {
        "A100-40 bf16": hardware_ratio(i.bf16, i.a100_bf16, i.a100_40_bw),
        "A100-80 bf16": hardware_ratio(i.bf16, i.a100_bf16, i.a100_80_bw),
        "H100 bf16": hardware_ratio(i.bf16, i.h100_bf16, i.h100_bw),
        "H200 bf16": hardware_ratio(i.bf16, i.h100_bf16, i.h200_bw),
        "B100 bf16": hardware_ratio(i.bf16, i.b100_bf16, i.b100_bw),
        "B200 bf16": hardware_ratio(i.bf16, i.b200_bf16, i.b200_bw),
        "B300 fp4": hardware_ratio(i.fp4, i.b300_fp4, i.b300_bw),
        "B300 fp8": hardware_ratio(i.fp8, i.b300_fp8, i.b300_bw),
        "Rubin fp4": hardware_ratio(i.fp4, i.rubin_fp4, i.rubin_bw),
        "TPU v5e bf16": hardware_ratio(i.bf16, i.v5e_bf16, i.v5e_bw),
        "TPU v5p bf16": hardware_ratio(i.bf16, i.v5p_bf16, i.v5p_bw),
        "TPU v6e bf16": hardware_ratio(i.bf16, i.v6e_bf16, i.v6e_bw),
    }
    return {
        "H100 over A100-80": relative(ratios["H100 bf16"], ratios["A100-80 bf16"]),
        "H100 over B100": relative(ratios["H100 bf16"], ratios["B100 bf16"]),
        "Rubin fp4 over A100-80": relative(ratios["Rubin fp4"], ratios["A100-80 bf16"]),
        **ratios,
    }


@recomputes("RB-11")
def deepseek_experts(i: Any) -> Parts:
    """The published routing, and the board's."""
    return {
        "balanced batch per expert": balanced_batch_per_expert(i.ratio, i.experts, i.experts_per_token),
        "sparsity of the routed experts": sparsity(i.experts, i.experts_per_token),
        "with the board's 32 of 256": board_balanced_batch(i.experts, i.board_experts_per_token),
    }


@recomputes("RB-12")
def deepseek_three_balances(i: Any) -> Parts:
    """The balanced batch of the whole model and of each expert."""
    return {
        "whole model": balanced_batch(i.ratio, i.total, i.active),
        "whole model, the board's 700 B": balanced_batch(i.ratio, i.board_total, i.active),
        "per expert": balanced_batch_per_expert(i.ratio, i.experts, i.experts_per_token),
    }


@recomputes("RB-13")
def practical_batch(i: Any) -> Parts:
    """Double and triple."""
    return {"double": times(i.balanced, i.double), "triple": times(i.balanced, i.triple)}


@recomputes("RB-16")
def unit_of_batch(i: Any) -> Parts:
    """Sequences, from what the domain yields and what each user sees."""
    return {"sequences": tokens_in_flight(step_tokens_per_s(i.batch, i.step_s), user_tokens_per_s(i.step_s))}


@recomputes("RB-17")
def cost_of_not_batching(i: Any) -> Parts:
    """Cost at one sequence over cost at balance: all weights loaded, or only a lone token's own experts."""
    return {
        "all weights, the board's sparsity": board_balanced_batch(i.experts, i.board_experts_per_token),
        "all weights, the true sparsity": balanced_batch(i.ratio, i.total, i.active),
        "only the active experts": balanced_batch(i.ratio, i.active, i.active),
    }


@recomputes("RB-21")
def rent_per_token(i: Any) -> Parts:
    """One rack's rent over its tokens."""
    return {
        "2,000 sequences": usd_per_mtok_out(i.chip_price, i.chips, i.step_s, i.batch, ONE),
        "2,400 sequences": usd_per_mtok_out(i.chip_price, i.chips, i.step_s, i.larger_batch, ONE),
    }


@recomputes("RB-22")
def deepseek_size(i: Any) -> Parts:
    """The published sizes."""
    return {"total": i.total, "active": i.active}


@recomputes("RB-23")
def experts_touched(i: Any) -> Parts:
    """Distinct experts by batch."""
    return {
        f"batch {name}": distinct_experts(i.experts, i.experts_per_token, batch)
        for name, batch in (("1", i.batch_1), ("8", i.batch_8), ("32", i.batch_32), ("64", i.batch_64), ("128", i.batch_128))
    }


@recomputes("RB-24")
def expert_rows(i: Any) -> Parts:
    """Tokens per expert: the board's batch and routing, the right pair, and the board's batch with the right routing."""
    board = board_balanced_batch(i.experts, i.board_experts_per_token)
    right = balanced_batch_per_expert(i.ratio, i.experts, i.experts_per_token)
    return {
        "at 2400, 32 of 256": tokens_per_expert(board, i.experts, i.board_experts_per_token),
        "at 9600, 8 of 256": tokens_per_expert(right, i.experts, i.experts_per_token),
        "at 2400, 8 of 256": tokens_per_expert(board, i.experts, i.experts_per_token),
    }


@recomputes("RB-26")
def production_decode(i: Any) -> Parts:
    """Sequences in flight of DeepSeek's decode unit, over each balanced batch."""
    batch = tokens_in_flight(times(i.node_tok_per_s, i.nodes), i.user_tok_per_s)
    return {
        "sequences in flight": batch,
        "over ratio x true sparsity": relative(batch, balanced_batch(i.h100_ratio, i.total, i.active)),
        "over the board's 2400": relative(batch, board_balanced_batch(i.experts, i.board_experts_per_token)),
        "over the balance per expert": relative(batch, balanced_batch_per_expert(i.h100_ratio, i.experts, i.experts_per_token)),
    }
