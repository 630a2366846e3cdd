"""`headway predict ROWS.csv`: predicted measurements for each row of a table of serving or training runs."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.answers import arguments
from headway.core.columns import Column, column
from headway.core.listing import Listing
from headway.core.notes import note
from headway.core.question import Question
from headway.evidence.calibration.validity import versions
from headway.evidence.rows.row import need_rows, read_rows
from headway.evidence.rows.run_keys import task_key
from headway.evidence.rows.tasks import Setup, Task, Unpredictable, tasks
from headway.evidence.serving.predict import MEMORY, Prediction
from headway.evidence.serving.predict import predict as predict_serving
from headway.evidence.training.predict import predict as predict_training
from headway.evidence.training.row import read_training_rows
from headway.performance.calibration.in_force import ROOM, Calibrations, calibrations
from headway.performance.calibration.posterior import NO_RUNS
from headway.performance.calibration.start import logged_start
from headway.performance.formats import floor_note
from headway.report import output
from headway.report.words import sentence

MOST_REASONS = 6
MOST_LINES = 5
MOST_FLAGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFile:
    """Rows of a file: tasks, predictions, and malformed lines."""

    tasks: Sequence[Any]
    predictions: Sequence[Any]
    bad: Sequence[Any]


def predicted(rows: Sequence[Any], bad: Sequence[Any], args: Question) -> MeasuredFile:
    """Predictions of rows, with the user's catalogue."""
    row_tasks, force = tasks(rows, arguments.catalog(args)), calibrations()
    predictions = predict_serving(row_tasks, runs=force.observations if force else ())
    if force:
        tell(force, predictions)
        tell_starts(force, row_tasks)
        note(*versions(row_tasks, predictions, force.observations))
    return MeasuredFile(tasks=row_tasks, predictions=predictions, bad=bad)


def tell_starts(force: Calibrations, row_tasks: Iterable[Task | Unpredictable]) -> None:
    """Keep which logs of engines' starts rows went by."""
    for key in {task_key(task): None for task in row_tasks if isinstance(task, Task)}:
        start = logged_start(force.observations, key)
        if start is not None:
            force.tell(start.runs, ROOM, half=start.room, usual=1)


def predicted_trainings(rows: Sequence[Any], args: Question) -> Sequence[Any]:
    """Predictions of training rows, with the user's catalogue."""
    force, where = calibrations(), arguments.catalog(args)
    if force is None:
        return predict_training(rows, where)
    predictions = predict_training(rows, where, runs=force.observations)
    for prediction in predictions:
        force.tell_clash(prediction.posterior)
        if prediction.posterior.runs and prediction.step:
            force.tell(prediction.posterior.runs, "step", half=prediction.step.high / prediction.step.expected, usual=prediction.usual)
    return predictions


def tell(force: Calibrations, predictions: Iterable[Prediction]) -> None:
    """Keep which runs of the user's own predictions went by, and how much narrower TPOT is for them."""
    for prediction in predictions:
        force.tell_clash(prediction.posterior)
        if prediction.posterior.runs:
            force.tell(prediction.posterior.runs, "tpot", half=prediction.step_slower, usual=prediction.usual_slower,
                       month=prediction.row.month or prediction.row.date)  # fmt: skip


def at_line(line: int, why: str) -> str:
    """Reason with the line of the file it refers to."""
    return f"line {line}: {why}"


def frequent_flags(flags: Sequence[str]) -> list[str]:
    """Lines on the most frequent assumptions about what rows do not state."""
    counts = sorted({flag: flags.count(flag) for flag in set(flags)}.items(), key=lambda item: (-item[1], item[0]))[:MOST_FLAGS]
    return [f"assumed in {count:,} row{'s' if count > 1 else ''}: {flag}" for flag, count in counts]


def floor_notes(predictions: Iterable[Any]) -> list[str]:
    """One note on what the floors are of, where served rows' weights mix formats: for the most rows, and how many rest."""
    setups = [setup for prediction in predictions if isinstance(setup := getattr(prediction, "setup", None), Setup)]
    texts = {id(setup): floor_note(setup.work, setup.formats) for setup in {id(setup): setup for setup in setups}.values()}
    lines = [f"{setup.model.name}: {texts[id(setup)]}" for setup in setups if texts[id(setup)]]
    if not lines:
        return []
    most = max(sorted(set(lines)), key=lines.count)
    rest = len(lines) - lines.count(most)
    return [most + (f" ({rest:,} more row{'s' if rest > 1 else ''} of other weights that mix formats)" if rest else "")]


def reason_summary(reasons: Iterable[str]) -> str:
    """Reasons without details, by frequency."""
    return reasons_with_lines((reason, 0) for reason in reasons)


def reasons_with_lines(reasons: Iterable[tuple[str, int]]) -> str:
    """Reasons without details, by frequency, with the first lines of each; line 0 is omitted."""
    lines_by_reason: dict[str, list[int]] = {}
    for reason, line in reasons:
        lines_by_reason.setdefault(reason.partition("; ")[0], []).append(line)
    often = sorted(lines_by_reason.items(), key=lambda item: -len(item[1]))
    parts = [f"{name} ({_at(lines)})" if len(lines) > 1 or len(often) > 1 or lines[0] else name for name, lines in often[:MOST_REASONS]]
    rest = sum(len(lines) for _, lines in often[MOST_REASONS:])
    return "; ".join(parts) + (f"; other reasons ({rest})" if rest else "")


def _at(lines: Sequence[int]) -> str:
    if not lines[0]:
        return str(len(lines))
    line_list = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines[:MOST_LINES]))}"
    return f"{len(lines):,}: {line_list}, ..." if len(lines) > MOST_LINES else line_list


MS, TERA, GIB = 1e-3, 1e12, 2.0**30
ENDS = ("lo", "hi")
NONE_PREDICTED = 2  # exit status where no row could be predicted
ABOUT_FILE = "CSV whose first line names columns: at least id, model, hardware, mode"
REMARKS = ("flags", "why", "calibrated_by", "calibrated_runs")  # columns after the quantities
ABOUT = {
    "id": Column("", "the row's id, as given"),
    "flags": Column("", "what was inferred where the row is silent, joined by '; '"),
    "why": Column("", "the line, and why there is no prediction; or null"),
    **{key: column(key) for key in ("calibrated_by", "calibrated_runs")},
}


@dataclass(frozen=True, kw_only=True)
class RowQuantity:
    """A predicted quantity of a table: its column and those of its ends, its name in a prediction, the SI value of the column's unit."""

    key: str
    name: str
    unit: float = 1.0
    ends: tuple[str, ...] = ENDS

    @functools.cached_property  # of every row of a table
    def keys(self) -> tuple[str, ...]:
        """Its columns, the expected value first."""
        return (self.key, *(f"{self.key}_{end}" for end in self.ends))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTable:
    """How a table of predicted rows is shown: its quantities, the columns that people see, a part of rows to count in the headline."""

    quantities: tuple[RowQuantity, ...]
    columns: Mapping[str, Column]
    view: tuple[str, ...]
    noted: str = ""  # beginning of a flag

    def blank(self, name: str) -> dict[str, Any]:
        """Row with all columns empty but the name."""
        keys = (*(key for quantity in self.quantities for key in quantity.keys), *REMARKS)
        return {"id": name} | dict.fromkeys(keys)

    def row(self, prediction: Any) -> dict[str, Any]:
        """Row of a prediction, in the units of the columns."""
        row = self.blank(prediction.row.id)
        for quantity in self.quantities:
            estimate = getattr(prediction, quantity.name)
            if estimate is not None:
                values = {"lo": estimate.low, "hi": estimate.high, "floor": estimate.floor}
                sizes = (estimate.expected, *(values[end] for end in quantity.ends))
                row |= {key: size / quantity.unit for key, size in zip(quantity.keys, sizes, strict=True)}
        runs = getattr(prediction, "posterior", NO_RUNS)
        if runs.runs:
            row |= {"calibrated_by": ", ".join(runs.profiles), "calibrated_runs": len(runs.runs)}
        row["flags"] = "; ".join(prediction.flags) or None
        row["why"] = at_line(prediction.row.line, prediction.why) if prediction.why else None
        return row

    def answer(self, predictions: Iterable[Any], bad: Iterable[Any]) -> output.Answer:
        """Answer with a row per line of the file, in file order."""
        predictions = list(predictions)
        line_rows = [(prediction.row.line, self.row(prediction)) for prediction in predictions]
        line_rows += [(row.line, self.blank(row.id) | {"why": at_line(row.line, row.why)}) for row in bad]
        plain = [row for _, row in sorted(line_rows, key=lambda pair: pair[0])]
        status = NONE_PREDICTED if plain and all(row["why"] for row in plain) else 0
        return output.Answer(
            Listing(plain, always=tuple(self.blank(""))), notes=floor_notes(predictions), describe=self.words, describes_none=True,
            columns=self.columns, status=status,
        )  # fmt: skip

    def words(self, rows: Any) -> output.Summary:
        """Summary: rows predicted, reasons for the rest, and the most frequent assumptions."""
        row_list: Sequence[Mapping[str, Any]] = list(rows)
        if not row_list:
            return output.Summary("No row to predict.")
        without = [row["why"].partition(": ")[2] for row in row_list if row["why"]]
        over = sum(self.noted in (row["flags"] or "") for row in row_list) if self.noted else 0
        beyond = f", {over:,} of them {self.noted}" if over else ""
        flags = [flag for row in row_list for flag in (row["flags"] or "").split("; ") if flag]
        headline = sentence(f"{len(row_list) - len(without):,} of {len(row_list):,} rows predicted", beyond)
        reasons = [f"not predicted: {reason_summary(without)}"] if without else []
        return output.Summary(headline, self.view, remarks=[*reasons, *frequent_flags(flags)], first=("id",))


def serving_table() -> RowTable:
    """Table of serving rows: times in ms with their floor, rates in tokens/s."""
    times = {"ttft_ms": "ttft", "tpot_ms": "tpot"}
    rates = {"output_tok_s_total": "rate", "tok_s_per_chip": "per_chip"}
    quantities = (
        *(RowQuantity(key=key, name=name, unit=MS, ends=("floor", *ENDS)) for key, name in times.items()),
        *(RowQuantity(key=key, name=name) for key, name in rates.items()),
    )
    view = ("id", "ttft_ms", "ttft_ms_lo~ttft_ms_hi", "tpot_ms", "tpot_ms_floor", "tpot_ms_lo~tpot_ms_hi", "output_tok_s_total",
            "tok_s_per_chip", "tok_s_per_chip_lo~tok_s_per_chip_hi", "why")  # fmt: skip
    return RowTable(
        quantities=quantities, columns=ABOUT | {key: column(key) for quantity in quantities for key in quantity.keys}, view=view,
        noted=MEMORY,
    )  # fmt: skip


TRAINING_QUANTITIES = (
    (RowQuantity(key="tokens_per_s_per_chip", name="speed"), "token/s", "tokens of training per second and chip"),
    (RowQuantity(key="step_time_s", name="step"), "s", "one optimiser step"),
    (RowQuantity(key="tflops_per_chip", name="flops", unit=TERA), "",
     "model TFLOP/s: attention in full, nothing twice, or as the row's source counts"),
    (RowQuantity(key="memory_gb_per_chip", name="memory", unit=GIB), "",
     "memory that tensors take on the fullest chip, in GiB, as frameworks print"),
)  # fmt: skip
TRAINING_ENDS = ("expected", "lower end of the 90 % interval", "upper end of it")


def training_table() -> RowTable:
    """Table of training rows, in the units of published tables of runs."""
    columns = {
        key: Column(unit, f"{doc}; {end}")
        for quantity, unit, doc in TRAINING_QUANTITIES for key, end in zip(quantity.keys, TRAINING_ENDS, strict=True)
    }  # fmt: skip
    view = ("id", "tokens_per_s_per_chip", "tokens_per_s_per_chip_lo~tokens_per_s_per_chip_hi", "step_time_s", "tflops_per_chip",
            "memory_gb_per_chip", "memory_gb_per_chip_lo~memory_gb_per_chip_hi", "why")  # fmt: skip
    return RowTable(quantities=tuple(quantity for quantity, _, _ in TRAINING_QUANTITIES), columns=ABOUT | columns, view=view)


def run(args: Question) -> output.Answer:
    """Answer with a row per line of the file, in file order; measured values are ignored, valid or not."""
    if args.training:
        runs, bad = read_training_rows(args.rows, measured=False)
        need_rows(args.rows, runs, bad)
        return training_table().answer(predicted_trainings(runs, args), bad)

    rows, bad = read_rows(args.rows, measured=False)
    need_rows(args.rows, rows, bad)
    return serving_table().answer(predicted(rows, bad, args).predictions, bad)
