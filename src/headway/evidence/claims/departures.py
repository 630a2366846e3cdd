"""Claims on drain time, batch departures and token rates (TS)."""

from __future__ import annotations

from typing import Any

from headway.evidence.claims.claim import Parts, recomputes
from headway.laws.queueing.departures import (
    beat_response_s,
    beat_wait_s,
    filling_wait_s,
    timetable_wait_s,
    train_rate,
    user_tokens_per_s,
    worst_latency_s,
)
from headway.laws.roofline.balance import (
    balanced_batch,
    bytes_read,
    drain_s,
    hardware_ratio,
    mfu_below_balance,
)
from headway.laws.roofline.batch_step import latency_floor_s


@recomputes("TS-01")
def step_is_drain(inputs: Any) -> Parts:
    """Drain time of the HBM of a B200."""
    return {"B200": drain_s(inputs.hbm, inputs.mem_bw)}


@recomputes("TS-02")
def rubin_drain(inputs: Any) -> Parts:
    """Drain time of Rubin at the lecture's bandwidth and at the announced bandwidth."""
    return {"at 20 TB/s": drain_s(inputs.hbm, inputs.mem_bw), "at 22 TB/s": drain_s(inputs.hbm, inputs.later_bw)}


@recomputes("TS-03")
def drain_by_generation(inputs: Any) -> Parts:
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
def worst_case(inputs: Any) -> Parts:
    """Worst latency: a full wait for the next departure, then the step."""
    return {"worst latency": worst_latency_s(inputs.step_s)}


@recomputes("TS-05")
def mean_wait(inputs: Any) -> Parts:
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
def second_read(inputs: Any) -> Parts:
    """Reads of the full memory in a step longer than the drain time, and in a step that reads weights alone."""
    drain = drain_s(inputs.hbm, inputs.mem_bw)
    weights = latency_floor_s(inputs.total, inputs.weight_byte, inputs.domain_bw)
    return {"reads of the memory": inputs.step_s / drain, "reads by a step of weights alone": weights / drain}


@recomputes("TS-07")
def domain_rate(inputs: Any) -> Parts:
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
def share_of_gemini(inputs: Any) -> Parts:
    """Share of Gemini's traffic that one system serves, at three dates."""
    return {
        name: inputs.tok_per_s / (tokens / inputs.month)
        for name, tokens in (("July 2025", inputs.july), ("May 2025", inputs.may), ("October 2025", inputs.october))
    }


@recomputes("TS-09")
def gemini_traffic(inputs: Any) -> Parts:
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
def balance_against_drain(inputs: Any) -> Parts:
    """Step (weight read time) and rate (compute bound) at the balanced batch, and the model size they imply."""
    step = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)
    balanced = balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)
    implied = bytes_read(inputs.stated_step, inputs.mem_bw)
    return {
        "step at balance": step,
        "tokens/s at balance": balanced / step,
        "weights implied by 128 k tokens/s": implied,
        "active parameters implied": implied / inputs.weight_byte / inputs.board_sparsity,
    }


@recomputes("TS-11")
def balance_with_full_memory(inputs: Any) -> Parts:
    """Balanced batch and MFU when each step reads all of a full memory."""
    balanced = balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)
    weights = inputs.total * inputs.weight_byte
    needed = balanced * inputs.hbm / weights
    return {
        "balanced batch": needed,
        "MFU at 2400": mfu_below_balance(inputs.batch, needed),
        "MFU at the weight-only balance": weights / inputs.hbm,
    }


@recomputes("TS-12")
def user_rate(inputs: Any) -> Parts:
    """Tokens per second per user, and the step of a faster mode."""
    rate = user_tokens_per_s(inputs.step_s)
    fast = rate * inputs.faster
    return {"tokens/s per user": rate, "2.5 times as fast": fast, "its step": inputs.step_s / inputs.faster}


@recomputes("TS-13")
def leaves_anyway(inputs: Any) -> Parts:
    """Mean wait for a nearly empty batch that departs on schedule, and for a batch that departs only when full."""
    rate = train_rate(inputs.load, inputs.step_s, inputs.seats)
    return {
        "mean wait, leaving on the clock": timetable_wait_s(rate, inputs.step_s, inputs.seats),
        "mean wait, leaving when full": filling_wait_s(rate, inputs.seats),
    }
