"""A deployment that is to be checked: a resolved request of `serve`, a layout with its replicas, and the scheduler's choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.core.errors import IllegalCombination
from headway.hardware.system import System
from headway.models.model import Model
from headway.models.precision import Precision
from headway.performance.achieved import spread
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.serving.serve import ServeRequest, checked_load, query
from headway.simulation.fleet import Fleet, fleet
from headway.simulation.policy import Policy
from headway.simulation.traffic.requests import Traffic

AS_STORED, ENGINE_DEFAULTS = Precision(), Policy()
STEP_INTERVALS = {"ttft": "prefill", "tpot": "tpot", "itl": "tpot", "e2e": "tpot"}  # fitted interval of the steps behind each latency


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Model, machine and formats (in `query`), layout with replicas, scheduler, and tiers of a prefix cache."""

    query: ServeRequest
    layout: Layout
    policy: Policy = ENGINE_DEFAULTS  # max_seqs: the most sequences of one attention rank, as the launch line has it
    tiers: Any = ()  # as sim.prefix_tiers.parse_tiers gives them

    def fleet(self, traffic: Traffic, closed: bool) -> Fleet:
        """The deployment compiled for such traffic."""
        if self.tiers and self.query.assumptions.hit_rate:
            raise IllegalCombination("--hit-rate", self.query.assumptions.hit_rate, "either a hit rate or a prefix cache, not both")
        return fleet(self.query, self.layout, self.policy, traffic, closed=closed, tiers=self.tiers)

    def step_spread(self, quantity: str) -> float:
        """Half of the 90 % interval, as a factor, of the steps that make up a latency."""
        request = self.query
        return float(spread(request.system.chip, bool(request.work.moes), request.assumptions, STEP_INTERVALS[quantity]))


def candidate(
    model: Model | str, system: System | str, layout: Layout, *, prompt: float, output: float, precision: Precision = AS_STORED,
    assumptions: Assumptions | None = None, policy: Policy = ENGINE_DEFAULTS, tiers: Any = (),
) -> Candidate:  # fmt: skip
    """A candidate from names or records; `prompt` and `output` are mean tokens of a request."""
    request = query(model, system, layout, checked_load(prompt=prompt, output=output), precision, assumptions)
    return Candidate(query=request, layout=request.layouts[0], policy=policy, tiers=tiers)
