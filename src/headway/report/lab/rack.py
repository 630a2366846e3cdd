"""Words of `lab rack`: what crosses the link between racks, by layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.core.listing import format_value
from headway.laws.serving.pipeline import racks_slowdown
from headway.reality.lab import rack
from headway.report.words import Row

if TYPE_CHECKING:
    from headway.reality.lab.experiment import LabRun


def headline(run: LabRun, rows: Sequence[Row]) -> str:
    """How much slower experts over two racks are, and how long stages wait."""
    slower, idle = _measured(rows, rack.SLOWER), [row for row in rows if row["quantity"] == rack.IDLE]
    parts = [f"Exchange of tokens takes {slower:.1f} times as long over two racks"] if slower else []
    parts += [f"{idle[-1]['at']:.0f} micro-batches leave stages {idle[-1]['measured']:.0%} idle"] if idle else []
    return ", ".join(parts) if parts else "Workers passed tokens on"


def below(run: LabRun, rows: Sequence[Row]) -> list[str]:
    """That workers compute what one process does; what crosses racks by layout; why the lecture's multiplier is smaller."""
    setup, difference = run.setup, run.facts.get("difference")
    lines = [] if difference is None else [f"Workers score the next tokens as one process does, to {difference:.0e} of the largest score."]
    across, hop = _measured(rows, rack.ACROSS), _measured(rows, rack.HOP)
    if across and hop:
        experts, stages = (format_value(size, "byte") for size in (across, hop * rack.MICRO * rack.WORKERS))
        tokens = setup.sequences * rack.WORKERS
        lines.append(f"Of {tokens} tokens, {experts} cross racks with experts over both, {stages} with stages in both.")
    multiplier = float(racks_slowdown(setup.slower, max(rack.RACKS)))
    return [*lines, f"The lecture's multiplier is {multiplier:g}: in a large rack hardly a copy stays at home, here a quarter (MOE-08)."]


def _measured(rows: Sequence[Row], quantity: str) -> Any:
    """The last point of a quantity; None where there is none."""
    return next((row["measured"] for row in reversed(rows) if row["quantity"] == quantity), None)
