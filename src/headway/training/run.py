"""A training run: its case, the best layouts on a machine, and wall time, cost, energy and the chance that limits are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from headway.core.errors import BadValue
from headway.core.quantity import known
from headway.core.units import show
from headway.hardware.chip import Chip, price_quote
from headway.hardware.system import System
from headway.laws.serving.request import factor_probability
from headway.laws.training.run import best_interval_s, goodput_share, run_usd, wall_s
from headway.training.achieved import chip_efficiency
from headway.training.estimate import TrainingEstimate, estimate
from headway.training.own_runs import with_own_runs
from headway.training.pipeline import TrainingCase, machine
from headway.training.recipe import ARITHMETIC, RECOMPUTE, REVERSIBLE, optimizer
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
USUAL = ("none", "selective")  # recomputation that is searched; the rest is tried where nothing else fits
PLACED = ("tp", "cp", "pp", "dp")  # all four pinned make a layout rather than limits of a search
FIRST_FUSED = 2020  # year of the first chips that fused attention runs on
BLOCK_SCALED, GPU_VENDORS = ("mxfp8", "nvfp4"), ("nvidia", "amd")
REVERSIBLE_NOTE = "reversible: a network whose layers are couplings, one forward more; RevNet's implementations took 1.5 to 2 times as long"


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
    in_time: Any = None  # chances that the deadline, the budget, and both are kept
    in_budget: Any = None
    confidence: Any = None


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
    width = numbers.step_high / numbers.time.step
    in_time = None if request.deadline is None else chance(request.deadline / run, width)
    in_budget = None if request.budget is None or usd[1] is None else chance(request.budget / usd[1], width)
    return Outlook(
        goodput=goodput, run=run, run_low=low, run_high=high, usd=usd[1], usd_low=usd[0], usd_high=usd[2],
        energy=None if power is None else power * run, flop=numbers.use.flop_per_token * tokens,
        in_time=in_time, in_budget=in_budget, confidence=min((share for share in (in_time, in_budget) if share is not None), default=None),
    )  # fmt: skip


def chance(room: Any, width: Any) -> Any:
    """Share of drawn worlds in which a run takes at most `room` times its estimate; `width` is half of the step's 90 % interval."""
    if float(width) > 1:
        return factor_probability(room, width)
    return known(1.0 if float(room) >= 1 else 0.0, "confidence", "", "derived", "the MFU of the run is given, so that nothing is drawn")


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


def best(request: TrainingRequest) -> TrainingAnswer:
    """The layouts of shortest step time on the whole machine: such as people run, else all, with a note."""
    case = case_of(request)
    of, domain = bounds_of(request.model, case), int(request.system.scale_up_domain)
    single = {name: values[0] for name, values in request.pinned.items() if len(values) == 1}
    if all(name in single for name in PLACED) or len(single) == len(NAMES):
        pinned_one(single, of, domain)  # raises IllegalLayout for a fully specified illegal layout
    modes = USUAL if request.modes == RECOMPUTE else request.modes  # no FFN and no layer computed again, unless the user says so
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
