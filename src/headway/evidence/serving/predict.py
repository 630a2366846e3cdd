"""Predictions of measured rows: each quantity of a row's mode with floor and 90 % interval, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.calibration.apply import Observations, as_started, under_runs
from headway.evidence.rows.row import MeasuredRow
from headway.evidence.rows.tasks import TOGETHER, Setup, Task, Unpredictable
from headway.evidence.serving.arrivals import carried
from headway.evidence.serving.machines import (
    ONLINE,
    MeasuredLoad,
    Quantities,
    dense_form,
    machines,
    quantities,
    rows,
    run_servers,
    served_times,
)
from headway.laws.serving.request import interval_low, queued_width_share, seats_width_share
from headway.laws.step.memory import fits_hbm
from headway.laws.step.step import network_s, step_s
from headway.performance.achieved import Efficiencies, efficiencies
from headway.performance.calibration.posterior import NO_RUNS, Posterior
from headway.performance.estimate import Estimate
from headway.performance.intervals import EXPERTS, QUEUED, SLOWER, UNLIKE, half
from headway.performance.nearest import ENGINES, NearestEntry, QuestionSubject, subject, unlike
from headway.performance.request import Requests, Server, unloaded_ttft_s
from headway.performance.transport import link_ends
from headway.performance.transport import measured as links_measured

QUANTITY = {  # kind -> quantity -> key of its interval width; "" is the default of the kind
    "decode": {"": "decode"}, "decode_e2e": {"": "decode"}, "prefill": {"": "prefill"},
    "static": {"": "offline"}, "offline": {"": "offline"},
    "serving": {"": "tpot", "ttft": "ttft"}, "serving_unloaded": {"": "tpot", "ttft": "ttft"}, "disagg": {"": "tpot", "ttft": "ttft_split"},
}  # fmt: skip


def width_key(kind: str, quantity: str) -> str:
    """Key of the interval width for a quantity of a kind of task.

    >>> width_key("serving", "ttft"), width_key("serving", "per_chip")
    ('ttft', 'tpot')
    """
    return QUANTITY[kind].get(quantity, QUANTITY[kind][""])


WIDTH_OF = {"ttft_split": "ttft"}  # too few clusters of split pools were measured for a width of their own
Known = Sequence[NearestEntry] | None  # groups of rows that a fit has seen; by default the shipped ones


def subject_of(setup: Setup) -> QuestionSubject:
    """What measured rows may be like, of a row."""
    return subject(setup.model, setup.system.chip, ENGINES[setup.engine], dense_form(setup), setup.layout)


def circumstances(tasks: Sequence[Task], m: Server, load: MeasuredLoad, known: Known = None) -> dict[str, Any]:
    """Circumstances that widen an interval (performance/intervals.py): how far each holds for each task, 0 to 1."""
    m = run_servers(m, load)
    seats = m.seats(np.nan_to_num(load.prompt, nan=1.0), np.nan_to_num(load.output, nan=1.0))
    share = np.minimum(np.nan_to_num(load.users, nan=0.0) / m.replicas / np.maximum(seats, 1.0), 1.0)
    setups = {id(task.setup): task.setup for task in tasks}  # which rows share
    about = {key: subject_of(setup) for key, setup in setups.items()}
    far = {key: unlike(case, known) for key, case in about.items()}
    return {
        UNLIKE: np.array([far[id(task.setup)] for task in tasks]),
        EXPERTS: np.array([about[id(task.setup)].routed for task in tasks], dtype=float),
        SLOWER: seats_width_share(share),
        QUEUED: queued_width_share(_queued_shares(tasks, m, load)),
    }


def _queued_shares(tasks: Sequence[Task], m: Server, load: MeasuredLoad) -> Any:
    """Share of each served row's TTFT that other users add to the request's own; all of it where prompts have workers of their own."""
    shares = np.array([float(task.kind == "disagg") for task in tasks])
    at = np.flatnonzero([task.kind == "serving" for task in tasks])
    if len(at):
        server, served_load = rows(m, at).online(), rows(load, at)
        requests = Requests(prompt=served_load.prompt, output=served_load.output, spread=served_load.spread)
        shares[at] = 1 - np.minimum(unloaded_ttft_s(server, requests, step_s) / served_times(server, served_load).ttft, 1.0)
    return shares


def spreads(
    kind: str, tasks: Sequence[Task], m: Server, load: MeasuredLoad, table: Efficiencies, token: np.ndarray, known: Known
) -> tuple[Quantities, Quantities]:
    """Halves of the 90 % interval as factors, per task and quantity: towards faster, and towards slower; `token` is the TPOT."""
    shares, links = circumstances(tasks, m, load, known), link_factors(kind, tasks, m, load, token)
    fast = {name: share for name, share in shares.items() if name != SLOWER}

    def halves(slower: bool) -> Quantities:
        factors: dict[str, Any] = {}
        for name in TIMES + RATES:
            key = width_key(kind, name)
            factors[name] = half(table, WIDTH_OF.get(key, key), shares if slower else fast) * links[slower]
        return Quantities(**factors)

    return halves(False), halves(True)


def link_factors(kind: str, tasks: Sequence[Task], m: Server, load: MeasuredLoad, token: np.ndarray) -> tuple[Any, Any]:
    """How much each row's interval widens, towards faster and slower, by links that were not measured; `token`: its TPOT."""
    server = m.online() if kind in ONLINE else m
    batch = np.where(np.isfinite(load.batch), load.batch, np.fmax(load.users / m.replicas, 1.0))
    setups = {id(task.setup): task.setup for task in tasks}  # which rows share
    known = {key: float(links_measured(setup.system, setup.layout.tp, setup.layout.cp)) for key, setup in setups.items()}
    certain = np.array([known[id(task.setup)] for task in tasks])
    return link_ends(network_s(server.step, batch), np.where(np.isfinite(token), token, np.inf), certain)  # no tokens: no part of them


MEMORY = "taken as if it fitted in memory"  # beginning of a flag on memory


def beyond(tasks: Sequence[Task], m: Server) -> list[tuple[str, ...]]:
    """Flags per task that exceeds the memory of its machine or the context of its model; `m` has a machine per task.

    The whole batch of some kinds must fit, of others one sequence. An engine's memory reserve makes no flag. A
    sequence is as long as it ends; of a decode step as the stated context.
    """

    def tokens(task: Task) -> float:
        if task.kind == "decode":
            return task.context or 1.0
        return (task.prompt or 0.0) + (0.0 if task.kind == "prefill" else task.output or 0.0)

    sequences = [task.batch if task.kind in TOGETHER and task.batch else 1.0 for task in tasks]
    longest = [tokens(task) for task in tasks]
    cache = np.ceil(np.array(sequences) / m.step.dp) * m.cache_bytes(np.array(longest))
    fits = np.broadcast_to(fits_hbm(m.room.weights, cache, m.room.card), len(tasks))
    flags: list[tuple[str, ...]] = []
    for index, task in enumerate(tasks):
        weights, hbm, most = m.room.weights[index], m.room.card[index], task.setup.model.max_context
        what, size = ("weights need", weights) if weights > hbm else ("weights and KV cache need", weights + cache[index])
        memory = f"{MEMORY}: {what} {size / 1e9:.4g} GB on the fullest chip, which has {hbm / 1e9:.4g} GB"
        limits = [] if fits[index] else [memory]
        if most is not None and longest[index] > most:
            excess = f"{longest[index]:.0f} tokens exceed the longest context of {task.setup.model.name}"
            limits.append(f"{excess}, {int(most)}: computed as if it took them")
        flags.append(tuple(limits))
    return flags


TIMES, RATES = ("ttft", "tpot"), ("rate", "per_chip")
# Field of MeasuredLoad -> field of Task.
LOAD_FIELDS = {"prompt": "prompt", "output": "output", "context": "context", "batch": "batch", "users": "concurrency", "spread": "spread",
               "rate": "rate", "requests": "requests", "max_num_seqs": "max_num_seqs"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Prediction of a row, times in seconds and rates in tokens per second; `why` is the reason if there is none."""

    row: MeasuredRow
    kind: str = ""
    setup: Setup | None = None
    ttft: Estimate | None = None  # the floor of a rate is its upper limit
    tpot: Estimate | None = None
    rate: Estimate | None = None
    per_chip: Estimate | None = None
    step_faster: float = 1.0  # halves of the interval of TPOT as factors, before a rate was known to be carried
    step_slower: float = 1.0
    usual_slower: float = 1.0  # the last without runs of one's own
    posterior: Posterior = NO_RUNS  # factors by runs of one's own, and which runs those are
    flags: tuple[str, ...] = ()
    why: str = ""


def predict(
    tasks: Sequence[Task | Unpredictable], table: Efficiencies | None = None, evidence: Known = None, runs: Observations = ()
) -> list[Prediction]:
    """Prediction of each task, in the order of tasks; intervals grow with the distance to `evidence`, and shrink with runs of one's own."""
    basis = _Basis(table=table or efficiencies(), evidence=evidence, runs=runs)
    known = [task for task in tasks if isinstance(task, Task)]
    predictions = dict(zip(map(id, known), _predicted(known, basis), strict=True))
    return [predictions[id(task)] if isinstance(task, Task) else Prediction(row=task.row, why=task.why) for task in tasks]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Basis:
    """What predictions rest on: fitted numbers, the rows that the fits have seen, and runs of one's own."""

    table: Efficiencies
    evidence: Known
    runs: Observations


def _predicted(tasks: Sequence[Task], basis: _Basis) -> list[Prediction]:
    """Predictions of tasks: all without drafts at once, and those of each setup that drafts, whose step is of another form."""
    if not any(task.setup.drafts for task in tasks):
        return _of_a_form(tasks, basis)
    groups: dict[int, list[int]] = {}
    for index, task in enumerate(tasks):
        groups.setdefault(id(task.setup) if task.setup.drafts else 0, []).append(index)
    pairs = (pair for at in groups.values() for pair in zip(at, _of_a_form([tasks[index] for index in at], basis), strict=True))
    return [prediction for _, prediction in sorted(pairs, key=lambda pair: pair[0])]


def _of_a_form(tasks: Sequence[Task], basis: _Basis) -> list[Prediction]:
    if not tasks:
        return []
    place, setups = placed(tasks)
    all_machines, prefill_place, predictions = machines(setups, basis.table), prefill_places(tasks), {}
    for kind in dict.fromkeys(task.kind for task in tasks):
        at = [index for index, task in enumerate(tasks) if task.kind == kind]
        kind_tasks = [tasks[index] for index in at]
        m, pool = rows(all_machines, place[at]), rows(all_machines, prefill_place[at]) if kind == "disagg" else None
        predictions |= dict(zip(at, _of_kind(kind, kind_tasks, m, pool, basis), strict=True))
    return [predictions[index] for index in range(len(tasks))]


def placed(tasks: Sequence[Task]) -> tuple[Any, list[Setup]]:
    """Distinct setups of the tasks, and each task's index among them."""
    setups = {id(setup): setup for task in tasks for setup in (task.setup, *([task.split.prefill] if task.split else []))}
    order = {key: index for index, key in enumerate(setups)}
    return np.array([order[id(task.setup)] for task in tasks]), list(setups.values())


def prefill_places(tasks: Sequence[Task]) -> Any:
    """Index of the setup of each task's prefill workers, as `placed` orders them; of its own where they are not stated."""
    order = {id(setup): index for index, setup in enumerate(placed(tasks)[1])}
    return np.array([order[id(task.split.prefill if task.split else task.setup)] for task in tasks])


def load_of(tasks: Sequence[Task]) -> MeasuredLoad:
    """Loads of tasks as arrays; NaN for a field that a task does not state."""

    def column(records: Sequence[Any], key: str) -> np.ndarray:
        values = [None if record is None else getattr(record, key) for record in records]
        return np.array([np.nan if value is None else float(value) for value in values])

    loads = {name: column(tasks, key) for name, key in LOAD_FIELDS.items()}
    splits = [task.split for task in tasks]
    return MeasuredLoad(**loads, **{name: column(splits, name) for name in ("prefill_workers", "decode_workers")})


def _of_kind(kind: str, tasks: Sequence[Task], m: Server, pool: Server | None, basis: _Basis) -> list[Prediction]:
    load, m = load_of(tasks), as_started(tasks, m, basis.runs, basis.table)
    calibration = under_runs(kind, tasks, m, load, pool, basis.runs)
    server, workers = (calibration.server, calibration.pool) if calibration else (m, pool)
    expected, floor = quantities(kind, server, load, False, workers), quantities(kind, m, load, True, pool)
    if kind == "disagg":  # the floor splits the chips again for the highest rate, which may lengthen TTFT or TPOT
        floor = replace(floor, ttft=np.fmin(floor.ttft, expected.ttft), tpot=np.fmin(floor.tpot, expected.tpot))
    faster, slower = spreads(kind, tasks, m, load, basis.table, expected.tpot, basis.evidence)
    usual = slower.tpot.tolist()
    if calibration:
        faster, slower = map(calibration.narrowed, (faster, slower))
    limits, predictions, steps = beyond(tasks, m), [], (faster.tpot.tolist(), slower.tpot.tolist())
    if kind == "serving":
        rates = carried(server, load, expected, floor, faster, slower)
        expected, faster, slower = rates.expected, rates.faster, rates.slower
        limits = [(*limit, flag) if flag else limit for limit, flag in zip(limits, rates.flags, strict=True)]
    columns = (expected, floor, faster, slower)
    values = {name: list(zip(*(getattr(column, name).tolist() for column in columns), strict=True)) for name in TIMES + RATES}
    for index, task in enumerate(tasks):
        estimates: dict[str, Any] = {}
        for name in TIMES + RATES:
            estimates[name] = _estimate(*values[name][index], time=name in TIMES)
        if task.output == 1:  # vLLM divides by the tokens after the first
            estimates["tpot"] = None
        predictions.append(Prediction(
            row=task.row, kind=kind, setup=task.setup, flags=(*limits[index], *task.flags), step_faster=steps[0][index],
            step_slower=steps[1][index], posterior=calibration.posteriors[index] if calibration else NO_RUNS,
            usual_slower=usual[index], **estimates,
        ))  # fmt: skip
    return predictions


def _estimate(expected: float, floor: float, faster: float, slower: float, time: bool) -> Estimate | None:
    """Prediction with its interval, cut at the floor: the low end of a time, the high end of a rate."""
    if not np.isfinite(expected):
        return None
    if time:
        low, high = float(interval_low(expected, floor, faster)), float(expected * slower)
    else:
        low, high = expected / slower, min(expected * faster, max(floor, expected))
    return Estimate(expected=float(expected), floor=float(floor), low=low, high=high)
