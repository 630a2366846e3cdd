"""What the laws leave of measured runs: shrunk means by one kind at a time, as last factors on a step, and the classes that keep a mean.

Kinds are formats of weights, engines and kinds of chip, never pairs of them. Rows of a model, a chip, an engine and a source err
together and count once: a cluster. A number is refused where its clusters are not of two models, chips, engines or sources at least twice.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.fit.result import DATE, FittedNumbers, overlaid
from headway.evidence.fit.statistics import cluster_sizes
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.engine_fit import EngineProblem, cluster, predicted_with
from headway.evidence.serving.machines import Engines, engines_of
from headway.evidence.serving.predict import RATES, width_key
from headway.laws.step.remainder import LEAST, MOST
from headway.performance.achieved import REMAINDER_KEYS, Efficiencies, chip_kind, weight_class
from headway.performance.nearest import ENGINES

STEP = 0.05  # of the numerical slopes by the logarithm of a factor
SPREAD = 0.1  # of factors of one kind, in the logarithm, which shrinks their means towards none
ODD = 1.0  # scatters of its quantity from which on a cluster counts less and less: no odd source decides a factor
ROUNDS = 20  # of the weights of odd clusters
CERTAIN = 1.5  # least factor in standard errors
MOVES = 0.3  # least change of a quantity with the logarithm of a factor at which its cluster counts for the factor
SMALLEST = 0.03  # a factor nearer to 1 says nothing
KINDS = ("weights", "engine", "chip")
PARTS = {"decode": "for steps without prompts", "prompt": "for prompts"}
CHIPS = {"amd": "AMD chips", "card": "cards with GDDR memory", "host": "chips that share the memory of a CPU"}
LEFT_OUT = "ttft_split"  # the run's length and start, which decide it, are in no row
NONE = np.zeros(0)
NO_ERROR = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """What a table without factors leaves of each measurement, as arrays."""

    quantity: Any  # key of its interval's width
    error: Any  # ln(predicted / measured) of a time, its negative of a rate
    decode: Any  # slopes of the error by the logarithms of the two factors
    prompt: Any
    scatter: Any
    cluster: Any  # model|chip|engine|source
    weights: Any
    engine: Any
    chip: Any

    def where(self, keep: np.ndarray) -> Leftovers:
        """The measurements where `keep` is true."""
        return replace(self, **{name: getattr(self, name)[keep] for name in self.__dataclass_fields__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """A factor of one kind: its logarithm, the standard error between clusters, and what it rests on."""

    kind: str
    name: str
    part: str  # decode or prompt
    log: float
    error: float
    clusters: int
    rows: int

    @property
    def value(self) -> float:
        """The factor, within the limits beyond which a law is missing."""
        return float(np.clip(np.exp(self.log), LEAST, MOST))

    @property
    def runs(self) -> str:
        """What the measured runs have in common, in words."""
        if self.kind == "chip":
            return CHIPS.get(self.name, f"{self.name.capitalize()} chips")
        return (
            next(family for family, name in ENGINES.items() if name == self.name)
            if self.kind == "engine"
            else f"{self.name.upper()} weights"
        )

    def line(self) -> FittedNumbers:
        """The number as a line of data/efficiency.toml."""
        basis = f"{self.clusters} clusters, {self.rows} rows"
        return FittedNumbers(
            section=f"remainder.{self.kind}.{self.name}", key=self.part, value=self.value, unit="", error=self.value * self.error,
            rows=self.rows, range=f"{self.clusters} clusters of model, chip, engine and source", date=DATE,
            meaning=f"measured runs of {self.runs} take {self.value:.2f} of the laws' time {PARTS[self.part]}: {basis}",
            source="published serving runs, docs/accuracy.md",
        )  # fmt: skip


def leftovers(fit_problem: EngineProblem, measured: Sequence[Task], table: Efficiencies) -> Leftovers:
    """What the numbers of `table`, without its factors, leave of a problem's measurements; `measured` has the task of each."""
    engines, count = engines_of(fit_problem.setups, table), len(fit_problem.setups)

    def errors(decode: float, prompt: float) -> Any:
        factors = {"decode_remainder": np.full(count, np.exp(decode)), "prompt_remainder": np.full(count, np.exp(prompt))}
        return predicted_with(fit_problem, Engines(cost=replace(engines.cost, **factors), scheduling=engines.scheduling))

    groups = [group for kind in fit_problem.kinds for group in kind.groups]
    sign, plain = time_signs(fit_problem), errors(0.0, 0.0)
    return Leftovers(
        quantity=np.array([width_key(group.kind, group.quantity) for group in groups for _ in group.rows], dtype=str),
        error=sign * plain, decode=sign * (errors(STEP, 0.0) - plain) / STEP, prompt=sign * (errors(0.0, STEP) - plain) / STEP,
        scatter=np.concatenate([group.share / group.weight for group in groups] or [NONE]),
        cluster=np.array([cluster(task) for task in measured], dtype=str),
        weights=np.array([weight_class(task.setup.formats.labels[0]) for task in measured], dtype=str),
        engine=np.array([ENGINES[task.setup.engine] for task in measured], dtype=str),
        chip=np.array([chip_kind(task.setup.system.chip) for task in measured], dtype=str),
    )  # fmt: skip


def time_signs(fit_problem: EngineProblem) -> Any:
    """Sign of each measurement with which its error is one of a time: -1 of a rate."""
    groups = [group for kind in fit_problem.kinds for group in kind.groups]
    return np.concatenate([np.full(len(group.rows), -1.0 if group.quantity in RATES else 1.0) for group in groups] or [NONE])


def differ(clusters: Iterable[str]) -> bool:
    """Whether two of the clusters differ in at least two of model, chip, engine and source.

    >>> differ(["m|h100|vLLM|a", "m|h200|vLLM|a"]), differ(["m|h100|vLLM|a", "m|h200|SGLang|a"])
    (False, True)
    """
    parts = [name.split("|") for name in dict.fromkeys(clusters)]
    return any(sum(map(operator.ne, *pair)) >= 2 for pair in itertools.combinations(parts, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    kind: str
    name: str
    part: str
    slope: Any  # by item
    clusters: int
    rows: int


def fit_remainders(rest: Leftovers) -> tuple[Remainder, ...]:
    """Factors of each kind that the measurements support: the least informative is dropped until each exceeds its error.

    The fixed point of shrunk means: each is the mean of what the others leave of its clusters, times n / (n + k).
    """
    rest = rest.where(np.isfinite(rest.error) & (rest.quantity != LEFT_OUT))
    if not len(rest.error):
        return ()
    items = means(rest)
    columns = [column for kind in KINDS for name in np.unique(getattr(items, kind)) for part in REMAINDER_KEYS
               if (column := _column(rest, items, kind, str(name), part)) is not None]  # fmt: skip
    while columns:
        logs, errors = _solved(items, np.stack([column.slope for column in columns], axis=1))
        known = np.abs(logs) / np.maximum(errors, NO_ERROR)
        weak = (np.abs(logs) < SMALLEST) | (known < CERTAIN)
        if not weak.any():
            return tuple(
                Remainder(kind=column.kind, name=column.name, part=column.part, log=float(log), error=float(error),
                          clusters=column.clusters, rows=column.rows)
                for column, log, error in zip(columns, logs, errors, strict=True)
            )  # fmt: skip
        columns.pop(int(np.argmin(np.where(weak, np.abs(logs) * np.minimum(known, CERTAIN), np.inf))))
    return ()


def _solved(items: Leftovers, slopes: np.ndarray) -> tuple[Any, Any]:
    """Logarithms of the factors and their standard errors between clusters, odd clusters counting less."""
    even = 1 / items.scatter**2 / cluster_sizes(np.char.add(items.cluster, items.quantity))
    weight, logs, inverse = even, np.zeros(slopes.shape[1]), np.zeros((slopes.shape[1],) * 2)
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(slopes.T @ (weight[:, None] * slopes) + np.eye(len(logs)) / SPREAD**2)
        logs = -inverse @ (slopes.T @ (weight * items.error))
        weight = even / (1 + ((items.error + slopes @ logs) / (ODD * items.scatter)) ** 2)
    pulls = weight[:, None] * slopes * (items.error + slopes @ logs)[:, None]
    shared = np.stack([pulls[items.cluster == name].sum(axis=0) for name in np.unique(items.cluster)])
    return logs, np.sqrt(np.diag(inverse @ (shared.T @ shared) @ inverse))


def means(rest: Leftovers) -> Leftovers:
    """Means by cluster, format of weights and quantity."""
    names = np.array(["~".join(parts) for parts in zip(rest.cluster, rest.weights, rest.quantity, strict=True)])
    _, first, place, count = np.unique(names, return_index=True, return_inverse=True, return_counts=True)
    middle = {name: np.bincount(place, getattr(rest, name)) / count for name in ("error", "decode", "prompt")}
    return replace(rest.where(first), **middle)


def _column(rest: Leftovers, items: Leftovers, kind: str, name: str, part: str) -> _Column | None:
    """Slopes of the items by one factor; None where too few clusters would move with it."""
    slope = np.where(getattr(items, kind) == name, getattr(items, part), 0.0)
    clusters = np.unique(items.cluster[np.abs(slope) > MOVES])
    if not differ(clusters):
        return None
    rows = int(((getattr(rest, kind) == name) & (np.abs(getattr(rest, part)) > MOVES)).sum())
    return _Column(kind=kind, name=name, part=part, slope=slope, clusters=len(clusters), rows=rows)


def corrected(rest: Leftovers, factors: Sequence[Remainder]) -> Any:
    """Errors of the measurements with these factors, by their slopes."""
    error = rest.error.copy()
    for factor in factors:
        applies = getattr(rest, factor.kind) == factor.name
        error = error + np.where(applies, getattr(rest, factor.part) * np.log(factor.value), 0.0)
    return error


def with_remainders(table: Efficiencies, factors: Sequence[Remainder]) -> Efficiencies:
    """The numbers of a table with these factors and no others."""
    sections = {name: section for name, section in table.sections.items() if not name.startswith("remainder.")}
    return overlaid(sections, [factor.line() for factor in factors], [factor.value for factor in factors])
