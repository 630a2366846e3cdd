"""Words of `lab attention`: what sparse patterns save, and what they forget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.listing import format_value
from headway.report.lab.variants import lines
from headway.report.pictures import plot, scale
from headway.report.words import Row

if TYPE_CHECKING:
    from headway.reality.lab.experiment import LabRun


def headline(run: LabRun, rows: Sequence[Row]) -> str:
    """What each pattern recalls at the longest context."""
    recalled = [(row["quantity"].partition(", ")[2], row["measured"]) for row in _longest(rows) if row["quantity"].startswith("recall")]
    shares = ", ".join(f"{text} {share:.0%}" for text, share in recalled)
    return f"Of facts planted in {max(row['at'] for row in rows):,.0f} tokens attention recalls: {shares}"


def below(run: LabRun, rows: Sequence[Row]) -> list[str]:
    """Each sparse pattern at the longest context: bytes read, time saved, facts forgotten."""
    figures = {tuple(row["quantity"].split(", ")): row["measured"] for row in _longest(rows)}
    lines = []
    for text in dict.fromkeys(text for _, text in figures if text != "dense"):
        step, size, share = (figures.get((kind, text)) for kind in ("step", "bytes read", "recall"))
        if step and size and share is not None:
            saved = f", {dense / step:.2g} times faster than dense" if (dense := figures.get(("step", "dense"))) else ""
            lines.append(f"{text} reads {format_value(size, 'byte')} in {format_value(step, 's')}{saved}, and forgets {1 - share:.0%}.")
    return [*lines, "A guess is right once in 128; facts are unrelated, which is the worst case for an index and for the mean of a block."]


def _longest(rows: Sequence[Row]) -> list[Row]:
    most = max(row["at"] for row in rows)
    return [row for row in rows if row["at"] == most]


def panels(run: LabRun, rows: Sequence[Row]) -> list[list[plot.Plot]]:
    """Recall and time by context, a line for each pattern."""
    x = scale.AxisScale("Tokens of context", [row["at"] for row in rows], "token", room=0.05, log=True)
    recall = lines(rows, "recall", "Facts answered (share)", x, ends=(0, 1), log=False)
    return [[recall], [lines(rows, "step", "Time of attention in a step", x, log=True)]]
