"""Achieved rates of kernels on a chip, with its formats and an engine: fitted numbers, or the user's instead.

Only laws do arithmetic here: this file chooses the number for each class of kernel.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headway.core.quantity import default
from headway.hardware.chip import Chip
from headway.hardware.chip import chip as find_chip
from headway.laws.serving.request import interval_factor
from headway.laws.step.coefficients import Achieved, EngineCost
from headway.laws.step.layer_terms import aged, engine_reach, engine_s, narrow_reach
from headway.laws.training.step import clock_share
from headway.performance.assumptions import Assumptions
from headway.performance.efficiency import (
    LINK_KEYS,
    OTHER_FAMILY,
    PLATFORM_KEYS,
    WIDE,
    Efficiencies,
    efficiencies,
    family,
    foreign,
    platform,
)
from headway.performance.formats import Formats, main_part
from headway.performance.layout import Layout

FITTED = "fitted: kernels of A100, H100, H200, B200; engines on published runs; docs/accuracy.md"
UNMEASURED = "its kernels were not measured; those of measured chips stand in, as shares of its datasheet, in a wider interval"
FLAT = "the step models that are not fitted take one flat number for all kernels"
EFF_COMPUTE, EFF_MEMORY = default(0.7, "eff_compute", "", FLAT), default(0.8, "eff_memory", "", FLAT)
T0, SPREAD = default(3e-6, "t0", "s", FLAT), default(1.6, "spread", "", FLAT)
NONE, NO_TIME, NO_PAD = default(0, "none", "", FLAT), default(0.0, "none", "s", FLAT), default(0.0, "none", "token", FLAT)
SMOOTH = default(2, "norm", "", FLAT)
QUANTISED, QUANTISING = ("fp8", "nvfp4"), ("t0_s", "activation")
ACCUMULATED = "fp16acc"  # 16-bit accumulation: a faster rate of the same kernels
OLDER = {"eager": "layer_overhead_s", "waiting": "step_overhead_s"}  # overheads of old engine versions, and the cost each adds to
WIDENED = "weight_only"  # weights of 8 or 4 bits, arithmetic in 16 bits: kernels that differ by engine
AGEING = ("launch_factor", "step_overhead_s", "layer_overhead_s")  # costs of engines that fell over the years
OWN_KERNELS = ("llamacpp",)  # engines with matmuls of their own, of which none was measured alone
GROUPED_INSTRUCTIONS = ("hopper", "blackwell")  # families whose peak only matrix instructions of several warps reach
USUAL_CHIP = "a100_sxm_80"  # whose power per FLOP clocks are relative to
BACKENDS = ("trtllm", "vllm", "sglang")  # engines whose kernels of routed experts were measured
EXCHANGING = ("vllm", "sglang")  # engines whose ranks exchange tokens by DeepEP
SPREAD_OUT = "deepep"  # its grouped kernels of routed experts
COST_KEYS = tuple(field.name for field in fields(EngineCost) if field.name != "weight_only_factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCounts:
    """Kernels per step that one chip runs, by class, and traits of the model that set their rates."""

    matmuls: Any
    attentions: Any
    moes: Any
    elementwise: Any
    layers: Any
    scans: Any  # of the attentions, those that pass a state over a prompt in chunks
    launches: Any  # all kernels, for the flat step models
    depth: Any
    latent: bool
    dense: tuple[int, int]  # (block, part) with most dense weights
    routed: tuple[int, int] | None
    head: Any  # elements of an attention head
    fused: bool  # activations are quantised in the preceding kernel, with fixed scales: weights were converted after training


def with_links(assumptions: Assumptions, chip: Chip, table: Efficiencies | None = None) -> Assumptions:
    """Assumptions with fitted link costs where the user gave none."""
    numbers, kind = table or efficiencies(), family(chip)
    unset = {name: numbers.kernel("collective", kind, WIDE, name) for name in LINK_KEYS if getattr(assumptions, name) is None}
    return replace(assumptions, **unset) if unset else assumptions


def routing_skew(chip: Chip, assumptions: Assumptions, table: Efficiencies | None = None) -> Any:
    """Skew of routers as fitted; none in the step models that are not fitted, nor where the user states the imbalance."""
    if assumptions.overlap != "fitted" or assumptions.imbalance is not None:
        return NONE
    return (table or efficiencies()).kernel("routing", family(chip), WIDE, "skew")


def spread(chip: Chip, experts: bool, assumptions: Assumptions, quantity: str, seat_share: Any = None, queued: Any = None) -> Any:
    """Half of the 90 % interval of a quantity, as a factor: fitted, wider where less was measured and under load; or the user's.

    `seat_share`, the share of the seats in use, is given for the slow end alone: fewer seats than predicted make nothing faster.
    `queued` is the share of a TTFT that other users add.
    """
    if assumptions.spread is not None or assumptions.overlap != "fitted":
        return SPREAD if assumptions.spread is None else assumptions.spread
    table = efficiencies()
    wider = [table.interval("unmeasured")] if family(chip) == OTHER_FAMILY else []
    wider += [table.interval("foreign")] if foreign(chip) else []
    wider += [table.interval("experts")] if experts else []
    wider += [table.interval(name) ** share for name, share in (("limited", seat_share), ("queued", queued)) if share is not None]
    return interval_factor(table.interval(quantity), functools.reduce(operator.mul, wider, 1))


def basis(chip: Chip, assumptions: Assumptions) -> tuple[str, ...]:
    """Basis of expected times: fitted or not, one line per caveat."""
    if assumptions.overlap != "fitted":
        roofline = "; the roofline is the floor beside it" if assumptions.overlap == "full" else ""
        flat = f"the step model {assumptions.overlap!r} takes one flat efficiency for all kernels and a stated interval"
        return (f"unfitted: {flat}{roofline}",)
    return (FITTED,) if family(chip) != OTHER_FAMILY else (FITTED, f"{chip.name}: {UNMEASURED}")


def borrowed_costs(chip: Chip) -> str:
    """Which fitted costs a hypothetical chip borrows, as part of a sentence; "" for a chip of the catalogue."""
    if not chip.hypothetical:
        return ""
    if chip.like and family(chip) != OTHER_FAMILY:
        return f"{chip.name} borrows kernel, link and engine costs fitted to {family(chip)} chips such as {chip.like}"
    return f"{chip.name} borrows kernel, link and engine costs fitted to A100, H100, H200 and B200"


def achieved_efficiency(
    kernels: KernelCounts,
    chip: Chip,
    formats: Formats,
    layout: Layout,
    assumptions: Assumptions,
    table: Efficiencies | None = None,
    backend: str = "",
) -> Achieved:
    """Achieved rates of a compiled layout's kernels; one flat share for all kernels in the unfitted step models.

    `backend` is the engine whose expert kernels these are, by default the assumed engine.
    """
    if assumptions.overlap != "fitted":
        return _flat(kernels, formats, assumptions)
    numbers = table or efficiencies()
    bare = _FittedKernels(
        kernels=kernels,
        chip=chip,
        formats=formats,
        assumptions=assumptions,
        table=numbers,
        backend=expert_backend(backend or assumptions.engine, layout),
    ).achieved_efficiency()
    engine = engine_cost(assumptions.engine, chip, numbers, form_of(formats, kernels.dense))
    if assumptions.t0 is not None:
        engine = replace(engine, launch_factor=1)  # the user's fixed cost replaces the launch factor too
    streaming_s = numbers.engine(assumptions.engine, platform(chip), "streaming_overhead_s")
    streamed = replace(engine, sequence_overhead_s=engine.sequence_overhead_s + streaming_s)
    return _with_user_shares(with_engine(bare, streamed, kernels.layers, layout.tp, layout.pp), assumptions)


def engine_cost(
    name: str, chip: Chip, table: Efficiencies, form: str = WIDE, older: tuple[str, ...] = (), years: float = 0.0
) -> EngineCost:
    """Costs of an engine on a chip, with factors by platform.

    `older`: features that its version lacks, see OLDER; `years`: how much older it is than the newest engines measured.
    """
    kind = platform(chip)
    engine_numbers = EngineCost(weight_only_factor=1, **{key: table.engine(name, kind, key) for key in COST_KEYS})
    if name == "none":
        return engine_numbers
    if form == WIDENED:  # every engine uses the measured library for other kernels
        engine_numbers = replace(engine_numbers, weight_only_factor=table.engine(name, kind, "weight_only_factor"))
    if years:
        growth = table.engine(name, kind, "yearly_growth")
        engine_numbers = replace(engine_numbers, **{key: aged(getattr(engine_numbers, key), growth, years) for key in AGEING})
    for what in older:
        key = OLDER[what]
        engine_numbers = replace(engine_numbers, **{key: getattr(engine_numbers, key) + table.find(key, f"engine.{what}")})
    engine_numbers = replace(engine_numbers, **{key: getattr(engine_numbers, key) * table.platform(kind, key) for key in PLATFORM_KEYS})
    return _on_chip(engine_numbers, name, chip, table)


def _on_chip(cost: EngineCost, name: str, chip: Chip, table: Efficiencies) -> EngineCost:
    """Costs with what clocks and newer instructions leave of a peak: of cards, and in engines whose kernels were not measured."""
    unmeasured = name in OWN_KERNELS
    peak = chip.peak(ACCUMULATED) or chip.peak_bf16
    if (unmeasured or platform(chip) == "card") and chip.tdp is not None and peak is not None:
        usual, exponent = _usual_chip(), table.platform(platform(chip), "power_exponent")
        share = clock_share(chip.tdp, peak, usual.need("tdp"), usual.need("peak_bf16"), exponent)
        cost = replace(cost, compute_factor=cost.compute_factor * share)
    if unmeasured and family(chip) in GROUPED_INSTRUCTIONS:
        cost = replace(cost, compute_factor=cost.compute_factor * table.engine(name, platform(chip), "mma_share"))
    return cost


@functools.cache
def _usual_chip() -> Chip:
    return find_chip(USUAL_CHIP)


def with_engine(bare: Achieved, engine: EngineCost, layers: Any, tp: Any, pp: Any) -> Achieved:
    """Achieved rates of kernels in an engine, with its overheads; scalars or arrays."""
    overhead_s = engine_s(engine.step_overhead_s, layers, engine.layer_overhead_s, engine.split_overhead_s, tp, pp)
    return replace(
        bare,
        compute=engine_reach(bare.compute, engine.compute_factor, engine.weight_only_factor),
        memory=engine_reach(bare.memory, engine.memory_factor, engine.weight_only_factor),
        expert_compute=engine_reach(bare.expert_compute, engine.compute_factor, engine.expert_factor),
        expert_memory=engine_reach(bare.expert_memory, engine.memory_factor, engine.expert_factor),
        expert_activation=engine_reach(bare.expert_activation, engine.memory_factor, engine.expert_factor),
        decode_compute=engine_reach(bare.decode_compute, engine.compute_factor, engine.attention_factor),
        decode_memory=engine_reach(bare.decode_memory, engine.memory_factor, engine.attention_factor),
        prefill_compute=engine_reach(bare.prefill_compute, engine.compute_factor, engine.attention_factor),
        fixed=bare.fixed * engine.launch_factor + overhead_s,
        prompted=bare.prompted * engine.launch_factor,
        host_launch=engine.prompt_launch_s,
        host_routed=engine.prompt_routed_s,
        captured=engine.captured_tokens,
        sequence=engine.sequence_overhead_s,
    )


def _with_user_shares(baseline: Achieved, assumptions: Assumptions) -> Achieved:
    """Achieved rates with the user's shares and factor in place of the fitted ones."""
    compute = ("compute", "expert_compute", "decode_compute", "prefill_compute") if assumptions.eff_compute is not None else ()
    memory = ("memory", "expert_memory", "decode_memory") if assumptions.eff_memory is not None else ()
    shares = dict.fromkeys(compute, assumptions.eff_compute) | dict.fromkeys(memory, assumptions.eff_memory)
    fixed = {key: getattr(baseline, key) * assumptions.fixed for key in ("fixed", "expert_fixed", "prompted")}
    return replace(baseline, **shares, **fixed)


def _flat(kernels: KernelCounts, formats: Formats, assumptions: Assumptions) -> Achieved:
    compute = EFF_COMPUTE if assumptions.eff_compute is None else assumptions.eff_compute
    memory = EFF_MEMORY if assumptions.eff_memory is None else assumptions.eff_memory
    t0 = T0 if assumptions.t0 is None else assumptions.t0
    attention = compute * (formats.attention_peak / formats.wide_peak)
    return Achieved(
        compute=compute, memory=memory, activation=1, norm=SMOOTH,
        expert_compute=compute, expert_memory=memory, expert_activation=1, expert_norm=SMOOTH,
        decode_compute=attention, decode_memory=memory, block=NO_TIME, prefill_compute=attention, prefill_pad=NO_PAD,
        elementwise=1,
        fixed=kernels.launches * t0 * assumptions.fixed, expert_fixed=NO_TIME, sequence=NO_TIME,
        prompted=NO_TIME, host_launch=NO_TIME, host_routed=NO_TIME, captured=NO_PAD, scan_chunk=NO_TIME, scan_heads=1,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _FittedKernels:
    """Fitted numbers of one compiled layout for any engine; one method per class of kernels."""

    kernels: KernelCounts
    chip: Chip
    formats: Formats
    assumptions: Assumptions
    table: Efficiencies
    backend: str  # engine whose kernels of routed experts these are

    def achieved_efficiency(self) -> Achieved:
        matmul, routed = functools.partial(self.matmul, form_of(self.formats, self.kernels.dense)), self.kernels.routed
        expert = functools.partial(self.number, "moe", expert_form(self.formats, routed, self.backend)) if routed else matmul
        decode = functools.partial(self.number, "mla_decode" if self.kernels.latent else "decode", self.cache_form())
        prefill = functools.partial(self.number, "mla_prefill" if self.kernels.latent else "prefill", WIDE)
        return Achieved(
            compute=matmul("compute"), memory=matmul("memory"), activation=matmul("activation"), norm=matmul("norm"),
            expert_compute=expert("compute"), expert_memory=expert("memory"), expert_activation=expert("activation"),
            expert_norm=expert("norm"),
            decode_compute=decode("compute"), decode_memory=decode("memory"),
            block=decode('block_bytes') / self.chip.need('hbm_bw'),
            prefill_compute=self.narrowed(prefill), prefill_pad=prefill("pad_tokens"),
            elementwise=self.number("elementwise", WIDE, "memory"),
            fixed=self.launched(matmul, decode), expert_fixed=self.routing(expert) if routed else NO_TIME, sequence=NO_TIME,
            prompted=self.attending(prefill),
            scan_chunk=self.scan("chunk_s") if self.kernels.scans else NO_TIME,
            scan_heads=self.scan("heads") if self.kernels.scans else 1,
        )  # fmt: skip

    def matmul(self, form: str, key: str) -> Any:
        """A fitted number of dense matmuls; 8-bit and 4-bit fits include a kernel that quantises the input, absent when fused."""
        return self.number("gemm", WIDE if self.kernels.fused and form in QUANTISED and key in QUANTISING else form, key)

    def narrowed(self, prefill: Any) -> Any:
        """Achieved share of prefill attention, lower for narrow heads; a latent's heads are wide."""
        return prefill("compute") if self.kernels.latent else narrow_reach(prefill("compute"), self.kernels.head, prefill("narrow"))

    def number(self, kind: str, form: str, key: str) -> Any:
        return self.table.kernel(kind, family(self.chip), form, key)

    def cache_form(self) -> str:
        return "fp8" if self.formats.kv.bytes < 2 else WIDE

    def attending(self, prefill: Any) -> Any:
        """Launch time of prefill attention, in all layers, and of scans where layers have them instead."""
        user, k = self.assumptions.t0, self.kernels
        t0 = prefill("t0_s") if user is None else user
        if not k.scans:
            return k.attentions * t0 * k.depth
        scan_t0 = self.scan("t0_s") if user is None else user
        return ((k.attentions - k.scans) * t0 + k.scans * scan_t0) * k.depth

    def scan(self, key: str) -> Any:
        """A fitted number of scans of prompts, by the engine's own kernels where they were measured."""
        return self.number("scan", f"{WIDE}.{self.backend}" if self.backend in BACKENDS else WIDE, key)

    def routing(self, expert: Any) -> Any:
        """Fixed time of the routed experts in all layers: no launches, so that no engine's cost of a launch scales it."""
        t0 = expert("t0_s") if self.assumptions.t0 is None else self.assumptions.t0
        return self.kernels.moes * t0 * self.kernels.depth

    def launched(self, matmul: Any, decode: Any) -> Any:
        """Launch time of all kernels of a step but experts."""
        k, t0 = self.kernels, self.assumptions.t0
        small = functools.partial(self.number, "elementwise", WIDE)
        kernel_counts = [(k.matmuls, matmul), (k.attentions, decode), (k.elementwise, small)]
        return sum(count * (of("t0_s") if t0 is None else t0) * k.depth for count, of in kernel_counts)


def dynamic(kernels: KernelCounts, formats: Formats) -> bool:
    """Whether a kernel quantises the input of each dense matmul: 8 and 4 bits whose scales are not fixed before."""
    return form_of(formats, kernels.dense) in QUANTISED and not kernels.fused


def form_of(formats: Formats, part: tuple[int, int]) -> str:
    """Format in which a matmul was fitted; weight-only quantisation is a separate class."""
    block, index = part
    stored, run = formats.weights[block][index], formats.runs[block][index]
    if run == ACCUMULATED:
        run = WIDE
    if stored.peak != run or (run == WIDE and stored.bytes < 2):
        return WIDENED
    return {"fp8": "fp8", "int8": "fp8", "fp4": "nvfp4"}.get(run, WIDE)


def expert_form(formats: Formats, part: tuple[int, int], backend: str) -> str:
    """Format in which routed experts were fitted, and the backend whose kernels they are, if its kernels were measured."""
    form, stored = form_of(formats, part), formats.weights[part[0]][part[1]].name
    if stored.startswith("mxfp4") and form in (WIDENED, "nvfp4"):
        form = "mxfp4" if form == WIDENED else "mxfp4_a8"
    return f"{form}.{backend}" if backend in (*BACKENDS, SPREAD_OUT) else form


def expert_backend(engine: str, layout: Layout) -> str:
    """Whose kernels of routed experts run: where ranks with attention of their own exchange tokens, those made for the exchange."""
    spread = bool(np.all(np.logical_and(np.greater(layout.dp, 1), np.greater(layout.ep, 1))))
    return SPREAD_OUT if spread and engine in EXCHANGING else engine


def dense_part(formats: Formats, blocks: tuple[Any, ...]) -> tuple[tuple[int, int], tuple[int, int] | None]:
    """(block, part) with most dense weights, and (block, part) with most routed weights."""
    last = len(blocks) - 1
    routed = main_part(blocks) if blocks[last].experts else None
    if routed is not None:
        return (last, 0), routed
    return main_part(blocks), None
