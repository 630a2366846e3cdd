"""A compiled deployment as requests meet it: its step, the memory left for KV caches, and its engine's scheduling."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from headway.core.quantity import known
from headway.hardware.chip import Chip
from headway.hardware.links import pair_bandwidth
from headway.hardware.system import System
from headway.laws.queueing.closed_loop import replica_seats
from headway.laws.step.coefficients import StepCoefficients
from headway.laws.step.memory import rank_sequence_limit, sequence_bytes
from headway.performance.efficiency import OTHER_FAMILY, Efficiencies, efficiencies, platform

GIB_OVER_GB = known(2**30 / 1e9, "GiB over GB", "", "constant", "datasheets print GB for a memory of that many GiB")
NO_TIME = known(0.0, "no overhead", "s", "constant", "an ideal scheduler")
NO_SHARE = known(0.0, "none", "", "constant", "an ideal scheduler")
FULL_OVERLAP = known(1.0, "all", "", "constant", "an ideal scheduler")
PLAIN = known(1, "accept_length", "", "constant", "a step yields one token")
NO_DRAFTS = known(0, "draft_cost", "", "constant", "nothing is drafted")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRoom:
    """Memory of the fullest chip, per setup, in bytes."""

    weights: Any
    hbm: Any
    stores: tuple[tuple[Any, Any], ...]
    state: Any
    stage: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """Engine scheduling constants of the closed loop, per setup."""

    step_budget_tokens: Any
    chunked_prefill: Any
    synchronised_share: Any
    concurrent_prompts: Any
    request_overhead_s: Any
    reserved_output_share: Any
    max_sequences: Any
    streaming_overhead_s: Any  # additional time per sequence and step if answers are streamed
    pipeline_overlap_share: Any  # share of a prompt's chunks that overlap in pipeline stages
    first_round_share: Any  # share of a run's requests that come at once at its start
    start_share: Any  # share of requests that come at once where prompts have workers of their own: those of a run's start
    usable_hbm_factor: Any  # memory for weights and KV cache over the datasheet's capacity


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
    draft_cost: Any = NO_DRAFTS

    def ideal(self) -> Server:
        """The server under an ideal scheduler: no overhead and no wasted memory."""
        free = replace(
            self.scheduling, request_overhead_s=NO_TIME, synchronised_share=NO_SHARE, concurrent_prompts=NO_SHARE,
            reserved_output_share=NO_SHARE, usable_hbm_factor=GIB_OVER_GB, pipeline_overlap_share=FULL_OVERLAP,
        )  # fmt: skip
        return replace(self, scheduling=free)

    def online(self) -> Server:
        """The server with the overhead of streaming each token to a user."""
        achieved = self.step.achieved
        streamed = replace(achieved, sequence=achieved.sequence + self.scheduling.streaming_overhead_s)
        return replace(self, step=replace(self.step, achieved=streamed))

    def cache_bytes(self, context: Any) -> Any:
        """KV cache bytes per sequence on the fullest chip."""
        return sequence_bytes(self.room.stores, self.room.state, context) * self.room.stage / self.step.cp

    def seats(self, prompt: Any, output: Any) -> Any:
        """Slots of a replica: sequences whose KV cache fits, at most the engine's limit."""
        room, c = self.room, self.step
        cache_bytes = sequence_bytes(room.stores, room.state, prompt + self.scheduling.reserved_output_share * output)
        usable = room.hbm * self.scheduling.usable_hbm_factor
        sequences = rank_sequence_limit(usable, room.weights, cache_bytes, room.stage, c.cp)
        return replica_seats(sequences, self.scheduling.max_sequences, c.dp)


def scheduling(engine: str, chip: Chip, table: Efficiencies) -> Scheduling:
    """Scheduling constants of an engine on a chip; without one (`none`) those of `other`, less its overhead."""
    name = "other" if engine == "none" else engine
    rules = Scheduling(**{field.name: table.engine(name, platform(chip), field.name) for field in fields(Scheduling)})
    return replace(rules, request_overhead_s=NO_TIME, streaming_overhead_s=NO_TIME) if engine == "none" else rules


def ideal_scheduling() -> Scheduling:
    """Scheduling of the step models that are not fitted: without overhead, prompts spread evenly, all HBM in use as stated."""
    table = efficiencies()
    rules = Scheduling(**{field.name: table.engine("other", OTHER_FAMILY, field.name) for field in fields(Scheduling)})
    return replace(
        rules, request_overhead_s=NO_TIME, streaming_overhead_s=NO_TIME, synchronised_share=NO_SHARE, concurrent_prompts=NO_SHARE,
        pipeline_overlap_share=FULL_OVERLAP,
    )  # fmt: skip


def transfer_link(system: System) -> float:
    """Bandwidth of a KV transfer between instances, byte/s per chip: scale-out network, else the scale-up links to one chip."""
    for bandwidth in (system.scale_out_bw, system.chip.scale_out_bw, pair_bandwidth(system)):
        if bandwidth is not None:
            return float(bandwidth)
    return math.inf
