"""A training run: its case, the best layouts on a machine or on the size that it needs, advice, and wall time, cost and energy.

Advice is a batch that uses idle chips, a machine or an optimiser with which it fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.core.errors import BadValue, HeadwayError, IllegalLayout
from headway.core.quantity import known
from headway.core.units import show
from headway.hardware.chip import Chip, price_quote
from headway.hardware.system import System
from headway.laws.step.layer_terms import replica_chips
from headway.laws.training.run import best_interval_s, goodput_share, run_usd, wall_s
from headway.models.totals import matmul_params, total_params
from headway.performance.formats import peak
from headway.training.achieved import chip_efficiency
from headway.training.estimate import TrainingEstimate, estimate
from headway.training.own_runs import with_own_runs
from headway.training.pipeline import TrainingCase, machine
from headway.training.recipe import ARITHMETIC, REVERSIBLE, optimizer
from headway.training.search import (
    LONG,
    NAMES,
    LayoutEstimate,
    TrainingAnswer,
    TrainingRequest,
    bounds_of,
    none_legal,
    pinned_one,
    search,
)
from headway.training.work import is_routed, training_work

BOTH_WAYS = known(1, "hidden_ep of DualPipe", "", "default", "DeepSeek-V3 (arXiv:2412.19437) section 3.2.1: all-to-all fully hidden")
USUAL_BATCH = 4 * 2**20  # default tokens of a step
LAST = ("ffn", "full")  # recomputation that is tried where nothing else fits
PLACED = ("tp", "cp", "pp", "dp")  # all four pinned make a layout rather than limits of a search
FIRST_FUSED = 2020  # year of the first chips that fused attention runs on
BLOCK_SCALED, GPU_VENDORS = ("mxfp8", "nvfp4"), ("nvidia", "amd")
EIGHTHS = {"chips": (4, 5, 6, 7, 8), "cost": (4, 6, 8)}  # sizes tried, in eighths of each power-of-two part of the machine
LEANER = "adam-8bit"
FARTHEST = 10_000  # most sequences between a batch and a suggested batch
REVERSIBLE_NOTE = "reversible: a network whose layers are couplings, one forward more; RevNet's implementations took 1.5 to 2 times as long"
MOST_TIMES = 1024  # largest multiple of the machine that is tried


# -- the case -------------------------------------------------------------------------------------------------------------------


def usual_dispatcher(chip: Chip) -> str:
    """How tokens reach their experts on a chip today, where nobody says it."""
    return "hybridep" if chip.vendor == "nvidia" else "alltoall"


def case_of(request: TrainingRequest) -> TrainingCase:
    """The case that the laws take, with the requested batch or the default."""
    recipe, system, run = request.recipe, request.system, request.run
    if recipe.captured is None:  # compiled on other chips than GPUs; on GPUs in block-scaled formats, as recipes do
        is_graph = recipe.dtype in BLOCK_SCALED or system.chip.vendor not in GPU_VENDORS
        reason = "Megatron-Bridge recipes since 2026-06: whole steps in MXFP8 and NVFP4 are captured; XLA compiles every step"
        recipe = replace(recipe, captured=known(1 if is_graph else 0, "captured", "", "default", reason))
    if recipe.dispatcher is None:
        recipe = replace(recipe, dispatcher=usual_dispatcher(system.chip))
    if recipe.fused_attention is None and not fuses_attention(system.chip):
        why = f"{system.chip.name} is older than fused attention's kernels (A100 of 2020 on)"
        recipe = replace(recipe, fused_attention=known(0, "fused_attention", "", "default", why))
    if recipe.dtype not in ("bf16", "fp16") and system.chip.peak(ARITHMETIC.get(recipe.dtype, recipe.dtype)) is None:
        raise BadValue("--dtype", recipe.dtype, f"bf16: {system.chip.name} has no {recipe.dtype} peak")
    work, rates = training_work(request.model, recipe, run.seq), machine(system, recipe.dtype)
    efficiency = chip_efficiency(system.chip, recipe, request.efficiency, work)
    if recipe.matmul_rate is not None:  # the measured rate in place of the fitted share; experts keep their ratio to dense matmuls
        rate, highest = recipe.matmul_rate, rates.peak
        if float(rate) > float(highest):
            raise BadValue("--matmul-rate", show(rate, "flop/s"), f"at most the {recipe.dtype} peak of {show(highest, 'flop/s')}")
        share = rate / highest
        measured = {"eff_compute": share, "eff_expert": share * (efficiency.eff_expert / efficiency.eff_compute)}
        free = {name: value for name, value in measured.items() if getattr(request.efficiency, name) is None}
        efficiency = replace(efficiency, **free)
    if recipe.schedule == "dualpipe" and request.efficiency.hidden_ep is None:
        efficiency = replace(efficiency, hidden_ep=BOTH_WAYS)
    batch, seq = run.global_batch, int(run.seq)
    if batch is None:
        batch = known(max(1, USUAL_BATCH // seq) * seq, "global_batch", "token", "default", "4 Mi tokens, in whole sequences")
    elif int(batch) % seq:
        near = max(1, round(int(batch) / seq)) * seq
        raise BadValue("global_batch", int(batch), f"a multiple of the sequence of {seq} tokens, such as {near}")
    case = TrainingCase(
        work=work, system=system, machine=rates, recipe=recipe, optimizer=optimizer(recipe.optimizer), efficiency=efficiency, batch=batch
    )
    return with_own_runs(case, request.model.name) if recipe.mfu is None else case


def fuses_attention(chip: Chip) -> bool:
    """Whether kernels of fused attention run on a chip: A100, TPU v4 and later ones (TPU v3: jax-ml/jax issue 18595)."""
    return chip.year is None or float(chip.year) >= FIRST_FUSED


# -- totals of a run ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A run's totals; None where the run or the price is not known."""

    goodput: Any
    run: Any = None  # seconds of wall time; run_low and run_high at the ends of the step's 90 % interval
    run_low: Any = None
    run_high: Any = None
    usd: Any = None
    usd_low: Any = None
    usd_high: Any = None
    energy: Any = None
    flop: Any = None


def outlook(request: TrainingRequest, case: TrainingCase, numbers: TrainingEstimate) -> Outlook:
    """Wall time, cost and energy of training on the tokens of a request."""
    system, tokens = case.system, request.run.tokens
    goodput = goodput_of(request, system)
    if tokens is None:
        return Outlook(goodput=goodput)
    low, run, high = (wall_s(tokens / case.batch * step, goodput) for step in (numbers.step_low, numbers.time.step, numbers.step_high))
    price = price_quote(request.system.chip, request.price_metric)
    prices = (None, None, None) if price is None else (price.low, price.value, price.high)
    usd = [None if chip_price is None else run_usd(chip_price, system.chips, time)
           for chip_price, time in zip(prices, (low, run, high), strict=True)]  # fmt: skip
    power = None if system.chip.tdp is None else system.chip.tdp * system.chips
    return Outlook(
        goodput=goodput, run=run, run_low=low, run_high=high, usd=usd[1], usd_low=usd[0], usd_high=usd[2],
        energy=None if power is None else power * run, flop=numbers.use.flop_per_token * tokens,
    )  # fmt: skip


def goodput_of(request: TrainingRequest, system: System) -> Any:
    """Share of the wall time that advances the run, at the checkpoint interval that loses least."""
    failures = request.failures
    if failures.mtbf is None:
        return 1
    rate = system.chips / failures.mtbf
    goodput = goodput_share(failures.checkpoint, best_interval_s(failures.checkpoint, rate), rate, failures.restart)
    if float(goodput) <= 0:
        between = show(1 / float(rate), "s")
        wants = f"longer: one of {int(system.chips)} chips fails every {between}, sooner than a run comes back"
        raise BadValue("--mtbf", show(failures.mtbf, "s"), wants)
    return goodput


# -- the best layouts -----------------------------------------------------------------------------------------------------------


def answer(request: TrainingRequest) -> TrainingAnswer:
    """The best layouts for a request, with notes on what would help."""
    answer = best(request) if request.objective == "step" and request.deadline is None else sized(request)
    return replace(answer, notes=(*answer.notes, *advice(request, answer.layouts[0])))


def best(request: TrainingRequest) -> TrainingAnswer:
    """The layouts of shortest step time on the whole machine: such as people run, else all, with a note."""
    case = case_of(request)
    of, domain = bounds_of(request.model, case), int(request.system.scale_up_domain)
    single = {name: values[0] for name, values in request.pinned.items() if len(values) == 1}
    if all(name in single for name in PLACED) or len(single) == len(NAMES):
        pinned_one(single, of, domain)  # raises IllegalLayout for a fully specified illegal layout
    modes = tuple(mode for mode in request.modes if mode not in LAST) or request.modes  # no FFN and no layer computed again
    short = "cp" not in request.pinned and int(request.run.seq) < LONG
    result, notes = search(replace(request, modes=modes), case, {"cp": (1,)} if short else None), ()
    if not result.fitting and (modes != tuple(request.modes) or short):
        result = search(request, case)
        last = "nothing fits without recomputation of FFNs or layers, or context parallelism (--recompute, --cp)"
        notes = (last,) if result.fitting else ()
    if not result.layouts:
        raise none_legal(request.pinned, of, domain)
    most = request.model.max_context
    if most is not None and int(request.run.seq) > int(most):
        context = f"{request.model.name}'s context of {int(most):,}"
        notes += (f"sequences of {int(request.run.seq):,} tokens are longer than {context}",)
    if REVERSIBLE in request.modes:
        notes += (REVERSIBLE_NOTE,)
    notes += tuple(_defaults_of_recipe(request, result.layouts[0]))
    return replace(result, notes=(*result.notes, *notes))


def _defaults_of_recipe(request: TrainingRequest, first: LayoutEstimate) -> Iterator[str]:
    """Notes on parts of the recipe that the chip decided."""
    recipe, chip = first.case.recipe, request.system.chip
    if request.recipe.fused_attention is None and not fuses_attention(chip):
        yield f"attention writes and keeps its scores: {chip.name} is older than fused kernels (--fused-attention)"
    if request.recipe.dispatcher is None and is_routed(first.case.work) and int(first.layout.ep) > 1:
        yield f"tokens reach their experts by {recipe.dispatcher} (--dispatcher)"


def totals(request: TrainingRequest, candidate: LayoutEstimate) -> tuple[TrainingEstimate, Outlook]:
    """The numbers of one layout, and those of the run on it."""
    numbers = estimate(candidate.case, candidate.layout)
    return numbers, outlook(request, candidate.case, numbers)


def sized(request: TrainingRequest) -> TrainingAnswer:
    """The answer on the best size: the whole machine, or a part of it in whole scale-up domains."""
    if request.run.tokens is None:
        flag, text = (
            ("--deadline", f"{float(request.deadline):g} s") if request.deadline is not None else ("--objective", request.objective)
        )
        raise BadValue(flag, text, "the tokens of the run too: --tokens 15T")
    choice: tuple[float, TrainingAnswer] | None = None
    layout_count = fitting = 0
    for system in parts(request.system, EIGHTHS["cost" if request.objective == "cost" else "chips"]):
        if hopeless(request, system):
            continue
        part = replace(request, system=system)
        try:
            answer = best(part)
        except (BadValue, IllegalLayout):
            continue
        layout_count, fitting = layout_count + answer.layout_count, fitting + answer.fitting
        run = _in_time(part, answer)
        if run is None:
            continue
        if request.objective == "cost" and run.usd is None:
            raise BadValue("--objective", "cost", f"a chip with a price of that metric; {system.chip.name} has none")
        objective = float(run.usd) if request.objective == "cost" else float(system.chips)
        if choice is None or objective < choice[0]:
            choice = (objective, answer)
        if request.objective == "chips":
            break  # sizes ascend, so the first that meets the request has fewest chips
    if choice is not None:
        return replace(_without_idle(request, choice[1]), layout_count=layout_count, fitting=fitting)
    note = "nothing fits on" if request.deadline is None else "the deadline is not met, by these laws, on"
    answer, reason = best(request), f"{note} any number of chips up to {int(request.system.chips):,}"
    counts = {"layout_count": max(layout_count, answer.layout_count), "fitting": max(fitting, answer.fitting)}
    return replace(answer, **counts, infeasible_reason=reason)


def _in_time(request: TrainingRequest, answer: TrainingAnswer) -> Outlook | None:
    """The totals on the best layout, None where it does not fit or misses the deadline."""
    numbers, run = totals(request, answer.layouts[0])
    is_late = request.deadline is not None and float(run.run) > float(request.deadline)
    return None if is_late or not bool(numbers.fits) else run


def _without_idle(request: TrainingRequest, choice: TrainingAnswer) -> TrainingAnswer:
    """The answer on only the nodes that its layout fills, if it still meets the request."""
    system, layout, domain = choice.layouts[0].case.system, choice.layouts[0].layout, int(request.system.scale_up_domain)
    filled = -(-int(replica_chips(layout.tp, layout.cp, layout.dp, layout.pp)) // domain) * domain
    if filled >= int(system.chips):
        return choice
    smaller = replace(request, system=_part(request.system, filled))
    answer = best(smaller)
    return choice if _in_time(smaller, answer) is None else answer


def hopeless(request: TrainingRequest, system: System) -> bool:
    """Whether a search is pointless: weights and states exceed the memory, or the deadline is too soon even at peak FLOP/s."""
    param_bytes, chips = optimizer(request.recipe.optimizer), float(system.chips)
    states = float(total_params(request.model)) * float(
        param_bytes.weight + request.recipe.trainable * (param_bytes.gradient + param_bytes.states)
    )
    if states > chips * float(system.chip.need("hbm")):
        return True
    if request.deadline is None or request.recipe.trainable < 1:
        return False
    flop = 6 * float(matmul_params(request.model)) * float(request.run.tokens)
    return flop > float(request.deadline) * chips * float(peak(system.chip, request.recipe.dtype)[1])


def parts(system: System, eighths: Sequence[int]) -> list[System]:
    """The machine and smaller parts of whole scale-up domains, smallest first."""
    domain, chips = int(system.scale_up_domain), int(system.chips)
    counts = {n * (chips >> power) // 8 for power in range(chips.bit_length()) for n in eighths}
    return [_part(system, n) for n in sorted(counts) if n >= 1 and (n % domain == 0 or n < domain)]


def _part(system: System, chips: int) -> System:
    if chips == int(system.chips):
        return system
    count = known(chips, f"{system.name}.chips", "", "derived", "part of the machine")
    return replace(system, chips=count, name=f"{chips} of {system.name}", scale_up_domain=min(system.scale_up_domain, count))


# -- advice ---------------------------------------------------------------------------------------------------------------------


def advice(request: TrainingRequest, best: LayoutEstimate) -> Iterator[str]:
    """Notes on how to improve the best layout."""
    yield from _idle(request, best) if best.fits else _fitting(request, best.case)


def _idle(request: TrainingRequest, best: LayoutEstimate) -> Iterator[str]:
    """A note on idle chips, with a nearby batch that would use them."""
    case, layout = best.case, best.layout
    chips, sequence = int(case.system.chips), int(case.work.sequence)
    idle = chips - int(layout.tp) * int(layout.cp) * int(layout.pp) * int(layout.dp)
    if not idle:
        return
    note = f"{idle:,} of {chips:,} chips are idle, and paid for"
    sequences = int(case.batch) // sequence
    near = even(sequences, chips)
    batch = known(near * sequence, "global_batch", "token", "derived", "a batch that divides over more chips")
    step = None if near == sequences else _fastest(request, replace(case, batch=batch))
    if step is not None and step / near < best.step / sequences:
        gain = best.step / sequences / (step / near) - 1
        note += f": {sequences:,} sequences of a step divide badly; {near:,} (--global-batch {int(batch)}) train {gain:.1%} faster"
    yield note


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
    if case.optimizer.states > leaner.optimizer.states and _fastest(request, leaner) is not None:
        yield f"with --optimizer {LEANER} it fits"
    if system.shape:
        return  # a torus has a shape, which doubling its chips would not keep
    times = 2
    while times <= MOST_TIMES:
        count = known(int(system.chips) * times, f"{system.name}.chips", "", "derived", f"{times} times the machine")
        larger = replace(system, chips=count, name=f"{times} x {system.name}")
        if _fastest(request, replace(case, system=larger, machine=machine(larger, case.recipe.dtype))) is not None:
            yield f"on {int(larger.chips):,} of these chips it fits"
            return
        times *= 2
    yield f"nor does anything fit on {show(float(system.chips) * MOST_TIMES, '')} of these chips"


def _fastest(request: TrainingRequest, case: TrainingCase) -> float | None:
    """Step time of the best layout of another case (s), None where nothing fits."""
    try:
        result = search(request, case)
    except HeadwayError:
        return None
    return result.layouts[0].step if result.fitting else None
