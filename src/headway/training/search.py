"""Search for the best layout of a training run: all legal layouts evaluated as arrays, one recompute mode at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.progress import expect, tick
from headway.models.model import Model
from headway.training.estimate import TrainingEstimate, estimate
from headway.training.layouts import NAMES, Bounds, absent_values, bounds, candidates, layout_at, rows
from headway.training.pipeline import TrainingCase
from headway.training.recipe import RECOMPUTE, Recipe, TrainingLayout
from headway.training.work import training_work

AT_ONCE = 20_000  # layouts evaluated together; larger arrays leave the CPU cache
PLAIN_MARGIN = 0.02  # a layout that much slower is preferred if it is plainer: far less than these laws can tell apart
TABLE_ROWS = 8  # best layouts kept in all, and per recompute mode


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutEstimate:
    """One layout, its case, and its step time (s) and memory (bytes)."""

    case: TrainingCase
    layout: TrainingLayout
    step: float
    fits: bool
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The best layouts, best first, and how many were evaluated."""

    best: tuple[LayoutEstimate, ...]
    layout_count: int
    fitting: int
    absent_values: tuple[str, ...] = ()  # notes on listed values that no legal layout has


def search(
    model: Model,
    case: TrainingCase,
    pinned: Mapping[str, Sequence[int]],
    modes: Sequence[str] = RECOMPUTE,
    usual: Mapping[str, Sequence[int]] | None = None,
) -> SearchResult:
    """The fitting layouts of smallest step time, the plainest of the fastest first; if none fits, the layouts that need least memory.

    `pinned` are the user's values, `usual` those that the search keeps to by itself.
    """
    all_layouts = candidates(bounds_of(model, case), int(case.system.scale_up_domain), {**(usual or {}), **pinned})
    results: list[LayoutEstimate] = []
    layout_count = fitting = 0
    for variant, layouts in _cases(case, model, all_layouts, modes):
        steps, fits, memory_bytes = _evaluate(variant, layouts)
        layout_count, fitting = layout_count + len(steps), fitting + int(fits.sum())
        order = np.lexsort((steps, ~fits)) if fits.any() else np.lexsort((steps, memory_bytes))
        results += [
            LayoutEstimate(
                case=variant,
                layout=layout_at(layouts, int(i), pinned),
                step=float(steps[i]),
                fits=bool(fits[i]),
                bytes=float(memory_bytes[i]),
            )
            for i in order[:TABLE_ROWS]
        ]
    results.sort(key=_sort_key)
    return SearchResult(
        best=_plainest_first(_various(results)),
        layout_count=layout_count,
        fitting=fitting,
        absent_values=absent_values(all_layouts, pinned),
    )


def _various(results: list[LayoutEstimate]) -> tuple[LayoutEstimate, ...]:
    """At most TABLE_ROWS estimates, the best recompute mode of each layout before its other modes, sorted by step time."""
    degree_sets: set[tuple[int, ...]] = set()
    firsts, repeats = [], []
    for result in results:
        degrees = tuple(int(getattr(result.layout, name)) for name in NAMES)
        (repeats if degrees in degree_sets else firsts).append(result)
        degree_sets.add(degrees)
    shortlist = firsts[:TABLE_ROWS] + repeats[: max(0, TABLE_ROWS - len(firsts))]
    return tuple(sorted(shortlist, key=_sort_key))


def _plainest_first(results: tuple[LayoutEstimate, ...]) -> tuple[LayoutEstimate, ...]:
    """The plainest layout within PLAIN_MARGIN of the fastest first, then the others by step time."""
    if not results or not results[0].fits:
        return results
    near = [result for result in results if result.fits and result.step <= results[0].step * (1 + PLAIN_MARGIN)]
    plainest = min(near, key=lambda result: (*_oddities(result.layout), result.step))
    return plainest, *(result for result in results if result is not plainest)


def _oddities(layout: TrainingLayout) -> tuple[int, ...]:
    """What people avoid in a layout, the strongest first: context parallelism, degrees that are no powers of two, higher ZeRO stages."""
    degrees = [int(value) for value in (layout.tp, layout.cp, layout.pp, layout.dp)]
    return int(degrees[1] > 1), sum(degree & (degree - 1) != 0 for degree in degrees), int(layout.zero)


ODDITIES = ("context parallelism", "degrees that are no powers of two", "a higher ZeRO stage")


def less_plain(result: LayoutEstimate, best: LayoutEstimate) -> str:
    """Why a layout stands behind the best although it is faster; "" if it is not faster."""
    if not result.fits or not best.fits or result.step >= best.step:
        return ""
    counts = zip(ODDITIES, _oddities(result.layout), _oddities(best.layout), strict=True)
    odd = next((name for name, more, less in counts if more > less), "")
    return f"{best.step / result.step - 1:.1%} faster, less plain: {odd}"


def _sort_key(result: LayoutEstimate) -> tuple[bool, float, float]:
    return not result.fits, result.step if result.fits else result.bytes, result.step


def bounds_of(model: Model, case: TrainingCase) -> Bounds:
    """Sizes that a layout of this case must divide."""
    sequence = int(case.work.sequence)
    return bounds(model, int(case.system.chips), sequence, int(case.batch) // sequence, case.recipe.schedule)


def _cases(
    case: TrainingCase, model: Model, layouts: TrainingLayout, modes: Sequence[str]
) -> Iterator[tuple[TrainingCase, TrainingLayout]]:
    """The case and its layouts for each recompute mode and schedule; layouts with chunks use the interleaved schedule."""
    chunked = layouts.vpp > 1
    for mode in modes:
        for schedule, rows_of in ((case.recipe.schedule, ~chunked), ("interleaved", chunked)):
            if len(layouts.tp) and rows_of.any():
                recipe = replace(case.recipe, recompute=mode, schedule=schedule)
                yield with_recipe(case, model, recipe), rows(layouts, np.flatnonzero(rows_of))


def with_recipe(case: TrainingCase, model: Model, recipe: Recipe) -> TrainingCase:
    """The case with another recipe, its work computed anew."""
    return replace(case, recipe=recipe, work=training_work(model, recipe, case.work.sequence))


def _evaluate(case: TrainingCase, layouts: TrainingLayout) -> tuple[Any, Any, Any]:
    """Step time (s), whether it fits, and memory (bytes) of each layout."""
    parts, case = [], replace(case, recipe=replace(case.recipe, mfu=None))  # layouts are ranked by the laws, whatever MFU is stated
    expect(len(layouts.tp))
    for start in range(0, len(layouts.tp), AT_ONCE):
        chunk = rows(layouts, slice(start, start + AT_ONCE))
        numbers: TrainingEstimate = estimate(case, chunk)
        shape = np.shape(chunk.tp)
        parts.append(tuple(np.broadcast_to(value, shape) for value in (numbers.time.step, numbers.fits, numbers.memory.total)))
        tick(len(chunk.tp))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]
