"""Number format of each part of a model's weights: as the checkpoint stores it, or as the user chose.

llama.cpp gives each kind of tensor of a GGUF file, and some layers, a type of their own (data/gguf.toml).
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from headway.core.quantity import known
from headway.laws.architecture.params import block_bytes, mean_bytes, vector_params
from headway.models.attention import Tensor
from headway.models.precision import Format, formats
from headway.models.work import LayerWork, ModelWork

SOURCE = "llama.cpp src/llama-quant.cpp and ggml-common.h: types of the tensors, by kind and layer"
EIGHT_EXPERTS = 8  # Mixtral, whose attention is small beside its experts
BIG_LLAMA_LAYERS = 80  # llama.cpp's LLM_TYPE_70B
CONDITIONS: dict[str, Callable[[int, int, bool], bool]] = {
    "all": lambda i, n, grouped: True,
    "first2": lambda i, n, grouped: i < 2,
    "first4": lambda i, n, grouped: i < 4,
    "eighth": lambda i, n, grouped: i < n // 8,
    "sixteenth": lambda i, n, grouped: i < n // 16,
    "middle": lambda i, n, grouped: n // 8 <= i < 7 * n // 8,
    "more": lambda i, n, grouped: i < n // 8 or i >= 7 * n // 8 or (i - n // 8) % 3 == 2,
    "gqa": lambda i, n, grouped: grouped,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufBytes:
    """Bytes per parameter of a GGUF file: of mixer, FFN and routed experts by block, of the embedding and of the head."""

    blocks: tuple[tuple[Any, Any, Any], ...]
    embedding: Any
    head: Any
    vectors: Any  # norms and biases


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(files("headway").joinpath("data/gguf.toml").read_text(encoding="utf-8"))


def is_gguf(name: str) -> bool:
    """Whether a number format is the name of a GGUF file."""
    return name in _document()["recipes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file of one name of one model."""

    recipe: dict[str, Any]
    layers: int
    grouped: bool  # four and more query heads to a KV head, or four and more experts in the smallest files
    eight_experts: bool
    big_llama: bool
    fused: bool  # query, key and value are one matrix

    def type_of(self, tensor: Tensor, layer: int) -> str:
        """Block type of a tensor in a layer."""
        if tensor.kind == "router":
            return "f32"
        return fitting(self._mixed_type(tensor.kind, layer), int(tensor.width))

    def _mixed_type(self, kind: str, layer: int) -> str:
        kind = "values" if self.fused and kind in ("query", "key") else kind
        if self.eight_experts and kind in ("key", "values"):
            return "q8_0"
        if self.eight_experts and kind == "output" and "eight_experts" in self.recipe:
            return self.recipe["eight_experts"]
        rules = self.recipe.get(kind, ())
        name = next((name for when, name in rules if CONDITIONS[when](layer, self.layers, self.grouped)), self.recipe["base"])
        return "q5_k" if kind == "values" and self.big_llama and name in ("q3_k", "q4_k") else name

    def part(self, tensors: Sequence[Tensor], params: Any, first: int, count: int) -> Any:
        """Mean bytes per parameter of one part of `count` layers from the layer `first` on."""
        rest = float(params) - sum(_size(tensor) for tensor in tensors)
        sizes = [(_size(tensor), _bytes(self.type_of(tensor, layer))) for tensor in tensors for layer in range(first, first + count)]
        sizes.append((max(rest, 0.0) * count, _bytes(self.recipe["base"])))
        if not float(params):
            return _bytes(self.recipe["base"])
        value = mean_bytes(tuple(size for size, _ in sizes), tuple(width for _, width in sizes))
        return known(float(value), "bytes per parameter", "byte", "derived", SOURCE)


def _size(tensor: Tensor) -> float:
    return float(vector_params((tensor.dims,)))


def fitting(name: str, width: int) -> str:
    """The block type, or the type that llama.cpp falls back to where its block does not divide a row.

    >>> fitting("q4_k", 4096), fitting("q4_k", 896), fitting("q4_k", 100)
    ('q4_k', 'q5_0', 'f16')
    """
    document = _document()
    if width % document["types"][name][1] == 0:
        return name
    smaller = document["fallbacks"].get(name, "f16")
    return smaller if width % document["types"][smaller][1] == 0 else "f16"


@functools.cache
def _bytes(name: str) -> Any:
    """Bytes per weight of a block type."""
    size, weights = _document()["types"][name]
    source = f"ggml block_{name}: {size} bytes per {weights} weights"
    return known(float(block_bytes(size, weights)), f"{name}.bytes", "byte", "constant", source)


def gguf_bytes(work: ModelWork, name: str) -> GgufBytes:
    """Bytes per parameter of the file `name` of a model. Blocks count as if they came one after the other in the model."""
    file = _file(work, name)
    routed = replace(file, recipe={"base": file.recipe["expert"]}) if "expert" in file.recipe else file
    rows, first = [], 0
    for block in work.blocks:
        count = int(block.count)
        parts = (
            (file, block.tensors.mixer, block.mixer_params), (file, block.tensors.ffn, block.dense_ffn_params),
            (routed, block.tensors.expert, block.expert_params),
        )  # fmt: skip
        mixer, ffn, expert = (source.part(tensors, params, first, count) for source, tensors, params in parts)
        rows.append((mixer, ffn, expert))
        first += count
    recipe, width = file.recipe, int(work.hidden)
    head = recipe.get("head", "q6_k") if fitting(recipe["base"], width) == recipe["base"] else "q8_0"
    table = head if not work.head_params else recipe.get("embedding", recipe["base"])
    return GgufBytes(blocks=tuple(rows), embedding=_bytes(fitting(table, width)), head=_bytes(fitting(head, width)), vectors=_bytes("f32"))


def _file(work: ModelWork, name: str) -> _File:
    experts, layers = max(int(block.experts) for block in work.blocks), int(work.layers)
    sharing = max(_query_heads_per_kv_head(block) for block in work.blocks)
    recipe = _document()["recipes"][name]
    return _File(
        recipe=recipe, layers=layers, grouped=sharing >= 4 or (experts >= 4 and recipe["base"][:3] in ("iq1", "iq2")),
        eight_experts=experts == EIGHT_EXPERTS, fused=work.fused_qkv,
        big_llama=layers == BIG_LLAMA_LAYERS and not experts and sharing > 1,
    )  # fmt: skip


def _query_heads_per_kv_head(block: LayerWork) -> float:
    return float(block.heads) / float(block.kv_heads) if block.tensors.mixer and len(block.tensors.mixer) > 1 else 1.0


PARTS = ("mixer", "ffn", "expert")  # parts of a block whose weights may differ in format


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFormats:
    """Formats of mixer, FFN and routed experts by block, of embedding and head, and of vectors such as norms."""

    blocks: tuple[tuple[Format, ...], ...]
    embedding: Format
    head: Format
    vectors: Format


def stored_formats(work: ModelWork, weights: str = "") -> StoredFormats:
    """Formats of all parts; `weights` in place of the checkpoint's for all but embedding and head, which GGUF files convert too."""
    table = formats()
    names = [tuple(weights or getattr(block, f"{part}_dtype") for part in PARTS) for block in work.blocks]
    if all(is_gguf(name) for row in names for name in row) and len({name for row in names for name in row}) == 1:
        return _gguf(work, names[0][0])
    head = table[work.head_dtype or work.embedding_dtype]
    blocks = tuple(tuple(table[name] for name in row) for row in names)
    return StoredFormats(blocks=blocks, embedding=table[work.embedding_dtype], head=head, vectors=table["bf16"])


def _gguf(work: ModelWork, name: str) -> StoredFormats:
    """Formats of the GGUF file `name`, a mixture of block types; where experts have one of their own, each part under its name."""
    sizes, recipe = gguf_bytes(work, name), _document()["recipes"][name]
    rest, experts = (recipe["base"], recipe["expert"]) if "expert" in recipe else (name, name)

    def of(size: Any, form: str = rest) -> Format:
        return Format(name=form, bytes=size, peak=formats()[form].peak)

    by_hand = formats()[work.head_dtype] if work.head_dtype else None
    return StoredFormats(
        blocks=tuple((of(mixer), of(ffn), of(expert, experts)) for mixer, ffn, expert in sizes.blocks),
        embedding=by_hand or of(sizes.embedding),
        head=by_hand or of(sizes.head), vectors=of(sizes.vectors),
    )  # fmt: skip
