"""What the predictions are asked to reach, and whether they do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.evidence.groups import SLACK, stats
from headway.evidence.residuals import Residual

LEAST_COVERED, MOST_COVERED, EACH_COVERED = 0.85, 0.95, 0.75
FEW = 5  # measurements, below which a group's coverage is not judged
ONE_STEP = ("decode", "prefill")  # kinds whose floor is that of single steps, without a loop of requests around them


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The most that errors of one measure may be; None where nothing is asked."""

    measure: str
    median: float
    aim: float | None
    p90: float | None
    width: float | None


TARGETS = (
    Target(measure="served TPOT", median=0.20, aim=0.15, p90=0.5, width=2.5),
    Target(measure="TTFT", median=0.40, aim=None, p90=None, width=None),
    Target(measure="decode", median=0.15, aim=0.10, p90=None, width=1.8),
    Target(measure="prefill", median=0.22, aim=0.15, p90=None, width=None),
    Target(measure="throughput", median=0.22, aim=0.18, p90=0.65, width=None),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetResult:
    """One thing asked, what was found, and whether it is enough."""

    what: str
    limit: str
    result: str
    met: bool


def check_targets(residuals: Sequence[Residual]) -> list[TargetResult]:
    """Every target with what was found."""
    error_checks = [
        line for target in TARGETS for line in _errors(target, [residual for residual in residuals if residual.measure == target.measure])
    ]
    return [*error_checks, *_coverage(residuals), *_floors(residuals)] if residuals else []


def _errors(target: Target, residuals: Sequence[Residual]) -> Iterable[TargetResult]:
    if not residuals:
        return
    s, aim = stats(residuals), f" (aim {target.aim:.0%})" if target.aim else ""
    name = target.measure
    yield TargetResult(what=f"{name}, median error", limit=f"<= {target.median:.0%}{aim}", result=f"{s.median_error:.1%}",
                  met=s.median_error <= target.median)  # fmt: skip
    if target.p90:
        yield TargetResult(
            what=f"{name}, p90 of abs ln ratio", limit=f"<= {target.p90:g}", result=f"{s.p90_log:.3f}", met=s.p90_log <= target.p90
        )
    if target.width:
        yield TargetResult(what=f"{name}, median hi/lo", limit=f"<= {target.width:g}", result=f"{s.width:.2f}", met=s.width <= target.width)


def _coverage(residuals: Sequence[Residual]) -> Iterable[TargetResult]:
    share = stats(residuals).coverage
    limit = f"{LEAST_COVERED:.0%} to {MOST_COVERED:.0%}"
    yield TargetResult(
        what="coverage of all 90 % intervals", limit=limit, result=f"{share:.1%}", met=LEAST_COVERED <= share <= MOST_COVERED
    )
    for by, name in (("source", "source"), ("family", "chip family")):
        groups = covered(residuals, by)
        low = [f"{group} {coverage:.0%} of {n}" for group, coverage, n in groups if coverage < EACH_COVERED]
        result = (
            "; ".join(low) or f"all of {len(groups)} at least {min(coverage for _, coverage, _ in groups):.0%}" if groups else "no group"
        )
        limit = f">= {EACH_COVERED:.0%} (groups of {FEW} or more)"
        yield TargetResult(what=f"coverage within each {name}", limit=limit, result=result, met=not low)


def covered(residuals: Iterable[Residual], by: str) -> list[tuple[str, float, int]]:
    """Each group of a field: its name, the share within the intervals, and its size; small groups left out."""
    members_by_group: dict[str, list[Residual]] = {}
    for residual in residuals:
        members_by_group.setdefault(getattr(residual, by), []).append(residual)
    return [(name, stats(members).coverage, len(members)) for name, members in members_by_group.items() if len(members) >= FEW]


def _floors(residuals: Sequence[Residual]) -> Iterable[TargetResult]:
    plain_steps = [residual for residual in residuals if residual.reliability == "A" and residual.roofline == "yes"]
    yield _zero_check("measured A rows of plain steps (roofline=yes) faster than the floor", beyond_floor(plain_steps), len(plain_steps))
    single_steps = [residual for residual in residuals if residual.kind in ONE_STEP]
    faster_ids = [
        residual.id
        for residual in single_steps
        if (residual.floor / residual.predicted if residual.is_time else residual.predicted / residual.floor) > 1 + SLACK
    ]
    yield _zero_check("predictions of single steps below the floor", faster_ids, len(single_steps))


def beyond_floor(residuals: Iterable[Residual]) -> list[str]:
    """The ids of measurements faster than the floor."""
    return [residual.id for residual in residuals if residual.limit_share > 1 + SLACK]


def _zero_check(what: str, ids: Sequence[str], of: int) -> TargetResult:
    examples = f": {', '.join(ids[:5])}" if ids else ""
    return TargetResult(what=what, limit="none", result=f"{len(ids)} of {of}{examples}", met=not ids)


def worst_groups(residuals: Sequence[Residual], least: int, count: int) -> list[tuple[str, str, Residual, float, int]]:
    """The largest median errors among groups of one source, chip, engine and model class: measure, name, an example, error and size."""
    members_by_group: dict[tuple[str, ...], list[Residual]] = {}
    for residual in residuals:
        members_by_group.setdefault((residual.measure, residual.source, residual.chip, residual.engine, residual.model_class), []).append(
            residual
        )
    groups = [
        (key[0], ", ".join(key[1:]), members[0], stats(members).median_error, len(members))
        for key, members in members_by_group.items()
        if len(members) >= least
    ]
    return sorted(groups, key=lambda line: -line[3])[:count]
