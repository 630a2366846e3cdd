"""The loop and the flat step as machine code, and whether compiling pays: never for a run that plain Python ends sooner."""

from __future__ import annotations

import functools
import hashlib
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.sim.compiled import _folder as machine_code
from headway.sim.compiled import _part as part
from headway.sim.compiled import available
from headway.sim.flatten import GLOBALS, Step
from headway.sim.kvcache_arrays import Pools
from headway.sim.loop import advance
from headway.sim.state import LANE, Cache, Rules, State, make_state

ANSWERS = "float64(float64, float64, float64, float64, float64)"
PLAIN_S = 40e-6  # about what a request takes in plain Python,
COMPILE_S = 12.0  # what compiling takes,
LOAD_S = 2.0  # and what it takes to load numba and what was compiled before
MARK = "loop.compiled"
NO_RULES = Rules(
    budget=1, chunk=1, seats=1, capacity=1, block=1, mixed=1, handed=0, reserve=0.0, departures=0.0, accept=1.0, closed=0, lanes=LANE
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Runner:
    """The loop and the step, in the form that runs: lists in plain Python, arrays compiled."""

    advance: Callable[[State, Rules, Any, float, int], int]
    step: Any
    lists: bool
    compile_s: float


def runner(source: str, plain: Step, requests: int, how: str = "auto") -> Runner:
    """The form that answers so many requests soonest; `how` is auto, plain or compiled."""
    if how == "plain" or (how == "auto" and not _pays(source, requests)):
        return Runner(advance, plain, True, 0.0)
    start = time.perf_counter()
    with compiling():
        step = _machine_step(source)
        loop = _machine_loop(step)
    return Runner(loop, step, False, time.perf_counter() - start)


def _pays(source: str, requests: int) -> bool:
    if not available():
        return False
    ready = (machine_code() / MARK).exists() and _file(source).exists()
    return requests * PLAIN_S > (LOAD_S if ready else COMPILE_S)


def enter(s: State, r: Rules, step: Any, until: float, most: int) -> int:
    """The compiled loop's door: inside, arrays are bare pointers, which cost nothing to hand on."""
    c, p = s.cache, s.cache.pools
    pools = Pools(pointer(p.slot), pointer(p.node), pointer(p.last), pointer(p.pool), pointer(p.ttl), p.ids, p.slots, p.tiers)
    cache = Cache(
        pools, pointer(c.blocks), pointer(c.start), pointer(c.found), pointer(c.least), pointer(c.paths), pointer(c.counted),
        pointer(c.ready),
    )  # fmt: skip
    inside = State(
        pointer(s.at), pointer(s.count), pointer(s.lengths), pointer(s.times), pointer(s.order), pointer(s.ends), pointer(s.seat),
        pointer(s.since), pointer(s.heap), pointer(s.partial), pointer(s.phase), pointer(s.spread), pointer(s.line), pointer(s.log), cache,
    )  # fmt: skip
    return advance(inside, r, step, until, most)


def pointer(array: Any) -> Any:
    """An array's first element; stands here for what `_machine_loop` puts in its place."""
    return array


@functools.cache  # loading what was compiled takes longer than ten thousand requests
def _machine_loop(step: Any) -> Callable[..., int]:
    """The loop, compiled for any step: none is run here."""
    import numba
    import numpy as np
    from numba.extending import intrinsic

    @intrinsic
    def first_element(context: Any, array: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return context.make_array(signature.args[0])(context, builder, values[0]).data

        return numba.types.CPointer(array.dtype)(array), code

    names = {**globals(), "pointer": first_element, "advance": part(advance)}
    loop: Any = numba.njit(cache=True)(types.FunctionType(enter.__code__, names, "enter"))
    lengths, times = np.ones(2, np.int64), np.zeros(4)
    state = make_state(NO_RULES, lengths, times, [np.zeros(1, np.int64)], np.zeros(6), np.ones(2), False)
    loop(state, NO_RULES, step, 0.0, 0)
    (machine_code() / MARK).touch()
    return loop


def _file(source: str) -> Path:
    return machine_code() / f"step_{hashlib.sha256(source.encode()).hexdigest()[:16]}.py"


@functools.cache
def _machine_step(source: str) -> Any:
    """A C function, so that the compiled loop is the same for every step."""
    import numba

    path, space = _file(source), {**GLOBALS, "__name__": __name__}
    path.write_text(source, encoding="utf-8")
    exec(compile(source, str(path), "exec"), space)
    return numba.cfunc(ANSWERS, cache=True)(space["step"])  # type: ignore[operator]


@contextmanager
def compiling() -> Iterator[None]:
    """What is compiled here is kept in the project's folder for machine code, unless the user named another.

    Light optimisation: the full one takes four times as long, function by function again for each caller, and gains nothing here.
    """
    import numba

    config: Any = numba.config  # type: ignore[attr-defined]
    folder, level = config.CACHE_DIR, config.OPT
    config.CACHE_DIR, config.OPT = folder or str(machine_code()), type(level)(1)
    try:
        yield
    finally:
        config.CACHE_DIR, config.OPT = folder, level
