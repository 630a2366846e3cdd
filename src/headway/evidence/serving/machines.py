"""Compiled setups of many rows as records of arrays: for the step law, for memory and for the engine.

Layouts differ in their number of expert layers, spans and collectives; shorter lists are padded with terms of zero work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from headway.core.schema import defaults
from headway.evidence.rows.setup import Setup
from headway.hardware.system import System
from headway.laws.step.coefficients import CollectiveLine, CollectiveTerm, EngineCost, ExpertTerm, SpanTerm, StepCoefficients
from headway.laws.step.memory import rank_sequence_limit, sequence_bytes, usable_hbm
from headway.performance.achieved import dense_part, engine_cost, form_of, with_engine
from headway.performance.assumptions import Assumptions
from headway.performance.compile import StepModel, compile_layout
from headway.performance.efficiency import Efficiencies, efficiencies, platform

NO_EXPERTS = ExpertTerm(compute=0.0, weights=0.0, activations=0.0, experts=1, active=0)
NO_SPAN = SpanTerm(cap=math.inf, root=math.inf, read=0.0, decode_compute=0.0, prefill_compute=0.0)
NO_COLLECTIVE = CollectiveTerm(count=0, lines=(CollectiveLine(alpha=0.0, slope=0.0),), floor=0.0)
SHARED_FIELDS = ("overlap", "communication")  # fields with one value for all setups


def stack(compiled: Sequence[StepCoefficients]) -> StepCoefficients:
    """Step coefficients of many layouts, each number an array over layouts."""
    experts, spans, collectives = (max(len(getattr(step, name)) for step in compiled) for name in ("experts", "spans", "collectives"))
    lines = max((len(term.lines) for c in compiled for term in c.collectives), default=1)
    filled = [
        replace(
            c,
            experts=fill(c.experts, NO_EXPERTS, experts),
            spans=fill(c.spans, NO_SPAN, spans),
            collectives=tuple(
                replace(term, lines=fill(term.lines, term.lines[-1], lines)) for term in fill(c.collectives, NO_COLLECTIVE, collectives)
            ),
        )
        for c in compiled
    ]
    return replace(columns(filled), **{name: getattr(compiled[0], name) for name in SHARED_FIELDS})


def fill(items: tuple[Any, ...], nothing: Any, length: int) -> tuple[Any, ...]:
    """Items padded to `length` with the neutral item `nothing`."""
    return items + (nothing,) * (length - len(items))


def columns(records: Sequence[Any]) -> Any:
    """Records of equal structure as one record of arrays."""
    first = records[0]
    if is_dataclass(first):
        return type(first)(**{field.name: columns([getattr(record, field.name) for record in records]) for field in fields(first)})  # type: ignore[misc]
    if isinstance(first, tuple):
        return tuple(columns([record[index] for record in records]) for index in range(len(first)))
    return np.array([float(record) for record in records])


def rows(record: Any, index: Any) -> Any:
    """Record of arrays restricted to the rows `index`."""
    if is_dataclass(record):
        values = {field.name: getattr(record, field.name) for field in fields(record)}
        return type(record)(**{name: value if name in SHARED_FIELDS else rows(value, index) for name, value in values.items()})  # type: ignore[misc]
    if isinstance(record, tuple):
        return tuple(rows(item, index) for item in record)
    return record[index] if isinstance(record, np.ndarray) else record


ENGINES = {"TensorRT-LLM": "trtllm", "vLLM": "vllm", "SGLang": "sglang", "llama.cpp": "llamacpp", "other": "other"}
NO_STORE = (0.0, np.inf)
GIB_OVER_GB = 2**30 / 1e9  # datasheets print GB for a memory of that many GiB


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
    usable_hbm_factor: Any  # memory for weights and KV cache over the datasheet's capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """Engine numbers, per setup."""

    cost: EngineCost
    scheduling: Scheduling


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Compiled setups as arrays."""

    step: StepCoefficients
    room: MemoryRoom
    scheduling: Scheduling
    replicas: Any
    chips: Any
    instance: Any  # chips per replica
    tp: Any
    link: Any  # scale-out bandwidth per chip, byte/s

    def under(self, engines: Engines) -> Machines:
        """Machines with the costs and scheduling of engines applied; `self` has kernels alone."""
        c = self.step
        step = replace(c, achieved=with_engine(c.achieved, engines.cost, c.layers, self.tp, c.pp))
        return replace(self, step=step, scheduling=engines.scheduling)

    def ideal(self) -> Machines:
        """Machines under an ideal scheduler: no overhead and no wasted memory."""
        nothing = 0 * self.scheduling.request_overhead_s
        free = replace(
            self.scheduling, request_overhead_s=nothing, synchronised_share=nothing, concurrent_prompts=nothing,
            reserved_output_share=nothing, usable_hbm_factor=nothing + GIB_OVER_GB, pipeline_overlap_share=nothing + 1,
        )  # fmt: skip
        return replace(self, scheduling=free)

    def online(self) -> Machines:
        """Machines with the overhead of streaming each token to a user."""
        achieved = self.step.achieved
        streamed = replace(achieved, sequence=achieved.sequence + self.scheduling.streaming_overhead_s)
        return replace(self, step=replace(self.step, achieved=streamed))

    def rows(self, index: Any) -> Machines:
        """Machines of the rows `index`."""
        return Machines(**{field.name: rows(getattr(self, field.name), index) for field in fields(self)})

    def cache_bytes(self, context: Any) -> Any:
        """KV cache bytes per sequence on the fullest chip."""
        return sequence_bytes(self.room.stores, self.room.state, context) * self.room.stage / self.step.cp

    def seats(self, prompt: Any, output: Any) -> Any:
        """Slots of a replica: sequences whose KV cache fits, at most the engine's limit."""
        room, c = self.room, self.step
        cache_bytes = sequence_bytes(room.stores, room.state, prompt + self.scheduling.reserved_output_share * output)
        usable = usable_hbm(room.hbm, self.scheduling.usable_hbm_factor)
        sequences = rank_sequence_limit(usable, room.weights, cache_bytes, room.stage, c.cp) * c.dp
        return np.maximum(np.minimum(sequences, self.scheduling.max_sequences * c.dp), 1)


def machines(setups: Sequence[Setup], table: Efficiencies | None = None) -> Machines:
    """Machines of the setups, compiled with `table` (default: the shipped efficiencies)."""
    efficiency_table = table or efficiencies()
    return bare_machines(setups, efficiency_table).under(engines_of(setups, efficiency_table))


def engines_of(setups: Sequence[Setup], table: Efficiencies) -> Engines:
    """Engine numbers of each setup."""
    names = [(ENGINES[setup.engine], setup.system.chip) for setup in setups]
    keys = [field.name for field in fields(Scheduling)]
    schedulers = [Scheduling(**{key: table.engine(name, platform(chip), key) for key in keys}) for name, chip in names]
    cost = [engine_cost(name, chip, table, dense_form(setup), setup.older) for (name, chip), setup in zip(names, setups, strict=True)]
    return Engines(cost=columns(cost), scheduling=columns(schedulers))


def dense_form(setup: Setup) -> str:
    """Number format of most dense weights."""
    return form_of(setup.formats, dense_part(setup.formats, setup.work.blocks)[0])


def bare_machines(setups: Sequence[Setup], table: Efficiencies) -> Machines:
    """Machines of the setups with kernels alone, without an engine."""
    compiled = [compiled_setup(setup, table) for setup in setups]
    stores = max(len(layout.stores) for layout in compiled)
    room = [
        MemoryRoom(
            weights=layout.weights_bytes,
            hbm=setup.system.chip.need("hbm"),
            stores=fill(layout.stores, NO_STORE, stores),
            state=layout.state_bytes,
            stage=layout.stage,
        )
        for layout, setup in zip(compiled, setups, strict=True)
    ]
    return Machines(
        step=stack([layout.step for layout in compiled]),
        room=columns(room),
        scheduling=engines_of(setups, table).scheduling,
        replicas=np.array([float(setup.replicas) for setup in setups]),
        chips=np.array([float(setup.system.chips) for setup in setups]),
        instance=np.array([float(layout.chips) for layout in compiled]),
        tp=np.array([float(setup.layout.tp) for setup in setups]),
        link=np.array([_link(setup.system) for setup in setups]),
    )


def _link(system: System) -> float:
    """Bandwidth of a KV transfer between instances, byte/s per chip: scale-out network, else scale-up links."""
    for bandwidth in (system.scale_out_bw, system.chip.scale_out_bw, system.scale_up_bw, system.chip.scale_up_bw):
        if bandwidth is not None:
            return float(bandwidth)
    return np.inf


def compiled_setup(setup: Setup, table: Efficiencies) -> StepModel:
    """Step model of a setup with kernels alone."""
    if table is efficiencies():
        return setup.compiled
    return compile_layout(setup.work, setup.system, setup.layout, defaults(Assumptions, {"engine": "none"}), setup.formats, table)
