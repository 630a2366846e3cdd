"""One scale-up domain of any size, scaled from a known rack: wires, power, weight, cooling, network, and what fits; domains by year.

Glue: the arithmetic is in laws/.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.core.catalog import Catalog
from headway.core.errors import BadValue
from headway.core.quantity import Sourced, default, known, user_input
from headway.core.units import BytePerSecond, Number, Token, Watt
from headway.hardware.describe import list_systems
from headway.hardware.rack_facts import RackFacts, rack_facts
from headway.hardware.system import RANK, System, wired
from headway.hardware.system import system as find_system
from headway.laws.collectives.expert_parallel import exchange_bytes, exchange_out, exchange_up, wire_bytes_per_token
from headway.laws.collectives.topology import bisection_bandwidth, even_sides, group_domains, mesh_bandwidth, torus_link_bandwidth
from headway.laws.rack import (
    cable_count,
    clos_leaves,
    clos_links,
    clos_most_chips,
    clos_spines,
    exchange_s,
    fewest_within,
    mesh_bisection,
    mesh_links,
    mesh_links_per_chip,
    star_links,
    switch_bisection,
    torus_bisection,
)
from headway.laws.roofline.balance import capacity_params, domain_read_s, drain_s
from headway.laws.serving.pipeline import racks_slowdown, scale_up_ratio
from headway.laws.step.memory import fits_hbm
from headway.models.config import catalogue_index
from headway.models.config import model as find_model
from headway.models.model import Model, MoE
from headway.models.precision import formats
from headway.models.totals import loaded_bytes, sequence_bytes, total_params


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNeed:
    """Memory that one model needs in a domain: weights as in its checkpoint, and the KV cache of one sequence."""

    model: str
    params: Any
    weights: Any
    sequence: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFit:
    """One model that fits in one domain, and its latency floor."""

    model: str
    total_params: Any
    weights_bytes: Any
    latency_floor_s: Any


def need(model: Model, context: Token) -> ModelNeed:
    """Bytes of weights, and of the KV cache and state of one sequence of `context` tokens."""
    sequence = sequence_bytes(model, context)
    return ModelNeed(model=model.name, params=total_params(model), weights=loaded_bytes(model), sequence=sequence)


def catalogue_needs(context: Token) -> tuple[ModelNeed, ...]:
    """Memory needs of all models of the catalogue, the largest first."""
    needs = (need(find_model(row["name"]), context) for row in catalogue_index())
    return tuple(sorted(needs, key=lambda row: (-row.params, row.model)))


cached_needs = functools.lru_cache(maxsize=4)(catalogue_needs)  # not for explain, which records every call


def fits(model_need: ModelNeed, system: System, chips: Number) -> Any:
    """Whether a model and one sequence fit in a domain of `chips` chips; None where the memory is not known."""
    hbm = system.chip.hbm
    return None if hbm is None else fits_hbm(model_need.weights, model_need.sequence, chips * hbm)


def floor_s(model_need: ModelNeed, system: System, chips: Number) -> Any:
    """Latency floor: time to read a model's weights once with the whole domain; None where it does not fit or a fact is missing."""
    bandwidth = system.chip.hbm_bw
    return domain_read_s(model_need.weights, chips, bandwidth) if bandwidth is not None and fits(model_need, system, chips) else None


def fitting(needs: Sequence[ModelNeed], system: System, chips: Number) -> tuple[ModelFit, ...]:
    """All models that fit, the largest first."""
    return tuple(
        ModelFit(model=row.model, total_params=row.params, weights_bytes=row.weights, latency_floor_s=floor_s(row, system, chips))
        for row in needs
        if fits(row, system, chips)
    )


FITTING = "counted: models of the catalogue whose checkpoint and one sequence take no more than the domain's memory"
NO_BYTES = known(0.0, "no bytes", "byte", "constant", "nothing leaves the domain")
WIRE = "DeepSeek-V3 (arXiv:2412.19437) section 3.3: dispatch in fp8 with a scale per 128 elements, combine in bf16"
DISPATCH, COMBINE = default(1, "dispatch bytes", "byte", WIRE), default(2, "combine bytes", "byte", WIRE)
SCALE, NO_SCALE = default(4, "scale bytes", "byte", WIRE), default(0, "no scale", "byte", WIRE)
TILE = default(128, "elements per scale", "", WIRE)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RackRequest:
    """Request for a scale-up domain: its number of chips, and the model and batch to evaluate on it."""

    chips: Any
    model: Model
    need: ModelNeed
    batch: Any
    context: Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RackDomain:
    """One scale-up domain; None where a fact is not public or does not apply."""

    system: str
    chips: Any
    model: str
    batch: Any
    context: Any
    dies: Any = None
    chips_growth: Any = None
    mesh_links: Any = None
    mesh_cables: Any = None
    mesh_growth: Any = None
    mesh_links_per_chip: Any = None
    mesh_connectors_per_chip: Any = None
    star_links: Any = None
    star_cables: Any = None
    star_growth: Any = None
    star_switches: Any = None
    star_connectors_per_chip: Any = None
    clos_links: Any = None
    clos_cables: Any = None
    clos_switches: Any = None
    clos_most_chips: Any = None
    torus_links: Any = None
    levels: str | None = None
    pairs_per_rack_unit: Any = None
    domain_power: Any = None
    domain_weight: Any = None
    watts_per_rack_unit: Any = None
    cooling: str | None = None
    floor_load: Any = None
    racks: Any = None
    air_racks: Any = None
    liquid_racks: Any = None
    cabinet_racks: Any = None
    footprints: Any = None
    one_rack: str | None = None
    domain_hbm: Any = None
    drain_s: Any = None
    scale_up_total: Any = None
    domain_bisection: Any = None
    scale_out_ratio: Any = None
    racks_slowdown: Any = None
    alltoall_bytes: Any = None
    alltoall_s: Any = None
    alltoall_racks_s: Any = None
    fits: Any = None
    weights_bytes: Any = None
    latency_floor_s: Any = None
    params_fit: Any = None
    models_fit: Any = None
    largest_model: str | None = None
    largest_params: Any = None
    largest_floor_s: Any = None
    fitting: Any = ()


def racks(
    system: str | System,
    chips: Sequence[int] = (),
    *,
    model: str | Model = "deepseek-v3",
    batch: int = 2400,
    context: int = 8192,
    facts: RackFacts | None = None,
) -> list[RackDomain]:
    """One row per number of chips, wired and built like `system`; the system's own domain by default.

    >>> [int(row.star_cables) for row in racks("gb200-nvl72", [72, 144, 576])]
    [5184, 10368, 41472]
    """
    base = find_system(system) if isinstance(system, str) else system
    subject, tokens, length = find_model(model), _count(batch, "batch"), _count(context, "context")
    known_facts = rack_facts(base.chip.name) if facts is None else facts
    subject_need, needs = need(subject, length), cached_needs(length)
    counts = [_count(count, "chips") for count in chips] or [base.scale_up_domain]
    return [
        rack(base, known_facts, RackRequest(chips=count, model=subject, need=subject_need, batch=tokens, context=length), needs)
        for count in counts
    ]


def _count(value: Any, name: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadValue(name, value, "a whole number of at least 1")
    return value if isinstance(value, Sourced) else user_input(value, name, "" if name == "chips" else "token")


def rack(system: System, facts: RackFacts, ask: RackRequest, needs: Sequence[ModelNeed] = ()) -> RackDomain:
    """A domain of `ask.chips` chips wired and built like `system`, and the models of `needs` that fit in it."""
    return RackDomain(
        system=system.name, chips=ask.chips, model=ask.model.name, batch=ask.batch, context=ask.context,
        **wiring(system, facts, ask.chips), **body(system, facts, ask.chips), **network(system, ask),
        **room(system, ask.chips, ask.need, needs),
    )  # fmt: skip


def _law(run: Any, *inputs: Any) -> Any:
    """Result of a law or an operation, or None where an input is not known."""
    return None if any(value is None for value in inputs) else run(*inputs)


# -- wires ----------------------------------------------------------------------------------------------------------------------


def wiring(system: System, facts: RackFacts, chips: Number) -> dict[str, Any]:
    """Links, cables, switches and connectors of a mesh, a star, a two-level Clos and a torus of `chips` chips."""
    per_chip, pairs, ports = facts.links_per_chip, facts.pairs_per_link, facts.ports_per_switch
    base, rank = system.scale_up_domain, RANK.get(system.topology)
    mesh, star, clos = mesh_links(chips, 1), _law(star_links, chips, per_chip), _law(clos_links, chips, per_chip)
    leaves, cables = _law(clos_leaves, star, ports), _law(cable_count, star, pairs)
    mesh_pairs = _law(operator.mul, mesh_links_per_chip(chips, 1), pairs)
    return {
        "dies": _law(operator.mul, facts.dies_per_chip, chips),
        "chips_growth": chips / base,
        "mesh_links": mesh,
        "mesh_cables": _law(cable_count, mesh, pairs),
        "mesh_growth": _law(operator.truediv, mesh, mesh_links(base, 1)) if base > 1 else None,
        "mesh_links_per_chip": mesh_links_per_chip(chips, 1),
        "mesh_connectors_per_chip": _law(fewest_within, mesh_pairs, facts.pairs_per_connector),
        "star_links": star,
        "star_cables": cables,
        "star_growth": _law(operator.truediv, star, _law(star_links, base, per_chip)),
        "star_switches": _law(fewest_within, star, ports),
        "star_connectors_per_chip": _law(fewest_within, _law(operator.mul, per_chip, pairs), facts.pairs_per_connector),
        "clos_links": clos,
        "clos_cables": _law(cable_count, clos, pairs),
        "clos_switches": _law(operator.add, leaves, _law(clos_spines, leaves)),
        "clos_most_chips": _law(clos_most_chips, ports),
        "torus_links": _law(operator.mul, chips, _axes(system)) if rank else None,
        "levels": None if ports is None else "one" if chips <= ports else "two" if chips <= clos_most_chips(ports) else "more than two",
        "pairs_per_rack_unit": _law(operator.truediv, cables, facts.rack_units),
    }


def _axes(system: System) -> Any:
    rank = RANK.get(system.topology)
    return rank and known(rank, f"{system.name}.axes", "", "derived", f"joined as a {rank}D torus")


# -- body -----------------------------------------------------------------------------------------------------------------------


def body(system: System, facts: RackFacts, chips: Number) -> dict[str, Any]:
    """Power, weight, cooling and floor at the known machine's share per chip, and the limits that keep the domain from one rack."""
    power = _law(operator.mul, _law(operator.truediv, system.power, system.chips), chips)
    weight = _law(operator.mul, _law(operator.truediv, system.weight, system.chips), chips)
    per_rack = facts.chips_per_rack or (facts.rack_units and system.scale_up_domain)  # a box smaller than a rack counts as a rack
    return {
        "domain_power": power,
        "domain_weight": weight,
        "watts_per_rack_unit": _law(operator.truediv, power, facts.rack_units),
        "cooling": _cooling(power, facts),
        "floor_load": _law(operator.truediv, weight, facts.footprint),
        "racks": _law(fewest_within, chips, per_rack),
        "air_racks": _law(fewest_within, power, facts.air_limit),
        "liquid_racks": _law(fewest_within, power, facts.liquid_limit),
        "cabinet_racks": _law(fewest_within, weight, facts.cabinet_limit),
        "footprints": _law(fewest_within, _law(operator.truediv, weight, facts.footprint), facts.floor_limit),
        "one_rack": _one_rack(power, weight, chips, facts),
    }


def _cooling(power: Watt, facts: RackFacts) -> str | None:
    """Cooling that the whole domain needs in one rack."""
    if power is None:
        return None
    if facts.air_limit is not None and power <= facts.air_limit:
        return "air"
    return "liquid" if facts.liquid_limit is None or power <= facts.liquid_limit else "beyond liquid"


def _one_rack(power: Watt, weight: Any, chips: Number, facts: RackFacts) -> str | None:
    """Limits that the domain exceeds in one rack: text, "yes" when none, None where its density is not known."""
    limits = (("power", power, facts.liquid_limit), ("weight", weight, facts.cabinet_limit), ("space", chips, facts.chips_per_rack))
    over = [name for name, value, limit in limits if value is not None and limit is not None and value > limit]
    return ("no: " + ", ".join(over)) if over else "yes" if facts.chips_per_rack is not None else None


# -- network --------------------------------------------------------------------------------------------------------------------


def network(system: System, ask: RackRequest) -> dict[str, Any]:
    """Bandwidths, and dispatch and combine of one expert layer inside one domain and over racks of the known size."""
    up, out = system.scale_up_bw, system.scale_out_bw
    domains = group_domains(ask.chips, 1, system.scale_up_domain)
    ratio = _law(scale_up_ratio, up, out)
    cut = bisection(system, ask.chips)
    return {
        "scale_up_total": _law(operator.mul, up, ask.chips),
        "domain_bisection": cut,
        "scale_out_ratio": ratio,
        "racks_slowdown": _law(racks_slowdown, ratio, domains) if ask.chips > system.scale_up_domain else None,
        **_exchange(system, ask, cut, domains),
    }


def bisection(system: System, chips: Number) -> Any:
    """Bisection bandwidth of a domain of `chips` chips joined like the system: the published figure where the size matches."""
    up = system.scale_up_bw
    if chips == system.scale_up_domain and system.bisection is not None:
        return system.bisection
    if up is None or chips < 2:
        return None
    if system.topology in RANK:
        return torus_bisection(torus_link_bandwidth(up, _axes(system)), chips, _longest_side(system, chips))
    if system.topology == "mesh":
        return mesh_bisection(mesh_bandwidth(up, chips, max(chips, wired(system))), chips)
    return switch_bisection(up, chips) if system.topology == "switch" else None


def _longest_side(system: System, chips: Number) -> Any:
    if system.shape and chips == system.scale_up_domain:
        return max(system.shape)
    side = max(even_sides(int(chips), RANK[system.topology]))
    return known(side, f"{system.name}.side", "", "derived", f"longest side of the most even torus of {chips} chips")


def _exchange(system: System, ask: RackRequest, cut: BytePerSecond, domains: Number) -> dict[str, Any]:
    """Exchange of an expert layer: each chip holds its own tokens and sends one copy to each selected expert."""
    routed = next((block.ffn for block in ask.model.blocks if isinstance(block.ffn, MoE)), None)
    up, out, chips = system.scale_up_bw, system.scale_out_bw, ask.chips
    if routed is None or up is None or chips < 2:
        return {}
    hidden, tokens = ask.model.hidden, ask.batch / chips
    wires = wire_bytes_per_token(hidden, DISPATCH, SCALE, TILE), wire_bytes_per_token(hidden, COMBINE, NO_SCALE, TILE)
    message_bytes = exchange_bytes(tokens, exchange_up(routed.per_token, chips, chips), *wires)
    if system.topology == "mesh":
        up = mesh_bandwidth(up, chips, max(chips, wired(system)))
    bandwidth = up if cut is None else bisection_bandwidth(up, cut, chips)
    row = {"alltoall_bytes": message_bytes, "alltoall_s": exchange_s(message_bytes, bandwidth, NO_BYTES, bandwidth)}
    if chips > system.scale_up_domain and out is not None and system.topology == "switch":
        inside = chips / domains
        near = exchange_bytes(tokens, exchange_up(routed.per_token, chips, inside), *wires)
        far = exchange_bytes(tokens, exchange_out(routed.per_token, chips, inside), *wires)
        row["alltoall_racks_s"] = exchange_s(near, up, far, out)
    return row


# -- memory ---------------------------------------------------------------------------------------------------------------------


def room(system: System, chips: Number, need: ModelNeed, needs: Sequence[ModelNeed]) -> dict[str, Any]:
    """Memory of a domain, its drain time, and the models that fit."""
    chip, fitting_models = system.chip, fitting(needs, system, chips)
    largest = fitting_models[0] if fitting_models else None
    return {
        "domain_hbm": _law(operator.mul, chips, chip.hbm),
        "drain_s": _law(drain_s, chip.hbm, chip.hbm_bw),
        "fits": fits(need, system, chips),
        "weights_bytes": need.weights,
        "latency_floor_s": floor_s(need, system, chips),
        "params_fit": _law(capacity_params, _law(operator.mul, chips, chip.hbm), need.sequence, formats()["fp8"].bytes),
        "models_fit": known(len(fitting_models), "models_fit", "", "derived", FITTING) if needs and chip.hbm is not None else None,
        "largest_model": largest and largest.model,
        "largest_params": largest and largest.total_params,
        "largest_floor_s": largest and largest.latency_floor_s,
        "fitting": fitting_models,
    }


# -- scale-up domains by year and vendor: memory, latency floor, and the largest model that fits. Glue: the arithmetic is in laws/ 


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


def domains(need: ModelNeed, context: Token, needs: Sequence[ModelNeed], catalog: Catalog | None = None) -> list[DomainGeneration]:
    """Scale-up domains of all systems whose chip has a known year, oldest first."""
    dated = (system for system in list_systems(catalog) if system.chip.year is not None)
    ordered = sorted(dated, key=lambda system: (system.chip.year, system.chip.vendor, system.scale_up_domain, system.name))
    return [domain(system, need, context, needs) for system in ordered]


def domain(system: System, need: ModelNeed, context: Token, needs: Sequence[ModelNeed]) -> DomainGeneration:
    """Scale-up domain of one system."""
    chips = system.scale_up_domain
    memory_row = room(system, chips, need, needs)
    return DomainGeneration(
        year=system.chip.year, vendor=system.chip.vendor, system=system.name, chip=system.chip.name, scale_up_domain=chips,
        topology=system.topology, model=need.model, context=context, scale_up_bw=system.scale_up_bw,
        domain_bisection=bisection(system, chips), **{key: value for key, value in memory_row.items() if key != "fitting"},
    )  # fmt: skip
