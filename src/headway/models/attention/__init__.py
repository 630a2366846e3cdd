"""What every attention kind answers, and the parts that several kinds share.

Holds        a record per kind, with its parameters, cache, reads, score FLOPs and state: grouped_query (MHA, GQA, MQA; one KV projection
             or none; totals alone), latent (MLA; DeepSeek-V4's compressed), recurrent (Mamba, gated DeltaNet, lightning, RWKV, short
             convolutions, two mixers at once). Here: Mixer, the questions; NarrowLayout, SoftmaxAttention, ConvolvedRecurrence, answers
             that several share; AttentionPattern, Indexer, AttentionSpan, CacheStore, parts of one; Tensor, matrices by kind.
Import       a kind from its file, the rest from here.
May import   laws, core. Its users: models.model, the readers that make the records, and whoever has a block's `attention`.
New kind     a record that extends one of these, in a file of its subject, and a reader that makes it; nothing else lists kinds. Mixer
             leaves `params` open, all else is "none"; SoftmaxAttention (an entry per token) `params`, `stores`, `spans`, which must apply
             `kv_share`, `look` and `indexer`; ConvolvedRecurrence (a state of fixed size) `matrix_params`, `channels`,
             `recurrent_elements` and `recurrent_flop`; a kind whose answers mostly hold, such as grouped_query.Attention, what differs.

An answer is for one layer, all heads, before a layout divides it. The arithmetic is in laws/architecture/. Laws that need numpy are
imported inside methods, because `headway list models` loads these files and must not load numpy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from headway.core.quantity import known
from headway.core.units import Byte, FlopPerToken, Number, PerToken
from headway.laws.architecture import kv
from headway.laws.architecture.attention import convolution_flop, index_score_flop
from headway.laws.architecture.params import indexer_params, latent_scale_bytes
from headway.laws.training import memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """Matrices of one kind in a layer: values | key | query | output | up | down | router | other."""

    kind: str
    width: Any  # numbers in a row, which is what a block of a format divides: the inputs of the matrix
    dims: tuple[Any, ...]  # whose product is the count of parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTensors:
    """Matrices of a layer by part."""

    mixer: tuple[Tensor, ...] = ()
    ffn: tuple[Tensor, ...] = ()
    expert: tuple[Tensor, ...] = ()  # of one routed expert


NO_LIMIT = known(math.inf, "no limit", "token", "constant", "a query may look at every earlier token")
ZERO_FLOP = known(0.0, "no look back", "flop/token", "constant", "the architecture has no such part")
ONE_BYTE = known(1, "byte of an index key", "byte", "constant", "vLLM 0.33, models/deepseek_v2.py: fp8, a 32-bit scale per 128")
ONE_SCORE = known(1, "scores", "", "constant", "DeepSeek-V3.2 (arXiv:2512.02556), eq. 1: a weighted sum over the index heads")
TWO_MATMULS = known(2, "matmuls", "", "constant", "projections in, projections out; up with gate, down")
WIDE_HEAD = known(128, "head", "", "constant", "as wide as a tile of the kernels")


# -- parts of an answer ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowLayout:
    """How engines lay out a token of a cache in fewer than 16 bits: some elements stay in 16 bits, and scales lie beside them."""

    elements: Any
    wide: Any
    scale_bytes: Any
    own_bytes: Any = None  # of an element that is kept in a format of its own, whatever that of the cache

    def element_bytes(self, format_bytes: Byte) -> Any:
        """Mean bytes of an element of a cache whose format has so many bytes."""
        element = format_bytes if self.own_bytes is None else self.own_bytes
        return kv.narrow_element_bytes(self.elements, self.wide, self.scale_bytes, element)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSpan:
    """Tokens that a query attends to: attended_tokens(context, cap_tokens, sqrt_tokens) of them, and the cost of each."""

    what: str  # kv | index | window | compressed
    cap_tokens: Any
    read_elements_per_token: Any  # cache elements read per token attended to
    decode_score_flop: Any  # per query and token attended to
    prefill_score_flop: Any
    sqrt_tokens: Any = NO_LIMIT
    expand_flop: Any = ZERO_FLOP  # of each token before a prompt chunk, whose keys and values are made again from a latent
    narrow: NarrowLayout | None = None  # None: every element in the cache's format
    sparse: bool = False  # on the kernels of sparse attention, which read the tokens picked for each query
    index_scores: Any = 0  # of an index: scores per query and token of its context, from which the largest are chosen

    def element_bytes(self, format_bytes: Byte) -> Any:
        """Bytes of an element of the cache read, in a format of so many bytes."""
        return format_bytes if self.narrow is None else self.narrow.element_bytes(format_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStore:
    """A cache that a layer keeps: elements per token, for `cap_tokens` tokens at most."""

    what: str  # kv | index | window | compressed | forming
    elements_per_token: Any
    cap_tokens: Any
    narrow: NarrowLayout | None = None  # None: every element in the cache's format

    def element_bytes(self, format_bytes: Byte) -> Any:
        """Bytes of an element of the cache, in a format of so many bytes."""
        return format_bytes if self.narrow is None else self.narrow.element_bytes(format_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionPattern:
    """Tokens that a query attends to: at most `cap_tokens` of the context, of which at most `kept_tokens` stay in the cache."""

    name: str = "dense"  # dense | window | chunk | topk | sqrt | none
    cap_tokens: Any = NO_LIMIT
    kept_tokens: Any = NO_LIMIT
    sqrt_tokens: Any = NO_LIMIT  # a query attends to sqrt(context * sqrt_tokens) tokens

    def spans(
        self, read_elements: PerToken, decode_flop: FlopPerToken, prefill_flop: FlopPerToken, narrow: NarrowLayout | None = None,
        expand_flop: FlopPerToken = ZERO_FLOP,
    ) -> tuple[AttentionSpan, ...]:  # fmt: skip
        """The reads of attention with this pattern, given elements and score FLOPs per token attended to."""
        if self.name == "none":
            return ()
        span = AttentionSpan(
            what="kv", cap_tokens=self.cap_tokens, read_elements_per_token=read_elements, decode_score_flop=decode_flop,
            prefill_score_flop=prefill_flop, sqrt_tokens=self.sqrt_tokens, expand_flop=expand_flop, narrow=narrow,
        )  # fmt: skip
        return (span,)

    def stores(self, elements_per_token: PerToken, narrow: NarrowLayout | None = None) -> tuple[CacheStore, ...]:
        """The cache of attention with this pattern, given the elements that a token adds."""
        if self.name == "none":
            return ()
        return (CacheStore(what="kv", elements_per_token=elements_per_token, cap_tokens=self.kept_tokens, narrow=narrow),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """A small scorer with a cached key of its own per token, which picks the tokens that attention reads."""

    heads: Any
    dim: Any
    query_input: Any  # width of what its queries are projected from
    head_weights: Any = 1  # 1 where the hidden state also gives each index head a weight, else 0
    scaled: bool = False  # engines keep its keys in fp8 with scales beside them, whatever the format of the cache

    def params(self, hidden: Number) -> Any:
        """Parameters of the indexer; its key is one for all heads, so tensor parallelism does not split it."""
        return indexer_params(hidden, self.query_input, self.heads, self.dim, self.head_weights)

    def key_elements(self) -> Any:
        """Cache elements of the index key of one token."""
        return kv.entry_elements(self.dim)

    def span(self) -> AttentionSpan:
        """The index keys read: those of every token of the context, whatever attention reads."""
        flop = index_score_flop(self.heads, self.dim)
        return AttentionSpan(
            what="index", cap_tokens=NO_LIMIT, read_elements_per_token=self.key_elements(), decode_score_flop=flop,
            prefill_score_flop=flop, narrow=self.narrow(), index_scores=kv.entry_elements(ONE_SCORE),
        )  # fmt: skip

    def store(self) -> CacheStore:
        """The index keys cached: those of every token of the context."""
        return CacheStore(what="index", elements_per_token=self.key_elements(), cap_tokens=NO_LIMIT, narrow=self.narrow())

    def narrow(self) -> NarrowLayout | None:
        """How engines keep a key, where not in the cache's format."""
        if not self.scaled:
            return None
        return NarrowLayout(elements=self.dim, wide=0, scale_bytes=latent_scale_bytes(self.dim), own_bytes=ONE_BYTE)


# -- the questions --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer(ABC):
    """What mixes the tokens of a layer: attention, a recurrence or a convolution. A kind answers `params` and what differs from here."""

    SUMMARY_FIELDS: ClassVar[tuple[str, ...]] = ()  # fields that `headway show model` prints, in its order
    matmuls: ClassVar[Any] = TWO_MATMULS  # dense matrix multiplications of a layer, one kernel each
    wide_matmuls: ClassVar[Any] = 0  # of them, those in 16 bits whatever the format of the weights
    latent: ClassVar[bool] = False  # runs on the kernels of latent attention (MLA)
    is_stated: ClassVar[bool] = False  # a model by numbers, whose widths follow from totals: no engine splits them
    scanned: ClassVar[bool] = False  # prompts pass its state in chunks, each after the one before
    softmax: ClassVar[bool] = False  # `--attention` and `--kv-share` apply to it
    kv_share_refusal: ClassVar[str] = ""  # why `--kv-share` is an error for a model with such layers: "keeps ..."
    heads_field: ClassVar[str] = ""  # field of the heads, or channels, that tensor parallelism divides
    cache_heads_field: ClassVar[str] = ""  # field of the parts into which it can split the cache

    # What a layer holds and does

    @abstractmethod
    def params(self) -> Any:
        """Parameters of the matrices of a layer."""

    def whole_params(self) -> Any:
        """Parameters that every tensor-parallel chip holds whole, since they make what all heads share."""
        return 0

    def scan_params(self) -> Any:
        """Those of them that belong to an indexer."""
        return 0

    def kv_params(self) -> Any:
        """Parameters that tensor parallelism splits by KV head."""
        return 0

    def tensors(self) -> tuple[Tensor, ...]:
        """Those of its matrices that files of mixed formats tell apart, by kind; the rest of `params` is of kind "other"."""
        return ()

    def query_heads(self) -> Any:
        """Heads, or channels, that tensor parallelism divides."""
        return getattr(self, self.heads_field) if self.heads_field else 1

    def cache_heads(self) -> Any:
        """Parts into which tensor parallelism can split the cache; a chip beyond them holds a copy."""
        return getattr(self, self.cache_heads_field) if self.cache_heads_field else 1

    def head_elements(self) -> Any:
        """Width of a head, which decides how well attention kernels fill the chip."""
        return WIDE_HEAD

    def stores(self) -> tuple[CacheStore, ...]:
        """Caches that grow with the context, up to their caps."""
        return ()

    def forming(self) -> tuple[CacheStore, ...]:
        """What engines hold of the latest tokens until the entries that they form are made: no part of the architecture's cache."""
        return ()

    def spans(self) -> tuple[AttentionSpan, ...]:
        """Caches that a query reads, with the score FLOPs of each token attended to, in decode and in prefill."""
        return ()

    def state_elements(self) -> Any:
        """Elements of the state of fixed size that a layer keeps for a sequence."""
        return 0

    def recurrence_flop_per_token(self) -> Any:
        """FLOPs that update and read the state, per token."""
        return ZERO_FLOP

    # `headway show model`

    def summary(self) -> dict[str, Any]:
        """What `headway show model` prints of a layer, in its order."""
        return self.summary_fields()

    def summary_fields(self) -> dict[str, Any]:
        """The fields named in SUMMARY_FIELDS, but for those that the architecture leaves out."""
        return {name: getattr(self, name) for name in self.SUMMARY_FIELDS if isinstance(getattr(self, name), int | float)}

    # `--attention` and `--kv-share`

    def with_pattern(self, pattern: AttentionPattern) -> Mixer:
        """The layer with another attention pattern; itself where there is none to change."""
        return self

    def with_kv_share(self, layers: Number) -> Mixer:
        """The layer with one KV cache for so many layers; itself where it has none to share."""
        return self

    # Training

    def activation_bytes(self, hidden: Number, element_bytes: Byte) -> Any:
        """Bytes per token that a layer keeps for its backward pass and tensor parallelism splits."""
        return memory.matmul_activation_bytes(self.params(), hidden, element_bytes)

    def selective_activation_bytes(self, hidden: Number, element_bytes: Byte) -> Any:
        """Those bytes where selective recomputation makes again what is cheap to make."""
        return self.activation_bytes(hidden, element_bytes)

    def recomputed_params(self) -> Any:
        """Parameters that selective recomputation multiplies with a second time."""
        return 0


# -- answers that several kinds share -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxAttention(Mixer):
    """Softmax attention over a cache with an entry per token: GQA and MLA. A pattern limits it, an indexer may pick its tokens."""

    softmax = True

    kv_share: Any = 1  # layers that use one KV cache
    look: AttentionPattern = AttentionPattern()
    indexer: Indexer | None = None

    def index_params(self, hidden: Number) -> tuple[Any, ...]:
        """Parameters of the indexer, where there is one."""
        return () if self.indexer is None else (self.indexer.params(hidden),)

    def scan_params(self) -> Any:
        """The indexer."""
        return self.indexer.params(self.hidden) if self.indexer is not None else 0  # type: ignore[attr-defined]

    def index_spans(self) -> tuple[AttentionSpan, ...]:
        """Reads of the indexer, where there is one."""
        return () if self.indexer is None else (self.indexer.span(),)

    def index_stores(self) -> tuple[CacheStore, ...]:
        """Cache of the indexer, where there is one."""
        return () if self.indexer is None else (self.indexer.store(),)

    def summary(self) -> dict[str, Any]:
        """The pattern, the fields, and how far back a pattern other than dense reaches."""
        row = {"look_back": self.look.name, **self.summary_fields()}
        return row if self.look.name == "dense" else row | {"look_back_tokens": min(self.look.cap_tokens, self.look.sqrt_tokens)}

    def with_pattern(self, pattern: AttentionPattern) -> Mixer:
        """The layer with another pattern; an indexer stays only where it has tokens to pick, and a layer without cache stays as it is."""
        if self.look.name == "none":
            return self
        return replace(self, look=pattern, indexer=self.indexer if pattern.name == "topk" else None)

    def with_kv_share(self, layers: Number) -> Mixer:
        """The layer with one KV cache for so many layers."""
        return replace(self, kv_share=layers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolvedRecurrence(Mixer):
    """A recurrence with a short convolution before it: no cache that grows, a state of fixed size."""

    kernel: Any  # taps of the convolution

    @abstractmethod
    def matrix_params(self) -> Any:
        """Parameters of the projections."""

    @abstractmethod
    def channels(self) -> Any:
        """Channels that go through the convolution."""

    def recurrent_elements(self) -> Any:
        """Elements of the recurrent state."""
        return 0

    def recurrent_flop(self) -> Any:
        """FLOPs per token of the recurrence alone."""
        return ZERO_FLOP

    def params(self) -> Any:
        """Projections and filters of the convolution."""
        return self.matrix_params() + (self.channels() * self.kernel)

    def state_elements(self) -> Any:
        """The recurrent state, and the inputs that the convolution has to remember."""
        return self.recurrent_elements() + kv.convolution_state(self.channels(), self.kernel)

    def recurrence_flop_per_token(self) -> Any:
        """FLOPs per token of the recurrence and the convolution."""
        return self.recurrent_flop() + convolution_flop(self.channels(), self.kernel)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMixer(Mixer):
    """A layer that is a feed-forward part alone."""

    matmuls = 0

    def params(self) -> Any:
        """No parameters."""
        return 0
