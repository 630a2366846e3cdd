"""What a training run is asked for, and what is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.cost import Price
from headway.model import Model
from headway.system import System
from headway.training.outlook import Failures
from headway.training.reach import TrainingReach
from headway.training.recipe import Recipe, Run
from headway.training.search import Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a run is asked for."""

    model: Model
    system: System
    run: Run
    recipe: Recipe
    modes: tuple[str, ...]  # recompute modes to weigh
    pinned: Mapping[str, tuple[int, ...]]
    failures: Failures
    reach: TrainingReach
    price_metric: str
    objective: str = "step"
    deadline: Any = None  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The answer: layouts, best first, and how many were weighed."""

    found: tuple[Found, ...]
    weighed: int
    fitting: int
    price: Price | None
    notes: tuple[str, ...] = ()
    missed: str = ""  # why no size of the machine does what was asked
