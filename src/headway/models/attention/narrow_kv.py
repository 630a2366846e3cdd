"""Attention with fewer than two KV projections (Gemma 4): key and value from one, or the KV of an earlier layer and none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headway.laws.architecture.params import kv_projection_params, narrow_kv_attention_params
from headway.models.attention.grouped_query import Attention
from headway.models.tensors import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowKvAttention(Attention):
    """Grouped-query attention whose key and value share a projection, or that has none; the cache holds both all the same."""

    kv_share_refusal: ClassVar[str] = "keeps a key and value of one projection, or none"

    kv_projections: Any  # 1: one for key and value; 0: the layer reads an earlier layer's KV

    def params(self) -> Any:
        """Projections of queries, outputs, and of key and value together."""
        return narrow_kv_attention_params(self.hidden, self.heads, self.kv_heads, self.head_dim, self.value_dim, self.kv_projections)

    def tensors(self) -> tuple[Tensor, ...]:
        """The projections that the layer has: no value, and no key where it reads an earlier layer's."""
        kinds = ("query", "key", "output") if self.kv_projections else ("query", "output")
        return tuple(tensor for tensor in Attention.tensors(self) if tensor.kind in kinds)

    def kv_params(self) -> Any:
        """The projection of key and value, where the layer has it."""
        return kv_projection_params(self.hidden, self.kv_heads, self.head_dim, 0, self.kv_projections, self.kv_share)
