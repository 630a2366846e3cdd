"""A plan for a load, sized in whole nodes and checked by simulation: the smallest that keeps every limit with a stated confidence.

The search (serving/plan) knows means. It is asked with the model's error in hand (every step longer by the factor that the confidence
wants), the best layout is played with the very traffic, and the limits on means are drawn in by what the simulator shows until the best
layout keeps every limit; then another look or two is taken at fewer nodes: between the last that failed and the first that held, or
beyond the latter where none failed. Last the layout is played in fewer nodes or cards until one fewer does not hold.

Of several machines, models or listed formats each is asked alone, and each with one pool and with prefill apart, so that the best of a
list is the best of its members.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.core.errors import IllegalCombination, IllegalLayout, drop_note
from headway.laws.calibration import run_half
from headway.performance.assumptions import Assumptions
from headway.performance.calibration.factors import PARAMETERS
from headway.performance.calibration.in_force import calibrations
from headway.performance.calibration.posterior import NOISE
from headway.performance.intervals import spread
from headway.performance.layout import Layout
from headway.performance.nearest import subject
from headway.performance.workload import SLO, Load
from headway.serving.plan.choice import Choice, PlanRow
from headway.serving.plan.group import first_of_each, may_part
from headway.serving.plan.plan import LayoutPlan, joined
from headway.serving.serve import deployment
from headway.simulation.check.check import DEFAULT, CheckedCandidate, check
from headway.simulation.check.fewer_replicas import enough_replicas, fewest_replicas, with_best
from headway.simulation.check.ladder import NodeCounts, Rung, fewest, ladder, node_counts, pool_ladder
from headway.simulation.check.limits import LatencyLimit
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.check.plays import Candidate

if TYPE_CHECKING:
    from headway.hardware.system import System
    from headway.models.model import Model

OF_STEP = np.array([float(name == "step") for name in PARAMETERS])  # slopes of a time that is nothing but steps
SHORT = Load(context=1)  # no load is asked about
ROUNDS = 7  # searches until a layout keeps every limit
LOOKS = 2  # and between the last that failed and the first that held
LET_OUT = 1.25  # factor on bounds whose layout held at the first search, to see whether fewer nodes do
DRAWN_IN = 0.93  # factor on a bound that a layout still failed under
OVERLOADED = 0.8
HEADROOM = 1.05  # factor on the steps of a search whose layout was overloaded, where there is no bound to draw in
END_OF_INTERVAL = NormalDist().inv_cdf(0.95)  # of a 90 % interval, in standard deviations
BESIDE = 0.03  # width of the bracket around the chance of a row beside the answer
SEARCHED = ("ttft", "tpot", "e2e")  # latencies whose mean the search knows
Search = Callable[..., LayoutPlan]  # (limits on means, step_factor; way of pools) -> a plan without frontier and elasticities


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadGoal:
    """What a plan must carry: traffic, limits and the confidence with which they hold; `tpot_decode` limits decode steps alone."""

    offered: OfferedTraffic
    limits: tuple[LatencyLimit, ...] = ()
    confidence: float = DEFAULT
    tpot_decode: Any = None
    width: float = 1.0  # half of the 90 % interval of TPOT, as a factor: width_of
    disaggregate: str = "never"  # pools apart: never, only, or auto, the better of both


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPlan:
    """A plan with its best layout as simulated; `checked` is None without a check or where no layout carries the load."""

    plan: LayoutPlan
    goal: LoadGoal
    checked: CheckedCandidate | None = None
    tried: int = 0  # layouts simulated
    place: int = 0  # of its model and machine among those of the question
    rungs: tuple[Rung, ...] = ()  # its layout in fewer and in more nodes, itself among them
    rows: tuple[CheckedCandidate | None, ...] = ()  # of each row of the plan's table; None where it is no layout of its own

    @property
    def holds(self) -> bool:
        """Whether the best layout keeps every limit with the confidence."""
        return not self.plan.fails and (self.checked is None or self.checked.holds(self.goal.confidence))

    def rank(self) -> tuple[Any, ...]:
        """Sort key: those that hold by the objective, then the surest of those that carry the load, then the nearest miss."""
        sure = self.checked.confidence if self.checked is not None and not self.holds else None
        return not self.holds, bool(self.plan.fails), -sure.probability if sure else 0.0, *self.plan.groups[0].rank()


@dataclass(slots=True)
class _Bounds:
    """Most that each mean may be in the search, s, and what the simulator has shown of it."""

    values: dict[str, float]
    ratios: dict[str, float] = field(default_factory=dict)

    def slo(self, goal: LoadGoal) -> SLO:
        return SLO(tpot_decode=goal.tpot_decode, **self.values)

    def between(self, end: _Bounds) -> _Bounds:
        """The geometric middle of two sets of bounds."""
        keys = self.values.keys() | end.values.keys()
        ends = {key: (self.values.get(key, end.values.get(key, 0.0)), end.values.get(key, self.values.get(key, 0.0))) for key in keys}
        return _Bounds(values={key: (first * last) ** 0.5 for key, (first, last) in ends.items()}, ratios=end.ratios)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """A plan under bounds, with steps longer by a factor, and its best layout as simulated."""

    plan: LayoutPlan
    checked: CheckedCandidate
    bounds: _Bounds
    factor: float

    @property
    def chips(self) -> int:
        """Chips of the best layout's machine."""
        return _chips(self.plan)

    @property
    def machine(self) -> str:
        """Name of the best layout's machine, with its number of chips."""
        return str(self.plan.best.case.system.name)


def _chips(plan: LayoutPlan) -> int:
    return int(plan.best.case.system.chips)


def best_at_load(questions: Sequence[tuple[int, Search, LoadGoal]], beside: bool = True) -> list[CheckedPlan]:
    """The best answer of each model and machine, whose place stands first, the best of all first: it has the frontier of all.

    Each question is answered alone; the first error is raised where none can be. The ladder and the rows beside the best ones are played
    if `beside`.
    """
    answers: list[CheckedPlan] = []
    illegal: list[IllegalCombination | IllegalLayout] = []
    for place, search, goal in questions:
        try:
            answers += [replace(answer, place=place) for answer in _each_way(search, goal)]
        except (IllegalCombination, IllegalLayout) as error:
            illegal.append(error)
    if not answers:
        raise illegal[0]
    answers.sort(key=CheckedPlan.rank)
    more = drop_note(illegal, len(questions), "combinations of models, machines, formats and degrees")
    first, *runners_up = first_of_each(answers)
    goal, plays = first.goal, _Plays(first.goal)
    plays.known |= {_key(answer.plan.best): answer.checked for answer in answers if answer.checked is not None}
    rungs = _rungs(first, plays) if beside else ()
    most = _first_bounds(goal.limits).values | ({} if goal.tpot_decode is None else {"tpot_decode": goal.tpot_decode})
    around = [rung.choice for rung in rungs if rung.choice is not first.plan.best]
    plan = joined([(answer.place, answer.plan) for answer in answers], most, more, around, beside)
    if not beside:
        return [replace(first, plan=plan), *runners_up]
    bests = iter([first, *runners_up])
    rows = tuple(next(bests).checked if line.kind == "best" else plays.of_row(line) for line in plan.lines)
    return [replace(first, plan=plan, tried=sum(answer.tried for answer in answers), rungs=rungs, rows=rows), *runners_up]


@dataclass(slots=True)
class _Plays:
    """Choices beside an answer as simulated, each once."""

    goal: LoadGoal
    known: dict[Any, CheckedCandidate] = field(default_factory=dict)

    def __call__(self, choice: Choice) -> CheckedCandidate:
        key = _key(choice)
        if key not in self.known:
            goal = self.goal
            self.known[key] = check(candidate_of(choice), goal.offered, goal.limits, needed=goal.confidence, close=BESIDE)
        return self.known[key]

    def of_row(self, line: PlanRow) -> CheckedCandidate | None:
        """What the simulator says of a row beside the best ones; nothing of a changed input, and without limits."""
        is_layout = line.kind not in ("best", "elasticity") and line.extra.get("fits") is not False
        return self(line.pick) if is_layout and self.goal.limits else None


def _rungs(answer: CheckedPlan, plays: _Plays) -> tuple[Rung, ...]:
    """The ladder of counts around an answer that holds."""
    best, group = answer.plan.best, answer.plan.groups[0]
    if answer.checked is None or not answer.holds or answer.plan.fails:
        return ()
    if best.prefill is not None:
        return pool_ladder(answer.plan, answer.checked, plays)
    of = node_counts(best, group)
    return () if of is None else ladder(of, answer.checked, plays)


def _each_way(search: Search, goal: LoadGoal) -> list[CheckedPlan]:
    """The answers of one question with one pool, with two, or both; two are not played where their search needs as much money as one."""
    together = [plan_at_load(search, goal)] if goal.disaggregate != "only" else []
    apart = functools.cache(functools.partial(search, way="only"))  # its first search is looked at twice
    if goal.disaggregate == "never" or any(not _may_be_cheaper(apart, goal, answer) for answer in together):
        return together
    with_pools = plan_at_load(apart, goal)
    return together if together and with_pools.plan.fails else [*together, with_pools]


def _may_be_cheaper(apart: Search, goal: LoadGoal, answer: CheckedPlan) -> bool:
    """Whether two pools may be better than an answer with one: the machine can, and the first search promises it."""
    group = answer.plan.groups[0]
    if not may_part(group.case, group.goal):
        return False
    first = apart(first_limits(goal), step_factor(goal))
    return not first.fails and (not answer.holds or first.groups[0].rank() < group.rank())


def plan_at_load(search: Search, goal: LoadGoal, progress: Callable[[int, int], None] | None = None) -> CheckedPlan:
    """The best plan of one question whose layout keeps every limit of the goal in the simulator; the nearest where none does."""
    bounds, failed, best = _first_bounds(goal.limits), None, None
    factor = step_factor(goal)
    plays: dict[Any, CheckedCandidate] = {}
    for number in range(ROUNDS):
        plan = search(bounds.slo(goal), factor)
        if plan.fails:
            break
        checked = _checked(plan, goal, plays)
        if progress is not None:
            progress(number + 1, ROUNDS + LOOKS)
        look = _Look(plan=plan, checked=checked, bounds=bounds, factor=factor)
        if checked.holds(goal.confidence):
            best = look
            break
        failed = look
        bounds = _drawn_in(bounds, plan, checked, goal.limits)
        if not checked.stable and (not bounds.values or plan.best.prefill is not None):  # pools are sized by times of requests
            factor *= HEADROOM
    if best is None and failed is not None:
        enough = enough_replicas(failed.plan, lambda larger: _checked(larger, goal, plays), goal.confidence)
        best = None if enough is None else replace(failed, plan=enough, checked=_checked(enough, goal, plays))
    if best is None:
        return _nearest(search, goal, failed, len(plays))
    if best.plan.best.prefill is None:
        plan = _fewest(_smaller(search, goal, best, failed, plays).plan, goal, plays)
    else:
        plan = fewest_replicas(best.plan, lambda smaller: _checked(smaller, goal, plays).holds(goal.confidence))
    sure = check(candidate_of(plan.best), goal.offered, goal.limits, needed=goal.confidence)
    return CheckedPlan(plan=plan, goal=goal, checked=sure, tried=len(plays))


def step_factor(goal: LoadGoal) -> float:
    """Factor on step times below which the model's error leaves them with the confidence of the goal."""
    return max(goal.width ** (NormalDist().inv_cdf(goal.confidence) / END_OF_INTERVAL), 1.0) if goal.limits else 1.0


def width_of(pairs: Sequence[tuple[Any, Any]], assumptions: Assumptions) -> float:
    """Half of the 90 % interval of TPOT as a factor, the widest of these models and machines, in a layout that nobody has measured."""
    return max(_width(model, system, assumptions) for model, system in pairs)


def _width(model: Model, system: System, assumptions: Assumptions) -> float:
    half = float(spread(subject(model, system.chip, assumptions.engine), assumptions, "tpot", system.chip))
    if calibrations() is None or assumptions.spread is not None:
        return half
    runs = deployment(model, system, Layout(), SHORT, assumptions=assumptions).own_runs()
    return half if runs is None else float(run_half(half, runs.posteriors[0].scatter(OF_STEP, NOISE["tpot"])))


def first_limits(goal: LoadGoal) -> SLO:
    """The limits of a goal as limits on means, with which its search begins."""
    return _first_bounds(goal.limits).slo(goal)


def _first_bounds(limits: Sequence[LatencyLimit]) -> _Bounds:
    """The limits as bounds on means: a mean is hardly above a percentile of the same latency."""
    values: dict[str, float] = {}
    for limit in limits:
        name = "tpot" if limit.quantity == "itl" and limit.percent in (None, 50.0) else limit.quantity
        if name in SEARCHED:
            values[name] = min(values.get(name, limit.most_s), limit.most_s)
    return _Bounds(values=values)


def candidate_of(choice: Choice) -> Candidate:
    """A choice of a plan as it is played."""
    return Candidate(query=choice.case, layout=choice.case.layout, prefill=choice.prefill)


def _key(choice: Choice) -> tuple[Any, ...]:
    case = choice.case
    pools = None if choice.prefill is None else (str(choice.prefill), int(choice.prefill.replicas))
    return case.model.name, case.system.name, str(case.layout), int(case.layout.replicas), case.formats.labels, case.assumptions, pools


def _checked(plan: LayoutPlan, goal: LoadGoal, plays: dict[Any, CheckedCandidate]) -> CheckedCandidate:
    """The best layout of a plan, simulated once."""
    return _briefly(plan.best, goal, plays)


def _briefly(choice: Choice, goal: LoadGoal, plays: dict[Any, CheckedCandidate]) -> CheckedCandidate:
    """A choice simulated once, until it is known whether it holds with the confidence."""
    key = _key(choice)
    if key not in plays:
        plays[key] = check(candidate_of(choice), goal.offered, goal.limits, needed=goal.confidence, exact=False)
    return plays[key]


def _fewest(plan: LayoutPlan, goal: LoadGoal, plays: dict[Any, CheckedCandidate]) -> LayoutPlan:
    """The plan with its best layout in the fewest nodes or cards that hold; as it is where the fastest is asked for."""
    group = plan.groups[0]
    of: NodeCounts | None = None if group.goal.objective == "latency" else node_counts(plan.best, group)
    if of is None:
        return plan
    choice = fewest(of, lambda smaller: _briefly(smaller, goal, plays).holds(goal.confidence))
    return plan if choice is plan.best else with_best(plan, choice)


def _drawn_in(bounds: _Bounds, plan: LayoutPlan, checked: CheckedCandidate, limits: Sequence[LatencyLimit]) -> _Bounds:
    """Bounds under which the layout would not have been chosen: limits over the ratio of what was simulated to the mean of the search."""
    row, values, ratios = plan.table.row(0), dict(bounds.values), dict(bounds.ratios)
    if not checked.stable:
        return _Bounds(values={key: value * OVERLOADED for key, value in values.items()}, ratios=ratios)
    for status in checked.statuses:
        name, mean = status.limit.quantity, row.get(f"{status.limit.quantity}_s")
        if name not in SEARCHED:  # time between tokens: prefill of others sets it, as it does TPOT
            if not status.is_met:
                values["tpot"] = min(values.get("tpot", row["tpot_s"]), row["tpot_s"]) * DRAWN_IN
            continue
        if status.simulated is None or not mean:
            continue
        ratios[name] = max(ratios.get(name, 1.0), status.simulated.value / mean)
        values[name] = min(values[name], status.limit.most_s / ratios[name])
    if all(values[key] >= bounds.values.get(key, float("inf")) * (1 - 1e-6) for key in values):
        values = {key: value * DRAWN_IN for key, value in values.items()}
    return _Bounds(values=values, ratios=ratios)


def _smaller(search: Search, goal: LoadGoal, best: _Look, failed: _Look | None, plays: dict[Any, CheckedCandidate]) -> _Look:
    """A plan with fewer chips than `best` that holds too: between the bounds that failed and those that held, or beyond the latter."""
    widest = best  # of those that hold; on the same machine the first is kept, whose bounds are the strictest
    for _ in range(LOOKS):
        if failed is not None and best.chips <= failed.chips:
            return best
        bounds = _let_out(widest) if failed is None else failed.bounds.between(widest.bounds)
        if bounds is None:
            return best
        plan = search(bounds.slo(goal), best.factor)
        if plan.fails or (failed is None and _chips(plan) >= best.chips):
            return best
        look = _Look(plan=plan, checked=_checked(plan, goal, plays), bounds=bounds, factor=best.factor)
        if look.checked.holds(goal.confidence):
            widest, best = look, best if look.machine == best.machine else look
        else:
            failed = look
    return best


def _let_out(best: _Look) -> _Bounds | None:
    """Wider bounds on means: as far as the simulator shows less than the search does, and some more; None without any."""
    row, bounds = best.plan.table.row(0), best.bounds
    values = {name: value * LET_OUT for name, value in bounds.values.items()}
    for status in best.checked.statuses:
        name, mean = status.limit.quantity, row.get(f"{status.limit.quantity}_s")
        if name in values and status.simulated is not None and mean:
            values[name] = max(values[name], bounds.values[name] * mean / status.simulated.value)
    return _Bounds(values=values, ratios=bounds.ratios) if values else None


def _nearest(search: Search, goal: LoadGoal, failed: _Look | None, tried: int) -> CheckedPlan:
    """The answer where no layout keeps every limit: the last that was simulated, else the nearest miss of the search."""
    plan = search(first_limits(goal), 1.0)
    if plan.fails:
        return CheckedPlan(plan=plan, goal=goal, tried=tried)
    if failed is None:  # only the model's error keeps it from the limits: the simulator says how surely it holds
        sure = check(candidate_of(plan.best), goal.offered, goal.limits, needed=goal.confidence)
        return CheckedPlan(plan=plan, goal=goal, checked=sure, tried=tried + 1)
    return CheckedPlan(plan=failed.plan, goal=goal, checked=failed.checked, tried=tried)


def facts_of(checked: CheckedCandidate | None) -> Mapping[str, Any]:
    """Simulated statistics of a row by column, and the confidence."""
    if checked is None:
        return {}
    facts: dict[str, Any] = {}
    for status in checked.statuses:
        facts[status.limit.column] = None if status.simulated is None or not checked.stable else status.simulated.value
    sure = checked.confidence
    return facts | {"confidence": None if sure is None else sure.probability, "simulated_requests": checked.requests}
