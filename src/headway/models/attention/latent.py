"""Multi-head latent attention, MLA (DeepSeek-V2): all heads share one compressed latent and one rotary key per token.

Decode scores against the latents themselves (projections absorbed); prefill and training expand them to a key and a value per head.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headway.core.quantity import known
from headway.core.units import Byte, FlopPerToken, Number, PerToken, Token
from headway.laws.architecture import kv
from headway.laws.architecture.attention import (
    index_score_flop,
    latent_expand_flop,
    latent_score_flop_absorbed,
    latent_score_flop_expanded,
    score_flop,
)
from headway.laws.architecture.params import (
    compressed_attention_params,
    compressed_indexer_params,
    compressor_params,
    latent_attention_params,
    latent_attention_params_full_query,
    latent_scale_bytes,
    latent_up_params,
    latent_whole_params,
)
from headway.laws.training import memory
from headway.models.attention import (
    NO_LIMIT,
    ZERO_FLOP,
    AttentionPattern,
    AttentionSpan,
    CacheStore,
    Indexer,
    Mixer,
    NarrowLayout,
    SoftmaxAttention,
    Tensor,
)

LATENT_MATMULS = known(
    5, "matmuls", "", "constant",
    "DeepSeek-V2 (arXiv:2405.04434): query and KV down, which engines join (fused_qkv_a_proj of vLLM and SGLang, fused_a of TensorRT-LLM), "
    "query up, two absorbed products, output",
)  # fmt: skip
ABSORBED = known(2, "matmuls", "", "constant", "absorbed products of DeepSeek-V2 (arXiv:2405.04434), in 16 bits")


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention(SoftmaxAttention):
    """MLA: one latent and one rotary key per token for all heads. Fields kv_share, look, indexer: see SoftmaxAttention."""

    SUMMARY_FIELDS = ("heads", "query_rank", "kv_rank", "nope_dim", "rope_dim", "value_dim", "kv_share")
    heads_field = "heads"
    matmuls = LATENT_MATMULS
    wide_matmuls = ABSORBED
    latent = True

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
        return (*self.look.stores(kv.latent_elements(self.kv_rank, self.rope_dim, self.kv_share), self._narrow()), *self.index_stores())

    def spans(self) -> tuple[AttentionSpan, ...]:
        """The latent and the rotary key of each token attended to, even where layers share them, and index keys."""
        absorbed = latent_score_flop_absorbed(self.heads, self.kv_rank, self.rope_dim)
        # Tokens picked query by query leave no shared keys to expand, so a sparse prefill is absorbed too.
        sparse = self.indexer or self.reads_picks
        prefill = absorbed if sparse else latent_score_flop_expanded(self.heads, self.nope_dim, self.rope_dim, self.value_dim)
        expand = ZERO_FLOP if sparse else latent_expand_flop(self.heads, self.kv_rank, self.nope_dim, self.value_dim)
        read = kv.latent_elements_read(self.kv_rank, self.rope_dim)
        attended = self.look.spans(read, absorbed, prefill, self._narrow(), expand)
        return (*(replace(span, sparse=bool(sparse)) for span in attended), *self.index_spans())

    def _narrow(self) -> NarrowLayout | None:
        """Kernels of sparse attention keep scales beside the latents, and the rotary key in 16 bits; others have one scale for a tensor."""
        if not (self.indexer or self.reads_picks):
            return None
        return NarrowLayout(elements=self.kv_rank + self.rope_dim, wide=self.rope_dim, scale_bytes=latent_scale_bytes(self.kv_rank))

    def activation_bytes(self, hidden: Number, element_bytes: Byte) -> Any:
        """Queries, keys, values and outputs of every head, and the latents they come from."""
        widths = self.nope_dim, self.rope_dim, self.value_dim
        return memory.latent_activation_bytes(self.heads, *widths, self._latent_elements(), element_bytes)

    def selective_activation_bytes(self, hidden: Number, element_bytes: Byte) -> Any:
        """Latents, outputs, and queries that come from no latent: up-projections run again."""
        query_dim = 0 if self.query_rank else self.nope_dim + self.rope_dim
        return memory.latent_selective_bytes(self.heads, query_dim, self.value_dim, self._latent_elements(), element_bytes)

    def recomputed_params(self) -> Any:
        """Up-projections, from latents to heads."""
        return latent_up_params(self.heads, self.nope_dim, self.rope_dim, self.value_dim, self.query_rank or 0, self.kv_rank)

    def _latent_elements(self) -> Any:
        """Elements of a token's latents: of queries, of keys and values, and its rotary key."""
        return (self.query_rank or 0) + self.kv_rank + self.rope_dim


# -- compressed attention (DeepSeek-V4): one shared key = value entry for every few tokens, beside a short window of uncompressed entries 


FP32 = NarrowLayout(
    elements=known(1, "value", "", "constant", "each"), wide=known(0, "wide", "", "constant", "none"),
    scale_bytes=known(0, "scales", "byte", "constant", "none"),
    own_bytes=known(4, "fp32", "byte", "constant", "vLLM 0.33.0, models/deepseek_v4/compressor.py"),
)  # fmt: skip
ONE_TOKEN = known(1, "one token", "token", "constant", "by definition")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention(Mixer):
    """DeepSeek-V4: one shared key = value entry per `ratio` tokens, beside a short window of uncompressed ones."""

    SUMMARY_FIELDS = ("heads", "head_dim", "query_rank", "window")
    heads_field = "heads"
    softmax = True
    kv_share_refusal = "keeps compressed entries"

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

    def scan_params(self) -> Any:
        """The indexer and the compressor of its keys."""
        return sum(self._scan_parts())

    def stores(self) -> tuple[CacheStore, ...]:
        """The window, compressed entries, and compressed index keys."""
        entry, narrow = kv.entry_elements(self.head_dim), self._narrow()
        if self.look is not None:
            return self.look.stores(entry, narrow)
        stores = [CacheStore(what="window", elements_per_token=entry, cap_tokens=self.window, narrow=narrow)]
        if self.ratio is not None:
            compressed = self.head_dim / self.ratio
            stores.append(CacheStore(what="compressed", elements_per_token=compressed, cap_tokens=NO_LIMIT, narrow=narrow))
            if self.indexer is not None:
                key = self.indexer.dim / self.ratio
                stores.append(CacheStore(what="index", elements_per_token=key, cap_tokens=NO_LIMIT, narrow=self.indexer.narrow()))
        return tuple(stores)

    def forming(self) -> tuple[CacheStore, ...]:
        """Values and scores of the tokens of the entries to come, in fp32: of the compressor, and of the index keys' own."""
        if self.ratio is None or self.look is not None:
            return ()
        widths = [self.head_dim] if self.indexer is None else [self.head_dim, self.indexer.dim]
        cap = self.ratio * self.overlap
        return tuple(
            CacheStore(what="forming", elements_per_token=kv.forming_elements(width, self.overlap), cap_tokens=cap, narrow=FP32)
            for width in widths
        )

    def spans(self) -> tuple[AttentionSpan, ...]:
        """The window; compressed entries, all of them or those that the indexer picks; and every compressed index key."""
        entry, flop = kv.entry_elements(self.head_dim), score_flop(self.heads, self.head_dim, self.head_dim)
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
                keys = _span("index", NO_LIMIT, self.indexer.dim / self.ratio, scan, self.indexer.narrow())
                spans.append(replace(keys, sparse=False, index_scores=ONE_TOKEN / self.ratio / ONE_TOKEN))
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
        return compressor_params(self.hidden, self.head_dim, self.overlap), *self._scan_parts()

    def _scan_parts(self) -> tuple[Any, ...]:
        """Parameters of the indexer and of the compressor of its keys, where there is one."""
        if self.indexer is None or self.ratio is None or self.look is not None:
            return ()
        index = compressed_indexer_params(self.hidden, self.indexer.query_input, self.indexer.heads, self.indexer.dim)
        return index, compressor_params(self.hidden, self.indexer.dim, self.overlap)


def _span(what: str, cap: Token, elements: PerToken, flop: FlopPerToken, narrow: NarrowLayout | None = None) -> AttentionSpan:
    return AttentionSpan(
        what=what, cap_tokens=cap, read_elements_per_token=elements, decode_score_flop=flop, prefill_score_flop=flop, narrow=narrow,
        sparse=True,
    )  # fmt: skip
