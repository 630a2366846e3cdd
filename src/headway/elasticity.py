"""What would help most: the optimum searched again with 1 % more of an input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.candidates import SearchSpace
from headway.chip import PEAK_OF
from headway.formula import record
from headway.goal import Goal
from headway.laws.planning import elasticity, gain_of_less, gain_of_more, raised
from headway.pick import Choice, PlanRow, choose, estimates_of
from headway.precision import Precision
from headway.quantity import default
from headway.resolve import resolve
from headway.search import ONE_REPLICA, ReplicaCounts, best_batches, compile_candidates, objective_value
from headway.serve import ServeRequest
from headway.system import System

STEP = default(1.01, "step of an elasticity", "", "1 % more of the input")
# What is varied, with the words for it.
INPUTS = {
    "chip.hbm_bw": "HBM bandwidth",
    "chip.peak": "FLOP/s, in every format",
    "chip.hbm": "HBM capacity",
    "system.scale_up_bw": "bandwidth of the scale-up links",
    "system.scale_out_bw": "bandwidth of the network between scale-up domains",
    "fixed": "fixed costs of a step: kernels' and the engine's",
    "alpha": "latency of a collective",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProblem:
    """One model on one machine in one set of formats, and the layouts to search."""

    query: ServeRequest
    precision: Precision
    space: SearchSpace


def elasticities(problems: Sequence[PlanProblem], best: Choice, goal: Goal) -> list[PlanRow]:
    """One row for each input: the re-planned optimum, and by how much it is better per cent of the input; what helps most first.

    None where whole numbers of chips are the answer: 1 % hardly ever moves them.
    """
    if goal.sizing:
        return []
    lines = []
    for name in INPUTS:
        if not has(best.query, name):
            continue
        again = {id(problem): edited(problem.query, problem.precision, name) for problem in problems}
        candidates = [
            best_batches(compile_candidates(again[id(problem)], problem.space.layouts, problem.space.count), goal) for problem in problems
        ]
        optimum = choose(candidates, goal)
        if optimum is not None:
            precision = next(problem.precision for problem in problems if again[id(problem)] is optimum.query)
            lines.append(_line(name, best, optimum, precision, goal))
    return sorted(lines, key=lambda line: -abs(line.extra["elasticity"]))


def has(query: ServeRequest, name: str) -> bool:
    """Whether the machine has the input."""
    if not name.endswith(("scale_up_bw", "scale_out_bw")):
        return True
    system, key = query.system, name.removeprefix("system.")
    joined = key == "scale_up_bw" or (system.scale_up_domain is not None and system.chips > system.scale_up_domain)
    return joined and _link(system, key) is not None


def _link(system: System, key: str) -> Any:
    return getattr(system, key) if getattr(system, key) is not None else getattr(system.chip, key)


def edited(query: ServeRequest, precision: Precision, name: str) -> ServeRequest:
    """The query with 1 % more of an input."""
    system, assumptions = query.system, query.assumptions
    if name == "chip.hbm_bw":
        system = replace(system, chip=replace(system.chip, hbm_bw=raised(system.chip.need("hbm_bw"), STEP)))
    elif name == "chip.hbm":
        system = replace(system, chip=replace(system.chip, hbm=raised(system.chip.need("hbm"), STEP)))
    elif name == "chip.peak":
        peaks = {key: getattr(system.chip, key) for key in dict.fromkeys(PEAK_OF.values())}
        more = {key: raised(value, STEP) for key, value in peaks.items() if value is not None}
        system = replace(system, chip=replace(system.chip, **more))
    elif name.startswith("system."):
        key = name.removeprefix("system.")
        system = replace(system, **{key: raised(_link(system, key), STEP)})
    else:
        assumptions = replace(assumptions, **{name: raised(getattr(assumptions, name), STEP)})
    formats = resolve(query.work.blocks, query.work.embedding_dtype, system.chip, precision)
    return replace(query, system=system, assumptions=assumptions, formats=formats)


def _line(name: str, before: Choice, after: Choice, precision: Precision, goal: Goal) -> PlanRow:
    base = replace(after.query, system=before.query.system, assumptions=before.query.assumptions)  # formats are made again below

    def again() -> ServeRequest:
        with record():
            return edited(base, precision, name)

    def tree() -> Any:
        with record():
            return _value(before, after, before.query, edited(base, precision, name), goal)

    number = float(_value(before, after, before.query, after.query, goal))
    extra = {"input": name, "elasticity": number}
    return PlanRow(kind="elasticity", pick=after, extra=extra, trees={"elasticity": tree}, queried=again)


def _value(before: Choice, after: Choice, first: ServeRequest, second: ServeRequest, goal: Goal) -> Any:
    gain = gain_of_more if goal.more else gain_of_less
    return elasticity(gain(objective_of(before, first, goal), objective_of(after, second, goal)), STEP)


def objective_of(pick: Choice, query: ServeRequest, goal: Goal) -> Any:
    """The objective of one pick, by the path that prints and explains."""
    estimates = estimates_of(pick, query)
    replicas = pick.layout.replicas if pick.prefill is None else ONE_REPLICA  # two pools are one
    size = ReplicaCounts(replicas=replicas, chips_used=estimates["chips_used"], chips=query.system.chips)
    return objective_value(goal, query, size, estimates["tpot_s"], estimates["request_s"])
