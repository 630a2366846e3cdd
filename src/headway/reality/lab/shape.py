"""Sizes of the lab's decoder, and the same decoder as headway's model, so that the laws of every verb predict its step."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from headway.core.errors import BadValue
from headway.core.quantity import known
from headway.core.schema import Field
from headway.models.attention.grouped_query import Attention
from headway.models.model import Block, Dense, Model, MoE, StoredPrecision, Vector

SOURCE = "shape of the lab's decoder"
GATED = known(3, "matrices", "", "constant", "up, gate and down")


def _size(high: int, text: str, low: int = 1) -> Field:
    return Field(integer=True, low=low, open_low=False, high=high, help=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabShape:
    """Sizes of a decoder: grouped-query attention, then routed experts, a shared expert, or both; without experts it is dense.

    By default its weights lie far past the caches, and are read in rows long enough for a library to read them at full speed.
    """

    layers: Annotated[int, _size(256, "layers of the decoder")] = 2
    hidden: Annotated[int, _size(65536, "width of the decoder")] = 1024
    heads: Annotated[int, _size(1024, "query heads")] = 16
    kv_heads: Annotated[int, _size(1024, "KV heads, which divide the query heads")] = 4
    head_dim: Annotated[int, _size(1024, "width of a head, an even number")] = 64
    experts: Annotated[int, _size(4096, "routed experts of a layer; 0: every token uses the shared expert alone", 0)] = 32
    per_token: Annotated[int, _size(4096, "routed experts of one token")] = 2
    expert_width: Annotated[int, _size(65536, "inner width of a routed expert")] = 384
    shared_width: Annotated[int, _size(65536, "inner width of the shared expert; 0: none", 0)] = 512
    vocab: Annotated[int, _size(1_000_000, "tokens that there are", 2)] = 2048

    def check(self) -> None:
        """Raise BadValue for sizes that are no decoder."""
        if self.heads % self.kv_heads:
            raise BadValue("--kv-heads", self.kv_heads, f"a divisor of the {self.heads} query heads")
        if self.head_dim % 2:
            raise BadValue("--head-dim", self.head_dim, "an even number, whose halves are rotated")
        if self.experts and self.per_token > self.experts:
            raise BadValue("--per-token", self.per_token, f"at most the {self.experts} experts")
        if not self.experts and not self.shared_width:
            raise BadValue("--shared-width", self.shared_width, "a width, where there are no experts")


SIZES = tuple(field.name for field in fields(LabShape))


def model_of(shape: LabShape) -> Model:
    """The decoder as headway's model, weights and cache in 32 bits.

    >>> from headway.models.totals import active_params, kv_bytes_per_token, total_params
    >>> small = model_of(LabShape(layers=1, hidden=8, heads=2, kv_heads=1, head_dim=4, experts=4, per_token=1, vocab=10))
    >>> int(total_params(small)) - int(active_params(small)) == 3 * (3 * 8 * 384)  # three experts of four rest
    True
    >>> float(kv_bytes_per_token(small, 4))  # a key and a value of 4 numbers of 4 bytes
    32.0
    """

    def size(name: str) -> Any:
        return known(getattr(shape, name), name, "", "input", SOURCE)

    hidden = size("hidden")
    attention = Attention(
        hidden=hidden, heads=size("heads"), kv_heads=size("kv_heads"), head_dim=size("head_dim"), value_dim=size("head_dim")
    )
    ffn: Dense | MoE = Dense(hidden=hidden, intermediate=size("shared_width"), matrices=GATED)
    if shape.experts:
        ffn = MoE(
            hidden=hidden, experts=size("experts"), per_token=size("per_token"), intermediate=size("expert_width"), matrices=GATED,
            shared_experts=1 if shape.shared_width else 0, shared_intermediate=size("shared_width"), shared_matrices=GATED,
        )  # fmt: skip
    two = known(2, "norms", "", "constant", "one before attention, one before the experts")
    norms = Vector(name="norms", dims=(two, hidden))
    return Model(
        name="lab-decoder", family="lab", vocab=size("vocab"), hidden=hidden, embedding_dim=hidden, tied=False,
        blocks=(Block(count=size("layers"), attention=attention, ffn=ffn, vectors=(norms,)),),
        precision=StoredPrecision(mixer="fp32", ffn="fp32", expert="fp32", embedding="fp32"),
        vectors=(Vector(name="norm", dims=(hidden,)),), source=SOURCE,
    )  # fmt: skip
