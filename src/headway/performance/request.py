"""Every contract quantity of one model on one machine: the one path from a layout and a load to numbers.

`serve` calls it on grids, `plan` on candidates, `explain` on one point with the recorder on. Glue: the arithmetic is in laws/.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headway.core.quantity import known
from headway.hardware.chip_price import PriceQuote
from headway.hardware.system import System
from headway.laws.economics.cost import cached_token_s, usd_per_mtok_cached, usd_per_mtok_in, usd_per_mtok_out
from headway.laws.serving.replicas import interleaved_tpot_s, utilisation
from headway.laws.serving.request import (
    causal_pairs,
    decode_tok_per_s,
    e2e_s,
    final_context,
    held_kv_tokens,
    in_flight,
    interval_high,
    interval_low,
    lane_tokens,
    middle_context,
    missed_pairs,
    missed_tokens,
    per_chip,
    prefill_lanes,
    request_s,
    requests_per_s,
    speculative_s,
    sustained_tok_per_s,
    tpot_s,
    user_tok_per_s,
)
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.layer_terms import idle_chips, used_chips
from headway.laws.step.memory import (
    cached_bytes_per_token,
    fits,
    fits_chips,
    fits_hbm,
    kv_bytes_chip,
    rank_sequence_limit,
    sequence_bytes,
    sequences_held,
    usable_hbm,
)
from headway.laws.step.parts import rank_sequences
from headway.laws.step.step import compute_floor_s, compute_s, kv_s, network_s, overhead_s, step_floor_s, step_s, weights_s
from headway.performance.achieved import spread
from headway.performance.assumptions import Assumptions
from headway.performance.compile import ModelWork, StepModel, compile_layout
from headway.performance.formats import Formats
from headway.performance.layout import Layout
from headway.performance.workload import Load

NO_PROMPT = known(0.0, "no prompt", "token", "constant", "a decode step prefills nothing")
NO_SEQUENCES = known(0, "no sequences", "", "constant", "an unloaded prefill decodes nothing")
ONE_RANK = known(1, "one rank", "", "constant", "a single prompt is prefilled by one data-parallel rank")


ENDS = ("expected", "floor", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A time with its floor and interval."""

    expected: Any
    floor: Any
    low: Any
    high: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Model, machine, layout and load of an estimate; numbers are scalars or arrays."""

    work: ModelWork
    system: System
    layout: Layout
    load: Load
    assumptions: Assumptions
    formats: Formats
    price: PriceQuote | None


def estimate(case: Deployment) -> dict[str, Any]:
    """Contract key -> value, each at its own rank; None where a quantity does not apply."""
    compiled = compile_layout(case.work, case.system, case.layout, case.assumptions, case.formats)
    return _chips(case, compiled) | _times(case, compiled) | _memory(case, compiled)


def _chips(case: Deployment, compiled: StepModel) -> dict[str, Any]:
    chips, replicas = case.system.chips, case.layout.replicas
    chips_used = used_chips(compiled.chips, replicas)
    return {
        "chips": chips,
        "chips_idle": idle_chips(chips, chips_used),
        "chips_used": chips_used,
        "concurrency": in_flight(case.load.batch, replicas),
    }


def _times(case: Deployment, compiled: StepModel) -> dict[str, Any]:
    load = case.load
    requests = load.prompt is not None
    context = middle_context(load.prompt, load.output) if requests else load.context
    prompt = load.prompt if requests else load.context
    step = _step(case, compiled, context)
    tokens, pairs = prefilled(prompt, case.assumptions)
    first_token = ttft(case, compiled, tokens, pairs)
    out = {"context": context, **_flat("step", step), **_flat("ttft", first_token), **_parts(case, compiled, context)}
    if not requests:
        return out | _decode_rates(case, _emitted(case, compiled, context, step))
    output_token = tpot(case, compiled, context, step)
    prefill = _prefill(case, compiled.step, lane_tokens(tokens, case.layout.dp), lane_tokens(pairs, case.layout.dp))
    out |= _flat("tpot", output_token) | {"e2e_s": e2e_s(first_token.expected, output_token.expected, load.output)}
    out |= _decode_rates(case, output_token) | _sustained(case, output_token, prefill)
    return out | _money(case, compiled, output_token, prefill, tokens)


def ttft(case: Deployment, compiled: StepModel, tokens: Any, pairs: Any) -> Estimate:
    """Time to first token, unloaded: one prompt prefilled by one data-parallel rank."""
    return _prefill(case, replace(compiled.step, prefill_ranks=ONE_RANK), tokens, pairs)


def tpot(case: Deployment, compiled: StepModel, context: Any, step: Estimate) -> Estimate:
    """Time per output token: the mean step while the context grows over the answer; `step` is the one at its middle, `context`."""
    load = case.load
    first, last = _step(case, compiled, load.prompt), _step(case, compiled, final_context(load.prompt, load.output))
    mean = Estimate(**{key: tpot_s(*(getattr(span, key) for span in (first, step, last))) for key in ENDS})
    return _emitted(case, compiled, context, mean)


def prefilled(prompt: Any, assumptions: Assumptions) -> tuple[Any, Any]:
    """Prompt tokens to prefill and their (query, key) pairs; a step reads the KV of the hit tokens, which is in HBM."""
    if not assumptions.hit_rate:
        return prompt, causal_pairs(prompt)
    return missed_tokens(prompt, assumptions.hit_rate), missed_pairs(prompt, assumptions.hit_rate)


def _cache_link(case: Deployment) -> Any:
    """Bandwidth at which a prefix that is kept outside HBM is loaded: the chip's link to its host, or its HBM where none is published."""
    chip = case.system.chip
    return chip.host_link_bw if chip.host_link_bw is not None else chip.need("hbm_bw")


def speculates(assumptions: Assumptions) -> bool:
    """Whether a step may yield several tokens (speculative decoding)."""
    return assumptions.accept_length != 1 or bool(assumptions.draft_cost)


def emitted(step: Any, arithmetic: Any, assumptions: Assumptions) -> Any:
    """Time per token of steps that yield several tokens."""
    return speculative_s(step, arithmetic, assumptions.accept_length, assumptions.draft_cost)


def _emitted(case: Deployment, compiled: StepModel, context: Any, step: Estimate) -> Estimate:
    assumptions, c = case.assumptions, compiled.step
    if not speculates(assumptions):
        return step
    at = (c, case.load.batch, held_kv_tokens(case.load.batch, context))
    expected, least = compute_s(*at), compute_floor_s(*at)
    bounds = {"expected": expected, "high": expected, "floor": least, "low": least}
    return Estimate(**{key: emitted(getattr(step, key), bounds[key], assumptions) for key in ENDS})


def _step(case: Deployment, compiled: StepModel, context: Any) -> Estimate:
    batch, tokens = case.load.batch, held_kv_tokens(case.load.batch, context)
    expected = step_s(compiled.step, batch, tokens, NO_PROMPT, NO_PROMPT)
    floor = step_floor_s(compiled.step, batch, tokens, NO_PROMPT, NO_PROMPT)
    return _interval(case, expected, floor, "decode")


def _prefill(case: Deployment, c: StepCoefficients, tokens: Any, pairs: Any) -> Estimate:
    """Time of a step that only prefills."""
    prompt = (c, NO_SEQUENCES, NO_PROMPT, tokens, pairs)
    return _interval(case, step_s(*prompt), step_floor_s(*prompt), "prefill")


def _interval(case: Deployment, expected: Any, floor: Any, quantity: str) -> Estimate:
    factor = spread(case.system.chip, bool(case.work.moes), case.assumptions, quantity)
    return Estimate(expected=expected, floor=floor, low=interval_low(expected, floor, factor), high=interval_high(expected, factor))


def _flat(stem: str, span: Estimate) -> dict[str, Any]:
    return {f"{stem}_s": span.expected, f"{stem}_floor_s": span.floor, f"{stem}_lo_s": span.low, f"{stem}_hi_s": span.high}


def _parts(case: Deployment, compiled: StepModel, context: Any) -> dict[str, Any]:
    c, batch = compiled.step, case.load.batch
    tokens = held_kv_tokens(batch, context)
    return {
        "compute_s": compute_s(c, batch, tokens),
        "weights_s": weights_s(c, batch),
        "kv_s": kv_s(c, batch, tokens),
        "network_s": network_s(c, batch),
        "overhead_s": overhead_s(c, batch),
    }


def _decode_rates(case: Deployment, step: Estimate) -> dict[str, Any]:
    batch, replicas = case.load.batch, case.layout.replicas
    rates = [decode_tok_per_s(batch, time, replicas) for time in (step.expected, step.high, step.low)]
    ends = ("", "_lo", "_hi")
    out: dict[str, Any] = {"tok_per_s_user": user_tok_per_s(step.expected)}
    out |= {f"decode_tok_per_s{end}": rate for end, rate in zip(ends, rates, strict=True)}
    return out | {f"tok_per_s_chip{end}": per_chip(rate, case.system.chips) for end, rate in zip(ends, rates, strict=True)}


def _sustained(case: Deployment, tpot: Estimate, prefill: Estimate) -> dict[str, Any]:
    load, layout = case.load, case.layout
    lanes = prefill_lanes(layout.dp, layout.pp)
    out: dict[str, Any] = {}
    for end, decode, prompt in (("", tpot.expected, prefill.expected), ("_lo", tpot.high, prefill.high), ("_hi", tpot.low, prefill.low)):
        request = request_s(load.batch, load.output, decode, prompt, lanes)
        rate = sustained_tok_per_s(load.output, request, layout.replicas)
        out[f"prefill_s{end}"] = prompt
        out |= {f"request_s{end}": request, f"tok_per_s{end}": rate, f"tok_per_s_chip{end}": per_chip(rate, case.system.chips)}
    out["tpot_interleaved_s"] = interleaved_tpot_s(load.batch, out["request_s"], load.output)
    out["capacity_req_per_s"] = requests_per_s(out["request_s"], layout.replicas)
    if load.rate is not None:
        out |= {"rate": load.rate, "utilisation": utilisation(load.rate, out["capacity_req_per_s"])}
    return out


def _money(case: Deployment, compiled: StepModel, tpot: Estimate, prefill: Estimate, tokens: Any) -> dict[str, Any]:
    """Cost per million tokens; its interval covers the interval of the times and the range of the price."""
    price, load, layout, chips = case.price, case.load, case.layout, case.system.chips
    if price is None:
        return {}
    prefix = sequence_bytes(compiled.stores, compiled.state_bytes, load.prompt)
    reload = cached_token_s(cached_bytes_per_token(prefix, compiled.stage, layout.cp, load.prompt), _cache_link(case))
    lanes = prefill_lanes(layout.dp, layout.pp)
    out: dict[str, Any] = {}
    for end, usd, decode, prompt in (
        ("", price.value, tpot.expected, prefill.expected),
        ("_lo", price.low, tpot.low, prefill.low),
        ("_hi", price.high, tpot.high, prefill.high),
    ):
        out[f"usd_per_mtok_in{end}"] = usd_per_mtok_in(usd, chips, prompt, tokens, lanes, layout.replicas)
        out[f"usd_per_mtok_cached{end}"] = usd_per_mtok_cached(usd, chips, reload, layout.dp, layout.replicas)
        out[f"usd_per_mtok_out{end}"] = usd_per_mtok_out(usd, chips, decode, load.batch, layout.replicas)
    return out


def _memory(case: Deployment, compiled: StepModel) -> dict[str, Any]:
    load, layout = case.load, case.layout
    context = final_context(load.prompt, load.output) if load.prompt is not None else load.context
    sequence_size = sequence_bytes(compiled.stores, compiled.state_bytes, context)
    sequences = sequences_held(rank_sequences(load.batch, layout.dp, layout.pp), layout.pp)
    kv = kv_bytes_chip(sequences, sequence_size, compiled.stage, layout.cp)
    chips_used = used_chips(compiled.chips, layout.replicas)
    usable = usable_hbm(case.system.chip.need("hbm"), case.assumptions.hbm_utilization)
    return {
        "weights_bytes_chip": compiled.weights_bytes,
        "kv_bytes_chip": kv,
        "hbm_bytes_chip": usable,
        "fits": fits(fits_hbm(compiled.weights_bytes, kv, usable), fits_chips(chips_used, case.system.chips)),
        "sequence_limit": rank_sequence_limit(usable, compiled.weights_bytes, sequence_size, compiled.stage, layout.cp),
    }
