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
    return _candidates(of, domain, tuple((name, tuple(values)) for name, values in pinned.items()))


@functools.lru_cache(maxsize=32)
def _candidates(of: Bounds, domain: int, pinned: tuple[tuple[str, tuple[int, ...]], ...]) -> TrainingLayout:
    """The same, kept: what would help is searched over the same layouts."""
    combinations = list(itertools.islice(_rows(of, domain, dict(pinned)), MOST_LAYOUTS + 1))
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
        text = " ".join(f"{name}={value}" for name, value in values.items())
        raise IllegalLayout(text, f"{why}; {nearest(values, of, domain)}{nearest_batch(layout, of)}")
    return layout


def none_legal(pinned: Mapping[str, Sequence[int]], of: Bounds, domain: int) -> IllegalLayout:
    """The error when no layout with these values is legal: why the first is illegal, the nearest legal layout, and the nearest batch."""
    first = {name: values[0] for name, values in pinned.items()}
    text = " ".join(f"{name}={','.join(map(str, values))}" for name, values in pinned.items()) or "any"
    layout = defaults(TrainingLayout, first)
    why = why_illegal(layout, of) or f"nothing divides {of.chips} chips and {of.sequences} sequences of a step"
    return IllegalLayout(text, f"{why}; {nearest(first, of, domain)}{nearest_batch(layout, of)}")


def nearest_batch(layout: TrainingLayout, of: Bounds) -> str:
    """The batch nearest to that of the question with which a layout is legal, in words; "" where none makes it so.

    >>> from headway.models.config import model
    >>> nearest_batch(TrainingLayout(tp=8, pp=4, dp=6), bounds(model("llama-3.1-70b"), 192, 4096, 1024))
    ', or these with --global-batch 4202496'
    """
    once = int(layout.dp) * int(layout.micro_batch) * (int(layout.pp) if int(layout.vpp) > 1 else 1)
    once *= 2 if of.schedule == "dualpipe" and int(layout.pp) > 1 else 1
    batch = max(1, round(of.sequences / once)) * once
    is_legal = batch != of.sequences and not why_illegal(layout, replace(of, sequences=batch))
    return f", or these with --global-batch {batch * of.sequence}" if is_legal else ""


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
ALIKE = 0.02  # share of a step within which these laws cannot tell two layouts apart
SAME = 1e-9  # share within which two steps are one number
TABLE_ROWS = 8  # best layouts kept
SLOWER = 1.5  # times the best, up to which a slower layout of equal degrees is a row
MOST_WALKED = 400  # layouts, best first, among which those rows are looked for
ROW_OF = ("tp", "cp", "pp", "ep", "dp")  # what makes two layouts two rows; the others are the best of each


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """One run to plan: model, system, recipe, pinned layout values, objective and limits."""

    model: Model
    system: System
    run: TrainingRun
    recipe: Recipe
    modes: tuple[str, ...]  # recompute modes to search
    pinned: Mapping[str, tuple[int, ...]]
    failures: Failures
    efficiency: TrainingReach
    price_metric: str
    row_names: tuple[str, ...] = ()  # names of which the user listed values, so that each value is a row
    objective: str = "step"
    deadline: Any = None  # seconds
    budget: Any = None  # USD
    confidence: float = 0.5  # chance with which both are to be kept


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
    ladder: tuple[LayoutEstimate, ...] = ()  # the best layouts on fewer and on more chips
    twins: tuple[LayoutEstimate, ...] = ()  # of the best's degrees, and as fast by these laws


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """Layouts in every recompute mode and schedule, each by its place among those of its variant, with its numbers."""

    variants: tuple[tuple[TrainingCase, TrainingLayout], ...]
    variant: Any
    place: Any
    step: Any
    fits: Any
    bytes: Any

    def best_first(self, most: int) -> list[int]:
        """Indices of what fits by step time, then of the others by memory."""
        unfit = least(self.bytes, np.flatnonzero(~self.fits), most)
        return [*least(self.step, np.flatnonzero(self.fits), most), *unfit][:most]

    def degrees(self, index: int, row_names: Sequence[str]) -> tuple[Any, ...]:
        """What makes a layout a row of its own."""
        case, layouts = self.variants[self.variant[index]]
        names = (*ROW_OF, *(name for name in row_names if name in NAMES and name not in ROW_OF))
        numbers = tuple(int(getattr(layouts, name)[self.place[index]]) for name in names)
        return (*numbers, case.recipe.recompute) if "recompute" in row_names else numbers

    def estimate_at(self, index: int, pinned: Mapping[str, Sequence[int]]) -> LayoutEstimate:
        """The layout at an index, its numbers with their origin."""
        case, layouts = self.variants[self.variant[index]]
        layout = layout_at(layouts, int(self.place[index]), pinned)
        step, fits, memory_bytes = float(self.step[index]), bool(self.fits[index]), float(self.bytes[index])
        return LayoutEstimate(case=case, layout=layout, step=step, fits=fits, bytes=memory_bytes)


def search(request: TrainingRequest, case: TrainingCase, usual: Mapping[str, Sequence[int]] | None = None) -> TrainingAnswer:
    """The fitting layouts of smallest step time, a row for each set of degrees; if none fits, the layouts that need least memory.

    `usual` are values that the search keeps to by itself, beside those that the user pinned.
    """
    pinned = request.pinned
    layouts = candidates(bounds_of(request.model, case), int(case.system.scale_up_domain), {**(usual or {}), **pinned})
    notes = absent_values(layouts, pinned)
    chunked = layouts.vpp > 1  # layouts with chunks use the interleaved schedule
    schedules = ((case.recipe.schedule, np.flatnonzero(~chunked)), ("interleaved", np.flatnonzero(chunked)))
    variants: list[tuple[TrainingCase, TrainingLayout]] = []
    columns: list[tuple[Any, ...]] = []
    for mode, (schedule, places) in itertools.product(request.modes, schedules):
        if not len(places):
            continue
        variant, part = with_recipe(case, request.model, replace(case.recipe, recompute=mode, schedule=schedule)), rows(layouts, places)
        columns.append((np.full(len(places), len(variants)), np.arange(len(places)), *_evaluate(variant, part)))
        variants.append((variant, part))
    if not variants:
        return TrainingAnswer(layouts=(), layout_count=0, fitting=0, notes=notes)
    number, place, steps, fits, memory_bytes = (np.concatenate(column) for column in zip(*columns, strict=True))
    evaluated = Evaluated(variants=tuple(variants), variant=number, place=place, step=steps, fits=fits, bytes=memory_bytes)
    shortlist, twins = _shortlist(evaluated, request)
    return TrainingAnswer(
        layouts=shortlist, twins=twins, layout_count=len(steps), fitting=int(fits.sum()), notes=notes
    )


def _shortlist(evaluated: Evaluated, request: TrainingRequest) -> tuple[tuple[LayoutEstimate, ...], tuple[LayoutEstimate, ...]]:
    """The rows of the table, best first, and the twins of the best: of equal degrees, and as fast by these laws.

    A set of degrees has one row, its best; slower ones of it are rows only where the table is not full without them.
    """
    value = np.where(evaluated.fits, evaluated.step, evaluated.bytes)
    walked = evaluated.best_first(MOST_WALKED)
    equals = _equals(value, walked)
    walked[:equals] = _plainest_first(evaluated, walked[:equals])
    best = walked[0]
    groups: dict[tuple[Any, ...], list[int]] = {}
    twins: list[int] = []
    for index in walked:
        group = groups.setdefault(evaluated.degrees(index, request.row_names), [])
        if all(value[index] > value[row] * (1 + ALIKE) or evaluated.fits[index] != evaluated.fits[row] for row in group):
            group.append(index)
        elif group[0] == best and value[index] <= value[best] * (1 + ALIKE):
            twins.append(index)
    firsts = [group[0] for group in groups.values()][:TABLE_ROWS]
    slower = sorted((index for group in groups.values() for index in group[1:]), key=walked.index)
    slower = [index for index in slower if value[index] <= SLOWER * value[best]]
    after = sorted([*firsts[1:], *slower[: TABLE_ROWS - len(firsts)]], key=walked.index)
    return tuple(evaluated.estimate_at(index, request.pinned) for index in (best, *after)), tuple(
        evaluated.estimate_at(index, request.pinned) for index in twins[:TABLE_ROWS]
    )


def least(value: Any, indices: Any, most: int) -> list[int]:
    """At most so many of the indices, by their values.

    >>> least(np.array([3.0, 1.0, 2.0, 1.0]), np.array([0, 1, 2, 3]), 3)
    [1, 3, 2]
    """
    if len(indices) > most:
        indices = np.sort(indices[np.argpartition(value[indices], most)[:most]])
    return indices[np.argsort(value[indices], kind="stable")].tolist()


def _equals(value: Any, walked: Sequence[int]) -> int:
    """How many layouts at the front have one and the same value."""
    return sum(1 for _ in itertools.takewhile(lambda index: value[index] <= value[walked[0]] * (1 + SAME), walked))


def _plainest_first(evaluated: Evaluated, equals: Sequence[int]) -> list[int]:
    """Layouts of one value, the plainest and then the smallest of memory first."""

    def order(index: int) -> tuple[Any, ...]:
        layouts, place = evaluated.variants[evaluated.variant[index]][1], evaluated.place[index]
        numbers = TrainingLayout(**{name: int(getattr(layouts, name)[place]) for name in NAMES})
        return not evaluated.fits[index], *_oddities(numbers), evaluated.bytes[index]

    return sorted(equals, key=order)


def _oddities(layout: TrainingLayout) -> tuple[int, ...]:
    """What people avoid in a layout, the strongest first: context parallelism, degrees that are no powers of two, higher ZeRO stages."""
    degrees = [int(value) for value in (layout.tp, layout.cp, layout.pp, layout.dp)]
    return int(degrees[1] > 1), sum(degree & (degree - 1) != 0 for degree in degrees), int(layout.zero)


PLAINER = ("no context parallelism", "degrees that are powers of two", "a lower ZeRO stage")


def plainer(result: LayoutEstimate, best: LayoutEstimate) -> str:
    """Why a layout may be preferred to a best that these laws cannot tell from it; "" where it is slower or no plainer."""
    if not result.fits or not best.fits or result.step > best.step * (1 + ALIKE) or _oddities(result.layout) >= _oddities(best.layout):
        return ""
    counts = zip(PLAINER, _oddities(result.layout), _oddities(best.layout), strict=True)
    return f"plainer: {next(name for name, less, more in counts if less < more)}"


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
