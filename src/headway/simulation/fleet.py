"""The subject of a simulation: a model on a machine in one layout, or in separate prefill and decode pools, with memory and cost.

With pools, the first token is out when the decode pool admits the request, so its queue and the KV transfer are part of TTFT.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.errors import BadValue
from headway.laws.serving.replicas import transfer_s
from headway.laws.serving.request import prefix_load_s
from headway.laws.step.memory import kv_bytes_chip, rank_sequence_limit, sequence_bytes
from headway.performance.compile import StepModel, compile_layout
from headway.performance.estimate import ONE_RANK
from headway.performance.layout import NAMES, Layout, copies
from headway.serving.pools import hand_over_link
from headway.serving.serve import ServeRequest
from headway.simulation.policy import Policy, Scheduler, scheduler
from headway.simulation.prefix_tiers import Prefix, prefix_of
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.state import Rules
from headway.simulation.step_time import StepPace, pace_of, scaled
from headway.simulation.traffic.requests import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillDecodePools:
    """Numbers of prefill and decode replicas, which share one layout."""

    prefill: int
    decode: int
    transfer_s: Any  # KV transfer time of each request, s


def split(
    traffic: Traffic, pace: StepPace, rules: Rules, pools: PrefillDecodePools, *, overhead_s: float = 0.0, how: str = "auto",
    prefix: Any = None, routing: str = "least-loaded", patience: float | None = None,
) -> tuple[SimulatedRun, SimulatedRun]:  # fmt: skip
    """The run as clients see it, with the decode pool's states; and the run of the prefill pool, to which `routing` sends prompts.

    A user gives up after `patience` seconds without a first token; turns of conversations are sent as recorded.
    """
    routing = "least-loaded" if routing == "round-robin" else routing  # prefill steps are too long for round-robin
    prompts = replace(traffic, output=np.ones_like(traffic.output), pause=None)
    waits = None if patience is None else patience - overhead_s
    beyond = (traffic.prompt + traffic.output + rules.block - 1) // rules.block > rules.capacity  # larger than the decode pool's cache
    before = simulate(
        prompts, pace, rules._replace(mixed=0), replicas=pools.prefill, how=how, routing=routing, prefix=prefix, barred=beyond,
        patience=waits,
    )  # fmt: skip
    handed = before.finish + pools.transfer_s
    decode_requests = np.flatnonzero(np.isfinite(handed))
    order = decode_requests[np.argsort(handed[decode_requests], kind="stable")]
    answers = Traffic.of(handed[order], traffic.prompt[order], traffic.output[order])
    after = simulate(
        answers, pace, rules._replace(handed=1, caching=0), replicas=pools.decode, how=how, routing="least-loaded",
        patience=None if waits is None else traffic.arrival[order] + waits - handed[order],
    )  # fmt: skip
    times = {key: np.full(len(traffic), np.nan) for key in ("first", "finish", "abandonment")}
    if waits is not None:
        times["abandonment"] = before.abandonment + overhead_s
    for key, values in times.items():
        if getattr(after, key) is not None:
            values[order] = getattr(after, key) + overhead_s
    replica = np.full(len(traffic), -1)
    replica[order] = after.replica
    client_run = replace(
        after, traffic=traffic, arrival=before.arrival, scheduled=before.scheduled, **times, refused=before.refused, replica=replica,
        overhead_s=overhead_s, interrupted=before.interrupted or after.interrupted,
        compile_s=before.compile_s + after.compile_s, wall_s=before.wall_s + after.wall_s,
    )  # fmt: skip
    return client_run, before


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Replicas of one layout, ready for traffic; `why` is the reason if they cannot run, else ""."""

    query: ServeRequest
    layout: Layout
    compiled: StepModel
    scheduler: Scheduler
    pace: StepPace | None
    why: str
    pools: PrefillDecodePools | None  # separate prefill and decode pools
    prefix: Prefix | None

    @property
    def replicas(self) -> int:
        """Number of replicas."""
        return int(self.layout.replicas)

    def identity(self) -> dict[str, Any]:
        """The identifying columns of a row."""
        row: dict[str, Any] = {"kind": "point", "model": self.query.model.name, "system": self.query.system.name}
        row |= {"prefill_replicas": self.pools.prefill} if self.pools else {}
        row |= {"chips": int(self.query.system.chips)} | {name: int(getattr(self.layout, name)) for name in NAMES if name != "redundant"}
        return row | dict(zip(("weights", "kv", "compute"), self.query.formats.labels, strict=True))


def fleet(
    query: ServeRequest, layout: Layout, policy: Policy, traffic: Traffic, *, classes: int = 1, closed: bool = False, tiers: Any = ()
) -> Fleet:
    """The fleet of a layout, compiled for the traffic's longest request and mean context."""
    layout, _ = copies(layout, 1, query.work.blocks)
    compiled = compile_layout(query.work, query.system, layout, query.assumptions, query.formats, prompt=float(traffic.prompt.mean()))
    room = _kv_tokens(query, layout, compiled, traffic)
    kv_tokens = float(policy.kv_tokens) if policy.kv_tokens is not None else room
    rules = scheduler(policy, query.assumptions, query.system.chip, int(layout.dp), kv_tokens, classes, closed, int(layout.pp))
    pools = _pools(query, layout, compiled, policy, traffic)
    prefix, hbm = prefix_of(tiers, _rank_usd(query, layout, compiled, policy)) if tiers else (None, 0.0)
    if prefix is not None:
        cached = prefix.rules(rules.rules, traffic, _token_bytes(layout, compiled, traffic), hbm)
        rules = replace(rules, rules=cached, notes=(*rules.notes, *prefix.room_notes(rules.rules, cached, hbm)))
    if policy.preemption == "swap":
        rules = replace(rules, rules=_with_swap(rules.rules, query, layout, compiled, policy, traffic))
    chip_count = int(compiled.chips * (int(layout.replicas) + (pools.prefill if pools else 0)))
    why = ""
    if chip_count > query.system.chips:
        why = f"needs {chip_count} chips, the system has {int(query.system.chips)}"
    elif room <= 0:
        why = f"weights need {float(compiled.weights_bytes) / 1e9:.4g} GB on the fullest chip and leave no room for a KV cache"
    longest = float((traffic.prompt + traffic.output).max())
    pace = None if why else pace_of(compiled.step, query.assumptions, rules.rules.seats, longest)
    if pace is not None and policy.step_factor != 1:
        pace = scaled(pace, float(policy.step_factor))
    if prefix is not None and pace is not None:
        rules = replace(rules, notes=(*rules.notes, *prefix.notes(rules.rules, traffic, pace)))
    return Fleet(query=query, layout=layout, compiled=compiled, scheduler=rules, pace=pace, why=why, pools=pools, prefix=prefix)


def _pools(query: ServeRequest, layout: Layout, compiled: StepModel, policy: Policy, traffic: Traffic) -> PrefillDecodePools | None:
    """Prefill and decode pools of one layout: replicas of each, and the KV transfer time of each request; None without pools."""
    if policy.policy != "disaggregated":
        return None
    kv_bytes = sequence_bytes(compiled.stores, compiled.state_bytes, traffic.prompt.astype(float))
    chip_bytes = kv_bytes_chip(ONE_RANK, kv_bytes, compiled.stage, layout.cp)
    side = chip_bytes / (hand_over_link(query.system) * query.assumptions.eff_network)
    return PrefillDecodePools(
        prefill=int(policy.prefill_replicas), decode=int(layout.replicas), transfer_s=np.asarray(transfer_s(side, side), float)
    )


def _rank_usd(query: ServeRequest, layout: Layout, compiled: StepModel, policy: Policy) -> float | None:
    """Price per second of the chips that prefill a prompt, if loading is judged by cost; else None."""
    if policy.reload == "time":
        return None
    if query.price is None:
        raise BadValue("--reload", policy.reload, f"a chip with a price, which {query.system.chip.name} has not, or --reload time")
    return float(query.price.value) * float(compiled.chips) / int(layout.dp)


def _with_swap(rules: Rules, query: ServeRequest, layout: Layout, compiled: StepModel, policy: Policy, traffic: Traffic) -> Rules:
    """The rules with host memory for preempted requests, in blocks, and the copy time of a block; each chip copies its shard."""
    link = query.system.chip.host_link_bw
    if link is None:
        raise BadValue("--preemption", policy.preemption, f"a chip with a link to its host, which {query.system.chip.name} has not")
    context = float((traffic.prompt + traffic.output / 2).mean())
    kv_bytes = sequence_bytes(compiled.stores, compiled.state_bytes, context)
    chip = float(kv_bytes_chip(ONE_RANK, kv_bytes, compiled.stage, layout.cp)) / context * rules.block
    time = float(prefix_load_s(kv_bytes, compiled.stage, layout.cp, link)) / context * rules.block
    return rules._replace(swap=int(float(policy.swap_space) // chip) * int(layout.dp), copy_s=time)


def _token_bytes(layout: Layout, compiled: StepModel, traffic: Traffic) -> float:
    """KV bytes of a prompt token on all chips of its rank, at the mean prompt."""
    context = float(traffic.prompt.mean())
    kv_bytes = sequence_bytes(compiled.stores, compiled.state_bytes, context)
    return float(kv_bytes_chip(ONE_RANK, kv_bytes, compiled.stage, layout.cp)) / context * float(compiled.chips) / int(layout.dp)


def _kv_tokens(query: ServeRequest, layout: Layout, compiled: StepModel, traffic: Traffic) -> float:
    """Tokens whose KV fits next to the weights of a replica; with windows or state this depends on the traffic's mean context."""
    usable = query.system.chip.need("hbm") * query.assumptions.hbm_utilization
    context = float((traffic.prompt + traffic.output / 2).mean())
    kv_bytes = sequence_bytes(compiled.stores, compiled.state_bytes, context)
    sequences = float(rank_sequence_limit(usable, compiled.weights_bytes, kv_bytes, compiled.stage, layout.cp))
    return float(np.minimum(sequences * context, 1e12)) * int(layout.dp)
