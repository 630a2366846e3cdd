"""Terms that turn chip time into a price: chip price, utilisation of paid hours, and margin, each an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.core import interval, schema
from headway.core.errors import BadValue
from headway.core.interval import Interval, point
from headway.core.quantity import Sourced, default, user_input
from headway.core.schema import Field

TYPED = "2.2..4.5 is one interval, 1,2,3 three values, 0..0.8+0.2 five"
ALL_WORK = point(default(1.0, "utilisation", "", "all paid hours work"))
AT_COST = point(default(0.0, "margin", "", "the price is the cost"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommercialTerms:
    """Chip price, utilisation and margin as intervals; no chip price means the catalogue's whole range for the chip."""

    chip_price: Annotated[
        Any, Field("USD/s", bare="USD/h", help=f"price of a chip (default: all that the catalogue has for it); {TYPED}")
    ] = None
    utilisation: Annotated[Any, Field(high=1, help="share of paid chip-hours that do useful work, the same way (default 1)")] = ALL_WORK
    margin: Annotated[Any, Field(low=-10, open_low=False, high=0.999, help="share of the price above cost, the same way (default 0)")] = (
        AT_COST
    )


def terms(**values: Any) -> CommercialTerms:
    """Terms from values that are each an Interval, a number or pair of ends in SI, or command-line text.

    >>> one = terms(chip_price="2.2..4.5", utilisation=(0.3, 0.7))
    >>> round(one.chip_price.low * 3600, 6), one.utilisation.high, one.margin.high
    (2.2, 0.7, 0.0)
    """
    marks = schema.fields(CommercialTerms)
    return CommercialTerms(**{name: _interval(value, marks[name][0], name) for name, value in values.items() if value is not None})


def _interval(value: Any, q: Field, name: str) -> Interval:
    if isinstance(value, Interval):
        return value
    if isinstance(value, str):
        first, *more = interval.read(value, q, name)
        if more:
            raise BadValue(name, value, "one value or one interval")
        return first
    ends: Any = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
    for end in ends:
        if isinstance(end, bool) or not isinstance(end, int | float) or q.illegal(end):
            raise BadValue(name, value, f"a number {q.range()}, or a pair of them")
    low, high = ends
    if high < low:
        raise BadValue(name, value, "an interval whose end is not below its start")
    low, high = (end if isinstance(end, Sourced) else user_input(float(end), name, q.unit) for end in (low, high))
    return Interval(low=low, high=high)
