"""A prefill pool and a decode pool as one deployment: every contract quantity of the pair, from the estimates of the two pools.

Glue: the arithmetic is in laws/. A row shows the layout, batch and steps of the decode pool, and the prefill pool in extra columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway.core.quantity import known
from headway.hardware.links import pair_bandwidth
from headway.hardware.system import System
from headway.laws.queueing.closed_loop import SINGLE, open_seat_wait_s
from headway.laws.serving import replicas
from headway.laws.serving.replicas import full_batch, utilisation
from headway.laws.serving.request import (
    decode_tok_per_s,
    e2e_s,
    middle_context,
    request_s,
    user_tok_per_s,
)
from headway.laws.step.layer_terms import idle_chips, replica_chips
from headway.laws.step.memory import fits, fits_chips, kv_bytes_chip, sequence_bytes
from headway.laws.step.step import step_floor_s, step_s
from headway.performance import request
from headway.performance.estimate import (
    ENDS,
    ONE_RANK,
    Deployment,
    Estimate,
    chips_of,
    compiled_case,
    flat,
    machine_usd,
    memory_of,
    requests_of,
    server_of,
    spread_costs,
    step_at,
    step_parts,
    timed,
)
from headway.performance.layout import Layout
from headway.performance.request import NO_WORK, prefilled

TIMES = ("expected", "low", "high")  # of an Estimate
NO_PREFILL = known(0.0, "no prefill", "s", "constant", "the decode pool prefills nothing")
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


def side_s(case: Deployment, compiled: Any, link: Any, efficiency: Any) -> Any:
    """Link time in seconds of one prompt's KV cache on a chip of one pool."""
    prompt_bytes = sequence_bytes(compiled.stores, compiled.state_bytes, case.load.prompt)
    return kv_bytes_chip(ONE_RANK, prompt_bytes, compiled.stage, case.layout.cp) / (link * efficiency)


def estimate_pools(case: Deployment, layout: Layout, link: Any) -> dict[str, Any]:
    """Contract key -> value for a decode pool (the case) with a prefill pool of layout `layout`."""
    first = replace(case, layout=layout, load=replace(case.load, batch=full_batch(ONE_RANK, layout.dp, layout.pp), rate=None))
    sides = [(side, compiled_case(side)) for side in (first, case)]
    moves, fastest = ([side_s(*side, link, share) for side in sides] for share in (case.assumptions.eff_network, AT_PEAK))
    prefill, decode = _busy_prefill(*sides[0]), _decode(*sides[1])
    row = _decode_row(case, sides[1][1], decode)
    busy = [_busy_s(case, layout, prefill, decode, moves, time) for time in TIMES]
    row |= _rates(case, layout, busy)
    row |= _times(sides[0], case, row, decode, replicas.transfer_s(*moves), replicas.transfer_s(*fastest))
    row |= _chips(case, layout, memory_of(*sides[0], first.load.batch), memory_of(*sides[1], case.load.batch))
    row |= {f"prefill_{name}": getattr(layout, name) for name in POOL_DEGREES}
    return row | _money(case, row, busy)


def _busy_prefill(first: Deployment, compiled: Any) -> Estimate:
    """Time of a step in which every rank of a prefill replica prefills a prompt."""
    tokens, pairs = (amount * first.layout.dp for amount in prefilled(first.load.prompt, first.assumptions.hit_rate))
    expected, floor = (law(compiled.step, NO_WORK, NO_WORK, tokens, pairs) for law in (step_s, step_floor_s))
    return timed(first, expected, floor, "prefill")


def _decode(case: Deployment, compiled: Any) -> Estimate:
    """TPOT of the decode pool: no prompt is prefilled there."""
    server, requests = server_of(case, compiled), requests_of(case)
    expected, floor = (request.decode_s(server, requests, case.load.batch, law) for law in (step_s, step_floor_s))
    return timed(case, expected, floor, "tpot")


def _decode_row(case: Deployment, compiled: Any, decode: Estimate) -> dict[str, Any]:
    load, count = case.load, case.layout.replicas
    context = middle_context(load.prompt, load.output)
    row = chips_of(case, compiled) | memory_of(case, compiled, load.batch) | step_parts(compiled, load.batch, context)
    row |= {"context": context, "concurrency": load.batch * count, "decoding": load.batch}
    row |= flat("step", step_at(case, compiled, load.batch, context)) | flat("tpot", decode) | {"tpot_decode_s": decode.expected}
    row |= {"tok_per_s_user": user_tok_per_s(decode.expected)}
    times = zip(ENDS, (decode.expected, decode.high, decode.low), strict=True)
    return row | {f"decode_tok_per_s{end}": decode_tok_per_s(load.batch, time, count) for end, time in times}


def _times(
    first: tuple[Deployment, Any], case: Deployment, row: dict[str, Any], decode: Estimate, transfer: Any, fastest: Any
) -> dict[str, Any]:
    """TTFT with the transfer of the KV cache; at a rate also with the wait for a prefill worker."""
    server, requests = server_of(*first), requests_of(first[0])
    alone = request.unloaded_ttft_s(server, requests, step_s)
    waited = alone
    if case.load.rate is not None:
        lanes = first[0].load.batch * first[0].layout.replicas
        waited = alone + open_seat_wait_s(row["prefill_utilisation"] * lanes, lanes, case.load.rate, SINGLE)
    ttft = timed(case, waited, request.unloaded_ttft_s(server.ideal(), requests, step_floor_s), "ttft")
    out = {key: time + transfer for key, time in flat("ttft", ttft).items()}
    out |= {"ttft_floor_s": ttft.floor + fastest, "transfer_s": transfer}
    out |= {"ttft_unloaded_s": alone + transfer}
    return out | {"e2e_s": e2e_s(out["ttft_s"], decode.expected, case.load.output)}


def _busy_s(case: Deployment, layout: Layout, prefill: Estimate, decode: Estimate, moves: list[Any], time: str) -> tuple[Any, Any]:
    """Time that a request takes of a replica of each pool, at one end of both pools' times."""
    prompt = getattr(prefill, time) / (layout.dp * layout.pp)
    answer = request_s(case.load.batch, case.load.output, getattr(decode, time), NO_PREFILL, case.layout.dp * case.layout.pp)
    return replicas.pool_request_s(prompt, moves[0], layout.dp), replicas.pool_request_s(answer, moves[1], case.layout.dp)


def _rates(case: Deployment, layout: Layout, busy: list[tuple[Any, Any]]) -> dict[str, Any]:
    """Rates of both pools together; the low end of a rate comes from the high end of the times."""
    load, row = case.load, {}
    for end, (prefill_request, decode_request) in zip(("", "_hi", "_lo"), busy, strict=True):
        capacity = replicas.pools_capacity(layout.replicas, prefill_request, case.layout.replicas, decode_request)
        rate = capacity * load.output
        row |= {f"capacity{end}": capacity, f"tok_per_s{end}": rate, f"tok_per_s_chip{end}": rate / case.system.chips}
        if load.rate is not None and not end:
            row["prefill_utilisation"] = utilisation(load.rate, layout.replicas / prefill_request)
    row |= {"capacity_req_per_s": row["capacity"], "request_s": replicas.between_s(row["capacity"])}
    if load.rate is not None:
        row["utilisation"] = utilisation(load.rate, row["capacity"])
        row["rate"] = load.rate
    return row


def _chips(case: Deployment, layout: Layout, prefill: dict[str, Any], decode: dict[str, Any]) -> dict[str, Any]:
    chips = [replica_chips(side.tp, side.cp, side.dp, side.pp) for side in (layout, case.layout)]
    prefill_chips, decode_chips = layout.replicas * chips[0], case.layout.replicas * chips[1]
    chips_used = prefill_chips + decode_chips
    good = fits(fits(prefill["fits"], decode["fits"]), fits_chips(chips_used, case.system.chips))
    row = {"prefill_chips": prefill_chips, "decode_chips": decode_chips, "chips_used": chips_used, "fits": good}
    return row | {"chips_idle": idle_chips(case.system.chips, chips_used)}


def _money(case: Deployment, row: dict[str, Any], busy: list[tuple[Any, Any]]) -> dict[str, Any]:
    """Costs of each pool's tokens. Their ends are of that pool's own time: who serves gives each pool chips by its measured speed."""
    price, chips = case.price, case.system.chips
    out: dict[str, Any] = {f"usd_per_mtok_cached{end}": None for end in ("", "_lo", "_hi")}
    if price is None:
        return out
    tokens, _ = prefilled(case.load.prompt, case.assumptions.hit_rate)
    pools = (("in", "prefill_chips", tokens), ("out", "decode_chips", case.load.output))
    for pool, (key, chips_key, token_count) in enumerate(pools):
        share = row[chips_key] / row["chips_used"]
        rates = (row["capacity"], *(row["capacity"] * (busy[0][pool] / at[pool]) for at in busy[1:]))
        cost, low, high = (replicas.usd_per_mtok_pool(price.value, chips, share, rate, token_count) for rate in rates)
        out |= spread_costs(f"usd_per_mtok_{key}", cost, low, high, price)
    return out | machine_usd(price, chips, out["usd_per_mtok_out"], None)
