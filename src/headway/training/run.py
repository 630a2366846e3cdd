"""A training run's request, answer and totals at a step time: wall time including failures, cost, energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.core.errors import BadValue
from headway.core.units import show
from headway.hardware.chip_price import PriceQuote
from headway.hardware.system import System
from headway.laws.training.run import (
    best_interval_s,
    goodput_share,
    run_usd,
    wall_s,
)
from headway.models.model import Model
from headway.training.estimate import TrainingEstimate
from headway.training.recipe import Failures, Recipe, TrainingReach, TrainingRun
from headway.training.search import LayoutEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A run's totals; None where the run or the price is not known."""

    goodput: Any
    run: Any = None  # seconds of wall time; run_low and run_high at the ends of the step's 90 % interval
    run_low: Any = None
    run_high: Any = None
    usd: Any = None
    usd_low: Any = None
    usd_high: Any = None
    energy: Any = None
    flop: Any = None


def outlook(estimate: TrainingEstimate, system: System, batch: Any, tokens: Any, failures: Failures, price: PriceQuote | None) -> Outlook:
    """Wall time, cost and energy of training on `tokens` tokens."""
    goodput = goodput_of(system, failures)
    if tokens is None:
        return Outlook(goodput=goodput)
    low, run, high = (wall_s(tokens / batch * step, goodput) for step in (estimate.step_low, estimate.time.step, estimate.step_high))
    usd = [None if price is None else run_usd(chip_price, system.chips, time)
           for chip_price, time in zip(_prices(price), (low, run, high), strict=True)]  # fmt: skip
    power = None if system.chip.tdp is None else system.chip.tdp * system.chips
    return Outlook(
        goodput=goodput, run=run, run_low=low, run_high=high, usd=usd[1], usd_low=usd[0], usd_high=usd[2],
        energy=None if power is None else power * run, flop=estimate.use.flop_per_token * tokens,
    )  # fmt: skip


def _prices(price: PriceQuote | None) -> tuple[Any, Any, Any]:
    return (None, None, None) if price is None else (price.low, price.value, price.high)


def goodput_of(system: System, failures: Failures) -> Any:
    """Share of the wall time that advances the run, at the checkpoint interval that loses least."""
    if failures.mtbf is None:
        return 1
    rate = system.chips / failures.mtbf
    goodput = goodput_share(failures.checkpoint, best_interval_s(failures.checkpoint, rate), rate, failures.restart)
    if float(goodput) <= 0:
        between = show(1 / float(rate), "s")
        wants = f"longer: one of {int(system.chips)} chips fails every {between}, sooner than a run comes back"
        raise BadValue("--mtbf", show(failures.mtbf, "s"), wants)
    return goodput


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """One run to plan: model, system, recipe, pinned layout values and objective."""

    model: Model
    system: System
    run: TrainingRun
    recipe: Recipe
    modes: tuple[str, ...]  # recompute modes to search
    pinned: Mapping[str, tuple[int, ...]]
    failures: Failures
    efficiency: TrainingReach
    price_metric: str
    objective: str = "step"
    deadline: Any = None  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAnswer:
    """The best layouts, best first, and how many were evaluated."""

    layouts: tuple[LayoutEstimate, ...]
    layout_count: int
    fitting: int
    price: PriceQuote | None
    notes: tuple[str, ...] = ()
    infeasible_reason: str = ""  # why no size of the machine meets the request; "" when one does
