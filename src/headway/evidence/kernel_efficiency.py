"""Efficiencies of operators from measured kernels: numbers all families share, and a family's own where it differs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.evidence.fitted import ErrorRow, Fitted, KernelFit
from headway.evidence.kernel_classes import CLASSES, KernelClass
from headway.evidence.kernel_collectives import ASSUMED, collectives
from headway.evidence.kernel_fit import Estimate, fit, least_squares, log_misses
from headway.evidence.kernel_rows import Kernels, family, thinned

MOST_ROWS = 4000  # of one chip in one class and dtype
SIGMAS = 3.0
OTHER, WIDE = "other", "bf16"
CREDIT = "NVIDIA aiconfigurator 095f58a (Apache-2.0) and Microsoft Vidur 7d47513 (MIT)"
MEASURED = "2026-08"
Given = tuple[float | None, ...]  # a value for each key that is not to be fitted

HEAD = """# Efficiencies fitted to measurements by `headway fit`; not to be edited by hand.
# A section is class.family.dtype. A number is looked for in class.family.dtype, then class.other.dtype, then class.family.bf16,
# then class.other.bf16: a family states only what differs from what all families share.
# Families: ampere (A100), hopper (H100, H200), blackwell (B200); any other chip is `other`, the fit to all families at once.
# dtypes of matmuls: bf16 (and fp16), fp8, nvfp4 (and mxfp4 with 8- or 4-bit activations: share of the FP4 peak), weight_only (weights
# of 4 or 8 bits, arithmetic in 16: share of the bf16 peak). dtypes of attention are the KV cache's; shares are of the bf16 peak.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What one family keeps: all parameters of a class, and which of them are its own."""

    family: str
    values: tuple[float, ...]
    errors: tuple[float, ...]
    own: tuple[bool, ...]
    rows: int
    chips: tuple[str, ...]


def fit_kernels(folder: Path) -> KernelFit:
    """Fit every class to the tables in a folder."""
    least_squares()  # where it is missing, say so before the tables are read
    numbers: list[Fitted] = []
    errors: list[ErrorRow] = []
    for kind in CLASSES:
        wide: tuple[Own, ...] = ()
        for dtype in kind.dtypes:
            rows, given = thinned(kind.read(folder, dtype), MOST_ROWS), _given(kind, dtype, numbers)
            kept = fit_families(kind, dtype, rows, given, wide)
            numbers += [number for one in kept for number in _numbers(kind, dtype, one, given)]
            errors += error_rows(kind, dtype, rows, kept, given, wide)
            wide = wide or kept
    for kind, rows in collectives(folder):
        given = _given(kind, WIDE, numbers)
        kept = fit_families(kind, WIDE, rows, given, ())
        numbers += [number for one in kept for number in _numbers(kind, WIDE, one, given)]
        errors += error_rows(kind, WIDE, rows, kept, given, ())
    return KernelFit(parameters=(*numbers, ASSUMED), errors=tuple(errors))


def _given(kind: KernelClass, dtype: str, numbers: list[Fitted]) -> Given:
    """What a class takes from another that was fitted before it."""
    if dtype not in kind.borrowing:
        return (None,) * len(kind.keys)
    named = {(number.section, number.key): number.value for number in numbers}
    return tuple(named.get((f"{kind.like}.{OTHER}.{dtype}", key.name)) if key.name in kind.borrowed else None for key in kind.keys)


def families_of(rows: Kernels) -> Any:
    """The family of each row."""
    known, place = np.unique(rows.chip, return_inverse=True)
    return np.array([family(str(name)) for name in known])[place]


def fit_families(kind: KernelClass, dtype: str, rows: Kernels, given: Given, wide: tuple[Own, ...]) -> tuple[Own, ...]:
    """`other` first: one fit in which each family weighs the same; then each family where it differs.

    A number of a narrow format is `wide`'s own, that of bf16, where no family has one of its own there and it does not differ.
    """
    names = families_of(rows)
    known, place, count = np.unique(names, return_inverse=True, return_counts=True)
    weights = (len(rows) / len(known) / count)[place]
    together = fit(kind.predict, rows, kind.keys, given, weights)
    common = [wide[0].values[index] if wide and not any(one.own[index] for one in wide[1:]) else None for index in range(len(kind.keys))]
    if wide:
        together = fit(kind.predict, rows, kind.keys, _held(together, tuple(common), given, kind.differs), weights)
    found = [_own(OTHER, rows, together)]
    if len(known) > 1 and dtype not in kind.pooled and len(kind.shared) < len(kind.keys):
        found += [_own(str(name), rows.where(names == name), _family(kind, rows.where(names == name), together, given)) for name in known]
    return tuple(found)


def _held(found: Estimate, common: Given, given: Given, least: float) -> Given:
    """What a fit may take as known: what was given, and what does not differ from the common value."""
    return tuple(
        before if before is not None else value if value is not None and not _differs(mine, error, value, least) else None
        for mine, error, value, before in zip(found.values, found.errors, common, given, strict=True)
    )


def _own(name: str, rows: Kernels, found: Estimate) -> Own:
    chips = tuple(str(chip).removesuffix("_sxm").removesuffix("_sxm_80") for chip in np.unique(rows.chip))
    return Own(family=name, values=found.values, errors=found.errors, own=found.free, rows=len(rows), chips=chips)


def _family(kind: KernelClass, rows: Kernels, together: Estimate, given: Given) -> Estimate:
    """One family's numbers: those that differ from the shared ones by enough, fitted again with the rest held."""
    shared = tuple(
        value if key.name in kind.shared or before is not None else None
        for key, value, before in zip(kind.keys, together.values, given, strict=True)
    )
    held = _held(fit(kind.predict, rows, kind.keys, shared), together.values, shared, kind.differs)
    return fit(kind.predict, rows, kind.keys, held) if None in held else replace(together, free=(False,) * len(held), rows=len(rows))


def _differs(mine: float, error: float, shared: float, least: float) -> bool:
    """Whether a number is known well enough, and is far enough from the shared one, to be stated apart."""
    return error > 0 and abs(math.log(mine / shared)) > max(least, SIGMAS * error / mine)


def _numbers(kind: KernelClass, dtype: str, one: Own, given: Given) -> list[Fitted]:
    """The numbers that a family states; what another class gave is stated again, with its error left to where it was fitted."""
    stated = tuple(
        own or (one.family == OTHER and before is not None and kind.like != kind.name) for own, before in zip(one.own, given, strict=True)
    )
    stated = tuple(one and not (key.name == "t0" and dtype in kind.eager) for one, key in zip(stated, kind.keys, strict=True))
    section, where = f"{kind.name}.{one.family}.{dtype}", f"{', '.join(one.chips)}; {kind.range}"
    return [
        Fitted(section=section, key=key.name, value=value, unit=key.unit, error=error, rows=one.rows, range=where, meaning=key.meaning,
               source=f"{kind.table}.parquet: {CREDIT}", date=MEASURED)
        for key, value, error, own in zip(kind.keys, one.values, one.errors, stated, strict=True) if own
    ]  # fmt: skip


def error_rows(
    kind: KernelClass, dtype: str, rows: Kernels, kept: tuple[Own, ...], given: Given, wide: tuple[Own, ...]
) -> tuple[ErrorRow, ...]:
    """Misses by family on the rows of the fit, and of each chip and family with it left out."""
    names, found = families_of(rows), []
    values = {one.family: one.values for one in kept}
    for name in np.unique(names):
        mine = rows.where(names == name)
        found.append(_error(kind, dtype, str(name), "in sample", mine, values.get(str(name), values[OTHER])))
        chips = np.unique(mine.chip)
        for chip in chips if len(chips) > 1 else ():
            without = {one.family: one.values for one in fit_families(kind, dtype, rows.where(rows.chip != chip), given, wide)}
            left = rows.where(rows.chip == chip)
            found.append(_error(kind, dtype, str(name), f"{chip} left out", left, without.get(str(name), without[OTHER])))
        if len(np.unique(names)) > 1:
            others = fit_families(kind, dtype, rows.where(names != name), given, wide)[0].values
            found.append(_error(kind, dtype, str(name), "family left out", mine, others))
    return tuple(found)


def _error(kind: KernelClass, dtype: str, name: str, scope: str, rows: Kernels, values: tuple[float, ...]) -> ErrorRow:
    missed = log_misses(kind.predict, rows, values)
    return ErrorRow(
        kind=kind.label or kind.name, family=name, dtype=dtype, scope=scope, rows=len(rows), median=float(np.median(np.abs(missed))),
        p90=float(np.quantile(np.abs(missed), 0.9)), bias=float(np.median(missed)),
    )  # fmt: skip
