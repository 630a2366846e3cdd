"""What `predict` and `score` share: a file of rows read, predicted and put back in its own order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from headway.cli import subjects
from headway.errors import BadValue

MOST_REASONS = 6
MOST_LINES = 5
MOST_FLAGS = 5
OF_SERVE = {"set": "use --catalog DIR with your own chip, or `serve`", "attention": "use `serve`", "kv_share": "use `serve`"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFile:
    """The rows of a file: what to predict, what is predicted, and the lines that are no rows."""

    tasks: Sequence[Any]
    predictions: Sequence[Any]
    bad: Sequence[Any]


def predicted(rows: Sequence[Any], bad: Sequence[Any], args: Any) -> MeasuredFile:
    """The predictions of rows, with the user's catalogue."""
    from headway.evidence.predict import predict
    from headway.evidence.tasks import tasks

    row_tasks = tasks(rows, subjects.catalog(args))
    return MeasuredFile(tasks=row_tasks, predictions=predict(row_tasks), bad=bad)


def no_edits(args: Any) -> None:
    """Rows name their own machines and models: what edits one machine or model does not apply to them."""
    for name, where in OF_SERVE.items():
        value = getattr(args, name, None)
        if value:
            value_text = value if isinstance(value, str) else ", ".join(value)
            wants = f"no value here, because each row names its own machine and model: {where}"
            raise BadValue("--" + name.replace("_", "-"), value_text, wants)


def at_line(line: int, why: str) -> str:
    """A reason with the line of the file it is about."""
    return f"line {line}: {why}"


def frequent_flags(flags: Sequence[str]) -> list[str]:
    """What was most often taken where rows are silent."""
    counts = sorted({flag: flags.count(flag) for flag in set(flags)}.items(), key=lambda item: (-item[1], item[0]))[:MOST_FLAGS]
    return [f"assumed in {count:,} row{'s' if count > 1 else ''}: {flag}" for flag, count in counts]


def reason_summary(reasons: Iterable[str]) -> str:
    """Reasons by how often they occur, their details left out."""
    return reasons_with_lines((reason, 0) for reason in reasons)


def reasons_with_lines(reasons: Iterable[tuple[str, int]]) -> str:
    """Reasons by how often they occur, their details left out, and the first lines each is about; a line of 0 is not told."""
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
