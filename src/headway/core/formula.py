"""Laws, and explanations by replay.

`@formula(source=...)` marks a pure function as a law. Called normally it is that function behind one flag test. Called inside
`trace.record()`, each call leaves a Call: its inputs, its value, its source. A result carries its Call, so that where one law's
result is another's input the calls form a tree, and the tree can be evaluated again.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from headway.core.quantity import Sourced, is_literal
from headway.core.trace import Call, Law, Traced, add_to_outer, inside, recording, traced

REGISTRY: dict[str, Law] = {}
F = TypeVar("F", bound=Callable[..., Any])


def formula(source: str, empirical: str = "", gives: str = "", needs: str = "") -> Callable[[F], F]:
    """Mark a pure function as a law; `source` is paper, section, equation; `empirical` waives the unit check, with the reason.

    `gives` are arguments of other laws that it computes, besides that of its own name in its package: words with spaces, `roofline.ratio`
    an argument of another package's laws. `needs` are conditions on the arguments of a call by name (`headway law`), such as "chips >= 1".
    """

    def wrap(run: F) -> F:
        name = getattr(run, "__name__", "formula")
        law = Law(name, run.__module__.removeprefix("headway.laws."), source, empirical, run, gives, needs)
        if name in REGISTRY and REGISTRY[name].run.__module__ != run.__module__:
            raise ValueError(f"two laws are named {name}: in {REGISTRY[name].module} and {law.module}")
        REGISTRY[name] = law

        @functools.wraps(run)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not recording():
                return run(*args, **kwargs)
            return _recorded(law, args, kwargs)

        call.law = law  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return wrap


def _recorded(law: Law, args: tuple, kwargs: dict[str, Any]) -> Any:
    working: list[Call] = []
    with inside(working):
        value = law.run(*args, **kwargs)
    if dataclasses.is_dataclass(value) or isinstance(value, str | tuple) or value is None:
        raise TypeError(f"{law.name}: a formula returns one number, not {type(value).__name__}")
    usual = _parameters(law.run)
    values = dict(zip(usual, args, strict=False)) | kwargs
    step = Call(law, {name: values.get(name, default) for name, default in usual.items()}, float(value), tuple(working))
    add_to_outer(step)
    return traced(step)


@functools.cache
def _parameters(run: Callable[..., Any]) -> dict[str, Any]:
    """Parameters of a law, each with its default if it has one."""
    import inspect

    return {name: parameter.default for name, parameter in inspect.signature(run).parameters.items()}


def leaves(value: Any, path: str = "", visited_ids: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Numbers under `value` that no law produced, as (path, number); walks records and tuples, each shared branch once.

    A literal such as 1 is no leaf: it needs no origin.
    """
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
    elif not isinstance(value, str | bool | type(None)) and not is_literal(value):
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
        again: Any = value.step.again({name: replay(item, done) for name, item in value.step.inputs.items()})
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        again = dataclasses.replace(value, **{f.name: replay(getattr(value, f.name), done) for f in dataclasses.fields(value) if f.init})
    elif isinstance(value, tuple | list):
        again = type(value)(replay(item, done) for item in value)
    else:
        again = value
    done[id(value)] = again
    return again
