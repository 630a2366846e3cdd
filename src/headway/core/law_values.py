"""Values of a law's arguments from text: numbers with units, arithmetic, lists and ranges as axes, facts, tuples, records and constants.

3.35TB/s   1,2,4   1..512*2   h100.hbm_bw   72*b200.hbm_bw   (1, 2, 4)   (count=160, lines=(...), floor=64ns)   LLAMA_70B_TP8
"""

from __future__ import annotations

import dataclasses
import math
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any

from headway.core import quantity, units
from headway.core.arithmetic import Quantity, names_fact, read
from headway.core.equation import unit_of as unit_of_number
from headway.core.errors import BadValue, HeadwayError, UnknownName, clip
from headway.core.schema import Field, axis
from headway.core.spellings import factor_of, of_powers, powers, sought
from headway.core.trace import Law

Fact = Callable[[str, str], Any]  # text such as h100.hbm_bw, and its argument -> a number with its origin
TRUTHS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_FACT = re.compile(r"[^\s*]*[A-Za-z][^\s*]*\.[a-z][a-z_0-9]*")
_COUNTS = ("", "token")  # units of counts, where 8 stays a whole number
_AMOUNTS = ("s", "byte", "flop", "token", "byte/s", "flop/s", "token/s", "byte/token", "flop/token", "1/s", "W")  # never below nothing
# Plain numbers that may be negative; others count or share something.
_SIGNED = ("a", "alpha", "apart", "b", "beta", "c", "d", "dense", "deviation", "deviations", "exponent", "gain", "gamma", "gap", "growth",
           "loss", "margin", "quantile", "skew", "sparse")  # fmt: skip
_GROUPS = ("chips", "cp", "dp", "domains", "ep", "inside", "members", "micro_batches", "pp", "ranks", "seats", "servers", "side", "shards",
           "stages", "tp")  # counts with a first  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class ValueSources:
    """How texts are read: where facts and constants come from."""

    fact: Fact
    constants: dict[str, Any]


def arguments_of(law: Law) -> dict[str, Any]:
    """Annotations of a law's arguments, by name."""
    return {name: hint for name, hint in typing.get_type_hints(law.run, include_extras=True).items() if name != "return"}


def unit_of(hint: Any) -> str | None:
    """The unit of an annotation such as Byte, None of a tuple or record."""
    return next((mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, str)), None)


def members(text: str) -> list[str]:
    """Parts of a list at its own commas, not those inside parentheses.

    >>> members("(1, 2), 3")
    ['(1, 2)', '3']
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def values(text: str, hint: Any, name: str, reading: ValueSources, paired: bool = False) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Members of an argument's axis, and notes on dropped members; a single value is an axis of length 1, pairs have each of theirs."""
    unit = unit_of(hint)
    has_members = ".." not in text and (paired or names_fact(text))
    if has_members or unit is None or unit == "bool" or text in reading.constants:
        return tuple(value(part, hint, name, reading) for part in members(text)), ()
    if text.strip() in ("inf", "infinity"):
        return (quantity.user_input(math.inf, name, unit),), ()
    si_unit = same_unit(text) if unit == "*" else unit
    field = Field(si_unit, low=-math.inf, open_low=False)
    numbers, notes = axis(text, field, name)
    return tuple(_number(number, name, si_unit, unit) for number in (numbers if isinstance(numbers, tuple) else (numbers,))), notes


def value(text: str, hint: Any, name: str, reading: ValueSources) -> Any:
    """One value of an argument."""
    text, unit = text.strip(), unit_of(hint)
    if text in reading.constants and not _fits(reading.constants[text], hint):
        raise BadValue(name, text, f"{spelled(hint)}")
    if text in reading.constants:
        return reading.constants[text]
    if typing.get_origin(hint) is tuple:
        return _tuple(text, hint, name, reading)
    if dataclasses.is_dataclass(hint):
        return _record(text, hint, name, reading)
    if unit == "bool":
        if text.lower() not in TRUTHS:
            raise BadValue(name, text, "yes or no")
        return TRUTHS[text.lower()]
    if _FACT.fullmatch(text):  # a model's name may have any letters
        return _fact(text, unit or "", name, reading)
    if names_fact(text):
        return _reckoned(text, unit or "", name, reading)
    si_unit = same_unit(text) if unit == "*" else unit or ""
    if text in ("inf", "infinity"):
        return quantity.user_input(math.inf, name, si_unit)
    return _number(units.parse(text, si_unit, name), name, si_unit, unit)


def _number(number: float, name: str, unit: str, declared: str | None = None) -> Any:
    check_amount(number, name, unit, declared)
    plain = quantity.number(number) if unit in _COUNTS else float(number)
    return quantity.user_input(plain, name, unit)


def check_amount(number: float, name: str, unit: str | None, declared: str | None) -> None:
    """BadValue below the least value of an amount, or of an argument that is `declared` a plain number."""
    plain_name = name.rpartition(".")[2].partition("[")[0]
    if (unit in _AMOUNTS or (declared == "" and plain_name not in _SIGNED)) and number < 0:
        raise BadValue(name, units.show(number, unit or ""), "an amount of 0 or more")
    if declared == "" and plain_name in _GROUPS and number < 1:
        raise BadValue(name, units.show(number, unit or ""), "1 or more")


def _fact(text: str, unit: str, name: str, reading: ValueSources) -> Any:
    number = reading.fact(text, name)
    fact_unit = getattr(number, "unit", unit)
    if unit not in ("*", fact_unit):
        wants = f"a quantity in {unit}" if unit else "a plain number"
        raise BadValue(name, text, f"{wants}, and {text} is {f'in {fact_unit}' if fact_unit else 'a plain number'}")
    return number


def _reckoned(text: str, unit: str, name: str, reading: ValueSources) -> Any:
    """Arithmetic with facts, each of which keeps its origin."""

    def fact(key: str) -> Quantity:
        number = reading.fact(key, name)
        return Quantity(number, powers(unit_of_number(number)))

    quantity = read(text, unit, name, fact, lambda number, mark: _number(float(number), "factor", mark))
    if not quantity.powers and unit != "*" and factor_of("", unit) is None:
        raise BadValue(name, text, sought(unit))
    units.say_read(text, float(quantity.number), of_powers(quantity.powers))
    return quantity.number


# What the number of an argument of any unit may be in.
_ANY = ("", "byte", "s", "byte/s", "flop/s", "flop", "token", "USD", "USD/s", "W", "token/s", "1/s", "USD/token", "byte/token", "USD/Mtok")


def same_unit(text: str) -> str:
    """The unit of a number whose argument takes any; "" for a bare number."""
    first = text.partition("..")[0].partition(",")[0]
    return next((unit for unit in _ANY if _is_quantity(first, unit)), "")


def _is_quantity(text: str, unit: str) -> bool:
    try:
        units.parse(text, unit)
    except BadValue:
        return False
    return True


def _tuple(text: str, hint: Any, name: str, reading: ValueSources) -> tuple[Any, ...]:
    inner = typing.get_args(hint)
    if not (text.startswith("(") and text.endswith(")")):
        raise BadValue(name, text, f"values in parentheses, {spelled(hint)}")
    parts = [part for part in members(text[1:-1]) if part]
    hints = [inner[0]] * len(parts) if inner[-1] is Ellipsis else list(inner)
    if len(parts) != len(hints):
        raise BadValue(name, text, spelled(hint))
    return tuple(
        value(part, part_hint, f"{name}[{number}]", reading) for number, (part, part_hint) in enumerate(zip(parts, hints, strict=True))
    )


def _record(text: str, hint: Any, name: str, reading: ValueSources) -> Any:
    hints = typing.get_type_hints(hint, include_extras=True)
    if not (text.startswith("(") and text.endswith(")")):
        constants = [key for key, constant in reading.constants.items() if _fits(constant, hint)]
        known = f", or {' or '.join(constants)}" if constants else ""
        raise BadValue(name, text, f"{spelled(hint)}{known}")
    texts = dict(assignments([part for part in members(text[1:-1]) if part], name))
    check_names(texts, hints, name)
    return hint(**{key: value(texts[key], hints[key], f"{name}.{key}", reading) for key in hints})


def assignments(words: list[str], what: str) -> Iterator[tuple[str, str]]:
    """Names and texts of `key=value` words."""
    names: set[str] = set()
    for word in words:
        key, equals, text = word.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key or not text.strip():
            raise BadValue(what, word, "key=value, such as mem_bw=3.35TB/s")
        if key in names:
            raise BadValue(what, word, f"{key} once; a list has commas, such as {key}=1,2,4")
        names.add(key)
        yield key, text


def check_names(texts: typing.Collection[str], hints: typing.Collection[str], what: str, routes: typing.Sequence[str] = ()) -> None:
    """Raise an error for arguments that are unknown or missing; it names those that would work, and other `routes` to those."""
    missing = [key for key in hints if key not in texts]
    for key in texts:
        if key not in hints and not (missing and routes):
            raise UnknownName(f"argument of {what}", key, hints, f"{what} takes {', '.join(hints)}")
    if missing:
        raise MissingArguments(what, missing, routes)


class MissingArguments(HeadwayError):
    """Arguments that a law needs and the user left out, and what would let other laws give them."""

    def __init__(self, what: str, missing: list[str], routes: typing.Sequence[str] = ()) -> None:
        needs = "; or ".join([f"{what} needs {' '.join(f'{key}=...' for key in missing)}", *routes])
        super().__init__(f"{needs}; `headway law {clip(what)}` shows units and an example")


def _fits(constant: Any, hint: Any) -> bool:
    if dataclasses.is_dataclass(hint):
        return type(constant) is hint
    return not dataclasses.is_dataclass(constant)


def spelled(hint: Any) -> str:
    """What an argument takes, in words."""
    unit = unit_of(hint)
    if unit is not None:
        return {"": "number", "*": "any unit", "bool": "yes or no"}.get(unit, unit)
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)
        return f"({spelled(inner[0])}, ...)" if inner[-1] is Ellipsis else f"({', '.join(map(spelled, inner))})"
    fields = typing.get_type_hints(hint, include_extras=True)
    return f"({', '.join(f'{key}=' for key in fields)})"


def typed(plain: Any, hint: Any = None) -> str:
    """A value as it can be typed: every digit of a number, tuples and records in parentheses; a price per second with its unit.

    >>> typed((1, 2.5)), typed(True)
    ('(1, 2.5)', 'yes')
    """
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    if isinstance(plain, tuple | list):
        return "(" + ", ".join(map(typed, plain)) + ")"
    if dataclasses.is_dataclass(plain) and not isinstance(plain, type):
        return "(" + ", ".join(f"{field.name}={typed(getattr(plain, field.name))}" for field in dataclasses.fields(plain)) + ")"
    if unit_of(hint) == "USD/s":  # a bare price never means dollars per second
        return f"{float(str(plain))!r}USD/s"
    if isinstance(plain, int):
        return str(int(plain))
    number: Any = plain
    return next(text for text in (f"{float(number):.6g}", repr(float(number))) if float(text) == float(number))
