"""Text to SI and back: the only place where a prefix is read or written.

Units of the project: byte, byte/s, flop, flop/s, s, W, USD, USD/s, token, 1 (counts and ratios).
k = 1000 always; Ki = 1024. GB = 1e9 bytes, GiB = 2**30. A FLOP counts multiply and add separately (2 per multiply-add).
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from headway.core.errors import BadValue

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

DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
YEAR = 365.25 * 86400.0  # s
SMALL = {"m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9, "p": 1e-12}
TIME = {"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
        "d": 86400.0, "day": 86400.0, "days": 86400.0, "year": YEAR,
        "years": YEAR} | {prefix + "s": scale for prefix, scale in SMALL.items()}  # fmt: skip
PER = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}


def _prefixed(*names: str, prefixes: dict[str, float], scale: float = 1.0) -> dict[str, float]:
    return {prefix + name: factor * scale for prefix, factor in prefixes.items() for name in names}


_COUNT = DECIMAL | BINARY
_BYTE = _prefixed("B", "byte", "bytes", prefixes=_COUNT) | _prefixed("bit", prefixes=DECIMAL, scale=0.125)
_FLOP = _prefixed("FLOP", "flop", "FLOPs", prefixes=DECIMAL)
_FLOPS = _prefixed("FLOPS", "FLOP/s", "flop/s", "flops", "OPS", "FLOPs", prefixes=DECIMAL)
_FLOPS |= {prefix + "F": DECIMAL[prefix] for prefix in "GTPE"} | {prefix: DECIMAL[prefix] for prefix in "GTPE"}
_USD = {"USD": 1.0, "$": 1.0, "usd": 1.0}
# Dollars, and thousands of them with the prefix before or after their sign: k$87, $87k.
_PRICE = _USD | {text: factor for prefix, factor in (DECIMAL | {"B": 1e9}).items() for text in (f"{prefix}USD", f"{prefix}$", f"${prefix}")}

# For each unit of the project, all accepted spellings, with their factors to SI.
SPELLINGS: dict[str, dict[str, float]] = {
    "": _COUNT | {"B": 1e9, "%": 0.01, "x": 1.0},
    "token": _COUNT | {"B": 1e9} | _prefixed("token", "tokens", "tok", "tk", prefixes=_COUNT),
    "byte": _BYTE,
    "byte/s": {f"{unit}/{per}": factor / seconds for unit, factor in _BYTE.items() for per, seconds in {"s": 1.0}.items()}
    | {prefix + "bps": factor / 8 for prefix, factor in DECIMAL.items()},
    "flop": _FLOP | {"": 1.0},
    "flop/s": _FLOPS | {prefix: factor for prefix, factor in DECIMAL.items() if prefix},
    "s": TIME,
    "ms": {name: 1e3 * factor for name, factor in TIME.items()},  # of tables in ms
    "1/s": {f"{prefix}/{per}": factor / seconds for prefix, factor in DECIMAL.items() for per, seconds in PER.items()},
    "token/s": DECIMAL
    | {
        f"{prefix}{name}/{per}": factor / seconds
        for prefix, factor in (DECIMAL | {"B": 1e9}).items()
        for name in ("", "tok", "token", "tokens")
        for per, seconds in PER.items()
    },
    "W": _prefixed("W", "watt", prefixes=DECIMAL) | {"mW": 1e-3},
    "kg": {"kg": 1.0, "t": 1e3, "lb": 0.45359237},
    "m^2": {"m^2": 1.0, "m2": 1.0},
    "kg/m^2": {"kg/m^2": 1.0, "kg/m2": 1.0, "lb/ft^2": 0.45359237 / 0.3048**2},
    "USD": _PRICE,
    "USD/s": {f"{name}/{per}": factor / seconds for name, factor in _PRICE.items() for per, seconds in PER.items()},
    "USD/token": {
        f"{name}/{prefix}{unit}": usd / factor
        for name, usd in _PRICE.items()
        for prefix, factor in DECIMAL.items()
        for unit in ("tok", "token", "tokens")
    },
    "USD/token/s": {
        f"{name}/{prefix}{unit}/{per}": usd / factor / seconds
        for name, usd in _PRICE.items()
        for prefix, factor in DECIMAL.items()
        for unit in ("tok", "token", "tokens")
        for per, seconds in PER.items()
    },
    "USD/byte": {f"{name}/{unit}": usd / factor for name, usd in _PRICE.items() for unit, factor in _BYTE.items()},
    "USD/byte/s": {
        f"{name}/{unit}/{per}": usd / factor / seconds
        for name, usd in _PRICE.items()
        for unit, factor in _BYTE.items()
        for per, seconds in {**PER, "month": 365.25 / 12 * 86400}.items()
    },
}
# Spellings of a unit made of others, as a whole.
AS_UNIT: dict[str, dict[str, float]] = {
    "W*s": {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "GJ": 1e9, "Wh": 3600.0, "kWh": 3.6e6, "MWh": 3.6e9, "GWh": 3.6e12},
    "USD/W/s": {"$/kWh": 1 / 3.6e6, "USD/kWh": 1 / 3.6e6, "$/MWh": 1 / 3.6e9, "USD/MWh": 1 / 3.6e9, "$/J": 1.0, "USD/J": 1.0},
}
LENGTH = {"m": 1.0, "km": 1e3, "cm": 1e-2, "mm": 1e-3}
EXAMPLE = {
    "": "8 or 4k",
    "token": "8k, 8Ki or 15T",
    "byte": "80GB or 80GiB",
    "byte/s": "3.35TB/s",
    "flop": "1e25",
    "flop/s": "989TFLOPS",
    "s": "20ms or 2s",
    "ms": "20ms or 2s",
    "1/s": "40/s",
    "token/s": "50M/s",
    "W": "700W",
    "kg": "1360kg",
    "m^2": "0.72m^2",
    "kg/m^2": "1200kg/m^2",
    "USD": "$5",
    "USD/s": "$2/h",
    "USD/token": "$3/Mtok",
    "USD/token/s": "$4.50/Mtok/h",
    "USD/byte": "$10/GB",
    "USD/byte/s": "$0.02/GB/month",
    "byte/token": "70kB/token",
    "flop/token": "2GFLOP/token",
    "flop/byte": "295FLOP/B",
    "s/token": "1us/token",
    "1/token": "1/token",
    "token*s": "8k token*s",
    "USD/Mtok": "$3/Mtok",
    "W*s": "3.6MJ or 1kWh",
    "USD/W/s": "$0.08/kWh",
    "USD/W": "$12/W",
    "m": "1.2m",
}
_DIGITS = r"[+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?)"
_NUMBER = re.compile(rf"\s*([$]?)\s*({_DIGITS})\s*(.*?)\s*", re.ASCII | re.IGNORECASE)


def parse(text: str, unit: str, field: str = "value") -> float:
    """SI value of `text`, which must be a quantity of `unit`; a bare number is in SI.

    Raises BadValue, naming the field and an example, for a unit of another kind, NaN, infinity or no number.

    >>> parse("3.35 TB/s", "byte/s"), parse("80 GiB", "byte"), parse("8k", "token"), parse("20ms", "s")
    (3350000000000.0, 85899345920.0, 8000.0, 0.02)
    """
    match = _NUMBER.fullmatch(text) if len(text) < 100 else None
    wants = f"a quantity in {unit}, such as {example(unit)}" if unit else f"a number, such as {EXAMPLE['']}"
    if not match:
        raise BadValue(field, text, wants)
    dollar, digits, suffix = match.groups()
    suffix = "$" + suffix if dollar else suffix
    number = float(digits)
    if not math.isfinite(number):
        raise BadValue(field, text, f"a finite number ({wants})")
    factor = factor_of(suffix, unit)
    if factor is None or not math.isfinite(number * factor):
        raise BadValue(field, text, wants)
    return number * factor


def factor_of(suffix: str, unit: str) -> float | None:
    """Factor from `suffix` to SI `unit`, or None when it is no spelling of that unit.

    >>> factor_of("kB/token", "byte/token"), factor_of("B/s", "byte/token")
    (1000.0, None)
    """
    compact = suffix.replace(" ", "")
    if compact == "" and unit not in ("USD/s",):  # a bare price never means dollars per second
        return 1.0
    return SPELLINGS[unit].get(compact) if unit in SPELLINGS else _compound_factor(compact, unit)


def _compound_factor(suffix: str, unit: str) -> float | None:
    """Factor to SI of a unit made of others, such as byte/token or USD/W/s, or None when it is no spelling of that unit."""
    if suffix in AS_UNIT.get(unit, {}):
        return AS_UNIT[unit][suffix]
    (above, below), (typed_above, typed_below) = _sides(unit), _sides(suffix)
    if (len(above), len(below)) != (len(typed_above), len(typed_below)):
        return None
    up = [_part_factor(typed, part) for typed, part in zip(typed_above, above, strict=True)]
    down = [_part_factor(typed, part) for typed, part in zip(typed_below, below, strict=True)]
    product = 1.0
    for scale in up:
        if scale is None:
            return None
        product *= scale
    for scale in down:
        if scale is None:
            return None
        product /= scale
    return product


def _sides(text: str) -> tuple[list[str], list[str]]:
    """Units above and below the line of a fraction."""
    above, *below = text.split("/")
    return [part for part in above.split("*") if part not in ("", "1")], below


def _part_factor(typed: str, unit: str) -> float | None:
    if unit.endswith("^2"):
        scale = _part_factor(typed.removesuffix("^2"), unit.removesuffix("^2")) if typed.endswith("^2") else None
        return None if scale is None else scale * scale
    if unit == "m":
        return LENGTH.get(typed)
    if unit == "Mtok":
        scale = SPELLINGS["token"].get(typed)
        return None if scale is None else scale / 1e6
    return SPELLINGS[unit].get(typed) if unit in SPELLINGS and typed else None


def example(unit: str) -> str:
    """A quantity of a unit as a person types it.

    >>> example("byte/s"), example("byte/token")
    ('3.35TB/s', '70kB/token')
    """
    return EXAMPLE.get(unit) or f"1 {unit}"


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
