"""One model on one machine in one of the listed formats: its search, its best choice, its rank beside others, or the nearest miss.

Each value of a list of the user is searched alone, so that the best of a list is the best of its members, whatever their order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from headway.core import units
from headway.core.errors import BadValue, IllegalCombination, drop_note
from headway.core.progress import expect
from headway.core.quantity import default, user_input
from headway.core.units import Number
from headway.hardware.system import System
from headway.laws.serving.request import e2e_s
from headway.models.model import Model
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.estimate import Deployment
from headway.performance.formats import able_computes
from headway.performance.layout import NAMES, Layout, shape
from headway.performance.workload import Load
from headway.serving.plan import problem as plan_problem
from headway.serving.plan.candidates import Candidates, compile_candidates, fits, sized
from headway.serving.plan.choice import Choice, PlanRow, choose, estimates_of, paid_for, pick
from headway.serving.plan.disaggregate import PoolPair, best_of, pairs, picked
from headway.serving.plan.problem import LIMIT_NAMES, Goal, limits, rounded
from headway.serving.plan.search import BestLoads, best_loads, exact
from headway.serving.plan.space import PlanProblem, SearchSpace, expressible, halved, space
from headway.serving.pools import joins_pools
from headway.serving.serve import checked_load, deployment


def nearest(candidates: Sequence[Candidates], goal: Goal) -> tuple[Choice, str, tuple[int, float]]:
    """The nearest miss, its reason (memory before times), and by how much it misses: of memory if the first number is above 0."""
    rows = [(w, *_row(w, goal)) for w in candidates]
    w, row, batch, miss = min(rows, key=lambda entry: entry[3])
    size = sized(w, np.ones((w.count, 1)), replace(goal, rate=None))
    return pick(w, row, batch, replace(goal, rate=None), size), _reason(w, row, batch, goal), miss


def beyond(most: Choice, goal: Goal) -> str:
    """Why a load is not carried, in words, with the machine's largest."""
    estimates = estimates_of(most, most.case)
    pools = [(most.case.layout, ""), *([] if most.prefill is None else [(most.prefill, " for prefill")])]
    words = ", ".join(f"{layout}, {int(layout.replicas)} replicas{what}" for layout, what in pools)
    if goal.rate is None:
        users, most_users = int(goal.users or 0), int(estimates["concurrency"])
        return f"the load is {users} users, {most.case.system.name} serves {most_users} within the limits at most ({words})"
    rate, most_rate = (units.show(float(value), "") for value in (goal.rate, estimates["capacity_req_per_s"]))
    return f"rate is {rate} req/s, {most.case.system.name} carries {most_rate} req/s within the limits at most ({words})"


def _times(w: Candidates, batch: Number, goal: Goal) -> dict[str, Any]:
    """The mean time behind each limit, in seconds, of so many users."""
    point = exact(w, np.asarray(batch, dtype=float), replace(goal, rate=None))
    e2e = e2e_s(point.ttft, point.tpot, w.case.load.output)
    return {"ttft": point.ttft, "tpot": point.tpot, "e2e": e2e, "tpot_decode": point.decode}


def _row(w: Candidates, goal: Goal) -> tuple[int, int, tuple[int, float]]:
    """The layout that misses by least: (row, batch, (stage: 0 times, 1 KV cache, 2 weights; ratio of the miss))."""
    batch = np.full((w.count, 1), min(goal.batches)) if goal.batches else np.ones((w.count, 1), dtype=np.int64)
    room = _full(fits(w, batch), w)
    if room.any():
        miss_ratio = np.zeros(w.count)
        latencies = _times(w, batch, goal)
        for name, limit in limits(goal.slo).items():
            miss_ratio = np.maximum(miss_ratio, _full(latencies[name], w) / limit)
        miss_ratio = np.where(room, miss_ratio, np.inf)
        stage = 0
    else:
        weights = _full(w.compiled.weights_bytes, w)
        usable = _full(w.usable, w)
        inside = weights <= usable
        miss_ratio = weights / np.maximum(usable, 1.0)
        if inside.any():
            miss_ratio = np.where(inside, 1 / np.maximum(_full(w.limit, w), 1e-9), np.inf)
        stage = 1 if inside.any() else 2
    row = int(np.argmin(miss_ratio))
    return row, int(batch[row, 0]), (stage, float(miss_ratio[row]))


def _full(value: Any, w: Candidates) -> Any:
    return np.broadcast_to(value, (w.count, 1))[:, 0]


def _reason(w: Candidates, row: int, batch: int, goal: Goal) -> str:
    point = w.rows(np.array([row]))
    weights, usable, limit = (float(_full(value, point)[0]) for value in (point.compiled.weights_bytes, point.usable, point.limit))
    where = " ".join(f"{name}={int(_full(getattr(point.layout, name), point)[0])}" for name in ("tp", "ep", "dp", "pp"))
    if weights > usable:
        return f"weights need {_gb(weights)} per chip at {where}, {_gb(usable)} are usable"
    if not np.all(point.compiled.host_room(point.case.system.chip)):
        hosted = float(_full(point.compiled.host_bytes, point)[0])
        memory = _gb(float(point.case.system.chip.host_dram))
        return f"the experts of a chip need {_gb(hosted)} of its host's memory at {where}, {memory} are there"
    if not _full(fits(point, batch), point)[0]:
        room = f"{_gb(usable)} usable per chip at {where} hold {_gb(weights)} of weights"
        return f"{room} and the KV cache of {limit:.3g} sequences per rank, fewer than batch {batch} needs"
    misses, latencies = [], _times(point, batch, goal)
    for name, most in limits(goal.slo).items():
        value = float(_full(latencies[name], point)[0])
        if value > most:
            at = f" at batch {batch}" if name != "ttft" else ""
            misses.append(f"{LIMIT_NAMES[name]}{at} is {units.show(value, 's')}, limit {units.show(most, 's')}")
    return "; ".join(misses) + f" (nearest miss: {where})"


def _gb(value: float) -> str:
    return units.show(value, "byte")


SMALL_NODE = 8  # chips of a node beyond which replicas over two are not searched unless one is too small
FP8_NOTE = "KV cache formats searched: bf16 and fp8 (the chip multiplies in fp8; quality is not modelled, kv=bf16 leaves it out)"
ANY_DOMAIN = default(10**9, "scale_up_domain", "", "for the row of a layout that no domain holds")
MOST_ALONE = 64  # combinations of listed degrees, and listed batches, that are each compared alone; of more, all together
ONE_POOL_ENGINES = ("llamacpp",)  # that hand no KV cache from one process to another
MISSES = ("rate", "pools", "time", "memory")  # kinds of failure, the nearest to an answer first


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGroup:
    """One member on one size of its machine: its search problems and results."""

    problems: tuple[PlanProblem, ...]
    searched_problems: tuple[PlanProblem, ...]  # the problem of each search
    searches: tuple[BestLoads, ...]
    candidates: tuple[Candidates, ...]
    best: Choice | None
    goal: Goal
    aggregated: Choice | None = None  # the best single-pool choice when two pools are requested
    pairs: tuple[PoolPair, ...] = ()  # the best of several speeds by the objective
    front: tuple[PoolPair, ...] = ()  # and by cost
    sized: int = 0  # number of replica pairs sized
    place: int = 0  # of its model and machine among those of the question
    near: Choice | None = None  # without a best choice the nearest miss
    why: str = ""  # and why it misses
    fails: str = ""  # kind of failure: memory, time, rate or pools
    miss: tuple[float, ...] = ()  # by how much, to compare misses of one kind

    @property
    def row(self) -> PlanRow:
        """The best row of this model on this machine, or the nearest miss."""
        if self.best is not None:
            return PlanRow(kind="best", pick=self.best)
        return PlanRow(kind="best", pick=cast(Choice, self.near), extra={"fits": False, "why": self.why})

    @property
    def case(self) -> Deployment:
        """The deployment in the first formats."""
        return self.problems[0].case

    @property
    def space(self) -> SearchSpace:
        """The layouts of the first formats."""
        return self.problems[0].space

    def rank(self) -> tuple[Any, ...]:
        """Sort key: those with an answer, then with a price, by the objective, of equals the faster; else the nearest miss."""
        if self.best is None:
            return True, MISSES.index(self.fails), self.miss, self.goal.apart, self.case.model.name, self.case.system.name
        case, goal, payment = self.best.case, self.goal, paid_for(self.best, self.goal)
        value = float(payment) if payment is not None else -self.best.value if goal.more else self.best.value
        unpriced = goal.objective == "cost" and case.price is None
        key = False, unpriced, rounded(value), goal.apart  # two pools win by the objective or not at all
        return *key, *self.best.order, case.model.name, case.system.name, str(case.formats.labels)


def first_of_each(groups: Sequence[Any]) -> list[Any]:
    """The first of each model and machine."""
    firsts: dict[int, Any] = {}
    for group in groups:
        firsts.setdefault(group.place, group)
    return list(firsts.values())


def searched(
    subjects: Sequence[tuple[Model, System]], load: Load, names: Mapping[str, tuple[str, ...]], degrees: Mapping[str, Any],
    settings: Sequence[Assumptions], goal: Goal,
) -> tuple[list[PlanGroup], list[str]]:  # fmt: skip
    """The search of each model on each machine in each of the formats and assumptions, and a note on those that cannot run."""
    lists = [[(name, (value,)) for value in values] or [(name, ())] for name, values in names.items()]
    members = list(itertools.product(enumerate(subjects), map(dict, itertools.product(*lists)), settings))
    results: list[PlanGroup] = []
    illegal: list[IllegalCombination] = []
    for (place, (model, machine)), formats, assumptions in members:
        domain = plan_problem.free(machine, goal)
        sizes = plan_problem.grown(domain) if domain else (machine,)
        tried = (_problems(model, size, load, formats, degrees, assumptions, goal) for size in sizes)
        try:
            pair = _each_way(_first_that_hold(tried, replace(goal, free=domain is not None)), goal.disaggregate)
            results += [replace(group, place=place) for group in pair]
        except IllegalCombination as error:
            illegal.append(error)
    if not results:
        raise illegal[0]
    subject = "pairs of model and machine" if len(members) == len(subjects) else "models, machines and formats"
    return results, drop_note(illegal, len(members), subject)


def _first_that_hold(tried: Iterable[list[PlanProblem]], goal: Goal) -> list[PlanGroup]:
    """The search of one pool on the first machine whose memory holds the model, else on the last machine.

    Where nodes are free and small, replicas over twice as many are searched too: fewer and larger ones may carry a load on fewer nodes.
    """
    machines, one_pool = iter(tried), replace(goal, disaggregate="never")
    group = _searched(next(machines), one_pool)
    while not any(best.in_memory for best in group.searches) and (problems := next(machines, None)):
        group = _searched(problems, one_pool)
    if not goal.free or goal.rate is None or int(group.case.system.scale_up_domain or 0) > SMALL_NODE:
        return [group]
    wider = next(machines, None)
    return [group] if wider is None else [group, _searched(wider, one_pool)]


def _each_way(groups: Sequence[PlanGroup], way: str) -> list[PlanGroup]:
    """The best search of one pool, of two, or of both; where neither keeps the limits the nearer miss, of equals that of one pool."""
    together = [min((with_answer(group) for group in groups), key=PlanGroup.rank)] if way != "only" else []
    if way == "never" or (way == "auto" and not may_part(groups[0].case, groups[0].goal)):
        return together
    apart = min((with_answer(_parted(group)) for group in groups), key=PlanGroup.rank)
    if way == "only" or apart.best or together[0].best:
        return [*together, apart]
    return [min((*together, apart), key=PlanGroup.rank)]


def may_part(case: Deployment, goal: Goal) -> bool:
    """Whether pools apart are weighed: a machine of several chips with a link, an engine that can, and answers beyond a first token."""
    able = case.assumptions.engine not in ONE_POOL_ENGINES and int(case.load.output) > 1 and not goal.spare
    return able and (goal.free or int(case.system.chips) > 1) and joins_pools(case.system, goal.free)


def _problems(
    model: Model, system: System, load: Load, names: Mapping[str, tuple[str, ...]], degrees: Mapping[str, Any],
    assumptions: Assumptions, goal: Goal,
) -> list[PlanProblem]:  # fmt: skip
    """One problem for each combination of formats."""
    for name in ("prompt", "output"):
        if hasattr(getattr(load, name), "__len__"):
            raise BadValue(name, getattr(load, name), "one number: a plan is for one kind of request")
    served = checked_load(context=load.context, prompt=load.prompt, output=load.output)
    first = deployment(model, system, Layout(), served, assumptions=assumptions)
    if load.context is not None:
        raise BadValue("load", "a context", "a prompt and an output")
    fp8 = first.system.chip.peak_fp8 is not None
    caches = names["kv"] or (("bf16", "fp8") if fp8 else ("bf16",))
    both = (FP8_NOTE,) if not names["kv"] and fp8 else ()
    layouts = expressible(space(shape(first.work.blocks, *names["weights"]), first.system, degrees), first, goal.engine, goal.host)
    if first.assumptions.communication == "two-batch":
        layouts = halved(layouts, goal.batches)
    computes, compute_notes = able_computes(first.system.chip, names["compute"] or ("",))
    problems = []
    for weights, kv, compute in itertools.product(names["weights"] or ("",), caches, computes):
        precision = Precision(weights=weights, kv=kv, compute=compute)
        case = first.in_formats(precision)
        notes = (*first.notes, *(note for note in case.formats.notes if note not in first.notes), *both, *compute_notes)
        problems.append(PlanProblem(case=replace(case, notes=notes), precision=precision, space=layouts))
    return problems


def _searched(problems: list[PlanProblem], goal: Goal) -> PlanGroup:
    """The search of every problem; of listed degrees and batches each alone."""
    inside = [problem for problem in problems if problem.space.count]
    expect(sum(problem.space.count for problem in inside))
    candidate_sets = [compile_candidates(problem.case, problem.space.layouts, problem.space.count) for problem in inside]
    parts = [_apart(w, goal) for w in candidate_sets]
    searches = [[best_loads(w, goal) for w in part] for part in parts]
    best = best_pick(searches, goal)
    return PlanGroup(
        problems=tuple(problems), searched_problems=tuple(problem for problem, part in zip(inside, parts, strict=True) for _ in part),
        searches=tuple(itertools.chain.from_iterable(searches)), candidates=tuple(candidate_sets), best=best, goal=goal,
    )  # fmt: skip


def _parted(group: PlanGroup) -> PlanGroup:
    """The best pair of pools of the layouts that were searched as one pool."""
    goal = replace(group.goal, disaggregate="only")
    pool_pairs, count = pairs(group.candidates, goal)
    best = best_of(pool_pairs, goal)
    front = pool_pairs if goal.objective == "cost" else pairs(group.candidates, replace(goal, objective="cost"))[0]
    return replace(group, goal=goal, best=best, aggregated=group.best, pairs=tuple(pool_pairs), front=tuple(front), sized=count)


def best_pick(searches: Sequence[Sequence[BestLoads | None]], goal: Goal) -> Choice | None:
    """The best of the choices of each member: searches by problem, and within a problem by member, None where it has no layout."""
    picks: list[Choice | None] = []
    for member in zip(*searches, strict=True):
        alone = [search for search in member if search is not None]
        if alone and 1 < len(goal.batches) <= MOST_ALONE:  # of listed batches that of each
            goals = [replace(goal, batches=(batch,)) for batch in goal.batches]
            picks += [choose([best_loads(search.source, single) for search in alone], single) for single in goals]
        elif alone:
            picks.append(choose(alone, goal))
    choices = [choice for choice in picks if choice is not None]
    return min(choices, key=lambda choice: (rounded(-choice.value if goal.more else choice.value), *choice.order), default=None)


def _apart(w: Candidates, goal: Goal) -> list[Candidates]:
    """The candidates of each combination of the degrees that the user listed."""
    columns = [np.broadcast_to(getattr(w.layout, name), (w.count, 1))[:, 0] for name in NAMES if name in goal.lists]
    if not columns:
        return [w]
    rows, place = np.unique(np.stack(columns), axis=1, return_inverse=True)
    count = rows.shape[1]
    return [w] if count > MOST_ALONE else [w.rows(np.flatnonzero(place.ravel() == at)) for at in range(count)]


def _most_carried(group: PlanGroup) -> Choice:
    """The choice that carries most within the limits, with two pools where they carry more than one."""
    most = replace(group.goal, rate=None, users=None, objective="throughput")
    one_pool = cast(Choice, choose([best_loads(w, most) for w in group.candidates], most))
    pool_pairs = pairs(group.candidates, most)[0] if most.apart else []
    apart = min(pool_pairs, key=lambda pair: pair.key, default=None)
    return one_pool if apart is None or apart.value <= one_pool.value else picked(apart, most)


def with_answer(group: PlanGroup) -> PlanGroup:
    """The group, with the row that is nearest to the limits and the kind of failure where none keeps them all."""
    if group.best:
        return group
    miss: tuple[float, ...] = ()
    if not group.candidates:
        why, sample = group.space.why, group.space.sample
        system = replace(group.case.system, scale_up_domain=ANY_DOMAIN)
        load = replace(group.case.load, batch=user_input(min(group.goal.batches, default=1), "batch"))
        known = Layout(**{name: user_input(int(getattr(sample, name)), name) for name in Layout.__dataclass_fields__})
        near, fails, miss = Choice(case=replace(group.case, system=system, layout=known, load=load)), "memory", (float("inf"),)
    elif group.aggregated:
        near, fails = group.aggregated, "pools"
        what = "keep every limit" if limits(group.goal.slo) else "fit side by side"
        why = f"no prefill pool and decode pool {what}; without --disaggregate this row does"
    elif any(best.in_time for best in group.searches):
        near, fails = _most_carried(group), "rate"
        why, miss = beyond(near, group.goal), (-float(estimates_of(near, near.case)["capacity_req_per_s"]),)
    else:
        near, why, miss = nearest(group.candidates, group.goal)
        fails = "memory" if miss[0] > 0 else "time"
    return replace(group, near=near, why=why, fails=fails, miss=miss)
