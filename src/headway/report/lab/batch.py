"""Words of `lab batch`: how the cost of a token goes with the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.listing import format_value
from headway.reality.lab.batch import lines
from headway.report.words import Row

if TYPE_CHECKING:
    from headway.reality.lab.experiment import LabRun

RISE = 1.05  # of a token's cost over that of batch 1, from which it counts as a rise


def headline(run: LabRun, rows: Sequence[Row]) -> str:
    """How the cost of a token goes with the batch, as it was measured."""
    steps = sorted((row["at"], row["measured"] / row["at"]) for row in rows if row["quantity"] == "step")
    if len(steps) < 2:
        return "One batch was measured"
    (first, alone), (last, shared) = steps[0], steps[-1]
    peak, most = max(steps, key=lambda step: step[1])
    end = f"from {format_value(alone, 's')} to {format_value(shared, 's')} at batch {last:,.0f}"
    if most > RISE * alone:
        return f"Cost per token rises {most / alone:.2g} times to batch {peak:,.0f}, then falls {end}"
    return f"Cost per token falls {end}, and is at no batch above that of batch {first:,.0f}"


def below(run: LabRun, rows: Sequence[Row]) -> list[str]:
    """Floor, balanced batch and the shares of experts."""
    of = lines(run.setup, run.calibration)
    steps = [row["measured"] for row in rows if row["quantity"] == "step"]
    counts = [row["measured"] / row["predicted"] - 1 for row in rows if row["quantity"] == "experts touched"]
    text = f"Every weight read once takes {format_value(of['floor_s'], 's')} (RB-05: {format_value(of['bandwidth'], 'byte/s')})"
    text += f"; a step of few tokens touches few experts, and took {format_value(min(steps), 's')} at least" if steps else ""
    balanced = f"Balanced batch {of['balanced']:,.0f} by the board's law: {format_value(of['peak'], 'flop/s')} over that bandwidth, times "
    far = max(counts, key=abs, default=0.0)
    touched = [f"Experts touched lie within {abs(far):.1%} of E (1 - (1 - k/E)^B)."] if counts else []
    balanced += "total over active parameters; the knee is where a token costs twice what it does at the largest batch."
    return [text + ".", balanced, *touched]
