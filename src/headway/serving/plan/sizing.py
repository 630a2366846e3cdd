"""Replicas and chips of a layout at a load, and the objective that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.laws.serving.replicas import (
    nodes_needed,
    replicas_in_nodes,
    replicas_needed,
)
from headway.laws.serving.request import user_tok_per_s
from headway.serving.plan.candidates import Candidates
from headway.serving.plan.problem import Goal
from headway.serving.serve_request import ServeRequest

ONE_REPLICA = known(1, "one replica", "", "constant", "the fewest there can be")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCounts:
    """Replicas of each layout, chips that they use, and chips that are paid for."""

    replicas: Any
    chips_used: Any
    chips: Any


def sized(w: Candidates, request: Any, goal: Goal) -> ReplicaCounts:
    """The replicas that the machine holds, or that the load needs: in whole nodes where their number is free."""
    replicas, chips = w.layout.replicas, w.query.system.chips
    if goal.sizing:
        replicas = ONE_REPLICA if goal.rate is None else replicas_needed(goal.rate, request)
        if goal.free:
            return in_nodes(w, replicas, goal.spare)
    return ReplicaCounts(replicas=replicas, chips_used=w.compiled.chips * replicas, chips=chips)


def in_nodes(w: Candidates, replicas: Any, spare: int = 0) -> ReplicaCounts:
    """Whole nodes that hold the replicas, with as many replicas as fit in them, and spare nodes that are paid for."""
    node = w.query.system.scale_up_domain
    nodes = nodes_needed(replicas, node, w.compiled.chips)
    in_node_replicas = replicas_in_nodes(nodes, node, w.compiled.chips)
    all_nodes = nodes + spare if spare else nodes
    return ReplicaCounts(replicas=in_node_replicas, chips_used=w.compiled.chips * in_node_replicas, chips=all_nodes * node)


def objective_value(goal: Goal, query: ServeRequest, size: ReplicaCounts, tpot: Any, request: Any) -> Any:
    """The objective: USD per request (chip time without a price), tokens/s per chip, tokens/s of a user, or chips.

    If the number of chips follows from a rate, the requests of that rate share their cost; else the requests of full capacity do.
    """
    at_rate = goal.free and goal.rate is not None
    if goal.objective == "latency":
        return user_tok_per_s(tpot)
    if goal.objective == "chips":
        return size.chips if goal.free else size.chips_used
    if goal.objective == "throughput":
        load = query.load
        rate = goal.rate * load.output if at_rate else load.output / request * size.replicas
        return rate / size.chips
    if query.price is None:
        if at_rate:
            return size.chips / goal.rate
        return size.chips * request / size.replicas
    if at_rate:
        return query.price.value * size.chips / goal.rate
    return query.price.value * size.chips * request / size.replicas
