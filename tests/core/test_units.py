"""Numbers as a person writes them, over every unit and magnitude; what is shown can be typed again."""

from __future__ import annotations

import math
import re

import pytest

from headway.core import spellings
from headway.core.listing import format_value
from headway.core.units import YEAR, number, parse, plain, show

UNITS = ["", "token", "byte", "byte/s", "flop", "flop/s", "s", "1/s", "token/s", "W", "USD", "USD/Mtok", "USD/s", "USD/token",
         "USD/token/s", "USD/byte", "USD/byte/s", "byte/token", "flop/token", "kg", "m^2", "1/token", "flop/byte"]  # fmt: skip
POWERS = range(-18, 19)
MANTISSAS = (1.0, 1.8, 2.5, 4.66, 9.2399396, 9.996, 9.9996)
COMPUTER = re.compile(r"e[+-]?0|e\+|\d{7,}|\.\d{7,}|\$-|--|nan")  # 8.9e+02, 1e-07, 2300000, $-0.9


def amounts(unit: str) -> list[float]:
    return [sign * mantissa * 10.0**power for power in POWERS for mantissa in MANTISSAS for sign in (1, -1)]


@pytest.mark.parametrize("unit", UNITS)
def test_show__as_a_person_writes(unit: str) -> None:
    """No exponent where a number can be written out, none with a plus or a leading zero, dollars with cents, the sign first."""
    offenders = []
    for value in amounts(unit):
        for text in (show(value, unit), format_value(value, unit)):
            digits = re.match(r"-?\$?([\d.,]+)(e-?\d+)?", text)
            assert digits is not None, text
            mantissa = abs(float(digits[1].replace(",", "")))
            written = mantissa if digits[2] is None else 0.0
            cents = re.match(r"-?\$\d+\.\d(?![\d.])(?![kMBT])", text) and 0.1 <= mantissa < 100 and digits[2] is None
            needless = digits[2] and 1 <= abs(value) < 1e6 and unit in ("", "token", "USD", "USD/Mtok")
            if COMPUTER.search(text) or needless or cents or written >= 1e6:
                offenders.append((value, text))
    assert offenders == []


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit in spellings.SPELLINGS])
def test_show__can_be_typed_again(unit: str) -> None:
    """Within the rounding of three digits."""
    for value in amounts(unit):
        text = show(value, unit).replace(",", "").replace("-$", "$")
        assert abs(parse(text, unit)) == pytest.approx(abs(value), rel=6e-3), (value, text)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.8, "USD/Mtok", "$1.80"), (0.4, "USD", "$0.40"), (18, "USD", "$18"), (-0.952, "USD/Mtok", "-$0.952"), (1190, "USD", "$1,190"),
        (87_100, "USD", "$87.1k"), (9999.6, "USD", "$10k"), (2 / 3600, "USD/s", "$2/h"), (2.5 / 3600, "USD/s", "$2.50/h"),
        (435 * YEAR, "s", "435 years"), (3 * 86400, "s", "3 d"), (4.66e-12, "s", "4.66 ps"), (0.9996e-3, "s", "1 ms"),
        (999.6e-9, "s", "1 us"),
        (0.18, "1/s", "0.18/s"), (1.79e26, "flop", "1.79e26 FLOP"), (671e9, "", "671B"), (892, "", "892"), (0.00012, "", "0.00012"),
    ],
)  # fmt: skip
def test_show__examples(value: float, unit: str, text: str) -> None:
    assert show(value, unit) == text


def test_number__has_as_many_digits_as_asked() -> None:
    assert [number(892.3, digits) for digits in (1, 2, 3, 4)] == ["900", "890", "892", "892.3"]
    assert (number(92.99396, 4), number(0.0), number(1e6), number(999_999), number(1e-5)) == ("92.99", "0", "1e6", "1e6", "1e-5")


def test_plain__what_other_code_formatted() -> None:
    for value in (8.9e2, 1.23e-5, 1.79e26, 4.4e4, 9.99e-3, 123456.0):
        for form in (".2g", ".3g", ".4g"):
            text = plain(f"about {value:{form}} times, at most")
            assert "e+" not in text and "e-0" not in text
            assert float(text.split()[1]) == pytest.approx(value, rel=0.06)
    assert plain("h100-sxm 1e5 2e-3x a1e+05") == "h100-sxm 1e5 2e-3x a1e+05"  # names, and what was typed
    assert math.isclose(parse("435 years", "s"), 435 * YEAR)
