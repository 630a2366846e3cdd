"""Numbers that write down what is done to them: the graph behind an explanation, and the operators that record it.

Outside `record()` a number with these operators is the plain number that it is. Inside, a law's call and each operation between
results and sourced numbers leaves a Call. Operations within a law's body are its equation and leave none.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_recording: ContextVar[bool] = ContextVar("recording", default=False)
recording = _recording.get  # whether calls are recorded; every law asks, so it is no Python function
_inside: ContextVar[list[Call] | None] = ContextVar("inside", default=None)
DUNDERS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power"}  # Python's name -> numpy's name
ARITHMETIC = "arithmetic"  # source of an operation that no paper needs to state


@dataclasses.dataclass(frozen=True, slots=True)
class Law:
    """One registered formula, as in `headway list laws` and in the unit test; or one operation of arithmetic."""

    name: str
    module: str
    source: str
    empirical: str  # why the unit test is waived, or ""
    run: Callable[..., Any]  # the plain function, without the recorder
    gives: str = ""  # arguments of other laws that it computes
    needs: str = ""  # what its inputs must meet, as conditions with commas


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One recorded call or operation: enough to show and to repeat it."""

    law: Law
    inputs: dict[str, Any]
    value: Any
    working: tuple[Call, ...] = ()  # laws called inside this one: shown, not replayed separately

    @property
    def is_operation(self) -> bool:
        """Whether this is an operation of arithmetic between numbers, not a law."""
        return self.law.source == ARITHMETIC

    def again(self, inputs: dict[str, Any]) -> Any:
        """The call repeated with other inputs."""
        return self.law.run(*inputs.values()) if self.is_operation else self.law.run(**inputs)


def _larger(first: Any, second: Any) -> Any:
    return first if first >= second or first != first else second


def _smaller(first: Any, second: Any) -> Any:
    return first if first <= second or first != first else second


OPERATIONS = {
    name: Law(name, "", ARITHMETIC, "", run)
    for name, run in {
        "add": operator.add,
        "subtract": operator.sub,
        "multiply": operator.mul,
        "divide": operator.truediv,
        "power": operator.pow,
        "negative": operator.neg,
        "maximum": _larger,
        "minimum": _smaller,
    }.items()
}


def operators(apply: Callable[[str, tuple[Any, ...]], Any], plain: type | None = None) -> Callable[[type], type]:
    """Class decorator: each arithmetic operator hands its numpy name and its operands to `apply`.

    With `plain`, a class of numbers, operators are those of that class outside `record()`.
    """

    def add_operators(cls: type) -> type:
        for python_name, name in DUNDERS.items():
            for reflected in (False, True):
                dunder = f"__{'r' * reflected}{python_name}__"
                setattr(cls, dunder, _binary(apply, name, reflected, getattr(plain, dunder, None)))
        cls.__neg__ = _negation(apply, getattr(plain, "__neg__", None))  # type: ignore[attr-defined]
        return cls

    return add_operators


def _binary(apply: Callable[..., Any], name: str, reflected: bool, plain: Callable[..., Any] | None) -> Callable[..., Any]:
    def operation(self: Any, operand: Any) -> Any:
        if plain is not None and not recording():
            return plain(self, operand)
        return apply(name, (operand, self) if reflected else (self, operand))

    return operation


def _negation(apply: Callable[..., Any], plain: Callable[..., Any] | None) -> Callable[..., Any]:
    def negation(self: Any) -> Any:
        return plain(self) if plain is not None and not recording() else apply("negative", (self,))

    return negation


def traced_operation(name: str, operands: tuple[Any, ...]) -> Any:
    """Result of an operation; within `record()` and outside a law's body it carries its Call."""
    law = OPERATIONS[name]
    values = tuple(_plain(operand) for operand in operands)
    value = law.run(*values)
    if not recording() or _inside.get() is not None or not isinstance(value, int | float):
        return value
    if name == "add" and type(operands[0]) is int and operands[0] == 0:  # Python's sum() starts with it
        return operands[1]
    return traced(Call(law, dict(zip(("first", "second"), operands, strict=False)), value))


def _plain(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, float) else value


class Traced:
    """A number inside `record()`: what it is, and the Call that made it."""

    step: Call
    unit: str  # of a fact, as it is declared; a law's result has that of its law


@operators(traced_operation, float)
class TracedFloat(Traced, float):
    """A traced float."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        is_scalar = all(isinstance(item, int | float) for item in inputs)
        if method == "__call__" and is_scalar and not keywords and ufunc.__name__ in OPERATIONS:
            return traced_operation(ufunc.__name__, inputs)
        return getattr(ufunc, method)(*(_plain(item) for item in inputs), **keywords)


@operators(traced_operation, int)
class TracedInt(Traced, int):
    """A traced int."""

    __array_ufunc__ = TracedFloat.__array_ufunc__


def traced(step: Call) -> Any:
    """The value of a call as a number that carries it; an int stays an int."""
    result: Any = TracedInt(step.value) if isinstance(step.value, int) else TracedFloat(step.value)
    result.step = step
    return result


@contextmanager
def record() -> Iterator[None]:
    """Record every formula call and operation within this block; results are Traced."""
    token = _recording.set(True)
    try:
        yield
    finally:
        _recording.reset(token)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Leave out the calls within this block: those of a search, whose result is one number of its law."""
    token = _recording.set(False)
    try:
        yield
    finally:
        _recording.reset(token)


@contextmanager
def inside(working: list[Call]) -> Iterator[None]:
    """The body of a law, whose calls of other laws are added to `working`."""
    token = _inside.set(working)
    try:
        yield
    finally:
        _inside.reset(token)


def add_to_outer(step: Call) -> None:
    """Add a call to the law in whose body it stands."""
    outer = _inside.get()
    if outer is not None:
        outer.append(step)
