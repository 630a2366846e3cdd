"""Words of `lab trains`, and of a server of trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.core.listing import format_value
from headway.core.units import show
from headway.report.words import Row

if TYPE_CHECKING:
    from headway.reality.lab.experiment import LabRun
    from headway.reality.lab.train_setup import TrainSetup


def headline(run: LabRun, rows: Sequence[Row]) -> str:
    """What the trains did."""
    wait = next((row for row in rows if row["quantity"] == "mean wait"), None)
    worst = next((row for row in rows if row["quantity"] == "longest response"), None)
    interval_text = show(run.setup.every, "s")
    if wait is None:
        return f"Trains left every {interval_text}"
    measured, predicted = (format_value(wait[key], "s") for key in ("measured", "predicted"))
    text = f"Requests wait {measured} for a train every {interval_text} ({predicted} predicted)"
    return text + (f", the longest took {format_value(worst['measured'], 's')}" if worst else "")


def below(run: LabRun, rows: Sequence[Row]) -> list[str]:
    """Nothing but the table."""
    return []


def serving(setup: TrainSetup, port: int) -> str:
    """Where the trains are served."""
    interval_text, step = show(setup.every, "s"), "the decoder's step" if setup.step is None else "a stated step"
    seats = f"{setup.limit} seats of {setup.context:,} tokens"
    return f"trains every {interval_text} with {seats} and {step} at http://127.0.0.1:{port}/v1 (Ctrl-C ends it)"


def served(counts: Mapping[str, Any]) -> str:
    """What was served."""
    return f"Served {counts.get('requests', 0):,} requests, {counts.get('tokens', 0):,} tokens, {counts.get('departures', 0):,} departures."
