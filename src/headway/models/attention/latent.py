"""Multi-head latent attention, MLA (DeepSeek-V2): all heads share one compressed latent and one rotary key per token.

Decode scores against the latents themselves (projections absorbed); prefill and training expand them to a key and a value per head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headway.core.quantity import known
from headway.laws.architecture.attention import latent_expand_flop, latent_score_flop_absorbed, latent_score_flop_expanded
from headway.laws.architecture.params import (
    latent_attention_params,
    latent_attention_params_full_query,
    latent_scale_bytes,
    latent_up_params,
    latent_whole_params,
)
from headway.models.attention import ZERO_FLOP, AttentionSpan, CacheStore, NarrowLayout, SoftmaxAttention
from headway.models.tensors import Tensor

LATENT_MATMULS = known(
    6, "matmuls", "", "constant", "DeepSeek-V2 (arXiv:2405.04434): query down and up, KV down, two absorbed products, output"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention(SoftmaxAttention):
    """MLA: one latent and one rotary key per token for all heads. Fields kv_share, look, indexer: see SoftmaxAttention."""

    SUMMARY_FIELDS: ClassVar[tuple[str, ...]] = ("heads", "query_rank", "kv_rank", "nope_dim", "rope_dim", "value_dim", "kv_share")
    heads_field: ClassVar[str] = "heads"
    matmuls: ClassVar[Any] = LATENT_MATMULS
    latent: ClassVar[bool] = True

    hidden: Any
    heads: Any
    query_rank: Any | None  # None: queries are projected from the hidden state directly
    kv_rank: Any
    nope_dim: Any  # of a query or key, the part without rotary position
    rope_dim: Any  # and the part with it
    value_dim: Any
    output_gate: bool = False  # True where a gate from the hidden state scales the output of every head
    reads_picks: bool = False  # True where the tokens that an earlier layer's indexer picked are read

    def params(self) -> Any:
        """Projections down to latents, up to heads, and of outputs, and the indexer."""
        keys_and_values = self.kv_rank, self.nope_dim, self.rope_dim, self.value_dim, self.kv_share
        if self.query_rank is None:
            projections = latent_attention_params_full_query(self.hidden, self.heads, *keys_and_values)
        else:
            projections = latent_attention_params(self.hidden, self.heads, self.query_rank, *keys_and_values)
        gate = (self.hidden * self.heads * self.value_dim,) if self.output_gate else ()
        return sum((projections, *gate, *self.index_params(self.hidden)))

    def whole_params(self) -> Any:
        """Projections down to latents, and the indexer."""
        down = latent_whole_params(
            self.hidden, 0 if self.query_rank is None else self.query_rank, self.kv_rank, self.rope_dim, self.kv_share
        )
        return sum((down, *self.index_params(self.hidden)))

    def tensors(self) -> tuple[Tensor, ...]:
        """The output projection; the projections to and from the latents are of no kind that files tell apart."""
        return (Tensor(kind="output", width=self.heads * self.value_dim, dims=(self.hidden, self.heads, self.value_dim)),)

    def stores(self) -> tuple[CacheStore, ...]:
        """A latent and a rotary key per token, and index keys."""
        from headway.laws.architecture.kv import latent_elements

        return (*self.look.stores(latent_elements(self.kv_rank, self.rope_dim, self.kv_share), self._narrow()), *self.index_stores())

    def spans(self) -> tuple[AttentionSpan, ...]:
        """The latent and the rotary key of each token attended to, even where layers share them, and index keys."""
        from headway.laws.architecture.kv import latent_elements_read

        absorbed = latent_score_flop_absorbed(self.heads, self.kv_rank, self.rope_dim)
        # Tokens picked query by query leave no shared keys to expand, so a sparse prefill is absorbed too.
        sparse = self.indexer or self.reads_picks
        prefill = absorbed if sparse else latent_score_flop_expanded(self.heads, self.nope_dim, self.rope_dim, self.value_dim)
        expand = ZERO_FLOP if sparse else latent_expand_flop(self.heads, self.kv_rank, self.nope_dim, self.value_dim)
        read = latent_elements_read(self.kv_rank, self.rope_dim)
        return (*self.look.spans(read, absorbed, prefill, self._narrow(), expand), *self.index_spans())

    def _narrow(self) -> NarrowLayout | None:
        """Kernels of sparse attention keep scales beside the latents, and the rotary key in 16 bits; others have one scale for a tensor."""
        if not (self.indexer or self.reads_picks):
            return None
        return NarrowLayout(elements=self.kv_rank + self.rope_dim, wide=self.rope_dim, scale_bytes=latent_scale_bytes(self.kv_rank))

    def activation_bytes(self, hidden: Any, element_bytes: Any) -> Any:
        """Queries, keys, values and outputs of every head, and the latents they come from."""
        from headway.laws.training.memory import latent_activation_bytes

        return latent_activation_bytes(self.heads, self.nope_dim, self.rope_dim, self.value_dim, self._latent_elements(), element_bytes)

    def selective_activation_bytes(self, hidden: Any, element_bytes: Any) -> Any:
        """Latents, outputs, and queries that come from no latent: up-projections run again."""
        from headway.laws.training.memory import latent_selective_bytes

        query_dim = 0 if self.query_rank else self.nope_dim + self.rope_dim
        return latent_selective_bytes(self.heads, query_dim, self.value_dim, self._latent_elements(), element_bytes)

    def recomputed_params(self) -> Any:
        """Up-projections, from latents to heads."""
        return latent_up_params(self.heads, self.nope_dim, self.rope_dim, self.value_dim, self.query_rank or 0, self.kv_rank)

    def _latent_elements(self) -> Any:
        """Elements of a token's latents: of queries, of keys and values, and its rotary key."""
        return (self.query_rank or 0) + self.kv_rank + self.rope_dim
