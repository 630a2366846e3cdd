"""A law by its name, with arguments as text: units, lists and ranges as axes, facts of chips, systems and models."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import sys
import typing
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from headway.core import law_index, law_values
from headway.core.catalog import Catalog
from headway.core.equation import unit_of
from headway.core.errors import BadValue
from headway.core.law_index import load
from headway.core.law_values import ValueSources, arguments_of
from headway.core.trace import Law, record
from headway.hardware.fact import fact
from headway.performance.law_chain import LawStep, chain, givers

MOST_POINTS = 100_000
ENDLESS = ("inf", "infinity", "nan")  # words that are numbers


@dataclasses.dataclass(frozen=True, slots=True)
class LawCall:
    """A law and the values of each argument: an axis of one value or more."""

    law: Law
    axes: Mapping[str, tuple[Any, ...]]
    notes: tuple[str, ...] = ()
    steps: tuple[LawStep, ...] = ()  # laws that give the other arguments
    paired: bool = False

    def points(self) -> list[dict[str, Any]]:
        """Inputs of each point, in the order of the arguments: of the grid, or pair by pair."""
        if self.paired:
            lengths = {len(axis) for axis in self.axes.values() if len(axis) > 1}
            if len(lengths) != 1 or sum(len(axis) > 1 for axis in self.axes.values()) < 2:
                raise BadValue("--zip", f"lists of {', '.join(map(str, sorted(lengths))) or 'one'}", "two lists or more, of one length")
            _check_points(self.law, max(lengths))
            axes = [axis * max(lengths) if len(axis) == 1 else axis for axis in self.axes.values()]
            return [dict(zip(self.axes, point, strict=True)) for point in zip(*axes, strict=True)]
        _check_points(self.law, math.prod(len(axis) for axis in self.axes.values()))
        return [dict(zip(self.axes, point, strict=True)) for point in itertools.product(*self.axes.values())]

    def completed(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A point with the arguments that other laws give."""
        inputs = dict(point)
        for step in self.steps:
            inputs[step.argument] = evaluate(step.law, {name: inputs[name] for name in arguments_of(step.law)})
        return inputs

    def result(self, inputs: Mapping[str, Any]) -> Any:
        """Value of the law at a completed point."""
        return evaluate(self.law, {name: inputs[name] for name in arguments_of(self.law)})

    def check(self, inputs: Mapping[str, Any]) -> None:
        """BadValue where a completed point does not meet what the law, or one that gives its arguments, needs."""
        for law in (*(step.law for step in self.steps), self.law):
            check_needs(law, {name: inputs[name] for name in arguments_of(law)})

    def hints(self) -> dict[str, Any]:
        """Annotations of every argument, of this law and of those that give its own, and of the result."""
        return {name: hint for law in (*(step.law for step in self.steps), self.law) for name, hint in hints_of(law).items()}

    def unit(self, name: str = "return") -> str:
        """Unit of an argument, or of the result; of any unit, the one that the inputs have."""
        hints = self.hints()
        unit = law_values.unit_of(hints[name]) or ""
        if unit != "*":
            return unit
        same = [key for key, hint in hints.items() if "*" in (law_values.unit_of(hint), *map(law_values.unit_of, typing.get_args(hint)))]
        values = [self.axes[key][0] for key in same if key in self.axes]
        members = [member for value in values for member in (value if isinstance(value, tuple) else (value,))]
        return next(filter(None, map(unit_of, members)), "")


def _check_points(law: Law, count: int) -> None:
    if count > MOST_POINTS:
        raise BadValue(law.name, "too many values", f"at most {MOST_POINTS} points")


def hints_of(law: Law) -> dict[str, Any]:
    """Annotations of a law's arguments and of its result, under `return`."""
    return typing.get_type_hints(law.run, include_extras=True)


def read(law: Law, texts: Mapping[str, str], catalog: Catalog | None = None, absent: str = "", paired: bool = False) -> LawCall:
    """The call that texts such as {"mem_bw": "h100.hbm_bw"} ask for; `absent` is an argument that is solved for.

    An argument that is missing is given by another law, if the texts have what that needs: `kv_s=batch_kv_s` names one of several.
    """
    choices = _choices(law, texts)
    texts = {name: text for name, text in texts.items() if name not in choices}
    steps, hints = _composed(law, [*texts, *([absent] if absent else [])], choices)
    reading = ValueSources(lambda text, field: fact(text, field, catalog), _constants(law))
    axes: dict[str, tuple[Any, ...]] = {}
    notes: tuple[str, ...] = ()
    with record():
        for name, hint in hints.items():
            if name in texts:
                axes[name], more = law_values.values(texts[name], hint, name, reading, paired)
                notes += more
    units = {name: unit_of(member) for name, axis in axes.items() if law_values.unit_of(hints[name]) == "*"
             for member in axis if unit_of(member)}  # fmt: skip
    for name, unit in units.items():  # arguments of any unit, which must be equal
        first = next(iter(units))
        if unit != units[first]:
            raise BadValue(name, f"a quantity in {unit}", f"a quantity in {units[first]}, as {first} is")
    return LawCall(law, axes, (*(step.words() for step in steps), *notes), steps, paired)


def _choices(law: Law, texts: Mapping[str, Any]) -> dict[str, str]:
    """The laws that are named for arguments; BadValue where a word is the name of none."""
    names = {name for place in law_index.places() for name in (place.name, place.full_name)}
    known = {*names, *_constants(law), *ENDLESS}
    words = {name: text.strip().replace("-", "_") for name, text in texts.items() if isinstance(text, str)}
    for name, word in words.items():
        laws = [giver.name for giver in givers(law, name)] if word[:1].isalpha() and word.isidentifier() and word not in known else ()
        if laws:
            wants = f"one of {', '.join(laws)} or a quantity in {law_values.spelled(arguments_of(law)[name])}"
            raise BadValue(name, texts[name], wants)
    return {name: word for name, word in words.items() if word in names}


def _composed(law: Law, names: Sequence[str], choices: Mapping[str, str]) -> tuple[tuple[LawStep, ...], dict[str, Any]]:
    """The laws that give what these names lack, and the annotations of what they and the law take; an error for too few or too many."""
    steps, gaps = chain(law, names, choices)
    hints = {name: hint for part in (law, *(step.law for step in steps)) for name, hint in arguments_of(part).items()}
    idle = [name for name in choices if name not in hints]
    for step in steps:
        hints.pop(step.argument)
    law_values.check_names([*names, *idle], hints, law.name, [route for gap in gaps for route in gap.near or gap.far])
    return steps, hints


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


def check_needs(law: Law, inputs: Mapping[str, Any]) -> None:
    """BadValue where the inputs of a law do not meet what it needs."""
    met: tuple[Any, ...] = (False,)
    with contextlib.suppress(ZeroDivisionError):
        met = eval(f"({law.needs},)", {}, dict(inputs)) if law.needs else ()
    if not all(condition.all() if hasattr(condition, "all") else condition for condition in met):
        raise BadValue(law.name, _spelled(inputs), law.needs)


def _spelled(inputs: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value if getattr(value, 'shape', ()) else law_values.typed(value)}" for name, value in inputs.items())


def law(name: str, /, **arguments: Any) -> Any:
    """Value of a law by name: numbers in SI or texts with units and facts; lists and arrays broadcast as in the law itself.

    What is missing is computed by other laws, `step_s="serial_step_s"` names one of several; a warning says which.

    >>> round(law("hardware_ratio", weight_byte=2, peak_flops="h100.peak_bf16", mem_bw="3.35TB/s"))
    295
    """
    formula = load(name)
    choices = _choices(formula, arguments)
    inputs, reading = {key: value for key, value in arguments.items() if key not in choices}, ValueSources(fact, _constants(formula))
    steps, hints = _composed(formula, list(inputs), choices)
    if steps:
        warnings.warn("; ".join(step.words() for step in steps), stacklevel=2)
    for key, text in inputs.items():
        if isinstance(text, str):
            axis, _ = law_values.values(text, hints[key], key, reading)
            inputs[key] = axis[0] if len(axis) == 1 else list(axis)
        elif isinstance(text, int | float):
            unit = law_values.unit_of(hints[key])
            law_values.check_amount(text, key, unit, unit)
    for step in steps:
        inputs[step.argument] = _broadcast(step.law, inputs)
    return _broadcast(formula, inputs)


def _broadcast(law: Law, inputs: Mapping[str, Any]) -> Any:
    """Value of a law for its own among these inputs, lists as arrays."""
    values = {name: inputs[name] for name in arguments_of(law)}
    if any(isinstance(value, list) for value in values.values()):
        import numpy as np

        values = {key: np.array(value) if isinstance(value, list) else value for key, value in values.items()}
    check_needs(law, values)
    return law.run(**values) if any(hasattr(value, "__array__") for value in values.values()) else evaluate(law, values)
