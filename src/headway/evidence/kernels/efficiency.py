"""Operator efficiencies fitted to measured kernels: values for all chip families, and for a family that differs; skew of routing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.evidence.fit.result import ErrorRow, FittedNumbers, KernelFit
from headway.evidence.fit.statistics import least_squares
from headway.evidence.kernels.classes import (
    CLASSES,
    KernelClass,
    KernelEstimate,
    collectives,
    fit,
    host_round,
    log_misses,
)
from headway.evidence.kernels.rows import DOUBTFUL, OLD, KernelRows, KernelTable, family, shape_codes, table, thinned

POWER_LAW = "power_law_1.01"
BUSY_TOKENS = 64  # tokens of an expert from which arithmetic takes the time, so that the busiest chip shows
MEANING = "of routers: tokens^(1 - skew) evenly spread ones use as many experts, and the busiest of ep chips has (2 ep)^skew of the mean"


def routing_skew(folder: Path) -> FittedNumbers:
    """Median skew of the pairs of equal shape with many tokens, and its standard error over shapes."""
    rows = _sound(table(folder, "moe"))
    keys = ("chip", "backend", "kernel", "dtype", "hidden", "inter", "n_experts", "topk", "tp", "ep", "tokens")
    codes = shape_codes(*(getattr(rows, key) for key in keys))
    even, skewed = (np.flatnonzero(rows.distribution == name) for name in ("balanced", POWER_LAW))
    _, first, second = np.intersect1d(codes[even], codes[skewed], return_indices=True)
    even, skewed = even[first], skewed[second]
    busy = rows.tokens[even] * rows.topk[even] >= BUSY_TOKENS * rows.n_experts[even]
    even, skewed = even[busy], skewed[busy]
    skew = np.log(rows.latency_s[skewed] / rows.latency_s[even]) / np.log(2 * rows.ep[even])
    shapes = np.unique(shape_codes(*(getattr(rows, key)[even] for key in keys[:-1])), return_inverse=True)[1]
    means = np.bincount(shapes, weights=skew) / np.bincount(shapes)
    return FittedNumbers(
        section="routing.other.bf16", key="skew", value=float(np.median(skew)), unit="", error=float(means.std() / np.sqrt(len(means))),
        rows=len(skew), range="b200, h100, h200; gated experts, 64 and more tokens of an expert", meaning=MEANING,
        source="moe.parquet: NVIDIA aiconfigurator 095f58a (Apache-2.0)", date="2026-08",
    )  # fmt: skip


def _sound(rows: KernelTable) -> KernelTable:
    return rows.where((rows.level == "fused_moe") & (rows.n_mats == 3) & (rows.chip != OLD) & ((rows.flag & DOUBTFUL) == 0))


MOST_ROWS = 4000  # rows per chip, class and dtype
SIGMAS = 3.0
OTHER_FAMILY, WIDE_DTYPE = "other", "bf16"
CREDIT = "NVIDIA aiconfigurator 095f58a (Apache-2.0) and Microsoft Vidur 7d47513 (MIT)"
MEASURED = "2026-08"
FixedValues = tuple[float | None, ...]  # per key: its value, or None to fit it

HEAD = """# Efficiencies fitted to measurements by `headway fit`; not to be edited by hand.
# A section is class.family.dtype. A number is looked for in class.family.dtype, then class.other.dtype, then class.family.bf16,
# then class.other.bf16: a family states only what differs from what all families share.
# Families: ampere (A100), hopper (H100, H200), blackwell (B200); any other chip is `other`, the fit to all families at once.
# dtypes of matmuls: bf16 (and fp16), fp8, nvfp4 (and mxfp4 with 8- or 4-bit activations: share of the FP4 peak), weight_only (weights
# of 4 or 8 bits, arithmetic in 16: share of the bf16 peak). dtypes of attention are the KV cache's; shares are of the bf16 peak.
# Routed experts have fp8 with a scale for each block, fp8_tensor with one for each tensor, mxfp4 with 16-bit activations and mxfp4_a8 with
# 8-bit ones; after a point the engine whose kernels they are, of those that it selects (data/engines/experts.csv).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyParameters:
    """Parameters of a class for one chip family; `free` marks those fitted for this family alone."""

    family: str
    values: tuple[float, ...]
    errors: tuple[float, ...]
    free: tuple[bool, ...]
    rows: int
    chips: tuple[str, ...]


def fit_kernels(folder: Path) -> KernelFit:
    """Fit of every operator class to the kernel tables in a folder."""
    least_squares()  # if SciPy is missing, fail before the tables are read
    numbers: list[FittedNumbers] = []
    errors: list[ErrorRow] = []
    for kind in CLASSES:
        wide: tuple[FamilyParameters, ...] = ()
        for dtype in kind.dtypes:
            rows, fixed_values = thinned(kind.read(folder, dtype), MOST_ROWS), _fixed_values(kind, dtype, numbers)
            lent = () if "." in dtype else wide  # a backend's numbers are all its own
            family_fits = fit_families(kind, dtype, rows, fixed_values, lent)
            numbers += [number for family_fit in family_fits for number in _numbers(kind, dtype, family_fit, fixed_values)]
            errors += error_rows(kind, dtype, rows, family_fits, fixed_values, lent)
            wide = wide or family_fits
    for kind, rows in collectives(folder):
        fixed_values = _fixed_values(kind, WIDE_DTYPE, numbers)
        family_fits = fit_families(kind, WIDE_DTYPE, rows, fixed_values, ())
        numbers += [number for family_fit in family_fits for number in _numbers(kind, WIDE_DTYPE, family_fit, fixed_values)]
        errors += error_rows(kind, WIDE_DTYPE, rows, family_fits, fixed_values, ())
    return KernelFit(parameters=(*numbers, routing_skew(folder), host_round(folder)), errors=tuple(errors))


def _fixed_values(kind: KernelClass, dtype: str, numbers: list[FittedNumbers]) -> FixedValues:
    """Parameters that a class borrows from a class fitted earlier; None for parameters to fit."""
    if dtype not in kind.borrowing:
        return (None,) * len(kind.keys)
    values = {(number.section, number.key): number.value for number in numbers}
    return tuple(values.get((f"{kind.like}.{OTHER_FAMILY}.{dtype}", key.name)) if key.name in kind.borrowed else None for key in kind.keys)


def families_of(rows: KernelRows) -> Any:
    """Chip family of each row."""
    known, place = np.unique(rows.chip, return_inverse=True)
    return np.array([family(str(name)) for name in known])[place]


def fit_families(
    kind: KernelClass, dtype: str, rows: KernelRows, fixed_values: FixedValues, wide: tuple[FamilyParameters, ...]
) -> tuple[FamilyParameters, ...]:
    """Fits of a class: first `other`, with equal weight for each family, then each family that differs.

    A parameter of a narrow format takes the bf16 value (`wide`) if no family has a separate bf16 value and the two do not differ.
    """
    names = families_of(rows)
    known, place, count = np.unique(names, return_inverse=True, return_counts=True)
    weights = (len(rows) / len(known) / count)[place]
    shared_fit = fit(kind.predict, rows, kind.keys, fixed_values, weights)
    common = [
        wide[0].values[index] if wide and not any(family_fit.free[index] for family_fit in wide[1:]) else None
        for index in range(len(kind.keys))
    ]
    if wide:
        shared_fit = fit(kind.predict, rows, kind.keys, _known_values(shared_fit, tuple(common), fixed_values, kind.differs), weights)
    family_fits = [_family_fit(OTHER_FAMILY, rows, shared_fit)]
    if len(known) > 1 and dtype not in kind.pooled and len(kind.shared) < len(kind.keys):
        family_fits += [
            _family_fit(str(name), rows.where(names == name), _family_estimate(kind, rows.where(names == name), shared_fit, fixed_values))
            for name in known
        ]
    return tuple(family_fits)


def _known_values(estimate: KernelEstimate, common: FixedValues, fixed_values: FixedValues, least: float) -> FixedValues:
    """Parameters to fix in a refit: the fixed values, and common values from which the estimate does not differ; else None."""
    return tuple(
        before if before is not None else value if value is not None and not _differs(mine, error, value, least) else None
        for mine, error, value, before in zip(estimate.values, estimate.errors, common, fixed_values, strict=True)
    )


def _family_fit(name: str, rows: KernelRows, estimate: KernelEstimate) -> FamilyParameters:
    chips = tuple(str(chip).removesuffix("_sxm").removesuffix("_sxm_80") for chip in np.unique(rows.chip))
    return FamilyParameters(family=name, values=estimate.values, errors=estimate.errors, free=estimate.free, rows=len(rows), chips=chips)


def _family_estimate(kind: KernelClass, rows: KernelRows, shared_fit: KernelEstimate, fixed_values: FixedValues) -> KernelEstimate:
    """Parameters of one family: those that differ from the shared fit are fitted again, the others fixed."""
    shared = tuple(
        value if key.name in kind.shared or before is not None else None
        for key, value, before in zip(kind.keys, shared_fit.values, fixed_values, strict=True)
    )
    known_values = _known_values(fit(kind.predict, rows, kind.keys, shared), shared_fit.values, shared, kind.differs)
    return (
        fit(kind.predict, rows, kind.keys, known_values)
        if None in known_values
        else replace(shared_fit, free=(False,) * len(known_values), rows=len(rows))
    )


def _differs(mine: float, error: float, shared: float, least: float) -> bool:
    """Whether a family's value differs from the shared value by more than `least` in ln and SIGMAS standard errors."""
    return error > 0 and abs(math.log(mine / shared)) > max(least, SIGMAS * error / mine)


def _numbers(kind: KernelClass, dtype: str, family_fit: FamilyParameters, fixed_values: FixedValues) -> list[FittedNumbers]:
    """Numbers of a family for data/efficiency.toml; borrowed values are repeated, their error stays with the lending class."""
    is_included = tuple(
        free or (family_fit.family == OTHER_FAMILY and before is not None and kind.like != kind.name)
        for free, before in zip(family_fit.free, fixed_values, strict=True)
    )
    is_included = tuple(
        include and not (key.name == "t0_s" and dtype in kind.eager) for include, key in zip(is_included, kind.keys, strict=True)
    )
    section, where = f"{kind.name}.{family_fit.family}.{dtype}", f"{', '.join(family_fit.chips)}; {kind.range}"
    return [
        FittedNumbers(
            section=section,
            key=key.name,
            value=value,
            unit=key.unit,
            error=error,
            rows=family_fit.rows,
            range=where,
            meaning=key.meaning,
            source=f"{kind.table}.parquet: {CREDIT}",
            date=MEASURED,
        )
        for key, value, error, include in zip(kind.keys, family_fit.values, family_fit.errors, is_included, strict=True)
        if include
    ]


def error_rows(
    kind: KernelClass,
    dtype: str,
    rows: KernelRows,
    family_fits: tuple[FamilyParameters, ...],
    fixed_values: FixedValues,
    wide: tuple[FamilyParameters, ...],
) -> tuple[ErrorRow, ...]:
    """Errors of each family on the fitted rows, then with each chip and each family left out of the fit."""
    names, errors = families_of(rows), []
    values = {family_fit.family: family_fit.values for family_fit in family_fits}
    for name in np.unique(names):
        family_rows = rows.where(names == name)
        errors.append(_error(kind, dtype, str(name), "in sample", family_rows, values.get(str(name), values[OTHER_FAMILY])))
        chips = np.unique(family_rows.chip)
        for chip in chips if len(chips) > 1 else ():
            without = {
                family_fit.family: family_fit.values
                for family_fit in fit_families(kind, dtype, rows.where(rows.chip != chip), fixed_values, wide)
            }
            chip_rows = rows.where(rows.chip == chip)
            errors.append(_error(kind, dtype, str(name), f"{chip} left out", chip_rows, without.get(str(name), without[OTHER_FAMILY])))
        if len(np.unique(names)) > 1:
            other_values = fit_families(kind, dtype, rows.where(names != name), fixed_values, wide)[0].values
            errors.append(_error(kind, dtype, str(name), "family left out", family_rows, other_values))
    return tuple(errors)


def _error(kind: KernelClass, dtype: str, name: str, scope: str, rows: KernelRows, values: tuple[float, ...]) -> ErrorRow:
    misses = log_misses(kind.predict, rows, values)
    return ErrorRow(
        kind=kind.label or kind.name, family=name, dtype=dtype, scope=scope, rows=len(rows), median=float(np.median(np.abs(misses))),
        p90=float(np.quantile(np.abs(misses), 0.9)), bias=float(np.median(misses)),
    )  # fmt: skip
