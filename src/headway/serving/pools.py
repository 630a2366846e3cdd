"""A prefill pool and a decode pool as one deployment: every contract quantity of the pair, from the estimates of the two pools.

Glue: the arithmetic is in laws/. A row shows the layout, batch and steps of the decode pool, and the prefill pool in extra columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway.core.quantity import known
from headway.core.units import BytePerSecond, Number, PerSecond, Second, Token
from headway.hardware.system import System, pair_bandwidth
from headway.laws.queueing.closed_loop import SINGLE, open_seat_wait_s
from headway.laws.serving import replicas
from headway.laws.serving.replicas import full_batch, utilisation
from headway.laws.serving.request import decode_tok_per_s, e2e_s, middle_context, request_s, user_tok_per_s
from headway.laws.step.layer_terms import idle_chips, replica_chips
from headway.laws.step.memory import fits, fits_chips, kv_bytes_chip, sequence_bytes
from headway.laws.step.step import step_floor_s, step_s
from headway.performance import request
from headway.performance.compile import StepModel
from headway.performance.estimate import ONE_RANK, Deployment, Estimate, columns, cost_range, machine_usd, memory_of, step_parts
from headway.performance.layout import Layout
from headway.performance.request import NO_WORK, prefilled

NO_PREFILL = known(0.0, "no prefill", "s", "constant", "the decode pool prefills nothing")
IN_QUEUE = known(1, "queued", "", "constant", "prompts that have workers of their own wait for those of other users")
AT_PEAK = known(1.0, "efficiency at the floor", "", "constant", "links at their datasheet bandwidth")
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


def estimate_pools(case: Deployment, layout: Layout, link: BytePerSecond) -> dict[str, Any]:
    """Contract key -> value for a decode pool (the case) with a prefill pool of layout `layout`."""
    load, count = case.load, case.layout.replicas
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
    server, requests = case.server(compiled), case.requests()
    tpot_s, tpot_floor_s = (request.decode_s(server, requests, load.batch, law) for law in (step_s, step_floor_s))
    tpot = case.timed(tpot_s, tpot_floor_s, "tpot", case.links(compiled, load.batch, tpot_s))
    answer_ranks = case.layout.dp * case.layout.pp
    # Time that a request takes of a replica of each pool.
    prompts = prefill.apply(lambda time: replicas.pool_request_s(time / (layout.dp * layout.pp), moves[0], layout.dp))
    answers = tpot.apply(
        lambda time: replicas.pool_request_s(request_s(load.batch, load.output, time, NO_PREFILL, answer_ranks), moves[1], case.layout.dp)
    )
    capacity, slowest, most = (
        replicas.pools_capacity(layout.replicas, prompt, count, answer)
        for prompt, answer in ((prompts.expected, answers.expected), (prompts.high, answers.high), (prompts.low, answers.low))
    )
    rates = Estimate(expected=capacity, low=slowest, high=most).apply(lambda rate: rate * load.output)
    prefill_chips = layout.replicas * replica_chips(layout.tp, layout.cp, layout.dp, layout.pp)
    decode_chips = count * replica_chips(case.layout.tp, case.layout.cp, case.layout.dp, case.layout.pp)
    chips, chips_used = case.system.chips, prefill_chips + decode_chips
    memory, context = memory_of(case, compiled, load.batch), middle_context(load.prompt, load.output)
    in_memory = fits(memory_of(first, prefilling, first.load.batch)["fits"], memory["fits"])
    prompt_rate = layout.replicas / prompts.expected
    values = {
        **memory, **step_parts(compiled, load.batch, context), "context": context, "concurrency": load.batch * count,
        "decoding": load.batch, "step": case.step(compiled, load.batch, context), "tpot": tpot, "tpot_decode_s": tpot.expected,
        "tok_per_s_user": user_tok_per_s(tpot.expected),
        "decode_tok_per_s": tpot.invert(lambda time: decode_tok_per_s(load.batch, time, count)),
        "tok_per_s": rates, "tok_per_s_chip": rates.apply(lambda rate: rate / chips),
        "capacity_req_per_s": capacity, "request_s": replicas.between_s(capacity),
        "fits": fits(in_memory, fits_chips(chips_used, chips)), "chips": chips, "chips_used": chips_used,
        "chips_idle": idle_chips(chips, chips_used), "prefill_chips": prefill_chips, "decode_chips": decode_chips,
        **{f"prefill_{name}": getattr(layout, name) for name in POOL_DEGREES},
        **_first_token(first, prefilling, load.rate, prompt_rate, replicas.transfer_s(*moves), replicas.transfer_s(*fastest)),
    }  # fmt: skip
    values["e2e_s"] = e2e_s(values["ttft"].expected, tpot.expected, load.output)
    if load.rate is not None:
        values |= {"utilisation": utilisation(load.rate, capacity), "rate": load.rate}
    shares = {"in": (prompts, prefill_chips / chips_used), "out": (answers, decode_chips / chips_used)}
    return columns(values | _money(case, capacity, shares))


def _first_token(
    first: Deployment, compiled: StepModel, rate: PerSecond, prompt_rate: PerSecond, transfer: Second, fastest: Second
) -> dict[str, Any]:
    """TTFT with the transfer of the KV cache; at a rate also with the wait for a worker of the prefill pool (the case)."""
    server, requests = first.server(compiled), first.requests()
    alone = request.unloaded_ttft_s(server, requests, step_s)
    waited = alone
    if rate is not None:
        lanes = first.load.batch * first.layout.replicas
        waited = alone + open_seat_wait_s(utilisation(rate, prompt_rate) * lanes, lanes, rate, SINGLE)
    links = first.links(compiled, requests.prompt, alone)
    ttft = first.timed(waited, request.unloaded_ttft_s(server.ideal(), requests, step_floor_s), "ttft", links, queued=IN_QUEUE)
    transferred = replace(ttft.apply(lambda time: time + transfer), floor=ttft.floor + fastest)
    return {"ttft": transferred, "transfer_s": transfer, "ttft_unloaded_s": alone + transfer}


def _money(case: Deployment, capacity: PerSecond, shares: dict[str, tuple[Estimate, Any]]) -> dict[str, Any]:
    """Costs of each pool's tokens. Their ends are of that pool's own time: who serves gives each pool chips by its measured speed.

    `shares`: the time that a request takes of each pool, and the pool's share of the chips.
    """
    price, chips = case.price, case.system.chips
    cached = {f"usd_per_mtok_cached{end}": None for end in ("", "_lo", "_hi")}
    if price is None:
        return cached
    tokens, _ = prefilled(case.load.prompt, case.assumptions.hit_rate)
    costs = {}
    for key, (times, share) in shares.items():
        count = tokens if key == "in" else case.load.output
        cost, low, high = (
            replicas.usd_per_mtok_pool(price.value, chips, share, rate, count)
            for rate in (capacity, *(capacity * (times.expected / time) for time in (times.low, times.high)))
        )
        costs[f"usd_per_mtok_{key}"] = cost_range(Estimate(expected=cost, low=low, high=high), price)
    return cached | costs | machine_usd(price, chips, costs["usd_per_mtok_out"].expected, None)
