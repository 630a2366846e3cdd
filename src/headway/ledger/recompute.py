"""The registry of recomputations: claim id -> the function that works it out again from the claim's own inputs by the project's laws."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from headway.ledger.claims import Claim

Parts = dict[str, Any]  # part name -> value; the first part is the claim's headline
_RECOMPUTE: dict[str, Callable[[Any], Parts]] = {}


def recomputes(claim_id: str) -> Callable[[Callable[[Any], Parts]], Callable[[Any], Parts]]:
    """Mark a function of a claim's inputs as its recomputation."""

    def register(function: Callable[[Any], Parts]) -> Callable[[Any], Parts]:
        if claim_id in _RECOMPUTE:
            raise ValueError(f"{claim_id} is recomputed twice")
        _RECOMPUTE[claim_id] = function
        return function

    return register


@functools.cache
def _load() -> None:
    """The recomputations of each group register themselves when their file is imported."""
    from headway.ledger import context_wall, cross_checks, roofline_batch, roofline_shape, scale_up_memory, sparsity, train_schedule  # noqa: F401


def computable() -> list[str]:
    """Ids of the claims that have a recomputation."""
    _load()
    return list(_RECOMPUTE)


def recompute(claim: Claim, inputs: Mapping[str, Any] | None = None) -> Parts | None:
    """Each part of a claim worked out again, with some inputs replaced when given; None when there is no recomputation yet."""
    _load()
    function = _RECOMPUTE.get(claim.id)
    if function is None:
        return None
    return function(SimpleNamespace(**{**claim.inputs, **(inputs or {})}))
