"""A claim worked out again. Importing a group's file registers its recomputations."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from headway.ledger import context_wall, cross_checks, roofline_batch, roofline_shape, scale_up_memory, sparsity, train_schedule
from headway.ledger.claims import Claim
from headway.ledger.register import RECOMPUTE, Parts

GROUPS = (roofline_shape, roofline_batch, train_schedule, sparsity, scale_up_memory, context_wall, cross_checks)


def computable() -> list[str]:
    """Ids of the claims that have a recomputation."""
    return list(RECOMPUTE)


def recompute(claim: Claim, inputs: Mapping[str, Any] | None = None) -> Parts | None:
    """Each figure of a claim worked out again, with some inputs replaced when given; None when there is no recomputation yet."""
    function = RECOMPUTE.get(claim.id)
    if function is None:
        return None
    return function(SimpleNamespace(**{**claim.inputs, **(inputs or {})}))
