"""The fewest replicas of two pools that keep every limit: the sizes of a search, less a replica where the simulator says that it may go.

A search sizes pools by mean waits, with the model's error in hand; what is left over differs from pool to pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from headway.laws.step.layer_terms import replica_chips
from headway.performance.layout import Layout
from headway.serving.plan.choice import Choice
from headway.serving.plan.disaggregate import rented_chips, resized
from headway.serving.plan.group import PlanGroup
from headway.serving.plan.plan import LayoutPlan

MOST_TRIED = 10  # sizes that are played
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


def _most_replicas(plan: LayoutPlan) -> int:
    return max(int(layout.replicas) for layout in (plan.best.prefill or Layout(), plan.best.case.layout))


def smaller_sizes(plan: LayoutPlan, share: float = 0.0) -> Iterator[LayoutPlan]:
    """The plan with fewer replicas in one of its pools, that share or as few as spare a chip that is paid for; the most spared first."""
    group, best = plan.groups[0], plan.best
    if best.prefill is None or not group.goal.free or group.goal.objective not in ("cost", "chips", "throughput"):
        return
    sizes = [size for side in (0, 1) if (size := _fewer(best, group, side, share)) is not None]
    for replicas, chips in sorted(sizes, key=lambda size: size[1]):
        choice = resized(best, group.case.system, replicas, chips, group.goal)
        price_ratio = chips / float(best.case.system.chips)  # share of what is paid, for the same requests
        choice = replace(choice, value=choice.value / price_ratio if group.goal.more else choice.value * price_ratio)
        yield replace(plan, best=choice, groups=(replace(group, best=choice), *plan.groups[1:]))


def _fewer(best: Choice, group: PlanGroup, side: int, share: float) -> tuple[tuple[int, int], int] | None:
    """Replicas of both pools with as few fewer of one as spare a chip, at least a share; the chips. None where not even one is left."""
    layouts = (best.prefill or Layout(), best.case.layout)
    first, second = (replica_chips(*(int(getattr(layout, name)) for name in ("tp", "cp", "dp", "pp"))) for layout in layouts)
    counts = [int(layout.replicas) for layout in layouts]
    counts[side] -= max(int(share * counts[side]), 1)
    while counts[side] >= 1:
        chips = int(rented_chips(group.case.system, counts[0], first, counts[1], second))
        if chips < int(best.case.system.chips):
            return (counts[0], counts[1]), chips
        counts[side] -= 1
    return None
