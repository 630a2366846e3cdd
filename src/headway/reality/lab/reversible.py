"""The experiment `reversible`: a stack of couplings plain, checkpointed and reversible: its memory, time, errors; and as a cipher."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np

from headway.core.errors import BadValue
from headway.core.notes import note
from headway.core.progress import expect, tick
from headway.core.quantity import known
from headway.core.trace import record
from headway.core.units import Byte
from headway.laws.coupling import error_by_roundoff
from headway.laws.training.memory import (
    activation_bytes_chip,
    checkpoint_bytes,
    coupling_bytes,
    layers_s,
    reversible_bytes_chip,
    reversible_slowdown,
    stream_bytes,
)
from headway.reality import coupling, threads
from headway.reality.lab.couplings import CHECKPOINTED, MODES, PLAIN, REVERSIBLE, Stack, StackSize, half_squares, random_halves
from headway.reality.lab.experiment import Calibration, Child, PredictedPoint, Say, calibrated
from headway.reality.lab.reversible_memory import WORD, stack_of
from headway.reality.lab.reversible_setup import ReversibleSetup
from headway.reality.measure.timing import QUIET, Rounds, clock_of, timed

MEMORY_CHILD = "headway.reality.lab.reversible_memory"
ACTIVATIONS, PEAK, STEP, SLOWDOWN = "activations held", "peak memory", "step", "time over plain"
OVER_CHECKPOINTED, DRIFT, GRADIENT, LOSS, CIPHER = "time over checkpointed", "drift", "gradient error", "loss over plain", "wrong bits"
DEPTHS = (*((REVERSIBLE, layers) for layers in (8, 16, 32, 64)), (PLAIN, 8), (PLAIN, 64), (CHECKPOINTED, 8), (CHECKPOINTED, 64))
QUICK_DEPTHS = ((REVERSIBLE, 8), (REVERSIBLE, 64), (PLAIN, 64))
DEEPEST, FEW = 64, 4  # layers whose memory is weighed, at most and before the prediction
TIMED, QUICK_TIMED = (2, 6), (2,)  # layers of the steps that are timed
ROUNDS, QUICK_ROUNDS = 5, 3  # of which the best counts
TOKENS, MEMORY_TOKENS, NARROW = 256, 2048, 8  # the memory's stack is so many times narrower, its streams are longer for it
SMALL = StackSize(layers=16, width=64, tokens=64)  # of errors, of training, of the cipher
DEEP = replace(SMALL, layers=DEEPEST)
STEPS, RATE = 60, 1e-3  # of training
ERRORS = ((SMALL, "fp32"), (SMALL, "fp16"), (SMALL, "bf16"), (SMALL, "fixed64"), (DEEP, "fp32"))  # by number format of the streams
NEAR, STEP_HALF, ERROR_HALF, LOSS_HALF = 1.1, 1.25, 1.25, 1.001  # half of an interval, as a factor: memory and shares; seconds; errors
LEAST_SHARE = 0.9  # of a core that the steps of one thread get where the machine is quiet
CIPHER_BITS = 24  # behind the binary point of what a layer makes, of which a word takes the last 16

Points = Iterator[tuple[str, float, float, float]]  # quantity, layers, value, spread


def fitted(setup: ReversibleSetup) -> ReversibleSetup:
    """The library by name."""
    has_torch = find_spec("torch") is not None
    if setup.library == "torch" and not has_torch:
        raise BadValue("--library", "torch", "numpy, as torch is not installed here (pip install torch)")
    library = setup.library or ("torch" if has_torch else "numpy")
    note(f"the stack runs in {library}: --library")
    return replace(setup, library=library)


def memory(setup: ReversibleSetup) -> Byte:
    """Bytes of the widest stack with its gradients, or of the deepest with every activation."""
    timed_stack = timed_size(setup, max(TIMED))
    narrow = memory_size(setup, DEEPEST)
    wide = (2 * WORD * timed_stack.params + float(_layer_bytes(timed_stack)) * TOKENS) * timed_stack.layers
    return max(wide, (WORD * narrow.params + float(_layer_bytes(narrow)) * MEMORY_TOKENS) * narrow.layers)


def timed_size(setup: ReversibleSetup, layers: int) -> StackSize:
    """A stack whose steps are timed."""
    return StackSize(layers=layers, width=setup.width, tokens=TOKENS)


def memory_size(setup: ReversibleSetup, layers: int) -> StackSize:
    """A stack whose memory is weighed."""
    return StackSize(layers=layers, width=setup.width // NARROW, tokens=MEMORY_TOKENS)


# -- the machine, before the prediction -----------------------------------------------------------------------------------------------


def calibrate(setup: ReversibleSetup, child: Child) -> Calibration:
    """Operations of a layer one by one, the errors of 64 bits, and the peak of a stack of few layers."""
    machine = calibrated("reversible", setup, child)
    modes = (REVERSIBLE,) if setup.quick else (REVERSIBLE, PLAIN, CHECKPOINTED)
    peaks = {mode: child(MEMORY_CHILD, _request(setup, mode, FEW), setup.threads)["peak"] for mode in modes}
    if None in peaks.values():
        note("peak memory is not predicted: this system does not say what a process had at most")
    return {**machine, "peaks": peaks}


def _request(setup: ReversibleSetup, mode: str, layers: int) -> dict[str, Any]:
    """What a process of its own is asked to weigh."""
    return {"library": setup.library, "mode": mode, "seed": setup.seed, "size": asdict(memory_size(setup, layers))}


def calibration(setup: ReversibleSetup) -> dict[str, Any]:
    """Seconds of a layer's operations, each alone; errors of a stack in 64 bits, of a stack whose streams alone have 32."""
    size, clock = timed_size(setup, 1), clock_of(setup.threads)
    budget = Rounds(budget_s=0.1 if setup.quick else 0.3)
    pieces = stack_of(setup.library, size, setup.seed).pieces(random_halves(size, setup.seed))
    passes = [[timed(work, budget, clock).median_s for work in (piece.forward, piece.backward)] for piece in pieces]
    forward, backward = (sum(seconds) for seconds in zip(*passes, strict=True))
    errors = {form: {str(size.layers): errors_of(setup, size, form, "float64") for size in (SMALL, DEEP)} for form in ("fp64", "fp32")}
    return {"forward_s": forward, "backward_s": backward, "errors": errors}


def errors_of(setup: ReversibleSetup, size: StackSize, form: str, dtype: str = "float32") -> tuple[float, float]:
    """Relative errors of a stack's gradients, against those from activations that were reads, and of the input that comes back."""
    stack, halves = stack_of(setup.library, size, setup.seed, dtype), random_halves(size, setup.seed, dtype)
    plain, again = (stack.step(mode, halves, half_squares, setup.seed, form) for mode in (PLAIN, REVERSIBLE))
    joined = [np.concatenate([np.asarray(gradient).ravel() for gradient in step.gradients]) for step in (again, plain)]
    return coupling.relative_error(*joined), stack.drift(halves, setup.seed, form)


# -- predicted ------------------------------------------------------------------------------------------------------------------------


def predict(setup: ReversibleSetup, calibration: Calibration) -> Iterator[PredictedPoint]:
    """Bytes by the laws of training's memory, time by one forward more, errors by the roundoff, and what comes back exactly."""
    with record():
        for mode, layers in QUICK_DEPTHS if setup.quick else DEPTHS:
            yield from _of_memory(setup, calibration, mode, layers)
        for layers in QUICK_TIMED if setup.quick else TIMED:
            yield from _of_time(calibration, layers)
        for size, form in ERRORS:
            yield from _of_errors(calibration, size.layers, form)
    unity, zero = (known(value, "exact", "", "constant", "couplings undone are the couplings") for value in (1.0, 0.0))
    yield _point(LOSS, "CR-02", SMALL.layers, "", unity, LOSS_HALF)
    yield _point(CIPHER, "CR-01", SMALL.layers, "", zero)


def _point(quantity: str, claim: str, layers: int, unit: str, value: Any, half: float = 1.0) -> PredictedPoint:
    return PredictedPoint(quantity=quantity, claim=claim, at=layers, unit=unit, value=value, low=value / half, high=value * half)


def _of_memory(setup: ReversibleSetup, calibration: Calibration, mode: str, layers: int) -> Iterator[PredictedPoint]:
    """Bytes held between the passes to the byte, and the peak: what a stack of few layers took beyond the law, with the law."""
    claim = "CR-04" if mode == REVERSIBLE else "CR-03"
    none = known(0.0, "at_hand", "byte/token", "constant", "between the passes no layer is at hand")
    yield _point(f"{ACTIVATIONS}, {mode}", claim, layers, "byte", _bytes(setup, mode, layers, none))
    if (peak := calibration["peaks"].get(mode)) is not None:
        beyond = (peak - float(_bytes(setup, mode, FEW, none))) / MEMORY_TOKENS
        at_hand = known(beyond, "at_hand", "byte/token", "measured", f"this machine: peak of {FEW} layers, less what they hold")
        yield _point(f"{PEAK}, {mode}", claim, layers, "byte", _bytes(setup, mode, layers, at_hand), NEAR)


def _bytes(setup: ReversibleSetup, mode: str, layers: int, at_hand: Any) -> Any:
    """Bytes of activations by the law of a mode."""
    size = memory_size(setup, layers)
    tokens = known(float(size.tokens), "tokens", "token", "input", "the experiment")
    width = known(float(size.width), "width", "", "input", "the experiment")
    stream = checkpoint_bytes(width, WORD, 1.0)  # of a layer's input
    if mode == REVERSIBLE:
        return reversible_bytes_chip(stream_bytes(stream), at_hand, tokens, 1.0)
    depth = known(float(layers), "layers", "", "input", "the experiment")
    return activation_bytes_chip(_layer_bytes(size) if mode == PLAIN else stream, at_hand, tokens, depth)


def _layer_bytes(size: StackSize) -> Any:
    width, params = (known(float(value), name, "", "input", "the experiment") for name, value in (
        ("width", size.width), ("params", size.params)))  # fmt: skip
    return coupling_bytes(width, params, WORD, 1.0)


def _of_time(calibration: Calibration, layers: int) -> Iterator[PredictedPoint]:
    """Seconds of each mode by the operations measured alone, and one way over another by one forward more."""
    forward, backward = (known(calibration[f"{name}_s"], f"{name}_s", "s", "measured", "this machine: a layer's operations, each alone")
                         for name in ("forward", "backward"))  # fmt: skip
    depth = known(float(layers), "layers", "", "input", "the experiment")
    seconds = {mode: layers_s(forward, backward, float(mode != PLAIN), depth) for mode in MODES}
    for mode in MODES:
        yield _point(f"{STEP}, {mode}", "CR-05", layers, "s", seconds[mode], STEP_HALF)
    passes = (calibration["forward_s"] + calibration["backward_s"]) / calibration["forward_s"]
    share = reversible_slowdown(known(passes, "passes", "", "measured", "this machine: forward and backward over forward"))
    yield _point(SLOWDOWN, "CR-05", layers, "", share, NEAR)
    yield _point(OVER_CHECKPOINTED, "CR-05", layers, "", seconds[REVERSIBLE] / seconds[CHECKPOINTED], NEAR)


def _of_errors(calibration: Calibration, layers: int, form: str) -> Iterator[PredictedPoint]:
    """Errors by the roundoff; those of 16 bits, whose f is computed in 32, from streams of 32 whose f was computed in 64."""
    known_form = "fp64" if form == "fp32" else "fp32"
    roundoff, aimed = (known(coupling.ROUNDOFF[name], f"{name}.roundoff", "", "constant", "half a unit in the last place")
                       for name in (known_form, form))  # fmt: skip
    for quantity, claim, error in zip((GRADIENT, DRIFT), ("CR-04", "CR-01"), calibration["errors"][known_form][str(layers)], strict=True):
        measured = known(error, "error", "", "measured", f"the same stack on this machine, f in 64 bits, streams in {known_form}")
        yield _point(f"{quantity}, {form}", claim, layers, "", error_by_roundoff(measured, roundoff, aimed), ERROR_HALF)


# -- measured, in a process of its own ------------------------------------------------------------------------------------------------


def measure(setup: ReversibleSetup, plan: Sequence[Mapping[str, Any]], say: Say) -> dict[str, Any]:
    """Times first, then errors, training and the cipher, then memory, each pass in a process of its own."""
    places = {(point["quantity"], point["at"]): place for place, point in enumerate(plan)}
    facts: dict[str, Any] = {"library": f"{setup.library} {importlib.import_module(setup.library).__version__}"}
    expect(len(plan))
    for part in (_times, _errors, _training, _cipher, _memories):
        for quantity, layers, value, spread in part(setup, facts):
            if (place := places.get((quantity, layers))) is not None:
                say((place, value, spread))
                tick(1)
    return facts


def _times(setup: ReversibleSetup, facts: dict[str, Any]) -> Points:
    """The best step of each mode, all ways in turn; a ratio is of the bests."""
    clock, spreads = clock_of(setup.threads), []
    begun, wall = clock(), time.perf_counter()
    for layers in QUICK_TIMED if setup.quick else TIMED:
        size = timed_size(setup, layers)
        stack, halves = stack_of(setup.library, size, setup.seed), random_halves(size, setup.seed)
        times: dict[str, list[float]] = {mode: [] for mode in MODES}
        stack.step(PLAIN, halves, half_squares, 0)  # warms up
        for turn in range(QUICK_ROUNDS if setup.quick else ROUNDS):
            for mode in MODES:
                start = clock()
                stack.step(mode, halves, half_squares, turn)
                times[mode].append(clock() - start)
        best = {mode: min(values) for mode, values in times.items()}
        spread = {mode: median(values) / best[mode] - 1 for mode, values in times.items()}
        spreads += spread.values()
        for mode in MODES:
            yield f"{STEP}, {mode}", layers, best[mode], spread[mode]
        yield SLOWDOWN, layers, best[REVERSIBLE] / best[PLAIN], 0.0
        yield OVER_CHECKPOINTED, layers, best[REVERSIBLE] / best[CHECKPOINTED], 0.0
    facts |= {"spread": median(spreads), "share": (clock() - begun) / (time.perf_counter() - wall)}


def _errors(setup: ReversibleSetup, facts: dict[str, Any]) -> Points:
    """Gradients against those from activations that were reads, and the input that comes back."""
    for size, form in ERRORS:
        gradient, drift = errors_of(setup, size, form)
        yield f"{GRADIENT}, {form}", size.layers, gradient, 0.0
        yield f"{DRIFT}, {form}", size.layers, drift, 0.0


def _training(setup: ReversibleSetup, facts: dict[str, Any]) -> Points:
    """The same small task learned plain and reversible, with the same masks, from the same weights."""
    halves = random_halves(SMALL, setup.seed)
    target, count = np.sin(2 * np.roll(halves[0], 1, axis=1)), halves[0].size

    def loss(x: Any, y: Any) -> tuple[float, Any, Any]:
        difference = x - (target if isinstance(x, np.ndarray) else x.new_tensor(target))
        return 0.5 * float((difference * difference).sum()) / count, difference / SMALL.tokens, y * 0

    losses = {}
    for mode in (PLAIN, REVERSIBLE):
        stack = stack_of(setup.library, SMALL, setup.seed)
        losses[mode] = [stack.step(mode, halves, loss, turn, rate=RATE).loss for turn in range(STEPS)]
    facts["losses"] = [losses[PLAIN][0], losses[PLAIN][-1], losses[REVERSIBLE][-1]]
    yield LOSS, SMALL.layers, losses[REVERSIBLE][-1] / losses[PLAIN][-1], 0.0


def _cipher(setup: ReversibleSetup, facts: dict[str, Any]) -> Points:
    """Random bytes encrypted by the stack, its weights the key, and decrypted; bits that differ."""
    plain = np.random.default_rng(setup.seed).integers(0, 2**16, (2, SMALL.tokens, SMALL.width), dtype=np.uint16)
    hidden = encrypted(plain, stack_of(setup.library, SMALL, setup.seed))
    facts |= {"bytes": plain.nbytes, "changed": _bits(hidden ^ plain) / (8 * plain.nbytes)}
    yield CIPHER, SMALL.layers, float(_bits(encrypted(hidden, stack_of(setup.library, SMALL, setup.seed), coupling.back) ^ plain)), 0.0


def encrypted(halves: np.ndarray, stack: Stack, through: Any = coupling.forward) -> np.ndarray:
    """Words of 16 bits behind the stack's couplings, XOR instead of a sum; `coupling.back` decrypts."""

    def as_words(residual: coupling.Residual) -> coupling.Residual:
        return lambda half: np.rint(residual(half.astype(np.float32) / 2**15 - 1) * 2.0**CIPHER_BITS).astype(np.int64).astype(np.uint16)

    return np.stack(through(halves[0], halves[1], list(map(as_words, stack.residuals(0))), coupling.XOR))


def _bits(words: np.ndarray) -> int:
    return int(np.unpackbits(np.ascontiguousarray(words).view(np.uint8)).sum())


def _memories(setup: ReversibleSetup, facts: dict[str, Any]) -> Points:
    """Each mode and depth in a process that runs nothing else."""
    for mode, layers in QUICK_DEPTHS if setup.quick else DEPTHS:
        weight = threads.in_child(MEMORY_CHILD, _request(setup, mode, layers), setup.threads)
        yield f"{ACTIVATIONS}, {mode}", layers, weight["activations"], 0.0
        if weight["peak"] is not None:
            yield f"{PEAK}, {mode}", layers, weight["peak"], 0.0


def noise(setup: ReversibleSetup, facts: Mapping[str, Any]) -> list[str]:
    """Steps that scatter, and other work that took the core."""
    spread, share = facts.get("spread", 0.0), facts.get("share", 1.0)
    reasons = [f"the usual step took {spread:.0%} longer than the fastest"] if spread > QUIET else []
    return [*reasons, *([f"the steps had {share:.0%} of a core"] if share < LEAST_SHARE else [])]
