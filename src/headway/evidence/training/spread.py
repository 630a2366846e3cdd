"""How wide intervals of training predictions have to be: from rows whose source the fit did not see, each source counted equally."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.fitted import FittedNumbers
from headway.evidence.training.held_out import HeldOutErrors, TrainingCrossValidation, weights
from headway.evidence.training.predict import SHARED_SECTION
from headway.evidence.widths import DRAWS, quantile

MEANINGS = {
    "spread": "half of the 90 % interval of a step's time, as a factor",
    "wider_open": "that many times wider in the logarithm where the layout is not stated",
    "spread_memory": "half of the 90 % interval of the memory, as a factor",
}
DATE = "2026-11"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Half of an interval in the logarithm, and how much wider it is where the layout is open."""

    half: float
    wider: float = 1.0

    def of(self, residuals: HeldOutErrors) -> Any:
        """Half of each row's interval."""
        return np.where(residuals.open, self.half * self.wider, self.half)


def spread_of(residuals: HeldOutErrors) -> Spread:
    """The interval that holds nine rows of ten, of those with a layout and of those without."""
    size, weight, rows = np.abs(residuals.error), weights(residuals.sources), ~residuals.open
    half = quantile(size[rows], weight[rows])
    return Spread(half=half, wider=max(1.0, quantile(size[residuals.open], weight[residuals.open]) / half) if residuals.open.any() else 1.0)


def covered(residuals: HeldOutErrors, unseen: bool, width_source: HeldOutErrors | None = None) -> Any:
    """Whether each row is within its interval; `unseen`: without its source.

    Its width is of the rows `width_source` (of these, where None).
    """
    size, reference = np.abs(residuals.error), residuals if width_source is None else width_source
    if not unseen:
        return size <= spread_of(reference).of(residuals)
    within = np.zeros(len(size), bool)
    for source in np.unique(residuals.sources):
        out = residuals.sources == source
        within[out] = (size <= spread_of(rows_of(reference, reference.sources != source)).of(residuals))[out]
    return within


def rows_of(residuals: HeldOutErrors, index: Any) -> HeldOutErrors:
    """Some of the rows."""
    place = np.arange(len(residuals.error))[index]
    return replace(residuals, error=residuals.error[place], sources=residuals.sources[place], open=residuals.open[place],
                   setups=tuple(residuals.setups[position] for position in place))  # fmt: skip


def widths(validation: TrainingCrossValidation) -> tuple[FittedNumbers, ...]:
    """The widths that ship; their errors by drawing the sources again. Those of speed are of rows without notes, as most rows come."""
    speed, memory = spread_of(validation.hidden), spread_of(replace(validation.memory, open=np.zeros(len(validation.memory.error), bool)))
    halves, widers = zip(*((draw.half, draw.wider) for draw in _bootstrap_spreads(validation.hidden)), strict=True)
    again = [draw.half for draw in _bootstrap_spreads(validation.memory)]
    rows = len(validation.hidden.error)
    return (
        _line("spread", np.exp(speed.half), np.std(np.exp(halves)), rows),
        _line("wider_open", speed.wider, np.std(widers), int(validation.hidden.open.sum())),
        _line("spread_memory", np.exp(memory.half), np.std(np.exp(again)), len(validation.memory.error)),
    )


def _bootstrap_spreads(residuals: HeldOutErrors) -> list[Spread]:
    """The widths of sources drawn with replacement."""
    names, random, spreads = np.unique(residuals.sources), np.random.default_rng(0), []
    for _ in range(DRAWS):
        parts = [np.flatnonzero(residuals.sources == name) for name in random.choice(names, len(names))]
        sample = replace(rows_of(residuals, np.concatenate(parts)), sources=np.repeat(np.arange(len(parts)), [len(part) for part in parts]))
        if not sample.open.all():
            spreads.append(spread_of(sample))
    return spreads


def _line(key: str, value: Any, error: Any, rows: int) -> FittedNumbers:
    return FittedNumbers(
        section=SHARED_SECTION,
        key=key,
        value=float(value),
        unit="",
        error=float(error),
        rows=rows,
        range="rows whose source the fit did not see",
        meaning=MEANINGS[key],
        source="published training runs, docs/accuracy.md",
        date=DATE,
    )
