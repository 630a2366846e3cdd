"""Small simulations that tests share: a pace that can be worked out by hand, rules, and ways to run them."""

from __future__ import annotations

from typing import Any

from headway.core.schema import defaults
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.serving.serve import checked_load, deployment
from headway.simulation.fleet import Fleet, fleet
from headway.simulation.questions import Policy
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.state import LANE, Rules
from headway.simulation.step_time import StepPace, pace_from
from headway.simulation.traffic.requests import Traffic

RULES = Rules(
    budget=2048, chunk=2048, seats=32, capacity=1000, block=16, mixed=1, handed=0, reserve=0.0, departures=0.0, accept=1.0, closed=0,
    lanes=LANE,
)  # fmt: skip
STEP = "def step(batch, context, tokens, pairs, prompts):\n    return {}\n"


def pace(formula: str, seats: int = 32, longest: float = 4096.0) -> StepPace:
    """A pace from one line of arithmetic."""
    return pace_from(STEP.format(formula), seats, longest)


def play(traffic: Traffic, formula: str, how: str = "plain", replicas: int = 1, ranks: Any = None, **changes: Any) -> SimulatedRun:
    """A run under the rules above with some of them changed."""
    rules = RULES._replace(**changes)
    return simulate(traffic, pace(formula, rules.seats), rules, replicas=replicas, ranks=ranks, how=how)


def real(model: str, system: str, layout: Layout, traffic: Traffic, policy: Policy | None = None, **assumed: Any) -> Fleet:
    """Replicas of a catalogue model."""
    asked = deployment(model, system, layout, checked_load(prompt=1000, output=1000), Precision(), defaults(Assumptions, assumed))
    return fleet(asked, asked.layout, policy or Policy(), traffic)
