"""Number formats: what the user chooses, and what each format weighs and runs at."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from typing import Annotated, Any

from headway.core import catalog
from headway.core.quantity import known
from headway.core.schema import RARE, Field
from headway.laws.architecture.params import grouped_bytes

WEIGHTS = ("bf16", "fp16", "fp8", "mxfp8", "int8", "int4", "fp4", "mxfp4", "nvfp4", "nf4", "int4_g128", "int4_g64", "int4_g32",
           "q2_k", "q2_k_s", "q3_k_s", "q3_k_m", "q3_k_l", "q4_0", "q4_1", "q4_k_s", "q4_k_m", "q5_0", "q5_1", "q5_k_s", "q5_k_m",
           "q6_k", "q8_0", "mxfp4_moe",
           "iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq2_m", "iq3_xxs", "iq3_xs", "iq3_s", "iq3_m", "iq4_xs", "iq4_nl")  # fmt: skip
GROUPED = re.compile(r"int([2-8])(?:_g(\d{1,6})_(sym|asym))?")
SCALE_BITS = 16
CACHE = ("bf16", "fp16", "fp8", "int8", "int4", "fp4")
COMPUTE = ("bf16", "fp16", "fp16acc", "fp8", "int8", "fp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Formats of weights, KV cache and arithmetic; empty means as the checkpoint is stored."""

    weights: Annotated[
        str, Field(choices=("", *WEIGHTS), help="format of projections, FFN, experts; embedding and head as stored, or as the GGUF file")
    ] = ""
    kv: Annotated[str, Field(choices=("", *CACHE), help="format of the KV cache (default bf16)")] = ""
    compute: Annotated[
        str, Field(choices=("", *COMPUTE), help="format of the matrix multiplications (default that of the weights)"), RARE
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One number format."""

    name: str
    bytes: Any
    peak: str  # which of a chip's peaks a multiplication in this format runs at


class FormatTable(dict[str, Format]):
    """Every format by name; integers in groups that share a 16-bit scale, such as `int4_g64_sym`, are known by their name."""

    def __missing__(self, name: str) -> Format:
        """An integer format by its bits, its group, and whether a group has a zero point of as many bits (`_asym`)."""
        match = GROUPED.fullmatch(name)
        if match is None:
            raise KeyError(name)
        bits, group = int(match[1]), int(match[2] or 0)
        zero, text = bits * (match[3] == "asym"), f"{bits}-bit integers"
        if group:
            text += f", a 16-bit scale{' and a zero point' if zero else ''} per {group}"
        value = float(grouped_bytes(bits, SCALE_BITS if group else 0, zero, group or 1))
        self[name] = Format(name=name, bytes=known(value, f"{name}.bytes", "byte", "constant", text), peak="bf16")
        return self[name]


@functools.cache
def formats() -> FormatTable:
    """Every format by name."""
    table = catalog.read(catalog.PACKAGED / "dtypes.toml")
    return FormatTable({
        name: Format(
            name=name,
            bytes=known(row["bytes"]["value"], f"{name}.bytes", "byte", row["bytes"]["kind"], row["bytes"]["source"], row["bytes"]["date"]),
            peak=row["peak"],
        )
        for name, row in table.items()
    })  # fmt: skip


def cache_format(name: str) -> Format:
    """Format of a KV cache, "" the default; engines keep one of 4-bit floats as nvfp4, with a scale per 16 elements.

    >>> float(cache_format("fp4").bytes), float(cache_format("").bytes)
    (0.5625, 2.0)
    """
    stored = formats()["nvfp4" if name == "fp4" else name or "bf16"]
    return replace(stored, name=name or stored.name)
