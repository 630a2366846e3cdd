"""Achieved rates of kernels on a chip, with its formats and an engine: the fitted numbers of data/efficiency.toml, or the user's instead.

A number is looked up under its class, the chip's family and the format of the arithmetic; unmeasured numbers fall back to the
family `other` and to bf16, in that order. Only laws do arithmetic here: this file chooses the number for each class of kernel.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from headway.core import catalog
from headway.core.catalog import Catalog, default_catalog, fold
from headway.core.errors import BadFile, MissingFact, nearest
from headway.core.quantity import default, known
from headway.core.units import Number, Second
from headway.hardware.chip import Chip
from headway.hardware.chip import chip as find_chip
from headway.hardware.system import host_link_reached
from headway.laws.step.coefficients import UNLIMITED, Achieved, EngineCost
from headway.laws.step.layer_terms import aged, engine_reach, engine_s, narrow_reach, partial_work_s, unpacked_reach
from headway.laws.step.remainder import LEAST, MOST, remainder_factor
from headway.laws.training.step import clock_share
from headway.performance.assumptions import Assumptions
from headway.performance.expert_kernels import BACKENDS, expert_backend, expert_form
from headway.performance.formats import Formats, main_part
from headway.performance.layout import Layout
from headway.performance.splits import kernel_rate
from headway.performance.unpacking import limit_of_unpacking

OTHER_FAMILY, WIDE = "other", "bf16"
FILE = "efficiency.toml"
ALONE = ("engine", "platform", "remainder", "interval", "training")  # each number by itself; of a kernel class a file states all or none
UNITS = ("", "s", "byte", "byte/s", "token", "flop")
ABOVE_ZERO = (
    "compute", "memory", "activation", "norm", "eff_network", "eff_in_switch", "eff_exchange", "eff_out", "compute_factor", "memory_factor",
    "attention_factor", "expert_factor", "weight_only_factor", "step_budget_tokens", "max_sequences",
    "chunk_s", "heads", "unpacking_flop", "stream_bandwidth",
)  # fmt: skip
ENGINE_KEYS = (
    "launch_factor", "step_overhead_s", "layer_overhead_s", "split_overhead_s", "sequence_overhead_s", "streaming_overhead_s",
    "compute_factor", "memory_factor", "weight_only_factor", "attention_factor", "expert_factor", "request_overhead_s", "prompt_launch_s",
    "prompt_routed_s", "prompt_latent_s", "captured_tokens", "concurrent_prompts", "unpacking_flop",
    "step_budget_tokens", "chunked_prefill", "reserved_output_share", "max_sequences",
    "pipeline_overlap_share", "buffer_bytes", "graph_bytes", "yearly_growth",
    "mma_share", "start_share", "first_round_share",
)  # fmt: skip
REMAINDER_KEYS = ("decode", "prompt")  # on a step without prompts, and on what prompts add to one
PLATFORM_KEYS = ("compute_factor", "memory_factor")
MATMUL_KEYS = ("t0_s", "compute", "memory", "activation", "norm")
DECODE_KEYS = ("t0_s", "compute", "memory", "block_bytes", "stream_bandwidth")
PREFILL_KEYS = ("t0_s", "compute", "pad_tokens")
LINK_KEYS = (
    "alpha", "alpha_host", "alpha_exchange", "alpha_exchange_out", "eff_network", "eff_in_switch", "eff_exchange", "eff_out",
)  # fmt: skip
RETIRED_KEYS = {  # of files written before it was a published fact (data/links.toml), or a law: passed over
    "collective": ("alpha_out",), "engine": ("synchronised_share",),
}  # fmt: skip
KEYS = {  # the numbers of each class: a file may state no others
    "engine": ENGINE_KEYS, "platform": (*PLATFORM_KEYS, "power_exponent"), "gemm": (*MATMUL_KEYS, "packing"), "moe": MATMUL_KEYS,
    "decode": DECODE_KEYS, "mla_decode": DECODE_KEYS, "prefill": (*PREFILL_KEYS, "narrow"), "mla_prefill": PREFILL_KEYS,
    "scan": ("t0_s", "chunk_s", "heads"), "elementwise": ("t0_s", "memory"), "routing": ("skew",), "collective": LINK_KEYS,
    "remainder": REMAINDER_KEYS,
    "interval": ("decode", "prefill", "tpot", "ttft", "offline", "unlike", "experts", "limited", "queued"),
}  # fmt: skip
KERNELS = tuple(kind for kind in KEYS if kind not in ALONE)  # classes of kernels
FORMER_KEYS = {  # names that stated no unit, for files written when they were in use
    "launch": "launch_factor", "step": "step_overhead_s", "layer": "layer_overhead_s", "split": "split_overhead_s",
    "sequence": "sequence_overhead_s", "stream": "streaming_overhead_s", "compute": "compute_factor", "memory": "memory_factor",
    "weight_only": "weight_only_factor", "attention": "attention_factor", "expert": "expert_factor", "request": "request_overhead_s",
    "company": "concurrent_prompts", "budget": "step_budget_tokens", "mixed": "chunked_prefill",
    "reserve": "reserved_output_share", "limit": "max_sequences", "pipeline": "pipeline_overlap_share",
    "t0": "t0_s", "block": "block_bytes", "pad": "pad_tokens",
}  # fmt: skip
SOURCE = "data/efficiency.toml, fitted; docs/accuracy.md"


@functools.cache
def kernel_sections(kind: str, family: str, form: str) -> tuple[str, ...]:
    """Sections in which a number of a class of kernels is looked for, in this order.

    A form may end with the backend whose kernels these are; then those of the fastest backends follow.

    >>> kernel_sections("moe", "hopper", "fp8.vllm")[:3]
    ('moe.hopper.fp8.vllm', 'moe.other.fp8.vllm', 'moe.hopper.fp8')
    """
    forms = dict.fromkeys((form, form.partition(".")[0], WIDE))
    return tuple(f"{kind}.{place}.{known_form}" for known_form in forms for place in (family, OTHER_FAMILY))


@dataclass(frozen=True, slots=True)
class Efficiencies:
    """Fitted numbers by section and key."""

    sections: Mapping[str, Mapping[str, Any]]

    def find(self, key: str, *sections: str) -> Any:
        """Number of `key` in the first of these sections that has it."""
        for section in sections:
            number = self.sections.get(section, {}).get(key)
            if number is not None:
                return number
        hint = "a file states all numbers of a class of kernels or none; `headway fit` writes it"
        raise MissingFact("efficiency.toml", f"{sections[0]}.{key}", hint)

    def kernel(self, kind: str, family: str, form: str, key: str) -> Any:
        """A number of one class of kernels."""
        return self.find(key, *kernel_sections(kind, family, form))

    def engine(self, name: str, platform: str, key: str) -> Any:
        """A number of one engine family; its numbers for the platform take precedence."""
        return self.find(key, f"engine.{name}.{platform}", f"engine.{name}", f"engine.{OTHER_FAMILY}")

    def interval(self, key: str) -> Any:
        """Half of a 90 % interval as a factor, or the widening factor of a circumstance."""
        return self.find(key, "interval.other")

    def platform(self, name: str, key: str) -> Any:
        """A number of one kind of machine."""
        return self.find(key, f"platform.{name}", f"platform.{OTHER_FAMILY}")


def efficiencies(chip: Chip | None = None) -> Efficiencies:
    """Shipped numbers, overridden by efficiency files of catalogue folders ($HEADWAY_CATALOG, the user's), and by the chip's own file."""
    alone = (chip.efficiency,) if chip is not None and chip.efficiency is not None else ()
    return laid((*alone, *fitted_files(default_catalog(), FILE)))


def fitted_files(folders: Catalog, name: str) -> tuple[Path, ...]:
    """Files of fitted numbers in the folders of a catalogue, the user's first."""
    return tuple(path for root in folders.roots if (path := root / name).is_file())


@functools.cache
def laid(paths: tuple[Path, ...]) -> Efficiencies:
    """Numbers of several files, earlier files first."""
    table = Efficiencies({})
    for path in reversed(paths):
        table = over(table, sections(catalog.read(path), path))
    return table


def over(table: Efficiencies, numbers: Mapping[str, Mapping[str, Any]]) -> Efficiencies:
    """A table under further sections, which state all numbers of a class of kernels or none."""
    complete_kinds = {kind_of(section) for section in numbers} - {*ALONE}
    rest = {section: values for section, values in table.sections.items() if kind_of(section) not in complete_kinds}
    return Efficiencies(rest | {section: {**rest.get(section, {}), **values} for section, values in numbers.items()})


def kind_of(section: str) -> str:
    """Class of a section's numbers.

    >>> kind_of("gemm.hopper.bf16")
    'gemm'
    """
    return section.partition(".")[0]


def entries(document: Mapping[str, Any], path: Path, section: str = "") -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Section, key and TOML entry of each number of a file, in its order."""
    for name, entry in document.items():
        if not isinstance(entry, dict):
            place = f"{section}.{name}".lstrip(".")
            raise BadFile(path, f"{place}: got {entry!r}; wants {{ value = ..., unit = ... }} as `headway fit` writes")
        if name in RETIRED_KEYS.get(kind_of(section), ()):
            continue
        if "value" in entry:
            check_key(section, name, path)
            yield section, name, entry
        else:
            yield from entries(entry, path, f"{section}.{name}".lstrip("."))


def sections(document: Mapping[str, Any], path: Path) -> dict[str, dict[str, Any]]:
    """`[gemm.hopper.bf16] compute = {value = ...}` as {"gemm.hopper.bf16": {"compute": Sourced}}."""
    table: dict[str, dict[str, Any]] = {}
    for section, key, entry in entries(document, path):
        table.setdefault(section, {})[key] = _number(entry, f"{section}.{key}", path)
    return table


def check_key(section: str, key: str, path: Path) -> None:
    """Refuse a number that its class does not have: the line offers its present name, or the nearest one."""
    keys = KEYS.get(kind_of(section), (key,))
    if key in keys:
        return
    if FORMER_KEYS.get(key) in keys:
        raise BadFile(path, f"{section}.{key}: renamed to {FORMER_KEYS[key]}")
    near = nearest(key, keys)
    offer = f"did you mean {' or '.join(near)}?" if near else f"wants one of {', '.join(keys)}"
    raise BadFile(path, f"{section}.{key}: no such number; {offer}")


def _number(entry: Mapping[str, Any], name: str, path: Path) -> Any:
    value, unit, key = entry["value"], entry.get("unit", ""), name.rpartition(".")[2]
    least, wants = 0.0, "a finite number that is not negative"
    if kind_of(name) == "interval":
        least, wants = 1.0, "a finite number of at least 1"
    elif kind_of(name) == "remainder":
        least, wants = LEAST, f"a factor of at least {LEAST}; it counts as {MOST} at most"
    elif key in ABOVE_ZERO:
        least, wants = math.ulp(0.0), "a finite number above 0"
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
        raise BadFile(path, f"{name}: got {value!r}; wants {wants}")
    if unit not in UNITS:
        raise BadFile(path, f"{name}: got unit {unit!r}; wants one of {', '.join(map(repr, UNITS))}")
    if entry.get("kind") == "measured":
        return known(float(value), name, unit, "measured", str(entry.get("source", path.name)), str(entry.get("date", "undated")))
    return known(float(value), name, unit, "fitted", f"{SOURCE}: {entry.get('meaning', '')}")


@functools.cache
def _name_by_chip(table: str) -> dict[str, str]:
    import tomllib

    document = tomllib.loads(files("headway").joinpath("data/families.toml").read_text(encoding="utf-8"))
    return {chip: name for name, chips in document[table].items() for chip in chips}


def family(chip: Chip) -> str:
    """Family of measured kernels that applies to a chip, or `other`."""
    return _name_by_chip("family").get(chip.like or chip.name, OTHER_FAMILY)


def platform(chip: Chip) -> str:
    """Platform of a chip as engine software distinguishes it, or `other`."""
    return _name_by_chip("platform").get(chip.like or chip.name, OTHER_FAMILY)


def kind_of_chip(name: str) -> str:
    """Kind of a chip of the catalogue: the family of its kernels where they were measured, else its platform."""
    return _name_by_chip("family").get(name) or _name_by_chip("platform").get(name, OTHER_FAMILY)


def chip_kind(chip: Chip) -> str:
    """Kind of a chip; of an edited one that of the chip it is like."""
    return kind_of_chip(chip.like or chip.name)


FITTED = "fitted: kernels of A100, H100, H200, B200; engines on published runs; docs/accuracy.md"
UNMEASURED = "its kernels were not measured; those of measured chips stand in, as shares of its datasheet"
FLAT = "the step models that are not fitted take one flat number for all kernels"
EFF_COMPUTE, EFF_MEMORY = default(0.7, "eff_compute", "", FLAT), default(0.8, "eff_memory", "", FLAT)
T0 = default(3e-6, "t0", "s", FLAT)
NONE, NO_TIME, NO_PAD = default(0, "none", "", FLAT), default(0.0, "none", "s", FLAT), default(0.0, "none", "token", FLAT)
NO_REMAINDER = known(1.0, "nothing left", "", "constant", "too few runs of the kind were measured, or the laws leave nothing of them")
WEIGHT_CLASSES = {"bf16": "bf16|fp16|fp32", "int8": "int8", "fp8": "fp8|mxfp8", "int4": "int4|nf4", "nvfp4": "nvfp4|fp4", "gguf": r"i?q\d"}
NO_GRAPHS = known(1, "uncaptured", "", "constant", "without graphs the host launches the kernels of every step")
SMOOTH = default(2, "norm", "", FLAT)
QUANTISED, QUANTISING = ("fp8", "nvfp4"), ("t0_s", "activation")
ACCUMULATED = "fp16acc"  # 16-bit accumulation: a faster rate of the same kernels
OLDER = {"early": "prompt_launch_s", "waiting": "step_overhead_s"}  # overheads of old engine versions, and the cost each adds to
EAGER = "eager"  # without graphs, by choice or as old engine versions: the host launches each kernel of every step
WIDENED = "weight_only"  # weights of 8 or 4 bits, arithmetic in 16 bits: kernels that differ by engine
AGEING = ("launch_factor", "step_overhead_s", "layer_overhead_s")  # costs of engines that fell over the years
OWN_KERNELS = ("llamacpp",)  # engines with matmuls of their own, of which none was measured alone; experts by the kernels of all matrices
OWN_MATMULS = known(3, "matmuls", "", "constant", "llama.cpp, ggml_mul_mat_id: gate, up and down of a token's experts, each a launch")
GROUPED_INSTRUCTIONS = ("hopper", "blackwell")  # families whose peak only matrix instructions of several warps reach
USUAL_CHIP = "a100_sxm_80"  # whose power per FLOP clocks are relative to
NO_COST_KEYS = ("weight_only_factor", "unpacking", "uncaptured", "prompt_latent_s", "decode_remainder", "prompt_remainder")  # else found
COST_KEYS = tuple(field.name for field in fields(EngineCost) if field.name not in NO_COST_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCounts:
    """Kernels per step that one chip runs, by class, and traits of the model that set their rates."""

    matmuls: Any
    wide: Any  # of the matmuls, those in 16 bits whatever the format of the weights
    beside: Any  # and those that start beside routed experts
    attentions: Any
    moes: Any
    elementwise: Any
    layers: Any
    scans: Any  # of the attentions, those that pass a state over a prompt in chunks
    launches: Any  # all kernels, for the flat step models
    depth: Any
    latent: bool
    index: bool  # an index scan picks the tokens of attention
    dense: tuple[int, int]  # (block, part) with most dense weights
    routed: tuple[int, int] | None
    head: Any  # elements of an attention head
    converted: bool  # routed experts were converted after training
    fused: bool  # activations are quantised in the preceding kernel, with fixed scales: weights were converted after training


def with_links(assumptions: Assumptions, chip: Chip, table: Efficiencies | None = None) -> Assumptions:
    """Assumptions with fitted link costs where the user gave none."""
    numbers, kind = table or efficiencies(chip), family(chip)
    keys = [name for name in LINK_KEYS if name != "alpha_host" and getattr(assumptions, name) is None]  # that one is no round: transport.py
    unset = {name: numbers.kernel("collective", kind, WIDE, name) for name in keys}
    return replace(assumptions, **unset) if unset else assumptions


def routing_skew(chip: Chip, assumptions: Assumptions, table: Efficiencies | None = None) -> Any:
    """Skew of routers as fitted; none in the step models that are not fitted, nor where the user states the imbalance."""
    if assumptions.overlap != "fitted" or assumptions.imbalance is not None:
        return NONE
    return (table or efficiencies(chip)).kernel("routing", family(chip), WIDE, "skew")


def basis(chip: Chip, assumptions: Assumptions) -> tuple[str, ...]:
    """Basis of expected times: fitted or not, one line per caveat."""
    if assumptions.overlap != "fitted":
        roofline = "; the roofline is the floor beside it" if assumptions.overlap == "full" else ""
        flat = f"the step model {assumptions.overlap!r} takes one flat efficiency for all kernels and a stated interval"
        return (f"unfitted: {flat}{roofline}",)
    if chip.efficiency is not None:
        return (f"{chip.name}: kernels by {chip.efficiency.parent.name}/{chip.efficiency.name}, fitted to it alone; engines: {FITTED}",)
    return (FITTED,) if family(chip) != OTHER_FAMILY else (FITTED, f"{chip.name}: {UNMEASURED}")


def borrowed_costs(chip: Chip) -> str:
    """Which fitted costs a hypothetical chip borrows, as part of a sentence; "" for a chip of the catalogue."""
    if not chip.hypothetical:
        return ""
    name = fold(chip.name)
    if chip.efficiency is not None:
        return f"{name} borrows engine costs fitted to A100, H100, H200 and B200"
    if chip.like and family(chip) != OTHER_FAMILY:
        return f"{name} borrows kernel, link and engine costs fitted to {family(chip)} chips such as {fold(chip.like)}"
    return f"{name} borrows kernel, link and engine costs fitted to A100, H100, H200 and B200"


def achieved_efficiency(
    kernels: KernelCounts,
    chip: Chip,
    formats: Formats,
    layout: Layout,
    assumptions: Assumptions,
    table: Efficiencies | None = None,
    backend: str = "",
    engine_share: Number = 1,
) -> Achieved:
    """Achieved rates of a compiled layout's kernels; one flat share for all kernels in the unfitted step models.

    `backend` is the engine whose expert kernels these are, by default the assumed engine; `engine_share` is the part of its own work in a
    step that it does.
    """
    usual = 1 if assumptions.offload == "none" else host_link_reached()
    host_link = usual if assumptions.eff_host is None else assumptions.eff_host
    if assumptions.overlap != "fitted":
        return replace(_flat(kernels, formats, assumptions), host_link=host_link)
    numbers = table or efficiencies(chip)
    bare = _fitted(kernels, chip, formats, assumptions.t0, numbers, expert_backend(backend or assumptions.engine, layout))
    lacks = (EAGER,) if assumptions.eager else ()
    engine = engine_cost(assumptions.engine, chip, numbers, form_of(formats, kernels.dense), lacks, weights=formats.labels[0])
    if engine_share != 1:
        engine = replace(engine, step_overhead_s=partial_work_s(engine.step_overhead_s, engine_share))
    if assumptions.t0 is not None:
        engine = replace(engine, launch_factor=1)  # the user's fixed cost replaces the launch factor too
    streaming_s = numbers.engine(assumptions.engine, platform(chip), "streaming_overhead_s")
    streamed = replace(engine, sequence_overhead_s=engine.sequence_overhead_s + streaming_s)
    served = with_engine(bare, streamed, kernels.layers, layout.tp, layout.pp)
    arithmetic = ("compute", "expert_compute", "decode_compute", "prefill_compute", "index_compute")
    compute = arithmetic if assumptions.eff_compute is not None else ()
    memory = ("memory", "expert_memory", "decode_memory") if assumptions.eff_memory is not None else ()
    shares = dict.fromkeys(compute, assumptions.eff_compute) | dict.fromkeys(memory, assumptions.eff_memory)
    fixed = {key: getattr(served, key) * assumptions.fixed for key in ("fixed", "expert_fixed", "prompted")}
    return replace(served, **shares, **fixed, host_link=host_link)


def engine_cost(
    name: str, chip: Chip, table: Efficiencies, form: str = WIDE, older: tuple[str, ...] = (), years: float = 0.0, weights: str = ""
) -> EngineCost:
    """Costs of an engine on a chip, with factors by platform.

    `older`: features that its version lacks, see OLDER; `years`: how much older it is than the newest engines measured; `weights`: the
    format of most weights as stored, for what measured runs take beyond the laws.
    """
    kind = platform(chip)
    costs = {key: table.engine(name, kind, key) for key in COST_KEYS}
    if "prompt_latent_s" in table.sections["engine.other"]:  # which a table fitted before it was counted lacks
        costs["prompt_latent_s"] = table.engine(name, kind, "prompt_latent_s")
    engine_numbers = EngineCost(weight_only_factor=1, **costs)
    if name == "none":
        return engine_numbers
    if form == WIDENED:  # every engine uses the measured library for other kernels
        engine_numbers = replace(engine_numbers, weight_only_factor=table.engine(name, kind, "weight_only_factor"))
    if years:
        growth = table.engine(name, kind, "yearly_growth")
        engine_numbers = replace(engine_numbers, **{key: aged(getattr(engine_numbers, key), growth, years) for key in AGEING})
    if EAGER in older:
        engine_numbers = replace(engine_numbers, uncaptured=NO_GRAPHS)
    for what in (what for what in older if what in OLDER):
        key = OLDER[what]
        engine_numbers = replace(engine_numbers, **{key: getattr(engine_numbers, key) + table.find(key, f"engine.{what}")})
    engine_numbers = replace(engine_numbers, **{key: getattr(engine_numbers, key) * table.platform(kind, key) for key in PLATFORM_KEYS})
    unmeasured, peak = name in OWN_KERNELS, chip.peak(ACCUMULATED) or chip.peak_bf16
    if (unmeasured or kind == "card") and chip.tdp is not None and peak is not None:  # what clocks leave of a peak
        usual, exponent = _usual_chip(), table.platform(kind, "power_exponent")
        share = clock_share(chip.tdp, peak, usual.need("tdp"), usual.need("peak_bf16"), exponent)
        engine_numbers = replace(engine_numbers, compute_factor=engine_numbers.compute_factor * share)
    if unmeasured and family(chip) in GROUPED_INSTRUCTIONS:  # and what only newer instructions reach
        share = table.engine(name, kind, "mma_share")
        engine_numbers = replace(engine_numbers, compute_factor=engine_numbers.compute_factor * share)
    if _name_by_chip("arithmetic").get(chip.like or chip.name) and "unpacking_flop" in table.sections.get(f"engine.{name}", {}):
        limit = limit_of_unpacking(chip, weights, table.engine(name, kind, "unpacking_flop"))
        engine_numbers = replace(engine_numbers, unpacking=limit)
    factors = {f"{quantity}_remainder": remainder(table, quantity, weights, name, chip) for quantity in REMAINDER_KEYS}
    return replace(engine_numbers, **factors)


def remainder(table: Efficiencies, quantity: str, weights: str, engine: str, chip: Chip) -> Any:
    """Measured time over that of the laws, by the format of most weights, the engine and the kind of chip; 1 where none was fitted."""
    numbers = _remainders(table, quantity, weights, engine, chip)
    return 1 if all(number is NO_REMAINDER for number in numbers) else remainder_factor(*numbers)


def _remainders(table: Efficiencies, quantity: str, weights: str, engine: str, chip: Chip) -> list[Any]:
    places = (f"remainder.weights.{weight_class(weights)}", f"remainder.engine.{engine}", f"remainder.chip.{chip_kind(chip)}")
    return [table.sections.get(place, {}).get(quantity, NO_REMAINDER) for place in places]


def remainder_note(chip: Chip, formats: Formats, assumptions: Assumptions) -> str:
    """What measured runs take beyond the laws, as one note; "" where the laws are left as they are."""
    if assumptions.overlap != "fitted" or assumptions.engine == "none":
        return ""
    numbers = [number for quantity in REMAINDER_KEYS
               for number in _remainders(efficiencies(chip), quantity, formats.labels[0], assumptions.engine, chip)]  # fmt: skip
    return "; ".join(number.source.removeprefix(f"{SOURCE}: ") for number in numbers if number != NO_REMAINDER)


def weight_class(stored: str) -> str:
    """Class of a stored format whose measured runs have a factor in common.

    >>> [weight_class(name) for name in ("fp16", "mxfp4", "int4_g128", "q4_k_m", "nvfp4")]
    ['bf16', 'mxfp4', 'int4', 'gguf', 'nvfp4']
    """
    return next((name for name, pattern in WEIGHT_CLASSES.items() if re.match(pattern, stored)), stored)


@functools.cache
def _usual_chip() -> Chip:
    return find_chip(USUAL_CHIP)


def with_engine(bare: Achieved, engine: EngineCost, layers: Number, tp: Number, pp: Number) -> Achieved:
    """Achieved rates of kernels in an engine, with its overheads; scalars or arrays."""
    overhead_s = engine_s(engine.step_overhead_s, layers, engine.layer_overhead_s, engine.split_overhead_s, tp, pp)
    memory = engine_reach(bare.memory, engine.memory_factor, engine.weight_only_factor)
    expert_memory = engine_reach(bare.expert_memory, engine.memory_factor, engine.expert_factor)
    if engine.unpacking is not UNLIMITED:
        memory = unpacked_reach(memory, engine.unpacking, bare.norm)
        expert_memory = unpacked_reach(expert_memory, engine.unpacking, bare.expert_norm)
    return replace(
        bare,
        compute=engine_reach(bare.compute, engine.compute_factor, engine.weight_only_factor),
        memory=memory,
        expert_compute=engine_reach(bare.expert_compute, engine.compute_factor, engine.expert_factor),
        expert_memory=expert_memory,
        expert_activation=engine_reach(bare.expert_activation, engine.memory_factor, engine.expert_factor),
        decode_compute=engine_reach(bare.decode_compute, engine.compute_factor, engine.attention_factor),
        decode_memory=engine_reach(bare.decode_memory, engine.memory_factor, engine.attention_factor),
        prefill_compute=engine_reach(bare.prefill_compute, engine.compute_factor, engine.attention_factor),
        index_compute=engine_reach(bare.index_compute, engine.compute_factor, engine.attention_factor),
        fixed=bare.fixed * engine.launch_factor + overhead_s,
        prompted=bare.prompted * engine.launch_factor,
        host_launch=engine.prompt_launch_s,
        host_routed=engine.prompt_routed_s,
        host_latent=engine.prompt_latent_s,
        captured=engine.captured_tokens,
        uncaptured=engine.uncaptured,
        decode_remainder=engine.decode_remainder,
        prompt_remainder=engine.prompt_remainder,
        sequence=engine.sequence_overhead_s,
    )


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
        prompted=NO_TIME, host_launch=NO_TIME, host_routed=NO_TIME, host_latent=NO_TIME, captured=NO_PAD, scan_chunk=NO_TIME, scan_heads=1,
        index_compute=compute,
    )  # fmt: skip


def _fitted(k: KernelCounts, chip: Chip, formats: Formats, user_t0: Second, table: Efficiencies, backend: str) -> Achieved:
    """Fitted numbers of one compiled layout for any engine; `user_t0` replaces the launch time of every kernel.

    `backend` is the engine whose kernels of routed experts, and scans of prompts where they were measured, these are.
    """
    number = functools.partial(table.kernel, family=family(chip))
    form = form_of(formats, k.dense)
    of_matmuls = form_of(formats, k.routed) if k.routed and backend in OWN_KERNELS else ""
    expert_kernels = _expert_kernels(formats, k, k.routed, backend, family(chip)) if k.routed else ""

    def matmul(key: str) -> Any:  # 8-bit and 4-bit fits include a kernel that quantises the input, absent when fused
        return number("gemm", form=WIDE if k.fused and form in QUANTISED and key in QUANTISING else form, key=key)

    def wide(key: str) -> Any:
        return number("gemm", form=WIDE, key=key)

    def expert(key: str) -> Any:
        if of_matmuls:
            return number("gemm", form=of_matmuls, key=key)
        return number("moe", form=expert_kernels, key=key) if k.routed else matmul(key)

    def decode(key: str) -> Any:
        return number("mla_decode" if k.latent else "decode", form="fp8" if formats.kv.bytes < 2 else WIDE, key=key)

    def prefill(key: str) -> Any:
        return number("mla_prefill" if k.latent else "prefill", form=WIDE, key=key)

    def scan(key: str) -> Any:
        return number("scan", form=f"{WIDE}.{backend}" if backend in BACKENDS else WIDE, key=key)

    def small(key: str) -> Any:
        return number("elementwise", form=WIDE, key=key)

    def t0(kernel: Callable[[str], Any]) -> Any:
        return kernel("t0_s") if user_t0 is None else user_t0

    stream: Any = NONE
    if "stream_bandwidth" in table.sections.get(f"decode.{OTHER_FAMILY}.{WIDE}", {}):  # which a table fitted before it was counted lacks
        stream = chip.need("hbm_bw") / decode("stream_bandwidth")
    packing: Any = NONE
    if "packing" in table.sections.get(f"gemm.{OTHER_FAMILY}.{WIDE}", {}):  # of a processor's library
        packing = matmul("packing")
    prompted = k.attentions * t0(prefill) if not k.scans else (k.attentions - k.scans) * t0(prefill) + k.scans * t0(scan)
    started = ((k.matmuls - k.wide - k.beside, matmul), (k.wide, wide), (k.attentions, decode), (k.elementwise, small))
    share = prefill("compute")  # lower for narrow heads; a latent's heads are wide
    return Achieved(
        compute=matmul("compute"), memory=matmul("memory"), activation=matmul("activation"), norm=matmul("norm"), packing=packing,
        expert_compute=expert("compute"), expert_memory=expert("memory"), expert_activation=expert("activation"),
        expert_norm=expert("norm"),
        decode_compute=decode("compute"), decode_memory=decode("memory"),
        block=decode("block_bytes") / chip.need("hbm_bw"), stream=stream,
        prefill_compute=share if k.latent else narrow_reach(share, k.head, prefill("narrow")), prefill_pad=prefill("pad_tokens"),
        elementwise=small("memory"),
        fixed=sum(count * t0(kernel) * k.depth for count, kernel in started),
        # no launches of an engine's: none of its costs of a launch scales it
        expert_fixed=(k.moes * OWN_MATMULS if of_matmuls else k.moes) * t0(expert) * k.depth if k.routed else NO_TIME,
        sequence=NO_TIME, prompted=prompted * k.depth,
        scan_chunk=scan("chunk_s") if k.scans else NO_TIME, scan_heads=scan("heads") if k.scans else 1,
        index_compute=kernel_rate("index_scores", family(chip), "compute") if k.index else 1,
    )  # fmt: skip


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


def _expert_kernels(formats: Formats, kernels: KernelCounts, part: tuple[int, int], backend: str, kind: str) -> str:
    (block, index), dense = part, kernels.dense
    mixed = formats.weights[dense[0]][dense[1]].bytes == 1
    return expert_form(form_of(formats, part), formats.weights[block][index].name, kernels.converted, backend, kind, mixed)


def dense_part(formats: Formats, blocks: tuple[Any, ...]) -> tuple[tuple[int, int], tuple[int, int] | None]:
    """(block, part) with most dense weights, and (block, part) with most routed weights."""
    last = len(blocks) - 1
    routed = main_part(blocks) if blocks[last].experts else None
    if routed is not None:
        return (last, 0), routed
    return main_part(blocks), None
