"""A prefill pool and a decode pool as one deployment: every contract quantity of the pair, from the estimates of the two pools.

Glue: the arithmetic is in laws/. A row shows the layout, batch and steps of the decode pool, and the prefill pool in extra columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.core.units import BytePerSecond, Number, PerSecond, Second, Token
from headway.hardware.system import System, pair_bandwidth
from headway.laws.queueing.closed_loop import decoded_per_s
from headway.laws.queueing.handed import PooledUsers, arrival_ttft_s, handed_decoding, pooled_decoding, pooled_ttft_s, ttft_of_waiting_s
from headway.laws.serving import replicas
from headway.laws.serving.replicas import cached_load_s, full_batch, share_beside_loads, usd_per_mtok_pool, utilisation
from headway.laws.serving.request import decode_tok_per_s, e2e_s, middle_context, request_s, user_tok_per_s
from headway.laws.step.layer_terms import idle_chips
from headway.laws.step.memory import fits, fits_chips, kv_bytes_chip, sequence_bytes
from headway.laws.step.step import step_floor_s, step_s
from headway.performance import request
from headway.performance.compile import StepModel
from headway.performance.estimate import (
    ONE_RANK,
    Deployment,
    Estimate,
    cached_token_load_s,
    columns,
    cost_range,
    machine_usd,
    memory_of,
    step_parts,
)
from headway.performance.layout import Layout
from headway.performance.request import NO_WORK, prefilled
from headway.performance.workload import Load

NO_PREFILL = known(0.0, "no prefill", "s", "constant", "the decode pool prefills nothing")
IN_QUEUE = known(1, "queued", "", "constant", "prompts that have workers of their own wait for those of other users")
AT_PEAK = known(1.0, "efficiency at the floor", "", "constant", "links at their datasheet bandwidth")
ONE_TOKEN = known(1, "token", "token", "constant", "the cost of each cached token")
NO_USERS = known(0, "users", "", "constant", "requests that come at a rate")
ONE_ANSWER = known(1, "sequence", "", "constant", "a user's own answer is always among those of its step")
POOL_DEGREES = ("tp", "ep", "dp", "pp", "cp", "replicas")


def hand_over_link(system: System, beyond: bool = False) -> Any:
    """Bandwidth of the KV transfer (byte/s): scale-up if one domain holds both pools and they cannot grow `beyond` it, else scale-out.

    A chip sends its part of the cache to its counterpart in the other pool: in a mesh over the one link that leads there.
    """
    if not beyond and (system.scale_up_domain is None or system.chips <= system.scale_up_domain):
        link = pair_bandwidth(system)
        return system.chip.need("scale_up_bw") if link is None else link
    return system.scale_out_bw if system.scale_out_bw is not None else system.chip.need("scale_out_bw")


def joins_pools(system: System, beyond: bool = False) -> bool:
    """Whether the machine has a link over which one pool hands its KV cache to the other."""
    if not beyond and (system.scale_up_domain is None or system.chips <= system.scale_up_domain):
        return pair_bandwidth(system) is not None
    return system.scale_out_bw is not None or system.chip.scale_out_bw is not None


def handed_bytes(compiled: StepModel, prompt: Token, cp: Number) -> Any:
    """KV cache of one prompt on a chip of one pool, which its link carries."""
    return kv_bytes_chip(ONE_RANK, sequence_bytes(compiled.stores, compiled.state_bytes, prompt), compiled.stage, cp)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """A prefill pool and a decode pool at work: who decodes, and the time that a request takes of a replica of each."""

    first: Deployment
    prefilling: StepModel
    compiled: StepModel
    batch: Any  # sequences that decode in a replica
    loop: PooledUsers
    tpot: Estimate
    prompts: Estimate
    answers: Estimate
    fastest: Any  # transfer of a prompt's KV cache over links at their datasheet bandwidth, s


def _sides(case: Deployment, layout: Layout, link: BytePerSecond) -> _Sides:
    """Both pools with the case's users, its batch for each decode replica, or at its rate; all seats set the capacity."""
    load = case.load
    first = replace(case, layout=layout, load=replace(load, batch=full_batch(ONE_RANK, layout.dp, layout.pp), rate=None))
    prefilling, compiled = first.compiled(), case.compiled()
    moves, fastest = (
        [handed_bytes(step, load.prompt, side.layout.cp) / (link * share) for side, step in ((first, prefilling), (case, compiled))]
        for share in (case.assumptions.eff_network, AT_PEAK)
    )
    tokens, pairs = (amount * layout.dp for amount in prefilled(load.prompt, first.assumptions.hit_rate))
    busy, busy_floor = (law(prefilling.step, NO_WORK, NO_WORK, tokens, pairs) for law in (step_s, step_floor_s))
    # A step in which every rank of a replica prefills a prompt:
    prefill = first.timed(busy, busy_floor, "prefill", first.links(prefilling, tokens, busy))
    prompts = prefill.apply(lambda time: replicas.pool_request_s(time / (layout.dp * layout.pp), moves[0], layout.dp))
    transfer, server, prefiller = replicas.transfer_s(*moves), case.server(compiled), first.server(prefilling)
    seats, count = server.seats(load.prompt, load.output), case.layout.replicas
    loop = PooledUsers(
        users=NO_USERS if load.rate is not None else load.batch * count, replicas=count, seats=seats, workers=layout.replicas,
        lanes=first.load.batch, prompt=prompts.expected, transfer=transfer, beginning=prefiller.scheduling.first_round_share,
        alone=request.unloaded_ttft_s(prefiller, first.requests(), step_s),
    )  # fmt: skip
    if load.rate is not None:
        batch = handed_decoding(compiled.step, load.prompt, load.output, server.accept_length, load.rate / count, seats)
    else:
        batch = pooled_decoding(compiled.step, load.prompt, load.output, server.accept_length, loop)
    tpot, filled = _decoded(case, compiled, np.maximum(batch, ONE_ANSWER)), _decoded(case, compiled, seats)
    ranks = case.layout.dp * case.layout.pp
    return _Sides(
        first=first, prefilling=prefilling, compiled=compiled, batch=batch, loop=loop, tpot=tpot, prompts=prompts,
        answers=filled.apply(
            lambda time: replicas.pool_request_s(request_s(seats, load.output, time, NO_PREFILL, ranks), moves[1], case.layout.dp)
        ),
        fastest=replicas.transfer_s(*fastest),
    )  # fmt: skip


def _decoded(case: Deployment, compiled: StepModel, batch: Number) -> Estimate:
    """Time per token of a replica in which so many sequences decode."""
    server, requests = case.server(compiled), case.requests()
    time, floor = (request.decode_s(server, requests, batch, law) for law in (step_s, step_floor_s))
    return case.timed(time, floor, "tpot", case.links(compiled, batch, time))


def estimate_pools(case: Deployment, layout: Layout, link: BytePerSecond) -> dict[str, Any]:
    """Contract key -> value for a decode pool (the case) with a prefill pool of layout `layout`."""
    load, count, sides = case.load, case.layout.replicas, _sides(case, layout, link)
    compiled, batch, tpot = sides.compiled, sides.batch, sides.tpot
    capacity, slowest, most = (
        replicas.pools_capacity(layout.replicas, prompt, count, answer)
        for prompt, answer in (
            (sides.prompts.expected, sides.answers.expected), (sides.prompts.high, sides.answers.high),
            (sides.prompts.low, sides.answers.low),
        )
    )  # fmt: skip
    if load.rate is not None:  # arrivals, of which are completed as many as the pools can carry
        carried = np.minimum(load.rate, capacity)
        completed = Estimate(expected=carried, low=carried, high=carried)
    else:  # users, who ask again when they are answered
        rate = np.minimum(decoded_per_s(batch, load.output, tpot.expected) * count, layout.replicas / sides.loop.prompt)
        completed = Estimate(expected=rate, low=rate * (slowest / capacity), high=rate * (most / capacity))
        capacity = rate
    rates = completed.apply(lambda rate: rate * load.output)
    prefill_chips = layout.replicas * layout.chips
    decode_chips = count * case.layout.chips
    chips, chips_used = case.system.chips, prefill_chips + decode_chips
    memory, context = memory_of(case, compiled, batch), middle_context(load.prompt, load.output)
    in_memory = fits(memory_of(sides.first, sides.prefilling, sides.first.load.batch)["fits"], memory["fits"])
    values = {
        **memory, **step_parts(compiled, batch, context), "context": context, "concurrency": sides.loop.users,
        "decoding": batch, "step": case.step(compiled, batch, context), "tpot": tpot, "tpot_decode_s": tpot.expected,
        "tok_per_s_user": user_tok_per_s(tpot.expected),
        "decode_tok_per_s": tpot.invert(lambda time: decode_tok_per_s(batch, time, count)),
        "tok_per_s": rates, "tok_per_s_chip": rates.apply(lambda rate: rate / chips),
        "capacity_req_per_s": capacity, "request_s": replicas.between_s(completed.expected),
        "fits": fits(in_memory, fits_chips(chips_used, chips)), "chips": chips, "chips_used": chips_used,
        "chips_idle": idle_chips(chips, chips_used), "prefill_chips": prefill_chips, "decode_chips": decode_chips,
        **{f"prefill_{name}": getattr(layout, name) for name in POOL_DEGREES}, **_first_token(sides, completed.expected, load),
    }  # fmt: skip
    values["e2e_s"] = e2e_s(values["ttft"].expected, tpot.expected, load.output)
    if load.rate is not None:
        values |= {"utilisation": utilisation(load.rate, capacity), "rate": load.rate, "concurrency": load.rate * values["e2e_s"]}
    shares = {"in": (sides.prompts, prefill_chips / chips_used), "out": (sides.answers, decode_chips / chips_used)}
    return columns(values | _money(case, sides, completed.expected, shares, values.get("utilisation")))


def _first_token(sides: _Sides, rate: PerSecond, load: Load) -> dict[str, Any]:
    """TTFT with the transfer of the KV cache and the waits for a worker of the prefill pool and for a seat to decode."""
    first, loop = sides.first, sides.loop
    server, requests = first.server(sides.prefilling), first.requests()
    if load.rate is None:
        full = ttft_of_waiting_s(loop.users, rate, sides.tpot.expected, load.output) - loop.transfer
        waited = np.maximum(pooled_ttft_s(loop, rate, sides.batch), full)
    else:
        waited = arrival_ttft_s(loop, load.rate, sides.batch, load.rate)
    links = first.links(sides.prefilling, requests.prompt, loop.alone)
    ttft = first.timed(waited, request.unloaded_ttft_s(server.ideal(), requests, step_floor_s), "ttft", links, queued=IN_QUEUE)
    transferred = replace(ttft.apply(lambda time: time + loop.transfer), floor=ttft.floor + sides.fastest)
    return {"ttft": transferred, "transfer_s": loop.transfer, "ttft_unloaded_s": loop.alone + loop.transfer}


def _money(case: Deployment, sides: _Sides, completed: PerSecond, shares: dict[str, tuple[Estimate, Any]], busy: Number) -> dict[str, Any]:
    """Costs of each pool's tokens. Their ends are of that pool's own time: who serves gives each pool chips by its measured speed.

    `completed`: requests per second that pay for the machine; `shares`: the time that a request takes of each pool, and the pool's share of
    the chips; `busy`: the share of the capacity that a rate takes. A cached prefix is loaded into the prefill pool, whose cost its fresh
    and cached tokens divide in the proportions of the times that they take alone, as with one pool.
    """
    price, chips = case.price, case.system.chips
    if price is None:
        return {f"usd_per_mtok_cached{end}": None for end in ("", "_lo", "_hi")}
    tokens, _ = prefilled(case.load.prompt, case.assumptions.hit_rate)
    ranks, reload = sides.first.layout.dp, cached_token_load_s(sides.first, sides.prefilling)
    cached = cached_load_s(case.load.prompt - tokens, reload, ranks)

    def fresh_usd(time: Second, rate: PerSecond) -> Any:
        return usd_per_mtok_pool(price.value, chips, shares["in"][1] * share_beside_loads(time, cached), rate, tokens)

    def cached_usd(time: Second, rate: PerSecond) -> Any:
        beside = share_beside_loads(time, cached) * cached_load_s(ONE_TOKEN, reload, ranks) / time
        return usd_per_mtok_pool(price.value, chips, shares["in"][1] * beside, rate, ONE_TOKEN)

    def answer_usd(_time: Second, rate: PerSecond) -> Any:
        return usd_per_mtok_pool(price.value, chips, shares["out"][1], rate, case.load.output)

    costs = {}
    for key, pool, law in (("in", "in", fresh_usd), ("cached", "in", cached_usd), ("out", "out", answer_usd)):
        times = shares[pool][0]
        low, high = (law(time, completed * (times.expected / time)) for time in (times.low, times.high))
        costs[f"usd_per_mtok_{key}"] = cost_range(Estimate(expected=law(times.expected, completed), low=low, high=high), price)
    return costs | machine_usd(price, chips, costs["usd_per_mtok_out"].expected, busy)
