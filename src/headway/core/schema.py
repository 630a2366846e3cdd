"""Fields of a record, declared once: their flags on the command line, their controls on a page, their line in the docs.

A field is `tp: Annotated[int, Field(help="tensor-parallel ways", integer=True, low=1, open_low=False)] = 1`. Text becomes a number, or an
axis of numbers, only here.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import typing
from collections.abc import Iterator
from typing import Any

from headway.core import quantity, units
from headway.core.errors import BadValue, UnknownName
from headway.core.notes import note, read_as, reading

MOST = 1_000_000  # members of one axis
RARE = "rare"  # beside a Field: its flag is left to --help-all
# What the text of a field may name, beyond numbers and choices. A page gives none that acts, is secret or names a file or folder;
# a credential is printed nowhere either.
KINDS = ("switch", "act", "word", "text", "model", "subject", "machine", "sheet", "pairs", "edit", "lengths", "count", "number",
         "file", "folder", "output", "secret", "credential", "object", "manifest")  # fmt: skip
TINY, HUGE = 1e-30, 1e30  # bounds of every quantity but zero, so that products and quotients stay finite


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """Declaration of one field: its unit, its sentence, and its legal values."""

    unit: str = ""
    help: str = ""
    low: float = 0.0
    high: float = math.inf
    open_low: bool = True  # a value equal to `low` is illegal
    integer: bool = False
    bare: str = ""  # unit of a number typed without one, such as USD/h
    choices: tuple[str, ...] = ()  # legal texts of a text field
    truths: tuple[str, ...] = ()  # of them what the bare flag, or True, says, and what False says
    bare_most: float = math.inf  # a number typed without a unit must be below it, as a time limit of 40 s per token is a slip
    bare_least: float = 0.0  # a number typed without a unit must be at least it, as a memory of 96 bytes is a slip
    usual: tuple[str, ...] = ()  # units that such a number likely wants, largest first
    per: str = ""  # what the quantity is per, for people: "per token"
    kind: str = ""  # what a text names, one of KINDS; empty for a number or a choice
    word: str = ""  # what help calls the value, where that is not its unit
    spellings: tuple[str, ...] = ()  # of the flag, where that is not its name
    place: str = ""  # of a subject, which is no flag: how many words it takes, "1", "?", "*" or "+"
    takes: str = ""  # what a flag takes beyond one value: "words" (several after it), "again" (it may be repeated), or both
    rare: bool = False  # left to --help-all

    @property
    def is_number(self) -> bool:
        """Whether its text is a number, or a list or range of them."""
        return not self.kind and not self.choices

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value."""
        return self.kind in ("switch", "act")

    def illegal(self, value: float) -> str:
        """The legal values when `value` is illegal, else ""."""
        if not math.isfinite(value):
            return "a finite number"
        if value and not TINY <= abs(value) <= HUGE:
            return f"a number of size {TINY:g} to {HUGE:g}"
        if self.integer and value != math.floor(value):
            return f"a whole number {self.range()}".rstrip()
        if value < self.low or (self.open_low and value == self.low) or value > self.high:
            return f"a {'whole ' if self.integer else ''}number {self.range()}"
        return ""

    def range(self) -> str:
        """Legal range in words."""
        low = f"{'above' if self.open_low else 'at least'} {units.show(self.low, self.unit, 6)}" if math.isfinite(self.low) else ""
        high = f"at most {units.show(self.high, self.unit, 6)}" if math.isfinite(self.high) else ""
        return " and ".join(part for part in (low, high) if part)


def fields(record: type) -> dict[str, tuple[Field, Any]]:
    """Fields of a record that declare a Field, each with its default (dataclasses.MISSING when it has none)."""
    return dict(_fields(record))


@functools.cache
def _fields(record: type) -> dict[str, tuple[Field, Any]]:
    hints = typing.get_type_hints(record, include_extras=True)
    field_marks = {}
    for field in dataclasses.fields(record):
        marks = getattr(hints[field.name], "__metadata__", ())
        for mark in marks:
            if isinstance(mark, Field):
                field_marks[field.name] = (dataclasses.replace(mark, rare=True) if RARE in marks else mark, field.default)
    return field_marks


def flag(name: str) -> str:
    """The command-line flag of a field; a name that is a word of Python ends in an underscore, as `for_` does.

    >>> flag("so_that"), flag("for_")
    ('--so-that', '--for')
    """
    return "--" + name.rstrip("_").replace("_", "-")


def defaults(record: type, user_values: dict[str, Any] | None = None, why: str = "") -> Any:
    """An instance of `record`: `user_values`, and each other number as a named default, so that it can be a leaf."""
    values = dict(user_values or {})
    for name, (q, value) in fields(record).items():
        if name not in values and isinstance(value, int | float) and not isinstance(value, bool | quantity.Sourced):
            values[name] = quantity.default(value, name, q.unit, why or f"default of {record.__name__}.{name}")
    return record(**values)


def scalar(text: str, q: Field, field: str) -> Any:
    """One value from text, with the user as its origin; BadValue when it is not legal.

    >>> scalar("20ms", Field("s"), "ttft"), scalar("8", Field(integer=True, low=1, open_low=False), "tp")
    (0.02, 8)
    """
    if q.choices:
        return _choice(text, q, field)
    value = _number(text, q, field)
    wants = q.illegal(value)
    if wants:
        raise BadValue(field, text, wants)
    return _user_input(value, q, field)


def axis(text: str, q: Field, field: str, most: int = MOST) -> tuple[Any, tuple[str, ...]]:
    """A value or a tuple of at most `most` values, which are counted before they are written out, and a note on dropped values.

    One value: `8`. A list: `1,2,4`. Ranges, ends included: `1..8`, `1..512*2` multiplies, `0..10+2` adds; lists of them.

    >>> axis("1,2,8..64*2", Field(integer=True), "batch")
    ((1, 2, 8, 16, 32, 64), ())
    >>> axis("0..0.3+0.1", Field(open_low=False), "hit")
    ((0.0, 0.1, 0.2, 0.3), ())
    >>> axis("0..10+4", Field(integer=True), "batch")
    ((4, 8, 10), ('batch: dropped 1 of 4 values that are not a whole number above 0: 0',))
    """
    parts = text.split(",")
    if len(parts) == 1 and ".." not in text:
        return scalar(text, q, field), ()
    if q.choices:
        return tuple(dict.fromkeys(_choice(part, q, field) for part in parts)), ()
    numbers: dict[float, None] = {}
    for part in parts:
        for value in _members(part, q, field, most) if ".." in part else (_number(part, q, field),):
            numbers[value] = None
            if len(numbers) > most:
                raise BadValue(field, text, f"at most {most} values")
    return _legal(list(numbers), q, field, text)


def _legal(numbers: list[float], q: Field, field: str, text: str) -> tuple[Any, tuple[str, ...]]:
    illegal_values = [value for value in numbers if q.illegal(value)]
    legal_values = tuple(_user_input(value, q, field) for value in numbers if not q.illegal(value))
    wants = next((q.illegal(value) for value in illegal_values), "")
    if not legal_values:
        raise BadValue(field, text, f"at least one {wants.removeprefix('a ')}")
    if not illegal_values:
        return legal_values, ()
    sample = ", ".join(f"{value:g}" for value in illegal_values[:5]) + (", ..." if len(illegal_values) > 5 else "")
    return legal_values, (f"{field}: dropped {len(illegal_values)} of {len(numbers)} values that are not {wants}: {sample}",)


def _user_input(value: float, q: Field, field: str) -> Any:
    return quantity.user_input(int(value) if q.integer else value, field.removeprefix("--").replace("-", "_"), q.unit)


def _choice(text: str, q: Field, field: str) -> str:
    name = text.strip().lower()
    if name not in q.choices:
        raise UnknownName(f"{field} value", text, q.choices, "one of " + ", ".join(choice for choice in q.choices if choice))
    return name


def _number(text: str, q: Field, field: str) -> float:
    if q.integer and "%" in text:
        raise BadValue(field, text, f"a whole number {q.range()}, which is no share".replace(" ,", ","))
    is_bare = re.fullmatch(r"[\s\d.eE_+*/^()-]*", text)
    value = units.parse(text, q.unit, field, q.bare)
    if is_bare and q.bare_most <= value < math.inf:
        of = f" {q.per}" if q.per else ""
        raise BadValue(field, text, f"a unit: {value:g} {q.unit}{of}? write {text.strip()}ms, or {text.strip()}s")
    if is_bare and 0 < value < q.bare_least:
        raise BadValue(field, text, with_unit(value, q))
    return value


UNIT_MOST = {"TB/s": 100.0, "PFLOPS": 25.0}  # from which a smaller unit is meant: 900 GB/s, 989 TFLOPS


def with_unit(value: float, q: Field) -> str:
    """What to write instead of a number whose unit was forgotten.

    >>> with_unit(96, Field("byte", usual=("GB",)))
    'a unit: 96 byte? write 96GB'
    """
    name = next((name for name in q.usual if value < UNIT_MOST.get(name, math.inf)), q.usual[-1])
    return f"a unit: {value:g} {q.unit}? write {value:g}{name}"


def _members(text: str, q: Field, field: str, most: int) -> Iterator[float]:
    """Members of one range, including its end."""
    start, _, rest = text.partition("..")
    match = re.fullmatch(r"(.+?)(?:([*])(.+)|(?<![eE])([+])(.+))?", rest.strip())
    if not match:
        raise BadValue(field, text, "a range such as 1..8, 1..512*2 or 0..10+2")
    end, times, factor, plus, step = match.groups()
    low, high = _number(start, q, field), _number(end, q, field)
    if high < low:
        raise BadValue(field, text, "a range whose end is not below its start")
    by = units.parse(factor, "", field) if factor else _number(step, q, field) if step else 1.0
    read_as(text, f"{reading(start)}..{reading(end)}{times or plus or ''}{reading(factor or step or '')}")
    return (_geometric if factor else _arithmetic)(low, high, by, q, field, (text, most))


def _geometric(low: float, high: float, factor: float, q: Field, field: str, typed: tuple[str, int]) -> Iterator[float]:
    if factor <= 1 or low <= 0:
        raise BadValue(field, typed[0], "a multiplied range that starts above 0 with a factor above 1, such as 1..512*2")
    count = math.floor(math.log(high / low) / math.log(factor) + 1e-9)
    return _stepped((low * factor**index for index in _bounded_range(count, field, typed)), high, q.integer and low.is_integer())


def _arithmetic(low: float, high: float, step: float, q: Field, field: str, typed: tuple[str, int]) -> Iterator[float]:
    if step <= 0:
        raise BadValue(field, typed[0], "a range with a step above 0, such as 0..10+2")
    count = math.floor((high - low) / step + 1e-9)
    return _stepped(
        (float(f"{low + step * index:.15g}") for index in _bounded_range(count, field, typed)), high, False
    )  # 0.95, not 0.9500000001


def _bounded_range(count: int, field: str, typed: tuple[str, int]) -> range:
    """Places of a range of so many steps; BadValue, before anything is written out, for more than the most that were allowed."""
    text, most = typed
    if count >= most:
        raise BadValue(field, text, f"at most {most} values")
    return range(count + 1)


def _stepped(values: Iterator[float], high: float, rounded: bool) -> Iterator[float]:
    """`values`, then the end; counts from a factor such as 1.5 are rounded to whole numbers."""
    last = -math.inf
    for value in values:
        snapped = high if math.isclose(value, high, rel_tol=1e-9) else value
        last = min(float(round(snapped)), high) if rounded else snapped
        yield last
    if last < high:
        yield high


def several(value: Any) -> tuple[Any, ...]:
    """The members of an axis, or the one value."""
    return value if isinstance(value, tuple) else (value,)


def axes(values: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Values by name, each as an axis."""
    return {name: several(value) for name, value in values.items()}


def read(namespace: Any, record: type, counts: tuple[str, ...] = (), skip: tuple[str, ...] = (), most: int = MOST) -> dict[str, Any]:
    """Fields of `record` that the user gave, as scalars or axes of at most `most` values; a note says which were dropped.

    `counts` fields take counts only; `skip` names flags that belong to another record.
    """
    values: dict[str, Any] = {}
    for name, (q, value) in fields(record).items():
        text = None if name in skip else getattr(namespace, name, None)
        if text is None or (q.is_switch and not text):
            continue
        if q.is_switch or (isinstance(value, str) and not q.choices):
            values[name] = text
        else:
            q = dataclasses.replace(q, integer=True) if name in counts else q
            values[name], notes = axis(text, q, flag(name), most)
            note(*notes)
    return values
