"""Every law is called with quantities that carry units: what it returns must have the unit it is annotated with, and the same number.

Bytes, FLOPs, tokens and dollars are dimensions of their own here, so that a forgotten `/ token` or a byte taken for a parameter fails.
"""

from __future__ import annotations

import dataclasses
import random
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np
import pint
import pytest

from headway.core import units as core_units
from headway.core.formula import REGISTRY, formula
from headway.core.trace import Law
from headway.core.units import Byte, BytePerToken, Flop, FlopPerSecond, Number, Second, Token, TokenPerMtok, UsdPerMtok, UsdPerToken
from support.package import MODULES

UNITS = pint.UnitRegistry(filename=None)  # type: ignore[arg-type]
UNITS.define("s = [time]")
for dimension in ("byte", "flop", "token", "USD", "kg", "m"):
    UNITS.define(f"{dimension} = [{dimension}]")
UNITS.define("W = [power]")
UNITS.define("Mtok = 1e6 token")

LAWS = {law.name: law for law in REGISTRY.values() if law.run.__module__.startswith("headway.")}
# Laws waived from the check, each with its reason; test_replica_loop.py holds these to what they solve.
EMPIRICAL = dict.fromkeys(
    ("decoding_in_loop", "open_loop_in_service", "open_loop_decoding", "open_loop_capacity", "acceptance_of_length",
     "handed_decoding", "pooled_decoding"),
    "an iteration; its residual is tested instead",
) | {
    "erlang_b": "a recursion over servers",
    "carried_step": "a quantile, found by number",
    "unsteady_floor_s": "the envelope compares batches with one another", "paying_users": "a search; TPOT on both sides is tested instead",
}  # fmt: skip
# Magnitudes that a law's domain asks for; any other input is drawn between 2 and 9.
DRAWN = {
    "experts": 64.0, "active": 4.0, "experts_per_token": 4.0, "ep": 16.0, "tp": 4.0, "layers": 32.0, "domain": 40.0,
    "cap": 50.0, "root": 70.0,
    "eff_compute": 0.7, "eff_memory": 0.8, "eff_network": 0.9, "utilization": 0.9, "probability": 0.8,
}  # fmt: skip


def hints_of(thing: Any) -> dict[str, Any]:
    return typing.get_type_hints(thing, include_extras=True)


def mark(annotation: Any) -> str | None:
    """The unit of an alias such as Byte; None for anything else."""
    return next((text for text in getattr(annotation, "__metadata__", ()) if isinstance(text, str)), None)


def spelled(unit: str) -> str:
    return "byte" if unit == "*" else unit  # any unit, the same throughout one signature


def quantity(magnitude: Any, unit: str) -> Any:
    return UNITS.Quantity(magnitude, spelled(unit))


def drawn(annotation: Any, name: str, rng: random.Random, draw: int, within: tuple[Any, ...] = ()) -> Any:
    """A value for one input: (plain, with units); `within`: the records that it is a part of, of which none holds itself."""
    unit = mark(annotation)
    if unit == "bool":
        return bool(draw % 2), bool(draw % 2)
    if unit is not None:
        value = float((3, 0, 1, 2)[draw % 4]) if name == "overlap" else DRAWN.get(name, round(rng.uniform(2.0, 9.0), 3))
        return value, quantity(value, unit)
    if dataclasses.is_dataclass(annotation):
        pairs = {field: drawn(hint, field, rng, draw, (*within, annotation)) for field, hint in hints_of(annotation).items()}
        make: Any = annotation
        return make(**{key: one for key, (one, _) in pairs.items()}), make(**{key: other for key, (_, other) in pairs.items()})
    if typing.get_origin(annotation) is tuple:
        inner = typing.get_args(annotation)
        several = [] if inner[0] in within else [inner[0]] * 2
        members = several if inner[-1] is Ellipsis else list(inner)
        pairs = [drawn(member, name, rng, draw, within) for member in members]
        return tuple(one for one, _ in pairs), tuple(other for _, other in pairs)
    raise AssertionError(f"{name}: {annotation} is not a unit, a tuple of them or a record of them")


def constants() -> Iterator[tuple[types.ModuleType, str, Any, str]]:
    """Every module constant that is annotated with a unit, in each module that uses it: (module, name, value, unit)."""
    holders = [module for module in MODULES if any(law.run.__module__ == module.__name__ for law in LAWS.values())]
    own = {(name, id(vars(module)[name])): unit for module in [*holders, core_units] for name, unit in annotated(module).items()}
    for module in holders:
        for name, value in vars(module).items():
            if (name, id(value)) in own:
                yield module, name, value, own[name, id(value)]


def annotated(module: types.ModuleType) -> dict[str, str]:
    hints = {name: mark(hint) for name, hint in hints_of(module).items()}
    return {name: unit for name, unit in hints.items() if unit is not None}


@pytest.fixture
def with_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants with units become quantities for the length of one test."""
    for module, name, value, unit in constants():
        monkeypatch.setattr(module, name, quantity(value, unit))


def both(law: Law, draw: int) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Inputs without units and with them, and the unit of the result."""
    hints = hints_of(law.run)
    unit = mark(hints.pop("return"))
    assert unit is not None, f"{law.name} does not say what unit it returns"
    rng = random.Random(f"{law.name} {draw}")
    pairs = {name: drawn(hint, name, rng, draw) for name, hint in hints.items()}
    return {name: one for name, (one, _) in pairs.items()}, {name: other for name, (_, other) in pairs.items()}, unit


def agrees(result: Any, unit: str, plain: Any) -> None:
    """The result has the dimension of `unit`, and in that unit it is the number that the law gives without units."""
    if unit == "bool":
        assert not isinstance(result, pint.Quantity) or result.dimensionless
        assert bool(result) == bool(plain)
        return
    wanted = UNITS.Quantity(1.0, spelled(unit))
    found = result if isinstance(result, pint.Quantity) else UNITS.Quantity(result, "")
    assert found.dimensionality == wanted.dimensionality, f"returns {found.units}, is annotated {unit or 'a pure number'}"
    assert np.asarray(found.to(spelled(unit)).magnitude, float) == pytest.approx(np.asarray(plain, float), rel=1e-12)


def offence(law: Law, inputs: dict[str, Any], unit: str, plain: Any) -> str:
    """What is wrong with one call of a law with units; empty where nothing is."""
    try:
        agrees(law.run(**inputs), unit, plain)
    except Exception as error:  # whatever a law raises is its offence
        return f"{law.name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return ""


def test_units__every_law_returns_its_annotated_unit(request: pytest.FixtureRequest) -> None:
    cases = [(LAWS[name], *both(LAWS[name], draw)) for name in sorted(LAWS.keys() - EMPIRICAL.keys()) for draw in range(4)]
    expected = [law.run(**plain) for law, plain, _, _ in cases]
    request.getfixturevalue("with_units")
    offences = [offence(law, inputs, unit, plain) for (law, _, inputs, unit), plain in zip(cases, expected, strict=True)]
    assert [text for text in offences if text] == []


def test_units__empirical_laws_are_listed_with_a_reason() -> None:
    assert {law.name: law.empirical for law in LAWS.values() if law.empirical} == EMPIRICAL


def test_units__registry_holds_every_law() -> None:
    assert len(LAWS) > 150
    assert {"step_s", "kv_bytes_chip", "usd_per_mtok_out"} <= LAWS.keys()


def test_units__constants_are_patched_in_importing_modules() -> None:
    found = {(module.__name__.rpartition(".")[2], name) for module, name, _, _ in constants()}
    assert {("parts", "ONE_TOKEN"), ("parts", "NONE"), ("step", "NONE"), ("closed_loop", "ONE_TOKEN"), ("balance", "MULTIPLY_ADD")} <= found


# The check itself is checked: each of these is a mistake, and each must be caught.


def _bytes_taken_for_parameters(params: Number, element: Byte) -> Number:
    return params * element


def _forgets_the_token(context: Token, kv: BytePerToken) -> Byte:
    return kv + 0 * context


def _adds_unlike_things(flop: Flop, moved: Byte) -> Flop:
    return flop + moved


def _upside_down(flop: Flop, peak: FlopPerSecond) -> Second:
    return peak / flop


def _a_million_off(price: UsdPerToken) -> UsdPerMtok:
    return price * 1e6


@pytest.mark.parametrize("wrong", [_bytes_taken_for_parameters, _forgets_the_token, _adds_unlike_things, _upside_down, _a_million_off])
def test_units__wrong_law_is_caught(wrong: Any) -> None:
    law = Law(wrong.__name__, "", "", "", wrong)
    plain, inputs, unit = both(law, 0)
    with pytest.raises((AssertionError, pint.DimensionalityError)):
        agrees(law.run(**inputs), unit, law.run(**plain))


MILLION: TokenPerMtok = 1e6


def _right(price: UsdPerToken) -> UsdPerMtok:
    return price * MILLION


def test_units__right_law_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    law = Law("_right", "", "", "", _right)
    plain, inputs, unit = both(law, 0)
    expected = law.run(**plain)
    monkeypatch.setattr(sys.modules[__name__], "MILLION", quantity(MILLION, "token/Mtok"))
    agrees(law.run(**inputs), unit, expected)


def test_formula__second_law_of_the_same_name_is_refused() -> None:
    def step_s(seconds: Second) -> Second:
        return seconds

    with pytest.raises(ValueError, match="two laws are named step_s"):
        formula(source="a test")(step_s)
