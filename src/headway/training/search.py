"""Legal layouts of a training run on a machine, as one record of arrays; the rules that make a layout illegal; and the search for the best.

The search evaluates all legal layouts as arrays, one recompute mode at a time.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headway.core.errors import BadValue, IllegalLayout
from headway.core.progress import expect, tick
from headway.core.quantity import known, user_input
from headway.core.schema import defaults
from headway.hardware.system import System
from headway.models.model import Model, MoE
from headway.models.work import works
from headway.performance.layout import ModelShape, shape
from headway.training.estimate import estimate
from headway.training.pipeline import TrainingCase
from headway.training.recipe import Failures, Recipe, TrainingLayout, TrainingReach, TrainingRun
from headway.training.work import training_work

LONG = 16_384  # tokens of a sequence from which context parallelism is searched; below it splits what one chip holds with ease
CHUNKED = ("1f1b", "interleaved")  # 1F1B with chunks of layers is the interleaved schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Sizes that a layout must divide: heads, experts, layers, chips, sequence, batch."""

    shape: ModelShape
    chips: int
    sequence: int
    sequences: int  # sequences of one step
    schedule: str


def bounds(model: Model, chips: int, sequence: int, sequences: int, schedule: str = "1f1b") -> Bounds:
    """The bounds for a model on `chips` chips with `sequences` sequences per step."""
    model_shape = shape(works(model))
    experts = tuple(int(block.ffn.experts) for block in model.blocks if isinstance(block.ffn, MoE))
    return Bounds(
        shape=ModelShape(heads=model_shape.heads, experts=min(experts, default=0), layers=model_shape.layers),
        chips=chips, sequence=sequence, sequences=sequences, schedule=schedule,
    )  # fmt: skip


def rules(layout: TrainingLayout, of: Bounds) -> Iterator[tuple[Any, str]]:
    """Every rule of legality, as (mask of layouts that break it, its message)."""
    tp, cp, pp, vpp, ep, dp = layout.tp, layout.cp, layout.pp, layout.vpp, layout.ep, layout.dp
    for heads in of.shape.heads:
        yield heads % tp != 0, f"tp does not divide {heads} attention heads"
    yield tp * cp * pp * dp > of.chips, f"tp x cp x pp x dp is more than the {of.chips} chips"
    yield of.sequence % cp != 0, f"cp does not divide a sequence of {of.sequence} tokens"
    yield pp * vpp > of.shape.layers, f"pp x vpp is more than the {of.shape.layers} layers"
    yield (vpp > 1) & (pp == 1), "vpp needs more than one pipeline stage"
    yield of.sequences % (dp * layout.micro_batch) != 0, f"dp x micro_batch does not divide the {of.sequences} sequences of a step"
    uneven = of.sequences // (dp * layout.micro_batch) % pp != 0
    yield (vpp > 1) & (of.schedule not in CHUNKED), f"vpp is of the interleaved schedule, not of {of.schedule}"
    yield (vpp > 1) & uneven, "the interleaved schedule wants micro-batches in multiples of pp"
    if of.schedule == "dualpipe":
        yield (pp > 1) & (pp % 2 == 1), "DualPipe wants an even number of stages"
        yield (pp > 1) & (of.sequences // (dp * layout.micro_batch) % 2 == 1), "DualPipe wants an even number of micro-batches"
    if of.schedule == "zb-v":
        yield 2 * pp > of.shape.layers, f"zb-v puts two chunks of the {of.shape.layers} layers on each stage"
    yield (ep > 1) & (of.shape.experts == 0), "ep needs routed experts, and the model has none"
    yield (of.shape.experts > 0) & (of.shape.experts % ep != 0), f"ep does not divide the {of.shape.experts} routed experts"
    yield (of.shape.experts > 0) & ((tp * cp * dp) % ep != 0), "ep does not divide tp x cp x dp"
    yield (ep % tp != 0) & (tp % ep != 0), "ep and tp: one does not divide the other"


def legal(layout: TrainingLayout, of: Bounds) -> Any:
    """Mask of the layouts that keep every rule."""
    is_legal = np.ones(np.shape(layout.tp), bool)
    for broken, _ in rules(layout, of):
        is_legal &= ~np.asarray(broken)
    return is_legal


def why_illegal(layout: TrainingLayout, of: Bounds) -> str:
    """Messages of the rules that one layout breaks, or ""."""
    return ", and ".join(reason for broken, reason in rules(layout, of) if bool(broken))


NAMES = tuple(field.name for field in fields(TrainingLayout))
MOST_TP, MOST_CHUNKS = 64, 20
MOST_LAYOUTS = 2_000_000  # limit of one search
MICRO_BATCHES = (1, 2, 3, 4, 5, 6, 8, 16)
ZERO = (1, 2, 3)  # stage 0 needs more memory and sends more than stage 1
FEWEST_TOKENS = 1024  # of a sequence on a chip; smaller matmuls are slower than these laws assume
FULLER = 1.25  # largest ratio of the fullest stage's layers to the fewest possible at which more chunks are tried


def candidates(of: Bounds, domain: int, pinned: Mapping[str, Sequence[int]]) -> TrainingLayout:
    """Every legal layout with the `pinned` values, each field an array over layouts."""
    combinations = list(itertools.islice(_rows(of, domain, pinned), MOST_LAYOUTS + 1))
    if len(combinations) > MOST_LAYOUTS:
        raise BadValue("layout", f"more than {MOST_LAYOUTS:,} combinations of lists", "shorter lists")
    columns = np.array(combinations, dtype=np.int64).reshape(-1, len(NAMES))
    layouts = TrainingLayout(**{name: columns[:, index] for index, name in enumerate(NAMES)})
    return rows(layouts, np.flatnonzero(legal(layouts, of)))


def rows(layout: TrainingLayout, keep: Any) -> TrainingLayout:
    """The layouts at the indices `keep`."""
    return TrainingLayout(**{name: getattr(layout, name)[keep] for name in NAMES})


def layout_at(layout: TrainingLayout, index: int, pinned: Mapping[str, Sequence[int]]) -> TrainingLayout:
    """The layout at `index`, each number with its origin: pinned by the user or chosen by the search."""

    def number(name: str) -> Any:
        value = int(getattr(layout, name)[index])
        if len(pinned.get(name, ())) == 1:
            return user_input(value, name)
        return known(value, name, "", "derived", "the layout that the search chose")

    return TrainingLayout(**{name: number(name) for name in NAMES})


def absent_values(layouts: TrainingLayout, pinned: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """A note for each flag with listed values that no legal layout has."""
    lost = {name: sorted(set(values) - set(getattr(layouts, name).tolist())) for name, values in pinned.items() if len(values) > 1}
    return tuple(f"{name}: no legal layout has {', '.join(map(str, values))}" for name, values in lost.items() if values)


def _rows(of: Bounds, domain: int, pinned: Mapping[str, Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Degrees of parallelism that divide their dimension; data parallelism uses the remaining chips, as far as the batch divides."""
    for tp, cp, pp in _model_degrees(of, domain, pinned):
        most, chunks = of.chips // (tp * cp * pp), _chunks(of, pp, pinned)
        for micro in (n for n in pinned.get("micro_batch", MICRO_BATCHES) if of.sequences % n == 0):
            ranks = [n for n in pinned["dp"] if n <= most] if "dp" in pinned else _ranks(of.sequences, micro, most)
            for dp in (n for n in ranks if of.sequences % (n * micro) == 0):
                for ep in _experts(of, tp, tp * cp * dp, pinned):
                    stages = pinned.get("zero") or _zero(cp * dp, pp)
                    yield from ((tp, cp, pp, vpp, ep, dp, micro, zero) for vpp in chunks for zero in stages)


def _zero(data_degree: int, pp: int) -> Sequence[int]:
    """ZeRO stages worth trying; in a pipeline, which keeps whole gradients and what it gathered, stages above 1 spare nothing."""
    return ZERO if data_degree > 1 and pp == 1 else [stage for stage in ZERO if stage < 2 and (data_degree > 1 or stage == 1)]


def _model_degrees(of: Bounds, domain: int, pinned: Mapping[str, Sequence[int]]) -> Iterator[tuple[int, int, int]]:
    heads = math.gcd(*of.shape.heads) if of.shape.heads else MOST_TP
    contexts = pinned.get("cp") or [n for n in divisors(of.sequence) if n == 1 or of.sequence // n >= FEWEST_TOKENS]
    for tp in pinned.get("tp") or [n for n in divisors(heads) if n <= min(domain, MOST_TP)]:
        for cp in (n for n in contexts if tp * n <= of.chips and of.sequence % n == 0):
            chips_left = of.chips // (tp * cp)
            yield from ((tp, cp, pp) for pp in pinned.get("pp") or _stages(of, chips_left) if pp <= min(chips_left, of.shape.layers))


def _stages(of: Bounds, chips: int) -> list[int]:
    """Pipeline degrees to try: divisors of the remaining chips, and the fewest stages for each number of layers per stage."""
    layers = of.shape.layers
    return sorted({-(-layers // per_stage) for per_stage in range(1, layers + 1)} | set(divisors(chips)))


def _chunks(of: Bounds, pp: int, pinned: Mapping[str, Sequence[int]]) -> Sequence[int]:
    """Numbers of chunks per stage that leave no stage much fuller than the others."""
    if "vpp" in pinned:
        return [n for n in pinned["vpp"] if n * pp <= of.shape.layers]
    if pp == 1 or of.schedule not in CHUNKED:
        return (1,)
    layers = of.shape.layers
    full = FULLER * -(-layers // pp)
    return [n for n in range(1, min(layers // pp, MOST_CHUNKS) + 1) if n * -(-layers // (pp * n)) <= full]


def _experts(of: Bounds, tp: int, chips: int, pinned: Mapping[str, Sequence[int]]) -> Sequence[int]:
    if "ep" in pinned:
        return [n for n in pinned["ep"] if chips % n == 0]
    if not of.shape.experts:
        return (1,)
    return [n for n in divisors(math.gcd(of.shape.experts, chips)) if n % tp == 0 or tp % n == 0]


def _ranks(sequences: int, micro: int, most: int) -> list[int]:
    """Data-parallel ranks that divide a step's micro-batches, from the most that fit down to half of it."""
    ranks = [n for n in divisors(sequences // micro) if n <= most]
    return [n for n in ranks if 2 * n > most] or ranks[-1:]


@functools.cache
def divisors(number: int) -> tuple[int, ...]:
    """Every divisor, smallest first.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [n for n in range(1, math.isqrt(max(number, 1)) + 1) if number % n == 0]
    return tuple(dict.fromkeys([*small, *(number // n for n in reversed(small))]))


def pinned_one(values: Mapping[str, int], of: Bounds, domain: int) -> TrainingLayout:
    """A fully specified layout; IllegalLayout names the nearest legal layout."""
    layout = defaults(TrainingLayout, dict(values))
    why = why_illegal(layout, of)
    if why:
        raise IllegalLayout(" ".join(f"{name}={value}" for name, value in values.items()), f"{why}; {nearest(values, of, domain)}")
    return layout


def none_legal(pinned: Mapping[str, Sequence[int]], of: Bounds, domain: int) -> IllegalLayout:
    """The error when no layout with these values is legal: why the first is illegal, and the nearest legal layout."""
    first = {name: values[0] for name, values in pinned.items()}
    text = " ".join(f"{name}={','.join(map(str, values))}" for name, values in pinned.items()) or "any"
    why = why_illegal(defaults(TrainingLayout, first), of) or f"nothing divides {of.chips} chips and {of.sequences} sequences of a step"
    return IllegalLayout(text, f"{why}; {nearest(first, of, domain)}")


def nearest(values: Mapping[str, int], of: Bounds, domain: int) -> str:
    """The legal layout nearest to an illegal layout, in words."""
    layouts = candidates(of, domain, {})
    if not len(layouts.tp):
        return f"no layout of this model is legal with {of.sequences} sequences of {of.sequence} tokens on {of.chips} chips"
    far = sum(np.abs(np.log(getattr(layouts, name) / max(value, 1e-9))) for name, value in values.items() if name != "zero")
    best, keys = int(np.argmin(far)), tuple(name for name in dict.fromkeys(("tp", "pp", "dp", *values)) if name != "zero")
    return "nearest legal: " + " ".join(f"{name}={int(getattr(layouts, name)[best])}" for name in keys)


# -- the search ----------------------------------------------------------------------------------------------------------------

AT_ONCE = 20_000  # layouts evaluated together; larger arrays leave the CPU cache
PLAIN_MARGIN = 0.02  # a layout that much slower is preferred if it is plainer: far less than these laws can tell apart
TABLE_ROWS = 8  # best layouts kept in all, and per recompute mode


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """One run to plan: model, system, recipe, pinned layout values and objective."""

    model: Model
    system: System
    run: TrainingRun
    recipe: Recipe
    modes: tuple[str, ...]  # recompute modes to search
    pinned: Mapping[str, tuple[int, ...]]
    failures: Failures
    efficiency: TrainingReach
    price_metric: str
    objective: str = "step"
    deadline: Any = None  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutEstimate:
    """One layout, its case, and its step time (s) and memory (bytes)."""

    case: TrainingCase
    layout: TrainingLayout
    step: float
    fits: bool
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingAnswer:
    """The best layouts, best first, and how many were evaluated."""

    layouts: tuple[LayoutEstimate, ...]
    layout_count: int
    fitting: int
    notes: tuple[str, ...] = ()
    infeasible_reason: str = ""  # why no size of the machine meets the request; "" when one does


def search(request: TrainingRequest, case: TrainingCase, usual: Mapping[str, Sequence[int]] | None = None) -> TrainingAnswer:
    """The fitting layouts of smallest step time, the plainest of the fastest first; if none fits, the layouts that need least memory.

    `usual` are values that the search keeps to by itself, beside those that the user pinned.
    """
    pinned = request.pinned
    layouts = candidates(bounds_of(request.model, case), int(case.system.scale_up_domain), {**(usual or {}), **pinned})
    results: list[LayoutEstimate] = []
    layout_count = fitting = 0
    chunked = layouts.vpp > 1  # layouts with chunks use the interleaved schedule
    schedules = ((case.recipe.schedule, np.flatnonzero(~chunked)), ("interleaved", np.flatnonzero(chunked)))
    for mode, (schedule, places) in itertools.product(request.modes, schedules):
        if not len(places):
            continue
        variant, part = with_recipe(case, request.model, replace(case.recipe, recompute=mode, schedule=schedule)), rows(layouts, places)
        steps, fits, memory_bytes = _evaluate(variant, part)
        layout_count, fitting = layout_count + len(steps), fitting + int(fits.sum())
        order = np.lexsort((steps, ~fits)) if fits.any() else np.lexsort((steps, memory_bytes))
        results += [
            LayoutEstimate(
                case=variant, layout=layout_at(part, int(i), pinned), step=float(steps[i]), fits=bool(fits[i]), bytes=float(memory_bytes[i])
            )
            for i in order[:TABLE_ROWS]
        ]
    results.sort(key=_sort_key)
    return TrainingAnswer(
        layouts=_plainest_first(_various(results)), layout_count=layout_count, fitting=fitting, notes=absent_values(layouts, pinned)
    )


def _various(results: list[LayoutEstimate]) -> tuple[LayoutEstimate, ...]:
    """At most TABLE_ROWS estimates, the best recompute mode of each layout before its other modes, sorted by step time."""
    degree_sets: set[tuple[int, ...]] = set()
    firsts, repeats = [], []
    for result in results:
        degrees = tuple(int(getattr(result.layout, name)) for name in NAMES)
        (repeats if degrees in degree_sets else firsts).append(result)
        degree_sets.add(degrees)
    shortlist = firsts[:TABLE_ROWS] + repeats[: max(0, TABLE_ROWS - len(firsts))]
    return tuple(sorted(shortlist, key=_sort_key))


def _plainest_first(results: tuple[LayoutEstimate, ...]) -> tuple[LayoutEstimate, ...]:
    """The plainest layout within PLAIN_MARGIN of the fastest first, then the others by step time."""
    if not results or not results[0].fits:
        return results
    near = [result for result in results if result.fits and result.step <= results[0].step * (1 + PLAIN_MARGIN)]
    plainest = min(near, key=lambda result: (*_oddities(result.layout), result.step))
    return plainest, *(result for result in results if result is not plainest)


def _oddities(layout: TrainingLayout) -> tuple[int, ...]:
    """What people avoid in a layout, the strongest first: context parallelism, degrees that are no powers of two, higher ZeRO stages."""
    degrees = [int(value) for value in (layout.tp, layout.cp, layout.pp, layout.dp)]
    return int(degrees[1] > 1), sum(degree & (degree - 1) != 0 for degree in degrees), int(layout.zero)


ODDITIES = ("context parallelism", "degrees that are no powers of two", "a higher ZeRO stage")


def less_plain(result: LayoutEstimate, best: LayoutEstimate) -> str:
    """Why a layout stands behind the best although it is faster; "" if it is not faster."""
    if not result.fits or not best.fits or result.step >= best.step:
        return ""
    counts = zip(ODDITIES, _oddities(result.layout), _oddities(best.layout), strict=True)
    odd = next((name for name, more, less in counts if more > less), "")
    return f"{best.step / result.step - 1:.1%} faster, less plain: {odd}"


def _sort_key(result: LayoutEstimate) -> tuple[bool, float, float]:
    return not result.fits, result.step if result.fits else result.bytes, result.step


def bounds_of(model: Model, case: TrainingCase) -> Bounds:
    """Sizes that a layout of this case must divide."""
    sequence = int(case.work.sequence)
    return bounds(model, int(case.system.chips), sequence, int(case.batch) // sequence, case.recipe.schedule)


def with_recipe(case: TrainingCase, model: Model, recipe: Recipe) -> TrainingCase:
    """The case with another recipe, its work computed anew."""
    return replace(case, recipe=recipe, work=training_work(model, recipe, case.work.sequence))


def _evaluate(case: TrainingCase, layouts: TrainingLayout) -> tuple[Any, Any, Any]:
    """Step time (s), whether it fits, and memory (bytes) of each layout."""
    parts, case = [], replace(case, recipe=replace(case.recipe, mfu=None))  # layouts are ranked by the laws, whatever MFU is stated
    expect(len(layouts.tp))
    for start in range(0, len(layouts.tp), AT_ONCE):
        chunk = rows(layouts, slice(start, start + AT_ONCE))
        numbers = estimate(case, chunk)
        shape = np.shape(chunk.tp)
        parts.append(tuple(np.broadcast_to(value, shape) for value in (numbers.time.step, numbers.fits, numbers.memory.total)))
        tick(len(chunk.tp))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]
