"""The chosen point of a search: a layout and a batch with the origin of each number, and its row in a plan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headway.core.catalog import fold
from headway.core.errors import BadValue
from headway.core.quantity import known, user_input
from headway.core.table import Axis, Table, from_rows
from headway.core.trace import record
from headway.hardware.system import System
from headway.laws.economics.cost import usd_per_1k_requests
from headway.performance.estimate import Deployment, estimate, throughput
from headway.performance.layout import NAMES, Layout
from headway.performance.workload import Load
from headway.serving.plan.candidates import PLAIN_WITHIN, Candidates, ReplicaCounts, oddness
from headway.serving.plan.problem import Goal
from headway.serving.plan.search import BestLoads
from headway.serving.pools import POOL_DEGREES, estimate_pools, hand_over_link
from headway.serving.serve import explained_value, filled, recorded

SAID_BY = {"input": "elasticity", "elasticity": "elasticity", "gain": "current", "cause": "current"}
POOLED = (*(f"prefill_{name}" for name in POOL_DEGREES), "prefill_chips", "decode_chips", "transfer_s")
OTHER_WAYS = ("together", "apart")  # kinds of the row beside the best that has the other way of prefill: in one pool, apart
TIE = 1e-12  # values closer than this are equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One candidate of a plan: the deployment, its layout that of the decode pool where there are two, and its objective."""

    case: Deployment
    value: float = float("nan")  # value of the objective
    prefill: Layout | None = None  # layout of the prefill pool
    order: tuple[float, ...] = ()  # of equal values the lower is better: time for a user, then chips in use


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One row of a plan: its candidate, its kind, and values beyond the columns of `serve`."""

    kind: str
    pick: Choice
    extra: dict[str, Any] = field(default_factory=dict)
    trees: dict[str, Callable[[], Any]] = field(default_factory=dict)  # explanations of keys that `serve` lacks
    edited: Callable[[], Deployment] | None = None  # edits the deployment again, so that an explanation shows the edit


def pick(w: Candidates, row: int, batch: float, goal: Goal, size: ReplicaCounts, value: float = float("nan")) -> Choice:
    """The choice of one layout of a search, with `batch` users per replica or at the goal's rate, in a number of replicas."""

    def at_row(column: Any) -> int:
        return int(np.broadcast_to(column, (w.count, 1))[row, 0])

    case = w.case
    layout = Layout(**{name: _number(at_row(getattr(w.layout, name)), name, name in goal.pinned) for name in NAMES})
    users = {"rate": goal.rate} if goal.rate is not None else {"batch": _number(batch, "batch", bool(goal.batches))}
    case = replace(case, layout=layout, load=Load(prompt=case.load.prompt, output=case.load.output, **users))
    if goal.sizing:  # the replicas that the load needs, and the chips too if their number is free
        if goal.free:
            case = replace(case, system=with_chips(case.system, at_row(size.chips), goal.spare))
        carried = known(at_row(size.replicas), "replicas", "", "derived", "as many as carry the load", "now")
        case = replace(case, layout=replace(layout, replicas=carried))
    return Choice(case=case, value=value)


def with_chips(system: System, chips: int, spare: int) -> System:
    """The machine in as many chips as carry the load: whole nodes, or cards where clouds rent them singly."""
    domain, bare = int(system.scale_up_domain), fold(system.name) == fold(system.chip.name)
    name = f"{chips}x{fold(system.chip.name)}" if bare else f"{chips // int(system.chips)}x{system.name}"
    rest = f", as many as carry the load{f' and {spare} spare' if spare else ''}"
    source = f"{chips} cards{rest}" if system.rented else f"{chips // domain} whole nodes of {domain}{rest}"
    count = known(chips, f"{name}.chips", "", "derived", source, "now")
    return replace(system, name=name, chips=count, scale_up_domain=count if chips < domain else system.scale_up_domain)


def _number(value: float, name: str, typed: bool) -> Any:
    number = int(value) if value == int(value) else float(value)
    return user_input(number, name) if typed else known(number, name, "", "derived", "chosen by the search of plan", "now")


def choose(searches: Sequence[BestLoads], goal: Goal) -> Choice | None:
    """The best choice of all layouts, deterministic: `_keys` states how ties are broken."""
    parts = [_keys(index, best, goal) for index, best in enumerate(searches) if best.candidates.count]
    if not parts:
        return None
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    keys = [_levels(column) for column in columns[:-2]]
    if goal.plainest and goal.objective != "latency":
        value = columns[0]
        near = value <= value.min() + PLAIN_WITHIN * abs(value.min())
        odd = np.concatenate([oddness(best.candidates)[:, 0] for best in searches if best.candidates.count])
        keys = [~near, np.where(near, odd, 0), *keys]
    first = np.lexsort((*columns[-1:-3:-1], *reversed(keys)))[0]
    best, row = searches[int(columns[-2][first])], int(columns[-1][first])
    chips, time = (np.broadcast_to(part, best.batch.shape) for part in (best.size.chips_used, best.point.tpot))
    choice = pick(best.candidates, row, float(best.batch[row, 0]), goal, best.size, float(best.value[row, 0]))
    return replace(choice, order=(float(time[row, 0]), float(chips[row, 0])))


def paid_for(choice: Choice, goal: Goal) -> Any:
    """What fixed and free machines are compared by at a load: USD/h, or chips; None where it is the objective."""
    case = choice.case
    if goal.is_loaded and goal.objective == "cost":
        return case.system.chips if case.price is None else case.system.chips * case.price.value
    return case.system.chips if goal.rate is not None and goal.objective == "throughput" else None


def _levels(column: np.ndarray) -> Any:
    """Ranks of a column, values closer than TIE being equal."""
    order = np.argsort(column, kind="stable")
    values = column[order]
    step = np.concatenate([[0], np.cumsum(values[1:] > values[:-1] + TIE * np.abs(values[:-1]))])
    levels = np.empty(len(column), dtype=np.int64)
    levels[order] = step
    return levels


def _keys(index: int, best: BestLoads, goal: Goal) -> list[Any]:
    """Keys by which layouts are compared, in order; smaller is better."""
    layout, size = best.candidates.layout, best.size
    first, second = best.point.tpot, size.chips_used  # ties go to the faster
    if not goal.is_loaded and goal.objective in ("latency", "chips"):
        first, second = size.chips_used, 1 / best.point.rate / size.replicas
    keys = [-best.value if goal.more else best.value, first, second]
    keys += [best.candidates.compiled.chips, *(getattr(layout, name) for name in ("tp", "pp", "dp", "ep", "cp")), best.batch, index]
    count = best.candidates.count
    return [*(np.broadcast_to(np.asarray(key, dtype=float), (count, 1))[:, 0] for key in keys), np.arange(count)]


def table(lines: Sequence[PlanRow], notes: Sequence[str]) -> Table:
    """The table of a plan; rows of one request are computed together."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, line in enumerate(lines):
        case = line.pick.case
        key = id(case.formats if line.pick.prefill is None else line.pick), id(case.system), id(case.assumptions), case.load.rate is None
        groups.setdefault(key, []).append(index)
    pooled = any(line.pick.prefill for line in lines)
    blank = dict.fromkeys(("input", "elasticity", "gain", "cause", *(POOLED if pooled else ())))
    rows: list[dict[str, Any]] = [{}] * len(lines)
    for indices in groups.values():
        for index, row in zip(indices, _rows([lines[index].pick for index in indices]), strict=True):
            rows[index] = blank | row | {"usd_per_1k_requests": requests_usd(row), "kind": lines[index].kind} | lines[index].extra

    @functools.lru_cache(maxsize=1)  # the columns of a row share it
    def recorded_row(row: int) -> dict[str, Any]:
        choice, edited = lines[row].pick, lines[row].edited
        case = choice.case
        return recorded(
            lambda: (case if edited is None else edited()).replayed(case.layout, case.load),
            lambda deployed: _estimated(choice, deployed, estimate),
        )

    return from_rows(rows, notes, lambda row, key: explained(lines[row], key, lambda: recorded_row(row)))


def requests_usd(row: Mapping[str, Any]) -> Any:
    """Cost of a thousand requests, prompt and answer: at the rate, else at what the replicas finish; None without a price."""
    hour, rate = row.get("usd_per_hour"), row["capacity_req_per_s"] if row.get("rate") is None else row["rate"]
    return None if hour is None or not rate else usd_per_1k_requests(hour, rate)


def _rows(picks: Sequence[Choice]) -> list[dict[str, Any]]:
    """Rows of choices that differ in layout and load alone."""
    first, cases = picks[0], [choice.case for choice in picks]
    layout, load = cases[0].layout, cases[0].load
    if len(picks) > 1:
        layout = Layout(**{name: np.array([int(getattr(case.layout, name)) for case in cases]) for name in NAMES})
        name = "batch" if load.rate is None else "rate"
        load = Load(prompt=load.prompt, output=load.output, **{name: np.array([float(getattr(case.load, name)) for case in cases])})
    axes = (Axis("row", range(len(picks))),)
    case = cases[0].at(layout, load)
    if first.prefill is None:
        return Table(axes, filled(case, axes)).rows()
    estimates = estimate_pools(case, first.prefill, hand_over_link(case.system))
    return Table(axes, filled(case, axes, estimates) | {key: estimates[key] for key in POOLED}).rows()


def explained(line: PlanRow, key: str, recorded_row: Callable[[], dict[str, Any]]) -> Any:
    """One number of one row as a tree of laws."""
    if key in line.trees:
        return line.trees[key]()
    if key in SAID_BY:
        raise BadValue("explain", key, f'a row of kind {SAID_BY[key]}, as with --where "kind = {SAID_BY[key]}"')
    if key == "usd_per_1k_requests":
        with record():
            return requests_usd(recorded_row())
    values = recorded_row()
    if line.pick.prefill is not None and values.get(key) is None:
        raise BadValue("explain", key, "a numeric column that applies to this row, such as tpot_s, ttft_s or transfer_s")
    return explained_value(values, key)


def estimates_of(choice: Choice, case: Deployment) -> dict[str, Any]:
    """Every estimated quantity of a choice in a deployment, computed as for printing and explaining."""
    return _estimated(choice, case.replayed(choice.case.layout, choice.case.load), estimate)


def throughput_of(choice: Choice, case: Deployment) -> dict[str, Any]:
    """Of `estimates_of`, what an objective needs: chips, TPOT and time between requests."""
    return _estimated(choice, case.replayed(choice.case.layout, choice.case.load), throughput)


def _estimated(choice: Choice, case: Deployment, law: Callable[[Deployment], dict[str, Any]]) -> dict[str, Any]:
    return law(case) if choice.prefill is None else estimate_pools(case, choice.prefill, hand_over_link(case.system))
