"""How wide intervals of training predictions have to be: from rows whose source the fit did not see, each source counted equally."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.fitted import Fitted
from headway.evidence.training.held_out import CrossValidated, Held, weights
from headway.evidence.training.predict import EVERY
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

    def of(self, some: Held) -> Any:
        """Half of each row's interval."""
        return np.where(some.open, self.half * self.wider, self.half)


def spread_of(some: Held) -> Spread:
    """The interval that holds nine rows of ten, of those with a layout and of those without."""
    size, weight, rows = np.abs(some.error), weights(some.sources), ~some.open
    half = quantile(size[rows], weight[rows])
    return Spread(half=half, wider=max(1.0, quantile(size[some.open], weight[some.open]) / half) if some.open.any() else 1.0)


def covered(some: Held, unseen: bool, made_of: Held | None = None) -> Any:
    """Whether each row is within its interval; its width is of the rows `made_of` (of these, where None), `unseen`: without its source."""
    size, others = np.abs(some.error), some if made_of is None else made_of
    if not unseen:
        return size <= spread_of(others).of(some)
    within = np.zeros(len(size), bool)
    for source in np.unique(some.sources):
        out = some.sources == source
        within[out] = (size <= spread_of(rows_of(others, others.sources != source)).of(some))[out]
    return within


def rows_of(some: Held, index: Any) -> Held:
    """Some of the rows."""
    place = np.arange(len(some.error))[index]
    return replace(some, error=some.error[place], sources=some.sources[place], open=some.open[place],
                   setups=tuple(some.setups[one] for one in place))  # fmt: skip


def widths(found: CrossValidated) -> tuple[Fitted, ...]:
    """The widths that ship; their errors by drawing the sources again. Those of speed are of rows without notes, as most rows come."""
    speed, memory = spread_of(found.hidden), spread_of(replace(found.memory, open=np.zeros(len(found.memory.error), bool)))
    halves, widers = zip(*((one.half, one.wider) for one in _drawn(found.hidden)), strict=True)
    again = [one.half for one in _drawn(found.memory)]
    rows = len(found.hidden.error)
    return (
        _line("spread", np.exp(speed.half), np.std(np.exp(halves)), rows),
        _line("wider_open", speed.wider, np.std(widers), int(found.hidden.open.sum())),
        _line("spread_memory", np.exp(memory.half), np.std(np.exp(again)), len(found.memory.error)),
    )


def _drawn(some: Held) -> list[Spread]:
    """The widths of sources drawn with replacement."""
    names, random, found = np.unique(some.sources), np.random.default_rng(0), []
    for _ in range(DRAWS):
        parts = [np.flatnonzero(some.sources == name) for name in random.choice(names, len(names))]
        drawn = replace(rows_of(some, np.concatenate(parts)), sources=np.repeat(np.arange(len(parts)), [len(part) for part in parts]))
        if not drawn.open.all():
            found.append(spread_of(drawn))
    return found


def _line(key: str, value: Any, error: Any, rows: int) -> Fitted:
    return Fitted(
        section=EVERY, key=key, value=float(value), unit="", error=float(error), rows=rows, range="rows whose source the fit did not see",
        meaning=MEANINGS[key], source="published training runs, docs/accuracy.md", date=DATE,
    )  # fmt: skip
