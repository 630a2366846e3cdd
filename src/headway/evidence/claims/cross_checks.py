"""Cross-checks of the project's laws against facts from papers that the lecturer co-authored (EX)."""

from __future__ import annotations

from typing import Any

from headway.evidence.claims.claim import Parts, recomputes
from headway.laws.economics.cost import charged_usd
from headway.laws.roofline.balance import hardware_ratio, multihead_width_per_chip
from headway.laws.roofline.batch_step import latency_floor_s
from headway.laws.training.run import flop_utilisation, matmul_flop_per_token, model_flop_per_token, training_passes


@recomputes("EX-01")
def palm_decode(inputs: Any) -> Parts:
    """Weight read floor of PaLM's decode step, and the share of it that the measured step reached."""
    floor = latency_floor_s(inputs.total, inputs.weight_byte, inputs.chip_bw * inputs.chips)
    return {"weight floor": floor, "share of the roofline": floor / inputs.measured}


@recomputes("EX-03")
def multiquery_context(inputs: Any) -> Parts:
    """KV per chip of multihead attention over multiquery attention split by batch (gain in context)."""
    multihead = multihead_width_per_chip(inputs.heads, inputs.multihead_width, inputs.chips)
    return {"longer context": multihead / (inputs.multiquery_width / inputs.chips)}


@recomputes("EX-04")
def chat_turn(inputs: Any) -> Parts:
    """Time of a chat turn: output tokens times the measured step."""
    return {"turn": inputs.step_s * inputs.output}


@recomputes("EX-05")
def quantised_ratio(inputs: Any) -> Parts:
    """Hardware ratio (FLOP/s over byte/s) by format of weights and of arithmetic."""
    return {
        "bf16": hardware_ratio(inputs.bf16, inputs.peak_bf16, inputs.mem_bw),
        "int8 weights, bf16 arithmetic": hardware_ratio(inputs.int8, inputs.peak_bf16, inputs.mem_bw),
        "int8": hardware_ratio(inputs.int8, inputs.peak_int8, inputs.mem_bw),
    }


@recomputes("EX-06")
def h100_ratio(inputs: Any) -> Parts:
    """Hardware ratio (FLOP/s over byte/s) of H100."""
    return {"H100 bf16": hardware_ratio(inputs.bf16, inputs.peak, inputs.mem_bw)}


@recomputes("EX-07")
def training_mfu(inputs: Any) -> Parts:
    """MFU of a training run: 6 N D over peak FLOPs in its chip-hours, by two peaks."""
    per_token = model_flop_per_token(matmul_flop_per_token(inputs.active), inputs.none, training_passes(inputs.trainable))
    rate = inputs.tokens / inputs.chip_time
    peaks = {"MFU": inputs.peak, "MFU by the SXM part's peak": inputs.sxm_peak}
    return {name: flop_utilisation(per_token, rate, peak) for name, peak in peaks.items()}


@recomputes("EX-08")
def cost_of_a_day(inputs: Any) -> Parts:
    """Cost of a day of all nodes, idle or not."""
    return {"cost": inputs.nodes * inputs.node * inputs.chip_price * inputs.time}


@recomputes("EX-09")
def revenue_of_a_day(inputs: Any) -> Parts:
    """Revenue of a day with every token at its list price."""
    misses = inputs.prompts - inputs.hits
    return {
        "revenue": charged_usd(inputs.hits, inputs.rate_hit)
        + charged_usd(misses, inputs.rate_miss)
        + charged_usd(inputs.outputs, inputs.rate_output)
    }
