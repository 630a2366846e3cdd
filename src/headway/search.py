"""The best batch of every layout at once: what a search weighs, by the same laws as `estimate`, expected values alone.

A rank's number of sequences sets the time of a step, so only batches that fill every rank can be best; cost falls and TPOT and memory
rise with that number, so that the largest one within the limits is found by bisection, for all layouts together, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from headway.compile import Compiled, compile_layout
from headway.errors import UnknownName
from headway.estimate import NO_PROMPT, NO_SEQUENCES, ONE_RANK
from headway.laws.coefficients import StepCoefficients
from headway.laws.memory import fits_chips, fits_hbm, kv_bytes_chip, rank_sequence_limit, sequence_bytes, sequences_held, usable_hbm
from headway.laws.money import chip_seconds_per_request, usd_per_request
from headway.laws.planning import full_batch
from headway.laws.serving import (
    causal_pairs,
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
from headway.laws.shard import used_chips
from headway.laws.step import step_s
from headway.laws.step_parts import rank_sequences
from headway.layout import Layout
from headway.resolve import Formats
from headway.serve import Query
from headway.workload import SLO

OBJECTIVES = {"cost": False, "throughput": True, "speed": True}  # whether more is better
MOST_SEQUENCES = 1 << 20  # on one rank: beyond any memory


def check_objective(name: str) -> str:
    """A known objective, or an error that names them."""
    if name not in OBJECTIVES:
        raise UnknownName("objective", name, OBJECTIVES, "one of " + ", ".join(OBJECTIVES))
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """Layouts of one model on one machine in one set of formats, compiled: what does not depend on the batch."""

    query: Query
    layout: Layout  # arrays (n, 1)
    count: int
    compiled: Compiled
    decode: StepCoefficients  # of steps without prompts, whose ranks then do not matter: one, so that prompt terms stay scalars
    ttft: Any
    prefill: Any
    sequence: Any  # bytes of one sequence on the fullest chip
    usable: Any
    limit: Any  # sequences of one rank and pipeline stage together

    def rows(self, keep: Any) -> Weighed:
        """Some of the layouts."""
        keys = ("layout", "compiled", "decode", "ttft", "prefill", "sequence", "limit")
        return replace(self, **{key: _rows(getattr(self, key), keep, self.count) for key in keys}, count=len(keep))


def _rows(value: Any, keep: Any, count: int) -> Any:
    if isinstance(value, np.ndarray):
        return value[keep] if value.ndim == 2 and value.shape[0] == count else value
    if is_dataclass(value) and not isinstance(value, type | Formats):
        return replace(value, **{field.name: _rows(getattr(value, field.name), keep, count) for field in fields(value)})
    return tuple(_rows(item, keep, count) for item in value) if isinstance(value, tuple) else value


def weigh(query: Query, layout: Layout, count: int) -> Weighed:
    """Compile all layouts at once."""
    compiled = compile_layout(query.work, query.system, layout, query.assumptions, query.formats)
    c, prompt = compiled.step, query.load.prompt
    one, pairs = replace(c, prefill_ranks=ONE_RANK), causal_pairs(prompt)
    each = sequence_bytes(compiled.stores, compiled.state_bytes, final_context(prompt, query.load.output))
    usable = usable_hbm(query.system.chip.need("hbm"), query.assumptions.hbm_utilization)
    return Weighed(
        query=query,
        layout=layout,
        count=count,
        compiled=compiled,
        decode=one,
        ttft=step_s(one, NO_SEQUENCES, NO_PROMPT, prompt, pairs),
        prefill=step_s(c, NO_SEQUENCES, NO_PROMPT, lane_tokens(prompt, layout.dp), lane_tokens(pairs, layout.dp)),
        sequence=each,
        usable=usable,
        limit=rank_sequence_limit(usable, compiled.weights_bytes, each, compiled.stage, layout.cp),
    )


def fits(w: Weighed, batch: Any) -> Any:
    """Whether weights and cache of so many sequences fit, and the machine has the chips."""
    layout = w.layout
    held = sequences_held(rank_sequences(batch, layout.dp, layout.pp), layout.pp)
    kv = kv_bytes_chip(held, w.sequence, w.compiled.stage, layout.cp)
    chips = fits_chips(used_chips(w.compiled.chips, layout.replicas), w.query.system.chips)
    return fits_hbm(w.compiled.weights_bytes, kv, w.usable) & chips


def tpot(w: Weighed, batch: Any) -> Any:
    """Expected TPOT."""
    load, c = w.query.load, w.decode
    contexts = (load.prompt, middle_context(load.prompt, load.output), final_context(load.prompt, load.output))
    first, middle, last = (step_s(c, batch, held_kv_tokens(batch, context), NO_PROMPT, NO_PROMPT) for context in contexts)
    return tpot_s(first, middle, last)


def request(w: Weighed, batch: Any, tpot: Any) -> Any:
    """Expected replica time of a request."""
    return request_s(batch, w.query.load.output, tpot, w.prefill, prefill_lanes(w.layout.dp, w.layout.pp))


def worth(objective: str, query: Query, replicas: Any, tpot: Any, request: Any) -> Any:
    """The objective's value: USD per request (chip time without a price), tokens/s per chip, or tokens/s of a user."""
    chips = query.system.chips
    if objective == "speed":
        return user_tok_per_s(tpot)
    if objective == "throughput":
        return per_chip(sustained_tok_per_s(query.load.output, request, replicas), chips)
    if query.price is None:
        return chip_seconds_per_request(chips, request, replicas)
    return usd_per_request(query.price.value, chips, request, replicas)


def most_fitting(w: Weighed) -> Any:
    """Sequences per rank that memory allows, (n, 1); 0 where the weights alone do not fit."""
    stages = np.minimum(np.asarray(w.limit, dtype=float) / w.layout.pp, MOST_SEQUENCES)
    high = np.broadcast_to(stages.astype(np.int64) + 2, (w.count, 1))
    return _bisect(lambda ranks: fits(w, batch_of(w, ranks)), high)


def most_within(w: Weighed, most: Any, limit: Any) -> Any:
    """Of those, as many as keep the TPOT limit."""
    return most if limit is None else _bisect(lambda ranks: tpot(w, batch_of(w, ranks)) <= limit, most + 1)


def batch_of(w: Weighed, ranks: Any) -> Any:
    """Sequences of a replica, every rank and stage holding the same number."""
    return full_batch(ranks, w.layout.dp, w.layout.pp)


def _bisect(holds: Any, high: Any) -> Any:
    """The largest whole number below `high` at which `holds`, 0 where it holds at none from 1 on."""
    low = np.zeros_like(high)
    while (high - low > 1).any():
        middle = np.maximum((low + high) // 2, 1)
        good = holds(middle)
        done = high - low <= 1
        low, high = np.where(good & ~done, middle, low), np.where(good | done, high, middle)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best batch of each layout that keeps every limit: arrays of those layouts alone."""

    weighed: Weighed
    batch: Any
    tpot: Any
    request: Any
    value: Any
    fitting: Weighed  # the layouts that memory and TTFT allow, whatever the TPOT
    most: Any  # and the sequences per rank that memory allows there; None for pinned batches
    kept: Any  # where each of `weighed` stands in `fitting`
    room: Any  # of batches that the user pinned, whether each fits in memory
    in_memory: int  # layouts that fit in memory, whatever the limits


def best_batches(w: Weighed, slo: SLO, objective: str, batches: Sequence[int] = ()) -> Best:
    """Each layout at its best batch, or at the best of `batches`."""
    if batches:
        return _pinned(w, slo, objective, np.array([batches], dtype=np.int64))
    most = most_fitting(w)
    inside = int((most > 0).sum())
    good = (most > 0) & (True if slo.ttft is None else w.ttft <= slo.ttft)
    keep = np.flatnonzero(np.broadcast_to(good, (w.count, 1)))
    fitting, most = w.rows(keep), most[keep]
    within = most_within(fitting, most, slo.tpot)
    keep = np.flatnonzero(within)
    met, within = fitting.rows(keep), within[keep]
    ranks = np.ones_like(within) if objective == "speed" else within
    return _best(met, batch_of(met, ranks), objective, fitting=fitting, most=most, kept=keep, room=None, in_memory=inside)


def _pinned(w: Weighed, slo: SLO, objective: str, batches: Any) -> Best:
    room = np.broadcast_to(fits(w, batches), (w.count, batches.shape[1]))
    early = np.broadcast_to(True if slo.ttft is None else w.ttft <= slo.ttft, (w.count, 1))
    keep = np.flatnonzero(room.any(axis=1) & early[:, 0])
    fitting = w.rows(keep)
    times = tpot(fitting, batches)
    good = room[keep] & (True if slo.tpot is None else times <= slo.tpot)
    values = worth(objective, w.query, fitting.layout.replicas, times, request(fitting, batches, times))
    ranked = np.where(good, -values if OBJECTIVES[objective] else values, np.inf)
    met = np.flatnonzero(good.any(axis=1))
    batch = batches[0][np.argmin(ranked, axis=1)][met].reshape(-1, 1) if len(keep) else np.empty((0, 1), dtype=np.int64)
    rest = {"fitting": fitting, "most": None, "kept": met, "room": room[keep], "in_memory": int(room.any(axis=1).sum())}
    return _best(fitting.rows(met), batch, objective, **rest)


def _best(w: Weighed, batch: Any, objective: str, **rest: Any) -> Best:
    times = tpot(w, batch)
    requests = request(w, batch, times)
    value = worth(objective, w.query, w.layout.replicas, times, requests)
    return Best(weighed=w, batch=batch, tpot=times, request=requests, value=value, **rest)
