"""Compiles plain functions of the numba-safe subset, together with the functions they call.

Machine code is kept between runs in a folder of the user's that is named after a hash of the sources; where there is none, it is made anew.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headway.core.code_store import code_folder
from headway.core.errors import MissingExtra

PACKAGE = "headway."


def available() -> bool:
    """Whether numba is installed; does not import it."""
    return importlib.util.find_spec("numba") is not None


@functools.cache
def compiled(run: Callable[..., Any], instead: tuple[tuple[Any, Any], ...] = ()) -> Callable[..., Any]:
    """`run` as machine code, compiled at its first call with each set of argument types; MissingExtra without numba.

    Functions of this package that it calls, directly or not, are compiled into it. `instead` holds (function, replacement) pairs for
    functions to replace.
    """
    if not available():
        raise MissingExtra("compiled simulation", "fast")
    from headway.simulation.machine_code import entry

    return entry(_rebound(run, instead), folder(), run.__name__)


@functools.cache
def _part(run: Callable[..., Any], instead: tuple[tuple[Any, Any], ...]) -> Callable[..., Any]:
    """A function that only compiled functions call, without a Python entry point or its own cache."""
    from headway.simulation.machine_code import part

    return part(_rebound(run, instead))


def _rebound(run: Any, instead: tuple[tuple[Any, Any], ...]) -> types.FunctionType:
    """A copy of a function whose references to functions of the package, laws included, are their compiled forms."""
    package_functions = {
        name: run.__globals__[name]
        for name in run.__code__.co_names
        if _is_package_function(run.__globals__.get(name)) and name != run.__name__
    }
    inner = {
        name: dict(instead).get(value) or _part(getattr(value, "__wrapped__", value), instead) for name, value in package_functions.items()
    }
    copy = types.FunctionType(run.__code__, {**run.__globals__, **inner}, run.__name__, run.__defaults__, run.__closure__)
    copy.__module__, copy.__qualname__, copy.__kwdefaults__ = run.__module__, run.__qualname__, run.__kwdefaults__
    return copy


def _is_package_function(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value.__module__.startswith(PACKAGE)


@functools.cache
def folder() -> Path | None:
    """Folder of the machine code of the current sources, interpreter and numba; None where code cannot be kept safely."""
    from importlib.metadata import version

    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {version('numba')} {version('llvmlite')}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):  # the loop calls nothing of its folders
        digest.update(path.read_bytes())
    return code_folder(f"compiled-{digest.hexdigest()[:16]}")


def is_stored(stem: str) -> bool:
    """Whether code of a function is there, perhaps for another processor."""
    place = folder()
    return place is not None and any(place.glob(f"{stem}-*.code"))
