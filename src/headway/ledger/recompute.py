"""A claim worked out again. Importing a group's file registers its recomputations."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from headway.ledger import (
    api_price,
    context_wall,
    cross_checks,
    frontier_size,
    kv_tiers,
    moe_rack,
    over_training,
    pipeline,
    rack_limits,
    roofline_batch,
    roofline_shape,
    scale_up_memory,
    sparsity,
    speed_tiers,
    train_schedule,
)
from headway.ledger.claims import Claim
from headway.ledger.register import RECOMPUTE, Parts

GROUPS = (
    *(roofline_shape, roofline_batch, speed_tiers, train_schedule, sparsity, moe_rack, rack_limits, pipeline),
    *(scale_up_memory, frontier_size, context_wall, cross_checks, api_price, kv_tiers, over_training),
)


def computable() -> list[str]:
    """Ids of the claims that have a recomputation."""
    return list(RECOMPUTE)


def recompute(claim: Claim, inputs: Mapping[str, Any] | None = None) -> Parts | None:
    """Each figure of a claim worked out again, with some inputs replaced when given; None when there is no recomputation yet."""
    function = RECOMPUTE.get(claim.id)
    if function is None:
        return None
    return function(SimpleNamespace(**{**claim.inputs, **(inputs or {})}))
