"""The text of recorded arithmetic: one expression of named numbers, and its unit."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from typing import Any

from headway.core.quantity import Sourced
from headway.core.trace import Call, Traced

INFIX = {"add": ("+", 1), "subtract": ("-", 1), "multiply": ("*", 2), "divide": ("/", 2), "power": ("**", 4)}
PREFIX_RANK, ATOM_RANK = 3, 5
CHOICES = {"maximum": "max", "minimum": "min"}


@dataclasses.dataclass(frozen=True, slots=True)
class Branch:
    """One max, min or where in an equation: its candidates with their values, and the one that was taken."""

    what: str
    candidates: tuple[tuple[str, float], ...]
    chosen_index: int


class Expression:
    """The operations that lead to a call, as one text over the numbers at which they begin: facts, constants, results of laws."""

    def __init__(self, step: Call) -> None:
        self.inputs: dict[str, Any] = {}
        self.branches: list[Branch] = []
        self.text = self._text(step)[0]

    def _text(self, step: Call) -> tuple[str, int]:
        operands = [self._operand(value) for value in step.inputs.values()]
        name = step.law.name
        if name == "negative":
            return f"-{_enclosed(operands[0], PREFIX_RANK)}", PREFIX_RANK
        if name in CHOICES:
            values = [float(value) for value in step.inputs.values()]
            candidates = tuple((text, value) for (text, _), value in zip(operands, values, strict=True))
            self.branches.append(Branch(CHOICES[name], candidates, values.index(step.value)))
            return f"{CHOICES[name]}({', '.join(text for text, _ in operands)})", ATOM_RANK
        sign, rank = INFIX[name]
        first, second = _enclosed(operands[0], rank + (name == "power")), _enclosed(operands[1], rank + (name != "power"))
        return f"{first} {sign} {second}", rank

    def _operand(self, value: Any) -> tuple[str, int]:
        if isinstance(value, Traced) and value.step.is_operation:
            return self._text(value.step)
        if not isinstance(value, Traced | Sourced):
            return f"{value:g}", ATOM_RANK
        return self._name(value), ATOM_RANK

    def _name(self, value: Any) -> str:
        """Name of a number in this expression: of its law or fact, numbered where two numbers share it."""
        for name, known in self.inputs.items():
            if known is value or (isinstance(value, Sourced) and isinstance(known, Sourced) and _same(known, value)):
                return name
        full = value.step.law.name if isinstance(value, Traced) else value.name.rpartition(".")[2]
        base = re.sub(r"\W+", "_", full).strip("_") or "number"
        count = Counter(re.sub(r"_\d+$", "", name) for name in self.inputs)[base]
        name = f"{base}_{count + 1}" if count or base in self.inputs else base
        self.inputs[name] = value
        return name


def _same(first: Any, second: Any) -> bool:
    return (first.name, first.source, float(first)) == (second.name, second.source, float(second))


def _enclosed(operand: tuple[str, int], least_rank: int) -> str:
    text, rank = operand
    return text if rank >= least_rank else f"({text})"


def unit_of_operation(step: Call, units: list[str]) -> str:
    """Unit of an operation's result from its operands' units.

    >>> from headway.core.trace import OPERATIONS
    >>> unit_of_operation(Call(OPERATIONS["divide"], {}, 0.0), ["byte", "byte/s"])
    's'
    """
    name = step.law.name
    if name in ("multiply", "divide"):
        powers = Counter(_powers(units[0]))
        for part, power in _powers(units[1]).items():
            powers[part] += power if name == "multiply" else -power
        return _text_of(powers)
    if name == "power":
        return ""
    return next((unit for unit in units if unit), "")


def _powers(unit: str) -> dict[str, int]:
    powers: Counter[str] = Counter()
    for place, side in enumerate(unit.split("/")):
        for part in side.split("*"):
            name, _, power = part.partition("^")
            if name not in ("", "1"):
                powers[name] += (int(power) if power else 1) * (-1 if place else 1)
    return powers


def _text_of(powers: Counter[str]) -> str:
    above = [_power_text(part, power) for part, power in powers.items() if power > 0]
    below = [_power_text(part, -power) for part, power in powers.items() if power < 0]
    return "/".join(["*".join(above) or ("1" if below else ""), *below])


def _power_text(part: str, power: int) -> str:
    return part if power == 1 else f"{part}^{power}"
