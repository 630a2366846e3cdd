"""Scores of predictions whose class was left out of the fit: median error, coverage and the worst class of each kind of fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evidence.fit.crossval import joined
from headway.evidence.fit.result import AS_MEASURED, HeldOutResiduals, quantile, width_factors
from headway.evidence.serving.folds import FEWEST, MeasuredClasses, cluster_weights

MEASURE_OF_KEY = {
    "tpot": "served TPOT", "ttft": "TTFT", "ttft_split": "TTFT, split pools", "decode": "decode", "prefill": "prefill",
    "offline": "throughput",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassGroup:
    """Errors of one class: its name, rows, median error, median ln(predicted / measured) and coverage."""

    name: str
    rows: int
    median: float
    bias: float
    coverage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassScore:
    """Errors of one measure in one kind of fold, each cluster of rows counted once, and of its classes of FEWEST rows and more."""

    kind: str
    measure: str
    rows: int
    median: float
    coverage: float
    width: float  # median of hi / lo
    classes: tuple[ClassGroup, ...]

    @property
    def worst(self) -> ClassGroup | None:
        """The class with the largest median error."""
        return max(self.classes, key=lambda group: group.median, default=None)


def class_scores(measured: MeasuredClasses, samples: Sequence[HeldOutResiduals]) -> tuple[ClassScore, ...]:
    """Scores of every kind of fold and measure; a class's intervals come from the errors of the others alone."""
    return tuple(score for index in range(len(samples)) for score in _scores(measured, samples, index))


def _scores(measured: MeasuredClasses, samples: Sequence[HeldOutResiduals], index: int) -> Iterator[ClassScore]:
    fold, rows = measured.folds[index], samples[index]
    labels = [fold.labels[np.isfinite(kind.error)] for kind in measured.folds]
    names_of, half = labels[index], np.zeros(len(rows.error))
    for name in np.unique(names_of):
        rest = [part.where(names != name) for part, names in zip(samples, labels, strict=True)]
        half[names_of == name] = _halves(rows, width_factors(joined(rest)))[names_of == name]
    within = np.abs(rows.error) <= half
    for key, measure in MEASURE_OF_KEY.items():
        at = rows.key == key
        if at.any():
            weight = cluster_weights(rows.source[at])
            names = [str(name) for name, count in zip(*np.unique(names_of[at], return_counts=True), strict=True) if count >= FEWEST]
            groups = tuple(_group(name, rows, within, at & (names_of == name)) for name in names)
            yield ClassScore(
                kind=fold.kind, measure=measure, rows=int(at.sum()), median=quantile(_errors(rows, at), weight, 0.5),
                coverage=float(np.average(within[at], weights=weight)), width=float(np.exp(2 * np.median(half[at]))), classes=groups,
            )  # fmt: skip


def _group(name: str, rows: HeldOutResiduals, within: Any, at: Any) -> ClassGroup:
    weight = cluster_weights(rows.source[at])
    return ClassGroup(
        name=name, rows=int(at.sum()), median=quantile(_errors(rows, at), weight, 0.5), bias=quantile(rows.error[at], weight, 0.5),
        coverage=float(np.average(within[at], weights=weight)),
    )  # fmt: skip


def _errors(rows: HeldOutResiduals, at: Any) -> Any:
    return np.abs(np.expm1(rows.error[at]))


def _halves(rows: HeldOutResiduals, factors: dict[str, float]) -> Any:
    """Half of each row's interval in the logarithm; a quantity that no other class measures has none."""
    half = np.log(np.array([factors.get(key, 1.0) for key in rows.key]))
    for name, holds in rows.wider.items():
        half = np.where(holds & (rows.key != AS_MEASURED), half * factors[name], half)
    return half
