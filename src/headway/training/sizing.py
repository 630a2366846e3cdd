"""Machine size that a run needs, and advice: a batch that uses idle chips, a machine or optimiser with which it fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headway.core.errors import BadValue, HeadwayError, IllegalLayout
from headway.core.quantity import known
from headway.core.units import show
from headway.hardware.system import System
from headway.models.model import Model
from headway.models.totals import matmul_params, total_params
from headway.performance.formats import peak
from headway.training.pipeline import TrainingCase, machine
from headway.training.recipe import optimizer
from headway.training.run import TrainingAnswer, TrainingRequest
from headway.training.search import LayoutEstimate, SearchResult, search

EIGHTHS = {"chips": (4, 5, 6, 7, 8), "cost": (4, 6, 8)}  # sizes tried, in eighths of each power-of-two part of the machine

Best = Callable[[TrainingRequest], TrainingAnswer]
Row = Callable[[TrainingRequest, TrainingAnswer], dict[str, Any]]


def sized(request: TrainingRequest, best: Best, first: Row) -> TrainingAnswer:
    """The answer on the best size: the whole machine, or a part of it in whole scale-up domains."""
    if request.run.tokens is None:
        flag, text = (
            ("--deadline", f"{float(request.deadline):g} s") if request.deadline is not None else ("--objective", request.objective)
        )
        raise BadValue(flag, text, "the tokens of the run too: --tokens 15T")
    choice: tuple[float, TrainingAnswer] | None = None
    layout_count = fitting = 0
    for system, answer in _best_by_size(request, best):
        layout_count, fitting = layout_count + answer.layout_count, fitting + answer.fitting
        row = first(replace(request, system=system), answer)
        if not row["fits"] or (request.deadline is not None and float(row["run_s"]) > float(request.deadline)):
            continue
        if request.objective == "cost" and row["run_usd"] is None:
            raise BadValue("--objective", "cost", f"a chip with a price of that metric; {system.chip.name} has none")
        objective = float(row["run_usd"]) if request.objective == "cost" else float(system.chips)
        if choice is None or objective < choice[0]:
            choice = (objective, answer)
        if request.objective == "chips":
            break  # sizes ascend, so the first that meets the request has fewest chips
    if choice is None:
        note = "nothing fits on" if request.deadline is None else "the deadline is not met, by these laws, on"
        text = f"{note} any number of chips up to {int(request.system.chips):,}"
        full_machine = best(request)
        return replace(
            full_machine,
            layout_count=max(layout_count, full_machine.layout_count),
            fitting=max(fitting, full_machine.fitting),
            infeasible_reason=text,
        )
    return replace(_without_idle(request, choice[1], best, first), layout_count=layout_count, fitting=fitting)


def _without_idle(request: TrainingRequest, choice: TrainingAnswer, best: Best, first: Row) -> TrainingAnswer:
    """The answer on only the nodes that its layout fills, if it still meets the request."""
    system = choice.layouts[0].case.system
    row, domain = first(replace(request, system=system), choice), int(request.system.scale_up_domain)
    filled = -(-(int(system.chips) - int(row["chips_idle"])) // domain) * domain
    if filled >= int(system.chips):
        return choice
    smaller = _part(request.system, filled)
    answer = best(replace(request, system=smaller))
    again = first(replace(request, system=smaller), answer)
    late = request.deadline is not None and float(again["run_s"]) > float(request.deadline)
    return choice if late or not again["fits"] else answer


def _best_by_size(request: TrainingRequest, best: Best) -> Iterator[tuple[System, TrainingAnswer]]:
    """The best layout on each machine size, smallest first."""
    for system in parts(request.system, EIGHTHS["cost" if request.objective == "cost" else "chips"]):
        if hopeless(request, system):
            continue
        try:
            yield system, best(replace(request, system=system))
        except (BadValue, IllegalLayout):
            continue


def hopeless(request: TrainingRequest, system: System) -> bool:
    """Whether a search is pointless: weights and states exceed the memory, or the deadline is too soon even at peak FLOP/s."""
    param_bytes, chips = optimizer(request.recipe.optimizer), float(system.chips)
    states = float(total_params(request.model)) * float(
        param_bytes.weight + request.recipe.trainable * (param_bytes.gradient + param_bytes.states)
    )
    if states > chips * float(system.chip.need("hbm")):
        return True
    if request.deadline is None or request.recipe.trainable < 1:
        return False
    flop = 6 * float(matmul_params(request.model)) * float(request.run.tokens)
    return flop > float(request.deadline) * chips * float(peak(system.chip, request.recipe.dtype)[1])


def parts(system: System, eighths: Sequence[int]) -> list[System]:
    """The machine and smaller parts of whole scale-up domains, smallest first."""
    domain, chips = int(system.scale_up_domain), int(system.chips)
    counts = {n * (chips >> power) // 8 for power in range(chips.bit_length()) for n in eighths}
    return [_part(system, n) for n in sorted(counts) if n >= 1 and (n % domain == 0 or n < domain)]


def _part(system: System, chips: int) -> System:
    if chips == int(system.chips):
        return system
    count = known(chips, f"{system.name}.chips", "", "derived", "part of the machine")
    return replace(system, chips=count, name=f"{chips} of {system.name}", scale_up_domain=min(system.scale_up_domain, count))


LEANER = "adam-8bit"
FARTHEST = 10_000  # most sequences between a batch and a suggested batch
MOST_TIMES = 1024  # largest multiple of the machine that is tried


def advice(
    model: Model, case: TrainingCase, pinned: Mapping[str, Sequence[int]], modes: Sequence[str], best: LayoutEstimate
) -> Iterator[str]:
    """Notes on how to improve the best layout."""
    if best.fits:
        yield from _idle(model, case, pinned, modes, best)
    else:
        yield from _fitting(model, case, pinned, modes)


def _idle(
    model: Model, case: TrainingCase, pinned: Mapping[str, Sequence[int]], modes: Sequence[str], best: LayoutEstimate
) -> Iterator[str]:
    """A note on idle chips, with a nearby batch that would use them."""
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
    """The number of sequences within a quarter of `sequences` that has the largest common divisor with `chips`.

    >>> even(2000, 16384)
    2048
    """
    most = min(sequences // 4, FARTHEST)
    return max(range(max(1, sequences - most), sequences + most + 1), key=lambda n: (math.gcd(n, chips), -abs(n - sequences)))


def _fitting(model: Model, case: TrainingCase, pinned: Mapping[str, Sequence[int]], modes: Sequence[str]) -> Iterator[str]:
    """Notes when nothing fits: an optimiser with fewer states, and the smallest machine (by doublings) on which a layout fits."""
    leaner = replace(case, optimizer=optimizer(LEANER))
    if case.optimizer.states > leaner.optimizer.states and _fits(model, leaner, pinned, modes):
        yield f"with --optimizer {LEANER} it fits"
    if case.system.shape:
        return  # a torus has a shape, which doubling its chips would not keep
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
