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
from headway.model import UNITY


@recomputes("RB-08")
def ratio_near_300(inputs: Any) -> Parts:
    """The hardware ratio in each format of the two chips."""
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
    """The spread of the ratio over generations: the lowest and highest of the lecture's three, then all."""
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
        "H100 over A100-80": relative(ratios["H100 bf16"], ratios["A100-80 bf16"]),
        "H100 over B100": relative(ratios["H100 bf16"], ratios["B100 bf16"]),
        "Rubin fp4 over A100-80": relative(ratios["Rubin fp4"], ratios["A100-80 bf16"]),
        **ratios,
    }


@recomputes("RB-11")
def deepseek_experts(inputs: Any) -> Parts:
    """The published routing, and the board's."""
    return {
        "balanced batch per expert": balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.experts_per_token),
        "sparsity of the routed experts": sparsity(inputs.experts, inputs.experts_per_token),
        "with the board's 32 of 256": board_balanced_batch(inputs.experts, inputs.board_experts_per_token),
    }


@recomputes("RB-12")
def deepseek_three_balances(inputs: Any) -> Parts:
    """The balanced batch of the whole model and of each expert."""
    return {
        "whole model": balanced_batch(inputs.ratio, inputs.total, inputs.active),
        "whole model, the board's 700 B": balanced_batch(inputs.ratio, inputs.board_total, inputs.active),
        "per expert": balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.experts_per_token),
    }


@recomputes("RB-13")
def practical_batch(inputs: Any) -> Parts:
    """Double and triple."""
    return {"double": times(inputs.balanced, inputs.double), "triple": times(inputs.balanced, inputs.triple)}


@recomputes("RB-16")
def unit_of_batch(inputs: Any) -> Parts:
    """Sequences, from what the domain yields and what each user sees."""
    return {"sequences": tokens_in_flight(step_tokens_per_s(inputs.batch, inputs.step_s), user_tokens_per_s(inputs.step_s))}


@recomputes("RB-17")
def cost_of_not_batching(inputs: Any) -> Parts:
    """Cost at one sequence over cost at balance: all weights loaded, or only a lone token's own experts."""
    return {
        "all weights, the board's sparsity": board_balanced_batch(inputs.experts, inputs.board_experts_per_token),
        "all weights, the true sparsity": balanced_batch(inputs.ratio, inputs.total, inputs.active),
        "only the active experts": balanced_batch(inputs.ratio, inputs.active, inputs.active),
    }


@recomputes("RB-21")
def rent_per_token(inputs: Any) -> Parts:
    """One rack's rent over its tokens."""
    return {
        "2,000 sequences": usd_per_mtok_out(inputs.chip_price, inputs.chips, inputs.step_s, inputs.batch, UNITY),
        "2,400 sequences": usd_per_mtok_out(inputs.chip_price, inputs.chips, inputs.step_s, inputs.larger_batch, UNITY),
    }


@recomputes("RB-22")
def deepseek_size(inputs: Any) -> Parts:
    """The published sizes."""
    return {"total": inputs.total, "active": inputs.active}


@recomputes("RB-23")
def experts_touched(inputs: Any) -> Parts:
    """Distinct experts by batch."""
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
    """Tokens per expert: the board's batch and routing, the right pair, and the board's batch with the right routing."""
    board = board_balanced_batch(inputs.experts, inputs.board_experts_per_token)
    right = balanced_batch_per_expert(inputs.ratio, inputs.experts, inputs.experts_per_token)
    return {
        "at 2400, 32 of 256": tokens_per_expert(board, inputs.experts, inputs.board_experts_per_token),
        "at 9600, 8 of 256": tokens_per_expert(right, inputs.experts, inputs.experts_per_token),
        "at 2400, 8 of 256": tokens_per_expert(board, inputs.experts, inputs.experts_per_token),
    }


@recomputes("RB-26")
def production_decode(inputs: Any) -> Parts:
    """Sequences in flight of DeepSeek's decode unit, over each balanced batch."""
    batch = tokens_in_flight(times(inputs.node_tok_per_s, inputs.nodes), inputs.user_tok_per_s)
    return {
        "sequences in flight": batch,
        "over ratio x true sparsity": relative(batch, balanced_batch(inputs.h100_ratio, inputs.total, inputs.active)),
        "over the board's 2400": relative(batch, board_balanced_batch(inputs.experts, inputs.board_experts_per_token)),
        "over the balance per expert": relative(
            batch, balanced_batch_per_expert(inputs.h100_ratio, inputs.experts, inputs.experts_per_token)
        ),
    }
