"""Claims on fast and slow mode: a price multiple, a speed multiple and the batches behind them (FM)."""

from __future__ import annotations

from typing import Any

from headway.laws.balance import balanced_batch, compute_s_per_token, hardware_ratio, kv_s_per_token
from headway.laws.batch_step import batch_compute_s, batch_kv_s, latency_floor_s, overlapped_step_s, roofline_s
from headway.laws.compare import relative
from headway.laws.cost import machine_s_per_token, machine_s_per_token_floor, slow_tier_saving
from headway.laws.speed import batch_ratio_identity, closed_fast_batch, closed_standard_batch
from headway.laws.sums import times, total
from headway.ledger.register import Parts, recomputes


def _balanced(i: Any) -> Any:
    return balanced_batch(hardware_ratio(i.weight_byte, i.peak, i.mem_bw), i.total, i.active)


def _step(i: Any, batch: Any, mem_bw: Any) -> Any:
    """A step without KV."""
    return roofline_s(batch_compute_s(batch, i.active, i.peak), latency_floor_s(i.total, i.weight_byte, mem_bw))


@recomputes("FM-01")
def price_of_fast_mode(i: Any) -> Parts:
    """List prices, fast over standard."""
    return {
        "input": relative(i.fast_input, i.standard_input),
        "output": relative(i.fast_output, i.standard_output),
        "a later model's": relative(i.later_fast, i.later_standard),
    }


@recomputes("FM-02")
def batches_behind_the_prices(i: Any) -> Parts:
    """The ratio of batches, and that the identity holds for two steps of the step model, KV included."""
    steps = {name: overlapped_step_s(batch_compute_s(batch, i.active, i.peak), latency_floor_s(i.total, i.weight_byte, i.mem_bw),
                                     batch_kv_s(batch, i.context, i.kv_bytes, i.mem_bw))
             for name, batch in (("fast", i.small), ("slow", i.large))}  # fmt: skip
    price = relative(machine_s_per_token(steps["fast"], i.small), machine_s_per_token(steps["slow"], i.large))
    found = batch_ratio_identity(price, relative(steps["slow"], steps["fast"]))
    return {
        "slow batch over fast batch": batch_ratio_identity(i.price_ratio, i.speed_ratio),
        "identity over the batches themselves": relative(found, relative(i.large, i.small)),
    }


@recomputes("FM-03")
def closed_solution(i: Any) -> Parts:
    """Both batches over the balanced one, and the speed and price that the step model gives them."""
    balanced = _balanced(i)
    standard, fast = closed_standard_batch(i.speed_ratio, balanced), closed_fast_batch(i.price_ratio, balanced)
    slow_step, fast_step = _step(i, standard, i.mem_bw), _step(i, fast, i.mem_bw)
    return {
        "standard batch over balanced": relative(standard, balanced),
        "fast batch over balanced": relative(fast, balanced),
        "speed by the step model": relative(slow_step, fast_step),
        "price by the step model": relative(machine_s_per_token(fast_step, fast), machine_s_per_token(slow_step, standard)),
        "fast step over the latency floor": relative(fast_step, latency_floor_s(i.total, i.weight_byte, i.mem_bw)),
        "fast batch": fast,
    }


@recomputes("FM-04")
def floor_of_speed(i: Any) -> Parts:
    """Speed over the standard tier's at a hundredth of the balanced batch: on this machine, and with twice the bandwidth."""
    balanced = _balanced(i)
    standard = _step(i, closed_standard_batch(i.speed_ratio, balanced), i.mem_bw)
    least = closed_fast_batch(i.price_ratio, balanced)
    return {
        "speed at 100 times the price": relative(standard, _step(i, least, i.mem_bw)),
        "speed with twice the bandwidth": relative(standard, _step(i, least, times(i.mem_bw, i.twice))),
    }


@recomputes("FM-05")
def slow_mode_saves(i: Any) -> Parts:
    """Machine time of a token at the best over that of a tier above the balanced batch; the share saved from two smaller batches."""

    def best_and_own(batch: Any, context: Any) -> tuple[Any, Any]:
        kv = batch_kv_s(batch, context, i.kv_bytes, i.mem_bw)
        step = overlapped_step_s(batch_compute_s(batch, i.active, i.peak), latency_floor_s(i.total, i.weight_byte, i.mem_bw), kv)
        floor = machine_s_per_token_floor(compute_s_per_token(i.active, i.peak), kv_s_per_token(context, i.kv_bytes, i.mem_bw))
        return floor, machine_s_per_token(step, batch)

    balanced = _balanced(i)
    best, own = best_and_own(closed_standard_batch(i.speed_ratio, balanced), i.short)
    below, busy = best_and_own(closed_fast_batch(i.half, balanced), i.short), best_and_own(i.batch, i.context)
    return {
        "cheapest over standard, above the balanced batch": relative(best, own),
        "saved, at half the balanced batch": slow_tier_saving(below[1], below[0]),
        "saved, 2,400 sequences of 8k": slow_tier_saving(busy[1], busy[0]),
    }


@recomputes("FM-06")
def drafts_as_a_lever(i: Any) -> Parts:
    """Tokens that a step yields with one draft, and what drafts did to a measured cost at one speed."""
    return {
        "tokens per step, one draft": total((i.own, i.accepted)),
        "cost without drafts over with": relative(i.usd_without, i.usd_with),
    }
