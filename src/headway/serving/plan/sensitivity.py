"""What would help a plan, and what the user's own layout lacks: the search again with 1 % more of each input.

An elasticity varies each input of the machine; a lever is 1 % that a flag can set, planned again as that command would be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from headway.core import units
from headway.core.errors import BadValue, UnknownName
from headway.core.progress import expect
from headway.core.quantity import default, known, user_input
from headway.core.schema import Field, fields, flag, scalar
from headway.core.trace import record
from headway.core.units import Number, Second
from headway.hardware.chip import PEAK_OF
from headway.hardware.edit import edit, editable
from headway.hardware.system import System
from headway.laws.serving.replicas import elasticity, replicas_held
from headway.laws.serving.request import request_s
from headway.laws.step.layer_terms import replica_chips
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.estimate import Deployment, estimate
from headway.performance.formats import check_compute
from headway.performance.layout import NAMES, UNASKED, Layout, check, shape
from headway.performance.workload import Load
from headway.serving.plan.candidates import ONE_REPLICA, Candidates, ReplicaCounts, compile_candidates, objective_value, sized
from headway.serving.plan.choice import Choice, PlanRow, estimates_of, paid_for, pick, throughput_of
from headway.serving.plan.disaggregate import near_layouts, pairs, picked
from headway.serving.plan.group import PlanGroup, best_pick
from headway.serving.plan.problem import Goal
from headway.serving.plan.search import BestLoads, best_loads, on_curve
from headway.serving.plan.space import PlanProblem, domain_of
from headway.serving.serve import deployment

STEP = default(1.01, "step of an elasticity", "", "1 % more of the input")
# Varied inputs, each with its words.
INPUTS = {
    "chip.hbm_bw": "HBM bandwidth",
    "chip.peak": "FLOP/s, in every format",
    "chip.hbm": "HBM capacity",
    "system.scale_up_bw": "bandwidth of the scale-up links",
    "system.scale_out_bw": "bandwidth of the network between scale-up domains",
    "fixed": "fixed costs of a step: kernels' and the engine's",
    "alpha": "latency of a collective",
}


def elasticities(group: PlanGroup) -> list[PlanRow]:
    """One row for each input, largest effect first: the re-planned optimum and its gain in per cent per per cent of the input.

    Empty if the objective is a whole number of chips, which 1 % hardly ever changes.
    """
    goal, best, problems = group.goal, group.best, group.searched_problems
    if best is None or goal.sizing or (goal.apart and goal.is_loaded):
        return []
    problems, near = _near_pairs(group) if goal.apart else (problems, _nearest(group.searches, goal))
    optimum = partial(_best_pair, tpot=_tpot_of(group)) if goal.apart else _optimum
    before = optimum([problem.case for problem in problems], near, goal)
    if before is None:
        return []
    lines, inputs = [], [name for name in INPUTS if has(best.case, name)]
    objective = objective_of(before, before.case, goal)
    expect(len(inputs) * NEAR * len(near))
    for name in inputs:
        again = [edited(problem.case, problem.precision, name) for problem in problems]
        after = optimum(again, near, goal)
        if after is not None:
            edits = zip(problems, again, strict=True)
            precision = next(problem.precision for problem, changed in edits if changed.formats is after.case.formats)
            lines.append(_line(name, before, after, precision, goal, objective))
    return sorted(lines, key=lambda line: -abs(line.extra["elasticity"]))


CLOSE = 1e-9  # of a TPOT, within which it is the same
NEAR = 12  # layouts of each set of formats that 1 % of an input may make the best
NEAR_SHARE = 0.05  # of the best objective, from which 1 % of an input brings no other layout to the front


def _nearest(searches: Sequence[BestLoads | None], goal: Goal) -> list[Layout | None]:
    """The best layouts of each search that are near the best of all, as arrays; None where there are none."""
    values = [None if search is None else (-search.value if goal.more else search.value)[:, 0] for search in searches]
    best = min((float(value.min()) for value in values if value is not None and value.size), default=np.inf)
    near: list[Layout | None] = []
    for search, value in zip(searches, values, strict=True):
        if search is None or value is None or not value.size:
            near.append(None)
            continue
        rows = np.argsort(value, kind="stable")[:NEAR]
        rows = rows[value[rows] <= best + NEAR_SHARE * abs(best)]
        near.append(search.candidates.rows(rows).layout if rows.size else None)
    return near


def _near_pairs(group: PlanGroup) -> tuple[list[PlanProblem], list[Layout | None]]:
    """The problems whose best pair of pools is near the best of all, and the layouts that 1 % of an input may make the best."""
    best_pair = min(group.pairs, key=lambda pair: pair.key)
    near: list[tuple[PlanProblem, Layout | None]] = []
    for problem in {id(problem.case.formats): problem for problem in group.searched_problems}.values():
        own_pairs = [pair for pair in group.pairs if pair.prefill.candidates.case.formats is problem.case.formats]
        pair = min(own_pairs, key=lambda pair: pair.key, default=None)
        if pair is not None and pair.key[0] <= best_pair.key[0] + NEAR_SHARE * abs(best_pair.key[0]):
            near.append((problem, near_layouts(pair, NEAR_SHARE)))
    return [problem for problem, _ in near], [layout for _, layout in near]


def _tpot_of(group: PlanGroup) -> Second:
    """TPOT of the best pair of pools."""
    return min(group.pairs, key=lambda pair: pair.key).tpot * (1 + CLOSE)


def _best_pair(cases: Sequence[Deployment], layouts: Sequence[Layout | None], goal: Goal, tpot: Second) -> Choice | None:
    """The best pair of pools of a few layouts, within the TPOT of the plan's: near an optimum where it lies counts for nothing."""
    sets = [compile_candidates(case, layout, len(layout.tp)) for case, layout in zip(cases, layouts, strict=True) if layout is not None]
    pair = min(pairs(sets, goal, tpot)[0], key=lambda pair: pair.key, default=None)
    return None if pair is None else picked(pair, goal, whole_users=False)  # so that 1 % more of an input is seen


def _optimum(cases: Sequence[Deployment], layouts: Sequence[Layout | None], goal: Goal) -> Choice | None:
    """The best of a few layouts with a load that is not rounded to whole users, so that 1 % more of an input is seen.

    Pinned users, and the fewest for latency, stay as they are.
    """
    best: tuple[float, Candidates, int, float] | None = None
    users_stay = bool(goal.batches) or (goal.objective == "latency" and goal.rate is None)
    for case, layout in zip(cases, layouts, strict=True):
        if layout is None:
            continue
        w = compile_candidates(case, layout, len(layout.tp))
        if users_stay:
            loads = best_loads(w, goal)
            w, rows = loads.candidates, np.arange(loads.candidates.count)
            users, value = (np.broadcast_to(part, (w.count, 1))[:, 0] for part in (loads.batch, loads.value))
        else:
            rows, users, value = on_curve(w, goal)
        if len(rows):
            at = int(np.argmin(-value if goal.more else value))
            key = float(-value[at] if goal.more else value[at])
            if best is None or key < best[0]:
                best = key, w, int(rows[at]), float(users[at])
    if best is None:
        return None
    _, w, row, best_users = best
    return pick(w, row, best_users, goal, sized(w, np.ones((w.count, 1)), goal))


def has(case: Deployment, name: str) -> bool:
    """Whether the machine has the input."""
    if not name.endswith(("scale_up_bw", "scale_out_bw")):
        return True
    system, key = case.system, name.removeprefix("system.")
    joined = key == "scale_up_bw" or (system.scale_up_domain is not None and system.chips > system.scale_up_domain)
    return joined and _link(system, key) is not None


def _link(system: System, key: str) -> Any:
    return getattr(system, key) if getattr(system, key) is not None else getattr(system.chip, key)


def edited(case: Deployment, precision: Precision, name: str) -> Deployment:
    """The deployment with 1 % more of an input."""
    system, assumptions = case.system, case.assumptions
    if name == "chip.hbm_bw":
        system = replace(system, chip=replace(system.chip, hbm_bw=system.chip.need("hbm_bw") * STEP))
    elif name == "chip.hbm":
        sizes = {key: getattr(system.chip, key) for key in ("hbm", "hbm_reported")}
        more = {key: value * STEP for key, value in sizes.items() if value is not None}
        system = replace(system, chip=replace(system.chip, **more))
    elif name == "chip.peak":
        peaks = {key: getattr(system.chip, key) for key in dict.fromkeys(PEAK_OF.values())}
        more = {key: value * STEP for key, value in peaks.items() if value is not None}
        system = replace(system, chip=replace(system.chip, **more))
    elif name.startswith("system."):
        key = name.removeprefix("system.")
        system = replace(system, **{key: _link(system, key) * STEP})
    else:
        assumptions = replace(assumptions, **{name: getattr(assumptions, name) * STEP})
    return replace(case, system=system, assumptions=assumptions).in_formats(precision)


def _line(name: str, before: Choice, after: Choice, precision: Precision, goal: Goal, objective: Number) -> PlanRow:
    base = replace(after.case, system=before.case.system, assumptions=before.case.assumptions)  # formats are resolved again below

    def again() -> Deployment:
        with record():
            return edited(base, precision, name)

    def tree() -> Any:
        with record():
            return _gain(objective_of(before, before.case, goal), objective_of(after, edited(base, precision, name), goal), goal)

    number = float(_gain(objective, objective_of(after, after.case, goal), goal))
    extra = {"input": name, "elasticity": number}
    return PlanRow(kind="elasticity", pick=after, extra=extra, trees={"elasticity": tree}, edited=again)


def _gain(before: Number, after: Number, goal: Goal) -> Any:
    return elasticity(_ratio(after, before, goal), STEP)


def objective_of(pick: Choice, case: Deployment, goal: Goal) -> Any:
    """The objective of one choice, computed as for printing and explaining."""
    estimates = throughput_of(pick, case)
    replicas = pick.case.layout.replicas if pick.prefill is None else ONE_REPLICA  # a pair of pools counts as one replica
    size = ReplicaCounts(replicas=replicas, chips_used=estimates["chips_used"], chips=case.system.chips)
    return objective_value(goal, case, size, estimates["tpot_s"], estimates["request_s"])


PARTS = {"compute_s": "arithmetic", "weights_s": "reading weights", "kv_s": "reading the KV cache", "network_s": "collectives",
         "overhead_s": "fixed overhead", "transfer_s": "moving experts"}  # fmt: skip
LEAST_SHARE = 0.01  # of a gap, from which a part of it is told
NO_PREFILL = known(0.0, "no prefill", "s", "constant", "a decode part alone")


def parse(text: str) -> dict[str, Any]:
    """`tp=8 batch=64` (commas or spaces between) as values by name.

    >>> parse("tp=8 batch=64")
    {'tp': 8, 'batch': 64}
    """
    known_keys = {name: q for record in (Layout, Precision) for name, (q, _) in fields(record).items()}
    values = values_by_name(text, known_keys | {"batch": fields(Load)["batch"][0]}, "--current", "tp=8 batch=64")
    if "batch" not in values:
        raise BadValue("--current", text, 'a batch, such as "tp=8 batch=64"')
    return values


def values_by_name(text: str, known_keys: Mapping[str, Field], flag: str, example: str) -> dict[str, Any]:
    """KEY=VALUE pairs of a flag, with commas or spaces between, as values by name."""
    values: dict[str, Any] = {}
    for word in text.replace(",", " ").split():
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise BadValue(flag, word, f'KEY=VALUE pairs, such as "{example}"')
        if key not in known_keys:
            raise UnknownName(f"key of {flag}", key, known_keys, "one of " + ", ".join(known_keys))
        if key in values:
            raise BadValue(flag, text, f"{key} once")
        values[key] = scalar(value, known_keys[key], key)
    return values


def placed(case: Deployment, user_values: Mapping[str, Any]) -> Choice:
    """The user's layout and batch in the user's formats; omitted degrees are 1, omitted replicas fill the machine."""
    system = case.system
    precision = Precision(**{name: user_values.get(name, "") for name in ("weights", "kv", "compute")})
    check_compute(system.chip, precision)
    formed = case.in_formats(precision)
    degrees = {name: user_values.get(name, UNASKED[name]) for name in NAMES}
    if "replicas" not in user_values:
        chips = replica_chips(degrees["tp"], degrees["cp"], degrees["dp"], degrees["pp"])
        replicas = max(int(replicas_held(int(system.chips), domain_of(system), chips)), 1)
        degrees["replicas"] = default(replicas, "replicas", "", "as many as the machine holds")
    degrees = {name: value if hasattr(value, "kind") else user_input(int(value), name) for name, value in degrees.items()}
    stored = {part.name for parts in formed.formats.weights for part in parts}
    layout = check(Layout(**degrees), shape(case.work.blocks, *stored))
    batch = user_values["batch"] if hasattr(user_values["batch"], "kind") else user_input(int(user_values["batch"]), "batch")
    load = Load(batch=batch, prompt=case.load.prompt, output=case.load.output)
    return Choice(case=replace(formed, layout=layout, load=load))


def gain(best: Choice, current: Choice, goal: Goal) -> Any:
    """How many times better the objective of one choice is than that of another."""
    return _ratio(objective_of(best, best.case, goal), objective_of(current, current.case, goal), goal)


def gain_of_way(best: Choice, second: Choice, goal: Goal) -> Any:
    """How many times better one way is than another, one pool or prefill apart: as they are compared, at a load by what is paid."""
    payment = paid_for(best, goal)
    return gain(best, second, goal) if payment is None else paid_for(second, goal) / payment


def _ratio(best: Number, current: Number, goal: Goal) -> Any:
    return best / current if goal.more else current / best


def cause(best: Choice, current: Choice) -> str:
    """The parts of a request's chip time that the best layout saves, the largest first, in words; they sum to the gap."""
    mine, theirs = request_parts(current), request_parts(best)
    words = dict.fromkeys((*mine, *theirs))
    savings = {word: mine.get(word, 0.0) - theirs.get(word, 0.0) for word in words}
    word = max(savings, key=lambda key: savings[key])
    if savings[word] <= 0:
        return "no part of a request's chip time is larger than at the best layout"
    share = f"{mine.get(word, 0.0):.3g} chip-seconds per request against {theirs.get(word, 0.0):.3g}"
    ranks = f"batch {_batch(current)} on {_size(current)} against {_batch(best)} on {_size(best)}"
    gap = sum(savings.values())
    order = sorted((key for key in savings if abs(savings[key]) >= LEAST_SHARE * abs(gap)), key=lambda key: -savings[key])
    parts = ", ".join(f"{key} {savings[key]:+.2g}" for key in order)
    return f"{word}: {share} ({ranks}); the gap of {gap:.2g} is {parts}"


def _batch(pick: Choice) -> str:
    """Users of a replica; at a rate those whose answers it is at work on."""
    load = pick.case.load
    return str(int(load.batch)) if load.rate is None else f"{float(estimates_of(pick, pick.case)['decoding']):.3g}"


def _size(pick: Choice) -> str:
    count = int(pick.case.layout.chips)
    return f"{count} chip{'s' if count > 1 else ''} per replica"


def request_parts(pick: Choice) -> dict[str, float]:
    """Chip-seconds of a request by part; they sum to all chips over the rate."""
    if pick.prefill is not None:
        return _parts_apart(pick)
    case, layout, load = pick.case, pick.case.layout, pick.case.load
    estimates = estimate(case.at(layout, load))
    chips, batch = case.system.chips, estimates["decoding"]
    known_parts = {key: word for key, word in PARTS.items() if estimates[key] is not None}
    parts = {
        word: float(chips * request_s(batch, load.output, estimates[key], NO_PREFILL, ONE_REPLICA) / layout.replicas)
        for key, word in known_parts.items()
    }
    hidden = sum(estimates[key] for key in known_parts) - estimates["tpot_decode_s"]  # arithmetic that reads hide adds nothing to a step
    exposed = request_s(batch, load.output, max(estimates["compute_s"] - hidden, 0.0), NO_PREFILL, ONE_REPLICA)
    parts[PARTS["compute_s"]] = float(chips * exposed / layout.replicas)
    prefill = estimates["request_s"] - request_s(batch, load.output, estimates["tpot_decode_s"], NO_PREFILL, ONE_REPLICA)
    return parts | {"prefill": float(chips * max(prefill, 0.0) / layout.replicas)}


def _parts_apart(pick: Choice) -> dict[str, float]:
    """Chip-seconds of a request by part with prefill apart: those of the decode pool, the prefill pool's, and what waits or idles."""
    case, load = pick.case, pick.case.load
    estimates = estimates_of(pick, case)
    total, chips = case.system.chips * estimates["request_s"], estimates["decode_chips"] / case.layout.replicas
    batch, steps = estimates["decoding"], {key: word for key, word in PARTS.items() if estimates[key] is not None and key != "transfer_s"}
    hidden = sum(estimates[key] for key in steps) - estimates["tpot_decode_s"]
    times = {word: estimates[key] for key, word in steps.items()}
    times[PARTS["compute_s"]] = max(times[PARTS["compute_s"]] - hidden, 0.0)  # arithmetic that reads hide adds nothing to a step
    parts = {word: float(chips * request_s(batch, load.output, time, NO_PREFILL, ONE_REPLICA)) for word, time in times.items()}
    parts["prefill"] = float(estimates["prefill_chips"] * estimates["request_s"])
    return parts | {"waiting": float(total) - sum(parts.values())}


MOST_LEVERS = 3  # inputs that are planned again, of the largest elasticity
LEAST_GAIN = 1e-3  # share from which a change is told
DIGITS = 6  # of a value as it is printed, typed and planned with


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """1 % of an input, with the flags that set it, the best choice then, and the share by which the objective is better."""

    input: str
    percent: int  # 1 more or 1 less
    flags: str
    pick: Choice
    gain: float


def levers(group: PlanGroup, rows: Sequence[PlanRow]) -> list[Lever]:
    """The levers of a plan's best choice, the greatest gain first; `rows` are its elasticities, the largest first."""
    best, goal = group.best, group.goal
    if best is None or goal.is_loaded or goal.apart:  # of two pools the plan of a command is no search of a few layouts
        return []
    known = []
    for row in rows[:MOST_LEVERS]:
        name, percent = str(row.extra["input"]), 1 if row.extra["elasticity"] > 0 else -1
        changed = _changed(best.case, name, percent)
        pick = changed and _planned(group, *changed[1:])
        if changed and pick is not None:
            gain = float(pick.value / best.value if goal.more else best.value / pick.value) - 1
            if gain >= LEAST_GAIN:
                known.append(Lever(input=name, percent=percent, flags=changed[0], pick=pick, gain=gain))
    return sorted(known, key=lambda lever: -lever.gain)


def _changed(case: Deployment, name: str, percent: int) -> tuple[str, Any, Any] | None:
    """The flags that set an input to 1 % more or less, and the machine and assumptions with it; None where no flag can."""
    factor, system, assumptions = 1 + percent / 100, case.system, case.assumptions
    if name in fields(Assumptions):
        field = fields(Assumptions)[name][0]
        text = units.show(float(getattr(assumptions, name)) * factor, field.unit, DIGITS).replace(" ", "")
        return f"{flag(name)} {text}", system, replace(assumptions, **{name: scalar(text, field, flag(name))})
    keys = [name]
    if name == "chip.peak":
        labels = {PEAK_OF.get(case.formats.labels[2], "peak_bf16"), "peak_bf16"}
        keys = [f"chip.{peak}" for peak in sorted(labels) if getattr(system.chip, peak) is not None]
    texts = []
    for key in keys:
        part, _, fact = key.partition(".")
        value = getattr(system.chip if part == "chip" else system, fact)
        value = getattr(system.chip, fact) if value is None else value
        text = units.show(float(value) * factor, editable()[key].unit, DIGITS).replace(" ", "")
        system = edit(system, key, text)
        texts.append(f"--set {key}={text}")
    return " ".join(texts), system, assumptions


def _planned(group: PlanGroup, system: System, assumptions: Assumptions) -> Choice | None:
    """The best choice on a changed machine or under changed assumptions, of the layouts that were best or plainest."""
    searches, count = [], len(group.searches) // max(len(group.candidates), 1)
    pairs = list(zip(group.searched_problems, group.searches, strict=True))
    for start in range(0, len(pairs), count):
        problem = pairs[start][0]
        first = deployment(problem.case.model, system, Layout(), problem.case.load, problem.precision, assumptions)
        tried = [search.tried for _, search in pairs[start : start + count]]
        searches.append([best_loads(compile_candidates(first, w.layout, w.count), group.goal) if w.count else None for w in tried])
    return best_pick(searches, group.goal)
