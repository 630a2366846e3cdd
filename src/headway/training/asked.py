"""What a training run is asked for, and what is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.cost import PriceQuote
from headway.model import Model
from headway.system import System
from headway.training.outlook import Failures
from headway.training.reach import TrainingReach
from headway.training.recipe import Recipe, TrainingRun
from headway.training.search import LayoutEstimate


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """What a run is asked for."""

    model: Model
    system: System
    run: TrainingRun
    recipe: Recipe
    modes: tuple[str, ...]  # recompute modes to weigh
    pinned: Mapping[str, tuple[int, ...]]
    failures: Failures
    efficiency: TrainingReach
    price_metric: str
    objective: str = "step"
    deadline: Any = None  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAnswer:
    """The answer: layouts, best first, and how many were weighed."""

    layouts: tuple[LayoutEstimate, ...]
    layout_count: int
    fitting: int
    price: PriceQuote | None
    notes: tuple[str, ...] = ()
    infeasible_reason: str = ""  # why no size of the machine does what was asked
