"""Training rows predicted by fits that have not seen their source, and simpler models beside them, as residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evidence.training.fit import TrainingFit, TrainingProblem, errors, fit
from headway.evidence.training.numbers import TrainingNumber, table
from headway.evidence.training.predict import held_bytes
from headway.evidence.training.setup import TrainingSetup
from headway.evidence.widths import quantile
from headway.training.conventions import model_flop
from headway.training.estimate import estimate
from headway.training.reach import family_of

FLAT = 0.4  # the MFU that planners assume everywhere
GIB = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """ln(predicted / measured) of rows, with what they have in common."""

    error: Any
    sources: Any
    open: Any  # whether a row leaves its layout open
    setups: tuple[TrainingSetup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidated:
    """The fit to all rows, and what fits without a source predict of it."""

    fit: TrainingFit
    speed: Held
    hidden: Held  # the same rows without their notes
    seen: Held  # the same rows by the fit to all of them
    flat: Held  # by one MFU
    constant: Held  # by the MFU of a chip's family in the other sources
    memory: Held  # which nothing is fitted to


def cross_validate(
    asked: TrainingProblem, hidden: TrainingProblem, every: Sequence[TrainingNumber], every_setup: Sequence[TrainingSetup]
) -> CrossValidated:
    """Every source left out in turn; `hidden` are the rows of `asked` without notes."""
    whole = fit(asked, every)
    speed, blind = np.empty(len(asked.setups)), np.empty(len(hidden.setups))
    for source in sources(asked):
        out = asked.sources == source
        found = table(fit(asked, every, ~out).values, asked.base)
        speed[out] = errors(asked, found)[out]
        blind[hidden.sources == source] = errors(hidden, found)[hidden.sources == source]
    return CrossValidated(
        fit=whole, speed=held(asked, speed), hidden=held(hidden, blind), seen=held(asked, errors(asked, table(whole.values, asked.base))),
        flat=held(asked, np.log(FLAT / measured_mfu(asked))), constant=held(asked, np.log(constant_mfu(asked) / measured_mfu(asked))),
        memory=memory_held(every_setup),
    )  # fmt: skip


def sources(asked: TrainingProblem) -> list[str]:
    """Every source of rows, by name."""
    return sorted(set(asked.sources.tolist()))


def held(asked: TrainingProblem, error: Any) -> Held:
    """Errors of a problem's rows."""
    return Held(error=error, sources=asked.sources, open=np.array([one.open for one in asked.setups]), setups=asked.setups)


def weights(names: Any) -> Any:
    """The weight of each row where every source counts equally."""
    _, place, count = np.unique(names, return_inverse=True, return_counts=True)
    return 1 / count[place]


def measured_mfu(asked: TrainingProblem) -> Any:
    """Model FLOPs that rows reach, attention in full, over the peak of their format."""
    flop = [float(model_flop(one.case.work, one.case.recipe, causal=False)) / float(one.case.machine.peak) for one in asked.setups]
    return asked.measured * np.array(flop)


def constant_mfu(asked: TrainingProblem) -> Any:
    """For each row the median MFU of its chips' family in the sources that are not its own; of all chips where there is none."""
    families = np.array([family_of(one.case.system.chip) for one in asked.setups])
    reached, weight, found = measured_mfu(asked), weights(asked.sources), np.empty(len(asked.setups))
    for index, (family, source) in enumerate(zip(families, asked.sources, strict=True)):
        others = asked.sources != source
        like = others & (families == family)
        rows = like if like.any() else others
        found[index] = quantile(reached[rows], weight[rows], 0.5)
    return found


def memory_held(setups: Sequence[TrainingSetup]) -> Held:
    """Rows that measured memory: frameworks print GiB and mostly call them GB."""
    some = tuple(one for one in setups if one.row.memory_gb_per_chip)
    found = [float(held_bytes(estimate(one.case, one.layout).memory, one.case.reach)) for one in some]
    measured = [one.row.memory_gb_per_chip * GIB for one in some if one.row.memory_gb_per_chip]
    return Held(
        error=np.log(np.array(found) / np.array(measured)), sources=np.array([one.row.source for one in some]),
        open=np.array([one.open for one in some]), setups=some,
    )  # fmt: skip
