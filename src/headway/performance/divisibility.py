"""Dimensions of a model that chips split, and which splits serving engines load: whole heads, whole widths, whole blocks of the format.

One table for all engines: `layout.illegal` asks it for every verb, launch lines for one engine. Sources: docs/launch.md.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

GROUPED = re.compile(r"int\d_g(\d+)")
SCALED = {"nvfp4": 16, "mxfp8": 32}  # mxfp4 is padded by the engines
BLOCK_SCALED = "fp8"  # whose files may keep a scale for a square of weights


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDimension:
    """One dimension that tensor parallelism, or the chips that share an expert, split."""

    what: str
    size: int
    expert: bool = False  # split by the chips that share an expert, not by tp
    copied: bool = False  # of which chips beyond its size hold copies
    block: int = 1  # units that must stay together: a head is of several, a format scales a block

    def why(self, degree: int) -> str:
        """Why engines do not split the dimension to this degree, or ""."""
        chips = f"{degree} chips that share an expert do" if self.expert else f"tp {degree} does"
        if self.copied and degree > self.size:
            return f"{chips} not hold whole copies of {self.size} {self.what}" if degree % self.size else ""
        if self.size % degree:
            return f"{chips} not divide {f'{self.size} {self.what}' if self.copied else f'{self.what} {self.size}'}"
        share = self.size // degree
        if share % self.block:
            return f"{chips} not split {self.what} {self.size} in whole blocks of {self.block} that share a scale: {share}"
        return ""


def dimensions(blocks: Iterable[Any], weights: Sequence[str]) -> tuple[SplitDimension, ...]:
    """Dimensions of a model's compiled blocks, without its query heads, in each format of `weights`; "" is the stored one."""
    pairs = itertools.product((block for block in blocks if not block.is_stated), weights)
    return tuple(dict.fromkeys(part for block, dtype in pairs for part in (*_of_mixer(block, dtype), *_of_ffn(block, dtype))))


def _of_mixer(block: Any, weights: str) -> Iterator[SplitDimension]:
    """KV heads, and the widths of queries and outputs, whose shares are whole blocks of the format."""
    if not any(span.what == "kv" for span in block.spans):
        return
    if not block.latent:
        yield SplitDimension(what="KV heads", size=int(block.kv_heads), copied=True)
    size = _block(block.mixer_dtype, block.scale_block, weights)
    for tensor in (tensor for tensor in block.tensors.mixer if tensor.kind == "output" and size > 1):
        yield SplitDimension(what="attention's output width", size=int(tensor.width), block=size)


def _of_ffn(block: Any, weights: str) -> Iterator[SplitDimension]:
    """Widths of the FFN that every token uses, shared experts as one, and of a routed expert."""
    for tensors, dtype, expert in ((block.tensors.ffn, block.ffn_dtype, False), (block.tensors.expert, block.expert_dtype, True)):
        for tensor in (tensor for tensor in tensors if tensor.kind == "down"):
            copies = int(tensor.dims[0])
            yield SplitDimension(
                what="an expert's width" if expert else "the FFN's width", size=copies * int(tensor.width), expert=expert,
                block=_block(dtype, block.scale_block, weights),
            )  # fmt: skip


def _block(stored: str, scale_block: int, weights: str) -> int:
    """Weights along a side of what shares a scale in a format; 1 where engines split anywhere."""
    dtype = weights or stored
    if dtype == BLOCK_SCALED:
        return scale_block if dtype == stored and scale_block else 1
    match = GROUPED.match(dtype)
    return int(match[1]) if match else SCALED.get(dtype, 1)
