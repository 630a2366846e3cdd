"""Folds by class: whole classes of rows predicted by fits, and held by intervals, that have not seen them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFold:
    """Errors ln(predicted / measured) of rows whose class of one kind a fit has not seen; NaN where too little was left to fit to."""

    kind: str
    labels: Any
    error: Any
    hidden: Any = None  # the same where what the rows say of themselves beside numbers is removed


def unseen_halves(labels: Any, halves_without: Callable[[str], Any]) -> Any:
    """Half-width of each row's interval, in the logarithm, from the errors of the other classes."""
    half = np.zeros(len(labels))
    for name in np.unique(labels):
        half[labels == name] = halves_without(name)[labels == name]
    return half
