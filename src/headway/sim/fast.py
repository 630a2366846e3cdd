"""The flat step as machine code, and whether compiling pays: never for a run that plain Python ends sooner."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.sim.compiled import _folder, available, compiled
from headway.sim.flatten import GLOBALS
from headway.sim.loop import advance

ANSWERS = "float64(float64, float64, float64, float64, float64)"
PLAIN_S = 40e-6  # about what a request takes in plain Python,
COMPILE_S = 12.0  # what compiling takes,
LOAD_S = 2.0  # and what it takes to load numba and what was compiled before
MARK = "loop.compiled"


@dataclass(frozen=True, slots=True)
class Runner:
    """The loop and the step, in the form that runs: lists in plain Python, arrays compiled."""

    advance: Callable[..., int]
    step: Any
    lists: bool
    compile_s: float


def runner(source: str, plain: Callable[..., float], requests: int, how: str = "auto") -> Runner:
    """The form that answers so many requests soonest; `how` is auto, plain or compiled."""
    if how == "plain" or (how == "auto" and not _pays(source, requests)):
        return Runner(advance, plain, True, 0.0)
    start = time.perf_counter()
    loop, step = compiled(advance), _machine_step(source)
    return Runner(loop, step, False, time.perf_counter() - start)


def _pays(source: str, requests: int) -> bool:
    if not available():
        return False
    ready = (_folder() / MARK).exists() and _file(source).exists()
    return requests * PLAIN_S > (LOAD_S if ready else COMPILE_S)


def remember() -> None:
    """The loop has been compiled and kept."""
    (_folder() / MARK).touch()


def _file(source: str) -> Path:
    return _folder() / f"step_{hashlib.sha256(source.encode()).hexdigest()[:16]}.py"


def _machine_step(source: str) -> Any:
    """A C function, so that the compiled loop is the same for every step."""
    import numba

    path, space = _file(source), dict(GLOBALS)
    path.write_text(source, encoding="utf-8")
    exec(compile(source, str(path), "exec"), space)
    known = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = known or str(_folder())  # type: ignore[attr-defined]
    try:
        return numba.cfunc(ANSWERS, cache=True)(space["step"])  # type: ignore[operator]
    finally:
        numba.config.CACHE_DIR = known  # type: ignore[attr-defined]
