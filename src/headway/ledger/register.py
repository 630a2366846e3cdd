"""The registry of recomputations: claim id -> the function that works it out again from the claim's own inputs by the project's laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Parts = dict[str, Any]  # figure name -> value
RECOMPUTE: dict[str, Callable[[Any], Parts]] = {}


def recomputes(claim_id: str) -> Callable[[Callable[[Any], Parts]], Callable[[Any], Parts]]:
    """Mark a function of a claim's inputs as its recomputation."""

    def register(function: Callable[[Any], Parts]) -> Callable[[Any], Parts]:
        if claim_id in RECOMPUTE:
            raise ValueError(f"{claim_id} is recomputed twice")
        RECOMPUTE[claim_id] = function
        return function

    return register
