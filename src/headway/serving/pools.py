"""A prefill pool and a decode pool as one deployment: every contract quantity of the pair, from the estimates of the two pools.

Glue: the arithmetic is in laws/. A row shows the layout, batch and steps of the decode pool, and the prefill pool in extra columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway.core.quantity import known
from headway.hardware.system import System
from headway.laws.serving import replicas
from headway.laws.serving.replicas import full_batch, offered_tok_per_s, utilisation
from headway.laws.serving.request import e2e_s, per_chip, prefill_lanes, request_s
from headway.laws.step.layer_terms import idle_chips, replica_chips
from headway.laws.step.memory import fits, fits_chips, kv_bytes_chip, sequence_bytes
from headway.performance.compile import compile_layout
from headway.performance.layout import Layout
from headway.performance.request import ONE_RANK, Deployment, estimate, prefilled

NO_PREFILL = known(0.0, "no prefill", "s", "constant", "the decode pool prefills nothing")
AT_PEAK = known(1.0, "efficiency at the floor", "", "constant", "links at their datasheet bandwidth")
POOL_DEGREES = ("tp", "ep", "dp", "pp", "cp", "replicas")
ENDS = (("", "tpot_s"), ("_lo", "tpot_hi_s"), ("_hi", "tpot_lo_s"))  # suffix of a rate, and the key of the TPOT behind it


def hand_over_link(system: System, beyond: bool = False) -> Any:
    """Bandwidth of the KV transfer (byte/s): scale-up if one domain holds both pools and they cannot grow `beyond` it, else scale-out."""
    if not beyond and (system.scale_up_domain is None or system.chips <= system.scale_up_domain):
        return system.scale_up_bw if system.scale_up_bw is not None else system.chip.need("scale_up_bw")
    return system.scale_out_bw if system.scale_out_bw is not None else system.chip.need("scale_out_bw")


def side_s(case: Deployment, compiled: Any, link: Any, efficiency: Any) -> Any:
    """Link time in seconds of one prompt's KV cache on a chip of one pool."""
    prompt_bytes = sequence_bytes(compiled.stores, compiled.state_bytes, case.load.prompt)
    return replicas.link_s(kv_bytes_chip(ONE_RANK, prompt_bytes, compiled.stage, case.layout.cp), link, efficiency)


def estimate_pools(case: Deployment, layout: Layout, link: Any) -> dict[str, Any]:
    """Contract key -> value for a decode pool (the case) with a prefill pool of layout `layout`."""
    first = replace(case, layout=layout, load=replace(case.load, batch=full_batch(ONE_RANK, layout.dp, layout.pp)))
    sides = [(side, compile_layout(side.work, side.system, side.layout, side.assumptions, side.formats)) for side in (first, case)]
    moves, fastest = ([side_s(*side, link, share) for side in sides] for share in (case.assumptions.eff_network, AT_PEAK))
    prefill, decode = estimate(first), estimate(case)
    row = decode | _times(case, prefill, decode, replicas.transfer_s(*moves), replicas.transfer_s(*fastest))
    row |= _rates(case, layout, prefill, decode, moves) | _chips(case, layout, prefill, decode)
    row |= {f"prefill_{name}": getattr(layout, name) for name in POOL_DEGREES}
    return row | _money(case, row)


def _times(case: Deployment, prefill: dict[str, Any], decode: dict[str, Any], transfer: Any, fastest: Any) -> dict[str, Any]:
    row = {key: replicas.handed_over_s(prefill[key], transfer) for key in ("ttft_s", "ttft_lo_s", "ttft_hi_s")}
    row |= {"ttft_floor_s": replicas.handed_over_s(prefill["ttft_floor_s"], fastest), "transfer_s": transfer}
    row["tpot_interleaved_s"] = decode["tpot_s"]
    return row | {"e2e_s": e2e_s(row["ttft_s"], decode["tpot_s"], case.load.output)}


def _rates(case: Deployment, layout: Layout, prefill: dict[str, Any], decode: dict[str, Any], moves: list[Any]) -> dict[str, Any]:
    """Rates of both pools together; the low end of a rate comes from the high end of the times."""
    load, row = case.load, {}
    for end, time in ENDS:
        prompt = replicas.prompt_s(prefill[f"prefill_s{end}"], prefill_lanes(layout.dp, layout.pp))
        answer = request_s(load.batch, load.output, decode[time], NO_PREFILL, prefill_lanes(case.layout.dp, case.layout.pp))
        capacity = replicas.pools_capacity(
            layout.replicas,
            replicas.pool_request_s(prompt, moves[0], layout.dp),
            case.layout.replicas,
            replicas.pool_request_s(answer, moves[1], case.layout.dp),
        )
        rate = offered_tok_per_s(capacity, load.output)
        row |= {f"capacity{end}": capacity, f"tok_per_s{end}": rate, f"tok_per_s_chip{end}": per_chip(rate, case.system.chips)}
    row |= {"capacity_req_per_s": row["capacity"], "request_s": replicas.between_s(row["capacity"])}
    if load.rate is not None:
        row["utilisation"] = utilisation(load.rate, row["capacity"])
    return row


def _chips(case: Deployment, layout: Layout, prefill: dict[str, Any], decode: dict[str, Any]) -> dict[str, Any]:
    chips = [replica_chips(side.tp, side.cp, side.dp, side.pp) for side in (layout, case.layout)]
    prefill_chips, decode_chips = replicas.pool_chips(layout.replicas, chips[0]), replicas.pool_chips(case.layout.replicas, chips[1])
    chips_used = replicas.pools_used(prefill_chips, decode_chips)
    good = fits(fits(prefill["fits"], decode["fits"]), fits_chips(chips_used, case.system.chips))
    row = {"prefill_chips": prefill_chips, "decode_chips": decode_chips, "chips_used": chips_used, "fits": good}
    return row | {"chips_idle": idle_chips(case.system.chips, chips_used)}


def _money(case: Deployment, row: dict[str, Any]) -> dict[str, Any]:
    price, chips = case.price, case.system.chips
    out: dict[str, Any] = {f"usd_per_mtok_cached{end}": None for end in ("", "_lo", "_hi")}
    if price is None:
        return out
    tokens, _ = prefilled(case.load.prompt, case.assumptions)
    for key, chips_key, token_count in (("in", "prefill_chips", tokens), ("out", "decode_chips", case.load.output)):
        share = replicas.pool_share(row[chips_key], row["chips_used"])
        for end, usd, rate in (("", price.value, "capacity"), ("_lo", price.low, "capacity_hi"), ("_hi", price.high, "capacity_lo")):
            out[f"usd_per_mtok_{key}{end}"] = replicas.usd_per_mtok_pool(usd, chips, share, row[rate], token_count)
    return out
