"""The resolved request of `serve`, `plan` and `sim`: names looked up, numbers checked, formats and price resolved, and its deployment."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from headway.core import units
from headway.core.errors import BadValue, IllegalCombination
from headway.core.quantity import Sourced, user_input
from headway.core.schema import defaults, fields
from headway.core.table import Axis
from headway.hardware.chip import price_quote
from headway.hardware.chip_price import PriceQuote, price_name, price_origin
from headway.hardware.system import System
from headway.hardware.system import system as find_system
from headway.models.config import model as find_model
from headway.models.model import Model, MoE
from headway.models.precision import Precision
from headway.models.work import ModelWork, work_of
from headway.performance.achieved import basis, with_links
from headway.performance.assumptions import Assumptions, at_mfu
from headway.performance.compile import image_notes
from headway.performance.estimate import Deployment
from headway.performance.formats import Formats, check_compute, floor_note, has_peak, no_peak_note, resolve
from headway.performance.layout import NAMES, Layout, check, copies, copies_note, shape, stacked
from headway.performance.workload import Load, read_expert_load

AS_STORED = Precision()
SPECULATIVE = "speculation: a step that verifies drafts is taken to last as long as one without, or as its accepted tokens' arithmetic"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServeRequest:
    """A resolved request: model, machine, layouts, load and formats looked up and checked."""

    model: Model
    work: ModelWork
    system: System
    layouts: tuple[Layout, ...]
    load: Load
    assumptions: Assumptions
    formats: Formats
    price: PriceQuote | None
    notes: tuple[str, ...]


def query(
    model: Model | str,
    system: System | str,
    layouts: Layout | Sequence[Layout],
    load: Load,
    precision: Precision = AS_STORED,
    assumptions: Assumptions | None = None,
) -> ServeRequest:
    """The resolved request: names looked up, numbers checked, formats and price resolved."""
    known_model = find_model(model) if isinstance(model, str) else model
    machine = find_system(system) if isinstance(system, str) else system
    case_assumptions = at_mfu(with_links(assumptions or defaults(Assumptions), machine.chip))
    work = work_of(known_model, _expert_load(case_assumptions, known_model))
    layout_list = (layouts,) if isinstance(layouts, Layout) else tuple(layouts)
    legal = tuple(check(known_layout(layout), shape(work.blocks, precision.weights)) for layout in layout_list)
    check_compute(machine.chip, precision)
    if not has_peak(machine.chip) and (load.prompt is not None or load.rate is not None):
        machine.chip.need("peak_bf16")  # which decides prompts
    formats = resolve(work, machine.chip, precision)
    price = price_quote(machine.chip, case_assumptions.price_metric)
    remarks = (no_peak_note(machine.chip), floor_note(work, formats), copies_note(legal, work.blocks))
    notes = [*filter(None, remarks), *image_notes(work, case_assumptions)]
    return ServeRequest(
        model=known_model, work=work, system=machine, layouts=legal, load=load, assumptions=case_assumptions, formats=formats, price=price,
        notes=(*notes, *_notes(known_model, machine, price, case_assumptions, formats)),
    )  # fmt: skip


def _expert_load(assumptions: Assumptions, model: Model) -> tuple[Any, ...]:
    """Measured load of each routed expert of the model; empty without a measurement."""
    if not assumptions.expert_load:
        return ()
    load = read_expert_load(assumptions.expert_load)
    experts = {int(block.ffn.experts) for block in model.blocks if isinstance(block.ffn, MoE)}
    if experts != {len(load)}:
        wants = ", ".join(map(str, sorted(experts))) or "0"
        raise BadValue("expert_load", f"{len(load)} numbers", f"one for each of the model's {wants} experts")
    return load


def known_layout(layout: Layout) -> Layout:
    """The layout with an origin for each number."""
    degrees = {name: getattr(layout, name) for name in NAMES}
    marks = fields(Layout)
    for name, value in degrees.items():
        wants = marks[name][0].illegal(value)
        if wants:
            raise BadValue(name, value, wants)
    return Layout(**{name: value if isinstance(value, Sourced) else user_input(int(value), name) for name, value in degrees.items()})


def checked_load(batch: Any = None, context: Any = None, prompt: Any = None, output: Any = None, rate: Any = None) -> Load:
    """A checked load: a context, or a prompt and an output; every number finite and above zero."""
    if rate is not None and context is not None:
        raise BadValue("rate", rate, "a rate of requests that have a prompt and an output, not --context")
    if rate is not None and batch is not None:
        raise IllegalCombination("--batch", batch, "either --batch (users who wait for their answers) or --rate (arrivals), not both")
    if context is None and (prompt is None or output is None):
        raise BadValue("load", "neither", "--context, or both --prompt and --output")
    if context is not None and (prompt is not None or output is not None):
        raise BadValue("load", "both", "either --context, or --prompt and --output, not both")
    return Load(
        batch=_numbers(1 if batch is None else batch, "batch"), context=_numbers(context, "context"),
        prompt=_numbers(prompt, "prompt"), output=_numbers(output, "output"), rate=_numbers(rate, "rate"),
    )  # fmt: skip


def _numbers(value: Any, name: str) -> Any:
    q = fields(Load)[name][0]
    if value is None or isinstance(value, Sourced):
        return value
    values = np.asarray(value, dtype=float)
    if values.ndim > 1 or values.size == 0 or not np.isfinite(values).all() or (values <= 0).any() or (values > q.high).any():
        raise BadValue(name, value, f"finite numbers above 0 and at most {q.high:g}, a scalar or one list")
    return user_input(values.item(), name, q.unit) if values.size == 1 else values


def _notes(model: Model, system: System, price: PriceQuote | None, assumptions: Assumptions, formats: Formats) -> tuple[str, ...]:
    notes = [*basis(system.chip, assumptions), *formats.notes, *model.notes, *([SPECULATIVE] if assumptions.accept_length > 1 else [])]
    if assumptions.hit_rate:
        notes.append(prefix_hits(system))
    if system.chips > 1 and system.chip.topology == "pcie" and system.chip.scale_up_domain == 1:
        notes.append(f"cards of one host are joined by its PCIe, {units.show(system.scale_up_bw, 'byte/s')} each way, alone on it")
    if price is None:
        has = sorted({cost.metric for cost in system.chip.costs if cost.value.unit == "USD/s"})
        metrics_note = f"; it has {', '.join(has)} (--price-metric)" if has else ""
        none = f"{system.chip.name} has no {price_name(assumptions.price_metric)} in the catalogue"
        notes.append(f"{none}: costs are null{metrics_note}, or give --chip-price $2/h")
    else:
        change = "" if price.metric == "input" else "; --chip-price or --price-metric changes it"
        notes.append(f"chip price {price_origin(price)}{change}")
    return tuple(notes)


def prefix_hits(system: System) -> str:
    """The note on where cached prefixes are, and on which link the cost of a cached token rests."""
    link = "HBM's own bandwidth (no host link is known)" if system.chip.host_link_bw is None else "host link"
    hits = "prefix hits are in HBM, as in vLLM and SGLang: nothing is loaded"
    return f"{hits}; usd_per_mtok_cached is for a prefix kept outside it, over the {link}"


def case_of(query: ServeRequest, layout: Layout, load: Load) -> Deployment:
    """The deployment of a resolved request at one layout and load, scalar or array."""
    layout, batch = copies(layout, load.batch, query.work.blocks)
    load = load if batch is load.batch else dataclasses.replace(load, batch=batch)
    return Deployment(
        work=query.work, system=query.system, layout=layout, load=load,
        assumptions=query.assumptions, formats=query.formats, price=query.price,
    )  # fmt: skip


def grid_deployment(query: ServeRequest, axes: tuple[Axis, ...]) -> Deployment:
    """The whole grid as one deployment, each number an array along its axis or a scalar."""
    ndim = len(axes)
    load = {}
    for position, axis in enumerate(axes[1:], start=1):
        value = getattr(query.load, axis.name)
        load[axis.name] = value if isinstance(value, Sourced) else value.reshape((1,) * position + (-1,) + (1,) * (ndim - 1 - position))
    return case_of(query, stacked(list(query.layouts), ndim), Load(**{"batch": 1} | load))


def replayed(query: ServeRequest, layout: Layout, load: Load) -> Deployment:
    """The deployment with the work of its model counted again, for a recorder that is on."""
    return dataclasses.replace(case_of(query, layout, load), work=work_of(query.model, query.work.expert_load))
