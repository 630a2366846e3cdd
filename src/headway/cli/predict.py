"""`headway predict ROWS.csv`: predicted measurements for each row of a table of serving or training runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.cli import arguments
from headway.core.columns import Column, column
from headway.core.listing import Listing
from headway.report import output
from headway.report.words import sentence

MOST_REASONS = 6
MOST_LINES = 5
MOST_FLAGS = 5
OF_SERVE = {"set": "use --catalog DIR with your own chip, or `serve`", "attention": "use `serve`", "kv_share": "use `serve`"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFile:
    """Rows of a file: tasks, predictions, and malformed lines."""

    tasks: Sequence[Any]
    predictions: Sequence[Any]
    bad: Sequence[Any]


def predicted(rows: Sequence[Any], bad: Sequence[Any], args: Any) -> MeasuredFile:
    """Predictions of rows, with the user's catalogue."""
    from headway.evidence.rows.tasks import tasks
    from headway.evidence.serving.predict import predict

    row_tasks = tasks(rows, arguments.catalog(args))
    return MeasuredFile(tasks=row_tasks, predictions=predict(row_tasks), bad=bad)


def no_edits(args: Any) -> None:
    """Raise an error for flags that edit a machine or model, because each row names its own."""
    for name, where in OF_SERVE.items():
        arguments.refuse(args, f"no value here, because each row names its own machine and model: {where}", name)


def at_line(line: int, why: str) -> str:
    """Reason with the line of the file it refers to."""
    return f"line {line}: {why}"


def frequent_flags(flags: Sequence[str]) -> list[str]:
    """Lines on the most frequent assumptions about what rows do not state."""
    counts = sorted({flag: flags.count(flag) for flag in set(flags)}.items(), key=lambda item: (-item[1], item[0]))[:MOST_FLAGS]
    return [f"assumed in {count:,} row{'s' if count > 1 else ''}: {flag}" for flag, count in counts]


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


GIB, TERA = 2.0**30, 1e12
# Columns in the units of tables of runs: quantity, SI value of the unit, description.
TRAINING_QUANTITIES = {
    "tokens_per_s_per_chip": ("speed", 1.0, "token/s", "tokens of training per second and chip"),
    "step_time_s": ("step", 1.0, "s", "one optimiser step"),
    "tflops_per_chip": ("flops", TERA, "", "model TFLOP/s: attention in full, nothing twice, or as the row's source counts"),
    "memory_gb_per_chip": ("memory", GIB, "", "memory that tensors take on the fullest chip, in GiB, as frameworks print"),
}  # fmt: skip
NONE_PREDICTED = 2  # exit status where no row could be predicted
TRAINING_ENDS = {"": "expected", "_lo": "lower end of the 90 % interval", "_hi": "upper end of it"}
TRAINING_VIEW = ("id", "tokens_per_s_per_chip", "tokens_per_s_per_chip_lo~tokens_per_s_per_chip_hi", "step_time_s", "tflops_per_chip",
        "memory_gb_per_chip", "memory_gb_per_chip_lo~memory_gb_per_chip_hi", "why")  # fmt: skip


def run_training(args: Any) -> output.Answer:
    """Answer with a row per line of a training table, in file order."""
    from headway.evidence.training.predict import predict
    from headway.evidence.training.row import read_training_rows

    no_edits(args)
    rows, bad = read_training_rows(args.rows, measured=False)
    line_rows = [(prediction.row.line, _row_training(prediction)) for prediction in predict(rows, arguments.catalog(args))]
    line_rows += [(bad_row.line, _blank_training(bad_row.id) | {"why": at_line(bad_row.line, bad_row.why)}) for bad_row in bad]
    plain = [row for _, row in sorted(line_rows, key=lambda pair: pair[0])]
    status = NONE_PREDICTED if plain and all(row["why"] for row in plain) else 0
    return output.Answer(
        Listing(plain, always=tuple(_blank_training(""))), describe=_words_training, columns=_about_training(), status=status
    )


def _about_training() -> dict[str, Column]:
    columns = {"id": Column("", "the row's id, as given")}
    for key, (_, _, unit, doc) in TRAINING_QUANTITIES.items():
        columns |= {key + end: Column(unit, f"{doc}; {what}") for end, what in TRAINING_ENDS.items()}
    return columns | {
        "flags": Column("", "what was taken where the row is silent, joined by '; '"),
        "why": Column("", "the line, and why there is no prediction; or null"),
    }


def _blank_training(name: str) -> dict[str, Any]:
    """Row with all columns empty but the name."""
    return {"id": name} | {key + end: None for key in TRAINING_QUANTITIES for end in TRAINING_ENDS} | {"flags": None, "why": None}


def _row_training(prediction: Any) -> dict[str, Any]:
    """Row of a training prediction, in the units of the table."""
    row = _blank_training(prediction.row.id)
    for key, (name, scale, _, _) in TRAINING_QUANTITIES.items():
        estimate = getattr(prediction, name)
        if estimate is not None:
            row |= {key: estimate.expected / scale, f"{key}_lo": estimate.lo / scale, f"{key}_hi": estimate.hi / scale}
    row["flags"] = "; ".join(prediction.flags) or None
    row["why"] = at_line(prediction.row.line, prediction.why) if prediction.why else None
    return row


def _words_training(rows: Any) -> output.Summary:
    """Summary: rows predicted, reasons for the others, and the most frequent assumptions of a training table."""
    row_list: Sequence[Mapping[str, Any]] = list(rows)
    if not row_list:
        return output.Summary("No row to predict.")
    without = [row["why"].partition(": ")[2] for row in row_list if row["why"]]
    flags = [flag for row in row_list for flag in (row["flags"] or "").split("; ") if flag]
    headline, remarks = _predicted(len(row_list), without)
    return output.Summary(headline, TRAINING_VIEW, remarks=[*remarks, *frequent_flags(flags)], first=("id",))


def _predicted(count: int, without: Sequence[str], beyond: str = "") -> tuple[str, list[str]]:
    """Sentence on the rows predicted, and a note on the reasons for the others."""
    headline = sentence(f"{count - len(without):,} of {count:,} rows predicted", beyond)
    return headline, [f"not predicted: {reason_summary(without)}"] if without else []


QUANTITIES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "output_tok_s_total": "rate", "tok_s_per_chip": "per_chip"}
ENDS = ("lo", "hi")
VIEW = ("id", "ttft_ms", "ttft_ms_lo~ttft_ms_hi", "tpot_ms", "tpot_ms_floor", "tpot_ms_lo~tpot_ms_hi", "output_tok_s_total",
        "tok_s_per_chip", "tok_s_per_chip_lo~tok_s_per_chip_hi", "why")  # fmt: skip
ABOUT = {
    "id": Column("", "the row's id, as given"),
    "flags": Column("", "what was inferred where the row is silent, joined by '; '"),
    "why": Column("", "the line, and why there is no prediction; or null"),
}
ABOUT_FILE = "CSV whose first line names columns: at least id, model, hardware, mode"


def add_flags(parser: Any) -> None:
    """Flags of the verb: the table of rows."""
    parser.add_argument("rows", metavar="ROWS.csv", help=ABOUT_FILE)
    parser.add_argument("--training", action="store_true", help="the rows are training runs: at least id, model, hardware")


def run(args: Any) -> output.Answer:
    """Answer with a row per line of the file, in file order."""
    if args.training:
        return run_training(args)
    from headway.evidence.rows.row import read_rows

    no_edits(args)
    rows, bad = read_rows(args.rows, measured=False)  # measured values are ignored, valid or not
    read = predicted(rows, bad, args)
    line_rows = [
        *((prediction.row.line, _row(prediction)) for prediction in read.predictions),
        *((bad_row.line, _malformed(bad_row)) for bad_row in bad),
    ]
    plain = [row for _, row in sorted(line_rows, key=lambda pair: pair[0])]
    status = NONE_PREDICTED if plain and all(row["why"] for row in plain) else 0
    return output.Answer(Listing(plain, always=tuple(_blank(""))), describe=_words, columns=_about(), status=status)


def _about() -> dict[str, Column]:
    return {key: ABOUT.get(key) or column(key) for key in _blank("")}


def _blank(name: str) -> dict[str, Any]:
    """Row with all columns empty but the name."""
    row: dict[str, Any] = {"id": name}
    for key in QUANTITIES:
        row |= dict.fromkeys((key, *(f"{key}_{end}" for end in (*(("floor",) if key.endswith("_ms") else ()), *ENDS))))
    return row | {"flags": None, "why": None}


def _row(prediction: Any) -> dict[str, Any]:
    """Row of a prediction, in the units of the table: times in ms, rates in tokens/s."""
    row = _blank(prediction.row.id)
    for key, name in QUANTITIES.items():
        estimate = getattr(prediction, name)
        if estimate is not None:
            time = key.endswith("_ms")
            scale = 1000.0 if time else 1.0
            row[key] = scale * estimate.expected
            row[f"{key}_lo"], row[f"{key}_hi"] = scale * estimate.lo, scale * estimate.hi
            if time:
                row[f"{key}_floor"] = scale * estimate.floor
    row["flags"] = "; ".join(prediction.flags) or None
    row["why"] = at_line(prediction.row.line, prediction.why) if prediction.why else None
    return row


def _malformed(bad_row: Any) -> dict[str, Any]:
    return _blank(bad_row.id) | {"why": at_line(bad_row.line, bad_row.why)}


def _words(rows: Any) -> output.Summary:
    """Summary: rows predicted, reasons for the others, and the most frequent assumptions."""
    row_list: Sequence[Mapping[str, Any]] = list(rows)
    if not row_list:
        return output.Summary("No row to predict.")
    from headway.evidence.serving.predict import MEMORY

    without = [row["why"].partition(": ")[2] for row in row_list if row["why"]]
    over = sum(MEMORY in (row["flags"] or "") for row in row_list)
    beyond = f", {over:,} of them {MEMORY}" if over else ""
    flags = [flag for row in row_list for flag in (row["flags"] or "").split("; ") if flag]
    headline, remarks = _predicted(len(row_list), without, beyond)
    return output.Summary(headline, VIEW, remarks=[*remarks, *frequent_flags(flags)], first=("id",))
