"""What a search is for: the objective, the limits, the rate of requests, and what the user pinned."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from headway.errors import UnknownName
from headway.workload import SLO

OBJECTIVES = {"cost": False, "throughput": True, "latency": True, "chips": False}  # whether more is better
ALIASES = {"speed": "latency"}
# Keys of a found row, by limit; each grows with the batch or does not depend on it.
LIMITS = {"ttft": "ttft_s", "tpot": "tpot_s", "tpot_interleaved": "tpot_interleaved_s", "e2e": "e2e_s"}
NAMES = {"ttft": "TTFT", "tpot": "TPOT", "tpot_interleaved": "TPOT with others' prompts in between", "e2e": "E2E"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One question to the space of layouts."""

    objective: str = "cost"
    slo: SLO = SLO()  # noqa: RUF009 -- frozen
    rate: Any = None  # requests per second that the machine must carry
    disaggregate: bool = False  # prefill and decode on pools of their own
    free: bool = False  # the machine may have as many chips as that takes
    batches: tuple[int, ...] = ()  # the only ones allowed; none for all
    pinned: frozenset[str] = frozenset()

    @property
    def more(self) -> bool:
        """Whether more of the objective is better."""
        return OBJECTIVES[self.objective]

    @property
    def sizing(self) -> bool:
        """Whether the number of replicas follows from the load, not from the machine."""
        return (self.free or self.objective == "chips") and "replicas" not in self.pinned


def objective_named(name: str) -> str:
    """A known objective, aliases resolved, or an error that names them."""
    objective = ALIASES.get(name, name)
    if objective not in OBJECTIVES:
        raise UnknownName("objective", name, (*OBJECTIVES, *ALIASES), "one of " + ", ".join(OBJECTIVES))
    return objective


def limits(slo: SLO) -> dict[str, Any]:
    """The limits that were given, by name."""
    all_limits = {field.name: getattr(slo, field.name) for field in fields(SLO)}
    return {name: value for name, value in all_limits.items() if value is not None}
