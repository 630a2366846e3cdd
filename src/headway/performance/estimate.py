"""Every contract quantity of one deployment at a load: the one path from a layout and a load to the numbers of a row.

`serve` calls it on grids, `plan` on candidates, `explain` on one point with the recorder on. Glue: the arithmetic is in laws/, what a
request meets is in performance/request.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.hardware.chip_price import PriceQuote
from headway.hardware.system import System
from headway.laws.economics.cost import (
    cached_token_s,
    end_factor,
    full_load_usd,
    hour_usd,
    log_even_quantile,
    lower_end,
    month_usd,
    upper_end,
    usd_per_mtok_cached,
    usd_per_mtok_in,
    usd_per_mtok_out,
)
from headway.laws.queueing.closed_loop import LoopTimes, token_times
from headway.laws.serving.replicas import answer_token_s, between_s, cached_load_s, prompt_taken_s, share_beside_loads, utilisation
from headway.laws.serving.request import (
    decode_tok_per_s,
    e2e_s,
    interval_low,
    middle_context,
    rate_high,
    user_tok_per_s,
)
from headway.laws.step.layer_terms import idle_chips
from headway.laws.step.memory import (
    fits,
    fits_chips,
    fits_hbm,
    kv_bytes_chip,
    rank_sequence_limit,
    resident_sequences,
    sequence_bytes,
)
from headway.laws.step.step import compute_s, kv_s, network_s, overhead_s, step_floor_s, step_s, weights_s
from headway.models.work import ModelWork
from headway.performance import request
from headway.performance.achieved import efficiencies, spread
from headway.performance.assumptions import UTILIZATION, Assumptions
from headway.performance.compile import StepModel, compile_layout
from headway.performance.formats import Formats
from headway.performance.layout import Layout
from headway.performance.request import NO_WORK, SINGLE, MemoryRoom, Requests, Server, ideal_scheduling, scheduling, transfer_link
from headway.performance.workload import Load

ONE_RANK = known(1, "one rank", "", "constant", "a single prompt is prefilled by one data-parallel rank")
ENDS = ("", "_lo", "_hi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A time with its floor and 90 % interval."""

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
    compiled = compiled_case(case)
    if case.load.prompt is None:
        return chips_of(case, compiled) | _decode_step(case, compiled) | memory_of(case, compiled, case.load.batch)
    served = served_times(case, compiled)
    return chips_of(case, compiled) | _request(case, compiled, served) | memory_of(case, compiled, _sequences(case, served))


def compiled_case(case: Deployment) -> StepModel:
    """The step model of a deployment; a context without a request is prefilled as one prompt."""
    prompt = case.load.context if case.load.prompt is None else case.load.prompt
    return compile_layout(case.work, case.system, case.layout, case.assumptions, case.formats, prompt=prompt)


def server_of(case: Deployment, compiled: StepModel) -> Server:
    """The server of a deployment: its step, memory, engine and speculation."""
    assumptions, chip = case.assumptions, case.system.chip
    rules = scheduling(assumptions.engine, chip, efficiencies()) if assumptions.overlap == "fitted" else ideal_scheduling()
    share = assumptions.hbm_utilization / UTILIZATION
    return Server(
        step=compiled.step,
        room=MemoryRoom(
            weights=compiled.weights_bytes, hbm=chip.need('hbm') * share, stores=compiled.stores, state=compiled.state_bytes,
            stage=compiled.stage,
        ),
        scheduling=rules, replicas=case.layout.replicas, chips=case.system.chips, instance=compiled.chips, tp=case.layout.tp,
        link=transfer_link(case.system), accept_length=assumptions.accept_length, draft_cost=assumptions.draft_cost,
    )  # fmt: skip


def requests_of(case: Deployment) -> Requests:
    """The requests of a deployment's load."""
    return Requests(prompt=case.load.prompt, output=case.load.output, hit_rate=case.assumptions.hit_rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTimes:
    """A load on a deployment: expected times and those at the floor."""

    server: Server
    requests: Requests
    expected: LoopTimes
    engine_floor: LoopTimes  # kernels at datasheet rates, scheduled as by the engine
    ideal: LoopTimes  # and by a scheduler without overhead
    least_ttft: Any  # of a request alone
    capacity: Any  # requests per second of one replica


def throughput_of(case: Deployment) -> dict[str, Any]:
    """Chips used, TPOT and time between requests of a deployment at its load: what an objective needs of `estimate`, without its floors."""
    compiled = compiled_case(case)
    server, requests = server_of(case, compiled), requests_of(case)
    expected = _runs(case, requests)(server)
    rate = expected.rate if case.load.rate is None else np.minimum(expected.rate, request.capacity(server, requests))
    return {**chips_of(case, compiled), "tpot_s": expected.tpot, "request_s": between_s(rate)}


def _runs(case: Deployment, requests: Requests) -> Callable[..., LoopTimes]:
    """The load as a function of the server: a closed loop of `batch` users per replica, or arrivals at `rate`."""
    load = case.load
    if load.rate is None:
        return functools.partial(request.closed_loop, requests=requests, users=load.batch)
    return functools.partial(request.open_loop, requests=requests, rate=load.rate / case.layout.replicas)


def served_times(case: Deployment, compiled: StepModel) -> ServedTimes:
    """The load of a deployment, expected and at its floors."""
    server, requests = server_of(case, compiled), requests_of(case)
    ideal, runs = server.ideal(), _runs(case, requests)
    expected = runs(server)
    most = expected.rate if case.load.rate is None else request.capacity(server, requests)
    return ServedTimes(
        server=server, requests=requests, expected=expected, engine_floor=runs(server, law=step_floor_s),
        ideal=runs(ideal, law=step_floor_s), least_ttft=request.unloaded_ttft_s(ideal, requests, step_floor_s), capacity=most,
    )  # fmt: skip


def chips_of(case: Deployment, compiled: StepModel) -> dict[str, Any]:
    chips, replicas = case.system.chips, case.layout.replicas
    chips_used = compiled.chips * replicas
    return {"chips": chips, "chips_idle": idle_chips(chips, chips_used), "chips_used": chips_used}


def _sequences(case: Deployment, served: ServedTimes) -> Any:
    """Sequences of a replica whose KV cache must fit: the users of a closed loop, those in service of an open one."""
    return case.load.batch if case.load.rate is None else served.expected.in_service


def _decode_step(case: Deployment, compiled: StepModel) -> dict[str, Any]:
    """Quantities of decode steps at one context, and of the prefill of as many tokens; no whole request."""
    load, context = case.load, case.load.context
    step = step_at(case, compiled, load.batch, context)
    token = _emitted(case, compiled, load.batch, context, step)
    rates = [decode_tok_per_s(load.batch, time, case.layout.replicas) for time in (token.expected, token.high, token.low)]
    alone = replace(case, load=replace(load, prompt=context, output=SINGLE))
    server, requests = server_of(case, compiled), requests_of(alone)
    first = timed(
        case,
        request.unloaded_ttft_s(server, requests, step_s),
        request.unloaded_ttft_s(server.ideal(), requests, step_floor_s),
        "ttft",
    )
    out = {"context": context, "concurrency": load.batch * case.layout.replicas, **flat("step", step)}
    out |= {**flat("ttft", first), "ttft_unloaded_s": first.expected, **step_parts(compiled, load.batch, context)}
    out |= {f"decode_tok_per_s{end}": rate for end, rate in zip(ENDS, rates, strict=True)}
    out |= {f"tok_per_s_chip{end}": rate / case.system.chips for end, rate in zip(ENDS, rates, strict=True)}
    return out | {"tok_per_s_user": user_tok_per_s(token.expected)}


def _request(case: Deployment, compiled: StepModel, served: ServedTimes) -> dict[str, Any]:
    """Quantities of requests at a load."""
    load, times_at, replicas = case.load, served.expected, case.layout.replicas
    batch = load.batch if load.rate is None else times_at.decoding
    context = middle_context(load.prompt, load.output)
    seat_share = _seat_share(case, served)
    alone = request.unloaded_ttft_s(served.server, served.requests, step_s)
    ttft = timed(case, times_at.ttft, served.least_ttft, "ttft", seat_share, 1 - np.minimum(alone / times_at.ttft, 1))
    tpot = timed(case, times_at.tpot, _least_tpot(served), "tpot", seat_share)
    flying = load.batch if load.rate is None else times_at.in_service
    out = {"context": context, "concurrency": flying * replicas, **flat("step", step_at(case, compiled, batch, context))}
    out |= step_parts(compiled, batch, context)
    out |= {**flat("ttft", ttft), **flat("tpot", tpot), "tpot_decode_s": times_at.decode}
    out |= {"ttft_unloaded_s": alone}
    out |= {"e2e_s": e2e_s(ttft.expected, tpot.expected, load.output), "decoding": times_at.decoding}
    out["tok_per_s_user"] = user_tok_per_s(tpot.expected)
    decode = timed(case, times_at.decode, served.engine_floor.decode, "decode")
    ends = zip(ENDS, (decode.expected, decode.high, decode.low), strict=True)
    out |= {f"decode_tok_per_s{end}": decode_tok_per_s(batch, time, replicas) for end, time in ends}
    return out | _rates(case, served, seat_share) | _money(case, compiled, served, seat_share)


def _seat_share(case: Deployment, served: ServedTimes) -> Any:
    """Share of the seats that the users of a closed loop take; None for arrivals at a rate."""
    if case.load.rate is not None:
        return None
    seats = served.server.seats(served.requests.prompt, served.requests.output)
    return np.minimum(case.load.batch / np.maximum(seats, SINGLE), 1)


def _least_tpot(served: ServedTimes) -> Any:
    """TPOT at the floor: of the engine's scheduling or of an ideal one, whichever is less."""
    return np.minimum(served.engine_floor.tpot, served.ideal.tpot)


def _rates(case: Deployment, served: ServedTimes, seat_share: Any) -> dict[str, Any]:
    load, replicas, chips = case.load, case.layout.replicas, case.system.chips
    out: dict[str, Any] = {}
    for end, rate in zip(ENDS, _rate_ends(case, served, seat_share), strict=True):
        tokens = rate * replicas * load.output
        out |= {f"request_s{end}": between_s(rate), f"tok_per_s{end}": tokens, f"tok_per_s_chip{end}": tokens / chips}
    out["capacity_req_per_s"] = served.capacity * replicas
    if load.rate is not None:
        out |= {"rate": load.rate, "utilisation": utilisation(load.rate, out["capacity_req_per_s"])}
    return out


def _rate_ends(case: Deployment, served: ServedTimes, seat_share: Any) -> tuple[Any, Any, Any]:
    """Requests per second of one replica: expected, and the ends of the interval; an open loop completes what arrives."""
    rate = served.expected.rate
    if case.load.rate is not None:
        carried = np.minimum(rate, served.capacity)
        return carried, carried, carried
    most = np.maximum(served.engine_floor.rate, served.ideal.rate)
    return rate, rate / _factor(case, "tpot", seat_share), rate_high(rate, most, _factor(case, "tpot"))


def _money(case: Deployment, compiled: StepModel, served: ServedTimes, seat_share: Any) -> dict[str, Any]:
    """Cost per million tokens at this load; its interval covers the interval of the times and the range of the price."""
    price, load, layout, chips = case.price, case.load, case.layout, case.system.chips
    if price is None:
        return {}
    fresh, _ = request.prefilled(load.prompt, case.assumptions.hit_rate)
    prefix = sequence_bytes(compiled.stores, compiled.state_bytes, load.prompt)
    reload = cached_token_s(prefix * compiled.stage / layout.cp / load.prompt, _cache_link(case))
    expected, low, high = (between_s(rate) for rate in _rate_ends(case, served, seat_share))
    at = served.expected
    times = TokenTimes(
        request=(expected, high, low), prompt=prompt_taken_s(expected, at.prompt, at.decode, at.decoding, load.output), load=reload,
        ranks=layout.dp, fresh=fresh, cached=load.prompt - fresh, output=load.output,
    )  # fmt: skip
    out = token_costs(times, price, chips, layout.replicas)
    busy = None if load.rate is None else utilisation(load.rate, served.capacity * layout.replicas)
    return out | machine_usd(price, chips, out["usd_per_mtok_out"], busy)


def _cache_link(case: Deployment) -> Any:
    """Bandwidth at which a prefix that is kept outside HBM is loaded: the chip's link to its host, or its HBM where none is published."""
    chip = case.system.chip
    return chip.host_link_bw if chip.host_link_bw is not None else chip.need("hbm_bw")


def step_at(case: Deployment, compiled: StepModel, batch: Any, context: Any) -> Estimate:
    tokens = batch * context
    expected, floor = (law(compiled.step, batch, tokens, NO_WORK, NO_WORK) for law in (step_s, step_floor_s))
    return timed(case, expected, floor, "decode")


def _emitted(case: Deployment, compiled: StepModel, batch: Any, context: Any, step: Estimate) -> Estimate:
    """Time per token of steps that may yield several tokens."""
    at = (batch, batch * context)
    laws = {"expected": step_s, "floor": step_floor_s, "low": step_floor_s, "high": step_s}
    speculation = case.assumptions.accept_length, case.assumptions.draft_cost
    return Estimate(**{end: token_times(compiled.step, law, *speculation)(*at, getattr(step, end)) for end, law in laws.items()})


def _factor(case: Deployment, quantity: str, seat_share: Any = None, queued: Any = None) -> Any:
    """Half of the 90 % interval as a factor; towards slower, wider by the share of the seats taken; of a TTFT, by that of others."""
    return spread(case.system.chip, bool(case.work.moes), case.assumptions, quantity, seat_share, queued)


def timed(case: Deployment, expected: Any, floor: Any, quantity: str, seat_share: Any = None, queued: Any = None) -> Estimate:
    low = interval_low(expected, floor, _factor(case, quantity, queued=queued))
    return Estimate(expected=expected, floor=floor, low=low, high=expected * _factor(case, quantity, seat_share, queued))


def flat(stem: str, span: Estimate) -> dict[str, Any]:
    return {f"{stem}_s": span.expected, f"{stem}_floor_s": span.floor, f"{stem}_lo_s": span.low, f"{stem}_hi_s": span.high}


def step_parts(compiled: StepModel, batch: Any, context: Any) -> dict[str, Any]:
    c, tokens = compiled.step, batch * context
    return {
        "compute_s": compute_s(c, batch, tokens), "weights_s": weights_s(c, batch), "kv_s": kv_s(c, batch, tokens),
        "network_s": network_s(c, batch), "overhead_s": overhead_s(c, batch),
    }  # fmt: skip


def memory_of(case: Deployment, compiled: StepModel, batch: Any) -> dict[str, Any]:
    """Memory of the fullest chip: users of a closed loop at their last token; arrivals as they are on average, and one that must fit.

    An engine admits arrivals while they fit, so that more of them wait and none overflows.
    """
    load, layout = case.load, case.layout
    context = load.prompt + load.output if load.prompt is not None else load.context
    sequence_size = sequence_bytes(compiled.stores, compiled.state_bytes, context)
    kv = needed = _kv_bytes(case, compiled, batch, sequence_size)
    if load.rate is not None:
        needed = _kv_bytes(case, compiled, SINGLE, sequence_size)
        mean = sequence_bytes(compiled.stores, compiled.state_bytes, middle_context(load.prompt, load.output))
        kv = _kv_bytes(case, compiled, batch, mean)
    chips_used = compiled.chips * layout.replicas
    usable = case.system.chip.need("hbm") * case.assumptions.hbm_utilization
    return {
        "weights_bytes_chip": compiled.weights_bytes,
        "kv_bytes_chip": kv,
        "hbm_bytes_chip": usable,
        "fits": fits(fits_hbm(compiled.weights_bytes, needed, usable), fits_chips(chips_used, case.system.chips)),
        "sequence_limit": rank_sequence_limit(usable, compiled.weights_bytes, sequence_size, compiled.stage, layout.cp),
    }


def _kv_bytes(case: Deployment, compiled: StepModel, batch: Any, sequence_size: Any) -> Any:
    """KV bytes of the fullest chip under `batch` sequences of a replica."""
    return kv_bytes_chip(resident_sequences(batch, case.layout.dp), sequence_size, compiled.stage, case.layout.cp)


LOW = known(0.05, "5 % point", "", "constant", "lower end of a 90 % interval")
HIGH = known(0.95, "95 % point", "", "constant", "upper end of a 90 % interval")
ONE_LANE = known(1, "prompts at once", "", "constant", "the share of the replica is counted already")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTimes:
    """Times of one replica that a request's tokens are charged."""

    request: tuple[Any, Any, Any]  # mean time between finished requests: expected, shortest, longest
    prompt: Any  # of it, what the fresh prompt tokens take
    load: Any  # of a cached token, from where a prefix is kept
    ranks: Any  # which load side by side
    fresh: Any  # prompt tokens computed
    cached: Any  # prompt tokens found in a cache
    output: Any


def token_costs(times: TokenTimes, price: PriceQuote, chips: Any, replicas: Any) -> dict[str, Any]:
    """Cost per million tokens of each kind with its 90 % interval."""
    expected, shortest, longest = (_costs(times, request, price.value, chips, replicas) for request in times.request)
    out: dict[str, Any] = {}
    for stem, cost in expected.items():
        out |= spread_costs(stem, cost, shortest[stem], longest[stem], price)
    return out


def _costs(times: TokenTimes, request: Any, usd: Any, chips: Any, replicas: Any) -> dict[str, Any]:
    """Costs at one time between requests; the prompt's part grows and shrinks with it."""
    prompt = times.prompt * end_factor(request, times.request[0])
    share = share_beside_loads(request, cached_load_s(times.cached, times.load, times.ranks))
    answer = answer_token_s(request, prompt, times.output)
    return {
        "usd_per_mtok_in": usd_per_mtok_in(usd, chips, prompt * share, times.fresh, ONE_LANE, replicas),
        "usd_per_mtok_cached": usd_per_mtok_cached(usd, chips, times.load * share, times.ranks, replicas),
        "usd_per_mtok_out": usd_per_mtok_out(usd, chips, answer * share, ONE_LANE, replicas),
    }


def spread_costs(stem: str, expected: Any, low: Any, high: Any, price: PriceQuote) -> dict[str, Any]:
    """A cost and the ends of its interval, from its ends at the price of a chip and that price's own range."""
    cheap, dear = (log_even_quantile(price.low, price.high, share) for share in (LOW, HIGH))
    return {
        stem: expected,
        f"{stem}_lo": lower_end(expected, (end_factor(expected, low), end_factor(price.value, cheap))),
        f"{stem}_hi": upper_end(expected, (end_factor(high, expected), end_factor(dear, price.value))),
    }


def machine_usd(price: PriceQuote, chips: Any, out_usd: Any, busy: Any) -> dict[str, Any]:
    """Cost of the machine per hour and month, and of output at full load: that of a closed loop is its own load."""
    hour = hour_usd(price.value, chips)
    full = out_usd if busy is None else full_load_usd(out_usd, busy)
    return {"usd_per_hour": hour, "usd_per_month": month_usd(hour), "usd_per_mtok_out_full": full}
