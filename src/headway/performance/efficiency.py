"""Measured efficiency of kernels and engines: numbers of data/efficiency.toml, and those that apply to a chip and a format.

A number is looked up under its class, the chip's family and the format of the arithmetic; unmeasured numbers fall back to the
family `other` and to bf16, in that order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from headway.core import catalog
from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import BadFile, MissingFact, nearest
from headway.core.quantity import known
from headway.hardware.chip import Chip

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp", "other", "none")  # none: kernels without an engine
OTHER_FAMILY, WIDE = "other", "bf16"
FILE = "efficiency.toml"
ALONE = ("engine", "platform", "interval", "training")  # each number applies by itself; a file states all numbers of a kernel class or none
UNITS = ("", "s", "byte", "token")
ABOVE_ZERO = (
    "compute", "memory", "activation", "norm", "eff_network", "eff_in_switch", "eff_exchange", "eff_out", "compute_factor", "memory_factor",
    "attention_factor", "expert_factor", "weight_only_factor", "step_budget_tokens", "max_sequences", "usable_hbm_factor",
    "chunk_s", "heads",
)  # fmt: skip
ENGINE_KEYS = (
    "launch_factor", "step_overhead_s", "layer_overhead_s", "split_overhead_s", "sequence_overhead_s", "streaming_overhead_s",
    "compute_factor", "memory_factor", "weight_only_factor", "attention_factor", "expert_factor", "request_overhead_s", "prompt_launch_s",
    "prompt_routed_s", "captured_tokens",
    "synchronised_share", "concurrent_prompts", "step_budget_tokens", "chunked_prefill", "reserved_output_share", "max_sequences",
    "pipeline_overlap_share", "usable_hbm_factor", "yearly_growth",
    "mma_share", "start_share", "first_round_share",
)  # fmt: skip
PLATFORM_KEYS = ("compute_factor", "memory_factor")
MATMUL_KEYS = ("t0_s", "compute", "memory", "activation", "norm")
DECODE_KEYS = ("t0_s", "compute", "memory", "block_bytes")
PREFILL_KEYS = ("t0_s", "compute", "pad_tokens")
LINK_KEYS = (
    "alpha", "alpha_host", "alpha_out", "alpha_exchange", "alpha_exchange_out", "eff_network", "eff_in_switch", "eff_exchange", "eff_out",
)  # fmt: skip
KEYS = {  # the numbers of each class: a file may state no others
    "engine": ENGINE_KEYS, "platform": (*PLATFORM_KEYS, "power_exponent"), "gemm": MATMUL_KEYS, "moe": MATMUL_KEYS,
    "decode": DECODE_KEYS, "mla_decode": DECODE_KEYS, "prefill": (*PREFILL_KEYS, "narrow"), "mla_prefill": PREFILL_KEYS,
    "scan": ("t0_s", "chunk_s", "heads"), "elementwise": ("t0_s", "memory"), "routing": ("skew",), "collective": LINK_KEYS,
    "interval": (
        "decode", "prefill", "tpot", "ttft", "offline", "unmeasured", "foreign", "experts", "limited", "guessed", "queued",
    ),
}  # fmt: skip
KERNELS = tuple(kind for kind in KEYS if kind not in ALONE)  # classes of kernels
FORMER_KEYS = {  # names that stated no unit, for files written when they were in use
    "launch": "launch_factor", "step": "step_overhead_s", "layer": "layer_overhead_s", "split": "split_overhead_s",
    "sequence": "sequence_overhead_s", "stream": "streaming_overhead_s", "compute": "compute_factor", "memory": "memory_factor",
    "weight_only": "weight_only_factor", "attention": "attention_factor", "expert": "expert_factor", "request": "request_overhead_s",
    "together": "synchronised_share", "company": "concurrent_prompts", "budget": "step_budget_tokens", "mixed": "chunked_prefill",
    "reserve": "reserved_output_share", "limit": "max_sequences", "pipeline": "pipeline_overlap_share", "hbm": "usable_hbm_factor",
    "t0": "t0_s", "block": "block_bytes", "pad": "pad_tokens",
}  # fmt: skip
SOURCE = "data/efficiency.toml, fitted; docs/accuracy.md"


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


def efficiencies() -> Efficiencies:
    """Shipped numbers, overridden by catalogue folders ($HEADWAY_CATALOG, the user's) that have an efficiency file."""
    return laid(fitted_files(default_catalog(), FILE))


def fitted_files(folders: Catalog, name: str) -> tuple[Path, ...]:
    """Files of fitted numbers in the folders of a catalogue, the user's first."""
    return tuple(path for root in folders.roots if (path := root / name).is_file())


@functools.cache
def laid(paths: tuple[Path, ...]) -> Efficiencies:
    """Numbers of several files, earlier files first."""
    table: dict[str, dict[str, Any]] = {}
    for path in reversed(paths):
        file_sections = sections(catalog.read(path), path)
        complete_kinds = {kind_of(section) for section in file_sections} - {*ALONE}
        table = {section: numbers for section, numbers in table.items() if kind_of(section) not in complete_kinds}
        table |= {section: table.get(section, {}) | numbers for section, numbers in file_sections.items()}
    return Efficiencies(table)


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
    elif key in ABOVE_ZERO:
        least, wants = math.ulp(0.0), "a finite number above 0"
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
        raise BadFile(path, f"{name}: got {value!r}; wants {wants}")
    if unit not in UNITS:
        raise BadFile(path, f"{name}: got unit {unit!r}; wants one of {', '.join(map(repr, UNITS))}")
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


def foreign(chip: Chip) -> bool:
    """Whether engines were first written for other kinds of chips."""
    return platform(chip) not in ("datacenter", "card")
