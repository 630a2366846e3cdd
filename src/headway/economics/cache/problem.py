"""Inputs of a cache question: model, machine, tiers, and the cost of recomputing tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from headway.core.catalog import Catalog
from headway.core.errors import BadValue, MissingFact
from headway.core.quantity import Sourced, default, user_input
from headway.core.schema import defaults, fields, scalar
from headway.core.units import SecondPerToken, show
from headway.economics.cache.placement import CacheSubject, hold_row, with_choices
from headway.economics.cache.records import CacheHold, HoldRow, PrefillCost
from headway.economics.cache.tiers import CHIP_MEMORY, CacheTier, NumberRange, device_named, own_memory, place_of
from headway.hardware.chip import Chip, price_quote
from headway.hardware.chip_price import PriceQuote, price_name
from headway.hardware.system import System
from headway.hardware.system import system as find_system
from headway.laws import tiers as laws
from headway.models.config import model as find_model
from headway.models.model import Model
from headway.models.precision import Precision, cache_format
from headway.models.stored import stored_formats
from headway.models.totals import active_params, index_bytes_per_token, kv_bytes_per_token
from headway.models.work import work_of
from headway.performance.assumptions import Assumptions
from headway.performance.formats import main_part, peak
from headway.performance.workload import Load
from headway.serving.plan.plan import LayoutPlan, plan

COSTS = ("usd_per_mtok_in", "usd_per_mtok_in_lo", "usd_per_mtok_in_hi")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recompute:
    """Source of the recomputation cost; exactly one of plan, mfu and fresh is set."""

    chip: Chip
    price: PriceQuote
    plan: LayoutPlan | None = None  # plan with the estimated prefill
    model: Model | None = None
    active: Any = None  # active parameters instead of the model's
    mfu: Any = None
    compute: str = ""  # compute format of `mfu`
    fresh: Any = None  # measured prompt tokens per second and chip

    def chip_time(self, traced: bool = False) -> NumberRange:
        """Chip time of a prompt token in seconds, with its interval; `traced` records its laws (within `record()`)."""
        if self.fresh is not None:
            return _same(laws.measured_s_per_token(self.fresh))
        if self.mfu is not None:
            active = self.active if self.active is not None else active_params(cast(Model, self.model))
            _, most = peak(self.chip, self.compute)
            return _same(laws.recompute_s_per_token(laws.forward_flop(active), most, self.mfu))
        plan = cast(LayoutPlan, self.plan)
        read = plan.explain if traced else plan.table.row(0).__getitem__
        value, low, high = (laws.chip_s_of_cost(read(key), self.price.value) for key in COSTS)
        return NumberRange(value=value, low=low, high=high)

    @property
    def how(self) -> str:
        """The source of the recomputation cost, in words."""
        if self.fresh is not None:
            return "as measured"
        if self.mfu is not None:
            return f"2 N at {float(self.mfu):.3g} of {self.chip.name}'s {self.compute} peak, attention left out"
        row = cast(LayoutPlan, self.plan).table.row(0)
        degrees = " ".join(f"{key}={row[key]}" for key in ("tp", "ep", "dp", "pp", "cp") if row[key] != 1) or "tp=1"
        return f"prefill of {int(row['prompt'])} tokens as estimated for the cheapest layout, {degrees}"


def _same(value: SecondPerToken) -> NumberRange:
    return NumberRange(value=value, low=value, high=value)


TIERS = (CHIP_MEMORY, "ddr", "flash", "disk")
PROMPT = default(8000, "prompt", "token", "default of --prompt")
OUTPUT = default(1000, "output", "token", "default of --output")


@dataclass(frozen=True, kw_only=True)
class CacheProblem:
    """One model on one machine with one set of inputs; `mfu` or `fresh` replaces the estimate of prefill."""

    model: Model | None = None  # None if `kv_bytes` is given instead
    system: System | None = None
    kv: str = "bf16"
    weights: str = ""
    compute: str = ""
    prompt: Any = PROMPT
    output: Any = OUTPUT
    mfu: Any = None
    fresh: Any = None  # measured prompt tokens per second and chip
    kv_bytes: Any = None  # KV bytes of one token
    active: Any = None  # active parameters
    assumptions: Assumptions = field(default_factory=lambda: defaults(Assumptions))
    ways: Mapping[str, Any] = field(default_factory=dict)  # pinned degrees of the layout
    tiers: Sequence[str] = TIERS
    edits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # tier -> facts replaced by the user
    catalog: Catalog | None = None

    @property
    def name(self) -> str:
        """The model's name in a row."""
        return self.model.name if self.model is not None else show(self.token_bytes(), "byte/token")

    @property
    def machine(self) -> str:
        """The machine's name in a row."""
        return self.system.name if self.system is not None else "-"

    def token_bytes(self) -> Any:
        """KV bytes of one token in the requested format, index keys included."""
        if self.kv_bytes is not None:
            return user_input(float(self.kv_bytes), "kv_bytes", "byte/token")
        if self.model is None:
            raise BadValue("cache", "no model", "a model, such as headway cache deepseek-v3 --on 8xh200, or --kv-bytes 35kB")
        element = cache_format(self.kv).bytes
        size = kv_bytes_per_token(self.model, element) + index_bytes_per_token(self.model, element)
        if not size > 0:
            raise BadValue("model", self.model.name, "a model whose cache grows with the context, or --kv-bytes 35kB")
        return size

    def on(self) -> System:
        """The machine; BadValue if none is given."""
        if self.system is None:
            raise BadValue("--on", "nothing", "a machine whose chips compute and whose HBM holds, such as --on 8xh200")
        return self.system

    def price(self) -> PriceQuote:
        """The price of one chip."""
        metric = self.assumptions.price_metric
        quote = price_quote(self.on().chip, metric)
        if quote is None:
            raise MissingFact(self.on().chip.name, price_name(metric), "give --set chip.price=$2/h or another --price-metric")
        return quote

    def places(self) -> list[CacheTier]:
        """The tiers to compare; their laws are recorded within `record()`."""
        return [self._place(name) for name in self.tiers]

    def _place(self, name: str) -> CacheTier:
        if name == CHIP_MEMORY and self.system is not None and CHIP_MEMORY not in self.edits:
            return own_memory(self.system.chip, self.price())
        return place_of(device_named(name, dict(self.edits.get(name, {})), self.catalog), name)

    @cached_property
    def recompute(self) -> Recompute:
        """The source of the cost of recomputing a token."""
        chip, price = self.on().chip, self.price()
        if self.fresh is not None:
            return Recompute(chip=chip, price=price, fresh=self.fresh)
        if self.mfu is None:
            return Recompute(chip=chip, price=price, plan=self._plan())
        if self.model is None and self.active is None:
            raise BadValue("--mfu", "no model", "a model, or --active 37B")
        compute, _ = peak(chip, self.compute or self._stored())
        return Recompute(chip=chip, price=price, mfu=self.mfu, model=self.model, active=self.active, compute=compute)

    def _stored(self) -> str:
        """The stored format of most of the weights."""
        if self.model is None:
            return "bf16"
        work = work_of(self.model)
        block, part = main_part(work.blocks)
        return stored_formats(work).blocks[block][part].name

    def _plan(self) -> LayoutPlan:
        if self.model is None:
            raise BadValue("cache", "no model", "a model, or --fresh 4k/s or --mfu 0.5 --active 37B for what computing again costs")
        prefill_plan = plan(
            self.model, self.on(), Load(prompt=self.prompt, output=self.output), weights=self.weights, kv=self.kv, compute=self.compute,
            ways=self.ways, assumptions=self.assumptions, elasticities=False, disaggregate="never",
        )  # fmt: skip
        if prefill_plan.infeasible:
            wants = "a machine that holds the model, or --fresh 4k/s or --mfu 0.5 for what computing again costs"
            raise BadValue("--on", f"{self.machine}: {prefill_plan.infeasible}", wants)
        return prefill_plan

    def subject(self, traced: bool = False) -> CacheSubject:
        """The cache to hold and the cost of recomputing it; `traced` records its laws (within `record()`)."""
        return CacheSubject(
            model=self.name, system=self.machine, kv=self.token_bytes(), chip_time=self.recompute.chip_time(traced), price=self.price()
        )


def cache(
    model: Model | str | None,
    system: System | str,
    hold: Any,
    *,
    reuse: Any = None,
    uses: Any = None,
    waiting: Any = None,
    **about: Any,
) -> list[HoldRow]:
    """A row per tier for one hold ("5min", or seconds), by every criterion; `about`: more fields of `CacheProblem` (kv, tiers, mfu, ...).

    >>> rows = cache("deepseek-v3", "8xh100-sxm", "5min", fresh=4030, kv="fp8")
    >>> [(row.tier, row.chosen_by) for row in rows if row.chosen_by][:2]
    [('hbm', 'store-or-recompute'), ('ddr', 'cost with wear')]
    """
    resolved_model = find_model(model) if isinstance(model, str) else model
    machine = find_system(system) if isinstance(system, str) else system
    case_fields: dict[str, Any] = dict(about)
    for record in (PrefillCost, Precision):
        case_fields |= {key: _checked(record, key, about[key]) for key in fields(record) if key in about}
    case = CacheProblem(model=resolved_model, system=machine, **case_fields)
    hold_values = {"hold": hold, "reuse": reuse, "uses": uses, "waiting": waiting}
    request = defaults(CacheHold, {key: _checked(CacheHold, key, value) for key, value in hold_values.items() if value is not None})
    subject = case.subject()
    return with_choices([hold_row(place, request, subject) for place in case.places()])


def _checked(record: type, key: str, value: Any) -> Any:
    q, _ = fields(record)[key]
    if isinstance(value, str):
        return scalar(value, q, key)
    wants = q.illegal(value)
    if wants:
        raise BadValue(key, value, wants)
    return value if isinstance(value, Sourced) else user_input(value, key, q.unit)
