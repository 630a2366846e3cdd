"""The fewest replicas of two pools that keep every limit: the sizes of a search, with replicas more or less as the simulator says.

A search sizes pools by mean waits, with the model's error in hand; what is left over differs from pool to pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from headway.performance.layout import Layout
from headway.serving.plan.choice import Choice
from headway.serving.plan.disaggregate import rented_chips, resized
from headway.serving.plan.group import PlanGroup
from headway.serving.plan.plan import LayoutPlan
from headway.simulation.check.check import CheckedCandidate

MOST_TRIED = 10  # sizes that are played
MOST_ADDED = 6  # times that replicas are added, a share GROWTH of a pool at a time
GROWTH = 0.1
FIRST = 0.25  # share of a pool's replicas that is left out at first; half of it where that is too much, at last one


def fewest_replicas(plan: LayoutPlan, holds: Callable[[LayoutPlan], bool]) -> LayoutPlan:
    """The plan with its pools in as few chips as hold, tried in shorter and shorter steps; as it is where chips are not counted."""
    tried, share = 0, FIRST
    while tried < MOST_TRIED:
        sizes = list(smaller_sizes(plan, share))
        tried += len(sizes)
        smallest = next((smaller for smaller in sizes if holds(smaller)), None)
        if smallest is None and (not sizes or share * _most_replicas(plan) <= 1):
            return plan
        plan, share = smallest or plan, share if smallest else share / 2
    return plan


def enough_replicas(plan: LayoutPlan, play: Callable[[LayoutPlan], CheckedCandidate], needed: float) -> LayoutPlan | None:
    """The plan with replicas added to the pool whose limit breaks first, until every limit holds; None where that does not help."""
    if plan.best.prefill is None or not plan.groups[0].goal.free:
        return None
    for _ in range(MOST_ADDED):
        checked = play(plan)
        if checked.holds(needed):
            return plan
        tightest = None if checked.confidence is None else checked.confidence.tightest
        if tightest is None or not checked.stable or tightest.quantity == "e2e":  # either may be short
            plan = larger_size(larger_size(plan, 0, GROWTH), 1, GROWTH)
        else:
            plan = larger_size(plan, 0 if tightest.quantity == "ttft" else 1, GROWTH)
    return plan if play(plan).holds(needed) else None


def larger_size(plan: LayoutPlan, side: int, share: float = 0.0) -> LayoutPlan:
    """The plan with more replicas in its prefill pool (0) or its decode pool (1), that share or as few as take a chip more."""
    group, best = plan.groups[0], plan.best
    counts, chips = _counts(best), int(best.case.system.chips)
    counts[side] += max(int(share * counts[side]), 1)
    while (more_chips := _chips(best, group, counts)) <= chips:
        counts[side] += 1
    return _at(plan, (counts[0], counts[1]), more_chips)


def _most_replicas(plan: LayoutPlan) -> int:
    return max(_counts(plan.best))


def smaller_sizes(plan: LayoutPlan, share: float = 0.0) -> Iterator[LayoutPlan]:
    """The plan with fewer replicas in one of its pools, that share or as few as spare a chip that is paid for; the most spared first."""
    group, best = plan.groups[0], plan.best
    if best.prefill is None or not group.goal.free or group.goal.objective not in ("cost", "chips", "throughput"):
        return
    sizes = [size for side in (0, 1) if (size := _fewer(best, group, side, share)) is not None]
    for replicas, chips in sorted(sizes, key=lambda size: size[1]):
        yield _at(plan, replicas, chips)


def _at(plan: LayoutPlan, replicas: tuple[int, int], chips: int) -> LayoutPlan:
    """The plan with so many replicas in its pools, on so many chips."""
    group = plan.groups[0]
    return with_best(plan, resized(plan.best, group.case.system, replicas, chips, group.goal))


def with_best(plan: LayoutPlan, choice: Choice) -> LayoutPlan:
    """The plan with its best layout in another number of replicas; its value is that of the chips paid for, for the same requests."""
    group, share = plan.groups[0], float(choice.case.system.chips / plan.best.case.system.chips)
    choice = replace(choice, value=choice.value / share if group.goal.more else choice.value * share)
    return replace(plan, best=choice, groups=(replace(group, best=choice), *plan.groups[1:]))


def _counts(best: Choice) -> list[int]:
    """Replicas of the prefill pool and of the decode pool."""
    return [int(layout.replicas) for layout in (best.prefill or Layout(), best.case.layout)]


def _chips(best: Choice, group: PlanGroup, counts: list[int]) -> int:
    """Chips that are paid for with so many replicas in each pool."""
    layouts = (best.prefill or Layout(), best.case.layout)
    first, second = (int(layout.chips) for layout in layouts)
    return int(rented_chips(group.case.system, counts[0], first, counts[1], second))


def _fewer(best: Choice, group: PlanGroup, side: int, share: float) -> tuple[tuple[int, int], int] | None:
    """Replicas of both pools with as few fewer of one as spare a chip, at least a share; the chips. None where not even one is left."""
    counts = _counts(best)
    counts[side] -= max(int(share * counts[side]), 1)
    while counts[side] >= 1:
        chips = _chips(best, group, counts)
        if chips < int(best.case.system.chips):
            return (counts[0], counts[1]), chips
        counts[side] -= 1
    return None
