"""Layouts: how a model is spread over chips, which layouts are legal, and why a layout is not."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

from headway.core.errors import BadValue, IllegalLayout
from headway.core.quantity import default
from headway.core.schema import RARE, Field
from headway.laws.step import layer_terms

if TYPE_CHECKING:
    from headway.models.work import LayerWork

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


def dimensions(blocks: Iterable[LayerWork], weights: Sequence[str]) -> tuple[SplitDimension, ...]:
    """Dimensions of a model's compiled blocks, without its query heads, in each format of `weights`; "" is the stored one.

    KV heads, and the widths of outputs, whose shares are whole blocks of the format; the widths of the FFN that every token uses, shared
    experts as one, and of a routed expert.
    """
    parts: dict[SplitDimension, None] = {}
    for block, dtype in itertools.product((block for block in blocks if not block.is_stated), weights):
        if any(span.what == "kv" for span in block.spans):
            if not block.latent:
                parts[SplitDimension(what="KV heads", size=int(block.kv_heads), copied=True)] = None
            size = _block(block.mixer_dtype, block.scale_block, dtype)
            for tensor in (tensor for tensor in block.tensors.mixer if tensor.kind == "output" and size > 1):
                parts[SplitDimension(what="attention's output width", size=int(tensor.width), block=size)] = None
        for tensors, stored, expert in ((block.tensors.ffn, block.ffn_dtype, False), (block.tensors.expert, block.expert_dtype, True)):
            size = _block(stored, block.scale_block, dtype)
            for tensor in (tensor for tensor in tensors if tensor.kind == "down"):
                what, width = "an expert's width" if expert else "the FFN's width", int(tensor.dims[0]) * int(tensor.width)
                parts[SplitDimension(what=what, size=width, expert=expert, block=size)] = None
    return tuple(parts)


def _block(stored: str, scale_block: int, weights: str) -> int:
    """Weights along a side of what shares a scale in a format; 1 where engines split anywhere."""
    dtype = weights or stored
    if dtype == BLOCK_SCALED:
        return scale_block if dtype == stored and scale_block else 1
    match = GROUPED.match(dtype)
    return int(match[1]) if match else SCALED.get(dtype, 1)


MOST_LAYOUTS = 100_000


def _degree(help: str) -> Field:
    return Field(integer=True, low=1, open_low=False, high=1e7, help=help)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Degrees of parallelism: chips per replica = tp*cp*dp*pp; ep divides tp*cp*dp and re-uses those chips."""

    tp: Annotated[Any, _degree("degree of tensor parallelism")] = 1
    ep: Annotated[Any, _degree("degree of expert parallelism (divides tp*cp*dp)")] = 1
    dp: Annotated[Any, _degree("degree of attention data parallelism within a replica; without routed experts as many copies")] = 1
    pp: Annotated[Any, _degree("pipeline stages")] = 1
    cp: Annotated[Any, _degree("degree of context parallelism")] = 1
    replicas: Annotated[Any, _degree("independent replicas")] = 1
    redundant: Annotated[Any, Field(integer=True, open_low=False, high=1e7, help="copies of busy routed experts, in all"), RARE] = 0

    @property
    def chips(self) -> Any:
        """Chips of a replica."""
        return layer_terms.replica_chips(self.tp, self.cp, self.dp, self.pp)

    def __str__(self) -> str:
        parts = [f"{field.name}={getattr(self, field.name)}" for field in fields(self) if field.name != "replicas"]
        return " ".join(part for part in parts if not part.endswith(("=1", "redundant=0"))) or "tp=1"


NAMES = tuple(field.name for field in fields(Layout))
UNASKED = {name: default(1, name, "", "one way unless asked") for name in NAMES}
UNASKED["redundant"] = default(0, "redundant", "", "no copies of experts unless asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Numbers of a model that a layout has to divide."""

    heads: tuple[Any, ...]  # one per kind of block that has heads
    experts: Any  # fewest routed experts of any MoE block; 0 for a dense model
    layers: Any
    dimensions: tuple[SplitDimension, ...] = ()  # that engines split in whole heads and blocks


def shape(blocks: Iterable[LayerWork], *weights: str) -> ModelShape:
    """Shape of a model's compiled blocks, in the stored format of weights or in all that are named ("": as stored)."""
    blocks = tuple(blocks)
    routed = [block.experts for block in blocks if block.experts]
    return ModelShape(
        heads=tuple(block.heads for block in blocks if block.mixer_matmuls),
        experts=min(routed) if routed else 0,
        layers=sum(block.count for block in blocks),
        dimensions=dimensions(blocks, weights or ("",)),
    )


def illegal(layout: Layout, shape: ModelShape) -> str:
    """The rule that a layout breaks, or ""."""
    why = tensor_why(int(layout.tp), shape)
    if why:
        return why
    ranks = layout.tp * layout.cp * layout.dp
    if shape.experts == 0 and layout.ep > 1:
        return f"ep {layout.ep} needs routed experts, and the model has none"
    if shape.experts == 0 and layout.redundant:
        return "redundant experts need routed experts, and the model has none"
    if layout.ep > max(shape.experts + layout.redundant, 1):
        return f"ep {layout.ep} is more than the {shape.experts + layout.redundant} routed experts"
    if ranks % layout.ep:
        return f"ep {layout.ep} does not divide tp*cp*dp = {ranks}"
    if layout.pp > shape.layers:
        return f"pp {layout.pp} is more than the {shape.layers} layers"
    return expert_why(int(ranks // layout.ep), shape)


def tensor_why(tp: int, shape: ModelShape) -> str:
    """Why engines do not split a model over `tp` chips, whatever the other degrees, or ""."""
    for heads in shape.heads:
        if heads % tp:
            divisors = ", ".join(str(n) for n in range(1, min(heads, 1024) + 1) if heads % n == 0)
            return f"tp {tp} does not divide {heads} attention heads; divisors: {divisors}"
    return next((why for part in shape.dimensions if not part.expert and (why := part.why(tp))), "")


def expert_why(chips: int, shape: ModelShape) -> str:
    """Why engines do not split each routed expert over so many chips, or ""."""
    why = next((why for part in shape.dimensions if part.expert and (why := part.why(chips))), "")
    return f"{why} (tp*cp*dp/ep = {chips}): more ep" if why else ""


def copies_note(layouts: Iterable[Layout], blocks: Iterable[LayerWork]) -> str:
    """The note on data-parallel ranks that are copies, or ""."""
    ranks = max(int(layout.dp) for layout in layouts)
    if ranks == 1 or any(block.experts for block in blocks):
        return ""
    return f"dp {ranks} of a model without routed experts is {ranks} copies, as engines run it: replicas, which share the batch"


UNHALVED = "several chips in a replica and at least 2 sequences on each rank: one sequence cannot be halved, one chip exchanges nothing"


def check(layout: Layout, shape: ModelShape) -> Layout:
    """The layout if legal, else IllegalLayout."""
    why = illegal(layout, shape)
    if why:
        raise IllegalLayout(layout, why)
    return layout


def expand(shape: ModelShape, axes: Mapping[str, Any]) -> tuple[list[Layout], tuple[str, ...]]:
    """Legal layouts of a product of degrees, and a note on the illegal ones; a single illegal layout is an error."""
    values = [axes.get(name, UNASKED[name]) for name in NAMES]
    lists = [tuple(value) if isinstance(value, tuple | list) else (value,) for value in values]
    count = 1
    for members in lists:
        count *= len(members)
    if count > MOST_LAYOUTS:
        raise BadValue("layout", f"{count} combinations", f"at most {MOST_LAYOUTS}")
    layouts = [Layout(**dict(zip(NAMES, combo, strict=True))) for combo in itertools.product(*lists)]
    reasons = [illegal(layout, shape) for layout in layouts]
    legal = [layout for layout, why in zip(layouts, reasons, strict=True) if not why]
    if not legal:
        raise IllegalLayout(layouts[0], reasons[0] + (f" (nor is any of the other {count - 1} layouts legal)" if count > 1 else ""))
    first = next((f"{layout}: {why}" for layout, why in zip(layouts, reasons, strict=True) if why), "")
    illegal_count = count - len(legal)
    return legal, (f"dropped {illegal_count} of {count} layouts as illegal, such as {first}",) if illegal_count else ()
