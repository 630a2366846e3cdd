"""How far off predictions are: statistics of residuals, by what was measured and by any field of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headway.evidence.residuals import Residual

FIELDS = ("source", "chip", "family", "engine", "model", "model_class", "kind")
ORDER = ("served TPOT", "TTFT", "served rate", "decode", "prefill", "throughput", "TPOT at throughput")
SLACK = 1e-9  # of rounding, before a measurement counts as beyond the floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Errors of some predictions."""

    n: int
    median_error: float  # of |predicted / measured - 1|
    p90_log: float  # 90th percentile of |ln(predicted / measured)|
    bias: float  # median of ln(predicted / measured)
    coverage: float  # share of measurements within the 90 % interval
    below_floor: float  # share of measurements faster than the floor
    width: float  # median of hi / lo


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """The errors of what one group measured."""

    by: str  # a field of residuals, or all
    name: str
    measure: str
    stats: Stats


def stats(residuals: Sequence[Residual]) -> Stats:
    """Errors of at least one residual."""
    logs = np.array([residual.log_ratio for residual in residuals])
    return Stats(
        n=len(residuals),
        median_error=float(np.median(np.abs(np.expm1(logs)))),
        p90_log=float(np.percentile(np.abs(logs), 90)),
        bias=float(np.median(logs)),
        coverage=sum(bool(residual.covered) for residual in residuals) / len(residuals),
        below_floor=sum(bool(residual.limit_share > 1 + SLACK) for residual in residuals) / len(residuals),
        width=float(np.median([residual.hi / residual.lo for residual in residuals])),
    )


def grouped(residuals: Iterable[Residual], by: str) -> list[ErrorGroup]:
    """The errors by one field of residuals, or of `all`; measures in their order, then the largest groups first."""
    members_by_group: dict[tuple[str, str], list[Residual]] = {}
    for residual in residuals:
        members_by_group.setdefault((residual.measure, "all" if by == "all" else getattr(residual, by)), []).append(residual)
    groups = [ErrorGroup(by=by, name=name, measure=measure, stats=stats(members)) for (measure, name), members in members_by_group.items()]
    return sorted(groups, key=lambda group: (ORDER.index(group.measure), -group.stats.n, group.name))


def worst(residuals: Iterable[Residual], count: int) -> list[Residual]:
    """The largest misses of each measure, so many."""
    ranking = sorted(residuals, key=lambda residual: -abs(residual.log_ratio))
    return [residual for measure in ORDER for residual in [candidate for candidate in ranking if candidate.measure == measure][:count]]
