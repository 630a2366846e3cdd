"""`headway score FILE`: errors of predictions for measured runs, by group; or a comparison per run of benchmark output."""

from __future__ import annotations

import dataclasses
import functools
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.answers import predict
from headway.answers.asked import result
from headway.answers.benchmark_files import read_benchmark, refuse_facts
from headway.core.columns import Column
from headway.core.errors import BadValue, HeadwayError
from headway.core.listing import Listing, estimate_text, format_value, is_loose
from headway.core.notes import note
from headway.core.question import from_words
from headway.evidence.calibration.validity import validity
from headway.evidence.questions import TOOLS, Score
from headway.evidence.rows.row import left_out, need_rows, read_rows
from headway.evidence.rows.tasks import Task, Unpredictable
from headway.evidence.serving.causes import expected
from headway.evidence.serving.remedies import remedies
from headway.evidence.serving.score import parts, residuals, score
from headway.evidence.serving.score import worst as largest_misses
from headway.performance.calibration.in_force import calibrations
from headway.report import output, prediction_pictures, words
from headway.report.causes import error, headline, percent, share_columns, summary, times

if TYPE_CHECKING:
    from headway.core.listing import Rows
    from headway.report.pictures.frame import Picture, View

RUN_KEYS = {
    "line": Column("", "line of the file"),
    "source": Column("", "source_key of the row"),
    "chip": Column("", "chip, by its catalogue name"),
    "engine": Column("", "family of engines"),
    "model": Column("", "model, by its catalogue name"),
    "kind": Column("", "which quantity the row measures"),
    "measure": Column("", "what was measured"),
    "unit": Column("", "unit of measured, expected, floor, lo and hi"),
    "measured": Column("", "the measurement"),
    "expected": Column("", "the prediction"),
    "lo": Column("", "lower end of the 90 % interval"),
    "hi": Column("", "upper end of the 90 % interval"),
    "floor": Column("", "the roofline: of a time the least, of a rate the highest there can be"),
    "ratio": Column("", "expected over measured"),
    "inside": Column("", "whether the measurement is within the interval"),
    "of_limit": Column("", "share of the speed at the floor that was reached"),
    "binds": Column("", "the largest part of the step that is predicted"),
    "step_parts": Column("", "the parts of that step, in seconds"),
    "why": Column("", "the line, and why there is no prediction; or null"),
}
CAUSE_KEYS = {
    "cause": Column("", "why the run is as fast as it is"),
    "parts": Column("", "parts of the measurement in its unit, which sum to it"),
}
RUN_VIEW = ("id", "chip", "engine", "model", "measure", "measured", "expected", "90 %", "floor", "ratio", "of_limit", "binds", "why")
RUN_NARROW = ("id", "measure", "measured", "expected", "90 %", "floor", "ratio", "binds", "why")  # columns that a narrow table keeps
MOST_TOLD = 20


def answer(
    read: predict.MeasuredFile, binds: bool, cases: Mapping[int, Any], catalogs: str, notes: Sequence[str] = ()
) -> output.Answer:
    """Answer with a row per measurement; rows without a prediction state the reason. `catalogs`: the flags of the user's folders."""
    rows: list[tuple[int, dict[str, Any]]] = []
    runs = runs_with_causes(read, cases)
    known = {id(run[0]): run[2] for run in runs}
    for task, prediction in zip(read.tasks, read.predictions, strict=True):
        task_residuals = residuals([task], [prediction])
        step = {part.name: part.seconds for part in parts(task, prediction)} if binds and task_residuals else {}
        bound = {"binds": next(iter(step)), "step_parts": step} if step else {}
        for residual in task_residuals:
            why = share_columns(known[id(task)], residual.measure) if id(task) in known else {}
            rows.append((task.row.line, _row(residual) | (bound if residual.measure != "TTFT" else {}) | why))
        if not task_residuals:
            rows.append((task.row.line, {"id": task.row.id, "why": predict.at_line(task.row.line, _why(task, prediction))}))
    if not binds:  # a table answers each of its lines
        rows += [(bad_row.line, {"id": bad_row.id, "why": predict.at_line(bad_row.line, bad_row.why)}) for bad_row in read.bad]
    plain = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    columns = RUN_KEYS | (CAUSE_KEYS if runs else {})
    describe = functools.partial(_cause_words, runs=runs, catalogs=catalogs) if runs else _run_words
    pictures: dict[str, Any] = {"parity": lambda _, view: _parity(residuals(read.tasks, read.predictions), view)}
    if binds:
        pictures = {"parts": lambda rows, view: prediction_pictures.run(list(rows), view)}
    about = columns | {"id": Column("", "the row's id")}
    all_notes = [*notes, *predict.floor_notes(read.predictions)]
    table = Listing(plain, always=("id", *columns))
    return output.Answer(table, describe=describe, describes_none=True, pictures=pictures, columns=about, notes=all_notes)


def _cause_words(rows: Rows, runs: Sequence[tuple[Any, Any, Any]], catalogs: str) -> output.Summary:
    """Summary of the run with the most users: its cause, the parts of its time, what would help; the others as notes."""
    row_list = [row for row in rows if row["measured"] is not None]
    run = next((run for run in runs if any(row["id"] == run[0].row.id for row in row_list)), None)
    if run is None:
        return _run_words(rows)
    task, prediction, cause = run
    further = [f"{case[0].row.id}: {headline(*case)}" for case in runs if case is not run]
    remarks = [*further, *(_comparison_sentence(row) for row in row_list)]
    return summary(task, prediction, cause, remedies(task, prediction, cause, simulated, catalogs), remarks[:MOST_TOLD])


def _why(task: Any, prediction: Any) -> str:
    if prediction.why:
        return prediction.why
    return "reliability C is never scored" if task.row.reliability == "C" else "states no measurement of what is predicted"


def _row(row: Any) -> dict[str, Any]:
    """Row of a residual, in the units of tables: ms and tokens/s."""
    scale, unit = (1000.0, "ms") if row.is_time else (1.0, "token/s")
    values = {key: scale * value for key, value in (("measured", row.measured), ("expected", row.predicted), ("lo", row.lo), ("hi", row.hi),
                                                    ("floor", row.floor))}  # fmt: skip
    about = {"id": row.id, "line": row.line, "source": row.source, "chip": row.chip, "engine": row.engine, "model": row.model}
    judged = {"ratio": row.predicted / row.measured, "inside": bool(row.covered), "of_limit": row.limit_share}
    return about | {"kind": row.kind, "measure": row.measure, "unit": unit} | values | judged


def worst(residuals: Sequence[Any], count: int) -> list[dict[str, Any]]:
    """Rows of the residuals with the largest errors."""
    rows = [_row(residual) for residual in largest_misses(residuals, count)]
    return [{"by": "worst", "group": row["id"], **{key: value for key, value in row.items() if key != "id"}, "n": 1} for row in rows]


def more(bad: Sequence[Any], shown_count: int) -> list[str]:
    """Line on the number of malformed lines not shown."""
    return [f"no row: {len(bad) - shown_count} more lines"] if len(bad) > shown_count else []


def sentence(row: Mapping[str, Any]) -> str:
    """Sentence on a row with a large error."""
    number, far = [format_value(row[key], row["unit"]) for key in ("measured", "expected")], row["ratio"]
    apart = f"{times(far, 3)} times the measurement" if far > 1 else f"1/{times(1 / far, 3)} of the measurement"
    source = f" of {row['source']}" if row["source"] else ""
    what = f"{row['model']} on {row['chip']}, {row['engine']}"
    return f"  {row['group']}{source} (line {row['line']}; {what}): {row['measure']} measured {number[0]}, expected {number[1]}: {apart}"


def _run_words(rows: Rows) -> output.Summary:
    row_list = list(rows)
    sentences = [_comparison_sentence(row) for row in row_list if row["measured"] is not None]
    people = Listing([_people(row) for row in row_list])
    if not sentences:
        reasons = predict.reason_summary(row["why"].partition(": ")[2] for row in row_list if row["why"])
        return output.Summary(words.sentence("Nothing to compare", f": {reasons}" if reasons else ""), RUN_VIEW, people=people)
    compared = [row for row in row_list if row["measured"] is not None]
    bound = next((row for row in compared if row["binds"]), None)
    return output.Summary(
        _run_headline(compared),
        RUN_VIEW,
        people=people,
        binds="" if bound is None else _bound(bound),
        remarks=sentences[:MOST_TOLD],
        first=RUN_NARROW,
    )


def _run_headline(rows: Sequence[Mapping[str, Any]]) -> str:
    """Sentence on the first measurement, then on how many lie within their intervals."""
    inside = sum(bool(row["inside"]) for row in rows)
    row = rows[0]
    actual, expected = format_value(row["measured"], row["unit"]), words.with_ends(row["expected"], row["lo"], row["hi"], row["unit"])
    name = f"{row['id']}: " if row["id"] else ""
    off = "" if is_loose(row["lo"], row["hi"]) else f": {error(row['expected'] / row['measured'])}"
    start = f"{name}{row['measure']} is {actual}, expected {expected}{off}"
    several = f"; {inside} of {len(rows)} within their intervals" if len(rows) > 1 else ""
    return words.sentence(start, f", {percent(row['of_limit'])} of the limit's speed", several)


def _bound(row: Mapping[str, Any]) -> str:
    """What binds the step behind a measurement."""
    step_text = ", ".join(f"{name} {format_value(value, 's')}" for name, value in row["step_parts"].items() if value)
    return f"{row['binds']}; {'prefill' if row['kind'] == 'prefill' else 'a decode step'} is {step_text}"


def _comparison_sentence(row: Mapping[str, Any]) -> str:
    """Sentence that compares a measurement with its expected value and with the floor."""
    actual, expected, low, high, floor = (format_value(row[key], row["unit"]) for key in ("measured", "expected", "lo", "hi", "floor"))
    where = "inside" if row["inside"] else "outside"
    limit = "the floor" if row["unit"] == "ms" else "the limit"
    name = f"{row['id']}: " if row["id"] else ""
    loose = is_loose(row["lo"], row["hi"])
    expectation = f"between {low} and {high} expected (90 %: {where})" if loose else f"{expected} expected (90 % {low} .. {high}: {where})"
    return f"{name}{row['measure']} {actual} measured, {expectation}; {limit} is {floor}: {percent(row['of_limit'])} of its speed"


def _people(row: Mapping[str, Any]) -> dict[str, Any]:
    """Row for people: numbers with units."""
    cells: dict[str, Any] = {key: row[key] for key in ("id", "chip", "engine", "model", "measure", "binds", "why")}
    if row["measured"] is None:
        return cells
    texts = {key: format_value(row[key], row["unit"]) for key in ("measured", "expected", "lo", "hi", "floor")}
    judged = {"ratio": f"{row['ratio']:,.2f}", "of_limit": percent(row["of_limit"]), "90 %": f"{texts['lo']} .. {texts['hi']}"}
    texts |= {"expected": estimate_text(row["expected"], row["lo"], row["hi"], row["unit"])}
    return cells | {key: texts[key] for key in ("measured", "expected", "floor")} | judged


MOST_WORST = 3  # worst rows shown per measure
MOST_BAD = 10
KEYS = {
    "by": Column("", "what the rows are grouped by; worst: one of the largest misses"),
    "group": Column("", "the group; of a worst miss, the row's id"),
    "measure": Column("", "what was measured"),
    "n": Column("", "measurements"),
    "median_error": Column("", "median of |predicted / measured - 1|"),
    "p90_log_ratio": Column("", "90th percentile of |ln(predicted / measured)|"),
    "bias_log_ratio": Column("", "median of ln(predicted / measured)"),
    "coverage": Column("", "share of the measurements within the 90 % interval"),
    "below_floor": Column("", "share of the measurements faster than the floor"),
    "interval_ratio": Column("", "median of the interval's upper end over its lower end"),
}
VIEW = tuple(KEYS)
FIT_NOTE = "errors are those of the shipped fit, which may have seen these rows: docs/accuracy.md has the cross-validated ones"


def _limit_notes(limit: str, tasks: Sequence[Task | Unpredictable]) -> list[str]:
    """A note where an engine's limit is no less than the users of every run."""
    known = [task for task in tasks if isinstance(task, Task)]
    is_idle = bool(limit and known) and all(task.concurrency and task.concurrency <= (task.max_num_seqs or 0) for task in known)
    return [f"--max-num-seqs {limit} changes nothing: no run has more users"] if is_idle else []


def run(args: Score) -> output.Answer:
    """Answer with a row per group of errors, or per measurement."""
    tool = _tool(args)
    rows, bad = _rows(args, tool)
    path = getattr(args, tool) if tool else args.rows
    need_rows(path, rows, bad)
    read = predict.predicted(rows, bad, args)
    _check_names(args, read)
    cases = expected_of(read) if tool else {}
    read = as_run(read, cases)
    if tool or args.each:
        folders = "".join(f" --catalog {shlex.quote(folder)}" for folder in args.catalog)
        note(*_validity(read))
        notes = [*left_out(path, bad), *_limit_notes(args.max_num_seqs, read.tasks)] if tool else ()
        return answer(read, bool(tool), cases, folders, notes)
    result = score(read.tasks, read.predictions)
    note(*_validity(read))
    listing = Listing([*map(_group, result.groups), *worst(result.residuals, MOST_WORST)], always=VIEW)
    notes = _left_out(result, read.bad)
    return output.Answer(
        listing, notes=notes, describe=lambda table: _words(table, result), describes_none=True,
        pictures={"parity": lambda _, view: _parity(result.residuals, view)}, columns=KEYS | RUN_KEYS, most=400,
    )  # fmt: skip


def _validity(read: predict.MeasuredFile) -> list[str]:
    """What the user's own runs have gained, where they are in force."""
    force = calibrations()
    return validity(read.tasks, read.predictions, force.observations) if force else []


def _check_names(args: Score, read: Any) -> None:
    """Raise an error for a typed name for which no row could be predicted."""
    reasons = [prediction.why for prediction in read.predictions]
    for name in ("model", "weights", "kv"):
        value = getattr(args, name)
        if value and reasons and all(f"named {value!r}" in why for why in reasons):
            raise BadValue(f"--{name}", value, f"a known name; {reasons[0].partition('; ')[2]}")


def _tool(args: Score) -> str:
    """Flag of the benchmark whose output is given; "" for a table."""
    tools = [name for name in TOOLS if getattr(args, name)]
    if len(tools) + bool(args.rows) != 1:
        input_text = ", ".join(["a table"] * bool(args.rows) + ["--" + name.replace("_", "-") for name in tools]) or "nothing"
        wants = "one of MEASURED.csv, " + ", ".join(f"--{name.replace('_', '-')} {'DIR' if name == 'aiperf' else 'FILE'}" for name in TOOLS)
        raise BadValue("score", input_text, wants)
    return tools[0] if tools else ""


def _rows(args: Score, tool: str) -> tuple[list[Any], list[Any]]:
    if not tool:
        refuse_facts(args)
        return read_rows(args.rows)
    return read_benchmark(tool, getattr(args, tool), args)


def _group(group: Any) -> dict[str, Any]:
    s = group.stats
    return {
        "by": group.by, "group": group.name, "measure": group.measure, "n": s.n, "median_error": s.median_error, "p90_log_ratio": s.p90_log,
        "bias_log_ratio": s.bias, "coverage": s.coverage, "below_floor": s.below_floor, "interval_ratio": s.width,
    }  # fmt: skip


def _left_out(result: Any, bad: Sequence[Any]) -> list[str]:
    notes = [FIT_NOTE] if result.residuals else []
    if result.unpredicted:
        notes.append(f"without a prediction: {predict.reasons_with_lines(result.unpredicted)}")
    if result.unscored:
        notes.append(f"left out: {result.unscored} rows of reliability C")
    if result.unmeasured:
        notes.append(f"left out: {result.unmeasured} rows that state no measurement of what is predicted")
    return notes + [f"no row: {predict.at_line(bad_row.line, bad_row.why)}" for bad_row in bad[:MOST_BAD]] + more(bad, MOST_BAD)


def _words(table: Rows, result: Any) -> output.Summary:
    """Summary: the errors in one sentence, the table, the worst rows."""
    rows = list(table)
    groups = [row for row in rows if row["by"] != "worst"]
    shares = ("median_error", "coverage", "below_floor")
    people = Listing([{key: percent(row[key]) if key in shares else row[key] for key in VIEW} for row in groups])
    measures = (group for group in result.groups if group.by == "all")
    errors = ", ".join(f"{group.measure} by {percent(group.stats.median_error)} ({group.stats.n:,})" for group in measures)
    worst_rows = [f"far off: {sentence(row).strip()}" for row in rows if row["by"] == "worst"]
    remarks = [*([f"median error: {errors}"] if errors else []), *worst_rows]
    return output.Summary(_headline(result), VIEW, people=people, remarks=remarks)


def _headline(result: Any) -> str:
    if not result.residuals:
        return "No row could be scored."
    groups = [group for group in result.groups if group.by == "all"]
    covered = sum(group.stats.coverage * group.stats.n for group in groups) / len(result.residuals)
    intervals = f"; intervals hold {percent(covered)} of {len(result.residuals):,} measurements"
    errors = [f"{group.measure} {percent(group.stats.median_error)}" for group in groups]
    return words.sentence(f"{result.rows:,} rows scored{intervals}; median error {errors[0]}", *(f", {error}" for error in errors[1:]))


def _parity(residuals: Any, view: View) -> Picture:
    return prediction_pictures.parity(residuals, "served TPOT", view)


def as_run(read: predict.MeasuredFile, cases: Mapping[int, Any]) -> predict.MeasuredFile:
    """The file with predictions of its runs as they were: unsteady ones played, floors at the sequences in service."""
    from headway.evidence.serving import causes

    pairs = zip(read.tasks, read.predictions, strict=True)
    predictions = [
        causes.as_run(task, prediction, cases.get(id(task))) if isinstance(task, Task) else prediction for task, prediction in pairs
    ]
    return dataclasses.replace(read, predictions=predictions)


def expected_of(read: predict.MeasuredFile) -> dict[int, Any]:
    """What each served run of a benchmark's output should take, by the identity of its task."""
    pairs = zip(read.tasks, read.predictions, strict=True)
    all_cases = {id(task): expected(task) for task, prediction in pairs if isinstance(task, Task) and not prediction.why}
    return {key: case for key, case in all_cases.items() if case is not None}


def simulated(command: str) -> Mapping[str, Any] | None:
    """The row that a command answers; None where it has no answer."""
    words = shlex.split(command)
    try:
        return next(iter(result(from_words(words[words[0] == "headway" :])).rows()), None)
    except HeadwayError:
        return None


def runs_with_causes(read: predict.MeasuredFile, cases: Mapping[int, Any]) -> list[tuple[Any, Any, Any]]:
    """Served runs of a file: task, prediction and cause, the most users first."""
    from headway.evidence.serving.causes import causes

    pairs = [pair for pair in zip(read.tasks, read.predictions, strict=True) if id(pair[0]) in cases]
    run_causes = [(task, prediction, causes(task, prediction, cases[id(task)])) for task, prediction in pairs]
    return sorted(run_causes, key=lambda run: -(run[0].concurrency or 0.0))
