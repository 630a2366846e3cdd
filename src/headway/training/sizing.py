"""How large a machine a run needs: the fewest chips that meet a deadline, or those on which it costs least."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from headway.errors import BadValue, IllegalLayout
from headway.quantity import known
from headway.resolve import peak
from headway.system import System
from headway.training.asked import TrainingAnswer, TrainingRequest
from headway.training.recipe import optimizer
from headway.whole_model import matmul_params, total_params

EIGHTHS = {"chips": (4, 5, 6, 7, 8), "cost": (4, 6, 8)}  # of a power-of-two part of the machine

Best = Callable[[TrainingRequest], TrainingAnswer]
Row = Callable[[TrainingRequest, TrainingAnswer], dict[str, Any]]


def sized(request: TrainingRequest, best: Best, first: Row) -> TrainingAnswer:
    """The machine, or a part of whole scale-up domains of it."""
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
            break  # sizes grow
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
    """The same run on no more nodes than its layout fills, where that still does what is asked."""
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
    """The best layout on every size, smallest first."""
    for system in parts(request.system, EIGHTHS["cost" if request.objective == "cost" else "chips"]):
        if hopeless(request, system):
            continue
        try:
            yield system, best(replace(request, system=system))
        except (BadValue, IllegalLayout):
            continue


def hopeless(request: TrainingRequest, system: System) -> bool:
    """Whether states alone exceed the machine's memory, or the deadline is sooner than its peak: not worth a search."""
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
    """A machine and smaller ones of the same domains, smallest first."""
    domain, chips = int(system.scale_up_domain), int(system.chips)
    counts = {n * (chips >> power) // 8 for power in range(chips.bit_length()) for n in eighths}
    return [_part(system, n) for n in sorted(counts) if n >= 1 and (n % domain == 0 or n < domain)]


def _part(system: System, chips: int) -> System:
    if chips == int(system.chips):
        return system
    count = known(chips, f"{system.name}.chips", "", "derived", "part of the machine")
    return replace(system, chips=count, name=f"{chips} of {system.name}", scale_up_domain=min(system.scale_up_domain, count))
