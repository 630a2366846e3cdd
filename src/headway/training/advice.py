"""What would help a run: chips that a batch leaves idle, memory that a machine lacks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from headway.errors import HeadwayError
from headway.model import Model
from headway.quantity import known
from headway.system import System
from headway.training.estimate import TrainingCase, machine
from headway.training.recipe import optimizer
from headway.training.search import LayoutEstimate, SearchResult, search
from headway.units import show

LEANER = "adam-8bit"
FARTHEST = 10_000  # sequences from a batch to one that is suggested
MOST_TIMES = 1024  # machines so many times larger are tried


def advice(
    model: Model, case: TrainingCase, pinned: Mapping[str, Sequence[int]], modes: Sequence[str], best: LayoutEstimate
) -> Iterator[str]:
    """Lines about the best layout found."""
    if best.fits:
        yield from _idle(model, case, pinned, modes, best)
    else:
        yield from _fitting(model, case, pinned, modes)


def _idle(
    model: Model, case: TrainingCase, pinned: Mapping[str, Sequence[int]], modes: Sequence[str], best: LayoutEstimate
) -> Iterator[str]:
    """A batch near this one that would use the chips that it leaves idle."""
    layout, chips, sequence = best.layout, int(case.system.chips), int(case.work.sequence)
    idle = chips - int(layout.tp) * int(layout.cp) * int(layout.pp) * int(layout.dp)
    if not idle:
        return
    note = f"{idle:,} of {chips:,} chips are idle, and paid for"
    sequences = int(case.batch) // sequence
    near = even(sequences, chips)
    batch = known(near * sequence, "global_batch", "token", "derived", "a batch that divides over more chips")
    alternative = None if near == sequences else _search(model, replace(case, batch=batch), pinned, modes)
    if alternative and alternative.fitting and alternative.best[0].step / near < best.step / sequences:
        gain = best.step / sequences / (alternative.best[0].step / near) - 1
        note += f": {sequences:,} sequences of a step divide badly; {near:,} (--global-batch {int(batch)}) train {gain:.1%} faster"
    yield note


def even(sequences: int, chips: int) -> int:
    """The number of sequences within a quarter of this one that has most in common with the number of chips.

    >>> even(2000, 16384)
    2048
    """
    most = min(sequences // 4, FARTHEST)
    return max(range(max(1, sequences - most), sequences + most + 1), key=lambda n: (math.gcd(n, chips), -abs(n - sequences)))


def _fitting(model: Model, case: TrainingCase, pinned: Mapping[str, Sequence[int]], modes: Sequence[str]) -> Iterator[str]:
    """The smallest machine of the same chips on which something fits, in doublings, and a leaner optimiser."""
    leaner = replace(case, optimizer=optimizer(LEANER))
    if case.optimizer.states > leaner.optimizer.states and _fits(model, leaner, pinned, modes):
        yield f"with --optimizer {LEANER} it fits"
    if case.system.shape:
        return  # a torus is named by its sides
    times = 2
    while times <= MOST_TIMES:
        larger = _times(case.system, times)
        if _fits(model, replace(case, system=larger, machine=machine(larger, case.recipe.dtype)), pinned, modes):
            yield f"on {int(larger.chips):,} of these chips it fits"
            return
        times *= 2
    yield f"nor does anything fit on {show(float(case.system.chips) * MOST_TIMES, '')} of these chips"


def _fits(model: Model, case: TrainingCase, pinned: Mapping[str, Sequence[int]], modes: Sequence[str]) -> bool:
    result = _search(model, case, pinned, modes)
    return result is not None and result.fitting > 0


def _search(model: Model, case: TrainingCase, pinned: Mapping[str, Sequence[int]], modes: Sequence[str]) -> SearchResult | None:
    try:
        return search(model, case, pinned, modes)
    except HeadwayError:
        return None


def _times(system: System, times: int) -> System:
    count = known(int(system.chips) * times, f"{system.name}.chips", "", "derived", f"{times} times the machine")
    return replace(system, chips=count, name=f"{times} x {system.name}")
