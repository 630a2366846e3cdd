"""Volume only falls: no package holds more than its ceiling, and a ceiling that has fallen is written down."""

from __future__ import annotations

from dataclasses import asdict
from types import ModuleType
from typing import Any

import pytest

from support.tools import tool

SLACK = 0.02  # by which a package may lie below its ceilings before they are lowered


@pytest.fixture(scope="module")
def volume() -> ModuleType:
    """The counter of tools/, which no package imports."""
    return tool("volume")


@pytest.fixture(scope="module")
def found(volume: ModuleType) -> dict[str, Any]:
    """The volume of each package."""
    return volume.volumes()


def test_packages__hold_no_more_than_their_ceilings(volume: ModuleType, found: dict[str, Any]) -> None:
    """What a new verb or reader needs raises a ceiling in a commit of its own."""
    most = volume.ceilings()
    assert found.keys() == most.keys(), "a package has a row in tests/house/ceilings.csv, and a row a package"
    over = [
        f"{package}: {count} {what}, ceiling {asdict(most[package])[what]}"
        for package, held in found.items() for what, count in asdict(held).items() if count > asdict(most[package])[what]
    ]  # fmt: skip
    assert over == [], "delete or join something of the package"


def test_ceilings__fall_with_what_they_hold(volume: ModuleType, found: dict[str, Any]) -> None:
    most = volume.ceilings()
    high = [
        f"{package}: {asdict(found[package])[what]} {what}, ceiling {ceiling}"
        for package, held in most.items() for what, ceiling in asdict(held).items() if what in ("tokens", "code_lines")
        if ceiling * (1 - SLACK) > asdict(found[package])[what]
    ]  # fmt: skip
    assert high == [], "python tools/volume.py --lower"


def test_counter__of_a_module_by_hand(volume: ModuleType) -> None:
    text = (
        '"""Said."""\n\nimport os  # not counted\n\n\ndef _f(x: Any):\n    """Why."""\n    import re\n\n'
        "    return re, os, x\n\n\n_f(1)\n"
    )
    counted = volume.of_module(text)
    assert asdict(counted) == {  # import os; def _f ( x : Any ) :; import re; return re , os , x; _f ( 1 )
        "tokens": 2 + 8 + 2 + 6 + 4, "code_lines": 5, "modules": 1, "private_functions_used_once": 1, "imports_inside_functions": 1,
        "functions_returning_notes": 0, "parameters_of_any_type": 1,
    }  # fmt: skip
