"""What every law carries: one sentence that says why, a doctest with a real model's numbers, a source, and units all through."""

from __future__ import annotations

import inspect
import re
import typing
from typing import Any

from headway.core.formula import REGISTRY
from support.package import MODULES

LAWS = [law for law in REGISTRY.values() if law.run.__module__.startswith("headway.")]


def missing(law: Any) -> list[str]:
    """What a law does not say of itself."""
    text = inspect.getdoc(law.run) or ""
    opening, _, rest = text.partition("\n\n")
    sentence = " ".join(opening.split())
    parameters = inspect.signature(law.run).parameters.values()
    rules = {
        "a docstring begins with one sentence": bool(re.fullmatch(r"[A-Z0-9(`].*\.", sentence)),
        "one sentence says why": not re.search(r"[a-z0-9)]\. [A-Z]", sentence),
        "a doctest with a real model's numbers": ">>>" in rest,
        "a source": bool(law.source.strip()),
        "no hidden defaults": all(parameter.default is parameter.empty for parameter in parameters),
        "named arguments only": all(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in parameters),
    }
    return [f"{law.name}: {rule}" for rule, holds in rules.items() if not holds]


def has_units(hint: Any, outer: tuple[Any, ...] = ()) -> bool:
    """Whether a hint is a unit, or a tuple or record of units all through; a record may hold others of its kind."""
    if any(isinstance(mark, str) for mark in getattr(hint, "__metadata__", ())):
        return True
    if typing.get_origin(hint) is tuple:
        return all(has_units(item, outer) for item in typing.get_args(hint) if item is not Ellipsis)
    if hint in outer:
        return True
    fields = typing.get_type_hints(hint, include_extras=True) if isinstance(hint, type) else {}
    return bool(fields) and all(has_units(field, (*outer, hint)) for field in fields.values())


def test_registry__holds_the_laws_of_every_module() -> None:
    assert len(MODULES) > 250
    assert len(LAWS) > 300


def test_laws__say_what_they_are() -> None:
    assert [offence for law in LAWS for offence in missing(law)] == []


def test_laws__have_a_unit_on_every_input_and_on_their_result() -> None:
    offenders = []
    for law in LAWS:
        hints = typing.get_type_hints(law.run, include_extras=True)
        if hints.keys() != {*inspect.signature(law.run).parameters, "return"}:
            offenders.append(f"{law.name}: a hint on every input and on the result")
        offenders += [f"{law.name}: {name} is {hint}" for name, hint in hints.items() if not has_units(hint)]
    assert offenders == []
