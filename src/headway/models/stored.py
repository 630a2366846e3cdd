"""Number format of each part of a model's weights: as the checkpoint stores it, or as the user chose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.models.gguf import gguf_bytes, is_gguf
from headway.models.precision import Format, formats
from headway.models.work import ModelWork

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
    """Formats of the GGUF file `name`, whose parts are mixtures of block types."""
    sizes, peak = gguf_bytes(work, name), formats()[name].peak

    def of(size: Any) -> Format:
        return Format(name=name, bytes=size, peak=peak)

    by_hand = formats()[work.head_dtype] if work.head_dtype else None
    return StoredFormats(
        blocks=tuple(tuple(of(size) for size in row) for row in sizes.blocks), embedding=by_hand or of(sizes.embedding),
        head=by_hand or of(sizes.head), vectors=of(sizes.vectors),
    )  # fmt: skip
