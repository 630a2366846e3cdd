"""A server (a compiled deployment with its memory and scheduling), and what one request meets on it.

The only assembly of TTFT, TPOT and E2E, defined as in vLLM's `bench serve`: serve, plan, price, speed, predict and score call it; the
simulator's zero-load test does too. Scalars and arrays broadcast.
`law` is `step_s`, or `step_floor_s` for the floor at the same load.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.core.units import Number, PerSecond, Second, Token
from headway.hardware.chip import Chip
from headway.hardware.system import System, pair_bandwidth
from headway.laws.calibration import by_own_runs
from headway.laws.queueing import closed_loop as loops
from headway.laws.queueing import drafts
from headway.laws.queueing.closed_loop import (
    CLOSED,
    NO_WORK,
    SINGLE,
    Law,
    Loop,
    LoopTimes,
    StepTime,
    TokenTime,
    decoding_in_loop,
    open_loop_capacity,
    open_loop_decoding,
    open_loop_in_service,
    poisson,
    replica_seats,
    step_times,
    token_times,
)
from headway.laws.queueing.users import kept_in_step, packed_tokens, prompt_chunks, run_synchronised_share
from headway.laws.serving.request import (
    causal_pairs,
    lane_prompts,
    middle_context,
    missed_pairs,
    missed_tokens,
    pipelined_s,
    prompt_lanes,
    tpot_s,
)
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.memory import rank_sequence_limit, sequence_bytes
from headway.laws.step.pages import paged_sequence_bytes
from headway.laws.step.step import step_floor_s, step_s
from headway.performance.achieved import OTHER_FAMILY, Efficiencies, efficiencies, platform
from headway.performance.pages import PageTerm

NO_TIME = known(0.0, "no overhead", "s", "constant", "an ideal scheduler")
NO_SHARE = known(0.0, "none", "", "constant", "an ideal scheduler")
FULL_OVERLAP = known(1.0, "all", "", "constant", "an ideal scheduler")
PLAIN = known(1, "accept_length", "", "constant", "a step yields one token")
NO_RUNS = 1  # factor on TTFT without runs of one's own


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRoom:
    """Memory of the fullest chip, per setup, in bytes."""

    weights: Any
    usable: Any  # by weights and KV cache, under the engine
    card: Any  # all of it, as the driver reports it
    stores: tuple[tuple[Any, Any], ...]
    state: Any
    pages: tuple[PageTerm, ...]  # blocks of a sequence's caches, as the engine lays them out
    stage: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """Engine scheduling constants of the closed loop, per setup."""

    step_budget_tokens: Any
    chunked_prefill: Any
    concurrent_prompts: Any
    request_overhead_s: Any
    reserved_output_share: Any
    max_sequences: Any
    streaming_overhead_s: Any  # additional time per sequence and step if answers are streamed
    pipeline_overlap_share: Any  # share of a prompt's chunks that overlap in pipeline stages
    first_round_share: Any  # share of a run's requests that come at once at its start
    start_share: Any  # share of requests that come at once where prompts have workers of their own: those of a run's start


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A compiled deployment with its engine: one, or one per element where the numbers are arrays."""

    step: StepCoefficients
    room: MemoryRoom
    scheduling: Scheduling
    replicas: Any
    chips: Any
    instance: Any  # chips per replica
    tp: Any
    link: Any  # scale-out bandwidth per chip, byte/s
    accept_length: Any = PLAIN  # tokens per step, by speculation
    first_token_factor: Any = NO_RUNS  # on TTFT, by runs of one's own (performance/calibration)

    def ideal(self) -> Server:
        """The server under an ideal scheduler: no overhead and no wasted memory."""
        free = replace(
            self.scheduling, request_overhead_s=NO_TIME, concurrent_prompts=NO_SHARE,
            reserved_output_share=NO_SHARE, pipeline_overlap_share=FULL_OVERLAP,
        )  # fmt: skip
        return replace(self, scheduling=free, room=replace(self.room, usable=self.room.card))

    def online(self) -> Server:
        """The server with the overhead of streaming each token to a user."""
        achieved = self.step.achieved
        streamed = replace(achieved, sequence=achieved.sequence + self.scheduling.streaming_overhead_s)
        return replace(self, step=replace(self.step, achieved=streamed))

    def cache_bytes(self, context: Token) -> Any:
        """KV cache bytes per sequence on the fullest chip."""
        return sequence_bytes(self.room.stores, self.room.state, context) * self.room.stage / self.step.cp

    def seats(self, prompt: Token, output: Token) -> Any:
        """Slots of a replica: sequences whose KV cache fits, at most the engine's limit."""
        room, c = self.room, self.step
        cache_bytes = paged_sequence_bytes(room.pages, prompt + self.scheduling.reserved_output_share * output)
        sequences = rank_sequence_limit(room.usable, room.weights, cache_bytes, room.stage, c.cp)
        return replica_seats(sequences, self.scheduling.max_sequences, c.dp)


def scheduling(engine: str, chip: Chip, table: Efficiencies) -> Scheduling:
    """Scheduling constants of an engine on a chip; without one (`none`) those of `other`, less its overhead."""
    name = "other" if engine == "none" else engine
    kind = platform(chip)
    rules = Scheduling(**{field.name: table.engine(name, kind, field.name) for field in fields(Scheduling)})
    return replace(rules, request_overhead_s=NO_TIME, streaming_overhead_s=NO_TIME) if engine == "none" else rules


def ideal_scheduling() -> Scheduling:
    """Scheduling of the step models that are not fitted: without overhead, prompts spread evenly, all HBM in use as stated."""
    table = efficiencies()
    rules = Scheduling(**{field.name: table.engine("other", OTHER_FAMILY, field.name) for field in fields(Scheduling)})
    return replace(
        rules, request_overhead_s=NO_TIME, streaming_overhead_s=NO_TIME, concurrent_prompts=NO_SHARE,
        pipeline_overlap_share=FULL_OVERLAP,
    )  # fmt: skip


def transfer_link(system: System) -> float:
    """Bandwidth of a KV transfer between instances, byte/s per chip: scale-out network, else the scale-up links to one chip."""
    for bandwidth in (system.scale_out_bw, system.chip.scale_out_bw, pair_bandwidth(system)):
        if bandwidth is not None:
            return float(bandwidth)
    return math.inf


EXPECTED = known(0, "step law", "", "constant", "step_s: kernels at their fitted rates")
FLOOR = known(1, "step law", "", "constant", "step_floor_s: kernels at datasheet rates")
ALIKE = known(0.0, "spread of lengths", "", "constant", "all requests are alike")
ALL_MISS = known(0, "hit_rate", "", "constant", "no prefix cache")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests of one kind: their lengths in tokens, and what a prefix cache holds of them."""

    prompt: Any
    output: Any
    spread: Any = ALIKE  # of the output length: standard deviation over mean
    hit_rate: Any = ALL_MISS


def prefilled(prompt: Token, hit_rate: Number) -> tuple[Any, Any]:
    """Prompt tokens to prefill and their (query, key) pairs; a step reads the KV of the hit tokens, which is in HBM."""
    if not np.any(hit_rate):
        return prompt, causal_pairs(prompt)
    return missed_tokens(prompt, hit_rate), missed_pairs(prompt, hit_rate)


def loop_of(server: Server, requests: Requests, users: Number) -> Loop:
    """The load of `users` users on one replica."""
    s, c = server.scheduling, server.step
    tokens, pairs = prefilled(requests.prompt, requests.hit_rate)
    lanes = c.dp * c.pp
    along = kept_in_step(s.concurrent_prompts, requests.spread, requests.output)
    return Loop(
        users=users, seats=server.seats(requests.prompt, requests.output), prompt=requests.prompt, prefill=tokens, pairs=pairs,
        output=requests.output, spread=requests.spread, step_budget_tokens=s.step_budget_tokens * lanes,
        chunked_prefill=s.chunked_prefill,
        synchronised_share=run_synchronised_share(s.first_round_share, 1 - s.chunked_prefill, requests.spread, requests.output),
        concurrent_prompts=along,
        request_overhead_s=s.request_overhead_s, lanes=lanes, pp=c.pp, pipeline_overlap_share=s.pipeline_overlap_share,
        accept_length=server.accept_length, closed=CLOSED, in_turn=server.replicas,
    )  # fmt: skip


def prompt_s(server: Server, requests: Requests, prompts: Number, law: Law) -> Any:
    """Prefill time of prompts that start together without decodes: a chunk of each rank per step, overlapped across pipeline stages."""
    prompt_tokens, prompt_pairs = prefilled(requests.prompt, requests.hit_rate)
    tokens, pairs = prompt_tokens * prompts, prompt_pairs * prompts
    ranks = prompt_lanes(prompts, server.step.dp, SINGLE, prompts)
    budget = server.scheduling.step_budget_tokens * ranks
    chunks, step = prompt_chunks(tokens, budget), step_times(server.step, law)
    chunk = longest = step(NO_WORK, NO_WORK, tokens / chunks, pairs / chunks, prompts)
    if np.any(server.step.pp > 1):
        largest = packed_tokens(tokens, budget, SINGLE)
        longest = step(NO_WORK, NO_WORK, largest, pairs * (largest / tokens), prompts)
    return pipelined_s(chunk, chunks, longest, server.step.pp, server.scheduling.pipeline_overlap_share)


def saturated_prompt_s(server: Server, requests: Requests, law: Law) -> Any:
    """Time per prompt where prompts wait for every data-parallel rank and stage: each takes its budget in every step."""
    tokens, pairs = prefilled(requests.prompt, requests.hit_rate)
    lanes = server.step.dp * server.step.pp
    packed = server.scheduling.step_budget_tokens * lanes
    busy = replace(server.step, prefill_ranks=lanes, rank_prompts=lane_prompts(packed / tokens, lanes))
    full = law(busy, NO_WORK, NO_WORK, packed, pairs * (packed / tokens))
    return full * (tokens / packed)


def decode_s(server: Server, requests: Requests, batch: Number, law: Law) -> Any:
    """Mean time per token of a batch that decodes undisturbed, over its growing context."""
    step = step_times(server.step, law)
    contexts = (requests.prompt, middle_context(requests.prompt, requests.output), requests.prompt + requests.output)
    mean = tpot_s(*(step(batch, batch * context, NO_WORK, NO_WORK, SINGLE) for context in contexts))
    return token_times(server.accept_length)(batch, batch * contexts[1], mean)


def unloaded_ttft_s(server: Server, requests: Requests, law: Law) -> Any:
    """TTFT of a request alone on the server: the engine's work on it, and its prefill."""
    return first_token_s(server, prompt_s(server, requests, SINGLE, law) + server.scheduling.request_overhead_s, law)


def first_token_s(server: Server, ttft: Second, law: Law) -> Any:
    """A TTFT as runs of one's own have it; floors stay as they are, and so does what a loop takes."""
    if server.first_token_factor is NO_RUNS or law is step_floor_s:
        return ttft
    return by_own_runs(ttft, server.first_token_factor)


def closed_loop(server: Server, requests: Requests, users: Number, law: Law = step_s) -> LoopTimes:
    """`users` per replica who each send the next request when the last is answered."""
    loop = loop_of(server, requests, users)
    step, token = _times(server, law)
    served = np.minimum(loop.users, loop.seats)
    decoding = decoding_in_loop(server.step, replace(loop, users=served), _law_mark(law))
    return first_tokens(server, loops.loop_times(step, loop, served, decoding, token), law)


def open_loop(server: Server, requests: Requests, rate: PerSecond, law: Law = step_s) -> LoopTimes:
    """Requests that arrive at random at `rate` per replica, whatever the backlog; from the capacity on its times mean nothing."""
    loop, mark = loop_of(server, requests, SINGLE), _law_mark(law)
    step, token = _times(server, law)
    decoding = open_loop_decoding(server.step, loop, rate, mark)
    served = open_loop_in_service(server.step, loop, rate, decoding, mark)
    return first_tokens(server, loops.open_times(step, poisson(loop, rate), rate, served, decoding, token), law)


def first_tokens(server: Server, times: LoopTimes, law: Law = step_s) -> LoopTimes:
    """Times of a loop with its TTFT as runs of one's own have it."""
    return replace(times, ttft=first_token_s(server, times.ttft, law))


def capacity(server: Server, requests: Requests, law: Law = step_s) -> Any:
    """Requests per second that one replica finishes with every seat taken."""
    return open_loop_capacity(server.step, loop_of(server, requests, SINGLE), _law_mark(law))


def paying_users(server: Server, plain: Server, requests: Requests) -> Any:
    """Users of a replica from which on the drafts of a server save no time beside the same without them."""
    return drafts.paying_users(server.step, plain.step, loop_of(server, requests, SINGLE))


def _times(server: Server, law: Law) -> tuple[StepTime, TokenTime]:
    return step_times(server.step, law), token_times(server.accept_length)


def _law_mark(law: Law) -> Any:
    return FLOOR if law is step_floor_s else EXPECTED
