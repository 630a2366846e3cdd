"""Layouts of a search as arrays: what does not depend on the load, which fit, their replicas and objective, and how plain they are."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from headway.core.progress import tick
from headway.core.quantity import known
from headway.core.units import Number, Second
from headway.hardware.system import System
from headway.laws.queueing.closed_loop import Loop
from headway.laws.serving.replicas import (
    nodes_needed,
    replicas_in_nodes,
    replicas_needed,
)
from headway.laws.serving.request import user_tok_per_s
from headway.laws.step.memory import fits_chips, fits_hbm, kv_bytes_chip, rank_sequence_limit, resident_sequences
from headway.laws.step.step import step_s
from headway.performance import request as request_laws
from headway.performance.compile import StepModel
from headway.performance.estimate import Deployment
from headway.performance.formats import Formats
from headway.performance.layout import Layout
from headway.performance.request import NO_WORK, SINGLE, Server, prefilled
from headway.serving.plan.problem import Goal

UNTOUCHED = 31 << 17  # doubles; C's allocator keeps freed arrays up to the largest ever freed, and gives the others' pages back each time


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Compiled layouts of one deployment: all that does not depend on the load."""

    case: Deployment  # its degrees are arrays (n, 1)
    count: int
    compiled: StepModel
    server: Server
    loop: Loop
    ttft: Any  # of a request alone
    prefill: Any  # of a step in which every rank prefills a prompt
    sequence: Any  # bytes of one sequence on the fullest chip
    usable: Any
    limit: Any  # most sequences of one rank, all pipeline stages together

    @property
    def layout(self) -> Layout:
        """The layouts."""
        return self.case.layout

    def rows(self, keep: np.ndarray) -> Candidates:
        """The candidates at the indices `keep`."""
        keys = ("compiled", "server", "loop", "ttft", "prefill", "sequence", "usable", "limit")
        parts = {key: take(getattr(self, key), keep, self.count) for key in keys}
        return replace(self, case=replace(self.case, layout=take(self.layout, keep, self.count)), **parts, count=len(keep))


def take(value: Any, keep: Any, count: int) -> Any:
    """The rows at the indices `keep` of arrays over `count` layouts, in records and tuples too."""
    if isinstance(value, np.ndarray):
        return value[keep] if value.ndim == 2 and value.shape[0] == count else value
    if is_dataclass(value) and not isinstance(value, type | Formats):
        return replace(value, **{field.name: take(getattr(value, field.name), keep, count) for field in fields(value)})
    return tuple(take(item, keep, count) for item in value) if isinstance(value, tuple) else value


def compile_candidates(case: Deployment, layouts: Layout, count: int) -> Candidates:
    """The compiled candidates of `count` layouts of a deployment."""
    tick(count)
    np.empty(UNTOUCHED)
    case = replace(case, layout=layouts)
    compiled, load = case.compiled(), case.load
    server, requests = case.server(compiled), case.requests()
    tokens, pairs = prefilled(load.prompt, case.assumptions.hit_rate)
    room = case.room(compiled)
    sequence_size, usable = room.sequence_bytes(load.prompt + load.output), room.usable
    return Candidates(
        case=case,
        count=count,
        compiled=compiled,
        server=server,
        loop=request_laws.loop_of(server, requests, SINGLE),
        ttft=request_laws.unloaded_ttft_s(server, requests, step_s),
        prefill=step_s(compiled.step, NO_WORK, NO_WORK, tokens * layouts.dp, pairs * layouts.dp),
        sequence=sequence_size,
        usable=usable,
        limit=rank_sequence_limit(usable, compiled.weights_bytes, sequence_size, compiled.stage, layouts.cp),
    )


def fits(w: Candidates, batch: Number) -> Any:
    """Whether weights and the KV cache of `batch` sequences fit in HBM, and the machine has the chips."""
    layout = w.layout
    kv = kv_bytes_chip(resident_sequences(batch, layout.dp), w.sequence, w.compiled.stage, layout.cp)
    chips = fits_chips(w.compiled.chips * layout.replicas, w.case.system.chips)
    return fits_hbm(w.compiled.weights_bytes, kv, w.usable) & chips & w.compiled.host_room(w.case.system.chip)


ONE_REPLICA = known(1, "one replica", "", "constant", "the fewest there can be")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCounts:
    """Replicas of each layout, chips that they use, and chips that are paid for."""

    replicas: Any
    chips_used: Any
    chips: Any

    def spread(self, count: int) -> ReplicaCounts:
        """The same for each of `count` layouts, as arrays."""
        return ReplicaCounts(**{name: np.broadcast_to(getattr(self, name), (count, 1)) for name in self.__slots__})


def sized(w: Candidates, request: Second, goal: Goal) -> ReplicaCounts:
    """The replicas that the machine holds, or that the load needs: in whole rented machines where their number is free."""
    replicas, chips = w.layout.replicas, w.case.system.chips
    if goal.sizing:
        replicas = ONE_REPLICA if goal.rate is None else replicas_needed(goal.rate, request)
        if goal.free:
            return in_nodes(w, replicas, goal.spare)
    return ReplicaCounts(replicas=replicas, chips_used=w.compiled.chips * replicas, chips=chips)


def in_nodes(w: Candidates, replicas: Number, spare: int = 0) -> ReplicaCounts:
    """Rented machines that hold the replicas, with as many replicas as fit in them, and spare ones that are paid for."""
    node = rented_together(w.case.system, w.compiled.chips)
    nodes = nodes_needed(replicas, node, w.compiled.chips)
    in_node_replicas = replicas_in_nodes(nodes, node, w.compiled.chips)
    all_nodes = nodes + spare if spare else nodes
    return ReplicaCounts(replicas=in_node_replicas, chips_used=w.compiled.chips * in_node_replicas, chips=all_nodes * node)


def rented_together(system: System, replica: Number) -> Any:
    """Chips of the smallest machine that is rented and holds a replica of so many chips: cards of one host, else a whole domain.

    >>> from headway.hardware.system import system
    >>> from headway.serving.plan.problem import usual_node
    >>> [int(rented_together(usual_node(system("a10g")), chips)) for chips in (1, 2, 8, 16)]
    [1, 4, 8, 8]
    """
    node = system.scale_up_domain
    for count in reversed(system.rented):
        node = np.where(replica <= count, count, node)
    return node


def objective_value(goal: Goal, case: Deployment, size: ReplicaCounts, tpot: Second, request: Second) -> Any:
    """The objective: USD per request (chip time without a price), tokens/s per chip, tokens/s of a user, or chips.

    If the number of chips follows from a rate, the requests of that rate share their cost; else the requests of full capacity do.
    """
    at_rate = goal.free and goal.rate is not None
    if goal.objective == "latency":
        return user_tok_per_s(tpot)
    if goal.objective == "chips":
        return size.chips if goal.free else size.chips_used
    if goal.objective == "throughput":
        load = case.load
        rate = goal.rate * load.output if at_rate else load.output / request * size.replicas
        return rate / size.chips
    if case.price is None:
        if at_rate:
            return size.chips / goal.rate
        return size.chips * request / size.replicas
    if at_rate:
        return case.price.value * size.chips / goal.rate
    return case.price.value * size.chips * request / size.replicas


PLAIN_WITHIN = 0.03  # of the best objective: layouts so near to it are compared by how plain they are


def oddness(w: Candidates) -> Any:
    """How many rules of plain layouts each layout breaks, (n, 1).

    The rules: a replica divides its node or takes whole nodes, so that no chips idle; each degree is a power of two or the whole node;
    no pipeline; experts divide by ep.
    """
    layout, domain = w.layout, int(w.case.system.scale_up_domain)
    degrees = [np.asarray(getattr(layout, name), dtype=np.int64) for name in ("tp", "ep", "dp", "pp", "cp")]
    count = np.zeros((w.count, 1), dtype=np.int64)
    for degree in degrees:
        count = count + (((degree & (degree - 1)) != 0) & (degree != domain))
    chips = np.asarray(w.compiled.chips, dtype=np.int64)
    count = count + (np.maximum(domain, chips) % np.minimum(domain, chips) != 0) + (degrees[3] > 1)
    for block in w.case.work.blocks:
        if block.experts:
            return count + (int(block.experts) % degrees[1] != 0)
    return count
