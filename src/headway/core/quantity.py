"""Numbers with an origin: the leaves of every explanation.

A Sourced number behaves as the float (or int) it is; arithmetic drops the origin, so a derived number is never mistaken for a fact.
Within `record()` the result of arithmetic carries the operation instead (core/trace.py).
"""

from __future__ import annotations

import math
from typing import Any

from headway.core.trace import operators, traced_operation

KINDS = ("datasheet", "measured", "reported", "derived", "estimate", "config", "input", "default", "constant", "fitted", "claim")
LITERALS = (0, 1, 2, 0.5, -1)  # nothing, one thing, a pair, a half, a step back: code writes them as they are, and they need no source


class Sourced:
    """Fields shared by SourcedFloat and SourcedInt: name, unit, kind, source, date."""

    name: str
    unit: str
    kind: str
    source: str
    date: str

    def _set(self, name: str, unit: str, kind: str, source: str, date: str) -> None:
        if kind not in KINDS:
            raise ValueError(f"{name}: kind {kind!r} is not one of {KINDS}")
        self.name, self.unit, self.kind, self.source, self.date = name, unit, kind, source, date

    def __reduce__(self) -> tuple:
        plain = int(self) if isinstance(self, int) else float(self)  # type: ignore[arg-type]
        return known, (plain, self.name, self.unit, self.kind, self.source, self.date)

    def __deepcopy__(self, memo: object) -> Sourced:
        return self


@operators(traced_operation, float)
class SourcedFloat(Sourced, float):
    """A float with its origin."""


@operators(traced_operation, int)
class SourcedInt(Sourced, int):
    """An int with its origin."""


def known(value: float, name: str, unit: str, kind: str, source: str, date: str = "undated") -> Any:
    """`value` with its origin attached: an int stays an int.

    >>> peak = known(989.4e12, "h100_sxm.peak_bf16", "flop/s", "datasheet", "NVIDIA H100 datasheet", "2022")
    >>> peak * 2, peak.kind
    (1978800000000000.0, 'datasheet')
    """
    is_int = isinstance(value, int) and not isinstance(value, bool)
    number: Any = SourcedInt(value) if is_int else SourcedFloat(value)
    number._set(name, unit, kind, source, date)
    return number


def user_input(value: float, name: str, unit: str = "") -> Any:
    """A number the user typed."""
    return known(value, name, unit, "input", "given by the user", "now")


def default(value: float, name: str, unit: str, why: str) -> Any:
    """A number used because the user gave none; `why` gives the source of the default."""
    return known(value, name, unit, "default", why)


def is_literal(value: Any) -> bool:
    """Whether a number without an origin is one that needs none."""
    return isinstance(value, int | float) and not isinstance(value, Sourced | bool) and value in LITERALS


def number(value: float) -> Any:
    """`value` as an int when it is whole, for counts read from text."""
    return int(value) if math.isfinite(value) and value == int(value) else float(value)
