"""Scale-up domains by year and vendor: memory, latency floor, and the largest model that fits. Glue: the arithmetic is in laws/."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from headway.core.catalog import Catalog
from headway.hardware.describe import list_systems
from headway.hardware.rack import bisection, room
from headway.hardware.rack_capacity import ModelNeed
from headway.hardware.system import System


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DomainGeneration:
    """One system's scale-up domain; None where a fact is not public or the model does not fit."""

    year: Any
    vendor: str
    system: str
    chip: str
    scale_up_domain: Any
    topology: str
    model: str
    context: Any
    domain_hbm: Any = None
    drain_s: Any = None
    scale_up_bw: Any = None
    domain_bisection: Any = None
    fits: Any = None
    weights_bytes: Any = None
    latency_floor_s: Any = None
    params_fit: Any = None
    models_fit: Any = None
    largest_model: str | None = None
    largest_params: Any = None
    largest_floor_s: Any = None


def domains(need: ModelNeed, context: Any, needs: Sequence[ModelNeed], catalog: Catalog | None = None) -> list[DomainGeneration]:
    """Scale-up domains of all systems whose chip has a known year, oldest first."""
    dated = (system for system in list_systems(catalog) if system.chip.year is not None)
    ordered = sorted(dated, key=lambda system: (system.chip.year, system.chip.vendor, system.scale_up_domain, system.name))
    return [domain(system, need, context, needs) for system in ordered]


def domain(system: System, need: ModelNeed, context: Any, needs: Sequence[ModelNeed]) -> DomainGeneration:
    """Scale-up domain of one system."""
    chips = system.scale_up_domain
    memory_row = room(system, chips, need, needs)
    return DomainGeneration(
        year=system.chip.year,
        vendor=system.chip.vendor,
        system=system.name,
        chip=system.chip.name,
        scale_up_domain=chips,
        topology=system.topology,
        model=need.model,
        context=context,
        scale_up_bw=system.scale_up_bw,
        domain_bisection=bisection(system, chips),
        **{key: value for key, value in memory_row.items() if key != "fitting"},
    )
