"""Measurements one by one: measured, expected, interval, floor, how far from the limit, what binds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway import output
from headway.cli import measured
from headway.columns import Column
from headway.listing import Listing

KEYS = {
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
VIEW = ("id", "chip", "engine", "model", "measure", "measured", "expected", "90 %", "floor", "ratio", "of_limit", "binds", "why")
MOST_TOLD = 20


def answer(read: measured.MeasuredFile, binds: bool) -> output.Answer:
    """One row for each measurement; rows without one say why."""
    from headway.evidence.binding import parts
    from headway.evidence.residuals import residuals

    rows: list[tuple[int, dict[str, Any]]] = []
    for task, prediction in zip(read.tasks, read.predictions, strict=True):
        task_residuals = residuals([task], [prediction])
        step = {part.name: part.seconds for part in parts(task, prediction)} if binds and task_residuals else {}
        bound = {"binds": next(iter(step)), "step_parts": step} if step else {}
        rows += [(task.row.line, _row(residual) | (bound if residual.measure != "TTFT" else {})) for residual in task_residuals]
        if not task_residuals:
            rows.append((task.row.line, {"id": task.row.id, "why": measured.at_line(task.row.line, _why(task, prediction))}))
    rows += [(bad_row.line, {"id": bad_row.id, "why": measured.at_line(bad_row.line, bad_row.why)}) for bad_row in read.bad]
    plain = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    return output.Answer(Listing(plain, always=("id", *KEYS)), describe=_words, columns=KEYS | {"id": Column("", "the row's id")})


def _why(task: Any, prediction: Any) -> str:
    if prediction.why:
        return prediction.why
    return "reliability C is never scored" if task.row.reliability == "C" else "states no measurement of what is predicted"


def _row(row: Any) -> dict[str, Any]:
    """A residual in the units of tables: ms and tokens/s."""
    scale, unit = (1000.0, "ms") if row.is_time else (1.0, "token/s")
    values = {key: scale * value for key, value in (("measured", row.measured), ("expected", row.predicted), ("lo", row.lo), ("hi", row.hi),
                                                    ("floor", row.floor))}  # fmt: skip
    about = {"id": row.id, "line": row.line, "source": row.source, "chip": row.chip, "engine": row.engine, "model": row.model}
    judged = {"ratio": row.predicted / row.measured, "inside": bool(row.covered), "of_limit": row.limit_share}
    return about | {"kind": row.kind, "measure": row.measure, "unit": unit} | values | judged


def worst(residuals: Sequence[Any], count: int) -> list[dict[str, Any]]:
    """The largest misses, as rows of a score."""
    from headway.evidence.groups import worst as largest

    rows = [_row(residual) for residual in largest(residuals, count)]
    return [{"by": "worst", "group": row["id"], **{key: value for key, value in row.items() if key != "id"}, "n": 1} for row in rows]


def more(bad: Sequence[Any], shown_count: int) -> list[str]:
    """How many lines were not told."""
    return [f"no row: {len(bad) - shown_count} more lines"] if len(bad) > shown_count else []


def sentence(row: Mapping[str, Any]) -> str:
    """One of the worst rows."""
    number, far = [output.format_value(row[key], row["unit"]) for key in ("measured", "expected")], row["ratio"]
    times = f"{far:.3g} times the measurement" if far > 1 else f"1/{1 / far:.3g} of the measurement"
    source = f" of {row['source']}" if row["source"] else ""
    what = f"{row['model']} on {row['chip']}, {row['engine']}"
    return f"  {row['group']}{source} (line {row['line']}; {what}): {row['measure']} measured {number[0]}, expected {number[1]}: {times}"


def _words(rows: Any) -> output.Summary:
    row_list = list(rows)
    sentences = [_comparison_sentence(row) for row in row_list if row["measured"] is not None]
    people = Listing([_people(row) for row in row_list])
    if not sentences:
        reasons = measured.reason_summary(row["why"].partition(": ")[2] for row in row_list if row["why"])
        return output.Summary(f"Nothing to compare: {reasons}." if reasons else "Nothing to compare.", VIEW, (), people)
    return output.Summary(
        _headline([row for row in row_list if row["measured"] is not None], sentences), VIEW, sentences[1:MOST_TOLD], people
    )


def _headline(rows: Sequence[Mapping[str, Any]], sentences: Sequence[str]) -> str:
    inside = sum(bool(row["inside"]) for row in rows)
    if len(rows) == 1:
        return sentences[0]
    return f"{inside} of {len(rows)} measurements lie within their 90 % interval; {sentences[0]}"


def _comparison_sentence(row: Mapping[str, Any]) -> str:
    """Measured against expected, and against the limit, in one sentence."""
    actual, expected, low, high, floor = (
        output.format_value(row[key], row["unit"]) for key in ("measured", "expected", "lo", "hi", "floor")
    )
    where = "inside" if row["inside"] else "outside"
    limit = "the floor" if row["unit"] == "ms" else "the limit"
    binds = ""
    if row["binds"]:
        step_text = ", ".join(f"{name} {output.format_value(value, 's')}" for name, value in row["step_parts"].items() if value)
        verb = "bind" if row["binds"] == "weights" else "binds"
        binds = f"; {row['binds']} {verb} ({'prefill' if row['kind'] == 'prefill' else 'decode step'}: {step_text})"
    name = f"{row['id']}: " if row["id"] else ""
    expectation = f"{expected} expected (90 % {low} .. {high}: {where})"
    return f"{name}{row['measure']} {actual} measured, {expectation}; {limit} is {floor}: {row['of_limit']:.0%} of its speed{binds}."


def _people(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for a person: numbers with their unit."""
    cells: dict[str, Any] = {key: row[key] for key in ("id", "chip", "engine", "model", "measure", "binds", "why")}
    if row["measured"] is None:
        return cells
    texts = {key: output.format_value(row[key], row["unit"]) for key in ("measured", "expected", "lo", "hi", "floor")}
    judged = {"ratio": f"{row['ratio']:.2f}", "of_limit": f"{row['of_limit']:.0%}", "90 %": f"{texts['lo']} .. {texts['hi']}"}
    return cells | {key: texts[key] for key in ("measured", "expected", "floor")} | judged
