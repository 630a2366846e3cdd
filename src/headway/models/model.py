"""What a language model is to this project: blocks of layers that look alike, each a mixer and a feed-forward part.

Every number is a Known (where it came from travels with it). Nothing is computed here; the formulas are in laws/.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known

DTYPES = ("fp32", "bf16", "fp16", "fp8", "int8", "int4", "fp4", "mxfp4", "nvfp4")
NO_LIMIT = known(math.inf, "no limit", "token", "constant", "a query may look at every earlier token")
UNITY = known(1, "one", "", "constant", "by definition")
NONE = known(0, "none", "", "constant", "the architecture has no such part")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """A parameter that no matrix product uses (norm, bias, scale): its size is the product of `dims`."""

    name: str
    dims: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionPattern:
    """How far back a query looks: at `cap_tokens` of the context at most, of which `kept_tokens` at most stay stored."""

    name: str = "dense"  # dense | window | chunk | topk | sqrt | none
    cap_tokens: Any = NO_LIMIT
    kept_tokens: Any = NO_LIMIT
    sqrt_tokens: Any = NO_LIMIT  # looks at sqrt(context * sqrt_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """A small scorer with its own cached key per entry, which picks the entries that attention then reads."""

    heads: Any
    dim: Any
    query_input: Any  # width of what its queries are projected from
    head_weights: Any = UNITY  # 1 where the hidden state also gives each index head a weight, else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Softmax attention with a key and a value per KV head: MHA, GQA and MQA."""

    hidden: Any
    heads: Any
    kv_heads: Any
    head_dim: Any
    value_dim: Any
    query_copies: Any = UNITY  # 2 where the query projection also makes an output gate
    stacks: Any = UNITY  # 2 where a decoder layer also attends to an encoder
    kv_share: Any = UNITY  # layers that use one KV
    caches: bool = True  # False where the layer reads the KV that an earlier layer keeps
    look: AttentionPattern = AttentionPattern()
    indexer: Indexer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """MLA: one compressed latent and one rotary key per token, shared by all heads (DeepSeek-V2)."""

    hidden: Any
    heads: Any
    query_rank: Any | None  # None: queries are projected from the hidden state directly
    kv_rank: Any
    nope_dim: Any
    rope_dim: Any
    value_dim: Any
    kv_share: Any = UNITY
    look: AttentionPattern = AttentionPattern()
    indexer: Indexer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention:
    """DeepSeek-V4: one shared key = value entry per `ratio` tokens, beside a short window of uncompressed ones."""

    hidden: Any
    heads: Any
    head_dim: Any
    query_rank: Any
    output_groups: Any
    output_rank: Any
    window: Any
    ratio: Any | None  # tokens per compressed entry; None: the window is all there is
    overlap: Any = UNITY  # 2 where each entry also sees the group before it, with its own projection
    top_entries: Any | None = None  # entries the indexer picks; None: all of them are read
    indexer: Indexer | None = None
    look: AttentionPattern | None = None  # a what-if: an entry for every token, looked at like this


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDelta:
    """Gated DeltaNet (Qwen3-Next): a key x value state per value head and a short convolution."""

    hidden: Any
    key_heads: Any
    value_heads: Any
    key_dim: Any
    value_dim: Any
    kernel: Any
    gate_rank: Any | None = None  # Kimi delta attention: decay and output gate of each channel, through this rank


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortConvolution:
    """A gated short convolution in place of attention (LFM2)."""

    hidden: Any
    kernel: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Lightning:
    """Lightning (linear) attention of MiniMax-01: a head_dim x head_dim state per head."""

    hidden: Any
    heads: Any
    head_dim: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba:
    """Mamba-1 selective state space: `state` numbers per inner channel and a short convolution."""

    hidden: Any
    inner: Any
    state: Any
    dt_rank: Any
    kernel: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """Mamba-2: a head_dim x state matrix per head and a short convolution."""

    hidden: Any
    heads: Any
    head_dim: Any
    groups: Any
    state: Any
    kernel: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMixer:
    """A layer that is a feed-forward part alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """One feed-forward network that every token uses; 3 matrices where it is gated, else 2."""

    hidden: Any
    intermediate: Any
    matrices: Any
    biases: Any = NONE  # 1 where each matrix has a bias


@dataclass(frozen=True, slots=True, kw_only=True)
class MoE:
    """Routed experts, of which each token uses a few, beside what every token uses."""

    hidden: Any
    experts: Any
    per_token: Any
    intermediate: Any  # of one routed expert
    matrices: Any
    biases: Any = NONE  # 1 where each expert matrix has a bias
    shared_experts: Any = NONE
    shared_intermediate: Any = NONE  # of one shared expert
    shared_matrices: Any = NONE
    shared_gates: Any = NONE  # 1 where a learned gate scales the shared expert
    groups: Any = UNITY  # experts lie in so many groups,
    groups_chosen: Any = UNITY  # and a token's experts in at most so many of them (node-limited routing)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFeedForward:
    """A layer that is a mixer alone (Mamba)."""


Mixer = Attention | LatentAttention | CompressedAttention | GatedDelta | ShortConvolution | Lightning | Mamba | Mamba2 | NoMixer
FeedForward = Dense | MoE | NoFeedForward


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`count` layers that look alike."""

    count: Any
    attention: Mixer
    ffn: FeedForward
    vectors: tuple[Vector, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPrecision:
    """The data type of each part of the checkpoint, one of DTYPES."""

    mixer: str
    ffn: str
    expert: str
    embedding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A decoder: embedding, blocks, head. Multi-token prediction and vision parts are left out, and `notes` says so."""

    name: str
    family: str
    vocab: Any
    hidden: Any
    embedding_dim: Any  # width of the embedding table, `hidden` but for a few
    tied: bool  # the head is the embedding table
    blocks: tuple[Block, ...]
    precision: StoredPrecision
    max_context: Any | None = None
    vectors: tuple[Vector, ...] = ()  # final norm, learned positions, ...
    notes: tuple[str, ...] = ()
    source: str = ""


def grouped(layers: list[Block]) -> tuple[Block, ...]:
    """Equal layers counted together, in the order in which each kind first appears."""
    counts: dict[Block, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return tuple(
        Block(
            count=known(count, f"layers of kind {index + 1}", "", "derived", "layers of the config that look alike, counted"),
            attention=layer.attention,
            ffn=layer.ffn,
            vectors=layer.vectors,
        )
        for index, (layer, count) in enumerate(counts.items())
    )
