"""Facts from co-authored sources, used to check the project's laws (EX)."""

from __future__ import annotations

from typing import Any

from headway.laws.attention_balance import multihead_width_per_chip, multiquery_width_per_chip
from headway.laws.balance import hardware_ratio
from headway.laws.batch_step import latency_floor_s
from headway.laws.cache_bill import tokens_left
from headway.laws.compare import relative
from headway.laws.departures import mean_tokens_per_s
from headway.laws.margin import charged_usd
from headway.laws.service_day import fleet_usd
from headway.laws.sums import times, total
from headway.laws.training_flop import flop_utilisation, matmul_flop_per_token, model_flop_per_token, training_passes
from headway.ledger.register import Parts, recomputes


@recomputes("EX-01")
def palm_decode(i: Any) -> Parts:
    """The weight floor, and how near the measured step came."""
    floor = latency_floor_s(i.total, i.weight_byte, times(i.chip_bw, i.chips))
    return {"weight floor": floor, "share of the roofline": relative(floor, i.measured)}


@recomputes("EX-03")
def multiquery_context(i: Any) -> Parts:
    """KV per chip of multihead attention over that of multiquery attention split by batch."""
    multihead = multihead_width_per_chip(i.heads, i.multihead_width, i.chips)
    return {"longer context": relative(multihead, multiquery_width_per_chip(i.multiquery_width, i.chips))}


@recomputes("EX-04")
def chat_turn(i: Any) -> Parts:
    """Output tokens times the measured step."""
    return {"turn": times(i.step_s, i.output)}


@recomputes("EX-05")
def quantised_ratio(i: Any) -> Parts:
    """The hardware ratio by format of weights and of arithmetic."""
    return {
        "bf16": hardware_ratio(i.bf16, i.peak_bf16, i.mem_bw),
        "int8 weights, bf16 arithmetic": hardware_ratio(i.int8, i.peak_bf16, i.mem_bw),
        "int8": hardware_ratio(i.int8, i.peak_int8, i.mem_bw),
    }


@recomputes("EX-06")
def h100_ratio(i: Any) -> Parts:
    """The hardware ratio of H100."""
    return {"H100 bf16": hardware_ratio(i.bf16, i.peak, i.mem_bw)}


@recomputes("EX-07")
def training_mfu(i: Any) -> Parts:
    """6 N D over what the chips could have done in their hours, by two peaks."""
    per_token = model_flop_per_token(matmul_flop_per_token(i.active), i.none, training_passes(i.trainable))
    rate = mean_tokens_per_s(i.tokens, i.chip_time)
    peaks = {"MFU": i.peak, "MFU by the SXM part's peak": i.sxm_peak}
    return {name: flop_utilisation(per_token, rate, peak) for name, peak in peaks.items()}


@recomputes("EX-08")
def cost_of_a_day(i: Any) -> Parts:
    """Every node for the whole day, idle or not."""
    return {"cost": fleet_usd(i.nodes, i.node, i.chip_price, i.time)}


@recomputes("EX-09")
def revenue_of_a_day(i: Any) -> Parts:
    """Every token at its list price."""
    missed = tokens_left(i.prompts, i.hits)
    return {"revenue": total((charged_usd(i.hits, i.rate_hit), charged_usd(missed, i.rate_miss), charged_usd(i.outputs, i.rate_output)))}
