"""The best layout of a training run: every legal one weighed at once, one recompute mode after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.model import Model
from headway.training.candidates import NAMES, candidates, dropped, one, rows
from headway.training.estimate import TrainingCase, TrainingEstimate, estimate
from headway.training.legality import Bounds, bounds
from headway.training.recipe import RECOMPUTE, Recipe, TrainingLayout
from headway.training.work import training_work
from headway.watch import tick

AT_ONCE = 20_000  # layouts weighed together: beyond it their arrays leave the cache
KEPT = 8  # of the table, and of each recompute mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One layout with the case it was weighed in."""

    case: TrainingCase
    layout: TrainingLayout
    step: float
    fits: bool
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The best layouts, best first, and how many were weighed."""

    best: tuple[Found, ...]
    weighed: int
    fitting: int
    dropped: tuple[str, ...] = ()  # listed values that no legal layout has


def search(model: Model, case: TrainingCase, pinned: Mapping[str, Sequence[int]], modes: Sequence[str] = RECOMPUTE) -> Searched:
    """The layouts of smallest step time that fit; where none does, those that need least memory."""
    every = candidates(bounds_of(model, case), int(case.system.scale_up_domain), pinned)
    found: list[Found] = []
    weighed = fitting = 0
    for asked, layouts in _cases(case, model, every, modes):
        steps, fits, used = _weigh(asked, layouts)
        weighed, fitting = weighed + len(steps), fitting + int(fits.sum())
        order = np.lexsort((steps, ~fits)) if fits.any() else np.lexsort((steps, used))
        found += [
            Found(case=asked, layout=one(layouts, int(i), pinned), step=float(steps[i]), fits=bool(fits[i]), bytes=float(used[i]))
            for i in order[:KEPT]
        ]
    found.sort(key=_worth)
    return Searched(best=_various(found), weighed=weighed, fitting=fitting, dropped=dropped(every, pinned))


def _various(found: list[Found]) -> tuple[Found, ...]:
    """The best mode of each layout before its other modes, as far as a table goes; in the order of steps."""
    seen: set[tuple[int, ...]] = set()
    firsts, others = [], []
    for each in found:
        ways = tuple(int(getattr(each.layout, name)) for name in NAMES)
        (others if ways in seen else firsts).append(each)
        seen.add(ways)
    kept = firsts[:KEPT] + others[: max(0, KEPT - len(firsts))]
    return tuple(sorted(kept, key=_worth))


def _worth(found: Found) -> tuple[bool, float, float]:
    return not found.fits, found.step if found.fits else found.bytes, found.step


def bounds_of(model: Model, case: TrainingCase) -> Bounds:
    """What a layout has to divide."""
    sequence = int(case.work.sequence)
    return bounds(model, int(case.system.chips), sequence, int(case.batch) // sequence, case.recipe.schedule)


def _cases(case: TrainingCase, model: Model, every: TrainingLayout, modes: Sequence[str]) -> Iterator[tuple[TrainingCase, TrainingLayout]]:
    """Recompute modes, and the schedules that chunks of layers ask for: what is not a number of the layout."""
    chunked = every.vpp > 1
    for mode in modes:
        for schedule, rows_of in ((case.recipe.schedule, ~chunked), ("interleaved", chunked)):
            if len(every.tp) and rows_of.any():
                recipe = replace(case.recipe, recompute=mode, schedule=schedule)
                yield with_recipe(case, model, recipe), rows(every, np.flatnonzero(rows_of))


def with_recipe(case: TrainingCase, model: Model, recipe: Recipe) -> TrainingCase:
    """The same case under another recipe."""
    return replace(case, recipe=recipe, work=training_work(model, recipe, case.work.sequence))


def _weigh(case: TrainingCase, layouts: TrainingLayout) -> tuple[Any, Any, Any]:
    """Step time, whether it fits, and memory, of each layout."""
    parts = []
    for start in range(0, len(layouts.tp), AT_ONCE):
        some = rows(layouts, slice(start, start + AT_ONCE))
        found: TrainingEstimate = estimate(case, some)
        shape = np.shape(some.tp)
        parts.append(tuple(np.broadcast_to(value, shape) for value in (found.time.step, found.fits, found.memory.total)))
        tick(len(some.tp))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]
