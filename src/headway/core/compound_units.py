"""Units made of others, such as byte/token or USD/W/s: the factor from what a person types to SI."""

from __future__ import annotations

from collections.abc import Mapping

# Spellings of a compound unit as a whole.
AS_UNIT: dict[str, dict[str, float]] = {
    "W*s": {"J": 1.0, "kJ": 1e3, "MJ": 1e6, "GJ": 1e9, "Wh": 3600.0, "kWh": 3.6e6, "MWh": 3.6e9, "GWh": 3.6e12},
    "USD/W/s": {"$/kWh": 1 / 3.6e6, "USD/kWh": 1 / 3.6e6, "$/MWh": 1 / 3.6e9, "USD/MWh": 1 / 3.6e9, "$/J": 1.0, "USD/J": 1.0},
}
LENGTH = {"m": 1.0, "km": 1e3, "cm": 1e-2, "mm": 1e-3}
MILLION = 1e6
EXAMPLE = {
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


def factor(suffix: str, unit: str, spellings: Mapping[str, Mapping[str, float]]) -> float | None:
    """Factor from a spelled compound unit to SI, or None when it is no spelling of that unit.

    >>> from headway.core.units import SPELLINGS
    >>> factor("kB/token", "byte/token", SPELLINGS), factor("B/s", "byte/token", SPELLINGS)
    (1000.0, None)
    """
    if suffix in AS_UNIT.get(unit, {}):
        return AS_UNIT[unit][suffix]
    above, below = _sides(unit)
    typed_above, typed_below = _sides(suffix)
    if (len(above), len(below)) != (len(typed_above), len(typed_below)):
        return None
    product = 1.0
    for part, typed in zip(above, typed_above, strict=True):
        scale = _part(typed, part, spellings)
        if scale is None:
            return None
        product *= scale
    for part, typed in zip(below, typed_below, strict=True):
        scale = _part(typed, part, spellings)
        if scale is None:
            return None
        product /= scale
    return product


def _sides(text: str) -> tuple[list[str], list[str]]:
    """Units above and below the line of a fraction."""
    above, *below = text.split("/")
    return [part for part in above.split("*") if part not in ("", "1")], below


def _part(typed: str, unit: str, spellings: Mapping[str, Mapping[str, float]]) -> float | None:
    if unit.endswith("^2"):
        scale = _part(typed.removesuffix("^2"), unit.removesuffix("^2"), spellings) if typed.endswith("^2") else None
        return None if scale is None else scale * scale
    if unit == "m":
        return LENGTH.get(typed)
    if unit == "Mtok":
        scale = spellings["token"].get(typed)
        return None if scale is None else scale / MILLION
    return spellings[unit].get(typed) if unit in spellings and typed else None
