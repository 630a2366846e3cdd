"""What would help a training run: each change is a flag, and the run is searched again as the command with that flag would be.

The large changes (formats, schedules, memory, the batch) come beside 1 % of each fact of the machine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from headway.core import units
from headway.core.errors import HeadwayError
from headway.core.quantity import user_input
from headway.hardware.chip import PEAK_OF
from headway.hardware.edit import edit, editable
from headway.hardware.system import of_count
from headway.training.estimate import estimate
from headway.training.pipeline import TrainingCase, machine
from headway.training.recipe import ARITHMETIC, RECOMPUTE, optimizer
from headway.training.run import Outlook, best, totals
from headway.training.search import FEWEST_TOKENS, LONG, LayoutEstimate, TrainingAnswer, TrainingRequest, search
from headway.training.sizing import enough, is_free, is_in_time, is_sized, planned
from headway.training.work import is_routed

MOST_HELPS, MOST_LEVERS = 5, 3
MOST_SIZED = 2  # changes that are searched over every count of chips, the best of those on the count of the answer
LEAST_GAIN = 1e-3  # share from which a change is told
DIGITS = 6  # of a value as it is printed, typed and searched with
SAVED = 0.02  # share of a step that another schedule, or one graph, must be able to save to be tried
LEANER = "adam-8bit"
FARTHEST = 10_000  # most sequences between a batch and a suggested batch
MOST_TIMES = 1024  # largest multiple of the machine that is tried
# Facts of a machine that a lever raises, each with its words.
FACTS = {
    "chip.peak": "FLOP/s", "chip.hbm_bw": "HBM bandwidth", "chip.hbm": "HBM capacity",
    "system.scale_up_bw": "bandwidth of the scale-up links", "system.scale_out_bw": "bandwidth of the network between scale-up domains",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingChange:
    """A change in words, the flags that make it, and the question with it."""

    words: str
    flags: str
    request: TrainingRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingHelp:
    """A change with its best layout and totals, the share by which the aim is better, and whether only with it every limit is kept."""

    change: TrainingChange
    best: LayoutEstimate
    run: Outlook
    gain: float
    aim: str  # what is better by that share: step, chips or cost
    saves: bool = False


# -- what would help ------------------------------------------------------------------------------------------------------------


def helps(request: TrainingRequest, trained: TrainingAnswer) -> list[TrainingHelp]:
    """The changes that make the aim better, those that keep a missed limit first, then the greatest gain."""
    first = trained.layouts[0]
    if not first.fits:
        return []
    what, before = aim(request, trained), totals(request, first)[1]
    changes = [*_more_chips(request, trained), *_promising(request, first, list(_changes(request, first)))]
    useful = []
    for change in changes:
        try:
            answer = planned(change.request)
        except HeadwayError:  # of what cannot be searched so
            continue
        after, run = answer.layouts[0], totals(change.request, answer.layouts[0])[1]
        gain = measure(what, first, before) / measure(what, after, run) - 1
        if after.fits and gain >= LEAST_GAIN:
            saves = bool(trained.infeasible_reason) and not answer.infeasible_reason
            useful.append(TrainingHelp(change=change, best=after, run=run, gain=gain, aim=what, saves=saves))
    return sorted(useful, key=lambda useful_change: (not useful_change.saves, -useful_change.gain))[:MOST_HELPS]


def aim(request: TrainingRequest, trained: TrainingAnswer) -> str:
    """What a question makes least: step, chips or cost; where a limit is missed, the time or the money that misses it."""
    if not trained.infeasible_reason:
        return request.objective
    run = totals(request, trained.layouts[0])[1]
    return "cost" if is_in_time(request, run) else "step"


def measure(what: str, layout: LayoutEstimate, run: Outlook) -> float:
    """The value of an aim at a layout: seconds of a trained token, chips, or USD."""
    if what == "chips":
        return float(layout.case.system.chips)
    return float(run.usd) if what == "cost" else layout.step / float(layout.case.batch) / float(run.goodput)


def _more_chips(request: TrainingRequest, trained: TrainingAnswer) -> Iterator[TrainingChange]:
    """The fewest chips that keep the limits which a machine of a stated count misses."""
    size = enough(request) if trained.infeasible_reason and not is_free(request.system) else None
    if size is not None:
        larger = size.request.system
        change = replace(request, system=larger)
        yield TrainingChange(words=f"{int(larger.chips):,} chips", flags=f"--on {larger.name}", request=change)


def _promising(request: TrainingRequest, first: LayoutEstimate, changes: list[TrainingChange]) -> list[TrainingChange]:
    """All changes; of a question whose count of chips is open those that are fastest on the count of the answer."""
    if not is_sized(request):
        return changes
    speeds = []
    for change in changes:
        try:
            fastest = best(replace(change.request, system=first.case.system, objective="step", deadline=None, budget=None)).layouts[0]
        except HeadwayError:
            continue
        speeds.append((fastest.step / float(fastest.case.batch) if fastest.fits else math.inf, change))
    speeds.sort(key=lambda pair: pair[0])
    return [change for time, change in speeds[:MOST_SIZED] if time < first.step / float(first.case.batch)]


def _changes(request: TrainingRequest, first: LayoutEstimate) -> Iterator[TrainingChange]:
    """Changes to try: of the recipe and the batch; and of a machine of a known count 1 % of each of its facts."""
    recipe, case, layout, chip = request.recipe, first.case, first.layout, request.system.chip
    took = estimate(case, layout).time

    def of_recipe(words: str, **values: object) -> TrainingChange:
        flags = " ".join(f"--{name} {value}" for name, value in values.items())
        return TrainingChange(words=words, flags=flags, request=replace(request, recipe=replace(recipe, **values)))

    narrow = "fp8" if chip.peak("nvfp4") is None else "mxfp8"
    if recipe.dtype in ("bf16", "fp16") and recipe.matmul_rate is None and chip.peak("fp8") is not None:
        yield of_recipe(f"matmuls in {narrow.upper()}", dtype=narrow)
    if request.modes == RECOMPUTE:
        change = replace(request, modes=("ffn",))
        yield TrainingChange(words="FFNs computed again", flags="--recompute ffn", request=change)
    if "cp" not in request.pinned and 2 * FEWEST_TOKENS <= int(request.run.seq) < LONG:
        degrees = tuple(1 << power for power in range((int(request.run.seq) // FEWEST_TOKENS).bit_length()))
        change = replace(request, pinned={**request.pinned, "cp": degrees})
        yield TrainingChange(words="context parallelism", flags=f"--cp {','.join(map(str, degrees))}", request=change)
    if recipe.schedule == "1f1b" and "vpp" not in request.pinned and took.bubble > SAVED * took.step:
        for name in ("zb-h1", "zb-v", *(("dualpipe",) if is_routed(case.work) else ())):
            yield of_recipe(f"the schedule {name}", schedule=name)
    if recipe.captured is None and not int(case.recipe.captured) and took.launch > SAVED * took.step:
        yield of_recipe("each step one graph", captured=1)
    if recipe.optimizer == "adam":
        yield of_recipe("states of the optimiser in 8 bits", optimizer=LEANER)
    yield from _batch(request, first)
    if not is_sized(request):
        yield from _levers(request, first)


def _batch(request: TrainingRequest, first: LayoutEstimate) -> Iterator[TrainingChange]:
    """A batch near to that of the question that divides over more chips, where some are idle."""
    sequence, chips = int(first.case.work.sequence), int(first.case.system.chips)
    sequences = int(first.case.batch) // sequence
    near = even(sequences, chips)
    if idle(first) and near != sequences:
        batch = user_input(near * sequence, "global_batch", "token")
        change = replace(request, run=replace(request.run, global_batch=batch))
        yield TrainingChange(words=f"{near:,} sequences a step for {sequences:,}", flags=f"--global-batch {int(batch)}", request=change)


def _levers(request: TrainingRequest, first: LayoutEstimate) -> Iterator[TrainingChange]:
    """1 % more of the facts of the machine of which the layout gains most, and of the memory, which may admit another."""
    gains: list[tuple[float, TrainingChange]] = []
    for name, words in FACTS.items():
        keys = [name]
        if name == "chip.peak":
            dtype = ARITHMETIC.get(request.recipe.dtype, request.recipe.dtype)
            keys = [f"chip.{key}" for key in sorted({PEAK_OF[dtype], "peak_bf16"})]
        texts, system = [], request.system
        for key in keys:
            part, _, fact = key.partition(".")
            value = getattr(system.chip if part == "chip" else system, fact)
            value = getattr(system.chip, fact) if value is None else value
            if value is not None:
                text = units.show(float(value) * 1.01, editable()[key].unit, DIGITS).replace(" ", "")
                system = edit(system, key, text)
                texts.append(f"--set {key}={text}")
        if texts:
            change = TrainingChange(words=f"1 % more {words}", flags=" ".join(texts), request=replace(request, system=system))
            case = replace(first.case, system=system, machine=machine(system, request.recipe.dtype))
            step = first.step if name == "chip.hbm" else float(estimate(case, first.layout).time.step)
            gains.append((first.step / step - 1, change))
    gains.sort(key=lambda pair: -pair[0])
    yield from (change for gain, change in gains[:MOST_LEVERS] if gain >= LEAST_GAIN)
    yield from (change for gain, change in gains[MOST_LEVERS:] if change.words.endswith(FACTS["chip.hbm"]))


# -- notes ----------------------------------------------------------------------------------------------------------------------


def advice(request: TrainingRequest, first: LayoutEstimate) -> Iterator[str]:
    """Notes on idle chips, or on what fits where nothing does."""
    if not first.fits:
        yield from _fitting(request, first.case)
    elif idle(first):
        yield f"{idle(first):,} of {int(first.case.system.chips):,} chips are idle, and paid for: the batch or the heads divide badly"


def idle(first: LayoutEstimate) -> int:
    """Chips that a layout leaves idle."""
    layout = first.layout
    return int(first.case.system.chips) - int(layout.tp) * int(layout.cp) * int(layout.pp) * int(layout.dp)


def even(sequences: int, chips: int) -> int:
    """The number of sequences within a quarter of `sequences` that has the largest common divisor with `chips`.

    >>> even(2000, 16384)
    2048
    """
    most = min(sequences // 4, FARTHEST)
    return max(range(max(1, sequences - most), sequences + most + 1), key=lambda n: (math.gcd(n, chips), -abs(n - sequences)))


def _fitting(request: TrainingRequest, case: TrainingCase) -> Iterator[str]:
    """Notes when nothing fits: an optimiser with fewer states, and the smallest machine (by doublings) on which a layout fits."""
    leaner, system = replace(case, optimizer=optimizer(LEANER)), case.system
    if case.optimizer.states > leaner.optimizer.states and _fits(request, leaner):
        yield f"with --optimizer {LEANER} it fits"
    if system.shape:
        return  # a torus has a shape, which doubling its chips would not keep
    for power in itertools.count(1):
        if 1 << power > MOST_TIMES:
            yield f"nor does anything fit on {units.show(float(system.chips) * MOST_TIMES, '')} of these chips"
            return
        larger = of_count(system, int(system.chips) << power)
        if _fits(request, replace(case, system=larger, machine=machine(larger, case.recipe.dtype))):
            yield f"on {int(larger.chips):,} of these chips it fits (--on {larger.name})"
            return


def _fits(request: TrainingRequest, case: TrainingCase) -> bool:
    """Whether any layout of another case fits."""
    try:
        return bool(search(request, case).fitting)
    except HeadwayError:
        return False
