"""`plan`: the best layout, batch and formats of a model on a machine under latency limits, the frontier, and what would help.

Exhaustive: every legal layout whose replica stays within one scale-up domain, every number of sequences per rank. Arithmetic is in laws/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headway.core import units
from headway.core.catalog import fold
from headway.core.schema import defaults
from headway.core.table import Table
from headway.core.trace import record
from headway.core.units import show
from headway.hardware.system import System
from headway.laws.serving.request import user_tok_per_s
from headway.models.model import Model
from headway.performance.assumptions import Assumptions
from headway.performance.workload import SLO, Load
from headway.serving.plan import problem as plan_problem
from headway.serving.plan.candidates import objective_value, sized
from headway.serving.plan.choice import Choice, PlanRow, estimates_of, pick, table
from headway.serving.plan.disaggregate import PoolPair, picked
from headway.serving.plan.group import PlanGroup, first_of_each, searched
from headway.serving.plan.problem import LIMIT_NAMES, LIMITS, Goal, limits, objective_named
from headway.serving.plan.search import BestLoads, batch_of, curve, exact, least_sequences, most_within
from headway.serving.plan.sensitivity import Lever, cause, elasticities, gain, gain_of_way, levers, parse, placed

FREE_NOTE = "the number of nodes is free: replicas fill whole nodes, a scale-up domain of the chip's usual size each"
BETTER = {"cost": "cheaper per request", "throughput": "more tokens/s per chip", "latency": "faster for a user", "chips": "fewer chips"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutPlan:
    """The answer of `plan`: a table with the best row first, the best choice, and the data for sentences and figures."""

    table: Table
    best: Choice
    answer: dict[str, Any]  # best row, objective with its value, and the limits
    infeasible: str  # the first limit that fails and by how much; "" if all are met
    fails: str  # kind of failure: memory, time, rate or pools; "" if none
    objective: str
    slo: SLO
    current: Choice | None = None  # the user's own layout
    levers: tuple[Lever, ...] = ()  # what would help the best choice, the most first
    groups: tuple[PlanGroup, ...] = field(default=(), repr=False)  # what was searched, the best first
    lines: tuple[PlanRow, ...] = field(default=(), repr=False)  # the rows of the table

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the search: candidates searched and dropped, and assumptions."""
        return self.table.notes

    def rows(self) -> list[dict[str, Any]]:
        """Every row as plain Python."""
        return self.table.rows()

    def explain(self, key: str, row: int = 0) -> Any:
        """The tree of laws behind one number of a row, by default the best row."""
        return self.table.explain(key, row)


def plan(
    models: Model | str | Sequence[Model | str],
    systems: System | str | Sequence[System | str],
    load: Load,
    slo: SLO | None = None,
    *,
    ttft: Any = None, tpot: Any = None, e2e: Any = None, tpot_decode: Any = None,
    weights: str | Sequence[str] = ("",), kv: str | Sequence[str] = (), compute: str | Sequence[str] = ("",),
    ways: Mapping[str, Any] | None = None,
    batch: Any = None, users: Any = None,
    assumptions: Assumptions | Sequence[Assumptions] | None = None,
    objective: str = "cost", disaggregate: str | bool = "auto",
    current: Mapping[str, Any] | str | None = None,
    elasticities: bool = True, frontier: bool = True, plainest: bool = True, step_factor: float = 1.0,
    launch: str = "", chips_per_host: Any = None, spare: int = 0,
) -> LayoutPlan:  # fmt: skip
    """The best layout, batch and formats of each model on each machine, the best of all first.

    `load` has one prompt, one output and optionally the rate to carry: on a bare chip by the number of chips that it needs, else by the
    machine's chips. `slo`, or `ttft`, `tpot`, `e2e` and `tpot_decode` ("2s", or seconds), are the limits on means. Of equals the faster is
    taken, then fewer chips; of a list the best of its members. `disaggregate`: pools apart for prefill and decode, "auto", "only" or
    "never". `ways` pins tp, ep, dp, pp, cp, replicas (a value or a list each), `batch` the batches; omitted formats default as in
    `Precision`, KV to bf16 and fp8 if the chip has fp8. `current`, "tp=8 batch=64", adds a row for the user's layout. `users` are over all
    replicas; `plainest`: of layouts within 3 % of the best objective, the plainest; `step_factor` makes steps longer than expected.
    `elasticities` and `frontier` leave these rows out if False. Layouts that the engine of `launch`, else of the assumptions, cannot
    express are left out, unless pinned; `spare` nodes may be lost. Of several `assumptions`, such as numbers of drafts, the best is taken.
    A candidate that misses a limit is a row with fits False and a reason; invalid input raises a HeadwayError.
    """
    settings = [assumptions or defaults(Assumptions)] if assumptions is None or isinstance(assumptions, Assumptions) else [*assumptions]
    pinned = frozenset(name for name, value in (ways or {}).items() if value is not None)
    goal = Goal(
        objective=objective_named(objective), rate=plan_problem.rate(load.rate), batches=plan_problem.batches(batch), pinned=pinned,
        lists=frozenset(name for name in pinned if len(plan_problem.pinned_values((ways or {})[name])) > 1),
        slo=plan_problem.slo_of(slo or SLO(), {"ttft": ttft, "tpot": tpot, "e2e": e2e, "tpot_decode": tpot_decode}),
        disaggregate=plan_problem.way_of_pools(disaggregate, pinned), users=plan_problem.users(users), plainest=plainest,
        step_factor=step_factor, engine=launch or settings[0].engine, host=chips_per_host, spare=spare,
    )  # fmt: skip
    names = {name: plan_problem.formats(value, name) for name, value in (("weights", weights), ("kv", kv), ("compute", compute))}
    plan_problem.check_single_token(goal, load)
    groups, drop_notes = searched(plan_problem.pairs(models, systems), load, names, ways or {}, settings, goal)
    mine = parse(current) if isinstance(current, str) else current
    user_pick = placed(groups[0].case, mine) if mine else None
    return _answered(sorted(groups, key=PlanGroup.rank), user_pick, (elasticities, frontier), drop_notes, limits(goal.slo))


# -- results --------------------------------------------------------------------------------------------------------------------


def joined(
    plans: Sequence[tuple[int, LayoutPlan]], most: Mapping[str, float], more: Sequence[str] = (), rungs: Sequence[Choice] = (),
    beside: bool = True,
) -> LayoutPlan:  # fmt: skip
    """One answer of several plans, each beside the place of its model and machine, the best first.

    `most`: limits of the user on means, s; `more`: notes; `rungs`: the best choice in other numbers of nodes; frontier and elasticities
    stand beside if `beside`.
    """
    groups = [replace(group, place=place) for place, part in plans for group in part.groups]
    user_pick = next((part.current for _, part in sorted(plans, key=lambda part: part[0]) if part.current is not None), None)
    with_frontier = groups[0].goal.users is None  # its other numbers of users are other loads
    return _answered(groups, user_pick, (beside, beside and with_frontier), list(more), most, rungs)


def _table(lines: list[PlanRow], notes: Sequence[str], most: Mapping[str, float], goal: Goal) -> tuple[Table, list[PlanRow]]:
    """The table of the rows, and the rows, without frontier rows that would be cheaper than the best for no reason that they show."""
    all_rows = table(lines, notes)
    rows = all_rows.rows()
    if not rows[0]["fits"]:
        return all_rows, lines
    reason_by_place = frontier_reasons(rows, most, goal.objective)
    left_out = [place for place, why in reason_by_place.items() if why is None]
    for place, why in reason_by_place.items():
        lines[place] = replace(lines[place], extra=lines[place].extra | {"why": why})
    kept_lines = [line for place, line in enumerate(lines) if place not in left_out]
    if not reason_by_place:
        return all_rows, lines
    return table(kept_lines, (*notes, *left_out_note(rows, left_out, goal.is_loaded))), kept_lines


def _answered(
    groups: Sequence[PlanGroup], user_pick: Choice | None, sections: tuple[bool, bool], more: list[str], most: Mapping[str, float],
    rungs: Sequence[Choice] = (),
) -> LayoutPlan:  # fmt: skip
    helping, with_frontier = sections
    lead, goal = groups[0], groups[0].goal
    lines = [line for group in first_of_each(groups) for line in (group.row, *_other_way(group, groups))]
    lines += [PlanRow(kind="ladder", pick=choice) for choice in rungs]
    front, count = _frontier(groups) if with_frontier else ([], 0)
    lines += [PlanRow(kind="frontier", pick=choice) for choice in front if not (goal.is_loaded and _is_among(choice, lines))]
    slopes = elasticities(lead) if helping else []
    lines += slopes
    if user_pick is not None:
        lines.append(_own_line(lead, user_pick))
        more.append(_own_note(lines[-1], goal))
    notes = _notes(groups, count) + tuple(more)
    plan_table, plan_lines = _table(lines, notes, most, goal)
    answer: dict[str, Any] = {"row": plan_table.row(0), "objective": goal.objective, "slo": goal.slo}
    answer |= {"value": lead.best.value} if lead.best else {}
    return LayoutPlan(
        table=plan_table, best=lead.row.pick, answer=answer, infeasible=lead.why, fails=lead.fails, objective=goal.objective,
        slo=goal.slo, current=user_pick, groups=tuple(groups), levers=tuple(levers(lead, slopes)),
        lines=tuple(plan_lines),
    )  # fmt: skip


def _other_way(best: PlanGroup, groups: Sequence[PlanGroup]) -> list[PlanRow]:
    """The row of the way that is not the best of a place: with one pool, or with prefill apart; none where only one was searched."""
    second = next((group for group in groups if group.place == best.place and group.goal.apart != best.goal.apart), None)
    if second is None or best.best is None or (second.goal.apart and second.best is None):
        return []
    row = replace(second.row, kind="apart" if second.goal.apart else "together")
    return [row if second.best is None else _compared(row, best.best, best.goal, gain_of_way)]


def _frontier(groups: Sequence[PlanGroup]) -> tuple[list[Choice], int]:
    """The Pareto frontier of the first group's model on every machine with a comparable cost, fastest first, and how many were compared.

    Of one pool and of two, as far as they were searched. At a rate each layout stands there with so many replicas once, whatever users it
    could take.
    """
    lead, goal = groups[0].case, groups[0].goal
    same = [
        group
        for group in groups
        if group.case.model is lead.model and (group is groups[0] or (lead.price is not None and group.case.price is not None))
    ]
    one_pool = [group for group in same if not group.goal.apart]
    members = [best for group in one_pool for best in group.searches]
    goals = [replace(group.goal, objective="cost") for group in one_pool for _ in group.searches]
    pool_pairs = [(pair, replace(group.goal, objective="cost")) for group in same if group.goal.apart for pair in group.front]
    points = _with_pairs(candidates(members, goals), [pair for pair, _ in pool_pairs])
    count = len(points.speed)
    if not count:
        return [], count
    choices: dict[tuple[int, ...], tuple[float, float, Choice]] = {}  # speed and cost beside each
    front = frontier(points) if goal.rate is None else frontier(points, FEW_POINTS, RATE_REACH)
    for *place, rate, speed, cost in zip(front.search, front.row, front.batch, front.rate, front.speed, front.cost, strict=True):
        index, row, users = map(int, place)
        if index == PAIRS:
            choice = picked(*pool_pairs[row])
            choices[index, row, 0, 0] = (1 / choice.order[0], choice.value, choice)  # of whole users, which the search has not
            continue
        w, member_goal = members[index].fitting, goals[index]
        choice = pick(w, row, users, member_goal, sized(w, np.full((w.count, 1), 1 / float(rate)), member_goal))
        size = users if goal.rate is None else int(choice.case.layout.replicas)
        choices.setdefault((index, row, size, int(choice.case.system.chips)), (float(speed), float(cost), choice))
    front_choices: list[tuple[float, float, Choice]] = []
    for speed, cost, choice in sorted(choices.values(), key=lambda entry: (-entry[0], entry[1])):
        if not front_choices or cost < front_choices[-1][1]:
            front_choices.append((speed, cost, choice))
    return [choice for *_, choice in front_choices], count


def _with_pairs(points: Points, pool_pairs: Sequence[PoolPair]) -> Points:
    """The candidates of one pool and the pairs of pools, a pair's place in `row`."""
    count, cost = len(pool_pairs), np.array([pair.key[0] for pair in pool_pairs])
    speed = user_tok_per_s(np.array([pair.tpot for pair in pool_pairs]))
    more = Points(search=np.full(count, PAIRS), row=np.arange(count), batch=np.ones(count), rate=np.ones(count), speed=speed, cost=cost)
    return Points(**{key: np.concatenate([getattr(points, key), getattr(more, key)]) for key in Points.__slots__})


def _is_among(choice: Choice, lines: Sequence[PlanRow]) -> bool:
    """Whether rows at a load have the choice already: the same layout and formats on as many chips."""

    def name(pick: Choice) -> tuple[Any, ...]:
        case = pick.case
        return case.model.name, case.system.name, case.layout, case.formats.labels, pick.prefill

    return any(name(line.pick) == name(choice) for line in lines)


def _own_line(lead: PlanGroup, user_pick: Choice) -> PlanRow:
    best, goal, line = lead.best, lead.goal, PlanRow(kind="current", pick=user_pick)
    if best is None or (goal.objective == "cost" and (user_pick.case.price is None) != (lead.case.price is None)):
        return line
    return _compared(line, best, goal)


def _compared(line: PlanRow, best: Choice, goal: Goal, ratio: Callable[[Choice, Choice, Goal], Any] = gain) -> PlanRow:
    """A row with how many times better the best is, and the part of a request's chip time that makes it so."""

    def tree() -> Any:
        with record():
            return ratio(best, line.pick, goal)

    reason = {} if ratio is gain_of_way and goal.is_loaded else {"cause": cause(best, line.pick)}  # at a load what is paid is compared
    return replace(line, extra={"gain": float(tree()), **reason}, trees={"gain": tree})


def _own_note(line: PlanRow, goal: Goal) -> str:
    if "gain" not in line.extra:
        return "the current layout is not compared: nothing to compare it with, or no price"
    times = BETTER[goal.objective]
    return f"the best is {line.extra['gain']:.3g} times {times} than the current layout; most of it from {line.extra['cause']}"


def _notes(groups: Sequence[PlanGroup], count: int) -> tuple[str, ...]:
    """Notes on the search: counts of candidates searched and dropped, and assumptions."""
    goal, apart = groups[0].goal, [group for group in groups if group.goal.apart]
    once = [group for group in groups if not group.goal.apart] or groups  # two pools are of layouts that were searched as one
    layouts = sum(problem.space.count for group in once for problem in group.problems)
    inside = sum(best.in_memory for group in once for best in group.searches)
    timely = sum(best.in_time for group in once for best in group.searches)
    met = sum(best.met for group in once for best in group.searches)
    short = f", {timely - met} that do not carry the rate" if goal.rate is not None else ""
    slower = " or ".join(LIMIT_NAMES[name] for name in limits(goal.slo)) or "latency"
    how = "the batches asked for" if goal.batches else "a grid and the best load on a curve; the best layouts to the exact user"
    notes = dict.fromkeys(
        (
            f"searched {layouts} layouts (formats counted apart), {count} candidates with a batch ({how})",
            f"dropped {layouts - inside} layouts that do not fit in memory, {inside - timely} over the {slower} limit{short}",
        )
    )
    if goal.objective == "cost" and any(group.case.price is None for group in groups):
        notes |= {"without a price the objective is chip-seconds per request; machines without a price come last": None}
    if apart:
        notes |= {f"searched {sum(group.sized for group in apart)} pairs of a prefill and a decode replica; TPOT is free of prompts": None}
        notes |= dict.fromkeys(note for group in first_of_each(apart) for note in _pool_note(group))
    if any(group.goal.free for group in groups):
        notes |= dict.fromkeys(_free_note(group.problems[0].case.system) for group in groups if group.goal.free)
    for group in groups:  # a note that not all machines share names its model and machine
        name = f"{group.case.model.name} on {group.case.system.name}: "
        shared = [note if all(note in other_group.case.notes for other_group in groups) else name + note for note in group.case.notes]
        notes |= dict.fromkeys((*group.space.notes, *shared))
    return tuple(notes)


def _free_note(system: System) -> str:
    """What is paid for where a load leaves the number of chips free: whole nodes, or cards in the counts that clouds rent."""
    if not system.rented:
        return FREE_NOTE
    counts = ", ".join(f"{int(count)}" for count in system.rented)
    singly = f"clouds rent {fold(system.chip.name)} by {counts} or whole hosts (data/hosts.toml), so that cards are paid for, not nodes"
    return f"the number of cards is free: {singly}; --on {int(system.scale_up_domain)}x{fold(system.chip.name)} plans a whole host"


def _pool_note(group: PlanGroup) -> list[str]:
    """A note that compares two pools with one pool."""
    if not group.best:
        return [f"{group.case.system.name}: no two pools keep such limits, one does"] if group.aggregated else []
    if not group.aggregated:
        return [f"{group.case.system.name}: one pool keeps no such limits, two do"]
    goal, one_pool = group.goal, group.aggregated
    times = float(gain_of_way(group.best, one_pool, goal))
    one_tpot = show(float(estimates_of(one_pool, one_pool.case)["tpot_s"]), "s")
    name = group.case.system.name
    if f"{times:.3g}" == "1":
        return [f"searched both ways on {name}: one pool and two are within a per cent of each other"]
    words = ("two pools are", times, "than one") if times >= 1 else ("one pool is", 1 / times, "than two")
    least = f"one pool: {one_pool.case.layout}, TPOT {one_tpot}"
    return [f"searched both ways on {name}: {words[0]} {words[1]:.3g} times {BETTER[goal.objective]} {words[2]} ({least})"]


PAIRS = -1  # in place of a search, of points that are pairs of pools
FINEST, COARSEST = 150, 20  # batches tried per layout
CELLS = 100_000  # target for all candidates, so that a large space stays fast
DEFAULT_POINTS, FEW_POINTS = 12, 6  # without a rate, and where each point is a load of its own
RATE_REACH = 4.0  # where a rate is to be carried, nobody takes more machines than so many times the cheapest for speed alone
BINS = 1024  # bins of speed, to drop most candidates before sorting


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Candidates as arrays: index of the search, row of its layout, load, speed (token/s per user) and cost."""

    search: Any
    row: Any
    batch: Any  # users per replica
    rate: Any  # requests per second of a replica
    speed: Any
    cost: Any

    def take(self, keep: np.ndarray) -> Points:
        """The candidates at the indices `keep`."""
        return Points(**{key: getattr(self, key)[keep] for key in self.__slots__})


def candidates(searches: Sequence[BestLoads], goals: Sequence[Goal]) -> Points:
    """Every layout within memory and the TTFT limit, at a geometric range of batches (or the pinned batches) and at its best batch."""
    rows = sum(best.fitting.count for best in searches)
    size = int(np.clip(CELLS // max(rows, 1), COARSEST, FINEST))
    parts = []
    for index, (best, goal) in enumerate(zip(searches, goals, strict=True)):
        if best.fitting.count:
            parts.append(_grid(index, best, size, goal))
        if best.candidates.count:
            cost = objective_value(goal, best.candidates.case, best.size, best.point.tpot, 1 / best.point.rate)
            cost, speed = np.broadcast_to(cost, best.batch.shape), user_tok_per_s(best.point.tpot)
            parts.append(_points(index, best.fitting_rows, best.batch, best.point.rate, speed, cost))
    if not parts:
        nothing = np.empty(0)
        return Points(**dict.fromkeys(Points.__slots__, nothing))
    return Points(**{key: np.concatenate([getattr(part, key) for part in parts]) for key in Points.__slots__})


def _grid(index: int, best: BestLoads, size: int, goal: Goal) -> Points:
    w = best.fitting
    if goal.batches:
        users = np.broadcast_to(np.array([goal.batches], dtype=float), (w.count, len(goal.batches)))
        point, new = exact(w, users, replace(goal, rate=None)), best.room
    else:
        most = most_within(w, best.most, replace(goal, slo=SLO()))  # the last point fills the memory
        ranks = np.floor(most ** (np.arange(size) / (size - 1)) + 1e-9).astype(np.int64)
        new = np.ones(ranks.shape, dtype=bool)
        new[:, 1:] = ranks[:, 1:] > ranks[:, :-1]
        new &= ranks >= least_sequences(w)
        point = curve(w, batch_of(w, ranks).astype(float), goal)
        users = np.maximum(np.floor(point.in_service), 1)
        new = new & (users <= batch_of(w, best.most))
    counts = sized(w, 1 / point.rate, goal)
    if goal.rate is not None and not goal.sizing:  # whether the replicas carry the rate
        new = new & (counts.replicas * point.rate >= goal.rate)
    if goal.slo.ttft is not None:
        new = new & (point.ttft <= goal.slo.ttft)
    cost = objective_value(goal, w.case, counts, point.tpot, 1 / point.rate)
    row = np.broadcast_to(np.arange(w.count).reshape(-1, 1), users.shape)
    values = (np.broadcast_to(value, users.shape)[new] for value in (point.rate, user_tok_per_s(point.tpot), cost))
    return _points(index, row[new], users[new].astype(np.int64), *values)


def _points(index: int, row: np.ndarray, batch: np.ndarray, rate: np.ndarray, speed: np.ndarray, cost: np.ndarray) -> Points:
    values = (np.full(row.size, index), row, batch, rate, speed, cost)
    return Points(**{key: np.ravel(value) for key, value in zip(Points.__slots__, values, strict=True)})


def frontier(points: Points, most: int = DEFAULT_POINTS, cost_ratio: float = np.inf) -> Points:
    """The Pareto frontier, fastest first: at most `most` points, evenly spread in log speed and with both ends.

    Points that cost more than `cost_ratio` times the cheapest are left out.
    """
    points = points.take(np.flatnonzero(points.cost <= cost_ratio * points.cost.min(initial=np.inf)))
    points = points.take(_in_reach(points))
    order = np.lexsort((points.cost, -points.speed))
    cost = points.cost[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = cost[1:] < np.minimum.accumulate(cost)[:-1] * (1 - 1e-9)
    front = points.take(order[new])
    if len(front.speed) <= most:
        return front
    log = np.log(front.speed)
    targets = np.linspace(log[0], log[-1], most)
    return front.take(np.unique(np.abs(log[:, None] - targets[None, :]).argmin(axis=0)))


def _in_reach(points: Points) -> Any:
    """Indices of candidates cheaper than all clearly faster candidates, a small superset of the frontier."""
    log = np.log(points.speed)
    span = max(float(log.max() - log.min()), 1e-12)
    place = ((log - log.min()) / span * BINS).astype(np.int64)
    least = np.full(BINS + 2, np.inf)
    np.minimum.at(least, place, points.cost)
    faster = np.minimum.accumulate(least[::-1])[::-1]
    return np.flatnonzero(points.cost < faster[place + 1])


CLOSE = 1e-9  # share from which a cost is lower
Row = Mapping[str, Any]


def frontier_reasons(rows: Sequence[Row], limits: Mapping[str, float], objective: str) -> dict[int, str | None]:
    """By place in the table: the limit that a frontier row breaks, or None for a row that is cheaper than the best and breaks none.

    Such a row is less plain than the best, or its limits hold in the mean and not with the confidence. `limits` are s, by name.
    """
    reason_by_place: dict[int, str | None] = {}
    costs = [row_cost(row) for row in rows]
    for place, row in enumerate(rows):
        if row["kind"] != "frontier":
            continue
        why, cost, least = broken(row, limits), costs[place], costs[0]
        if why:
            reason_by_place[place] = why
        elif objective in ("cost", "throughput") and cost is not None and least is not None and cost < least * (1 - CLOSE):
            reason_by_place[place] = None
    return reason_by_place


def broken(row: Row, limits: Mapping[str, float]) -> str:
    """The first limit that the means of a row break, in words."""
    for name, limit in limits.items():
        value = row.get(LIMITS[name])
        if value is not None and value > limit * (1 + CLOSE):
            return f"{LIMIT_NAMES[name]} {units.show(float(value), 's')}, limit {units.show(float(limit), 's')}"
    return ""


def row_cost(row: Row) -> float | None:
    """What is compared: the machine's cost at a given rate, else the cost of a request; chips for dollars without a price."""
    machine = row.get("usd_per_hour") or float(row["chips"])
    if row.get("rate") is not None:
        return float(machine)
    capacity = row.get("capacity_req_per_s")
    return float(machine / capacity) if capacity else None


def left_out_note(rows: Sequence[Row], places: Sequence[int], loaded: bool) -> list[str]:
    """A note on the cheaper rows that are left out."""
    best = row_cost(rows[0])
    shares = [1 - cost / best for place in places if best and (cost := row_cost(rows[place])) is not None]
    if not shares:
        return []
    count = f"left out {len(shares)} frontier row{'s' if len(shares) > 1 else ''} up to {max(shares):.1%} cheaper"
    return [f"{count}: limits hold in the mean, not as surely" if loaded else f"{count} and less plain (--plainest off takes the cheapest)"]
