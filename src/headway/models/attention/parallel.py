"""Two mixers side by side in one layer (Falcon-H1): attention and a state space read the same input, and their outputs are added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from headway.core.quantity import known
from headway.models.attention import AttentionPattern, AttentionSpan, CacheStore, ConvolvedRecurrence, Mixer
from headway.models.attention.grouped_query import Attention

FOUR_MATMULS = known(4, "matmuls", "", "constant", "projections in and out of each of two mixers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelMixer(Mixer):
    """Grouped-query attention beside a recurrence in one layer."""

    matmuls: ClassVar[Any] = FOUR_MATMULS
    softmax: ClassVar[bool] = True

    attention: Attention
    recurrence: ConvolvedRecurrence

    def params(self) -> Any:
        """Parameters of both."""
        return self.attention.params() + self.recurrence.params()

    def kv_params(self) -> Any:
        """Projections of keys and values."""
        return self.attention.kv_params()

    def query_heads(self) -> Any:
        """Query heads of the attention."""
        return self.attention.query_heads()

    def cache_heads(self) -> Any:
        """KV heads of the attention."""
        return self.attention.cache_heads()

    def head_elements(self) -> Any:
        """Width of a key."""
        return self.attention.head_elements()

    def stores(self) -> tuple[CacheStore, ...]:
        """The KV cache of the attention."""
        return self.attention.stores()

    def spans(self) -> tuple[AttentionSpan, ...]:
        """The reads of the attention."""
        return self.attention.spans()

    def state_elements(self) -> Any:
        """The state of the recurrence."""
        return self.recurrence.state_elements()

    def recurrence_flop_per_token(self) -> Any:
        """The FLOPs of the recurrence."""
        return self.recurrence.recurrence_flop_per_token()

    def summary(self) -> dict[str, Any]:
        """Both mixers: attention first, the fields of the recurrence under `recurrence`."""
        return {**self.attention.summary(), "recurrence": {"kind": type(self.recurrence).__name__, **self.recurrence.summary()}}

    def with_pattern(self, pattern: AttentionPattern) -> Mixer:
        """The layer with another attention pattern."""
        return replace(self, attention=self.attention.with_pattern(pattern))

    def with_kv_share(self, layers: Any) -> Mixer:
        """The layer with one KV cache for so many layers."""
        return replace(self, attention=self.attention.with_kv_share(layers))
