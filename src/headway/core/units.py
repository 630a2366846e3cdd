"""Text to SI and back: the types of formulas, every quantity that is read, and numbers as a person writes them."""

from __future__ import annotations

import importlib
import math
import re
from decimal import Decimal
from typing import Annotated, Any

from headway.core import arithmetic, notes
from headway.core.errors import BadValue
from headway.core.spellings import YEAR, factor_of, powers, sought

# Types of a formula's signature. `Any`, because a call takes scalars or arrays.
Number = Annotated[Any, ""]
Same = Annotated[Any, "*"]  # any unit, equal at all its places in one signature
Byte = Annotated[Any, "byte"]
BytePerSecond = Annotated[Any, "byte/s"]
BytePerToken = Annotated[Any, "byte/token"]
Flop = Annotated[Any, "flop"]
FlopPerSecond = Annotated[Any, "flop/s"]
FlopPerToken = Annotated[Any, "flop/token"]
FlopPerByte = Annotated[Any, "flop/byte"]
Second = Annotated[Any, "s"]
SecondPerToken = Annotated[Any, "s/token"]
PerSecond = Annotated[Any, "1/s"]
Token = Annotated[Any, "token"]
PerToken = Annotated[Any, "1/token"]
TokenPerSecond = Annotated[Any, "token/s"]
Usd = Annotated[Any, "USD"]
UsdPerSecond = Annotated[Any, "USD/s"]
UsdPerToken = Annotated[Any, "USD/token"]
UsdPerTokenSquared = Annotated[Any, "USD/token^2"]  # price per token and per token of context
UsdPerTokenSecond = Annotated[Any, "USD/token/s"]  # cost of holding a token's cache
UsdPerByte = Annotated[Any, "USD/byte"]
UsdPerByteSecond = Annotated[Any, "USD/byte/s"]  # cost of holding a byte
TokenPerMtok = Annotated[Any, "token/Mtok"]
UsdPerMtok = Annotated[Any, "USD/Mtok"]
Watt = Annotated[Any, "W"]
Metre = Annotated[Any, "m"]
Truth = Annotated[Any, "bool"]
ONE_TOKEN: Token = 1.0  # a decode step makes one token per sequence; divided by, it makes tokens a plain count

_DIGITS = r"[+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?)"
_NUMBER = re.compile(rf"\s*([$]?)\s*({_DIGITS})\s*(.*?)\s*", re.ASCII | re.IGNORECASE)


def parse(text: str, unit: str, field: str = "value", bare: str = "") -> float:
    """SI value of `text`, which must be a quantity of `unit`, or arithmetic that makes one; a bare number is in SI, or in `bare`.

    Raises BadValue, naming the field and an example, for a unit of another kind, NaN, infinity or no number.

    >>> parse("3.35 TB/s", "byte/s"), parse("80 GiB", "byte"), parse("8k", "token"), parse("32*1.2TB/s", "byte/s")
    (3350000000000.0, 85899345920.0, 8000.0, 38400000000000.0)
    """
    value = _plain(text, unit, bare)
    if value is None and arithmetic.is_arithmetic(text):
        return _reckoned(text, unit, field, bare)
    if value is None or not math.isfinite(value):
        raise BadValue(field, text, sought(unit, text) if value is None else f"a finite number ({sought(unit)})")
    return value


def _plain(text: str, unit: str, bare: str = "") -> float | None:
    """SI value of a number and its unit, None of any other text."""
    match = _NUMBER.fullmatch(text) if len(text) < 100 else None
    if not match:
        return None
    dollar, digits, suffix = match.groups()
    number, factor = float(digits), factor_of(("$" + suffix if dollar else suffix) or bare, unit)
    return number if not math.isfinite(number) else None if factor is None else number * factor


def _reckoned(text: str, unit: str, field: str, bare: str) -> float:
    """SI value of arithmetic, said to whoever prints the command; a result without a unit is one of `bare`."""
    quantity = arithmetic.read(text, unit, field, lambda name: _exact(_catalogued(name, field)))
    factor = 1 / arithmetic.multiple(unit) if quantity.powers else factor_of(bare, unit)
    if factor is None:
        raise BadValue(field, text, sought(unit))
    number = float(quantity.number)
    say_read(text, number * factor if quantity.powers else number, unit if quantity.powers else "")
    return number * factor


def say_read(text: str, number: float, unit: str) -> None:
    """Note what arithmetic was read as; the name of a fact stays as it is typed."""
    if not arithmetic.names_fact(text, alone=True):
        notes.read_as(text, spelled(number, unit))


def _exact(fact: Any) -> arithmetic.Quantity:
    return arithmetic.Quantity(Decimal(repr(float(fact))), powers(getattr(fact, "unit", "")))


def _catalogued(name: str, field: str) -> Any:
    return importlib.import_module("headway.hardware.fact").of_user(name, field)  # facts are packages above: this is no import of theirs


def spelled(number: float, unit: str) -> str:
    """A quantity as one types it, to the last digit.

    >>> spelled(38.4e12, "byte/s"), spelled(1 / 3, "s"), spelled(67108864, "token"), spelled(1.4e11, "")
    ('38.4TB/s', '0.3333333333333333s', '67108864', '1.4e11')
    """
    if unit in ("", "token"):
        digits = [str(int(number))] if number % 1 == 0 and abs(number) < _WRITTEN_OUT else []
        texts = (*digits, f"{number:.6g}".replace("e+", "e"), repr(number))
        return next(text for text in texts if float(text) == number)
    short = show(number, unit, 9).replace(" ", "").replace(",", "")
    return short if _plain(short, unit) == number else f"{number!r}{'/s' if unit == '1/s' else unit}"


_STEPS = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]
_UNIT_TEXT = {
    "byte": "B",
    "byte/s": "B/s",
    "flop": "FLOP",
    "flop/s": "FLOP/s",
    "W": "W",
    "token": "",
    "": "",
    "1/s": "/s",
    "token/s": " tok/s",
    "byte/token": "B/token",
    "flop/token": "FLOP/token",
}
# Money as quoted: factor from SI, and the suffix of the quoted unit.
_MONEY = {"USD": (1.0, ""), "USD/Mtok": (1.0, ""), "USD/s": (3600.0, "/h"), "USD/token": (1e6, "/Mtok"), "USD/token/s": (3.6e9, "/Mtok/h"),
          "USD/byte": (1e9, "/GB"), "USD/byte/s": (3.6e12, "/GB/h")}  # fmt: skip
_MAGNITUDES = [(1e12, 1e12, "T"), (1e9, 1e9, "B"), (1e6, 1e6, "M"), (1e4, 1e3, "k")]  # least value, scale, suffix
_TIMES = ((2 * YEAR, YEAR, "years"), (86400.0, 86400.0, "d"), (3600.0, 3600.0, "h"), (120.0, 60.0, "min"), (1.0, 1.0, "s"),
          (1e-3, 1e-3, "ms"), (1e-6, 1e-6, "us"), (1e-9, 1e-9, "ns"), (1e-12, 1e-12, "ps"))  # fmt: skip
_WRITTEN_OUT = 1e9  # below it every digit of a whole number is typed
_SHORTEST, _LONGEST = 1e-4, 1e6  # between them a number is written out, beyond them with an exponent
_EXPONENT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]\d{2,3})(?![\w.])")


def number(value: float, digits: int = 3) -> str:
    """A number as a person writes it: rounded, without an exponent unless it is tiny or huge.

    >>> number(892.3, 2), number(0.00123456), number(1.7876e26), number(-4.66e-16), number(92.99396, 4)
    ('890', '0.00123', '1.79e26', '-4.66e-16', '92.99')
    """
    rounded = float(f"{value:.{digits}g}")
    if rounded == 0 or _SHORTEST <= abs(rounded) < _LONGEST:
        return f"{rounded:.{max(0, digits - 1 - _power(rounded))}f}".rstrip("0").rstrip(".") if rounded % 1 else f"{rounded:.0f}"
    power = _power(rounded)
    return f"{number(rounded / 10.0**power, digits)}e{power}"


def _power(value: float) -> int:
    return int(f"{value:e}".partition("e")[2]) if value else 0


def plain(text: str) -> str:
    """A text whose numbers are written as a person writes them: whatever was formatted with an exponent is written out.

    >>> plain("8.9e+02 times the floor, 1.79e+26 FLOP"), plain("1e-05 s on h100-sxm")
    ('890 times the floor, 1.79e26 FLOP', '1e-5 s on h100-sxm')
    """
    return _EXPONENT.sub(lambda match: number(float(match[0]), max(3, len(match[1].replace(".", "")))), text)


def show(value: object, unit: str = "", digits: int = 3) -> str:
    """`value` (SI) as readable text.

    >>> show(3.35e12, "byte/s"), show(0.0213, "s"), show(8000, "token"), show(None)
    ('3.35 TB/s', '21.3 ms', '8k', '-')
    >>> show(671e9), show(70272, "byte/token"), show(45_000, "USD"), show(2 / 3600, "USD/s"), show(-1.8, "USD/Mtok")
    ('671B', '70.3 kB/token', '$45k', '$2/h', '-$1.80')
    """
    if value is None:
        return "-"
    if isinstance(value, str | bool):
        return str(value)
    amount = float(value)  # type: ignore[arg-type]
    if not math.isfinite(amount):
        return "-" if math.isnan(amount) else "inf"
    if unit in ("s", "ms"):
        return _show_time(amount if unit == "s" else amount / 1000, digits)
    if unit in _MONEY:
        return _show_money(amount, unit, digits)
    if unit in ("kg", "m^2", "kg/m^2"):  # 10900 kg, not 1.09e+04 kg
        return f"{number(amount, digits)} {unit}"
    if unit in _UNIT_TEXT and not (unit == "" and abs(amount) < 1000):
        return _show_prefixed(amount, unit, digits)
    return number(amount, digits) + (f" {unit}" if unit not in ("", "bool") else "")


def _reaches(value: float, least: float, digits: int) -> bool:
    """Whether a value is at least so much once it is rounded: 999.96 k is 1 M."""
    return abs(value) >= least * (1 - 0.5 * 10.0**-digits)


def _show_money(value: float, unit: str, digits: int) -> str:
    """Dollars: cents where there are cents, thousands with a comma, from 10,000 on with a prefix; the sign stands first."""
    factor, per = _MONEY[unit]
    amount = abs(value * factor)
    scale, prefix = next(((scale, name) for least, scale, name in _MAGNITUDES if _reaches(amount, least, digits)), (1.0, ""))
    mantissa = amount / scale
    rounded = float(f"{mantissa:.{digits}g}")
    text = f"{rounded:,.0f}" if 1000 <= rounded < 1e6 else number(mantissa, digits)
    if not prefix and rounded < 100 and rounded % 1 and "e" not in text:
        text = f"{mantissa:.2f}" if rounded >= 1 else text + "0" * (2 - len(text.partition(".")[2]))  # $1.80, $0.40
        text = text.removesuffix(".00")
    return f"{'-' if value < 0 and rounded else ''}${text}{prefix}{per}"


def _show_prefixed(value: float, unit: str, digits: int) -> str:
    mark = _UNIT_TEXT[unit]
    space = " " if mark and not mark.startswith((" ", "/")) else ""
    if abs(value) >= 1e21 or (unit == "flop" and abs(value) >= 1e20):  # 1e25 FLOP, not 1e7 EFLOP
        return f"{number(value, digits)}{space}{mark}"
    for factor, prefix in _STEPS:
        if _reaches(value, factor, digits):
            prefix = "B" if prefix == "G" and unit in ("", "token") else prefix  # 671B parameters, not 671G
            return f"{number(value / factor, digits)}{space}{prefix}{mark}"
    return f"{number(value, digits)}{space}{mark}"


def _show_time(value: float, digits: int) -> str:
    for least, factor, name in _TIMES:
        if abs(value) >= least if factor >= 1 else _reaches(value, least, digits):
            return f"{number(value / factor, digits)} {name}"
    return f"{number(value, digits)} s"
