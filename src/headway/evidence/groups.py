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
class Group:
    """The errors of what one group measured."""

    by: str  # a field of residuals, or all
    name: str
    measure: str
    stats: Stats


def stats(some: Sequence[Residual]) -> Stats:
    """Errors of at least one residual."""
    logs = np.array([one.log_ratio for one in some])
    return Stats(
        n=len(some),
        median_error=float(np.median(np.abs(np.expm1(logs)))),
        p90_log=float(np.percentile(np.abs(logs), 90)),
        bias=float(np.median(logs)),
        coverage=sum(bool(one.covered) for one in some) / len(some),
        below_floor=sum(bool(one.limit_share > 1 + SLACK) for one in some) / len(some),
        width=float(np.median([one.hi / one.lo for one in some])),
    )


def grouped(some: Iterable[Residual], by: str) -> list[Group]:
    """The errors by one field of residuals, or of `all`; measures in their order, then the largest groups first."""
    found: dict[tuple[str, str], list[Residual]] = {}
    for one in some:
        found.setdefault((one.measure, "all" if by == "all" else getattr(one, by)), []).append(one)
    every = [Group(by=by, name=name, measure=measure, stats=stats(own)) for (measure, name), own in found.items()]
    return sorted(every, key=lambda group: (ORDER.index(group.measure), -group.stats.n, group.name))


def worst(some: Iterable[Residual], count: int) -> list[Residual]:
    """The largest misses of each measure, so many."""
    every = sorted(some, key=lambda one: -abs(one.log_ratio))
    return [one for measure in ORDER for one in [each for each in every if each.measure == measure][:count]]
