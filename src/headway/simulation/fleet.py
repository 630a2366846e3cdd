"""The subject of a simulation: a model on a machine in one layout, or in separate prefill and decode pools, with memory and cost.

Scheduling of requests is the user's choice (`Policy`), else the default of the engine family (data/efficiency.toml).

With pools, the first token is out when the decode pool admits the request, so its queue and the KV transfer are part of TTFT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.errors import BadValue
from headway.hardware.chip import Chip
from headway.laws.serving.replicas import transfer_s
from headway.laws.serving.request import prefix_load_s
from headway.laws.step.memory import kv_bytes_chip, rank_sequence_limit, sequence_bytes
from headway.performance.achieved import OTHER_FAMILY, efficiencies, platform
from headway.performance.assumptions import Assumptions
from headway.performance.compile import StepModel, copies
from headway.performance.estimate import ONE_RANK, Deployment
from headway.performance.layout import NAMES, Layout
from headway.serving.pools import POOL_DEGREES, hand_over_link, handed_bytes
from headway.simulation.prefix_tiers import Prefix, SimulatedTier, prefix_of
from headway.simulation.questions import BLOCK, Policy
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.state import LANE, Rules
from headway.simulation.step_law import StepLaw
from headway.simulation.step_time import StepPace, pace_of, scaled
from headway.simulation.traffic.requests import Traffic

NO_LIMIT = 1e12  # tokens of KV cache where nothing limits it


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """A policy with every number resolved, and the origin of each."""

    rules: Rules
    overhead_s: float
    patience_s: float | None
    notes: tuple[str, ...]


def scheduler(
    policy: Policy, assumptions: Assumptions, chip: Chip | None, dp: int, kv_tokens: float, classes: int, closed: bool, pp: int = 1,
    accept: float = 1.0,
) -> Scheduler:  # fmt: skip
    """The scheduler of a replica of `dp` ranks and `pp` stages with KV memory for `kv_tokens` tokens; each micro-batch has a budget.

    `accept`: mean tokens of a step.
    """
    table, kind = efficiencies(chip), OTHER_FAMILY if chip is None else platform(chip)
    name = "other" if assumptions.engine == "none" else assumptions.engine

    def number(user_value: float | None, key: str) -> float:
        return float(table.engine(name, kind, key)) if user_value is None else float(user_value)

    mixed = number({"chunked": 1, "prefill-first": 0, "disaggregated": 0}.get(policy.policy), "chunked_prefill")
    budget, limit = int(number(policy.token_budget, "step_budget_tokens")), int(number(policy.max_seqs, "max_sequences"))
    if policy.token_budget is not None and budget < BLOCK:
        raise BadValue("--token-budget", budget, f"at least {BLOCK} tokens a step, a block of KV cache; engines take 512 to 16384")
    if policy.token_budget is not None and policy.max_seqs is not None and budget < int(policy.max_seqs):  # no engine starts with fewer
        raise BadValue("--token-budget", budget, f"at least a token for each of the {int(policy.max_seqs)} sequences (--max-seqs)")
    reserve = number(policy.reserve, "reserved_output_share")
    reserve = reserve if policy.reserve is not None or reserve >= 1 else 0.0  # each answer grows, so no mean over its growth is needed
    without = assumptions.engine == "none" or assumptions.overlap != "fitted"
    overhead = 0.0 if without and policy.request_overhead is None else number(policy.request_overhead, "request_overhead_s")
    rules = Rules(
        budget=budget * dp * pp, chunk=budget, seats=limit * dp, capacity=int(kv_tokens // policy.block), block=int(policy.block),
        mixed=int(mixed), handed=0, reserve=reserve, departures=float(policy.departures or 0.0), accept=accept,
        closed=int(closed), lanes=LANE * classes, hit=float(assumptions.hit_rate),
    )  # fmt: skip
    batching = f"{policy.policy or ('chunked' if mixed else 'prefill-first')}, {budget} tokens a step and {limit} sequences a rank"
    reservation = "answers set aside whole" if reserve >= 1 else f"preemption: {policy.preemption}"
    notes = [f"scheduler of engine {assumptions.engine!r}: {batching}, blocks of {int(policy.block)} tokens, {reservation}"]
    if overhead:
        notes.append(f"{overhead * 1e3:.3g} ms of the engine's own work on each request are part of TTFT")
    patience = None if policy.patience is None else float(policy.patience)
    return Scheduler(rules=rules, overhead_s=overhead, patience_s=patience, notes=tuple(notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillReplica:
    """A replica of the prefill pool where its layout is not that of the decode pool."""

    layout: Layout
    compiled: StepModel
    rules: Rules
    pace: StepPace


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillDecodePools:
    """Numbers of prefill and decode replicas, and what hands a prompt from one to the other."""

    prefill: int
    decode: int
    transfer_s: Callable[[Any], Any]  # of prompt tokens: time of the KV transfer, s
    first: PrefillReplica | None = None  # a prefill replica; None: like a decode replica

    def prefill_side(self, pace: StepPace, rules: Rules) -> tuple[StepPace, Rules]:
        """Step times and rules of a prefill replica, beside those of a decode replica."""
        if self.first is not None:
            pace, rules = self.first.pace, self.first.rules._replace(closed=rules.closed, lanes=rules.lanes)
        return pace, rules._replace(mixed=0)


def split(
    traffic: Traffic, pace: StepPace, rules: Rules, pools: PrefillDecodePools, *, overhead_s: float = 0.0, how: str = "auto",
    prefix: Prefix | None = None, routing: str = "least-loaded", patience: float | None = None,
) -> tuple[SimulatedRun, SimulatedRun]:  # fmt: skip
    """The run as clients see it, with the decode pool's states; and the run of the prefill pool, to which `routing` sends prompts.

    A user gives up after `patience` seconds without a first token; turns of conversations are sent as recorded.
    """
    routing = "least-loaded" if routing == "round-robin" else routing  # prefill steps are too long for round-robin
    prompts = replace(traffic, output=np.ones_like(traffic.output), pause=None)
    waits = None if patience is None else patience - overhead_s
    beyond = (traffic.prompt + traffic.output + rules.block - 1) // rules.block > rules.capacity  # larger than the decode pool's cache
    first_pace, first_rules = pools.prefill_side(pace, rules)
    before = simulate(
        prompts, first_pace, first_rules, replicas=pools.prefill, how=how, routing=routing, prefix=prefix, barred=beyond,
        patience=waits,
    )  # fmt: skip
    handed = before.finish + pools.transfer_s(traffic.prompt)
    decode_requests = np.flatnonzero(np.isfinite(handed))
    order = decode_requests[np.argsort(handed[decode_requests], kind="stable")]
    answers = Traffic.of(handed[order], traffic.prompt[order], traffic.output[order])
    after = simulate(
        answers, pace, rules._replace(handed=1, caching=0), replicas=pools.decode, how=how, routing="least-loaded",
        patience=None if waits is None else traffic.arrival[order] + waits - handed[order],
    )  # fmt: skip
    return as_clients_saw(traffic, before, after, order, overhead_s), before


def as_clients_saw(traffic: Traffic, before: SimulatedRun, after: SimulatedRun, order: Any, overhead_s: float) -> SimulatedRun:
    """The run of two pools as one; `order`: the request behind each of those that the decode pool played."""
    times = {key: np.full(len(traffic), np.nan) for key in ("first", "finish", "abandonment")}
    if before.abandonment is not None:
        times["abandonment"] = before.abandonment + overhead_s
    for key, values in times.items():
        if getattr(after, key) is not None:
            values[order] = getattr(after, key) + overhead_s
    replica = np.full(len(traffic), -1)
    replica[order] = after.replica
    return replace(
        after, traffic=traffic, arrival=before.arrival, scheduled=before.scheduled, **times, refused=before.refused, replica=replica,
        overhead_s=overhead_s, interrupted=before.interrupted or after.interrupted,
        compile_s=before.compile_s + after.compile_s, wall_s=before.wall_s + after.wall_s,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Replicas of one layout, ready for traffic; `why` is the reason if they cannot run, else ""."""

    query: Deployment | None  # None: a step law of the user's own says all
    layout: Layout
    compiled: StepModel | None
    scheduler: Scheduler
    pace: StepPace | None
    why: str
    pools: PrefillDecodePools | None  # separate prefill and decode pools
    prefix: Prefix | None
    first_token_factor: float = 1.0  # of the user's own runs, on the TTFT that users measure
    law: StepLaw | None = None  # the user's own, in place of the model's

    @property
    def replicas(self) -> int:
        """Number of replicas."""
        return int(self.layout.replicas)

    @property
    def has_no_kv_limit(self) -> bool:
        """Whether nothing says how much KV cache there is."""
        return self.query is None and self.scheduler.rules.capacity >= int(NO_LIMIT // self.scheduler.rules.block)

    def identity(self) -> dict[str, Any]:
        """The identifying columns of a row."""
        steps = {} if self.law is None else {"step_law": self.law.text}
        if self.query is None:
            return {"kind": "point"} | steps | {"replicas": self.replicas}
        row: dict[str, Any] = {"kind": "point", "model": self.query.model.name, "system": self.query.system.name}
        row |= {"prefill_replicas": self.pools.prefill} if self.pools else {}
        if self.pools is not None and self.pools.first is not None:
            row |= {f"prefill_{name}": int(getattr(self.pools.first.layout, name)) for name in POOL_DEGREES if name != "replicas"}
        row |= {"chips": int(self.query.system.chips)} | {name: int(getattr(self.layout, name)) for name in NAMES if name != "redundant"}
        return row | dict(zip(("weights", "kv", "compute"), self.query.formats.labels, strict=True)) | steps


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replica:
    """A replica of one layout under some traffic: its steps, its room for KV cache, its scheduler."""

    case: Deployment
    compiled: StepModel
    usable: Any  # bytes of a chip for weights and KV cache
    room: float  # tokens of KV cache that fit
    scheduler: Scheduler
    prefix: Prefix | None = None

    @property
    def why(self) -> str:
        """Why it cannot run, else "": the experts in its host's memory, or the weights, leave no room."""
        chip, compiled = self.case.system.chip, self.compiled
        if not compiled.host_room(chip):
            needed, memory = (f"{float(size) / 1e9:.4g} GB" for size in (compiled.host_bytes, chip.host_dram))
            return f"the experts of a chip need {needed} of its host's memory, {memory} are there"
        if self.room <= 0:
            weights, most = float(compiled.weights_bytes) / 1e9, float(self.usable) / 1e9
            return f"weights need {weights:.4g} GB on the fullest chip, {weights - most:.3g} over usable {most:.4g}: no room for a KV cache"
        return ""

    def pace(self, traffic: Traffic, factor: float, law: StepLaw | None) -> StepPace:
        """Its step times up to the longest request, by a law of the user's own if there is one, `factor` times as long."""
        longest, rules = float((traffic.prompt + traffic.output).max()), self.scheduler.rules
        pace = pace_of(self.compiled.step, rules.seats, longest) if law is None else law.pace(rules.seats, rules.budget, longest)
        return pace if factor == 1 else scaled(pace, factor)


def fleet(
    query: Deployment, layout: Layout, policy: Policy, traffic: Traffic, *, classes: int = 1, closed: bool = False,
    tiers: Sequence[SimulatedTier] = (), prefill: Layout | None = None, law: StepLaw | None = None,
) -> Fleet:  # fmt: skip
    """The fleet of a layout, compiled for the traffic's longest request and mean context.

    `prefill`: layout of the replicas that prefill where they are apart, if not that of the others; `law`: of steps, in place of the
    model's.
    """
    replica = _replica(query, layout, policy, traffic, classes, closed)
    first = replica if prefill is None else _cached(_replica(query, prefill, policy, traffic, classes, closed), policy, traffic, tiers)
    replica = _cached(replica, policy, traffic, tiers if prefill is None else ())
    first = replica if prefill is None else first
    apart, prefill_replicas = policy.policy == "disaggregated", int(policy.prefill_replicas)
    chip_count = int(replica.compiled.chips * int(layout.replicas) + (first.compiled.chips * prefill_replicas if apart else 0))
    why = replica.why or (f"prefill: {first.why}" if first.why and prefill is not None else first.why)
    if chip_count > query.system.chips:
        why = f"needs {chip_count} chips, the system has {int(query.system.chips)}"
    parts = (replica,) if prefill is None else (replica, first)
    paces = [None if why else part.pace(traffic, float(policy.step_factor), law) for part in parts]
    plan, pools = replica.scheduler, None
    if apart:
        pools = PrefillDecodePools(
            prefill=prefill_replicas, decode=int(layout.replicas), transfer_s=_transfer(first, replica),
            first=None if paces[-1] is None or prefill is None else PrefillReplica(
                layout=first.case.layout, compiled=first.compiled, rules=first.scheduler.rules, pace=paces[-1]
            ),
        )  # fmt: skip
    if first.prefix is not None and paces[-1] is not None:
        notes = dict.fromkeys((*plan.notes, *first.scheduler.notes, *first.prefix.notes(first.scheduler.rules, traffic, paces[-1])))
        plan = replace(plan, notes=tuple(notes))
    runs = replica.case.own_runs()
    return Fleet(
        query=query, layout=replica.case.layout, compiled=replica.compiled, scheduler=plan, pace=paces[0], why=why, pools=pools,
        prefix=first.prefix, first_token_factor=1.0 if runs is None or law is not None else float(runs.factors.first), law=law,
    )  # fmt: skip


def fleet_of_law(
    law: StepLaw, replicas: int, policy: Policy, assumptions: Assumptions, traffic: Traffic, *, classes: int = 1, closed: bool = False
) -> Fleet:
    """Replicas of which nothing is known but how long a step takes: KV cache without a limit unless `policy` has one."""
    policy = policy if policy.request_overhead is not None else replace(policy, request_overhead=0.0)
    room = NO_LIMIT if policy.kv_tokens is None else float(policy.kv_tokens)
    plan = scheduler(policy, assumptions, None, 1, room, classes, closed)
    rules, longest = plan.rules, float((traffic.prompt + traffic.output).max())
    pace = law.pace(rules.seats, rules.budget, longest)
    pace = pace if policy.step_factor == 1 else scaled(pace, float(policy.step_factor))
    cache = f"KV cache of {room:,.0f} tokens" if policy.kv_tokens is not None else "KV cache without a limit (--kv-tokens sets one)"
    most = f"at most {rules.budget} tokens (--token-budget) and {rules.seats} requests (--max-seqs) in a step"
    notes = (law.words(rules.seats), f"no model: {most}, {cache}")
    return Fleet(
        query=None, layout=Layout(replicas=replicas), compiled=None, scheduler=replace(plan, notes=notes), pace=pace, why="", pools=None,
        prefix=None, law=law,
    )  # fmt: skip


def _replica(query: Deployment, layout: Layout, policy: Policy, traffic: Traffic, classes: int, closed: bool) -> _Replica:
    """A replica of a layout, compiled for the traffic's mean context."""
    layout, _ = copies(layout, 1, query.work.blocks)
    case = replace(query, layout=layout, load=replace(query.load, prompt=float(traffic.prompt.mean())))
    compiled = case.compiled()
    if case.own_runs() is not None:
        case.steps_half("tpot", compiled)  # which the answer tells
    memory = case.room(compiled, policy.token_budget, policy.max_seqs)
    if policy.max_seqs is None and case.start() is not None:  # the most sequences that the log of the engine's start says
        policy = replace(policy, max_seqs=int(case.server(compiled).scheduling.max_sequences))
    context = float((traffic.prompt + traffic.output / 2).mean())  # on which with windows or state the KV of a token depends
    sequence, ranks = memory.sequence_bytes(context), int(layout.dp)
    sequences = float(rank_sequence_limit(memory.usable, compiled.weights_bytes, sequence, compiled.stage, layout.cp))
    room = float(np.minimum(sequences * context, NO_LIMIT)) * ranks
    kv_tokens = float(policy.kv_tokens) if policy.kv_tokens is not None else room
    accept = 1.0 if query.drafts is None else float(query.drafts.length())
    plan = scheduler(policy, query.assumptions, query.system.chip, ranks, kv_tokens, classes, closed, int(layout.pp), accept)
    return _Replica(case=case, compiled=compiled, usable=memory.usable, room=room, scheduler=plan)


def _cached(replica: _Replica, policy: Policy, traffic: Traffic, tiers: Sequence[SimulatedTier]) -> _Replica:
    """A replica with the tiers of its prefix cache, and where preempted sequences are swapped with room for them in its host."""
    case, compiled, plan, prefix = replica.case, replica.compiled, replica.scheduler, None
    chip, cp, ranks, prompt = case.system.chip, case.layout.cp, int(case.layout.dp), float(traffic.prompt.mean())
    rules, notes = plan.rules, plan.notes
    if tiers:
        usd_per_s = None
        if policy.reload != "time":  # loading is judged by cost: that of the chips which prefill a prompt
            if case.price is None:
                raise BadValue("--reload", policy.reload, f"a chip with a price, which {chip.name} has not, or --reload time")
            usd_per_s = float(case.price.value) * float(compiled.chips) / ranks
        prefix, hbm = prefix_of(tiers, usd_per_s)
        prompt_bytes = kv_bytes_chip(ONE_RANK, sequence_bytes(compiled.stores, compiled.state_bytes, prompt), compiled.stage, cp)
        cached = prefix.rules(rules, traffic, float(prompt_bytes) / prompt * float(compiled.chips) / ranks, hbm)
        rules, notes = cached, (*notes, *prefix.room_notes(rules, cached, hbm))
    if policy.preemption == "swap":
        if chip.host_link_bw is None:
            raise BadValue("--preemption", policy.preemption, f"a chip with a link to its host, which {chip.name} has not")
        context = float((traffic.prompt + traffic.output / 2).mean())
        kv_bytes = sequence_bytes(compiled.stores, compiled.state_bytes, context)
        block_bytes = float(kv_bytes_chip(ONE_RANK, kv_bytes, compiled.stage, cp)) / context * rules.block  # each chip's shard
        copy_s = float(prefix_load_s(kv_bytes, compiled.stage, cp, chip.host_link_bw)) / context * rules.block
        rules = rules._replace(swap=int(float(policy.swap_space) // block_bytes) * ranks, copy_s=copy_s)
    return replace(replica, scheduler=replace(plan, rules=rules, notes=notes), prefix=prefix)


def _transfer(first: _Replica, second: _Replica) -> Callable[[Any], Any]:
    """KV transfer time by prompt tokens from a prefill to a decode replica: the side with the larger shares of the cache takes longer."""
    query = second.case
    link = hand_over_link(query.system) * query.assumptions.eff_network

    def time(prompt: Any) -> Any:
        sides = (handed_bytes(part.compiled, np.asarray(prompt, float), part.case.layout.cp) / link for part in (first, second))
        return np.asarray(transfer_s(*sides), float)

    return time


def stretched(fleet: Fleet, factor: float) -> Fleet:
    """The fleet with every step `factor` times as long."""
    pools = fleet.pools
    if pools is not None and pools.first is not None:
        pools = replace(pools, first=replace(pools.first, pace=scaled(pools.first.pace, factor)))
    return replace(fleet, pace=fleet.pace and scaled(fleet.pace, factor), pools=pools)
