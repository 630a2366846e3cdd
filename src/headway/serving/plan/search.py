"""The best batch of every layout at once: expected values by the laws of `estimate`, evaluated as arrays over layouts.

The sequences of a rank set the time of a step, so only batches that fill every rank can be best. Cost falls while TPOT and memory rise
with the sequences per rank, so bisection over all layouts together finds the exact largest number within the limits.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from headway.core.progress import tick
from headway.core.quantity import known
from headway.laws.economics.cost import chip_seconds_per_request, usd_per_request
from headway.laws.serving.replicas import (
    chip_seconds_per_request_at,
    chips_needed,
    full_batch,
    interleaved_tpot_s,
    offered_tok_per_s,
    replicas_needed,
    usd_per_request_at,
)
from headway.laws.serving.request import (
    e2e_s,
    final_context,
    held_kv_tokens,
    lane_tokens,
    middle_context,
    per_chip,
    prefill_lanes,
    request_s,
    sustained_tok_per_s,
    tpot_s,
    user_tok_per_s,
)
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.layer_terms import used_chips
from headway.laws.step.memory import fits_chips, fits_hbm, kv_bytes_chip, rank_sequence_limit, sequence_bytes, sequences_held, usable_hbm
from headway.laws.step.parts import rank_sequences
from headway.laws.step.step import compute_s, step_s
from headway.performance.compile import StepModel, compile_layout
from headway.performance.formats import Formats
from headway.performance.layout import Layout, halves
from headway.performance.request import NO_PROMPT, NO_SEQUENCES, ONE_RANK, emitted, prefilled, speculates
from headway.serving.plan.problem import Goal, limits
from headway.serving.serve import ServeRequest

MOST_SEQUENCES = 1 << 20  # on one rank: more than any memory holds
ONE_REPLICA = known(1, "one replica", "", "constant", "the fewest there can be")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Compiled layouts of one model on one machine in one set of formats: all that does not depend on the batch."""

    query: ServeRequest
    layout: Layout  # arrays (n, 1)
    count: int
    compiled: StepModel
    decode: StepCoefficients  # coefficients of decode steps, with one prefill rank so that prompt terms stay scalars
    ttft: Any
    prefill: Any
    sequence: Any  # bytes of one sequence on the fullest chip
    usable: Any
    limit: Any  # most sequences of one rank, all pipeline stages together

    def rows(self, keep: Any) -> Candidates:
        """The candidates at the indices `keep`."""
        keys = ("layout", "compiled", "decode", "ttft", "prefill", "sequence", "limit")
        return replace(self, **{key: _rows(getattr(self, key), keep, self.count) for key in keys}, count=len(keep))


def _rows(value: Any, keep: Any, count: int) -> Any:
    if isinstance(value, np.ndarray):
        return value[keep] if value.ndim == 2 and value.shape[0] == count else value
    if is_dataclass(value) and not isinstance(value, type | Formats):
        return replace(value, **{field.name: _rows(getattr(value, field.name), keep, count) for field in fields(value)})
    return tuple(_rows(item, keep, count) for item in value) if isinstance(value, tuple) else value


def compile_candidates(query: ServeRequest, layout: Layout, count: int) -> Candidates:
    """The compiled candidates of `count` layouts."""
    tick(count)
    compiled = compile_layout(query.work, query.system, layout, query.assumptions, query.formats)
    c, prompt = compiled.step, query.load.prompt
    one_rank = replace(c, prefill_ranks=ONE_RANK)
    tokens, pairs = prefilled(prompt, query.assumptions)
    first = step_s(one_rank, NO_SEQUENCES, NO_PROMPT, tokens, pairs)
    busy = step_s(c, NO_SEQUENCES, NO_PROMPT, lane_tokens(tokens, layout.dp), lane_tokens(pairs, layout.dp))
    sequence_size = sequence_bytes(compiled.stores, compiled.state_bytes, final_context(prompt, query.load.output))
    usable = usable_hbm(query.system.chip.need("hbm"), query.assumptions.hbm_utilization)
    return Candidates(
        query=query,
        layout=layout,
        count=count,
        compiled=compiled,
        decode=one_rank,
        ttft=first,
        prefill=busy,
        sequence=sequence_size,
        usable=usable,
        limit=rank_sequence_limit(usable, compiled.weights_bytes, sequence_size, compiled.stage, layout.cp),
    )


def fits(w: Candidates, batch: Any) -> Any:
    """Whether weights and the KV cache of `batch` sequences fit in HBM, and the machine has the chips."""
    layout = w.layout
    sequences = sequences_held(rank_sequences(batch, layout.dp, layout.pp), layout.pp)
    kv = kv_bytes_chip(sequences, w.sequence, w.compiled.stage, layout.cp)
    chips = fits_chips(used_chips(w.compiled.chips, layout.replicas), w.query.system.chips)
    return fits_hbm(w.compiled.weights_bytes, kv, w.usable) & chips


def tpot(w: Candidates, batch: Any) -> Any:
    """Expected TPOT in seconds at a batch, without prefill interference."""
    load, c = w.query.load, w.decode
    contexts = (load.prompt, middle_context(load.prompt, load.output), final_context(load.prompt, load.output))
    first, middle, last = (step_s(c, batch, held_kv_tokens(batch, context), NO_PROMPT, NO_PROMPT) for context in contexts)
    mean, assumptions = tpot_s(first, middle, last), w.query.assumptions
    return emitted(mean, compute_s(c, batch, held_kv_tokens(batch, contexts[1])), assumptions) if speculates(assumptions) else mean


def request(w: Candidates, batch: Any, tpot: Any) -> Any:
    """Expected replica time of a request in seconds."""
    return request_s(batch, w.query.load.output, tpot, w.prefill, prefill_lanes(w.layout.dp, w.layout.pp))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCounts:
    """Replicas of each layout, chips that they use, and chips that are paid for."""

    replicas: Any
    chips_used: Any
    chips: Any


def sized(w: Candidates, request: Any, goal: Goal) -> ReplicaCounts:
    """The replicas that the machine holds, or that the load needs."""
    replicas, chips = w.layout.replicas, w.query.system.chips
    if goal.sizing:
        replicas = ONE_REPLICA if goal.rate is None else replicas_needed(goal.rate, request)
        if goal.free:
            chips = chips_needed(replicas, w.query.system.scale_up_domain, w.compiled.chips)
    return ReplicaCounts(replicas=replicas, chips_used=used_chips(w.compiled.chips, replicas), chips=chips)


def objective_value(goal: Goal, query: ServeRequest, size: ReplicaCounts, tpot: Any, request: Any) -> Any:
    """The objective: USD per request (chip time without a price), tokens/s per chip, tokens/s of a user, or chips.

    If the number of chips follows from a rate, the requests of that rate share their cost; else the requests of full capacity do.
    """
    at_rate = goal.free and goal.rate is not None
    if goal.objective == "latency":
        return user_tok_per_s(tpot)
    if goal.objective == "chips":
        return size.chips if goal.free else size.chips_used
    if goal.objective == "throughput":
        load = query.load
        rate = offered_tok_per_s(goal.rate, load.output) if at_rate else sustained_tok_per_s(load.output, request, size.replicas)
        return per_chip(rate, size.chips)
    if query.price is None:
        if at_rate:
            return chip_seconds_per_request_at(size.chips, goal.rate)
        return chip_seconds_per_request(size.chips, request, size.replicas)
    if at_rate:
        return usd_per_request_at(query.price.value, size.chips, goal.rate)
    return usd_per_request(query.price.value, size.chips, request, size.replicas)


def most_fitting(w: Candidates) -> Any:
    """Most sequences per rank that fit in memory, (n, 1); 0 if the weights alone do not fit."""
    stages = np.minimum(np.asarray(w.limit, dtype=float) / w.layout.pp, MOST_SEQUENCES)
    high = np.broadcast_to(stages.astype(np.int64) + 2, (w.count, 1))
    return _bisect(lambda ranks: fits(w, batch_of(w, ranks)), high)


def within(w: Candidates, batch: Any, goal: Goal) -> Any:
    """Whether a batch keeps the limits that depend on it: TPOT, interleaved TPOT and E2E."""
    user_limits = limits(goal.slo)
    times = tpot(w, batch)
    good = np.full(np.broadcast_shapes(np.shape(times), np.shape(batch)), True)
    if "tpot" in user_limits:
        good &= times <= user_limits["tpot"]
    if "tpot_interleaved" in user_limits:
        good &= interleaved_tpot_s(batch, request(w, batch, times), w.query.load.output) <= user_limits["tpot_interleaved"]
    if "e2e" in user_limits:
        good &= e2e_s(w.ttft, times, w.query.load.output) <= user_limits["e2e"]
    return good


def least_sequences(w: Candidates) -> int:
    """Fewest sequences of a rank: two where each batch is computed in halves."""
    return 2 if w.query.assumptions.communication == "two-batch" else 1


def carried(w: Candidates, request: Any, goal: Goal) -> Any:
    """Whether the replicas that the machine holds carry the rate."""
    if goal.rate is None or (goal.free and goal.sizing):
        return np.full(np.shape(request), True)
    return replicas_needed(goal.rate, request) <= w.layout.replicas


def most_within(w: Candidates, most: Any, goal: Goal) -> Any:
    """Most sequences per rank, up to `most`, that keep the limits; 0 if none."""
    none = not limits(goal.slo).keys() - {"ttft"}
    return most if none else _bisect(lambda ranks: within(w, batch_of(w, ranks), goal), most + 1)


def least_carrying(w: Candidates, most: Any, goal: Goal) -> Any:
    """The fewest sequences per rank that carry the rate, given that `most` does."""
    if goal.rate is None or (goal.free and goal.sizing):
        return np.full_like(most, least_sequences(w))

    def short(ranks: Any) -> Any:
        batch = batch_of(w, ranks)
        return ~carried(w, request(w, batch, tpot(w, batch)), goal)

    return np.maximum(_bisect(short, most) + 1, least_sequences(w))


def batch_of(w: Candidates, ranks: Any) -> Any:
    """Batch of a replica with `ranks` sequences on every rank and stage."""
    return full_batch(ranks, w.layout.dp, w.layout.pp)


def _bisect(holds: Any, high: Any) -> Any:
    """The largest whole number below `high` at which `holds` is true, else 0; `holds` must be monotonic."""
    low = np.zeros_like(high)
    while (high - low > 1).any():
        middle = np.maximum((low + high) // 2, 1)
        good = holds(middle)
        converged = high - low <= 1
        low, high = np.where(good & ~converged, middle, low), np.where(good | converged, high, middle)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class BestBatches:
    """The best batch of each layout that keeps every limit, as arrays over these layouts."""

    candidates: Candidates
    batch: Any
    tpot: Any
    request: Any
    size: ReplicaCounts
    value: Any
    fitting: Candidates  # layouts within memory and the TTFT limit, other limits ignored
    most: Any  # sequences per rank that fit in memory, for `fitting`; None for pinned batches
    fitting_rows: Any  # row in `fitting` of each of `candidates`
    room: Any  # whether each pinned batch fits in memory; None without pinned batches
    in_memory: int  # number of layouts that fit in memory, limits ignored
    in_time: int  # number of layouts that keep every latency limit


def best_batches(w: Candidates, goal: Goal) -> BestBatches:
    """Each layout at its best batch, or at the best pinned batch."""
    if goal.batches:
        return _pinned(w, goal, np.array([goal.batches], dtype=np.int64))
    most = most_fitting(w)
    inside = int((most > 0).sum())
    good = (most >= least_sequences(w)) & (True if goal.slo.ttft is None else w.ttft <= goal.slo.ttft)
    keep = np.flatnonzero(np.broadcast_to(good, (w.count, 1)))
    fitting, most = w.rows(keep), most[keep]
    ranks = most_within(fitting, most, goal)
    timely = np.flatnonzero(ranks >= least_sequences(w))
    met, ranks = fitting.rows(timely), ranks[timely]
    batch = batch_of(met, ranks)
    enough = np.flatnonzero(carried(met, request(met, batch, tpot(met, batch)), goal))
    met, ranks = met.rows(enough), ranks[enough]
    if goal.objective == "latency":
        ranks = least_carrying(met, ranks, goal)
    counts = {"in_memory": inside, "in_time": len(timely)}
    return _best(met, batch_of(met, ranks), goal, fitting=fitting, most=most, fitting_rows=timely[enough], room=None, **counts)


def _pinned(w: Candidates, goal: Goal, batches: Any) -> BestBatches:
    room = np.broadcast_to(fits(w, batches), (w.count, batches.shape[1]))
    if least_sequences(w) > 1:
        room = room & halves(w.layout, batches)
    early = np.broadcast_to(True if goal.slo.ttft is None else w.ttft <= goal.slo.ttft, (w.count, 1))
    keep = np.flatnonzero(room.any(axis=1) & early[:, 0])
    fitting = w.rows(keep)
    times = tpot(fitting, batches)
    requests = request(fitting, batches, times)
    timely = room[keep] & within(fitting, batches, goal)
    good = timely & carried(fitting, requests, goal)
    values = objective_value(goal, w.query, sized(fitting, requests, goal), times, requests)
    ranked = np.where(good, -values if goal.more else values, np.inf)
    met = np.flatnonzero(good.any(axis=1))
    batch = batches[0][np.argmin(ranked, axis=1)][met].reshape(-1, 1) if len(keep) else np.empty((0, 1), dtype=np.int64)
    counts = {"in_memory": int(room.any(axis=1).sum()), "in_time": int(timely.any(axis=1).sum())}
    return _best(fitting.rows(met), batch, goal, fitting=fitting, most=None, fitting_rows=met, room=room[keep], **counts)


def _best(w: Candidates, batch: Any, goal: Goal, **rest: Any) -> BestBatches:
    times = tpot(w, batch)
    requests = request(w, batch, times)
    size = sized(w, requests, goal)
    value = np.broadcast_to(objective_value(goal, w.query, size, times, requests), (w.count, 1))
    return BestBatches(candidates=w, batch=batch, tpot=times, request=requests, size=size, value=value, **rest)
