"""Compiles plain functions of the numba-safe subset with what they call; compiles the loop where plain Python would take longer.

Machine code is kept between runs in a folder of the user's that is named after a hash of the sources; where there is none, it is made anew.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib.util
import sys
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from headway.core.code_store import code_folder
from headway.core.errors import MissingExtra
from headway.simulation import machine_code, routing
from headway.simulation.state import LANE, Rules, State, make_state
from headway.simulation.step_time import GLOBALS, Step
from headway.simulation.traffic.requests import Traffic


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
    return machine_code.entry(_rebound(run, instead), folder(), run.__name__)


@functools.cache
def _part(run: Callable[..., Any], instead: tuple[tuple[Any, Any], ...]) -> Callable[..., Any]:
    """A function that only compiled functions call, without a Python entry point or its own cache."""
    return machine_code.part(_rebound(run, instead))


def _rebound(run: Any, instead: tuple[tuple[Any, Any], ...]) -> types.FunctionType:
    """A copy of a function whose references to functions of the package, laws included, are their compiled forms."""
    stand_ins, inner = dict(instead), {}
    for name in run.__code__.co_names:
        value = run.__globals__.get(name)
        if isinstance(value, types.FunctionType) and value.__module__.startswith("headway.") and name != run.__name__:
            inner[name] = stand_ins.get(value) or _part(getattr(value, "__wrapped__", value), instead)
    copy = types.FunctionType(run.__code__, {**run.__globals__, **inner}, run.__name__, run.__defaults__, run.__closure__)
    copy.__module__, copy.__qualname__, copy.__kwdefaults__ = run.__module__, run.__qualname__, run.__kwdefaults__
    return copy


@functools.cache
def folder() -> Path | None:
    """Folder of the machine code of the current sources, interpreter and numba; None where code cannot be kept safely."""
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {version('numba')} {version('llvmlite')}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):  # the loop calls nothing of its folders
        digest.update(path.read_bytes())
    return code_folder(f"compiled-{digest.hexdigest()[:16]}")


def is_stored(stem: str) -> bool:
    """Whether code of a function is there, perhaps for another processor."""
    place = folder()
    return place is not None and any(place.glob(f"{stem}-*.code"))


ANSWERS = "float64(float64, float64, float64, float64, float64)"
REQUEST_S, ANSWER_S, BLOCK_S = 9e-6, 27e-6, 3e-6  # s in plain Python per request, its later tokens, a cached block
FULL_S = 25e-6  # s in plain Python per request of a full batch: tokens share steps, but each is admitted, heaped and retired
COMPILE_S = 8.0  # seconds to compile
LOAD_S = 0.6  # seconds to load numba and cached machine code
STEP_S = 0.35  # seconds to compile a step for a loop that is there
NO_STEP = "def step(batch, context, tokens, pairs, prompts):\n    return 1.0\n"
NO_RULES = Rules(
    budget=1, chunk=1, seats=1, capacity=1, block=1, mixed=1, handed=0, reserve=0.0, departures=0.0, accept=1.0, closed=0, lanes=LANE
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Runner:
    """The loop, the routing and the step in the chosen form: lists for plain Python, arrays for machine code."""

    run_one: Callable[..., int]
    send: Callable[..., int]
    step: Any
    lists: bool
    compile_s: float

    def hold(self, states: list[State]) -> Any:
        """Replicas as the first argument of loop and routing; the caller must keep `states` alive."""
        return states if self.lists else _tables()[0].rows(states)

    def rule_table(self, rules: Rules) -> Any:
        """The rules as an argument of loop and routing."""
        return [rules] if self.lists else _tables()[1].rows([rules])


def plain_s(traffic: Traffic, cached: bool = False) -> float:
    """Approximate seconds that traffic takes in plain Python, between 24 and 48 us for an answer; `cached`: with a prefix cache."""
    return REQUEST_S * len(traffic) + ANSWER_S * int((traffic.output > 1).sum()) + (BLOCK_S * traffic.block_count if cached else 0.0)


def saturated_s(requests: int, output: float) -> float:
    """Approximate seconds that plain Python takes for so many requests of a mean output in full batches.

    In a full batch steps are shared, so that a token costs next to nothing, but each request is admitted, kept in a heap and retired.
    """
    return FULL_S * requests if output > 1.0 else REQUEST_S * requests


def runner(source: str, plain: Step, takes_s: float, how: str = "auto", routed: bool = False, shared: bool = False) -> Runner:
    """The fastest form for a run that takes plain Python `takes_s` seconds; `how` is auto, plain or compiled.

    Replicas interact if requests are `routed` or a tier is `shared`.
    """
    if how == "plain" or (how == "auto" and not _pays(source, takes_s, routed, shared)):
        return Runner(routing.run_one, routing.send, plain, True, 0.0)
    start = time.perf_counter()
    with compiling():
        step = _machine_step(source)
        loop = routing.run_one if shared else _machine_loop()  # with a shared tier replicas never run independently
        sending = _machine_send() if routed or shared else routing.send
    return Runner(loop, sending, step, False, time.perf_counter() - start)


def choose_form(source: str, takes_s: float, how: str, routed: bool = False, shared: bool = False) -> str:
    """The form (plain or compiled) for runs of `takes_s` seconds in total; several small runs may together justify compiling."""
    return "compiled" if how == "auto" and _pays(source, takes_s, routed, shared) else how


def is_ready(routed: bool = False, shared: bool = False) -> bool:
    """Whether machine code of the loop is there, so that only a step is left to compile."""
    needed = [] if shared else [routing.run_one]
    needed += [routing.send] if routed or shared else []
    return available() and all(is_stored(function.__name__) for function in needed)


def _pays(source: str, takes_s: float, routed: bool, shared: bool) -> bool:
    if not is_ready(routed, shared):
        return available() and takes_s > COMPILE_S
    return takes_s > LOAD_S + (0.0 if is_stored(_stem(source)) else STEP_S)


@functools.cache
def _tables() -> tuple[Any, Any]:
    """Table types through which compiled code sees replicas and rules."""
    return machine_code.PointerTable("State", _sample_state()), machine_code.PointerTable("Rules", NO_RULES)


@functools.cache
def _stand_ins() -> tuple[tuple[Any, Any], ...]:
    """(function, replacement) pairs: compiled code reads replicas and rules from tables instead of lists."""
    states, rules = _tables()
    return (routing.state_at, machine_code.row_at(states)), (routing.rules_at, machine_code.row_at(rules))


@functools.cache  # loading machine code takes longer than ten thousand requests
def _machine_loop() -> Callable[..., int]:
    """The loop as machine code for any step; simulates nothing itself."""
    loop, state, step = compiled(routing.run_one, _stand_ins()), _sample_state(), _machine_step(NO_STEP)
    states, rules = _tables()
    loop(states.rows([state]), 0, rules.rows([NO_RULES]), step, 0.0, 0)
    return loop


@functools.cache
def _machine_send() -> Callable[..., int]:
    """The routing as machine code for any step."""
    sending, state, none = compiled(routing.send, _stand_ins()), _sample_state(), np.zeros(1, np.int32)
    states, rules = _tables()
    table, (keys, best) = rules.rows([NO_RULES]), routing.board(1)
    sending(states.rows([state]), 1, table, _machine_step(NO_STEP), none, none.astype(np.int8), none, keys, best, 0, 0, 0)
    return sending


def _sample_state() -> State:
    return make_state(NO_RULES, np.ones(2, np.int32), np.zeros(4), np.zeros(1, np.int32), [np.zeros(0, np.int64)], np.zeros(6), False)


def _stem(source: str) -> str:
    return f"step_{hashlib.sha256(source.encode()).hexdigest()[:16]}"


@functools.cache
def _machine_step(source: str) -> Any:
    """The flat step as a C function, so that one compiled loop serves every step."""
    space = {**GLOBALS, "__name__": __name__}
    exec(compile(source, "<flattened law>", "exec"), space)
    return machine_code.callback(space["step"], ANSWERS, folder(), _stem(source))


@contextmanager
def compiling() -> Iterator[None]:
    """Context of light optimisation: full optimisation takes half as long again and gains nothing here."""
    config: Any = machine_code.numba.config  # type: ignore[attr-defined]
    level = config.OPT
    config.OPT = type(level)(1)
    collects = gc.isenabled()
    gc.disable()  # collections would scan numba's objects again and again
    try:
        yield
    finally:
        if collects:
            gc.enable()
        config.OPT = level
