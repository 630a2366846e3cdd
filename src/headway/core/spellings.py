"""Words of units: every spelling of a unit with its factor to SI, and the powers of what a unit is made of.

Units of the project: byte, byte/s, flop, flop/s, s, W, USD, USD/s, token, 1 (counts and ratios).
k = 1000 always; Ki = 1024. GB = 1e9 bytes, GiB = 2**30. A FLOP counts multiply and add separately (2 per multiply-add).
"""

from __future__ import annotations

import re

DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
YEAR = 365.25 * 86400.0  # s
MONTH = YEAR / 12
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
        for per, seconds in {**PER, "month": MONTH}.items()
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


def sought(unit: str, text: str = "") -> str:
    """What a value of a unit is, for whoever typed another text.

    >>> sought("byte/s"), sought("")
    ('a quantity in byte/s, such as 3.35TB/s', 'a number, such as 8 or 4k')
    >>> sought("byte/s", "400Gb/s")
    'a quantity in byte/s: b alone is a bit to some and a byte to others, write 400Gbit/s or 400GB/s'
    """
    bits = re.fullmatch(r"\s*([\d.]+ ?[kMGTP]?)b(ps|/s)?\s*", text) if "byte" in unit else None
    if bits:
        rate = "/s" if bits[2] else ""
        return f"a quantity in {unit}: b alone is a bit to some and a byte to others, write {bits[1]}bit{rate} or {bits[1]}B{rate}"
    return f"a quantity in {unit}, such as {example(unit)}" if unit else f"a number, such as {EXAMPLE['']}"


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
    if suffix in _COUNT:  # 100k of a unit that is left out
        return _COUNT[suffix]
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


def powers(unit: str) -> dict[str, int]:
    """The units that a unit is made of, each with its power.

    >>> powers("USD/token/s"), of_powers({"byte": 2, "s": -1})
    ({'USD': 1, 'token': -1, 's': -1}, 'byte^2/s')
    """
    total: dict[str, int] = {}
    for place, side in enumerate(unit.split("/")):
        for part in side.split("*"):
            name, _, power = part.partition("^")
            if name not in ("", "1"):
                total[name] = total.get(name, 0) + (int(power) if power else 1) * (-1 if place else 1)
    return total


def product(first: dict[str, int], second: dict[str, int], way: int) -> dict[str, int]:
    """Powers of a product's units, or with `way` -1 of a quotient's."""
    total = {part: first.get(part, 0) + way * second.get(part, 0) for part in (*first, *second)}
    return {part: power for part, power in total.items() if power}


def of_powers(powers: dict[str, int]) -> str:
    """The unit of these powers."""
    above, below = ([_power_text(part, way * power) for part, power in powers.items() if way * power > 0] for way in (1, -1))
    return "/".join(["*".join(above) or ("1" if below else ""), *below])


def _power_text(part: str, power: int) -> str:
    return part if power == 1 else f"{part}^{power}"


def example(unit: str) -> str:
    """A quantity of a unit as a person types it.

    >>> example("byte/s"), example("byte/token")
    ('3.35TB/s', '70kB/token')
    """
    return EXAMPLE.get(unit) or f"1 {unit}"
