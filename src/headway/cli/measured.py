"""What `predict` and `score` share: a file of rows read, predicted and put back in its own order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from headway.cli import subjects
from headway.errors import BadValue

MOST_REASONS = 6
OF_SERVE = {"set": "use --catalog DIR with your own chip, or `serve`", "attention": "use `serve`", "kv_share": "use `serve`"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The rows of a file: what to predict, what is predicted, and the lines that are no rows."""

    tasks: Sequence[Any]
    predictions: Sequence[Any]
    bad: Sequence[Any]


def predicted(rows: Sequence[Any], bad: Sequence[Any], args: Any) -> Read:
    """The predictions of rows, with the user's catalogue."""
    from headway.evidence.predict import predict
    from headway.evidence.tasks import tasks

    asked = tasks(rows, subjects.catalog(args))
    return Read(tasks=asked, predictions=predict(asked), bad=bad)


def no_edits(args: Any) -> None:
    """Rows name their own machines and models: what edits one machine or model does not apply to them."""
    for name, where in OF_SERVE.items():
        given = getattr(args, name, None)
        if given:
            shown = given if isinstance(given, str) else ", ".join(given)
            wants = f"no value here, because each row names its own machine and model: {where}"
            raise BadValue("--" + name.replace("_", "-"), shown, wants)


def at_line(line: int, why: str) -> str:
    """A reason with the line of the file it is about."""
    return f"line {line}: {why}"


def counted(reasons: Iterable[str]) -> str:
    """Reasons by how often they occur, the line and the details of each left out."""
    found: dict[str, int] = {}
    for reason in reasons:
        name = reason.partition("; ")[0]
        found[name] = found.get(name, 0) + 1
    often = sorted(found.items(), key=lambda item: -item[1])
    shown = [f"{name} ({count})" if count > 1 or len(often) > 1 else name for name, count in often[:MOST_REASONS]]
    rest = sum(count for _, count in often[MOST_REASONS:])
    return "; ".join(shown) + (f"; other reasons ({rest})" if rest else "")
