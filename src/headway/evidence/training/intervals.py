"""Widths of training intervals: a base for what is like measured runs, and a term for each thing that is new about a row.

Each term is measured by leaving out whole classes: what its errors have beyond those of rows whose class of that kind was seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.evidence.fit.folds import ClassFold, unseen_halves
from headway.evidence.fit.weighted import cluster_weights, quantile, t_factor
from headway.evidence.training.folds import NEW_BY_KIND, clusters, labels, structure
from headway.evidence.training.setup import TrainingSetup
from headway.evidence.training.shape import is_unread

BASE_KINDS = ("source", "model")  # every row that is predicted comes from another source, most of another model
MEANINGS = {
    "spread": "half of the 90 % interval of a step's time, as a factor: dense models of another source",
    "spread_routed": "the same of models with routed experts",
    "new_chip": "factor that widens it, independently, on a family of chips that no measured run has",
    "new_format": "the same for a format that no measured run of the chip's family has",
    "new_structure": "the same for models with SSM or linear-attention layers, and for names that no catalogue has",
    "new_year": "the same for software of a year after the last measured run",
    "open_layout": "the same where the layout is not stated",
    "spread_memory": "half of the 90 % interval of the memory, as a factor",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Causes of width of each row: whether it has routed experts, an open layout, a name that no catalogue has."""

    routed: Any
    open: Any
    unread: Any
    clusters: Any
    kinds: Any  # pair of model family and chip family of each row


def causes(setups: Sequence[TrainingSetup]) -> Cause:
    """Causes of width of rows."""
    return Cause(
        routed=np.array([structure(setup) == "routed" for setup in setups]), open=np.array([setup.open for setup in setups]),
        unread=np.array([is_unread(setup.flags) for setup in setups]), clusters=clusters(setups),
        kinds=np.array([f"{model}|{chip}" for model, chip in zip(labels(setups, "model"), labels(setups, "chip"), strict=True)]),
    )  # fmt: skip


def widths(folds: Sequence[ClassFold], cause: Cause, rows: Any = None) -> dict[str, float]:
    """Widths by cause, half of the 90 % interval in ln, from the rows `rows` (default: all); a term is 0 where nothing measures it."""
    keep = np.ones(len(cause.routed), bool) if rows is None else rows
    by_kind = {fold.kind: np.where(keep, np.abs(fold.hidden), np.nan) for fold in folds}
    base = [by_kind[kind] for kind in BASE_KINDS]
    parts = ~cause.routed & ~cause.open, cause.routed & ~cause.open
    plain, routed = (_q90(base, cause, part) for part in parts)
    few_plain, few_routed = (t_factor(len(np.unique(cause.kinds[part & keep]))) for part in parts)
    dense = plain * few_plain
    open_layout = _beyond(_q90(base, cause, cause.open), plain)
    width_by_key = {"spread": dense, "spread_routed": max(routed, plain) * few_routed, "open_layout": open_layout}
    for kind, key in NEW_BY_KIND.items():
        part = cause.routed if kind == "structure" else ~cause.open
        reference = plain if kind == "structure" else _q90(base, cause, part)
        width_by_key[key] = _beyond(_q90([by_kind[kind]], cause, part), reference) if kind in by_kind else 0.0
    return width_by_key


def _q90(errors: Sequence[Any], cause: Cause, part: Any) -> float:
    """90 % of the errors of rows of a part, each cluster counted once; 0 without rows."""
    error, names = np.concatenate([values[part] for values in errors]), np.tile(cause.clusters[part], len(errors))
    finite = np.isfinite(error)
    return quantile(error[finite], cluster_weights(names[finite])) if finite.any() else 0.0


def _beyond(width: float, base: float) -> float:
    """Width that joins `base` to `width`, as variances of independent causes add."""
    return float(np.sqrt(max(width**2 - base**2, 0.0)))


def halves(cause: Cause, of: Mapping[str, float], new: Sequence[str] = ()) -> Any:
    """Half-width of each row's interval in ln; `new` names the widths of what is new about all rows."""
    variance = np.where(cause.routed, of["spread_routed"], of["spread"]) ** 2
    variance = variance + np.where(cause.open, of["open_layout"] ** 2, 0) + np.where(cause.unread, of["new_structure"] ** 2, 0)
    return np.sqrt(variance + sum(of[key] ** 2 for key in new))


def covered(fold: ClassFold, folds: Sequence[ClassFold], cause: Cause, hidden: bool = True) -> Any:
    """Whether each row of a fold lies within its interval, of widths that have not seen the row's class either."""
    new = [NEW_BY_KIND[fold.kind]] if fold.kind in NEW_BY_KIND and fold.kind != "structure" else []
    half = unseen_halves(fold.labels, lambda name: halves(cause, widths(folds, cause, fold.labels != name), new))
    return np.abs(fold.hidden if hidden else fold.error) <= half
