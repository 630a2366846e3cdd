"""The checked inputs of a plan: models, machines, objective, limits, rate, batches and formats."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.core.errors import BadValue, IllegalCombination, UnknownName
from headway.core.quantity import Sourced, known, user_input
from headway.core.schema import Field, fields, flag, scalar
from headway.core.units import show
from headway.hardware.system import System, rented_counts
from headway.hardware.system import system as find_system
from headway.models.config import model as find_model
from headway.models.model import Model
from headway.models.precision import Precision
from headway.performance.workload import SLO, Load
from headway.serving.questions import DISAGGREGATE, DISAGGREGATION

OBJECTIVES = {"cost": False, "throughput": True, "latency": True, "chips": False}  # objective -> whether more is better
ALIASES = {"speed": "latency"}
# Column of each limit; each column grows with the batch or does not depend on it.
LIMITS = {"ttft": "ttft_s", "tpot": "tpot_s", "e2e": "e2e_s", "tpot_decode": "tpot_decode_s"}
LIMIT_NAMES = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "E2E", "tpot_decode": "TPOT of decode steps alone"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The goal of a search: objective, limits, rate and pinned inputs."""

    objective: str = "cost"
    slo: SLO = SLO()  # noqa: RUF009 -- frozen
    rate: Any = None  # requests per second that the machine must carry
    users: Any = None  # users over all replicas, who wait for their answers
    disaggregate: str = "never"  # pools apart for prefill and decode: a way of `DISAGGREGATION`
    free: bool = False  # the number of chips follows from the load
    batches: tuple[int, ...] = ()  # the only batches allowed; empty for all
    pinned: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()  # pinned inputs with several values, which are each compared alone
    plainest: bool = True  # of layouts within PLAIN_WITHIN of the best objective, the plainest
    step_factor: float = 1.0  # every step so many times as long as expected, to leave room for the model's error
    engine: str = ""  # that must be able to express the layout
    host: Any = None  # chips of one host, where the user says so
    spare: int = 0  # nodes that may be lost: the others carry the load

    @property
    def apart(self) -> bool:
        """Whether prefill and decode have pools of their own."""
        return self.disaggregate == "only"

    @property
    def more(self) -> bool:
        """Whether a larger objective is better."""
        return OBJECTIVES[self.objective]

    @property
    def is_loaded(self) -> bool:
        """Whether there is a load that the machine must carry."""
        return self.rate is not None or self.users is not None

    @property
    def sizing(self) -> bool:
        """Whether the number of replicas follows from the load, not from the machine."""
        return (self.free or self.objective == "chips") and "replicas" not in self.pinned


def objective_named(name: str) -> str:
    """A known objective with aliases resolved; UnknownName lists the objectives."""
    objective = ALIASES.get(name, name)
    if objective not in OBJECTIVES:
        raise UnknownName("objective", name, (*OBJECTIVES, *ALIASES), "one of " + ", ".join(OBJECTIVES))
    return objective


def limits(slo: SLO) -> dict[str, Any]:
    """The given limits, by name."""
    all_limits = {field.name: getattr(slo, field.name) for field in dataclasses.fields(SLO)}
    return {name: value for name, value in all_limits.items() if value is not None}


def check_single_token(goal: Goal, load: Load) -> None:
    """Refuse limits on TPOT, the objective of speed and a pool for decoding where an answer has one token, which its prefill makes."""
    if load.output is None or hasattr(load.output, "__len__") or load.output > 1:
        return
    wants = "an answer of at least 2 tokens: --output 1 has no time between tokens; --ttft and --e2e apply"
    for name, limit in limits(goal.slo).items():
        if name.startswith(("tpot", "itl")):
            raise IllegalCombination(flag(name), show(limit, "s"), wants)
    if goal.objective == "latency":
        raise IllegalCombination("--objective", goal.objective, wants)
    if goal.disaggregate == "only":
        raise IllegalCombination("--disaggregate", "only", "an answer of at least 2 tokens: of --output 1 nothing is left to decode")


MOST_BATCHES = 10_000
MOST_PAIRS = 200
MOST_JOINED = 1152  # most chips of joined domains tried for a model too large for one domain


def pairs(models: Any, systems: Any) -> list[tuple[Model, System]]:
    records = [find_model(model) if isinstance(model, str) else model for model in _several(models)]
    pairs = list(itertools.product(records, [find_system(system) if isinstance(system, str) else system for system in _several(systems)]))
    if not 0 < len(pairs) <= MOST_PAIRS:
        raise BadValue("plan", f"{len(pairs)} pairs of model and machine", f"1 to {MOST_PAIRS}")
    return pairs


def rounded(value: Any) -> float:
    """A value without the digits in which equal ones differ."""
    return float(f"{float(value):.10e}")


def pinned_values(value: Any) -> list[Any]:
    """The values of a pinned degree."""
    return list(value) if isinstance(value, list | tuple | range) else [value]


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def slo_of(slo: SLO, user_limits: Mapping[str, Any]) -> SLO:
    """The limits as numbers with the user as origin."""
    merged_limits = limits(slo) | {name: value for name, value in user_limits.items() if value is not None}
    return SLO(**{name: _checked(value, fields(SLO)[name][0], name, "one time") for name, value in merged_limits.items()})


def rate(value: Any) -> Any:
    """The rate as a number with the user as origin, or None."""
    return None if value is None else _checked(value, fields(Load)["rate"][0], "rate", "one rate")


def users(value: Any) -> Any:
    """The number of users as a number with the user as origin, or None."""
    return None if value is None else _checked(value, fields(Load)["batch"][0], "users", "one number of users")


def _checked(value: Any, declaration: Field, name: str, wants: str) -> Any:
    """A number as the user gave it, in the range of its declaration; of a quantity with a unit also as text."""
    if isinstance(value, str) and declaration.unit:
        return scalar(value, declaration, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or declaration.illegal(value):
        raise BadValue(name, value, f"{wants} {declaration.range()}")
    if isinstance(value, Sourced):
        return value
    return user_input(float(value) if declaration.unit else int(value), name, declaration.unit)


def way_of_pools(disaggregate: str | bool, pinned: frozenset[str]) -> str:
    """The way that is asked for, True and False as words; of pinned replicas there is one pool."""
    way = DISAGGREGATE.truths[not disaggregate] if isinstance(disaggregate, bool) else disaggregate
    if way not in DISAGGREGATION:
        raise UnknownName("way of --disaggregate", way, DISAGGREGATION, "one of " + ", ".join(DISAGGREGATION))
    if way == "only" and "replicas" in pinned:
        raise BadValue("replicas", "a number", "no --replicas: how many each pool has is found by --disaggregate")
    return "never" if "replicas" in pinned else way


def free(system: System, goal: Goal) -> System | None:
    """One node of a machine named without a count, if a load to carry leaves the number of nodes or cards free; else None.

    The node is the machine itself, or for a bare chip one scale-up domain of its usual size.
    """
    if goal.spare and (system.fixed_count or system.shape):
        wants = f"a machine without a number, such as {system.chip.name}; of {system.name}, plan one node less without --spare"
        raise BadValue("--spare", goal.spare, wants)
    if system.fixed_count or system.shape or (goal.rate is None and goal.users is None and goal.objective != "chips"):
        return None
    if system.chips > 1 and goal.rate is None and goal.users is None:
        return None
    if "replicas" in goal.pinned:
        raise BadValue("replicas", "a number", f"no --replicas: how many {system.name} the load takes is the question")
    return usual_node(system)


def usual_node(system: System) -> System:
    """The machine itself, or for a bare chip one scale-up domain of its usual size, with the parts of it that clouds rent alone."""
    if system.chips > 1:
        return system
    usual = system.chips if system.chip.scale_up_domain is None else system.chip.scale_up_domain
    parts = tuple(count for count in rented_counts(system.chip) if count < usual)
    return replace(system, chips=usual, scale_up_domain=usual, rented=parts)


def grown(domain: System) -> Iterator[System]:
    """Machines to try in turn: the domain, then 2, 4, ... domains joined by scale-out, then the domain again to report its failure."""
    yield domain
    joined = int(domain.chips) * 2 if domain.scale_out_bw is not None or domain.chip.scale_out_bw is not None else MOST_JOINED + 1
    while joined <= MOST_JOINED:
        chips = known(joined, f"{domain.name}.chips", "", "derived", "fewest doublings of a domain that hold the model", "now")
        yield replace(domain, chips=chips)
        joined *= 2
    yield domain


def batches(batch: Any) -> tuple[int, ...]:
    q = fields(Load)["batch"][0]
    values = () if batch is None else tuple(batch) if hasattr(batch, "__iter__") else (batch,)
    for value in values:
        if q.illegal(value):
            raise BadValue("batch", value, q.illegal(value))
    if len(values) > MOST_BATCHES:
        raise BadValue("batch", f"{len(values)} values", f"at most {MOST_BATCHES}")
    return tuple(sorted({int(value) for value in values}))


def formats(value: str | Sequence[str], name: str) -> tuple[str, ...]:
    q = fields(Precision)[name][0]
    names = (value,) if isinstance(value, str) else tuple(value)
    for format_name in names:
        if format_name not in q.choices:
            raise UnknownName(f"{name} format", format_name, q.choices, "one of " + ", ".join(filter(None, q.choices)))
    return names
