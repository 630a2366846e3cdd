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
class Reached:
    """One thing asked, what was found, and whether it is enough."""

    what: str
    asked: str
    found: str
    met: bool


def reached(residuals: Sequence[Residual]) -> list[Reached]:
    """Every target with what was found."""
    found = [line for target in TARGETS for line in _errors(target, [one for one in residuals if one.measure == target.measure])]
    return [*found, *_coverage(residuals), *_floors(residuals)] if residuals else []


def _errors(target: Target, some: Sequence[Residual]) -> Iterable[Reached]:
    if not some:
        return
    s, aim = stats(some), f" (aim {target.aim:.0%})" if target.aim else ""
    name = target.measure
    yield Reached(what=f"{name}, median error", asked=f"<= {target.median:.0%}{aim}", found=f"{s.median_error:.1%}",
                  met=s.median_error <= target.median)  # fmt: skip
    if target.p90:
        yield Reached(
            what=f"{name}, p90 of abs ln ratio", asked=f"<= {target.p90:g}", found=f"{s.p90_log:.3f}", met=s.p90_log <= target.p90
        )
    if target.width:
        yield Reached(what=f"{name}, median hi/lo", asked=f"<= {target.width:g}", found=f"{s.width:.2f}", met=s.width <= target.width)


def _coverage(residuals: Sequence[Residual]) -> Iterable[Reached]:
    share = stats(residuals).coverage
    asked = f"{LEAST_COVERED:.0%} to {MOST_COVERED:.0%}"
    yield Reached(what="coverage of all 90 % intervals", asked=asked, found=f"{share:.1%}", met=LEAST_COVERED <= share <= MOST_COVERED)
    for by, name in (("source", "source"), ("family", "chip family")):
        every = covered(residuals, by)
        low = [f"{group} {own:.0%} of {n}" for group, own, n in every if own < EACH_COVERED]
        found = "; ".join(low) or f"all of {len(every)} at least {min(own for _, own, _ in every):.0%}" if every else "no group"
        asked = f">= {EACH_COVERED:.0%} (groups of {FEW} or more)"
        yield Reached(what=f"coverage within each {name}", asked=asked, found=found, met=not low)


def covered(residuals: Iterable[Residual], by: str) -> list[tuple[str, float, int]]:
    """Each group of a field: its name, the share within the intervals, and its size; small groups left out."""
    found: dict[str, list[Residual]] = {}
    for one in residuals:
        found.setdefault(getattr(one, by), []).append(one)
    return [(name, stats(own).coverage, len(own)) for name, own in found.items() if len(own) >= FEW]


def _floors(residuals: Sequence[Residual]) -> Iterable[Reached]:
    sure = [one for one in residuals if one.reliability == "A" and one.roofline == "yes"]
    yield _none("measured A rows of plain steps (roofline=yes) faster than the floor", beyond_floor(sure), len(sure))
    single = [one for one in residuals if one.kind in ONE_STEP]
    better = [one.id for one in single if (one.floor / one.predicted if one.is_time else one.predicted / one.floor) > 1 + SLACK]
    yield _none("predictions of single steps below the floor", better, len(single))


def beyond_floor(residuals: Iterable[Residual]) -> list[str]:
    """The ids of measurements faster than the floor."""
    return [one.id for one in residuals if one.limit_share > 1 + SLACK]


def _none(what: str, found: Sequence[str], of: int) -> Reached:
    named = f": {', '.join(found[:5])}" if found else ""
    return Reached(what=what, asked="none", found=f"{len(found)} of {of}{named}", met=not found)


def worst_groups(residuals: Sequence[Residual], least: int, count: int) -> list[tuple[str, str, Residual, float, int]]:
    """The largest median errors among groups of one source, chip, engine and model class: measure, name, an example, error and size."""
    found: dict[tuple[str, ...], list[Residual]] = {}
    for one in residuals:
        found.setdefault((one.measure, one.source, one.chip, one.engine, one.model_class), []).append(one)
    every = [(key[0], ", ".join(key[1:]), own[0], stats(own).median_error, len(own)) for key, own in found.items() if len(own) >= least]
    return sorted(every, key=lambda line: -line[3])[:count]
