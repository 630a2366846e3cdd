"""From a chip, its formats and an engine to what kernels reach: the fitted numbers that apply, or the user's in their place.

Only laws do arithmetic here: this file chooses which number applies to which class of kernel.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

from headway.assumptions import Assumptions
from headway.chip import Chip
from headway.efficiency import OTHER, WIDE, Efficiencies, efficiencies, family, foreign, platform
from headway.laws.coefficients import EngineCost, Reach
from headway.laws.compile_terms import attention_gain, engine_reach, engine_s, launches_s, narrow_reach
from headway.laws.kernels import block_s
from headway.laws.serving import interval_factor
from headway.laws.sums import times, total
from headway.layout import Layout
from headway.quantity import default
from headway.resolve import Formats, main_part

FITTED = "fitted: kernels of A100, H100, H200, B200; engines on published runs; docs/accuracy.md"
UNMEASURED = "its kernels were not measured; those of measured chips stand in, as shares of its datasheet, in a wider interval"
FLAT = "the step models that are not fitted take one flat number for all kernels"
EFF_COMPUTE, EFF_MEMORY = default(0.7, "eff_compute", "", FLAT), default(0.8, "eff_memory", "", FLAT)
T0, SPREAD = default(3e-6, "t0", "s", FLAT), default(1.6, "spread", "", FLAT)
NONE, NO_TIME, NO_PAD = default(0, "none", "", FLAT), default(0.0, "none", "s", FLAT), default(0.0, "none", "token", FLAT)
ONE, SMOOTH = default(1, "one", "", FLAT), default(2, "norm", "", FLAT)
QUANTISED, QUANTISING = ("fp8", "nvfp4"), ("t0", "activation")
ACCUMULATED = "fp16acc"  # a faster rate of the same kernels
OLDER = {"eager": "layer", "waiting": "step"}  # what old versions of an engine do, and the number that it adds to
WIDENED = "weight_only"  # weights of 8 or 4 bits, arithmetic in 16: each engine has kernels of its own
ENGINE_KEYS = tuple(field.name for field in fields(EngineCost) if field.name != "dense")
LINKS = ("alpha", "alpha_out", "alpha_exchange", "alpha_exchange_out", "eff_network", "eff_in_switch", "eff_exchange", "eff_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """How many kernels of each class one chip runs in a step of all layers, and what is special about them."""

    matmuls: Any
    attentions: Any
    moes: Any
    elementwise: Any
    layers: Any
    launches: Any  # all of them, as the flat step models count
    depth: Any
    latent: bool
    dense: tuple[int, int]  # the (block, part) that most dense weights are in
    routed: tuple[int, int] | None
    head: Any  # elements of an attention head
    fused: bool  # activations are quantised with fixed scales, in the kernel before: weights were converted after training


def with_links(taken: Assumptions, chip: Chip, table: Efficiencies | None = None) -> Assumptions:
    """The assumptions with the fitted costs of links where the user gave none."""
    found, kind = table or efficiencies(), family(chip)
    unset = {name: found.kernel("collective", kind, WIDE, name) for name in LINKS if getattr(taken, name) is None}
    return replace(taken, **unset) if unset else taken


def spread(chip: Chip, experts: bool, taken: Assumptions, quantity: str) -> Any:
    """Half the fitted 90 % interval of a quantity as a factor, wider where less was measured; or the user's."""
    if taken.spread is not None or taken.overlap != "fitted":
        return SPREAD if taken.spread is None else taken.spread
    table = efficiencies()
    wider = [table.interval("unmeasured")] if family(chip) == OTHER else []
    wider += [table.interval("foreign")] if foreign(chip) else []
    wider += [table.interval("experts")] if experts else []
    return interval_factor(table.interval(quantity), functools.reduce(times, wider, ONE))


def basis(chip: Chip, taken: Assumptions) -> tuple[str, ...]:
    """What expected times rest on, a line each."""
    if taken.overlap != "fitted":
        return (f"unfitted: the step model {taken.overlap!r} takes one flat efficiency for all kernels and a stated interval",)
    return (FITTED,) if family(chip) != OTHER else (FITTED, f"{chip.name}: {UNMEASURED}")


def reach(kernels: Kernels, chip: Chip, formats: Formats, layout: Layout, taken: Assumptions, table: Efficiencies | None = None) -> Reach:
    """What the kernels of a compiled layout reach; one flat share for all of them in the step models that are not fitted."""
    if taken.overlap != "fitted":
        return _flat(kernels, formats, taken)
    found = table or efficiencies()
    bare = _Fitted(kernels=kernels, chip=chip, formats=formats, taken=taken, table=found).reach()
    engine = engine_cost(taken.engine, chip, found, form_of(formats, kernels.dense))
    if taken.t0 is not None:
        engine = replace(engine, launch=ONE)  # the user's fixed cost is the whole of it
    streamed = replace(engine, sequence=total((engine.sequence, found.engine(taken.engine, platform(chip), "stream"))))
    return _asked(with_engine(bare, streamed, kernels.layers, layout.tp, layout.pp), taken)


def engine_cost(name: str, chip: Chip, table: Efficiencies, form: str = WIDE, older: tuple[str, ...] = ()) -> EngineCost:
    """An engine's numbers on a chip, whose kind of machine has factors of its own; `older`: what its version lacks, see OLDER."""
    kind = platform(chip)
    found = EngineCost(dense=ONE, **{key: table.engine(name, kind, key) for key in ENGINE_KEYS})
    if name == "none":
        return found
    if form == WIDENED:  # all others are the library that was measured, whatever the engine
        found = replace(found, dense=table.engine(name, kind, WIDENED))
    for what in older:
        key = OLDER[what]
        found = replace(found, **{key: total((getattr(found, key), table.find(key, f"engine.{what}")))})
    return replace(found, **{key: times(getattr(found, key), table.platform(kind, key)) for key in ("compute", "memory")})


def with_engine(bare: Reach, engine: EngineCost, layers: Any, tp: Any, pp: Any) -> Reach:
    """What kernels reach in an engine, and what the engine adds; scalar or array alike."""
    return replace(
        bare,
        compute=engine_reach(bare.compute, engine.compute, engine.dense),
        memory=engine_reach(bare.memory, engine.memory, engine.dense),
        expert_compute=engine_reach(bare.expert_compute, engine.compute, engine.expert),
        expert_memory=engine_reach(bare.expert_memory, engine.memory, engine.expert),
        expert_activation=engine_reach(bare.expert_activation, engine.memory, engine.expert),
        decode_compute=engine_reach(bare.decode_compute, engine.compute, engine.attention),
        decode_memory=engine_reach(bare.decode_memory, engine.memory, engine.attention),
        prefill_compute=engine_reach(bare.prefill_compute, engine.compute, engine.attention),
        fixed=total((times(bare.fixed, engine.launch), engine_s(engine.step, layers, engine.layer, engine.split, tp, pp))),
        prompted=times(bare.prompted, engine.launch),
        sequence=engine.sequence,
    )


def _asked(found: Reach, taken: Assumptions) -> Reach:
    """The user's shares and factor in place of the fitted ones."""
    compute = ("compute", "expert_compute", "decode_compute", "prefill_compute") if taken.eff_compute is not None else ()
    memory = ("memory", "expert_memory", "decode_memory") if taken.eff_memory is not None else ()
    shares = dict.fromkeys(compute, taken.eff_compute) | dict.fromkeys(memory, taken.eff_memory)
    return replace(found, **shares, fixed=times(found.fixed, taken.fixed), prompted=times(found.prompted, taken.fixed))


def _flat(kernels: Kernels, formats: Formats, taken: Assumptions) -> Reach:
    compute = EFF_COMPUTE if taken.eff_compute is None else taken.eff_compute
    memory = EFF_MEMORY if taken.eff_memory is None else taken.eff_memory
    t0 = T0 if taken.t0 is None else taken.t0
    attention = times(compute, attention_gain(formats.attention_peak, formats.wide_peak))
    return Reach(
        compute=compute, memory=memory, activation=ONE, norm=SMOOTH,
        expert_compute=compute, expert_memory=memory, expert_activation=ONE, expert_norm=SMOOTH,
        decode_compute=attention, decode_memory=memory, block=NO_TIME, prefill_compute=attention, prefill_pad=NO_PAD,
        elementwise=ONE,
        fixed=times(launches_s(kernels.launches, t0, ONE), taken.fixed), sequence=NO_TIME, prompted=NO_TIME,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """The fitted numbers of one compiled layout, whatever the engine: each method is one class of kernels."""

    kernels: Kernels
    chip: Chip
    formats: Formats
    taken: Assumptions
    table: Efficiencies

    def reach(self) -> Reach:
        matmul, routed = functools.partial(self.matmul, form_of(self.formats, self.kernels.dense)), self.kernels.routed
        expert = functools.partial(self.number, "moe", form_of(self.formats, routed)) if routed else matmul
        decode = functools.partial(self.number, "mla_decode" if self.kernels.latent else "decode", self.cache_form())
        prefill = functools.partial(self.number, "mla_prefill" if self.kernels.latent else "prefill", WIDE)
        return Reach(
            compute=matmul("compute"), memory=matmul("memory"), activation=matmul("activation"), norm=matmul("norm"),
            expert_compute=expert("compute"), expert_memory=expert("memory"), expert_activation=expert("activation"),
            expert_norm=expert("norm"),
            decode_compute=decode("compute"), decode_memory=decode("memory"),
            block=block_s(decode("block"), self.chip.need("hbm_bw")),
            prefill_compute=self.narrowed(prefill), prefill_pad=prefill("pad"),
            elementwise=self.number("elementwise", WIDE, "memory"),
            fixed=self.launched(matmul, decode, expert), sequence=NO_TIME, prompted=self.attending(prefill),
        )  # fmt: skip

    def matmul(self, form: str, key: str) -> Any:
        """A number of dense matmuls; those of 8 and 4 bits were measured with a kernel that quantises their input, where that is one."""
        return self.number("gemm", WIDE if self.kernels.fused and form in QUANTISED and key in QUANTISING else form, key)

    def narrowed(self, prefill: Any) -> Any:
        """Attention of prompts, slower where heads are narrow; a latent's heads are wide."""
        return prefill("compute") if self.kernels.latent else narrow_reach(prefill("compute"), self.kernels.head, prefill("narrow"))

    def number(self, kind: str, form: str, key: str) -> Any:
        return self.table.kernel(kind, family(self.chip), form, key)

    def cache_form(self) -> str:
        return "fp8" if self.formats.kv.bytes < 2 else WIDE

    def attending(self, prefill: Any) -> Any:
        """t0 of the attention of prompts, in every layer."""
        t0 = prefill("t0") if self.taken.t0 is None else self.taken.t0
        return launches_s(self.kernels.attentions, t0, self.kernels.depth)

    def launched(self, matmul: Any, decode: Any, expert: Any) -> Any:
        """Every kernel's t0."""
        k, t0 = self.kernels, self.taken.t0
        small = functools.partial(self.number, "elementwise", WIDE)
        each = [(k.matmuls, matmul), (k.attentions, decode), (k.elementwise, small), *([(k.moes, expert)] if k.routed else [])]
        return total(tuple(launches_s(count, of("t0") if t0 is None else t0, k.depth) for count, of in each))


def form_of(formats: Formats, part: tuple[int, int]) -> str:
    """The format that a matmul was fitted in; weights that are widened first are a class of their own."""
    block, index = part
    stored, run = formats.weights[block][index], formats.runs[block][index]
    if run == ACCUMULATED:
        run = WIDE
    if stored.peak != run or (run == WIDE and stored.bytes < 2):
        return WIDENED
    return {"fp8": "fp8", "int8": "fp8", "fp4": "nvfp4"}.get(run, WIDE)


def dense_part(formats: Formats, blocks: tuple[Any, ...]) -> tuple[tuple[int, int], tuple[int, int] | None]:
    """Where most dense weights are, and where most routed ones."""
    last = len(blocks) - 1
    routed = main_part(blocks) if blocks[last].experts else None
    if routed is not None:
        return (last, 0), routed
    return main_part(blocks), None
