"""Axes of a picture: ends, ticks with their text, and where a value stands in px; nothing is rounded up behind the picture's back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from headway.core import units
from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures.lettering import text_width

CLOCK = (60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000)  # s
SPANS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600, 21600, 86400, 604800, 2592000, 31536000)  # s, on log axes
TICK_GAP = 8.0  # px between the texts of two ticks, at least
HOUR = 3600.0
DECADES = 1.3  # values that span more, in powers of ten, stand on a logarithmic axis


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PictureAxis:
    """One axis; `ticks` pair a value with its text."""

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False
    falls: bool = False  # whether the larger value stands at the lower or left end

    def share(self, value: Any) -> Any:
        """Place of a value between the ends, 0 to 1."""
        if self.log:
            part = math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return 1 - part if self.falls else part

    def across(self, value: Any, width: float) -> Any:
        """Px from the left end."""
        return self.share(value) * width

    def down(self, value: Any, height: float) -> Any:
        """Px from the upper end."""
        return (1 - self.share(value)) * height

    def holds(self, value: float | None) -> bool:
        """Whether a value stands between the ends."""
        return value is not None and self.low <= value <= self.high

    @property
    def scale(self) -> dict[str, Any]:
        """The scale in Vega-Lite's words."""
        plain = {"type": "log" if self.log else "linear", "domain": [self.low, self.high], "nice": False}
        plain |= {} if self.log else {"zero": False}  # Vega warns of it on a logarithmic scale
        return plain | ({"reverse": True} if self.falls else {})


@dataclasses.dataclass(frozen=True, slots=True)
class AxisScale:
    """What an axis is about: its title, the values it spans, their unit.

    It is logarithmic if the values span decades, unless `log` tells; `ends` fixes the low or high end, `base` 2 puts ticks at powers of
    two, `most` bounds the number of ticks, `room` is what stays free beyond the values, as a share of the axis. `ticks` stand in place of
    those that are chosen here.
    """

    title: str
    values: Sequence[float | None]
    unit: str = ""
    _: dataclasses.KW_ONLY
    log: bool | None = None
    zero: bool = False
    ends: Sequence[float | None] = (None, None)
    base: int = 10
    most: int = 7
    room: float = 0.04
    falls: bool = False
    ticks: Sequence[tuple[float, str]] = ()

    def axis(self, fixed_ends: Sequence[float] | None = None) -> PictureAxis:
        """The axis; `fixed_ends` stay as they are while a slider moves."""
        numbers = [float(value) for value in self.values if value is not None and math.isfinite(value)]
        log = self.log
        if log is None:
            span = list(fixed_ends or numbers)  # ends that stay also say what kind of axis stays
            log = bool(span) and min(span) > 0 and not self.zero and math.log10(max(span) / min(span)) > DECADES
        if fixed_ends and (fixed_ends[0] >= fixed_ends[1] or (log and fixed_ends[0] <= 0)):
            fixed_ends = None  # no ends of this axis
        numbers = [number for number in numbers if number > 0] if log else numbers
        if not numbers:
            raise BadValue("--plot", f"no {self.title}", "rows with numbers to draw")
        least, largest = min(numbers), max(numbers)
        around = _log_ends(least, largest, self.room) if log else _linear_ends(least, largest, self.room, self.zero)
        low, high = fixed_ends or [free if fixed is None else fixed for fixed, free in zip(self.ends, around, strict=True)]
        places = _log_ticks(low, high, self.base, self.most, self.unit) if log else _linear_ticks(low, high, self.most, self.unit)
        ticks = self.ticks or [(place, tick_text(place, self.unit)) for place in places]
        ticks = tuple(tick for tick in ticks if low <= tick[0] <= high) if self.ticks else tuple(ticks)
        return PictureAxis(title=self.title, low=low, high=high, ticks=ticks, log=log, falls=self.falls)

    def fitting(self, wide: float, fixed_ends: Sequence[float] | None = None) -> PictureAxis:
        """The axis with the most ticks, of at most `most`, whose texts do not touch on `wide` px."""
        axis = self.axis(fixed_ends)
        for most in range(self.most, 1, -1):
            axis = dataclasses.replace(self, most=most).axis(fixed_ends)
            spans = sorted((axis.across(at, wide), text_width(text) / 2) for at, text in axis.ticks)
            if all(later - at >= half + half_later + TICK_GAP for (at, half), (later, half_later) in pairwise(spans)):
                break
        return axis


def _log_ends(low: float, high: float, room: float) -> tuple[float, float]:
    low, high = (low / 1.5, high * 1.5) if high < 1.02 * low else (low, high)
    margin = (high / low) ** room
    return low / margin, high * margin


def _linear_ends(low: float, high: float, room: float, zero: bool) -> tuple[float, float]:
    low = min(low, 0.0) if zero else low
    margin = (high - low) * room or abs(high) * 0.1 or 1.0
    return (low if zero and low == 0 else low - margin), high + margin


def tick_text(value: float, unit: str) -> str:
    """Text of a tick with its unit; counts from a thousand on with a prefix."""
    if unit in ("", "token") and 1000 <= abs(value) < 100_000 and math.log2(abs(value)).is_integer():
        return f"{value:,.0f}"
    if unit in ("", "count", "token") and abs(value) >= 1000:
        for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
            if abs(value) >= size:
                return f"{value / size:.3g}{prefix}"
    if unit == "share":
        return f"{value * 100:.3g} %"
    if unit == "USD/Mtok" or unit == "USD":
        return format_value(value, unit) if value else "$0"
    if value == 0:
        return "0"
    if unit == "year":
        return str(int(value)) if float(value).is_integer() else f"{int(value)}-{round(value % 1 * 12) + 1:02d}"
    if unit == "flop" and value > 0 and math.log10(value).is_integer():
        return f"1e{round(math.log10(value))}"
    if unit == "x":
        return f"{value:.3g}x"
    if unit == "count":
        return f"{value:.3g}"
    return format_value(value, unit).replace(" us", " µs") if unit else units.plain(f"{value:.3g}")


def _linear_ticks(low: float, high: float, most: int, unit: str = "") -> list[float]:
    """Multiples of a step: 1, 2, 2.5 or 5 times a power of ten; whole ones for counts, minutes and hours for long times."""
    if unit == "USD/s":  # shown by the hour
        return [place / HOUR for place in _linear_ticks(low * HOUR, high * HOUR, most)]
    span = high - low
    size = 10 ** math.floor(math.log10(span / most))
    steps = [size * factor for factor in (1, 2, 2.5, 5, 10, 20)]
    if unit == "s" and span > CLOCK[0] * 2:
        steps = [*CLOCK, *steps]
    elif unit == "year" and span < 2:
        steps = [1 / 12, 1 / 6, 1 / 4, 1 / 2, 1]
    elif unit in ("count", "year"):
        steps = [step for step in (1, 2, *steps) if float(step).is_integer()]
    step = next(step for step in steps if span / step <= most)
    first = math.ceil(low / step - 1e-9)
    places = [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]
    return [round(place, 12) if abs(place) < 1e6 else place for place in places]


def _log_ticks(low: float, high: float, base: int, most: int, unit: str = "") -> list[float]:
    """Powers of the base, every second or third of them if there are many; 1-2-5 or 1-3 within few decades."""
    if unit == "s" and high > 120 and high / low > 100:
        inside = [place for place in SPANS if low * (1 - 1e-9) <= place <= high * (1 + 1e-9)]
        return inside[:: max(1, math.ceil(len(inside) / most))]
    if base != 10:
        first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
        stride = max(1, math.ceil((last - first + 1) / most))
        return [float(base) ** power for power in range(first, last + 1, stride)]
    first, last = math.floor(math.log10(low)), math.floor(math.log10(high))
    for factors in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        places = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        inside = [place for place in places if low * (1 - 1e-9) <= place <= high * (1 + 1e-9)]
        if len(inside) <= most or factors == (1,):
            break
    if len(inside) < 2:
        return _linear_ticks(low, high, most)
    return inside[:: max(1, math.ceil(len(inside) / most))]


def widest(axis_: PictureAxis, size: float = 12) -> float:
    """Width of the widest tick text in px."""
    return max((text_width(text, size) for _, text in axis_.ticks), default=0.0)
