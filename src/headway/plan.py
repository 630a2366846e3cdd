"""`plan`: the best layout, batch and formats of a model on a machine under latency limits, what else is worth having, what would help.

Exhaustive: every legal layout whose replica stays within one scale-up domain, every number of sequences per rank. Arithmetic is in laws/.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from headway.assumptions import Assumptions
from headway.candidates import Space, space
from headway.current import cause, gain, parse, placed
from headway.elasticity import Problem, elasticities, objective_of
from headway.errors import BadValue, UnknownName
from headway.formula import record
from headway.frontier import candidates, frontier
from headway.goal import Goal, limits, objective_named
from headway.grid import Table
from headway.hfconfig import model as find_model
from headway.layout import Layout, shape
from headway.model import Model
from headway.pick import Line, Pick, choose, pick, resized, table
from headway.precision import Precision
from headway.quantity import Known, default, given
from headway.resolve import resolve
from headway.schema import fields, scalar
from headway.search import Best, Size, Weighed, best_batches, weigh, worth
from headway.serve import Query, query
from headway.shortfall import beyond, nearest
from headway.system import System
from headway.system import system as find_system
from headway.workload import SLO, Load

FP8_NOTE = "KV cache formats searched: bf16 and fp8 (the chip multiplies in fp8; quality is not modelled, kv=bf16 leaves it out)"
FREE_NOTE = "the number of chips is free: replicas fill scale-up domains of the chip's usual size, the last one as far as it is used"
RATE_NOTE = "capacity and times are those of full batches in steady state; TTFT leaves out the queue, which grows near saturation"
BETTER = {"cost": "cheaper per request", "throughput": "more tokens/s per chip", "latency": "faster for a user", "chips": "fewer chips"}
NO_TIME = 1.0  # what a worth that shares chips among the requests that come does not look at
MOST_BATCHES = 10_000
MOST_PAIRS = 200
ANY_DOMAIN = default(10**9, "scale_up_domain", "", "for the row of a layout that no domain holds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer: rows (the best first), its parts, and what the figures are drawn from."""

    table: Table
    best: Pick
    answer: dict[str, Any]  # the best row, objective, its value, the limits, TPOT with others' prompts
    infeasible: str  # which limit fails first and by how much; empty when all are met
    fails: str  # of what: memory, time or rate
    objective: str
    slo: SLO

    @property
    def notes(self) -> tuple[str, ...]:
        """What was searched, dropped and taken for granted."""
        return self.table.notes

    def rows(self) -> list[dict[str, Any]]:
        """Every row as plain Python."""
        return self.table.rows()

    def explain(self, key: str, row: int = 0) -> Any:
        """The tree of laws behind one number, of the best row unless told."""
        return self.table.explain(key, row)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """One model on one machine: what was searched and what was found."""

    problems: tuple[Problem, ...]
    found: tuple[Best, ...]
    weighed: tuple[Weighed, ...]
    best: Pick | None
    goal: Goal

    @property
    def query(self) -> Query:
        return self.problems[0].query

    @property
    def space(self) -> Space:
        return self.problems[0].space

    def rank(self) -> tuple[bool, bool, float]:
        """Feasible first, then priced, then by the objective."""
        if self.best is None:
            return True, False, float("inf")
        value, query, goal = self.best.value, self.best.query, self.goal
        if goal.rate is not None and goal.objective in ("cost", "throughput"):  # machines of fixed and of free size compare by what is paid
            size = Size(replicas=self.best.layout.replicas, used=query.system.chips, chips=query.system.chips)
            value = float(worth(replace(goal, free=True), query, size, NO_TIME, NO_TIME))
        return False, goal.objective == "cost" and query.price is None, -value if goal.more else value


def plan(
    models: Model | str | Sequence[Model | str],
    systems: System | str | Sequence[System | str],
    load: Load,
    slo: SLO | None = None,
    *,
    ttft: Any = None,
    tpot: Any = None,
    tpot_interleaved: Any = None,
    e2e: Any = None,
    weights: str | Sequence[str] = ("",),
    kv: str | Sequence[str] = (),
    compute: str | Sequence[str] = ("",),
    ways: Mapping[str, Any] | None = None,
    batch: Any = None,
    assumptions: Assumptions | None = None,
    objective: str = "cost",
    current: Mapping[str, Any] | str | None = None,
    elasticities: bool = True,
) -> Plan:
    """The best layout, batch and formats of each model on each machine, the best of all first.

    `load` has one prompt and one output, and the rate that must be carried, if any: on a bare chip by as many as it takes, else by the
    machine's. `slo`, or `ttft`, `tpot`, `tpot_interleaved` and `e2e` ("2s", or seconds), are the limits. Objectives: cost, throughput,
    latency, chips (the fewest that carry the load); pick.TIES says what is taken of equals.
    `ways` pins tp, ep, dp, pp, cp, replicas (a value or a list each), `batch` the batches; formats left out are as `Precision` has them,
    for KV both bf16 and fp8 where the chip has fp8. `current`, "tp=8 batch=64", adds a row for the user's own layout.
    What meets no limit is a row with fits False and a reason; input without an answer raises a HeadwayError.
    """
    pinned = frozenset(name for name, value in (ways or {}).items() if value is not None)
    slo = _limits(slo or SLO(), {"ttft": ttft, "tpot": tpot, "tpot_interleaved": tpot_interleaved, "e2e": e2e})
    goal = Goal(objective=objective_named(objective), slo=slo, rate=_rate(load.rate), batches=_batches(batch), pinned=pinned)
    names = {"weights": _formats(weights, "weights"), "kv": _formats(kv, "kv"), "compute": _formats(compute, "compute")}
    groups = []
    for one, machine in _pairs(models, systems):
        domain = _free(machine, goal)
        here = replace(goal, free=domain is not None)
        groups.append(_searched(_problems(one, domain or machine, load, names, ways or {}, assumptions), here))
    own = _own(groups[0], parse(current) if isinstance(current, str) else current)
    return _answered(sorted(groups, key=_Group.rank), own, elasticities)


# -- what was asked -------------------------------------------------------------------------------------------------------------


def _pairs(models: Any, systems: Any) -> list[tuple[Model, System]]:
    found = [find_model(one) if isinstance(one, str) else one for one in _several(models)]
    pairs = list(itertools.product(found, [find_system(one) if isinstance(one, str) else one for one in _several(systems)]))
    if not 0 < len(pairs) <= MOST_PAIRS:
        raise BadValue("plan", f"{len(pairs)} pairs of model and machine", f"1 to {MOST_PAIRS}")
    return pairs


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _limits(slo: SLO, asked: Mapping[str, Any]) -> SLO:
    """The limits as numbers that the user gave."""
    every = limits(slo) | {name: value for name, value in asked.items() if value is not None}
    return SLO(**{name: _limit(name, value) for name, value in every.items()})


def _rate(value: Any) -> Any:
    """The rate as a number that the user gave."""
    q = fields(Load)["rate"][0]
    if value is None or isinstance(value, Known):
        return value
    if isinstance(value, str):
        return scalar(value, q, "rate")
    if isinstance(value, bool) or not isinstance(value, int | float) or q.illegal(value):
        raise BadValue("rate", value, f"one rate {q.range()}")
    return given(float(value), "rate", "1/s")


def _free(system: System, goal: Goal) -> System | None:
    """One scale-up domain of a bare chip, whose number is free where a load has to be carried; None where it is not."""
    domain = system.chip.scale_up_domain
    if system.chips != 1 or (goal.rate is None and goal.objective != "chips"):
        return None
    if "replicas" in goal.pinned:
        raise BadValue("replicas", "a number", f"no --replicas: how many {system.name} the load takes is the question")
    usual = system.chips if domain is None else domain
    return replace(system, chips=usual, scale_up_domain=usual)


def _limit(name: str, value: Any) -> Any:
    q = fields(SLO)[name][0]
    if isinstance(value, str):
        return scalar(value, q, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or q.illegal(value):
        raise BadValue(name, value, f"one time {q.range()}")
    return value if isinstance(value, Known) else given(float(value), name, "s")


def _batches(batch: Any) -> tuple[int, ...]:
    q = fields(Load)["batch"][0]
    values = () if batch is None else tuple(batch) if hasattr(batch, "__iter__") else (batch,)
    for value in values:
        if q.illegal(value):
            raise BadValue("batch", value, q.illegal(value))
    if len(values) > MOST_BATCHES:
        raise BadValue("batch", f"{len(values)} values", f"at most {MOST_BATCHES}")
    return tuple(sorted({int(value) for value in values}))


def _formats(value: str | Sequence[str], name: str) -> tuple[str, ...]:
    q = fields(Precision)[name][0]
    names = (value,) if isinstance(value, str) else tuple(value)
    for one in names:
        if one not in q.choices:
            raise UnknownName(f"{name} format", one, q.choices, "one of " + ", ".join(filter(None, q.choices)))
    return names


def _problems(model: Any, system: Any, load: Load, names: dict[str, tuple[str, ...]], ways: Mapping[str, Any], taken: Any) -> list[Problem]:
    """One problem for each combination of formats."""
    for name in ("prompt", "output"):
        if hasattr(getattr(load, name), "__len__"):
            raise BadValue(name, getattr(load, name), "one number: a plan is for one kind of request")
    first = query(model, system, Layout(), 1, load.context, load.prompt, load.output, Precision(), taken, _rate(load.rate))
    if load.context is not None:
        raise BadValue("load", "a context", "a prompt and an output")
    fp8 = first.system.chip.peak_fp8 is not None
    caches = names["kv"] or (("bf16", "fp8") if fp8 else ("bf16",))
    both = (FP8_NOTE,) if not names["kv"] and fp8 else ()
    found = space(shape(first.work.blocks), first.system, ways)
    problems = []
    for weights, kv, compute in itertools.product(names["weights"] or ("",), caches, names["compute"] or ("",)):
        precision = Precision(weights=weights, kv=kv, compute=compute)
        formats = resolve(first.work.blocks, first.work.embedding_dtype, first.system.chip, precision)
        notes = (*first.notes, *(note for note in formats.notes if note not in first.notes), *both)
        problems.append(Problem(query=replace(first, formats=formats, notes=notes), precision=precision, space=found))
    return problems


def _own(group: _Group, asked: Mapping[str, Any] | None) -> Pick | None:
    """The user's own layout of the first model on the first machine, in the user's formats."""
    if not asked:
        return None
    query = group.query
    precision = Precision(**{name: asked.get(name, "") for name in ("weights", "kv", "compute")})
    formats = resolve(query.work.blocks, query.work.embedding_dtype, query.system.chip, precision)
    own = placed(replace(query, formats=formats), asked)
    return own if "replicas" in asked else resized(own, replace(group.goal, objective="cost"))


# -- what was found -------------------------------------------------------------------------------------------------------------


def _searched(problems: list[Problem], goal: Goal) -> _Group:
    searched = [one for one in problems if one.space.count]
    weighed = tuple(weigh(one.query, one.space.layouts, one.space.count) for one in searched)
    found = tuple(best_batches(w, goal) for w in weighed)
    return _Group(problems=tuple(problems), found=found, weighed=weighed, best=choose(found, goal), goal=goal)


def _missed(group: _Group) -> tuple[Line, str]:
    """The row of a model and machine on which nothing meets every limit, and what fails."""
    if not group.weighed:
        why, sample = group.space.why, group.space.sample
        query = group.query
        query = replace(query, system=replace(query.system, scale_up_domain=ANY_DOMAIN))
        load = Load(batch=given(min(group.goal.batches, default=1), "batch"), prompt=query.load.prompt, output=query.load.output)
        known = Layout(**{name: given(int(getattr(sample, name)), name) for name in Layout.__dataclass_fields__})
        near, fails = Pick(query=query, layout=known, load=load), "memory"
    elif any(best.in_time for best in group.found):
        most = replace(group.goal, rate=None, objective="throughput")
        chosen = choose([best_batches(w, most) for w in group.weighed], most)
        near, fails = cast(Pick, chosen), "rate"
        why = beyond(near)
    else:
        near, why, full = nearest(group.weighed, group.goal)
        fails = "memory" if full else "time"
    return Line(kind="best", pick=near, extra={"fits": False, "why": why}), fails


def _answered(groups: list[_Group], own: Pick | None, helping: bool) -> Plan:
    lead = groups[0]
    goal, more = lead.goal, []
    best, fails = [], []
    for group in groups:
        line, what = (Line(kind="best", pick=group.best), "") if group.best else _missed(group)
        best.append(line)
        fails.append(what)
    lines = list(best)
    points, members, goals = _frontier(groups)
    if len(points.speed):
        front = frontier(points)
        places = zip(front.search, front.row, front.batch, strict=True)
        chosen = [pick(members[int(one)].fitting, int(row), int(size), goals[int(one)]) for one, row, size in places]
        lines += [Line(kind="frontier", pick=one) for one in chosen]
    if helping and lead.best:
        lines += elasticities(lead.problems, lead.best, goal)
    if own is not None:
        lines.append(_own_line(lead, own))
        more.append(_own_note(lines[-1], goal))
    notes = _notes(groups, len(points.speed)) + tuple(more)
    made = table(lines, notes)
    answer: dict[str, Any] = {"row": made.row(0), "objective": goal.objective, "slo": goal.slo}
    answer |= {"value": lead.best.value} if lead.best else {}
    why = best[0].extra.get("why", "")
    return Plan(table=made, best=best[0].pick, answer=answer, infeasible=why, fails=fails[0], objective=goal.objective, slo=goal.slo)


def _frontier(groups: list[_Group]) -> tuple[Any, list[Best], list[Goal]]:
    """The candidates of the first group's model, on every machine whose cost compares with the first's."""
    lead = groups[0].query
    same = [
        group
        for group in groups
        if group.query.model is lead.model and (group is groups[0] or (lead.price is not None and group.query.price is not None))
    ]
    members = [best for group in same for best in group.found]
    goals = [replace(group.goal, objective="cost") for group in same for _ in group.found]
    return candidates(members, goals), members, goals


def _own_line(lead: _Group, own: Pick) -> Line:
    best, goal = lead.best, lead.goal
    if best is None or (goal.objective == "cost" and (own.query.price is None) != (lead.query.price is None)):
        return Line(kind="current", pick=own)

    def tree() -> Any:
        with record():
            return gain(objective_of(best, best.query, goal), objective_of(own, own.query, goal), goal)

    return Line(kind="current", pick=own, extra={"gain": float(tree()), "cause": cause(best, own)}, trees={"gain": tree})


def _own_note(line: Line, goal: Goal) -> str:
    if "gain" not in line.extra:
        return "the current layout is not compared: nothing to compare it with, or no price"
    times = BETTER[goal.objective]
    return f"the best is {line.extra['gain']:.3g} times {times} than the current layout; most of it from {line.extra['cause']}"


def _notes(groups: list[_Group], count: int) -> tuple[str, ...]:
    """What was searched, what was dropped and why, what was taken for granted."""
    goal = groups[0].goal
    layouts = sum(one.space.count for group in groups for one in group.problems)
    inside = sum(best.in_memory for group in groups for best in group.found)
    allowed = sum(best.fitting.count for group in groups for best in group.found)
    timely = sum(best.in_time for group in groups for best in group.found)
    met = sum(best.weighed.count for group in groups for best in group.found)
    short = f", {timely - met} that do not carry the rate" if goal.rate is not None else ""
    how = "the batches asked for" if goal.batches else "geometric batches, then each layout's best batch to the exact integer"
    notes = dict.fromkeys(
        (
            f"searched {layouts} layouts (formats counted apart), {count} candidates with a batch ({how})",
            f"dropped {layouts - inside} layouts that do not fit in memory, "
            f"{inside - allowed} over the TTFT limit, {allowed - timely} over the TPOT limit{short}",
        )
    )
    if goal.objective == "cost" and any(group.query.price is None for group in groups):
        notes |= {"without a price the objective is chip-seconds per request; machines without a price come last": None}
    if any(group.goal.free for group in groups):
        notes |= {FREE_NOTE: None}
    if goal.rate is not None:
        notes |= {RATE_NOTE: None}
    for group in groups:
        notes |= dict.fromkeys(group.space.notes) | dict.fromkeys(_said(group.query, groups))
    return tuple(notes)


def _said(query: Query, groups: list[_Group]) -> list[str]:
    """The notes of one query; what is not true of all machines names its own."""
    name = f"{query.model.name} on {query.system.name}: "
    return [note if all(note in other.query.notes for other in groups) else name + note for note in query.notes]
