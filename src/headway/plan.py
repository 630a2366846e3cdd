"""`plan`: the best layout, batch and formats of a model on a machine under latency limits, what else is worth having, what would help.

Exhaustive: every legal layout whose replica stays within one scale-up domain, every number of sequences per rank. Arithmetic is in laws/.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway import search
from headway.assumptions import Assumptions
from headway.candidates import Space, space
from headway.current import cause, gain, parse, placed
from headway.elasticity import Problem, elasticities, objective_of
from headway.errors import BadValue, UnknownName
from headway.formula import record
from headway.frontier import candidates, frontier
from headway.grid import Table
from headway.hfconfig import model as find_model
from headway.laws.planning import interleaved_tpot_s
from headway.layout import Layout, shape
from headway.model import Model
from headway.pick import Line, Pick, choose, pick, table
from headway.precision import Precision
from headway.quantity import Known, default, given
from headway.resolve import resolve
from headway.schema import fields, scalar
from headway.search import OBJECTIVES, Best, Weighed, best_batches, check_objective, weigh
from headway.serve import Query, query
from headway.shortfall import nearest
from headway.system import System
from headway.system import system as find_system
from headway.units import show
from headway.workload import SLO, Load

FP8_NOTE = "KV cache formats searched: bf16 and fp8 (the chip multiplies in fp8; quality is not modelled, kv=bf16 leaves it out)"
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
    objective: str

    @property
    def query(self) -> Query:
        return self.problems[0].query

    @property
    def space(self) -> Space:
        return self.problems[0].space

    def rank(self) -> tuple[bool, bool, float]:
        """Feasible first, then priced, then by the objective."""
        value = self.best.value if self.best else float("inf")
        return self.best is None, self.objective == "cost" and self.query.price is None, -value if OBJECTIVES[self.objective] else value


def plan(
    models: Model | str | Sequence[Model | str],
    systems: System | str | Sequence[System | str],
    load: Load,
    slo: SLO | None = None,
    *,
    ttft: Any = None,
    tpot: Any = None,
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

    `load` has one prompt and one output; `slo`, or `ttft` and `tpot` ("2s", or seconds), the limits. Objectives: cost, throughput, speed.
    `ways` pins tp, ep, dp, pp, cp, replicas (a value or a list each), `batch` the batches; formats left out are as `Precision` has them,
    for KV both bf16 and fp8 where the chip has fp8. `current`, "tp=8 batch=64", adds a row for the user's own layout.
    What meets no limit is a row with fits False and a reason; input without an answer raises a HeadwayError.
    """
    check_objective(objective)
    limits = _limits(slo, ttft, tpot)
    batches, pinned = _batches(batch), {*(ways or ()), *(("batch",) if batch is not None else ())}
    found = [find_model(one) if isinstance(one, str) else one for one in _several(models)]
    pairs = list(itertools.product(found, [find_system(one) if isinstance(one, str) else one for one in _several(systems)]))
    if not 0 < len(pairs) <= MOST_PAIRS:
        raise BadValue("plan", f"{len(pairs)} pairs of model and machine", f"1 to {MOST_PAIRS}")
    names = {"weights": _formats(weights, "weights"), "kv": _formats(kv, "kv"), "compute": _formats(compute, "compute")}
    groups = [_searched(_problems(*pair, load, names, ways or {}, assumptions), limits, objective, batches, pinned) for pair in pairs]
    asked = parse(current) if isinstance(current, str) else current
    own = placed(_own_query(groups[0], asked), asked) if asked else None
    return _answered(sorted(groups, key=_Group.rank), limits, objective, batches, pinned, own, elasticities)


# -- what was asked -------------------------------------------------------------------------------------------------------------


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _limits(slo: SLO | None, ttft: Any, tpot: Any) -> SLO:
    """The limits as numbers that the user gave."""
    asked = {"ttft": ttft if ttft is not None else slo and slo.ttft, "tpot": tpot if tpot is not None else slo and slo.tpot}
    return SLO(**{name: value if value is None else _limit(name, value) for name, value in asked.items()})


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
    first = query(model, system, Layout(), 1, load.context, load.prompt, load.output, Precision(), taken)
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


def _own_query(group: _Group, asked: Mapping[str, Any]) -> Query:
    """The first model and machine, in the user's formats."""
    query = group.query
    precision = Precision(**{name: asked.get(name, "") for name in ("weights", "kv", "compute")})
    return replace(query, formats=resolve(query.work.blocks, query.work.embedding_dtype, query.system.chip, precision))


# -- what was found -------------------------------------------------------------------------------------------------------------


def _searched(problems: list[Problem], slo: SLO, objective: str, batches: Sequence[int], pinned: set[str]) -> _Group:
    searched = [one for one in problems if one.space.count]
    weighed = tuple(weigh(one.query, one.space.layouts, one.space.count) for one in searched)
    found = tuple(best_batches(w, slo, objective, batches) for w in weighed)
    best = choose(found, objective, pinned)
    return _Group(problems=tuple(problems), found=found, weighed=weighed, best=best, objective=objective)


def _missed(group: _Group, slo: SLO, batches: Sequence[int], pinned: set[str]) -> Line:
    """The row of a model and machine on which nothing meets every limit."""
    if group.weighed:
        near, why = nearest(group.weighed, slo, batches, pinned)
    else:
        why, sample = group.space.why, group.space.sample
        query = group.query
        query = replace(query, system=replace(query.system, scale_up_domain=ANY_DOMAIN))
        load = Load(batch=given(min(batches, default=1), "batch"), prompt=query.load.prompt, output=query.load.output)
        known = Layout(**{name: given(int(getattr(sample, name)), name) for name in Layout.__dataclass_fields__})
        near = Pick(query=query, layout=known, load=load)
    return Line(kind="best", pick=near, extra={"fits": False, "why": why})


def _answered(
    groups: list[_Group], slo: SLO, objective: str, batches: Sequence[int], pinned: set[str], own: Pick | None, helping: bool
) -> Plan:
    lead = groups[0]
    best = [Line(kind="best", pick=group.best) if group.best else _missed(group, slo, batches, pinned) for group in groups]
    lines, more = list(best), []
    points, members = _frontier(groups, batches)
    if len(points.speed):
        front = frontier(points)
        places = zip(front.search, front.row, front.batch, strict=True)
        lines += [Line(kind="frontier", pick=pick(members[int(one)].fitting, int(row), int(size), pinned)) for one, row, size in places]
    if helping and lead.best:
        lines += elasticities(lead.problems, lead.best, slo, objective, batches, pinned)
    if own is not None:
        lines.append(_own_line(lead, own, objective))
        more.append(_own_note(lines[-1], own, slo, objective))
    notes = _notes(groups, len(points.speed), objective, batches) + tuple(more)
    made = table(lines, notes)
    why = best[0].extra.get("why", "")
    answer = _answer(lead, made.row(0), objective, slo)
    return Plan(table=made, best=best[0].pick, answer=answer, infeasible=why, objective=objective, slo=slo)


def _frontier(groups: list[_Group], batches: Sequence[int]) -> tuple[Any, list[Best]]:
    """The candidates of the first group's model, on every machine whose cost compares with the first's."""
    lead = groups[0].query
    same = [
        group
        for group in groups
        if group.query.model is lead.model and (group is groups[0] or (lead.price is not None and group.query.price is not None))
    ]
    members = [best for group in same for best in group.found]
    return candidates(members, batches), members


def _own_line(lead: _Group, own: Pick, objective: str) -> Line:
    best = lead.best
    if best is None or (objective == "cost" and (own.query.price is None) != (lead.query.price is None)):
        return Line(kind="current", pick=own)

    def tree() -> Any:
        with record():
            return gain(objective_of(best, best.query, objective), objective_of(own, own.query, objective), objective)

    return Line(kind="current", pick=own, extra={"gain": float(tree()), "cause": cause(best, own)}, trees={"gain": tree})


def _own_note(line: Line, own: Pick, slo: SLO, objective: str) -> str:
    if "gain" not in line.extra:
        return "the current layout is not compared: nothing to compare it with, or no price"
    times = {"cost": "cheaper per request", "throughput": "more tokens/s per chip", "speed": "faster for a user"}[objective]
    return f"the best is {line.extra['gain']:.3g} times {times} than the current layout; most of it from {line.extra['cause']}"


def _answer(lead: _Group, row: dict[str, Any], objective: str, slo: SLO) -> dict[str, Any]:
    answer: dict[str, Any] = {"row": row, "objective": objective, "slo": slo}
    if lead.best:
        answer |= {"value": lead.best.value, "interleaved_tpot_s": _interleaved(lead.best)}
    return answer


def _interleaved(best: Pick) -> float:
    """TPOT with others' prompts in between."""
    w = weigh(best.query, best.layout, 1)
    each = search.request(w, best.load.batch, search.tpot(w, best.load.batch))
    return float(interleaved_tpot_s(best.load.batch, each, best.load.output))


def _notes(groups: list[_Group], count: int, objective: str, batches: Sequence[int]) -> tuple[str, ...]:
    """What was searched, what was dropped and why, what was taken for granted."""
    lead = groups[0]
    layouts = sum(one.space.count for group in groups for one in group.problems)
    inside = sum(best.in_memory for group in groups for best in group.found)
    allowed = sum(best.fitting.count for group in groups for best in group.found)
    met = sum(best.weighed.count for group in groups for best in group.found)
    how = "the batches asked for" if batches else "geometric batches, then each layout's best batch to the exact integer"
    notes = dict.fromkeys(
        (
            f"searched {layouts} layouts (formats counted apart), {count} candidates with a batch ({how})",
            f"dropped {layouts - inside} layouts that do not fit in memory, "
            f"{inside - allowed} over the TTFT limit, {allowed - met} over the TPOT limit",
        )
    )
    if objective == "cost" and any(group.query.price is None for group in groups):
        notes |= {"without a price the objective is chip-seconds per request; machines without a price come last": None}
    if lead.best:
        seen = show(_interleaved(lead.best), "s")
        notes |= {f"TPOT counts decode steps alone; with others' prompts prefilled in between a user of the best layout sees {seen}": None}
    for group in groups:
        notes |= dict.fromkeys(group.space.notes) | dict.fromkeys(_said(group.query, groups))
    return tuple(notes)


def _said(query: Query, groups: list[_Group]) -> list[str]:
    """The notes of one query; what is not true of all machines names its own."""
    name = f"{query.model.name} on {query.system.name}: "
    return [note if all(note in other.query.notes for other in groups) else name + note for note in query.notes]
