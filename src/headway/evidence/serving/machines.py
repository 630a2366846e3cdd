"""Servers of many measured rows as one record of arrays: for the step law, for memory and for the engine.

Layouts differ in their number of expert layers, spans and collectives; shorter lists are padded with terms of zero work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from headway.core.schema import defaults
from headway.evidence.rows.names import ENGINES
from headway.evidence.rows.setup import Setup
from headway.laws.step.coefficients import CollectiveLine, CollectiveTerm, EngineCost, ExpertTerm, ScanTerm, SpanTerm, StepCoefficients
from headway.performance.achieved import Efficiencies, dense_part, efficiencies, engine_cost, form_of, with_engine
from headway.performance.assumptions import Assumptions
from headway.performance.compile import StepModel, compile_layout
from headway.performance.request import MemoryRoom, Scheduling, Server, scheduling, transfer_link

NO_EXPERTS = ExpertTerm(compute=0.0, weights=0.0, activations=0.0, experts=1, active=0)
NO_SPAN = SpanTerm(cap=math.inf, root=math.inf, read=0.0, decode_compute=0.0, prefill_compute=0.0)
NO_SCAN = ScanTerm(layers=0, heads=0)
NO_COLLECTIVE = CollectiveTerm(count=0, lines=(CollectiveLine(alpha=0.0, slope=0.0),), floor=0.0)
SHARED_FIELDS = ("overlap", "communication")  # fields with one value for all setups


def stack(compiled: Sequence[StepCoefficients]) -> StepCoefficients:
    """Step coefficients of many layouts, each number an array over layouts."""
    kinds = ("experts", "spans", "scans", "collectives")
    experts, spans, scans, collectives = (max(len(getattr(step, name)) for step in compiled) for name in kinds)
    lines = max((len(term.lines) for c in compiled for term in c.collectives), default=1)
    filled = [
        replace(
            c,
            experts=fill(c.experts, NO_EXPERTS, experts),
            spans=fill(c.spans, NO_SPAN, spans),
            scans=fill(c.scans, NO_SCAN, scans),
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
    return record[index] if isinstance(record, np.ndarray) and record.ndim else record


NO_STORE = (0.0, np.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """Engine numbers, per setup."""

    cost: EngineCost
    scheduling: Scheduling


def under(server: Server, engines: Engines) -> Server:
    """The server with the costs and scheduling of engines applied; `server` has kernels alone."""
    c = server.step
    step = replace(c, achieved=with_engine(c.achieved, engines.cost, c.layers, server.tp, c.pp))
    return replace(server, step=step, scheduling=engines.scheduling)


def machines(setups: Sequence[Setup], table: Efficiencies | None = None) -> Server:
    """Servers of the setups, compiled with `table` (default: the shipped efficiencies)."""
    efficiency_table = table or efficiencies()
    return under(bare_machines(setups, efficiency_table), engines_of(setups, efficiency_table))


def engines_of(setups: Sequence[Setup], table: Efficiencies) -> Engines:
    """Engine numbers of each setup."""
    names = [(ENGINES[setup.engine], setup.system.chip) for setup in setups]
    schedulers = [scheduling(name, chip, table) for name, chip in names]
    cost = [
        engine_cost(name, chip, table, dense_form(setup), setup.older, setup.years)
        for (name, chip), setup in zip(names, setups, strict=True)
    ]
    return Engines(cost=columns(cost), scheduling=columns(schedulers))


def dense_form(setup: Setup) -> str:
    """Number format of most dense weights."""
    return form_of(setup.formats, dense_part(setup.formats, setup.work.blocks)[0])


def bare_machines(setups: Sequence[Setup], table: Efficiencies) -> Server:
    """Servers of the setups with kernels alone, without an engine."""
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
    return Server(
        step=stack([layout.step for layout in compiled]),
        room=columns(room),
        scheduling=engines_of(setups, table).scheduling,
        replicas=np.array([float(setup.replicas) for setup in setups]),
        chips=np.array([float(setup.system.chips) for setup in setups]),
        instance=np.array([float(layout.chips) for layout in compiled]),
        tp=np.array([float(setup.layout.tp) for setup in setups]),
        link=np.array([transfer_link(setup.system) for setup in setups]),
    )


def compiled_setup(setup: Setup, table: Efficiencies) -> StepModel:
    """Step model of a setup with kernels alone."""
    if table is efficiencies():
        return setup.compiled
    return compile_layout(
        setup.work, setup.system, setup.layout, defaults(Assumptions, {"engine": "none"}), setup.formats, table, ENGINES[setup.engine]
    )
