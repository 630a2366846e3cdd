"""Words of `lab reversible`: what reversible layers save and cost, how exactly they come back, and what they hide as a cipher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.listing import format_value
from headway.reality.lab.couplings import PLAIN, REVERSIBLE
from headway.reality.lab.reversible import ACTIVATIONS, CIPHER, PEAK, SLOWDOWN
from headway.report.lab.variants import lines
from headway.report.pictures import plot, scale
from headway.report.words import Row

if TYPE_CHECKING:
    from headway.reality.lab.experiment import LabRun


def headline(run: LabRun, rows: Sequence[Row]) -> str:
    """Memory by depth beside plain layers, and the time that it costs."""
    reversible, plain = (_along(rows, f"{ACTIVATIONS}, {mode}") for mode in (REVERSIBLE, PLAIN))
    slower = _along(rows, SLOWDOWN)
    text = "Reversible layers were trained beside plain ones"
    if reversible and plain:
        less, more = (format_value(values[max(values)], "byte") for values in (reversible, plain))
        text = f"{max(plain):g} reversible layers hold {less} of activations where plain ones hold {more}"
    return text + (f", and take {slower[max(slower)]:.2f} times as long" if slower else "")


def below(run: LabRun, rows: Sequence[Row]) -> list[str]:
    """How flat memory is, training, the cipher, the library."""
    peaks, facts, texts = _along(rows, f"{PEAK}, {REVERSIBLE}"), run.facts, list[str]()
    if len(peaks) > 1:
        apart = max(peaks.values()) / min(peaks.values()) - 1
        texts.append(f"Peak memory beyond the weights, reversible, differs by {apart:.1%} from {min(peaks):g} to {max(peaks):g} layers.")
    if "losses" in facts:
        first, plain, again = facts["losses"]
        texts.append(f"A small task is learned from a loss of {first:.3g} to {plain:.5g} plain, {again:.5g} reversible, with dropout.")
    for wrong in _along(rows, CIPHER).values():
        changed, count = facts["changed"], facts["bytes"]
        texts.append(f"As a cipher the couplings change {changed:.0%} of the bits of {count:,} bytes; decrypted, {wrong:g} are wrong.")
    return [*texts, f"Run in {facts['library']}."] if "library" in facts else texts


def panels(run: LabRun, rows: Sequence[Row]) -> list[list[plot.Plot]]:
    """Memory by depth, counted and of the whole process, a line for each way."""
    sizes = [row for row in rows if row["unit"] == "byte"]
    x = scale.AxisScale("Layers", [row["at"] for row in sizes], room=0.05, base=2)
    between = lines(sizes, ACTIVATIONS, "Activations held between the passes (log)", x, log=True)
    return [[between], [lines(sizes, PEAK, "Peak memory of the process beyond its weights", x, log=False, zero=True)]]


def _along(rows: Sequence[Row], quantity: str) -> dict[float, float]:
    """A quantity by depth."""
    return {row["at"]: row["measured"] for row in rows if row["quantity"] == quantity}
