"""Fit of training efficiencies to measured runs: priors as regularisation, a robust loss, standard errors by source.

The prior of a chip family is the value of all families, the prior of a format is its 16-bit value; without rows they stay there.

A row's residual is ln(predicted / measured) of tokens per second and chip. No number is keyed by source, model or row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any

import numpy as np

from headway.evidence.fit.result import Place, PriorNumber, free_places, overlaid, values_at
from headway.evidence.fit.statistics import cluster_sizes, covariance_by_source, least_squares, slopes, softened
from headway.evidence.serving.machines import columns
from headway.evidence.training.setup import TrainingSetup, measured_speed
from headway.performance.achieved import OTHER_FAMILY, Efficiencies
from headway.training.achieved import SHARED_SECTION, from_table
from headway.training.pipeline import TrainingCase, placement
from headway.training.recipe import TrainingLayout, TrainingReach
from headway.training.step_time import StepWork, achieved_time, step_work
from headway.training.work import is_fused

FAMILIES = ("ampere", "hopper", "blackwell", "tpu")
MEANINGS = {
    "compute": ("", "share of the dense peak that matmuls reach, clocks under load included"),
    "attention_fused": ("", "share of the 16-bit peak that attention's scores and values reach, with Megatron's or XLA's kernels"),
    "attention_eager": ("", "the same with PyTorch's"),
    "attention_kept": ("", "the same where scores are written to memory, beside the time of writing them"),
    "traffic_fused": ("", "times that each activation kept moves between chip and HBM, kernels between matmuls fused"),
    "traffic_eager": ("", "the same where they run one by one"),
    "memory": ("", "share of HBM bandwidth that weights, gradients and the optimiser's update reach"),
    "recurrence": ("", "share of the 16-bit peak that scans of SSM and linear-attention layers reach, in chunked Triton kernels"),
    "norm": ("", "how arithmetic and weight traffic of a matmul overlap: norm of the smooth maximum"),
    "expert": ("", "share of the peak that routed experts' grouped matmuls reach, over that of dense matmuls"),
    "power": ("", "exponent with which clocks under load follow the power per FLOP of a chip"),
    "sync_copied": ("s", "time that the host adds to a routed layer and micro-batch where a step is not one CUDA graph, by all-to-all"),
    "sync_packed": ("s", "the same with DeepEP and HybridEP"),
    "launch_fused": ("s", "fixed cost of a layer, forward and backward, on one micro-batch, kernels between matmuls fused"),
    "launch_eager": ("s", "the same where they run one by one"),
    "hidden_tp_fused": ("", "share of tensor parallelism's exchanges that runs beside matmuls, in Megatron"),
    "hidden_tp_eager": ("", "the same in PyTorch"),
    "hidden_dp": ("", "share of gathers and reductions over data-parallel ranks that runs beside work"),
    "hidden_cp": ("", "share of context parallelism's exchanges that runs beside attention"),
    "hidden_ep_copied": ("", "share of exchanges between experts that runs beside matmuls, by all-to-all"),
    "hidden_ep_packed": ("", "the same with DeepEP and HybridEP"),
    "fragmentation": ("", "memory taken over what tensors need, as a share"),
    "fixed": ("byte", "memory that contexts and communicators take"),
}
PRIORS = {  # shared by all families, 16-bit formats: prior, and its standard deviation in ln
    "compute": (0.65, 0.2), "attention_fused": (0.45, 0.3), "attention_eager": (0.35, 0.3), "attention_kept": (0.3, 0.5),
    "traffic_fused": (4.0, 0.5), "traffic_eager": (8.0, 0.5), "memory": (0.8, 0.0), "recurrence": (0.033, 0.0), "norm": (2.0, 0.0),
    "expert": (0.7, 0.25), "power": (0.6, 0.4), "sync_copied": (4e-3, 0.5), "sync_packed": (4e-3, 0.5), "launch_fused": (50e-6, 0.0),
    "launch_eager": (200e-6, 0.0), "hidden_tp_fused": (0.4, 0.5), "hidden_tp_eager": (0.4, 0.5), "hidden_dp": (0.8, 0.2),
    "hidden_cp": (0.8, 0.0), "hidden_ep_copied": (0.5, 0.0), "hidden_ep_packed": (0.8, 0.2),
}  # fmt: skip
APART = {"compute": 0.15, "attention_fused": 0.15, "attention_eager": 0.15, "hidden_tp_fused": 0.3}  # prior of a family, in ln
BELOW_FP8 = {"mxfp8": (0.95, 0.1), "nvfp4": (0.8, 0.15)}  # share of its peak over that of FP8: prior, and its spread in ln
SHARES = (
    "compute", "attention_fused", "attention_eager", "attention_kept", "memory", "hidden_tp_fused", "hidden_tp_eager", "hidden_dp",
    "hidden_cp", "hidden_ep_copied", "hidden_ep_packed", "recurrence", "expert",
)  # fmt: skip

# Of an exchange in eight chunks, one for each chip, the first has no matmul to run beside; a fit cannot tell, since matmuls of other runs
# differ by more.
MOST_HIDDEN: dict[str, float] = dict.fromkeys(("hidden_tp_fused", "hidden_tp_eager"), 7 / 8)


def number(section: str, key: str, prior: float, spread: float = 0.0, parent: str = "") -> PriorNumber:
    """Training number with unit, meaning and limit of its key, and the section that its prior is a factor of."""
    unit, meaning = MEANINGS[key]
    most = MOST_HIDDEN.get(key, 1.0) if key in SHARES else math.inf
    return PriorNumber(section=section, key=key, prior=prior, spread=spread, unit=unit, meaning=meaning, most=most, parent=parent)


@cache
def numbers() -> tuple[PriorNumber, ...]:
    """All training numbers, parents first."""
    all_numbers = [number(SHARED_SECTION, key, prior, spread) for key, (prior, spread) in PRIORS.items()]
    for family in FAMILIES:
        all_numbers += [number(f"training.{family}.bf16", key, 1.0, spread, SHARED_SECTION) for key, spread in APART.items()]
    for family in (OTHER_FAMILY, *FAMILIES[1:3]):  # families with 8-bit arithmetic
        all_numbers.append(number(f"training.{family}.fp8", "compute", 0.8, 0.15, f"training.{family}.bf16"))
    for form, (prior, spread) in BELOW_FP8.items():
        for family in (OTHER_FAMILY, "blackwell"):
            own_spread = spread if family == OTHER_FAMILY else 0.1
            all_numbers.append(number(f"training.{family}.{form}", "compute", prior, own_spread, f"training.{family}.fp8"))
    return tuple(all_numbers)


def influence(all_numbers: Sequence[PriorNumber]) -> Any:
    """Change in ln of each number per standard deviation of each free number (itself and its parents)."""
    free, moves_by_place = free_places(all_numbers), {}
    for number in all_numbers:
        direct = number.spread * np.array([place == number.place for place in free])
        moves_by_place[number.place] = direct + (moves_by_place[number.parent, number.key] if number.parent else 0.0)
    return np.array([moves_by_place[number.place] for number in all_numbers])


FITTED_KEYS = tuple(PRIORS)


def table(values: Mapping[Place, float], base: Efficiencies) -> Efficiencies:
    """Efficiencies with these numbers; those that are not fitted from `base`, and none of an earlier fit."""
    unfitted = {
        name: {key: number for key, number in base_numbers.items() if key not in FITTED_KEYS}
        for name, base_numbers in base.sections.items()
    }
    return overlaid(unfitted, numbers(), (values[number.place] for number in numbers()))


SCATTER = 0.1  # standard deviation of ln(predicted / measured) that remains after any fit
ROWS_PER_SOURCE = 20.0  # weight of a source in rows, whatever its size
MOST_CALLS = 30
UNMODELLED = ("deepspeed",)  # software whose collectives these laws do not describe: a ring at the speed of a single link


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRow:
    """Rows of one pipeline schedule, as arrays."""

    schedule: str
    place: Any  # index in the list of all rows
    layout: TrainingLayout
    work: StepWork
    batch: Any
    chips: Any
    kind: Any  # index of each row's chip and recipe in the kinds of the problem


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingProblem:
    """Rows to fit, with work and layouts computed once."""

    setups: tuple[TrainingSetup, ...]
    groups: tuple[ScheduledRow, ...]
    kinds: tuple[TrainingCase, ...]  # one of each chip, format and kernels, whose achieved rates are looked up once
    measured: Any
    sources: Any
    fitted: Any  # whether a fit uses each row; others are predicted only
    base: Efficiencies


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFit:
    """Fitted numbers, with the standard error of each number's ln (0 if fixed)."""

    values: dict[Place, float]
    error: dict[Place, float]


def training_problem(setups: Sequence[TrainingSetup], base: Efficiencies) -> TrainingProblem:
    """Problem of the rows with a measured speed, and which of them a fit uses."""
    timed = tuple(setup for setup in setups if measured_speed(setup) is not None)
    schedules = [setup.case.recipe.schedule for setup in timed]
    kinds = {kind_of(setup.case): setup.case for setup in reversed(timed)}
    number, groups = {kind: index for index, kind in enumerate(kinds)}, []
    for schedule in sorted(set(schedules)):
        place = np.array([index for index, name in enumerate(schedules) if name == schedule])
        rows = [timed[index] for index in place]
        groups.append(ScheduledRow(
            schedule=schedule, place=place, layout=columns([setup.layout for setup in rows]),
            work=columns([step_work(placement(setup.case, setup.layout)) for setup in rows]),
            batch=np.array([float(setup.case.batch) for setup in rows]), chips=np.array([float(setup.case.system.chips) for setup in rows]),
            kind=np.array([number[kind_of(setup.case)] for setup in rows]),
        ))  # fmt: skip
    measured = np.array([measured_speed(setup) for setup in timed])
    sources = np.array([setup.row.source for setup in timed])
    fitted = np.array([setup.row.kernels.lower() not in UNMODELLED for setup in timed])
    return TrainingProblem(
        setups=timed, groups=tuple(groups), kinds=tuple(kinds.values()), measured=measured, sources=sources, fitted=fitted, base=base
    )


def kind_of(case: TrainingCase) -> tuple[Any, ...]:
    """What decides the achieved rates of a case."""
    recipe = case.recipe
    return case.system.chip.name, recipe.dtype, recipe.kernels, bool(is_fused(recipe)), recipe.dispatcher


def speeds(problem: TrainingProblem, efficiencies: Efficiencies) -> Any:
    """Predicted tokens per second and chip of each row; of each table in turn where the numbers are columns of many (`beside`)."""
    kinds = [from_table(efficiencies, case.system.chip, case.recipe) for case in problem.kinds]
    by_kind = {field.name: np.concatenate([np.atleast_1d(getattr(kind, field.name)) for kind in kinds], axis=-1).astype(float)
               for field in fields(TrainingReach)}  # fmt: skip
    predicted = []
    for group in problem.groups:
        achieved = TrainingReach(**{name: share[..., group.kind] for name, share in by_kind.items()})
        step = achieved_time(group.layout, group.schedule, group.work, achieved).step
        predicted.append(group.batch / (step * group.chips))
    out = np.empty((*predicted[0].shape[:-1], len(problem.setups)))
    for group, speed in zip(problem.groups, predicted, strict=True):
        out[..., group.place] = speed
    return out


def beside(tables: Sequence[Efficiencies]) -> Efficiencies:
    """Tables of the same numbers as one, each number a column; of objects, so that a power has the last digit of a single number's."""
    return Efficiencies({
        section: {key: np.array([[float(table.sections[section][key])] for table in tables], object) for key in keys}
        for section, keys in tables[0].sections.items()
    })  # fmt: skip


def errors(problem: TrainingProblem, efficiencies: Efficiencies) -> Any:
    """Error ln(predicted / measured) of each row."""
    return np.log(speeds(problem, efficiencies) / problem.measured)


def fit(problem: TrainingProblem, all_numbers: Sequence[PriorNumber], row_mask: np.ndarray | None = None) -> TrainingFit:
    """Numbers fitted to the rows of `row_mask` (default: all rows)."""
    rows = problem.fitted if row_mask is None else problem.fitted & row_mask
    sources = problem.sources[rows]
    weight = np.sqrt(ROWS_PER_SOURCE / cluster_sizes(sources))
    free = free_places(all_numbers)

    def values(z: np.ndarray) -> dict[Place, float]:
        return values_at(all_numbers, dict(zip(free, z, strict=True)))

    def residuals(z: np.ndarray) -> Any:
        """Of one place, or of many at once: the last axis holds the numbers."""
        tables = [table(values(place), problem.base) for place in np.atleast_2d(z)]
        error = errors(problem, beside(tables) if z.ndim > 1 else tables[0])[..., rows]
        return np.concatenate([softened(error / SCATTER) * weight, z], axis=-1)

    solution = least_squares()(residuals, np.zeros(len(free)), partial(slopes, residuals), max_nfev=MOST_CALLS)
    sensitivity = influence(all_numbers)
    error = np.sqrt(np.einsum("ij,jk,ik->i", sensitivity, covariance_by_source(solution.jac, solution.fun, sources), sensitivity))
    places = (number.place for number in all_numbers)
    return TrainingFit(values=values(solution.x), error=dict(zip(places, map(float, error), strict=True)))
