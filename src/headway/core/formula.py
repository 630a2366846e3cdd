"""Formulas that explain themselves by replay.

`@formula(source=...)` marks a pure function as a law. Called normally it is that function behind one flag test. Called inside
`record()`, each call leaves a Call: its inputs, its value, its source. A result carries its Call, so that where one law's result
is another's input the steps form a tree, and the tree can be evaluated again.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from headway.core.quantity import Sourced

_recording: ContextVar[bool] = ContextVar("recording", default=False)
_inside: ContextVar[list[Call] | None] = ContextVar("inside", default=None)
REGISTRY: dict[str, Law] = {}
F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True, slots=True)
class Law:
    """One registered formula, as in `headway list laws` and in the unit test."""

    name: str
    module: str
    source: str
    empirical: str  # why the unit test is waived, or ""
    run: Callable[..., Any]  # the plain function, without the recorder


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One recorded call: enough to show and to repeat it."""

    law: Law
    inputs: dict[str, Any]
    value: Any
    working: tuple[Call, ...] = ()  # laws called inside this one: shown, not replayed separately


class Traced(float):
    """A result inside `record()`: the float it is, and the Call that made it."""

    step: Call


def formula(source: str, empirical: str = "") -> Callable[[F], F]:
    """Mark a pure function as a law; `source` is paper, section, equation; `empirical` waives the unit check, with the reason."""

    def wrap(run: F) -> F:
        name = getattr(run, "__name__", "formula")
        law = Law(name, run.__module__.removeprefix("headway.laws."), source, empirical, run)
        if name in REGISTRY and REGISTRY[name].run.__module__ != run.__module__:
            raise ValueError(f"two laws are named {name}: in {REGISTRY[name].module} and {law.module}")
        REGISTRY[name] = law

        @functools.wraps(run)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not _recording.get():
                return run(*args, **kwargs)
            return _recorded(law, args, kwargs)

        call.law = law  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return wrap


def _recorded(law: Law, args: tuple, kwargs: dict[str, Any]) -> Any:
    import inspect

    bound = inspect.signature(law.run).bind(*args, **kwargs)
    bound.apply_defaults()
    working: list[Call] = []
    token = _inside.set(working)
    try:
        value = law.run(*args, **kwargs)
    finally:
        _inside.reset(token)
    if dataclasses.is_dataclass(value) or isinstance(value, str | tuple) or value is None:
        raise TypeError(f"{law.name}: a formula returns one number, not {type(value).__name__}")
    result = Traced(value)
    result.step = Call(law, dict(bound.arguments), result, tuple(working))
    outer = _inside.get()
    if outer is not None:
        outer.append(result.step)
    return result


@contextmanager
def record() -> Iterator[None]:
    """Record every formula call within this block; results are Traced."""
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


def recording() -> bool:
    """Whether formula calls are recorded."""
    return _recording.get()


def leaves(value: Any, path: str = "", visited_ids: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Numbers under `value` that no law produced, as (path, number); walks records and tuples, each shared branch once."""
    visited_ids = set() if visited_ids is None else visited_ids
    if id(value) in visited_ids:
        return
    if isinstance(value, Traced):
        visited_ids.add(id(value))
        for name, item in value.step.inputs.items():
            yield from leaves(item, f"{path}/{value.step.law.name}.{name}", visited_ids)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name), f"{path}.{field.name}", visited_ids)
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]", visited_ids)
    elif not isinstance(value, str | bool | type(None)):
        yield path, value


def anonymous(value: Any) -> list[str]:
    """Paths under `value` of numbers without an origin: empty for a complete explanation."""
    return [path for path, leaf in leaves(value) if not isinstance(leaf, Sourced)]


def replay(value: Any, done: dict[int, Any] | None = None) -> Any:
    """Evaluate the tree under `value` again from its leaves with the same laws; each shared branch once."""
    done = {} if done is None else done
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, Traced):
        again: Any = value.step.law.run(**{name: replay(item, done) for name, item in value.step.inputs.items()})
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        again = dataclasses.replace(value, **{f.name: replay(getattr(value, f.name), done) for f in dataclasses.fields(value) if f.init})
    elif isinstance(value, tuple | list):
        again = type(value)(replay(item, done) for item in value)
    else:
        again = value
    done[id(value)] = again
    return again
