"""Which models run on a machine for one user: the format of each, its decode speed, and the context that its memory has room for.

A model is served by layers on all chips of the machine where llama.cpp serves it, else by the widest tensor parallelism that divides its
chips, the rest being replicas. Experts of a model may lie in the host's memory, where llama.cpp's own processor threads multiply them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.core.errors import IllegalLayout
from headway.core.quantity import default, known
from headway.core.units import Token, show
from headway.hardware.chip import chip as find_chip
from headway.hardware.chip import reported_memory
from headway.hardware.system import System
from headway.laws.serving.request import user_tok_per_s
from headway.laws.serving.room import llamacpp_share
from headway.models import totals
from headway.models.describe import releases
from headway.models.model import Model
from headway.models.precision import Precision, formats
from headway.models.stored import is_gguf, stored_formats
from headway.models.work import ModelWork, work_of
from headway.performance.assumptions import Assumptions
from headway.performance.capacity import EvenSplit, even_split, widest
from headway.performance.estimate import Estimate
from headway.performance.layout import UNASKED, Layout, illegal, shape
from headway.performance.workload import Load
from headway.serving.serve import deployment

GGUF_ENGINE = "llamacpp"
GGUF = ("bf16", "q8_0", "q6_k", "q5_k_m", "q4_k_m", "q3_k_m", "q2_k")  # of the files that people share, the widest first
NARROW = ("q3_k_m", "q2_k")  # below four bits a weight, where answers suffer most
EXPERTS_IN_FP4 = "mxfp4_moe"
CHECKPOINTS = ("", "fp8", "int4_g128")  # of engines that load checkpoints; "" as stored
ON_CHIP, IN_HOST = "none", "experts"
HOST_CHIP = "desktop_cpu_ddr5"  # whose memory stands in where nobody says what the host has
MARGIN = known(2**30, "fit target", "byte", "default", "llama.cpp --fit-target: 1,024 MiB of a card stay free", "2026")
NO_TABLE = known(0.0, "embedding on the host", "byte", "constant", "a tied table is the head, which lies on the card")
SINGLE_USER = default(1, "batch", "", "one user")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatChoice:
    """A format of a model, and where its experts lie."""

    weights: str
    offload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatFit:
    """A model on a machine in one format, for one user."""

    model: str
    system: str
    weights: str
    offload: str
    kv: str
    tp: Any
    pp: Any
    context: Any
    total_params: Any
    active_params: Any
    released: str
    fits: bool
    why: str
    step_s: Any
    step_lo_s: Any
    step_hi_s: Any
    tok_per_s_user: Any
    tok_per_s_user_lo: Any
    tok_per_s_user_hi: Any
    largest_context: Any
    weights_bytes: Any
    host_bytes: Any
    room_bytes: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FitQuestion:
    """What is asked of every model: the machine, one context, the formats and the engine."""

    machine: System
    context: Token
    precision: Precision
    assumptions: Assumptions
    weights: tuple[str, ...] = ()  # formats to try; none: those that people share for the engine
    is_share_stated: bool = False  # whether the user says which share of a card is filled
    offload: str = ""  # ON_CHIP, IN_HOST, "": either


def choices(model: Model, question: FitQuestion) -> Iterator[FormatChoice]:
    """Formats to try, the widest first: on the chips, then with experts in the host's memory, and so again for less than four bits."""
    work = work_of(model)
    hosts = any(block.experts for block in work.blocks) and question.machine.chip.memory != "shared"
    places = [place for place in (ON_CHIP, IN_HOST) if question.offload in ("", place) and (place == ON_CHIP or hosts)]
    names = question.weights or _divisible(work, question)
    narrow = {name for name in names if name in NARROW}
    for group in ([name for name in names if name not in narrow], [name for name in names if name in narrow]):
        yield from (FormatChoice(weights=weights, offload=place) for place in places for weights in group)


def _divisible(work: ModelWork, question: FitQuestion) -> tuple[str, ...]:
    """The usual formats whose groups of weights the layout does not cut; all of them where it cuts every one, which is then told."""
    names, layout = usual_formats(work, question.assumptions.engine), layout_of(work, question)
    return tuple(name for name in names if not illegal(layout, shape(work.blocks, name))) or names


def usual_formats(work: ModelWork, engine: str) -> tuple[str, ...]:
    """Formats in which people run a model on an engine, none wider than its checkpoint."""
    stored = max((part for block in stored_formats(work).blocks for part in block), key=lambda part: float(part.bytes))
    if engine == GGUF_ENGINE:
        if any(block.expert_dtype == "mxfp4" for block in work.blocks if block.experts):
            return (EXPERTS_IN_FP4,)
        return tuple(name for name in GGUF if is_gguf(name) or float(stored.bytes) >= float(formats()[name].bytes))
    return tuple(name for name in CHECKPOINTS if not name or float(formats()[name].bytes) < float(stored.bytes))


def layout_of(work: ModelWork, question: FitQuestion) -> Layout:
    """By layers over all chips under llama.cpp, as its --split-mode layer does by default, else the widest tensor parallelism."""
    chips = int(question.machine.chips)
    if question.assumptions.engine != GGUF_ENGINE:
        return widest(work, question.machine)
    stages = min(chips, int(work.layers))
    return Layout(**UNASKED | {"pp": default(stages, "pp", "", "llama.cpp divides the layers over all cards")})


def fit(model: Model, choice: FormatChoice, question: FitQuestion) -> FormatFit:
    """One format of a model on the machine: what is wrong where it does not fit, else its speed and its room."""
    work, machine = work_of(model), question.machine
    layout, precision = layout_of(work, question), replace(question.precision, weights=choice.weights)
    reason = illegal(layout, shape(work.blocks, precision.weights))
    if reason:
        raise IllegalLayout(layout, reason)
    if choice.offload == IN_HOST:
        machine = with_host(machine, question.assumptions.engine)
    assumptions = replace(question.assumptions, offload=choice.offload, hbm_utilization=_share_of_cards(work, choice, question))
    split = even_split(model, machine, precision, assumptions, SINGLE_USER, question.context, layout)
    why = _why(model, split, question.context, machine)
    case = deployment(model, machine, layout, Load(batch=SINGLE_USER, context=question.context), precision, assumptions)
    step = case.step(case.compiled(), SINGLE_USER, question.context)
    rate = step.invert(user_tok_per_s) if not why else Estimate(expected=None, low=None, high=None)
    release = releases().get(model.name)
    stored, cache, _ = case.formats.labels
    return FormatFit(
        model=model.name, system=question.machine.name, weights=choice.weights or stored, offload=choice.offload, kv=cache, tp=layout.tp,
        pp=layout.pp, context=question.context, total_params=totals.total_params(model),
        active_params=totals.active_params(model), released="" if release is None else release.month, fits=not why, why=why,
        step_s=step.expected, step_lo_s=step.low, step_hi_s=step.high, tok_per_s_user=rate.expected, tok_per_s_user_lo=rate.low,
        tok_per_s_user_hi=rate.high, largest_context=_longest(split.largest_context, model), weights_bytes=split.weights_bytes,
        host_bytes=split.host_bytes, room_bytes=split.room_bytes,
    )  # fmt: skip


def _share_of_cards(work: ModelWork, choice: FormatChoice, question: FitQuestion) -> Any:
    """Share of the cards that weights and cache may take: as the user says, as llama.cpp leaves it, else the engine's default."""
    chip, share = question.machine.chip, question.assumptions.hbm_utilization
    if question.is_share_stated or question.assumptions.engine != GGUF_ENGINE or chip.memory == "shared":
        return share
    table = work.table_params * stored_formats(work, choice.weights).embedding.bytes if work.head_params else NO_TABLE
    chips = question.machine.chips
    return llamacpp_share(reported_memory(chip) * chips, MARGIN * chips, table)


def _longest(room: Any, model: Model) -> Any:
    """Longest context that memory holds and the model reads."""
    most = model.max_context
    if room is None or (most is not None and float(room) > float(most)):
        return most
    return room


def _why(model: Model, split: EvenSplit, context: Token, machine: System) -> str:
    """Why a model does not run in this format at this context; empty where it does."""
    if model.max_context is not None and float(context) > float(model.max_context):
        return f"reads at most {int(model.max_context):,} tokens"
    if split.fits:
        return ""
    if float(split.load_bytes) > float(split.usable_bytes):
        return f"needs {show(float(split.load_bytes), 'byte')} of {show(float(split.usable_bytes), 'byte')} usable"
    room = show(float(machine.chip.host_dram * machine.chips), "byte")
    return f"has {show(float(split.host_bytes), 'byte')} of experts for {room} of memory of the host"


def with_host(machine: System, engine: str) -> System:
    """The machine with the memory of its host, a desktop's where nobody says; under llama.cpp its processor multiplies what lies there."""
    chip, usual = machine.chip, find_chip(HOST_CHIP)
    size, speed = chip.host_dram, chip.host_dram_bw
    if size is None:
        size = default(float(usual.need("hbm")) / float(machine.chips), "host_dram", "byte", f"64 GB of one desktop ({HOST_CHIP})")
    if speed is None:
        speed = default(float(usual.need("hbm_bw")), "host_dram_bw", "byte/s", f"two channels of DDR5-5600 ({HOST_CHIP})")
    return replace(machine, chip=replace(chip, host_dram=size, **({"host_link_bw": speed} if engine == GGUF_ENGINE else {})))


def best(models: Iterable[Model], question: FitQuestion, pace: float) -> tuple[list[FormatFit], list[str]]:
    """Of each model its widest format that keeps the pace, else its fastest; and the models that do not fit in any."""
    rows, too_large = [], []
    for model in models:
        row = _best_of_model(model, question, pace)
        if row is None:
            too_large.append(model.name)
        else:
            rows.append(row)
    return ranked(rows, pace), too_large


def _best_of_model(model: Model, question: FitQuestion, pace: float) -> FormatFit | None:
    fitting = []
    for choice in choices(model, question):
        if not _may_fit(model, choice, question):
            continue
        try:
            row = fit(model, choice, question)
        except IllegalLayout:  # a format that was typed
            continue
        if row.fits and float(row.tok_per_s_user) >= pace:
            return row
        fitting += [row] if row.fits else []
    return max(fitting, key=lambda row: float(row.tok_per_s_user), default=None)


def _may_fit(model: Model, choice: FormatChoice, question: FitQuestion) -> bool:
    """Whether the weights alone leave a chance, so that most of what is too large costs nothing."""
    weights = float(totals.loaded_bytes(model, choice.weights))
    if choice.offload == IN_HOST:
        weights -= float(totals.routed_bytes(model, choice.weights))
    chip = question.machine.chip
    most = max(float(size) for size in (chip.need("hbm"), chip.hbm_reported or 0.0))
    return weights <= 1.1 * most * float(question.machine.chips)


def again(row: FormatFit, model: Model, question: FitQuestion) -> FormatFit:
    """A row once more, for a recorder that is on."""
    stored_as = [choice for choice in choices(model, question) if choice.offload == row.offload and choice.weights in (row.weights, "")]
    return fit(model, max(stored_as, key=lambda choice: len(choice.weights)), question)


def ranked(rows: Sequence[FormatFit], pace: float) -> list[FormatFit]:
    """Those that keep the pace, the largest first; then the rest, the fastest first; those that do not fit last."""

    def place(row: FormatFit) -> tuple[int, float]:
        if not row.fits:
            return (2, -float(row.total_params))
        fast = float(row.tok_per_s_user) >= pace
        return (0, -float(row.total_params)) if fast else (1, -float(row.tok_per_s_user))

    return sorted(rows, key=place)


def all_formats(models: Iterable[Model], question: FitQuestion) -> list[FormatFit]:
    """Each format of each model, the widest first."""
    return [fit(model, choice, question) for model in models for choice in choices(model, question)]
