"""The counts of nodes or cards around a plan's answer, each with the chance that every limit holds: the same layout in fewer and in more.

A plan asks for the fewest that hold with a confidence. What one fewer or one more would give is what a buyer weighs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headway.core.quantity import known
from headway.laws.serving.replicas import nodes_needed, replicas_in_nodes
from headway.serving.plan.candidates import rented_together
from headway.serving.plan.choice import Choice, with_chips
from headway.serving.plan.group import PlanGroup
from headway.serving.plan.plan import LayoutPlan
from headway.simulation.check.check import SUREST, CheckedCandidate
from headway.simulation.check.fewer_replicas import larger_size, smaller_sizes

FINENESS = 12  # steps between none and the answer, of the second count on either side; the first is the next
UNLIKELY = 0.05  # a chance below which fewer are not tried
Play = Callable[[Choice], CheckedCandidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A number of nodes, or of machines that are rented, with its choice and what the simulator says of it."""

    count: int
    choice: Choice
    checked: CheckedCandidate

    @property
    def chance(self) -> float:
        """The chance that every limit holds; 0 for a queue that grows without end."""
        sure = self.checked.confidence
        return sure.probability if sure is not None and self.checked.stable else float(self.checked.is_met)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCounts:
    """The layout of a plan's best choice in any number of nodes: `node` chips each, `spare` of them paid for alone."""

    best: Choice
    group: PlanGroup
    node: int
    replica: int

    @property
    def spare(self) -> int:
        """Nodes that may be lost."""
        return self.group.goal.spare

    @property
    def count(self) -> int:
        """Nodes of the best choice that carry its load."""
        return int(self.best.case.system.chips) // self.node - self.spare

    @property
    def least(self) -> int:
        """Fewest nodes that hold a replica."""
        return int(nodes_needed(1, self.node, self.replica))

    def at(self, count: int) -> Choice:
        """The choice in `count` nodes, which hold as many replicas as fit."""
        case = self.best.case
        replicas = int(replicas_in_nodes(count, self.node, self.replica))
        number = known(replicas, "replicas", "", "derived", f"as many as {count} of {self.node} chips hold", "now")
        load = case.load
        if load.rate is None:
            share = float(self.group.goal.users) / replicas
            load = replace(load, batch=known(share, "batch", "", "derived", "users of a replica", "now"))
        system = with_chips(self.group.case.system, (count + self.spare) * self.node, self.spare)
        return replace(self.best, case=replace(case, system=system, layout=replace(case.layout, replicas=number), load=load))


def node_counts(best: Choice, group: PlanGroup) -> NodeCounts | None:
    """The sizes of a choice whose number of nodes is free; None where it is not, and for pools, whose numbers go together."""
    if not group.goal.free or not group.goal.is_loaded or best.prefill is not None:
        return None
    layout, system = best.case.layout, group.case.system
    replica = int(layout.chips)
    return NodeCounts(best=best, group=group, node=int(rented_together(system, replica)), replica=replica)


def fewest(of: NodeCounts, holds: Callable[[Choice], bool]) -> Choice:
    """The choice in the fewest nodes that hold, at most those of the best choice, which do."""
    high, low, step = of.count, of.least - 1, 1
    while high - step > low:  # in longer and longer steps down to a number that fails
        if not holds(of.at(high - step)):
            low = high - step
            break
        high, step = high - step, 2 * step
    while high - low > 1:
        middle = (high + low) // 2
        high, low = (middle, low) if holds(of.at(middle)) else (high, middle)
    return of.best if high == of.count else of.at(high)


def ladder(of: NodeCounts, checked: CheckedCandidate, play: Play) -> tuple[Rung, ...]:
    """Rungs around the best choice, fewest first, itself among them; empty without limits."""
    if checked.confidence is None:
        return ()
    below = above = [Rung(count=of.count, choice=of.best, checked=checked)]
    for distance in (1, 1 + -(-of.count // FINENESS)):
        if of.count - distance >= of.least and below[0].chance > UNLIKELY:
            below = [_rung(of, of.count - distance, play), *below]
        if above[-1].chance < SUREST:
            above = [*above, _rung(of, of.count + distance, play)]
    return (*below, *above[1:])


def pool_ladder(plan: LayoutPlan, checked: CheckedCandidate, play: Play) -> tuple[Rung, ...]:
    """Rungs around pools: with fewer replicas in the one that takes least of the chance, the plan, with more in the one that adds most."""
    best, group = plan.best, plan.groups[0]
    if checked.confidence is None or not group.goal.free:
        return ()

    def rung(choice: Choice, result: CheckedCandidate) -> Rung:
        return Rung(count=int(choice.case.system.chips), choice=choice, checked=result)

    beside = [[size.best for size in smaller_sizes(plan)], [larger_size(plan, side).best for side in (0, 1)]]
    below, above = ([max((rung(choice, play(choice)) for choice in sizes), key=lambda at: at.chance)] if sizes else [] for sizes in beside)
    return (*below, rung(best, checked), *above)


def _rung(of: NodeCounts, count: int, play: Play) -> Rung:
    choice = of.at(count)
    return Rung(count=count, choice=choice, checked=play(choice))
