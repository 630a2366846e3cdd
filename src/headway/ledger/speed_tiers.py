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


def _balanced(inputs: Any) -> Any:
    return balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)


def _step(inputs: Any, batch: Any, mem_bw: Any) -> Any:
    """A step without KV."""
    return roofline_s(batch_compute_s(batch, inputs.active, inputs.peak), latency_floor_s(inputs.total, inputs.weight_byte, mem_bw))


@recomputes("FM-01")
def price_of_fast_mode(inputs: Any) -> Parts:
    """List prices, fast over standard."""
    return {
        "input": relative(inputs.fast_input, inputs.standard_input),
        "output": relative(inputs.fast_output, inputs.standard_output),
        "a later model's": relative(inputs.later_fast, inputs.later_standard),
    }


@recomputes("FM-02")
def batches_behind_the_prices(inputs: Any) -> Parts:
    """The ratio of batches, and that the identity holds for two steps of the step model, KV included."""
    steps = {
        name: overlapped_step_s(
            batch_compute_s(batch, inputs.active, inputs.peak),
            latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw),
            batch_kv_s(batch, inputs.context, inputs.kv_bytes, inputs.mem_bw),
        )
        for name, batch in (("fast", inputs.small), ("slow", inputs.large))
    }
    price = relative(machine_s_per_token(steps["fast"], inputs.small), machine_s_per_token(steps["slow"], inputs.large))
    ratio = batch_ratio_identity(price, relative(steps["slow"], steps["fast"]))
    return {
        "slow batch over fast batch": batch_ratio_identity(inputs.price_ratio, inputs.speed_ratio),
        "identity over the batches themselves": relative(ratio, relative(inputs.large, inputs.small)),
    }


@recomputes("FM-03")
def closed_solution(inputs: Any) -> Parts:
    """Both batches over the balanced one, and the speed and price that the step model gives them."""
    balanced = _balanced(inputs)
    standard, fast = closed_standard_batch(inputs.speed_ratio, balanced), closed_fast_batch(inputs.price_ratio, balanced)
    slow_step, fast_step = _step(inputs, standard, inputs.mem_bw), _step(inputs, fast, inputs.mem_bw)
    return {
        "standard batch over balanced": relative(standard, balanced),
        "fast batch over balanced": relative(fast, balanced),
        "speed by the step model": relative(slow_step, fast_step),
        "price by the step model": relative(machine_s_per_token(fast_step, fast), machine_s_per_token(slow_step, standard)),
        "fast step over the latency floor": relative(fast_step, latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)),
        "fast batch": fast,
    }


@recomputes("FM-04")
def floor_of_speed(inputs: Any) -> Parts:
    """Speed over the standard tier's at a hundredth of the balanced batch: on this machine, and with twice the bandwidth."""
    balanced = _balanced(inputs)
    standard = _step(inputs, closed_standard_batch(inputs.speed_ratio, balanced), inputs.mem_bw)
    least = closed_fast_batch(inputs.price_ratio, balanced)
    return {
        "speed at 100 times the price": relative(standard, _step(inputs, least, inputs.mem_bw)),
        "speed with twice the bandwidth": relative(standard, _step(inputs, least, times(inputs.mem_bw, inputs.twice))),
    }


@recomputes("FM-05")
def slow_mode_saves(inputs: Any) -> Parts:
    """Machine time of a token at the best over that of a tier above the balanced batch; the share saved from two smaller batches."""

    def best_and_actual(batch: Any, context: Any) -> tuple[Any, Any]:
        kv = batch_kv_s(batch, context, inputs.kv_bytes, inputs.mem_bw)
        step = overlapped_step_s(
            batch_compute_s(batch, inputs.active, inputs.peak), latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw), kv
        )
        floor = machine_s_per_token_floor(
            compute_s_per_token(inputs.active, inputs.peak), kv_s_per_token(context, inputs.kv_bytes, inputs.mem_bw)
        )
        return floor, machine_s_per_token(step, batch)

    balanced = _balanced(inputs)
    best, standard = best_and_actual(closed_standard_batch(inputs.speed_ratio, balanced), inputs.short)
    below, busy = best_and_actual(closed_fast_batch(inputs.half, balanced), inputs.short), best_and_actual(inputs.batch, inputs.context)
    return {
        "cheapest over standard, above the balanced batch": relative(best, standard),
        "saved, at half the balanced batch": slow_tier_saving(below[1], below[0]),
        "saved, 2,400 sequences of 8k": slow_tier_saving(busy[1], busy[0]),
    }


@recomputes("FM-06")
def drafts_as_a_lever(inputs: Any) -> Parts:
    """Tokens that a step yields with one draft, and what drafts did to a measured cost at one speed."""
    return {
        "tokens per step, one draft": total((inputs.own, inputs.accepted)),
        "cost without drafts over with": relative(inputs.usd_without, inputs.usd_with),
    }
