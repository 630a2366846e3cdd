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


def fewest_replicas(plan: LayoutPlan, holds: Callable[[LayoutPlan], bool]) -> LayoutPlan:
    """The plan with its pools in as few chips as hold, tried one size after the other; as it is where chips are not counted."""
    tried = 0
    while tried < MOST_TRIED:
        for smaller in smaller_sizes(plan):
            tried += 1
            if holds(smaller):
                plan = smaller
                break
        else:
            return plan
    return plan


def smaller_sizes(plan: LayoutPlan) -> Iterator[LayoutPlan]:
    """The plan with fewer replicas in one of its pools, as few fewer as spare a chip that is paid for; the most that is spared first."""
    group, best = plan.groups[0], plan.best
    if best.prefill is None or not group.goal.free or group.goal.objective not in ("cost", "chips", "throughput"):
        return
    sizes = [size for side in (0, 1) if (size := _fewer(best, group, side)) is not None]
    for replicas, chips in sorted(sizes, key=lambda size: size[1]):
        choice = resized(best, group.case.system, replicas, chips, group.goal)
        share = chips / float(best.case.system.chips)  # of what is paid, for the same requests
        choice = replace(choice, value=choice.value / share if group.goal.more else choice.value * share)
        yield replace(plan, best=choice, groups=(replace(group, best=choice), *plan.groups[1:]))


def _fewer(best: Choice, group: PlanGroup, side: int) -> tuple[tuple[int, int], int] | None:
    """Replicas of both pools with as few fewer of one as spare a chip, and the chips; None where even one replica spares none."""
    layouts = (best.prefill or Layout(), best.case.layout)
    first, second = (replica_chips(*(int(getattr(layout, name)) for name in ("tp", "cp", "dp", "pp"))) for layout in layouts)
    counts = [int(layout.replicas) for layout in layouts]
    while counts[side] > 1:
        counts[side] -= 1
        chips = int(rented_chips(group.case.system, counts[0], first, counts[1], second))
        if chips < int(best.case.system.chips):
            return (counts[0], counts[1]), chips
    return None
