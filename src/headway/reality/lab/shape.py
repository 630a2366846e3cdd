"""Sizes of the lab's decoder, and the same decoder as headway's model, so that the laws of every verb predict its step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.models.attention.grouped_query import Attention
from headway.models.model import Block, Dense, Model, MoE, StoredPrecision, Vector

SOURCE = "shape of the lab's decoder"
GATED = known(3, "matrices", "", "constant", "up, gate and down")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabShape:
    """Sizes of a decoder: grouped-query attention, then routed experts, a shared expert, or both; without experts it is dense."""

    layers: int = 4
    hidden: int = 512
    heads: int = 8
    kv_heads: int = 2
    head_dim: int = 64
    experts: int = 64  # routed; 0: every token uses the shared expert alone
    per_token: int = 4  # routed experts of one token
    expert_width: int = 256
    shared_width: int = 512  # 0: no shared expert
    vocab: int = 2048


def model_of(shape: LabShape) -> Model:
    """The decoder as headway's model, weights and cache in 32 bits.

    >>> from headway.models.totals import active_params, kv_bytes_per_token, total_params
    >>> small = model_of(LabShape(layers=1, hidden=8, heads=2, kv_heads=1, head_dim=4, experts=4, per_token=1, vocab=10))
    >>> int(total_params(small)) - int(active_params(small)) == 3 * (3 * 8 * 256)  # three experts of four rest
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
