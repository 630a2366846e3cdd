"""Attention of which only totals are known (a model by numbers): its parameters and the KV elements that a token adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headway.laws.architecture.attention import score_flop
from headway.models.attention import AttentionSpan, CacheStore
from headway.models.attention.grouped_query import Attention


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedAttention(Attention):
    """Grouped-query attention whose parameters and cache are stated; heads serve for splits and scores alone."""

    is_stated: ClassVar[bool] = True

    stated_params: Any
    stated_elements: Any

    def params(self) -> Any:
        """The stated parameters."""
        return self.stated_params

    def stores(self) -> tuple[CacheStore, ...]:
        """The stated elements, less where layers share them."""
        from headway.laws.architecture.kv import shared_elements

        return self.look.stores(shared_elements(self.stated_elements, self.kv_share))

    def spans(self) -> tuple[AttentionSpan, ...]:
        """The stated elements of each token attended to."""
        from headway.laws.architecture.kv import entry_elements

        flop = score_flop(self.heads, self.head_dim, self.value_dim)
        return self.look.spans(entry_elements(self.stated_elements), flop, flop)
