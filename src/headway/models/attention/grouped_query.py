"""MHA, GQA and MQA: softmax attention with a key and a value per KV head and token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.laws.architecture import kv
from headway.laws.architecture.attention import score_flop
from headway.laws.architecture.params import attention_params, kv_projection_params, narrow_kv_attention_params
from headway.models.attention import AttentionSpan, CacheStore, SoftmaxAttention, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(SoftmaxAttention):
    """Softmax attention with a key and a value per KV head: MHA, GQA and MQA. Fields kv_share, look, indexer: see SoftmaxAttention."""

    SUMMARY_FIELDS = ("heads", "kv_heads", "head_dim", "value_dim", "kv_share")
    heads_field = "heads"
    cache_heads_field = "kv_heads"

    hidden: Any
    heads: Any
    kv_heads: Any
    head_dim: Any
    value_dim: Any
    query_copies: Any = 1  # 2 where the query projection also makes an output gate
    stacks: Any = 1  # 2 where a decoder layer also attends to an encoder
    caches: bool = True  # False where the layer reads the KV that an earlier layer keeps

    def params(self) -> Any:
        """Projections of queries, keys, values and outputs, and the indexer."""
        projections = attention_params(
            self.hidden, self.heads, self.kv_heads, self.head_dim, self.value_dim, self.query_copies, self.stacks, self.kv_share
        )
        return sum((projections, *self.index_params(self.hidden)))

    def whole_params(self) -> Any:
        """The indexer."""
        index = self.index_params(self.hidden)
        return sum(index)

    def kv_params(self) -> Any:
        """Projections of keys and values."""
        return kv_projection_params(self.hidden, self.kv_heads, self.head_dim, self.value_dim, self.stacks, self.kv_share)

    def tensors(self) -> tuple[Tensor, ...]:
        """Query, key, value and output projections."""
        hidden, stacks = self.hidden, self.stacks
        return (
            Tensor(kind="query", width=hidden, dims=(stacks, hidden, self.heads, self.query_copies, self.head_dim)),
            Tensor(kind="key", width=hidden, dims=(stacks, hidden, self.kv_heads, self.head_dim)),
            Tensor(kind="values", width=hidden, dims=(stacks, hidden, self.kv_heads, self.value_dim)),
            Tensor(kind="output", width=self.heads * self.value_dim, dims=(stacks, hidden, self.heads, self.value_dim)),
        )

    def head_elements(self) -> Any:
        """Width of a key."""
        return self.head_dim

    def stores(self) -> tuple[CacheStore, ...]:
        """A key and a value per KV head, unless an earlier layer keeps them, and index keys."""
        if not self.caches:
            return ()
        return (*self.look.stores(kv.kv_elements(self.kv_heads, self.head_dim, self.value_dim, self.kv_share)), *self.index_stores())

    def spans(self) -> tuple[AttentionSpan, ...]:
        """A key and a value per KV head of each token attended to, even where layers share them, and index keys."""
        flop = score_flop(self.heads, self.head_dim, self.value_dim)
        read = kv.kv_elements_read(self.kv_heads, self.head_dim, self.value_dim)
        return (*self.look.spans(read, flop, flop), *self.index_spans())


# -- attention with fewer than two KV projections (Gemma 4): key and value from one, or the KV of an earlier layer and none -----


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowKvAttention(Attention):
    """Grouped-query attention whose key and value share a projection, or that has none; the cache holds both all the same."""

    kv_share_refusal = "keeps a key and value of one projection, or none"

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


# -- attention of which only totals are known (a model by numbers): its parameters and the KV elements that a token adds --------


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedAttention(Attention):
    """Grouped-query attention whose parameters and cache are stated; heads serve for splits and scores alone."""

    is_stated = True

    stated_params: Any
    stated_elements: Any

    def params(self) -> Any:
        """The stated parameters."""
        return self.stated_params

    def stores(self) -> tuple[CacheStore, ...]:
        """The stated elements, less where layers share them."""
        return self.look.stores(kv.shared_elements(self.stated_elements, self.kv_share))

    def spans(self) -> tuple[AttentionSpan, ...]:
        """The stated elements of each token attended to."""
        flop = score_flop(self.heads, self.head_dim, self.value_dim)
        return self.look.spans(kv.entry_elements(self.stated_elements), flop, flop)
