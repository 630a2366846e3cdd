"""The setups of many rows compiled and laid side by side: one record of arrays for the step law, one for memory, one for the engine.

Layouts differ in how many kinds of experts, spans and collectives they have; the shorter lists are filled up with terms of no work.
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
SHARED_FIELDS = ("overlap", "communication")  # step models: one for all


def stack(compiled: Sequence[StepCoefficients]) -> StepCoefficients:
    """The coefficients of many layouts, each number an array along them."""
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
    """The items, and as many of no effect as are missing."""
    return items + (nothing,) * (length - len(items))


def columns(records: Sequence[Any]) -> Any:
    """Records of one shape as one record of arrays."""
    first = records[0]
    if is_dataclass(first):
        return type(first)(**{field.name: columns([getattr(record, field.name) for record in records]) for field in fields(first)})  # type: ignore[misc]
    if isinstance(first, tuple):
        return tuple(columns([record[index] for record in records]) for index in range(len(first)))
    return np.array([float(record) for record in records])


def rows(record: Any, index: Any) -> Any:
    """Some rows of a record of arrays."""
    if is_dataclass(record):
        values = {field.name: getattr(record, field.name) for field in fields(record)}
        return type(record)(**{name: value if name in SHARED_FIELDS else rows(value, index) for name, value in values.items()})  # type: ignore[misc]
    if isinstance(record, tuple):
        return tuple(rows(item, index) for item in record)
    return record[index] if isinstance(record, np.ndarray) else record


ENGINES = {"TensorRT-LLM": "trtllm", "vLLM": "vllm", "SGLang": "sglang", "llama.cpp": "llamacpp", "other": "other"}
NO_STORE = (0.0, np.inf)
GIB_OVER_GB = 2**30 / 1e9  # datasheets say GB where the memory has as many GiB


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRoom:
    """What the fullest chip holds, for each setup."""

    weights: Any
    hbm: Any
    stores: tuple[tuple[Any, Any], ...]
    state: Any
    stage: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """How an engine batches: the constants of a closed loop, for each setup."""

    budget: Any
    mixed: Any
    together: Any
    company: Any
    request: Any
    reserve: Any
    limit: Any
    stream: Any  # more work for each sequence of a step where answers are streamed to users
    pipeline: Any  # share of a prompt's chunks that overlap in pipeline stages
    hbm: Any  # memory for weights and cache over the datasheet's capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """The engines' numbers, for each setup."""

    cost: EngineCost
    scheduling: Scheduling


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Setups as arrays."""

    step: StepCoefficients
    room: MemoryRoom
    scheduling: Scheduling
    replicas: Any
    chips: Any
    instance: Any  # chips of one replica
    tp: Any
    link: Any  # bandwidth beyond a scale-up domain, of one chip

    def under(self, engines: Engines) -> Machines:
        """The same machines in their engines; made of kernels alone."""
        c = self.step
        step = replace(c, achieved=with_engine(c.achieved, engines.cost, c.layers, self.tp, c.pp))
        return replace(self, step=step, scheduling=engines.scheduling)

    def ideal(self) -> Machines:
        """The same machines under a scheduler that costs nothing and wastes no memory."""
        nothing = 0 * self.scheduling.request
        free = replace(
            self.scheduling, request=nothing, together=nothing, company=nothing, reserve=nothing,
            hbm=nothing + GIB_OVER_GB, pipeline=nothing + 1,
        )  # fmt: skip
        return replace(self, scheduling=free)

    def online(self) -> Machines:
        """The same machines where each token is streamed to a user."""
        achieved = self.step.achieved
        streamed = replace(achieved, sequence=achieved.sequence + self.scheduling.stream)
        return replace(self, step=replace(self.step, achieved=streamed))

    def rows(self, index: Any) -> Machines:
        """Those of some rows."""
        return Machines(**{field.name: rows(getattr(self, field.name), index) for field in fields(self)})

    def cache_bytes(self, context: Any) -> Any:
        """Cache of one sequence on the fullest chip."""
        return sequence_bytes(self.room.stores, self.room.state, context) * self.room.stage / self.step.cp

    def seats(self, prompt: Any, output: Any) -> Any:
        """Sequences that one replica holds at once: as far as the KV cache goes, and no more than the engine takes."""
        room, c = self.room, self.step
        cache_bytes = sequence_bytes(room.stores, room.state, prompt + self.scheduling.reserve * output)
        usable = usable_hbm(room.hbm, self.scheduling.hbm)
        sequences = rank_sequence_limit(usable, room.weights, cache_bytes, room.stage, c.cp) * c.dp
        return np.maximum(np.minimum(sequences, self.scheduling.limit * c.dp), 1)


def machines(setups: Sequence[Setup], table: Efficiencies | None = None) -> Machines:
    """Compile each setup with the efficiencies given, or those that ship."""
    efficiency_table = table or efficiencies()
    return bare_machines(setups, efficiency_table).under(engines_of(setups, efficiency_table))


def engines_of(setups: Sequence[Setup], table: Efficiencies) -> Engines:
    """The engine of each setup."""
    names = [(ENGINES[setup.engine], setup.system.chip) for setup in setups]
    keys = [field.name for field in fields(Scheduling)]
    schedulers = [Scheduling(**{key: table.engine(name, platform(chip), key) for key in keys}) for name, chip in names]
    cost = [engine_cost(name, chip, table, dense_form(setup), setup.older) for (name, chip), setup in zip(names, setups, strict=True)]
    return Engines(cost=columns(cost), scheduling=columns(schedulers))


def dense_form(setup: Setup) -> str:
    """The format of most dense weights."""
    return form_of(setup.formats, dense_part(setup.formats, setup.work.blocks)[0])


def bare_machines(setups: Sequence[Setup], table: Efficiencies) -> Machines:
    """Setups compiled with kernels alone, no engine."""
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
    """What carries a KV cache between instances: the network beyond the domain, else the domain's own links."""
    for bandwidth in (system.scale_out_bw, system.chip.scale_out_bw, system.scale_up_bw, system.chip.scale_up_bw):
        if bandwidth is not None:
            return float(bandwidth)
    return np.inf


def compiled_setup(setup: Setup, table: Efficiencies) -> StepModel:
    """One setup, its kernels alone."""
    if table is efficiencies():
        return setup.compiled
    return compile_layout(setup.work, setup.system, setup.layout, defaults(Assumptions, {"engine": "none"}), setup.formats, table)
