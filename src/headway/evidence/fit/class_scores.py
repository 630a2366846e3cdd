"""Scores of predictions whose class was left out of the fit: median error, coverage and the worst class of each kind of fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.fit.crossval import joined
from headway.evidence.fit.folds import unseen_halves
from headway.evidence.fit.result import SLOWER, HeldOutResiduals, width_factors, width_names
from headway.evidence.fit.weighted import Misses, misses, misses_by_class
from headway.evidence.serving.folds import FEWEST, MeasuredClasses

MEASURE_OF_KEY = {
    "tpot": "served TPOT", "ttft": "TTFT", "ttft_split": "TTFT, split pools", "decode": "decode", "prefill": "prefill",
    "offline": "throughput",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassScore:
    """Errors of one measure in one kind of fold, each cluster of rows counted once, and of its classes of FEWEST rows and more."""

    kind: str
    measure: str
    all_rows: Misses
    width: float  # median of hi / lo
    classes: tuple[Misses, ...]

    @property
    def worst(self) -> Misses | None:
        """The class with the largest median error."""
        return max(self.classes, key=lambda group: group.median, default=None)


def class_scores(measured: MeasuredClasses, samples: Sequence[HeldOutResiduals]) -> tuple[ClassScore, ...]:
    """Scores of every kind of fold and measure; a class's intervals come from the errors of the others alone."""
    return tuple(score for index in range(len(samples)) for score in _scores(measured, samples, index))


def _scores(measured: MeasuredClasses, samples: Sequence[HeldOutResiduals], index: int) -> Iterator[ClassScore]:
    fold, rows = measured.folds[index], samples[index]
    labels = [fold.labels[np.isfinite(kind.error)] for kind in measured.folds]

    factors = {
        str(name): width_factors(joined([part.where(names != name) for part, names in zip(samples, labels, strict=True)]))
        for name in np.unique(labels[index])
    }
    half, opposite_half = (
        unseen_halves(labels[index], lambda name, part=part: _halves(part, factors[str(name)]))
        for part in (rows, replace(rows, slower=~rows.slower))
    )
    within = np.abs(rows.error) <= half
    for key, measure in MEASURE_OF_KEY.items():
        at = rows.key == key
        if at.any():
            part = (rows.error[at], rows.source[at], within[at])
            yield ClassScore(
                kind=fold.kind, measure=measure, all_rows=misses(*part), width=float(np.exp(np.median((half + opposite_half)[at]))),
                classes=misses_by_class(labels[index][at], *part, FEWEST),
            )  # fmt: skip


def _halves(rows: HeldOutResiduals, factors: dict[str, float]) -> Any:
    """Half of each row's interval in the logarithm, on the side of its error; a quantity that no other class measures has none."""
    half = np.log(np.array([factors.get(name, 1.0) for name in width_names(rows.key)]))
    for name, holds in rows.wider.items():
        extent = np.asarray(holds, dtype=float)
        half = half * factors[name] ** (np.where(rows.slower, extent, 0.0) if name == SLOWER else extent)
    return half
