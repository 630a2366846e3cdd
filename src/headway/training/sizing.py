"""How large a machine a run needs: the fewest chips that meet a deadline, or those on which it costs least."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from headway.errors import BadValue, IllegalLayout
from headway.quantity import known
from headway.resolve import peak
from headway.system import System
from headway.training.asked import Asked, Trained
from headway.training.recipe import optimizer
from headway.whole_model import matmul_params, total_params

EIGHTHS = {"chips": (4, 5, 6, 7, 8), "cost": (4, 6, 8)}  # of a power-of-two part of the machine

Best = Callable[[Asked], Trained]
Row = Callable[[Asked, Trained], dict[str, Any]]


def sized(asked: Asked, best: Best, first: Row) -> Trained:
    """The machine, or a part of whole scale-up domains of it."""
    if asked.run.tokens is None:
        flag, said = ("--deadline", f"{float(asked.deadline):g} s") if asked.deadline is not None else ("--objective", asked.objective)
        raise BadValue(flag, said, "the tokens of the run too: --tokens 15T")
    chosen: tuple[float, Trained] | None = None
    weighed = fitting = 0
    for system, one in _each(asked, best):
        weighed, fitting = weighed + one.weighed, fitting + one.fitting
        row = first(replace(asked, system=system), one)
        if not row["fits"] or (asked.deadline is not None and float(row["run_s"]) > float(asked.deadline)):
            continue
        if asked.objective == "cost" and row["run_usd"] is None:
            raise BadValue("--objective", "cost", f"a chip with a price of that metric; {system.chip.name} has none")
        worth = float(row["run_usd"]) if asked.objective == "cost" else float(system.chips)
        if chosen is None or worth < chosen[0]:
            chosen = (worth, one)
        if asked.objective == "chips":
            break  # sizes grow
    if chosen is None:
        note = "nothing fits on" if asked.deadline is None else "the deadline is not met, by these laws, on"
        said = f"{note} any number of chips up to {int(asked.system.chips):,}"
        whole = best(asked)
        return replace(whole, weighed=max(weighed, whole.weighed), fitting=max(fitting, whole.fitting), missed=said)
    return replace(_without_idle(asked, chosen[1], best, first), weighed=weighed, fitting=fitting)


def _without_idle(asked: Asked, chosen: Trained, best: Best, first: Row) -> Trained:
    """The same run on no more nodes than its layout fills, where that still does what is asked."""
    system = chosen.found[0].case.system
    row, domain = first(replace(asked, system=system), chosen), int(asked.system.scale_up_domain)
    filled = -(-(int(system.chips) - int(row["chips_idle"])) // domain) * domain
    if filled >= int(system.chips):
        return chosen
    smaller = _part(asked.system, filled)
    found = best(replace(asked, system=smaller))
    again = first(replace(asked, system=smaller), found)
    late = asked.deadline is not None and float(again["run_s"]) > float(asked.deadline)
    return chosen if late or not again["fits"] else found


def _each(asked: Asked, best: Best) -> Iterator[tuple[System, Trained]]:
    """The best layout on every size, smallest first."""
    for system in parts(asked.system, EIGHTHS["cost" if asked.objective == "cost" else "chips"]):
        if hopeless(asked, system):
            continue
        try:
            yield system, best(replace(asked, system=system))
        except (BadValue, IllegalLayout):
            continue


def hopeless(asked: Asked, system: System) -> bool:
    """Whether states alone exceed the machine's memory, or the deadline is sooner than its peak: not worth a search."""
    kept, chips = optimizer(asked.recipe.optimizer), float(system.chips)
    states = float(total_params(asked.model)) * float(kept.weight + asked.recipe.trainable * (kept.gradient + kept.states))
    if states > chips * float(system.chip.need("hbm")):
        return True
    if asked.deadline is None or asked.recipe.trainable < 1:
        return False
    flop = 6 * float(matmul_params(asked.model)) * float(asked.run.tokens)
    return flop > float(asked.deadline) * chips * float(peak(system.chip, asked.recipe.dtype)[1])


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
