"""One simulation as one row: everything a run says, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from headway.laws.offered import usd_per_request_at
from headway.sim import report, saturation
from headway.sim import state as of
from headway.sim.fleet import Fleet
from headway.sim.prefix import hit_rates
from headway.sim.simulate import SimulatedRun

HIDDEN = ("ttft", "tpot", "e2e", "queue", "itl")  # latencies of a queue that grows without end are not numbers


def row(fleet: Fleet, run: SimulatedRun, able: float | None, limits: Mapping[str, float], warmup: float, lasting: bool) -> dict[str, Any]:
    """Every figure of a run; `lasting`: the traffic stands for a load that goes on, so that an unstable one has no latencies."""
    sample = report.measured(run, warmup)
    load = saturation.stand(run, able)
    figures = report.latencies(run, sample) | report.goodput(run, sample, limits)
    if lasting and not load.stable:
        figures = {key: None if any(part in key for part in HIDDEN) or "good" in key else value for key, value in figures.items()}
    standing = {
        "stable": load.stable, "capacity_req_per_s": load.capacity, "utilisation": load.utilisation,
        "queue_growth_per_s": load.growth if not load.stable else None, "measured": int(sample.counts.sum()),
    }  # fmt: skip
    rates = report.rates(run)
    full = report.occupancy(run) | {"little": little(fleet, run)} | _prefill(run)
    return fleet.identity() | standing | rates | figures | full | _hits(fleet, run) | cost(fleet, run, rates) | speed(run)


def _hits(fleet: Fleet, run: SimulatedRun) -> dict[str, Any]:
    """Of the replicas that compute prompts."""
    if fleet.prefix is None:
        return {}
    return hit_rates([state.cache for state in (run.prefill or run).states], fleet.prefix.names)


def _prefill(run: SimulatedRun) -> dict[str, Any]:
    """How full the pool of prompts was, where it is another."""
    if run.prefill is None:
        return {}
    full = report.occupancy(run.prefill)
    return {f"prefill_{key}": full[key] for key in ("busy_share", "running_mean", "waiting_mean", "kv_used_mean")}


def little(fleet: Fleet, run: SimulatedRun) -> float | None:
    """Requests in the replicas over time, as counted, over the times that requests spent there: 1 by Little's law."""
    if not bool(run.completed.any()) or bool(run.cancelled.any()):
        return None
    counts = run.completed
    spent = float(np.sum(run.finish, where=counts) - np.sum(run.arrival, where=counts)) - int(counts.sum()) * run.overhead_s
    if fleet.pools is not None:  # on the way from one pool to the other a request is in neither
        spent -= float(np.sum(fleet.pools.transfer_s, where=counts))
    pools = [run, run.prefill] if run.prefill is not None else [run]
    request_s = sum(report.in_service(pool)[part] for pool in pools for part in (0, 1))
    return float(request_s) / spent if spent > 0 else None


def cost(fleet: Fleet, run: SimulatedRun, rates: Mapping[str, Any]) -> dict[str, Any]:
    """Money for the whole machine over the whole run, and energy of its busy chips at their thermal design power."""
    price, chips = fleet.query.price, fleet.query.system.chips
    request_rate, tokens = rates["req_per_s"], rates["output_tok_per_s"]
    figures: dict[str, Any] = {"usd_per_request": None, "usd_per_mtok": None, "joule_per_token": None}
    if price is not None and request_rate:
        usd = float(usd_per_request_at(price.value, chips, request_rate))
        figures |= {"usd_per_request": usd, "usd_per_mtok": usd * request_rate / tokens * 1e6}
    tdp = fleet.query.system.chip.tdp
    if tdp is not None and run.total(of.EMITTED):
        busy = run.total(of.BUSY) + (run.prefill.total(of.BUSY) if run.prefill is not None else 0.0)
        figures["joule_per_token"] = float(tdp) * float(fleet.compiled.chips) * busy / run.total(of.EMITTED)
    return figures


def speed(run: SimulatedRun) -> dict[str, Any]:
    """How long the simulation itself took."""
    return {"wall_s": run.wall_s, "compile_s": run.compile_s}


def impossible(fleet: Fleet) -> dict[str, Any]:
    """The row of a layout that cannot run."""
    return fleet.identity() | {"fits": False, "why": fleet.why}
