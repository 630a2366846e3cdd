"""What computing a prompt token's KV again costs: by the estimate of prefill, by a share of the peak, or by a rate that was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from headway.cache_place import NumberRange
from headway.chip import Chip
from headway.cost import PriceQuote
from headway.laws import reload
from headway.model import Model
from headway.plan import Plan
from headway.resolve import peak
from headway.whole_model import active_params

COSTS = ("usd_per_mtok_in", "usd_per_mtok_in_lo", "usd_per_mtok_in_hi")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recompute:
    """Where the figure comes from; exactly one of plan, mfu and fresh."""

    chip: Chip
    price: PriceQuote
    plan: Plan | None = None  # whose prefill is estimated
    model: Model | None = None
    active: Any = None  # parameters, in place of the model's
    mfu: Any = None
    compute: str = ""  # format of the arithmetic at that MFU
    fresh: Any = None  # prompt tokens a second and chip, measured

    def chip_time(self, traced: bool = False) -> NumberRange:
        """Chip time of a prompt token, with its ends; with its equations where asked for (within `record()`)."""
        if self.fresh is not None:
            return _same(reload.measured_s_per_token(self.fresh))
        if self.mfu is not None:
            active = self.active if self.active is not None else active_params(cast(Model, self.model))
            _, most = peak(self.chip, self.compute)
            return _same(reload.recompute_s_per_token(reload.forward_flop(active), most, self.mfu))
        plan = cast(Plan, self.plan)
        read = plan.explain if traced else plan.table.row(0).__getitem__
        value, low, high = (reload.chip_s_of_cost(read(key), self.price.value) for key in COSTS)
        return NumberRange(value=value, low=low, high=high)

    @property
    def how(self) -> str:
        """The origin in words."""
        if self.fresh is not None:
            return "as measured"
        if self.mfu is not None:
            return f"2 N at {float(self.mfu):.3g} of {self.chip.name}'s {self.compute} peak, attention left out"
        row = cast(Plan, self.plan).table.row(0)
        degrees = " ".join(f"{key}={row[key]}" for key in ("tp", "ep", "dp", "pp", "cp") if row[key] != 1) or "tp=1"
        return f"prefill of {int(row['prompt'])} tokens as estimated for the cheapest layout, {degrees}"


def _same(value: Any) -> NumberRange:
    return NumberRange(value=value, low=value, high=value)
