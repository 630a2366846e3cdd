"""A law by its name, with arguments as text: units, lists and ranges as axes, facts of chips, systems and models."""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
import typing
from collections.abc import Mapping
from typing import Any

from headway.core import law_values
from headway.core.catalog import Catalog
from headway.core.errors import BadValue
from headway.core.law_index import load
from headway.core.law_values import ValueSources
from headway.core.quantity import Sourced
from headway.core.trace import Law, record
from headway.hardware.fact import fact

MOST_POINTS = 100_000


@dataclasses.dataclass(frozen=True, slots=True)
class LawCall:
    """A law and the values of each argument: an axis of one value or more."""

    law: Law
    axes: Mapping[str, tuple[Any, ...]]
    notes: tuple[str, ...] = ()

    def points(self) -> list[dict[str, Any]]:
        """Inputs of each point of the grid, in the order of the arguments."""
        if math.prod(len(axis) for axis in self.axes.values()) > MOST_POINTS:
            raise BadValue(self.law.name, "too many values", f"at most {MOST_POINTS} points")
        return [dict(zip(self.axes, point, strict=True)) for point in itertools.product(*self.axes.values())]

    def unit(self, name: str = "return") -> str:
        """Unit of an argument, or of the result; of any unit, the one that the inputs have."""
        hints = hints_of(self.law)
        unit = law_values.unit_of(hints[name]) or ""
        if unit != "*":
            return unit
        same = [key for key, hint in hints.items() if "*" in (law_values.unit_of(hint), *map(law_values.unit_of, typing.get_args(hint)))]
        values = [self.axes[key][0] for key in same if key in self.axes]
        members = [member for value in values for member in (value if isinstance(value, tuple) else (value,))]
        return next((member.unit for member in members if isinstance(member, Sourced) and member.unit), "")


def hints_of(law: Law) -> dict[str, Any]:
    """Annotations of a law's arguments and of its result, under `return`."""
    return typing.get_type_hints(law.run, include_extras=True)


def read(law: Law, texts: Mapping[str, str], catalog: Catalog | None = None, absent: str = "") -> LawCall:
    """The call that texts such as {"mem_bw": "h100.hbm_bw"} ask for; `absent` is an argument that is solved for."""
    hints = {name: hint for name, hint in hints_of(law).items() if name != "return"}
    law_values.check_names([*texts, *([absent] if absent else [])], hints, law.name)
    reading = ValueSources(lambda text, field: fact(text, field, catalog), _constants(law))
    axes: dict[str, tuple[Any, ...]] = {}
    notes: tuple[str, ...] = ()
    with record():
        for name, hint in hints.items():
            if name in texts:
                axes[name], more = law_values.values(texts[name], hint, name, reading)
                notes += more
    units = {name: member.unit for name, axis in axes.items() if law_values.unit_of(hints[name]) == "*"
             for member in axis if isinstance(member, Sourced) and member.unit}  # fmt: skip
    for name, unit in units.items():  # arguments of any unit, which must be equal
        first = next(iter(units))
        if unit != units[first]:
            raise BadValue(name, f"a quantity in {unit}", f"a quantity in {units[first]}, as {first} is")
    return LawCall(law, axes, notes)


def _constants(law: Law) -> dict[str, Any]:
    """Example constants of the law's module, which can stand for a record."""
    return {name: value for name, value in vars(sys.modules[law.run.__module__]).items() if name.isupper() and not isinstance(value, str)}


def evaluate(law: Law, inputs: Mapping[str, Any]) -> Any:
    """Value of a law, recorded so that it explains itself; an error in one line where the law is not defined."""
    try:
        with record():
            value = getattr(sys.modules[law.run.__module__], law.name, law.run)(**inputs)
    except (ArithmeticError, ValueError, TypeError, IndexError, KeyError) as error:
        if isinstance(error, BadValue):
            raise
        raise BadValue(law.name, _spelled(inputs), f"values at which the law is defined ({error})") from None
    if isinstance(value, complex) or math.isnan(value):
        raise BadValue(law.name, _spelled(inputs), "values at which the law is defined")
    return value


def _spelled(inputs: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={law_values.typed(value)}" for name, value in inputs.items())


def law(name: str, /, **arguments: Any) -> Any:
    """Value of a law by name: numbers in SI or texts with units and facts; lists and arrays broadcast as in the law itself.

    >>> round(law("hardware_ratio", weight_byte=2, peak_flops="h100.peak_bf16", mem_bw="3.35TB/s"))
    295
    """
    formula = load(name)
    texts = {key: value for key, value in arguments.items() if isinstance(value, str)}
    hints = [key for key in hints_of(formula) if key != "return"]
    law_values.check_names(arguments, hints, formula.name)
    inputs = dict(arguments)
    for key, axis in read_some(formula, texts).items() if texts else ():
        inputs[key] = axis[0] if len(axis) == 1 else list(axis)
    if not any(isinstance(value, list) or hasattr(value, "__array__") for value in inputs.values()):
        return evaluate(formula, inputs)
    import numpy as np

    return formula.run(**{key: np.array(value) if isinstance(value, list) else value for key, value in inputs.items()})


def read_some(formula: Law, texts: Mapping[str, str]) -> dict[str, tuple[Any, ...]]:
    """Values of some arguments of a law from text."""
    reading = ValueSources(fact, _constants(formula))
    hints = hints_of(formula)
    return {key: law_values.values(text, hints[key], key, reading)[0] for key, text in texts.items()}
