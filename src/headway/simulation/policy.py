"""Scheduling of requests: the user's choices, else the defaults of the engine family (data/efficiency.toml)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.core.errors import BadValue
from headway.core.schema import RARE, Field
from headway.hardware.chip import Chip
from headway.performance.achieved import efficiencies, platform
from headway.performance.assumptions import Assumptions
from headway.simulation import state

POLICIES = ("chunked", "prefill-first", "disaggregated")
ROUTES = ("round-robin", "least-loaded", "prefix-aware")
RELOADS = ("time", "cost")
PREEMPTIONS = ("recompute", "swap")
BLOCK = 16  # tokens, vLLM's default
SWAP_SPACE = 4 * 2**30  # bytes of host memory per chip, vLLM's default


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The scheduler of one replica; None for the default of the engine family."""

    policy: Annotated[str, Field(choices=(*POLICIES, ""), help="prompts: beside decodes, before them, or on replicas of their own")] = ""
    token_budget: Annotated[Any, Field("token", integer=True, low=1, open_low=False, high=1e9, help="tokens of a rank's step")] = None
    max_seqs: Annotated[Any, Field(integer=True, low=1, open_low=False, high=1e6, help="sequences of one rank (vLLM: max_num_seqs)")] = None
    kv_tokens: Annotated[
        Any, Field("token", low=1, open_low=False, high=1e12, help="KV cache of one replica, instead of what is left"), RARE
    ] = None
    block: Annotated[Any, Field("token", integer=True, low=1, open_low=False, high=1e6, help="tokens in a block of KV cache"), RARE] = BLOCK
    reserve: Annotated[
        Any, Field(open_low=False, high=1, help="part of an answer's KV cache that is set aside when it is admitted"), RARE
    ] = None
    departures: Annotated[
        Any, Field("s", help="steps leave at multiples of this time, full or not; drain: the time to read all HBM"), RARE
    ] = None
    request_overhead: Annotated[
        Any, Field("s", open_low=False, help="an engine's own work on a request before its first token is out"), RARE
    ] = None
    preemption: Annotated[str, Field(choices=PREEMPTIONS, help="what becomes of a cache for which there is no room any more"), RARE] = (
        "recompute"
    )
    swap_space: Annotated[Any, Field("byte", open_low=False, high=1e15, help="host memory of each chip for caches swapped out"), RARE] = (
        SWAP_SPACE
    )
    patience: Annotated[Any, Field("s", help="a user whose first token has not come by then leaves"), RARE] = None
    step_factor: Annotated[Any, Field(high=1e6, help="every step takes so many times as long as estimated"), RARE] = 1
    prefill_replicas: Annotated[
        Any, Field(integer=True, low=1, open_low=False, high=1e6, help="of policy disaggregated, besides --replicas")
    ] = 1
    routing: Annotated[str, Field(choices=ROUTES, help="which replica gets a request")] = "round-robin"
    reload: Annotated[
        str, Field(choices=RELOADS, help="a found prefix is loaded where that is faster than computing it, or cheaper"), RARE
    ] = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """A policy with every number resolved, and the origin of each."""

    rules: state.Rules
    overhead_s: float
    patience_s: float | None
    notes: tuple[str, ...]


def scheduler(
    policy: Policy, assumptions: Assumptions, chip: Chip, dp: int, kv_tokens: float, classes: int, closed: bool, pp: int = 1
) -> Scheduler:
    """The scheduler of a replica of `dp` ranks and `pp` stages with KV memory for `kv_tokens` tokens; each micro-batch has a budget."""
    table, kind = efficiencies(), platform(chip)
    name = "other" if assumptions.engine == "none" else assumptions.engine

    def number(user_value: Any, key: str) -> float:
        return float(table.engine(name, kind, key)) if user_value is None else float(user_value)

    mixed = number({"chunked": 1, "prefill-first": 0, "disaggregated": 0}.get(policy.policy), "chunked_prefill")
    budget, limit = int(number(policy.token_budget, "step_budget_tokens")), int(number(policy.max_seqs, "max_sequences"))
    _possible(policy, budget)
    reserve_share = number(policy.reserve, "reserved_output_share")
    reserve = (
        reserve_share if policy.reserve is not None or reserve_share >= 1 else 0.0
    )  # the simulator grows each answer, so it needs no mean over its growth
    without = assumptions.engine == "none" or assumptions.overlap != "fitted"
    overhead = 0.0 if without and policy.request_overhead is None else number(policy.request_overhead, "request_overhead_s")
    rules = state.Rules(
        budget=budget * dp * pp, chunk=budget, seats=limit * dp, capacity=int(kv_tokens // policy.block), block=int(policy.block),
        mixed=int(mixed), handed=0, reserve=reserve, departures=float(policy.departures or 0.0), accept=float(assumptions.accept_length),
        closed=int(closed), lanes=state.LANE * classes, hit=float(assumptions.hit_rate),
    )  # fmt: skip
    batching = f"{policy.policy or ('chunked' if mixed else 'prefill-first')}, {budget} tokens a step and {limit} sequences a rank"
    reservation = "answers set aside whole" if reserve >= 1 else f"preemption: {policy.preemption}"
    notes = [f"scheduler of engine {assumptions.engine!r}: {batching}, blocks of {int(policy.block)} tokens, {reservation}"]
    if overhead:
        notes.append(f"{overhead * 1e3:.3g} ms of the engine's own work on each request are part of TTFT")
    patience = None if policy.patience is None else float(policy.patience)
    return Scheduler(rules=rules, overhead_s=overhead, patience_s=patience, notes=tuple(notes))


def _possible(policy: Policy, budget: int) -> None:
    """Raise for a budget with which no engine starts: fewer tokens than a block of cache, or than the sequences that decode in a step."""
    if policy.token_budget is None:
        return
    if budget < BLOCK:
        raise BadValue("--token-budget", budget, f"at least {BLOCK} tokens a step, a block of KV cache; engines take 512 to 16384")
    if policy.max_seqs is not None and budget < int(policy.max_seqs):
        raise BadValue("--token-budget", budget, f"at least a token for each of the {int(policy.max_seqs)} sequences (--max-seqs)")
