"""Measurements beside their predictions: residuals, statistics of the errors by any field, and the parts of each row's step."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headway.evidence.rows.row import MeasuredRow
from headway.evidence.rows.tasks import Task, Unpredictable
from headway.evidence.serving.machines import dense_form, machines
from headway.evidence.serving.predict import TIMES, Prediction
from headway.laws.collectives.cost import collectives_s
from headway.laws.serving.request import causal_pairs
from headway.laws.step import step
from headway.laws.step.parts import place
from headway.models.model_class import model_class
from headway.performance.achieved import Efficiencies, family
from headway.performance.nearest import layout_kind
from headway.performance.request import Server

DATED = re.compile(r"(20\d\d)-(\d\d)")
UNSCORED = "C"  # reliability that is never scored
SERVED = ("serving", "serving_unloaded", "disagg")
# Quantities scored for each kind of row: in each bracket the first one measured, because the others follow from it.
RATE = ("per_chip", "rate")
MEASURES = {
    "decode": (("tpot", *RATE),), "decode_e2e": ((*RATE, "tpot"),), "prefill": (("ttft", *RATE),), "static": ((*RATE, "tpot"), ("ttft",)),
    "offline": (RATE, ("tpot",)), **dict.fromkeys(SERVED, (("tpot",), ("ttft",), RATE)),
}  # fmt: skip
MEASURE_OF = {"decode": "decode", "decode_e2e": "decode", "prefill": "prefill"}  # measure of the kinds that have a single one


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """A measured and predicted quantity: seconds or tokens per second; the floor of a rate is its upper limit."""

    id: str
    source: str
    chip: str
    family: str  # chip family, by kernels
    engine: str
    model: str
    model_class: str
    kind: str
    quantity: str  # ttft, tpot, rate or per_chip
    measured: float
    predicted: float
    floor: float
    lo: float
    hi: float
    fold: str = ""  # rows left out of the fit of this prediction
    line: int = 0
    reliability: str = ""
    roofline: str = ""
    form: str = ""  # of most dense weights, as kernels have it
    layout: str = ""  # kind of layout
    quarter: str = ""  # of a year in which it was measured

    @property
    def log_ratio(self) -> float:
        """ln(predicted / measured)."""
        return math.log(self.predicted / self.measured)

    @property
    def covered(self) -> bool:
        """Whether the measurement lies within the 90 % interval."""
        return self.lo <= self.measured <= self.hi

    @property
    def cluster(self) -> str:
        """Rows that err together: a model on a chip with an engine from a source."""
        return "|".join((self.model, self.chip, self.engine, self.source))

    @property
    def is_time(self) -> bool:
        """Whether the quantity is a time (smaller is faster)."""
        return self.quantity in TIMES

    @property
    def limit_share(self) -> float:
        """Measured speed over the speed at the floor; above 1 the measurement beats the roofline."""
        return self.floor / self.measured if self.is_time else self.measured / self.floor

    @property
    def measure(self) -> str:
        """Name of the measure in the tables of errors."""
        return measure(self.kind, self.quantity)


def measure(kind: str, quantity: str) -> str:
    """Name of the measure for a quantity of a kind of row.

    >>> measure("decode", "tpot"), measure("disagg", "tpot"), measure("offline", "per_chip"), measure("static", "ttft")
    ('decode', 'served TPOT', 'throughput', 'TTFT')
    """
    if kind in MEASURE_OF:
        return MEASURE_OF[kind]
    if quantity == "ttft":
        return "TTFT"
    if kind in SERVED:
        return "served TPOT" if quantity == "tpot" else "served rate"
    return "TPOT at throughput" if quantity == "tpot" else "throughput"


def measured(row: MeasuredRow, quantity: str) -> float | None:
    """Measured value of a quantity in a row; None if the row does not state it."""
    if quantity == "rate":
        return row.input_tok_per_s if row.mode == "prefill" else row.output_tok_per_s
    return {"ttft": row.ttft_s, "tpot": row.tpot_s, "per_chip": row.tok_per_s_chip}[quantity]


def quarter(row: MeasuredRow) -> str:
    """Quarter of a year in which a row was measured; "" without a date.

    >>> from types import SimpleNamespace as Row
    >>> quarter(Row(month="2026-02", date="")), quarter(Row(month="", date=""))
    ('2026-Q1', '')
    """
    match = DATED.match(row.month or row.date)
    return f"{match[1]}-Q{(int(match[2]) + 2) // 3}" if match else ""


def residuals(tasks: Sequence[Task | Unpredictable], predictions: Sequence[Prediction], folds: Sequence[str] = ()) -> list[Residual]:
    """Residual of every scored measurement; rows of reliability C or without a prediction are left out."""
    all_residuals: list[Residual] = []
    for task, prediction, fold in zip(tasks, predictions, folds or [""] * len(tasks), strict=True):
        if not isinstance(task, Task) or task.row.reliability == UNSCORED:
            continue
        row, chip, model = task.row, task.setup.system.chip, task.setup.model
        is_load = task.rate is not None and task.concurrency is None  # then its rates are what arrives, not what is predicted
        for names in MEASURES[task.kind]:
            for quantity in names:
                value, estimate = measured(row, quantity), getattr(prediction, quantity)
                if value is None or estimate is None or (is_load and quantity in RATE):
                    continue
                all_residuals.append(Residual(
                    id=row.id, source=row.source, chip=chip.name, family=family(chip), engine=task.setup.engine, model=model.name,
                    model_class=model_class(model), kind=task.kind, quantity=quantity, measured=value, predicted=estimate.expected,
                    floor=estimate.floor, lo=estimate.low, hi=estimate.high, fold=fold, line=row.line, reliability=row.reliability,
                    roofline=row.roofline, form=dense_form(task.setup), layout=layout_kind(task.setup.layout), quarter=quarter(row),
                ))  # fmt: skip
                break
    return all_residuals


ORDER = ("served TPOT", "TTFT", "served rate", "decode", "prefill", "throughput", "TPOT at throughput")
SLACK = 1e-9  # rounding allowed before a measurement counts as beyond the floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Error statistics of a set of predictions."""

    n: int
    median_error: float  # median of |predicted / measured - 1|
    p90_log: float  # 90th percentile of |ln(predicted / measured)|
    bias: float  # median of ln(predicted / measured)
    coverage: float  # share of measurements within the 90 % interval
    below_floor: float  # share of measurements faster than the floor
    width: float  # median of hi / lo


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """Error statistics of one measure in one group of rows."""

    by: str  # field of Residual, or "all"
    name: str
    measure: str
    stats: Stats


def stats(residuals: Sequence[Residual]) -> Stats:
    """Error statistics of residuals, at least one."""
    logs = np.array([residual.log_ratio for residual in residuals])
    return Stats(
        n=len(residuals),
        median_error=float(np.median(np.abs(np.expm1(logs)))),
        p90_log=float(np.percentile(np.abs(logs), 90)),
        bias=float(np.median(logs)),
        coverage=sum(bool(residual.covered) for residual in residuals) / len(residuals),
        below_floor=sum(bool(residual.limit_share > 1 + SLACK) for residual in residuals) / len(residuals),
        width=float(np.median([residual.hi / residual.lo for residual in residuals])),
    )


def grouped(residuals: Iterable[Residual], by: str) -> list[ErrorGroup]:
    """Error statistics grouped by a field of Residual, or "all"; in the order of measures, then by size."""
    members_by_group: dict[tuple[str, str], list[Residual]] = {}
    for residual in residuals:
        members_by_group.setdefault((residual.measure, "all" if by == "all" else getattr(residual, by)), []).append(residual)
    groups = [ErrorGroup(by=by, name=name, measure=measure, stats=stats(members)) for (measure, name), members in members_by_group.items()]
    return sorted(groups, key=lambda group: (ORDER.index(group.measure), -group.stats.n, group.name))


def worst(residuals: Iterable[Residual], count: int) -> list[Residual]:
    """The `count` residuals of each measure with the largest error."""
    ranking = sorted(residuals, key=lambda residual: -abs(residual.log_ratio))
    return [residual for measure in ORDER for residual in [candidate for candidate in ranking if candidate.measure == measure][:count]]


BY = ("all", "source", "chip", "model", "engine", "kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """Score of a table of runs: residuals, errors by group, and rows without a residual."""

    residuals: tuple[Residual, ...]
    groups: tuple[ErrorGroup, ...]
    rows: int  # scored rows
    unscored: int  # rows of reliability C
    unmeasured: int  # rows without a measurement of any predicted quantity
    unpredicted: tuple[tuple[str, int], ...]  # rows without a prediction: reason and line


def score(tasks: Sequence[Task | Unpredictable], predictions: Sequence[Prediction]) -> ScoreRow:
    """Errors of predictions, grouped by each field of BY."""
    all_residuals = residuals(tasks, predictions)
    scored = [task for task in tasks if task.row.reliability != UNSCORED]
    known = [task for task in scored if isinstance(task, Task)]
    silent = sum(not any(measured(task.row, name) is not None for names in MEASURES[task.kind] for name in names) for task in known)
    return ScoreRow(
        residuals=tuple(all_residuals),
        groups=tuple(group for by in BY for group in grouped(all_residuals, by)),
        rows=len({(residual.line, residual.id) for residual in all_residuals}),
        unscored=len(tasks) - len(scored),
        unmeasured=silent,
        unpredicted=tuple((task.why, task.row.line) for task in scored if isinstance(task, Unpredictable)),
    )


NOTHING = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPart:
    """A part of a step and its time at the expected efficiency."""

    name: str
    seconds: float


def parts(task: Task, prediction: Prediction, table: Efficiencies | None = None) -> tuple[StepPart, ...]:
    """Parts of a row's step, largest first: of the prefill for a prefill row, else of a decode step."""
    m = machines([task.setup], table)
    step_parts = _prefill(task, m) if task.kind == "prefill" else _decode(task, prediction, m)
    return tuple(sorted(step_parts, key=lambda part: -part.seconds))


def _decode(task: Task, prediction: Prediction, m: Server) -> Sequence[StepPart]:
    batch = np.array([_batch(task, prediction)])
    kv_tokens = batch * np.array([float(task.context or 1.0)])
    times = {
        "compute": step.compute_s(m.step, batch, kv_tokens), "weights": step.weights_s(m.step, batch),
        "kv": step.kv_s(m.step, batch, kv_tokens), "network": step.network_s(m.step, batch),
        "overhead": step.overhead_s(m.step, batch, kv_tokens),
    }  # fmt: skip
    return [StepPart(name=name, seconds=float(np.ravel(value)[0])) for name, value in times.items()]


def _batch(task: Task, prediction: Prediction) -> float:
    """Sequences that a replica decodes at once: as stated, else from the predicted rate by Little's law."""
    if task.batch is not None:
        return task.batch
    if prediction.rate is None or prediction.tpot is None:
        return 1.0
    return max(prediction.rate.expected * prediction.tpot.expected / task.setup.replicas, 1.0)


def _prefill(task: Task, m: Server) -> Sequence[StepPart]:
    prompt, batch = float(task.prompt or 1.0), float(task.batch or 1.0)
    at = place(m.step, NOTHING, NOTHING, np.array([batch * prompt]), np.array([batch * causal_pairs(prompt)]))
    times = {
        "compute": step.work_s(m.step, at), "network": collectives_s(m.step.collectives, at.tokens),
        "overhead": step.fixed_s(m.step, at),
    }  # fmt: skip
    return [StepPart(name=name, seconds=float(np.ravel(value)[0])) for name, value in times.items()]
