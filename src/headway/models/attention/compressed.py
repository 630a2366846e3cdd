"""Compressed attention (DeepSeek-V4): one shared key = value entry for every few tokens, beside a short window of uncompressed entries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from headway.core.quantity import known
from headway.laws.architecture.attention import index_score_flop, score_flop
from headway.laws.architecture.params import (
    compressed_attention_params,
    compressed_indexer_params,
    compressor_params,
)
from headway.models.attention import NO_LIMIT, AttentionPattern, AttentionSpan, CacheStore, Indexer, Mixer, NarrowLayout

ONE_TOKEN = known(1, "one token", "token", "constant", "by definition")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention(Mixer):
    """DeepSeek-V4: one shared key = value entry per `ratio` tokens, beside a short window of uncompressed ones."""

    SUMMARY_FIELDS: ClassVar[tuple[str, ...]] = ("heads", "head_dim", "query_rank", "window")
    heads_field: ClassVar[str] = "heads"
    softmax: ClassVar[bool] = True
    kv_share_refusal: ClassVar[str] = "keeps compressed entries"

    hidden: Any
    heads: Any
    head_dim: Any
    query_rank: Any
    output_groups: Any
    output_rank: Any
    window: Any
    ratio: Any | None  # tokens per compressed entry; None: the window is all there is
    overlap: Any = 1  # 2 where each entry also sees the group before it, with its own projection
    top_entries: Any | None = None  # entries the indexer picks; None: all of them are read
    indexer: Indexer | None = None
    rope_dim: Any = 0  # elements of an entry with rotary position, which a cache of fewer bits keeps in 16
    scale_bytes: Any = 0  # scales of an entry in a cache of fewer bits
    look: AttentionPattern | None = None  # `--attention`: an entry for every token, attended to with this pattern

    def params(self) -> Any:
        """Projections, compressors and the indexer."""
        projections = compressed_attention_params(
            self.hidden, self.heads, self.head_dim, self.query_rank, self.output_groups, self.output_rank
        )
        return sum((projections, *self._compressor_params()))

    def whole_params(self) -> Any:
        """Projections to the query's rank and to the shared entry, compressors and the indexer."""
        return sum((self.hidden * (self.query_rank + self.head_dim), *self._compressor_params()))

    def stores(self) -> tuple[CacheStore, ...]:
        """The window, compressed entries, and compressed index keys."""
        from headway.laws.architecture.kv import entry_elements

        entry, narrow = entry_elements(self.head_dim), self._narrow()
        if self.look is not None:
            return self.look.stores(entry, narrow)
        stores = [CacheStore(what="window", elements_per_token=entry, cap_tokens=self.window, narrow=narrow)]
        if self.ratio is not None:
            compressed = self.head_dim / self.ratio
            stores.append(CacheStore(what="compressed", elements_per_token=compressed, cap_tokens=NO_LIMIT, narrow=narrow))
            if self.indexer is not None:
                key = self.indexer.dim / self.ratio
                stores.append(CacheStore(what="index", elements_per_token=key, cap_tokens=NO_LIMIT))
        return tuple(stores)

    def spans(self) -> tuple[AttentionSpan, ...]:
        """The window; compressed entries, all of them or those that the indexer picks; and every compressed index key."""
        from headway.laws.architecture.kv import entry_elements

        entry, flop = entry_elements(self.head_dim), score_flop(self.heads, self.head_dim, self.head_dim)
        narrow = self._narrow()
        if self.look is not None:
            return self.look.spans(entry, flop, flop, narrow)
        spans = [_span("window", self.window, entry, flop, narrow)]
        if self.ratio is not None:
            cap = NO_LIMIT if self.top_entries is None else self.top_entries * self.ratio
            per_token = flop * ONE_TOKEN / self.ratio
            spans.append(_span("compressed", cap, self.head_dim / self.ratio, per_token, narrow))
            if self.indexer is not None:
                scan = index_score_flop(self.indexer.heads, self.indexer.dim) * ONE_TOKEN / self.ratio
                spans.append(_span("index", NO_LIMIT, self.indexer.dim / self.ratio, scan))
        return tuple(spans)

    def summary(self) -> dict[str, Any]:
        """The ratio, then the fields."""
        return {"compress_ratio": self.ratio, **self.summary_fields()}

    def with_pattern(self, pattern: AttentionPattern) -> Mixer:
        """An entry for every token in place of window and compressed entries."""
        return replace(self, look=pattern)

    def _narrow(self) -> NarrowLayout | None:
        if not self.scale_bytes:
            return None
        return NarrowLayout(elements=self.head_dim, wide=self.rope_dim, scale_bytes=self.scale_bytes)

    def _compressor_params(self) -> tuple[Any, ...]:
        """Parameters of the compressor of entries, and of the indexer with the compressor of its keys, where there are such."""
        if self.ratio is None or self.look is not None:
            return ()
        entries = compressor_params(self.hidden, self.head_dim, self.overlap)
        if self.indexer is None:
            return (entries,)
        index = compressed_indexer_params(self.hidden, self.indexer.query_input, self.indexer.heads, self.indexer.dim)
        return entries, index, compressor_params(self.hidden, self.indexer.dim, self.overlap)


def _span(what: str, cap: Any, elements: Any, flop: Any, narrow: NarrowLayout | None = None) -> AttentionSpan:
    return AttentionSpan(
        what=what, cap_tokens=cap, read_elements_per_token=elements, decode_score_flop=flop, prefill_score_flop=flop, narrow=narrow
    )  # fmt: skip
