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

import numpy as np

from headway.sim import routing
from headway.sim.compiled import _folder as machine_code
from headway.sim.compiled import _part as part
from headway.sim.compiled import available
from headway.sim.flatten import GLOBALS, Step
from headway.sim.kvcache_arrays import ARRAYS, Pools
from headway.sim.state import LANE, Cache, Rules, State, make_state

ANSWERS = "float64(float64, float64, float64, float64, float64)"
PLAIN_S = 40e-6  # about what a request takes in plain Python,
COMPILE_S = 12.0  # what compiling takes,
LOAD_S = 2.0  # and what it takes to load numba and what was compiled before
MARK = "loop.compiled"
OUTER = ("advance", "next_arrival", "saved_tokens", "due_tokens")  # what routing.py calls of other modules,
INNER = ("due", "take_turns", "catch_up", "in_service", "by_load", "by_prefix")  # and of its own
NO_STEP = "def step(batch, context, tokens, pairs, ranks):\n    return 1.0\n"
NO_RULES = Rules(
    budget=1, chunk=1, seats=1, capacity=1, block=1, mixed=1, handed=0, reserve=0.0, departures=0.0, accept=1.0, closed=0, lanes=LANE
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Runner:
    """The loop, the routing and the step, in the form that runs: lists in plain Python, arrays compiled."""

    run_one: Callable[..., int]
    send: Callable[..., int]
    step: Any
    lists: bool
    compile_s: float

    def hold(self, states: list[State]) -> Any:
        """Replicas as the first argument of both; they must be kept alive beside it."""
        return states if self.lists else np.array([addresses(state) for state in states], np.int64)


def runner(source: str, plain: Step, requests: int, how: str = "auto", routed: bool = False, shared: bool = False) -> Runner:
    """The form that answers so many requests soonest; `how` is auto, plain or compiled; replicas meet `routed` or in a `shared` tier."""
    if how == "plain" or (how == "auto" and not _pays(source, requests)):
        return Runner(routing.run_one, routing.send, plain, True, 0.0)
    start = time.perf_counter()
    with compiling():
        step = _machine_step(source)
        loop = routing.run_one if shared else _machine_loop()  # then replicas never run by themselves
        sending = _machine_send() if routed or shared else routing.send
    return Runner(loop, sending, step, False, time.perf_counter() - start)


def chosen(source: str, requests: int, how: str) -> str:
    """`how` for runs of so many requests in all: several small ones may together pay for compiling where none does alone."""
    return "compiled" if how == "auto" and _pays(source, requests) else how


def _pays(source: str, requests: int) -> bool:
    if not available():
        return False
    ready = (machine_code() / MARK).exists() and _file(source).exists()
    return requests * PLAIN_S > (LOAD_S if ready else COMPILE_S)


def addresses(state: State) -> list[int]:
    """Where each array of a replica begins, in the order that `unfolded` reads them."""
    arrays = [*state[:-1], *state.cache[1:], *(getattr(state.cache.pools, name) for name in ARRAYS)]
    pools = state.cache.pools
    return [*(array.ctypes.data for array in arrays), pools.ids, pools.slots, pools.tiers, pools.shared]


def unfolded(where: Any, number: int) -> State:
    """`state_at` of the compiled loop: arrays are bare pointers, which cost nothing to hand on."""
    w = where[number]
    pools = Pools(
        small(w[27]), small(w[28]), numbers(w[29]), whole(w[30]), numbers(w[31]), w[32], w[33], w[34], w[35],
    )  # fmt: skip
    cache = Cache(
        pools, whole(w[16]), whole(w[17]), whole(w[18]), whole(w[19]), whole(w[20]), whole(w[21]), numbers(w[22]), numbers(w[23]),
        whole(w[24]), numbers(w[25]), numbers(w[26]),
    )  # fmt: skip
    return State(
        numbers(w[0]), whole(w[1]), small(w[2]), numbers(w[3]), small(w[4]), whole(w[5]), whole(w[6]), numbers(w[7]), numbers(w[8]),
        numbers(w[9]), whole(w[10]), whole(w[11]), whole(w[12]), numbers(w[13]), numbers(w[14]), numbers(w[15]), cache,
    )  # fmt: skip


def numbers(address: int) -> Any:
    """Floats from an address on; as `whole` and `small`, it stands here for what `_pointers` puts in its place."""
    raise NotImplementedError(address)


whole = small = numbers


def _pointers() -> dict[str, Any]:
    """From an address to a pointer, by what lies there."""
    import numba
    from numba.extending import intrinsic

    types_ = numba.types

    def of(kind: Any) -> Any:
        @intrinsic
        def pointer(context: Any, address: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

            return types_.CPointer(kind)(address), code

        return pointer

    return {"numbers": of(types_.float64), "whole": of(types_.int64), "small": of(types_.int32)}


@functools.cache
def _door(run: Callable[..., int]) -> Callable[..., int]:
    """A function of routing.py as machine code."""
    import numba

    inner = types.FunctionType(unfolded.__code__, {**globals(), **_pointers()}, "unfolded")
    names = {**vars(routing), "state_at": numba.njit(inner)}
    names |= {name: part(getattr(routing, name)) for name in OUTER}
    for name in INNER:
        if name != run.__name__:
            njit: Any = numba.njit
            bare = njit(inline="always", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # one function to compile
            names[name] = bare(types.FunctionType(getattr(routing, name).__code__, names, name))
    return numba.njit(cache=True)(types.FunctionType(run.__code__, names, run.__name__))  # type: ignore[return-value]


@functools.cache  # loading what was compiled takes longer than ten thousand requests
def _machine_loop() -> Callable[..., int]:
    """The loop, compiled for any step: nothing is simulated here."""
    loop, state, step = _door(routing.run_one), _nobody(), _machine_step(NO_STEP)
    loop(np.array([addresses(state)], np.int64), 0, NO_RULES, step, 0.0, 0)
    (machine_code() / MARK).touch()
    return loop


@functools.cache
def _machine_send() -> Callable[..., int]:
    """The routing, compiled for any step."""
    sending, state, none = _door(routing.send), _nobody(), np.zeros(1, np.int64)
    sending(np.array([addresses(state)], np.int64), 1, NO_RULES, _machine_step(NO_STEP), none.astype(np.int32), none, none, 0, 0, 0)
    return sending


def _nobody() -> State:
    return make_state(NO_RULES, np.ones(2, np.int32), np.zeros(4), [np.zeros(1, np.int64)], np.zeros(6), np.ones(2), False)


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
