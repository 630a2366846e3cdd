"""How many chips a run wants: the fewest, cheapest or fastest count that keeps its deadline and its budget with the confidence asked.

A machine with a count (1024xh100-sxm) is the most; of a bare one (h100-sxm) any count may be taken. Counts are whole scale-up domains
beyond one domain. More chips are never slower, as the search may leave some idle; so the fewest are found by halving.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from headway.core.errors import BadValue, IllegalLayout, MissingFact
from headway.core.units import show
from headway.hardware.chip import price_quote
from headway.hardware.system import System, of_count
from headway.laws.serving.request import factor_of_probability
from headway.laws.step.layer_terms import replica_chips
from headway.models.totals import matmul_params, total_params
from headway.models.work import works
from headway.performance.formats import peak
from headway.performance.layout import shape
from headway.training.recipe import optimizer
from headway.training.run import Outlook, best, totals
from headway.training.search import LayoutEstimate, TrainingAnswer, TrainingRequest

MOST_FREE = 131_072  # chips, up to which a count that is left open is looked for
ROUNDING = 1e-9  # of a probability
EVEN = 0.5  # chance from which a limit is kept as expected
SAME = 1e-9  # share within which two runs are as long
EIGHTHS = (4, 5, 6, 7)  # of powers of two: counts below a scale-up domain
WORSE = 4  # coarse counts in turn that are dearer than the cheapest, after which no larger one is weighed
HALVINGS = 4  # on each side of the best coarse count
LADDER = (1.1, 1.25, 1.5, 2.0)  # times the chips of the answer, or parts of them: counts of which the chance is told beside it
MOST_MOVES = 4  # to a better count beside the best
MOST_RUNGS = 2  # of them, on each side


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSize:
    """The answer on one count of chips, with the totals of its best layout."""

    request: TrainingRequest
    answer: TrainingAnswer
    run: Outlook

    @property
    def fits(self) -> bool:
        """Whether the best layout fits."""
        return self.answer.layouts[0].fits


def is_sized(request: TrainingRequest) -> bool:
    """Whether the count of chips is part of the question."""
    return request.objective != "step" or request.deadline is not None or request.budget is not None


def is_free(machine: System) -> bool:
    """Whether a machine is named without a count."""
    return not machine.fixed_count and not machine.shape


def keeps(request: TrainingRequest, run: Outlook) -> bool:
    """Whether a run keeps its limits with the confidence asked."""
    return run.confidence is None or float(run.confidence) >= request.confidence - ROUNDING


def missed_by(request: TrainingRequest, time: float | None, usd: float | None) -> float:
    """Times its limit that a run takes, s, or costs, USD, whichever is more."""
    return max(float(value or 0) / float(limit) for value, limit in ((time, request.deadline), (usd, request.budget)) if limit is not None)


def is_in_time(request: TrainingRequest, run: Outlook) -> bool:
    """Whether a run keeps its deadline with the confidence asked, whatever it costs."""
    return keeps(request, replace(run, confidence=run.in_time))


def misses(request: TrainingRequest, run: Outlook) -> list[str]:
    """The limits that a run does not keep with the confidence asked, in words; one that it is likely to keep misses by its chance alone."""
    chances = ((run.in_time, "the deadline of", request.deadline, "s"), (run.in_budget, "the budget of", request.budget, "USD"))
    late = [entry for entry in chances if entry[0] is not None and float(entry[0]) < request.confidence - ROUNDING]
    at = f" at {request.confidence * 100:.4g}% confidence"  # said once, after the last limit that it is about
    likely = [float(chance) >= EVEN for chance, *_ in late]
    return [
        f"{words} {show(limit, unit)}{at if likely[place] and not any(likely[place + 1 :]) else ''}"
        for place, (_, words, limit, unit) in enumerate(late)
    ]


class MachineSizes:
    """The counts of chips of a question, ascending, each searched once."""

    def __init__(self, request: TrainingRequest) -> None:
        """`request` names the whole machine."""
        self.request = request
        self.counts, self.domain = counts_of(request.system)
        self._by_count: dict[int, MachineSize | None] = {}

    def at(self, place: int) -> MachineSize | None:
        """The answer on the count at a place; None where no layout is legal."""
        count = self.counts[place]
        if count not in self._by_count:
            part = replace(self.request, system=of_count(self.request.system, count))
            try:
                answer = best(part)
            except (BadValue, IllegalLayout, MissingFact):
                self._by_count[count] = None
            else:
                self._by_count[count] = MachineSize(request=part, answer=answer, run=totals(part, answer.layouts[0])[1])
        return self._by_count[count]

    @property
    def searched(self) -> list[MachineSize]:
        """Those that were searched and have a legal layout, by count."""
        return [size for _, size in sorted(self._by_count.items()) if size is not None]

    def first_not_hopeless(self) -> int:
        """Place of the first count that has the memory and, at peak FLOP/s, the time."""
        return bisect.bisect_left(self.counts, True, key=lambda count: not hopeless(self.request, count))

    def fits(self, place: int) -> bool:
        """Whether some layout fits."""
        size = self.at(place)
        return size is not None and size.fits

    def in_time(self, place: int) -> bool:
        """Whether some layout fits and keeps the deadline with the confidence, whatever it costs."""
        size = self.at(place)
        return size is not None and size.fits and is_in_time(self.request, size.run)

    def keeps(self, place: int) -> bool:
        """Whether some layout fits and keeps every limit."""
        size = self.at(place)
        return size is not None and size.fits and keeps(self.request, size.run)

    def fewest(self, start: int, met: Callable[[int], bool]) -> int | None:
        """Place of the first count from `start` on at which `met` holds: by strides as long as the run is late, then by halving."""
        low, place, last, tries = start - 1, start, len(self.counts) - 1, 0
        while not met(place):
            if place == last:
                return None
            low, tries = place, tries + 1
            target = self.counts[place] * max(self._late(place), 1 + 0.02 * tries)
            place = min(max(bisect.bisect_left(self.counts, target), place + 1), last)
        while place - low > 1:
            middle = (low + place) // 2
            low, place = (low, middle) if met(middle) else (middle, place)
        return place

    def _late(self, place: int) -> float:
        """How many times the chips a count wants by its own time; 2 where nothing fits on it."""
        size, deadline = self.at(place), self.request.deadline
        if size is None or not size.fits or deadline is None:
            return 2.0
        spread = float(size.run.run_high) / float(size.run.run)
        factor = float(factor_of_probability(self.request.confidence, spread)) if spread > 1 else 1.0
        return min(max(factor * float(size.run.run) / float(deadline), 1.0), 4.0)

    def coarse(self, start: int) -> list[int]:
        """Places from `start` on of counts that divide well: powers of two, times 3 or the odd part of heads or layers; and the last."""
        last = len(self.counts) - 1
        model = shape(works(self.request.model))
        odd = {1, 3, *(number // (number & -number) for number in (math.gcd(*model.heads) or 1, model.layers))}
        return [place for place in range(start, last + 1) if place in (start, last) or _odd_part(self.counts[place], self.domain) in odd]

    def around(self, place: int) -> list[LayoutEstimate]:
        """The best layouts on a few counts below and above, each on the chips that it fills."""
        chips, near = self.counts[place], []
        for shares in (LADDER, [1 / share for share in LADDER]):
            filled: dict[int, LayoutEstimate] = {}
            for share in shares:
                at = min(bisect.bisect_left(self.counts, chips * share), len(self.counts) - 1)
                size = self.at(at)
                if size is None or not size.fits or len(filled) >= MOST_RUNGS:
                    continue
                first = _without_idle(self.request.system, size).layouts[0]
                if (int(first.case.system.chips) - chips) * (share - 1) > 0:
                    filled.setdefault(int(first.case.system.chips), first)
            near += filled.values()
        return sorted(near, key=lambda first: int(first.case.system.chips))


def _odd_part(count: int, domain: int) -> int:
    """Of the domains, or of the chips below one."""
    parts = count if count < domain else count // domain
    return parts // (parts & -parts)


def counts_of(machine: System) -> tuple[list[int], int]:
    """The counts of chips that a question may take, ascending, and the chips of a whole scale-up domain.

    >>> from headway.hardware.system import system
    >>> counts_of(system("20xh100-sxm")), counts_of(system("h100-sxm"))[0][7:10]
    (([1, 2, 3, 4, 5, 6, 7, 8, 16, 20], 8), [8, 16, 24])
    """
    chips, most = int(machine.chips), MOST_FREE if is_free(machine) else int(machine.chips)
    domain = int(of_count(machine, most).scale_up_domain)
    parts = {eighth << power >> 3 for power in range(domain.bit_length() + 3) for eighth in EIGHTHS}
    below = {count for count in parts if 1 <= count < min(domain, most)}
    return sorted(below | set(range(domain, most + 1, domain)) | ({most} if most == chips else set())), domain


def hopeless(request: TrainingRequest, count: int) -> bool:
    """Whether a search is pointless: weights and states exceed the memory, or the deadline is too soon even at peak FLOP/s."""
    chip, param_bytes = request.system.chip, optimizer(request.recipe.optimizer)
    states = float(total_params(request.model)) * float(
        param_bytes.weight + request.recipe.trainable * (param_bytes.gradient + param_bytes.states)
    )
    if states > count * float(chip.need("hbm")):
        return True
    if request.deadline is None or request.recipe.trainable < 1:
        return False
    flop = 6 * float(matmul_params(request.model)) * float(request.run.tokens)
    return flop > float(request.deadline) * count * float(peak(chip, request.recipe.dtype)[1])


# -- the count ------------------------------------------------------------------------------------------------------------------


def planned(request: TrainingRequest) -> TrainingAnswer:
    """The best layouts on the machine, or on the best count of its chips."""
    return sized(request) if is_sized(request) else best(request)


def sized(request: TrainingRequest) -> TrainingAnswer:
    """The answer on the best count of chips; where none keeps every limit, on the one that comes nearest, with the reason."""
    _check(request)
    sizes = MachineSizes(request)
    place, reason = _place(sizes)
    size = None if place is None else sizes.at(place)
    if place is None or size is None:
        answer = best(request)
        return _with_counts(replace(answer, infeasible_reason=reason), sizes)
    if reason:
        return _with_counts(replace(_without_idle(request.system, size), infeasible_reason=reason), sizes)
    full = bisect.bisect_left(sizes.counts, int(_without_idle(request.system, size).layouts[0].case.system.chips))
    place, size = (full, sizes.at(full) or size) if sizes.keeps(full) else (place, size)
    near: list[LayoutEstimate] = []
    for _ in range(MOST_MOVES):  # as counts that divide better than the neighbours may be better, whatever the strides found
        near = sizes.around(place)
        places = {bisect.bisect_left(sizes.counts, int(first.case.system.chips)) for first in near}
        better = min((at for at in places if sizes.keeps(at)), key=lambda at: _value(sizes, at, request.objective), default=place)
        if _value(sizes, better, request.objective) >= _value(sizes, place, request.objective):
            break
        place, size = better, sizes.at(better) or size
    return _with_counts(replace(_without_idle(request.system, size), ladder=tuple(near)), sizes)


def _with_counts(answer: TrainingAnswer, sizes: MachineSizes) -> TrainingAnswer:
    """The answer with the layouts of every count that was searched."""
    answers = [size.answer for size in sizes.searched] or [answer]
    return replace(answer, layout_count=sum(part.layout_count for part in answers), fitting=sum(part.fitting for part in answers))


def _check(request: TrainingRequest) -> None:
    """Refuse a question about a run without tokens, money without a price, and time or money that nothing bounds."""
    flag, text = "--objective", request.objective
    if request.deadline is not None:
        flag, text = "--deadline", show(request.deadline, "s")
    elif request.budget is not None:
        flag, text = "--budget", show(request.budget, "USD")
    if request.run.tokens is None:
        raise BadValue(flag, text, "the tokens of the run too: --tokens 15T")
    is_of_money = request.budget is not None or request.objective == "cost"
    if is_of_money and price_quote(request.system.chip, request.price_metric) is None:
        flag, text = ("--objective", "cost") if request.budget is None else ("--budget", show(request.budget, "USD"))
        wants = f"a chip with a price of that metric; {request.system.chip.name} has none: --set chip.price=$2/h gives one"
        raise BadValue(flag, text, wants)
    if request.objective == "step" and request.budget is None and is_free(request.system):
        wants = f"a count of chips, such as 1024x{request.system.name}, or --budget: more chips are always faster"
        raise BadValue("--objective", "step", wants)


def _place(sizes: MachineSizes) -> tuple[int | None, str]:
    """Place of the best count, and why it does not keep every limit ("" where it does)."""
    request, most = sizes.request, f"any number of chips up to {sizes.counts[-1]:,}"
    start, last = sizes.first_not_hopeless(), len(sizes.counts) - 1
    memory = replace(request, deadline=None)
    least = bisect.bisect_left(sizes.counts, True, key=lambda count: not hopeless(memory, count))
    if least > last:
        return None, f"nothing fits on {most}"
    late = request.deadline is not None
    first = None if start > last else sizes.fewest(start, sizes.in_time if late else sizes.fits)
    if first is None:
        return (last, f"the deadline is not kept on {most}") if late and sizes.fits(last) else (None, f"nothing fits on {most}")
    if request.objective == "chips" and sizes.keeps(first):
        return first, ""
    places = list(_coarse_places(sizes, first))
    keeping = [place for place in places if sizes.keeps(place)]
    if not keeping:
        cheapest = min(places, key=lambda place: _value(sizes, place, "cost"))
        return cheapest, f"the budget is not kept on {most}" + (" in time" if late else "")
    return _refined(sizes, places, min(keeping, key=lambda place: _value(sizes, place, request.objective))), ""


def _value(sizes: MachineSizes, place: int, objective: str) -> float:
    """What the objective makes least; the cost where no count keeps the budget."""
    size = sizes.at(place)
    if size is None or not size.fits:
        return float("inf")
    return float({"chips": size.request.system.chips, "cost": size.run.usd, "step": size.run.run}[objective])


def _coarse_places(sizes: MachineSizes, first: int) -> Iterator[int]:
    """Coarse places from the first on, until they have been too dear for a while; of a question of time alone the last."""
    request, least, since = sizes.request, float("inf"), 0
    if request.objective == "step" and request.budget is None:
        yield len(sizes.counts) - 1
        return
    for place in sizes.coarse(first):
        yield place
        value = _value(sizes, place, "cost")
        is_better = value < least or (request.objective == "step" and sizes.keeps(place))
        least, since = min(least, value), 0 if is_better else since + 1
        if since >= WORSE:
            return


def _refined(sizes: MachineSizes, coarse: Sequence[int], place: int) -> int:
    """A place between the coarse neighbours of the best at which the objective is better still."""
    objective = sizes.request.objective
    below = max((near for near in coarse if near < place), default=place)
    above = min((near for near in coarse if near > place), default=place)
    for _ in range(HALVINGS):
        for middle in ((below + place) // 2, (place + above) // 2):
            if middle in (below, place, above):
                continue
            if sizes.keeps(middle) and _value(sizes, middle, objective) < _value(sizes, place, objective):
                below, place, above = (place, middle, above) if middle > place else (below, middle, place)
            else:
                below, above = (below, middle) if middle > place else (middle, above)
    return place


def _without_idle(machine: System, size: MachineSize) -> TrainingAnswer:
    """The answer on only the domains that its layout fills, if it is as fast or still keeps every limit."""
    layout, part = size.answer.layouts[0].layout, size.request.system
    domain = int(part.scale_up_domain)
    filled = -(-int(replica_chips(layout.tp, layout.cp, layout.dp, layout.pp)) // domain) * domain
    if filled >= int(part.chips):
        return size.answer
    smaller = replace(size.request, system=of_count(machine, filled))
    answer = best(smaller)
    run = totals(smaller, answer.layouts[0])[1]
    is_as_good = keeps(smaller, run) if keeps(size.request, size.run) else float(run.run) <= float(size.run.run) * (1 + SAME)
    return answer if answer.layouts[0].fits and is_as_good else size.answer


def enough(request: TrainingRequest) -> MachineSize | None:
    """The fewest chips of this kind that would keep the limits that a machine of a stated count misses; None where none do."""
    open_count = replace(request, system=replace(request.system, fixed_count=False, shape=()), objective="chips")
    if request.system.shape:
        return None
    sizes = MachineSizes(open_count)
    place, reason = _place(sizes)
    return None if place is None or reason else sizes.at(place)
