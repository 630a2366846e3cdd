"""Claims on drain time, departures and rates (TS)."""

from __future__ import annotations

from typing import Any

from headway.laws.balance import balanced_batch, hardware_ratio, mfu_below_balance
from headway.laws.batch_step import latency_floor_s
from headway.laws.capacity import active_params_within, balanced_batch_full_memory, balanced_mfu_full_memory
from headway.laws.compare import relative
from headway.laws.departures import mean_tokens_per_s, share_of_traffic, step_tokens_per_s, user_tokens_per_s, worst_latency_s
from headway.laws.drain import bytes_read, drain_s, memory_reads
from headway.laws.memory import parameter_bytes
from headway.laws.sums import times
from headway.laws.trains import beat_response_s, beat_wait_s, filling_wait_s, timetable_wait_s, train_rate
from headway.ledger.register import Parts, recomputes


@recomputes("TS-01")
def step_is_drain(i: Any) -> Parts:
    """Drain time of the chip that the lecture speaks of."""
    return {"B200": drain_s(i.hbm, i.mem_bw)}


@recomputes("TS-02")
def rubin_drain(i: Any) -> Parts:
    """Drain time at the bandwidth that was said and at the one announced later."""
    return {"at 20 TB/s": drain_s(i.hbm, i.mem_bw), "at 22 TB/s": drain_s(i.hbm, i.later_bw)}


@recomputes("TS-03")
def drain_by_generation(i: Any) -> Parts:
    """Drain time of ten chips."""
    return {
        "A100-40": drain_s(i.a100_40_hbm, i.a100_40_bw),
        "A100-80": drain_s(i.a100_80_hbm, i.a100_80_bw),
        "H100": drain_s(i.h100_hbm, i.h100_bw),
        "H200": drain_s(i.h200_hbm, i.h200_bw),
        "B200": drain_s(i.b200_hbm, i.b200_bw),
        "B300": drain_s(i.b300_hbm, i.b300_bw),
        "Rubin": drain_s(i.rubin_hbm, i.rubin_bw),
        "TPU v5e": drain_s(i.v5e_hbm, i.v5e_bw),
        "TPU v5p": drain_s(i.v5p_hbm, i.v5p_bw),
        "TPU v6e": drain_s(i.v6e_hbm, i.v6e_bw),
    }


@recomputes("TS-04")
def worst_case(i: Any) -> Parts:
    """Wait and ride."""
    return {"worst latency": worst_latency_s(i.step_s)}


@recomputes("TS-05")
def mean_wait(i: Any) -> Parts:
    """Mean wait and response with a seat for all, and the wait of random arrivals that overflow a train now and then."""
    return {
        "mean wait": beat_wait_s(i.step_s),
        "mean wait and ride": beat_response_s(i.step_s),
        "mean wait, 32 seats 90 % full": timetable_wait_s(train_rate(i.load, i.step_s, i.seats), i.step_s, i.seats),
        "mean wait, 4 seats 80 % full": timetable_wait_s(train_rate(i.few_load, i.step_s, i.few_seats), i.step_s, i.few_seats),
    }


@recomputes("TS-06")
def second_read(i: Any) -> Parts:
    """A step longer than the drain, and one that reads weights alone."""
    drain = drain_s(i.hbm, i.mem_bw)
    weights = latency_floor_s(i.total, i.weight_byte, i.domain_bw)
    return {"reads of the memory": memory_reads(i.step_s, drain), "reads by a step of weights alone": memory_reads(weights, drain)}


@recomputes("TS-07")
def domain_rate(i: Any) -> Parts:
    """Tokens per second at the stated beat and at the drain times."""
    return {
        "2,000 at 20 ms": step_tokens_per_s(i.batch, i.step_s),
        "2,000 at 64 steps/s": step_tokens_per_s(i.batch, i.step_64th),
        "2,400 at 64 steps/s": step_tokens_per_s(i.larger_batch, i.step_64th),
        "2,400 at 20 ms": step_tokens_per_s(i.larger_batch, i.step_s),
        "2,000 at 14.4 ms": step_tokens_per_s(i.batch, i.rubin_step_s),
        "2,400 at 14.4 ms": step_tokens_per_s(i.larger_batch, i.rubin_step_s),
    }


@recomputes("TS-08")
def share_of_gemini(i: Any) -> Parts:
    """One system's share of the traffic at three dates."""
    return {
        name: share_of_traffic(i.tok_per_s, mean_tokens_per_s(tokens, i.month))
        for name, tokens in (("July 2025", i.july), ("May 2025", i.may), ("October 2025", i.october))
    }


@recomputes("TS-09")
def gemini_traffic(i: Any) -> Parts:
    """Monthly tokens as a rate."""
    return {
        name: mean_tokens_per_s(tokens, i.month)
        for name, tokens in (("July 2025", i.july), ("May 2025", i.may), ("October 2025", i.october), ("2026", i.next_year))
    }


@recomputes("TS-10")
def balance_against_drain(i: Any) -> Parts:
    """At the balanced batch the step is the weights' read time, and the rate is the compute bound."""
    step = latency_floor_s(i.total, i.weight_byte, i.mem_bw)
    balanced = balanced_batch(hardware_ratio(i.weight_byte, i.peak, i.mem_bw), i.total, i.active)
    implied = bytes_read(i.stated_step, i.mem_bw)
    return {
        "step at balance": step,
        "tokens/s at balance": step_tokens_per_s(balanced, step),
        "weights implied by 128 k tokens/s": implied,
        "active parameters implied": active_params_within(implied, i.weight_byte, i.board_sparsity),
    }


@recomputes("TS-11")
def balance_with_full_memory(i: Any) -> Parts:
    """Balanced batch and MFU when each step reads all of a full memory."""
    balanced = balanced_batch(hardware_ratio(i.weight_byte, i.peak, i.mem_bw), i.total, i.active)
    weights = parameter_bytes(i.total, i.weight_byte)
    needed = balanced_batch_full_memory(balanced, i.hbm, weights)
    return {
        "balanced batch": needed,
        "MFU at 2400": mfu_below_balance(i.batch, needed),
        "MFU at the weight-only balance": balanced_mfu_full_memory(weights, i.hbm),
    }


@recomputes("TS-12")
def user_rate(i: Any) -> Parts:
    """Per-user rate, and the step of a faster mode."""
    rate = user_tokens_per_s(i.step_s)
    fast = times(rate, i.faster)
    return {"tokens/s per user": rate, "2.5 times as fast": fast, "its step": relative(i.step_s, i.faster)}


@recomputes("TS-13")
def leaves_anyway(i: Any) -> Parts:
    """Mean wait of a nearly empty train that leaves on the clock, and of one that would wait until it is full."""
    rate = train_rate(i.load, i.step_s, i.seats)
    return {
        "mean wait, leaving on the clock": timetable_wait_s(rate, i.step_s, i.seats),
        "mean wait, leaving when full": filling_wait_s(rate, i.seats),
    }
