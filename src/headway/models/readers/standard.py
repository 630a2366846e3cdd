"""What most decoders share: their dimensions, projections with or without bias, norms, dense and routed feed-forward parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headway.core.errors import UnsupportedModel
from headway.core.quantity import known
from headway.models.attention import AttentionPattern, Mixer
from headway.models.attention.grouped_query import Attention
from headway.models.model import NONE, Block, Dense, FeedForward, Model, MoE, NoFeedForward, Vector, grouped
from headway.models.readers.quantization import precision
from headway.models.readers.read import MAX_LAYERS, Config


def constant(value: int, what: str) -> Any:
    """A small number that the architecture itself sets."""
    return known(value, what, "", "constant", "the architecture")


GATED, PLAIN = constant(3, "matrices of a gated FFN"), constant(2, "matrices of a plain FFN")
BIASES, DOUBLE = constant(1, "biases"), constant(2, "both")
CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length")
COPIES = {n: constant(n, f"{n} vectors of this kind") for n in range(1, 20)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderShape:
    """The dimensions of a decoder whose attention has heads of one size."""

    hidden: Any
    layers: int
    heads: Any
    kv_heads: Any
    head_dim: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The small choices by which architectures of one kind differ."""

    matrices: Any = GATED
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    norms: int = 2  # per layer
    norm_parts: int = 1  # 1: a weight (RMSNorm); 2: weight and bias (LayerNorm); 0: nothing learned
    qk_norm: str = ""  # "head": one norm of head_dim for all heads; "full": over all heads together
    tied: bool = False  # where the config does not say
    positions: bool = False  # learned position embeddings
    head_bias: bool = False

    def but(self, **changes: Any) -> Style:
        """This style with some choices made otherwise."""
        return replace(self, **changes)


def layer_count(config: Config, *keys: str) -> int:
    """How many layers there are, as a plain int to loop over."""
    return int(config.count(*(keys or ("num_hidden_layers", "n_layer", "num_layers", "n_layers")), high=MAX_LAYERS))


def shape(config: Config, kv_default: Any = None, head_dim_default: int | None = None) -> DecoderShape:
    """Hidden size, layers, heads, KV heads and head size, with the family's rule for what is absent."""
    hidden = config.count("hidden_size", "n_embd", "d_model")
    heads = config.count("num_attention_heads", "n_head", "n_heads", "num_heads")
    kv_heads = config.count("num_key_value_heads", default=heads if kv_default is None else kv_default)
    if heads % kv_heads:
        raise UnsupportedModel("num_key_value_heads", int(kv_heads), f"must divide num_attention_heads = {int(heads)}")
    head_dim = config.count("head_dim", default=None)
    if head_dim is None and head_dim_default is not None:
        head_dim = config.fixed(head_dim_default, "head_dim", "not in config.json; the architecture's default", "default")
    if head_dim is None:
        head_dim = divided(config, hidden, heads, "head_dim", "hidden_size / num_attention_heads")
    return DecoderShape(hidden=hidden, layers=layer_count(config), heads=heads, kv_heads=kv_heads, head_dim=head_dim)


def divided(config: Config, top: Any, bottom: Any, name: str, how: str) -> Any:
    """A whole quotient of two counts."""
    if top % bottom:
        raise UnsupportedModel(name, f"{int(top)} / {int(bottom)}", f"{how} must be whole")
    return config.derived(top // bottom, name, how)


def attention(s: DecoderShape, look: AttentionPattern | None = None, **more: Any) -> Attention:
    """Grouped-query attention of this shape."""
    return Attention(
        hidden=s.hidden,
        heads=s.heads,
        kv_heads=s.kv_heads,
        head_dim=s.head_dim,
        value_dim=s.head_dim,
        look=look or AttentionPattern(),
        **more,
    )


def window(config: Config, *keys: str) -> AttentionPattern:
    """A sliding window of so many tokens."""
    size = config.count(*(keys or ("sliding_window",)), unit="token")
    return AttentionPattern(name="window", cap_tokens=size, kept_tokens=size)


def chunk(config: Config, key: str) -> AttentionPattern:
    """Attention within aligned chunks of so many tokens."""
    size = config.count(key, unit="token")
    return AttentionPattern(name="chunk", cap_tokens=size, kept_tokens=size)


def mixer_vectors(s: DecoderShape, style: Style) -> tuple[Vector, ...]:
    """Biases and query/key norms of attention."""
    vectors = []
    if style.qkv_bias:
        vectors.append(Vector(name="query bias", dims=(s.heads, s.head_dim)))
        vectors.append(Vector(name="key and value bias", dims=(DOUBLE, s.kv_heads, s.head_dim)))
    if style.out_bias:
        vectors.append(Vector(name="output bias", dims=(s.hidden,)))
    if style.qk_norm == "head":
        vectors.append(Vector(name="query and key norm", dims=(DOUBLE, s.head_dim)))
    if style.qk_norm == "full":
        vectors.append(Vector(name="query norm", dims=(s.heads, s.head_dim)))
        vectors.append(Vector(name="key norm", dims=(s.kv_heads, s.head_dim)))
    return tuple(vectors)


def norms(hidden: Any, style: Style, count: int | None = None) -> tuple[Vector, ...]:
    """The norms around the parts of a layer, or `count` of them."""
    vectors = style.norm_parts * (style.norms if count is None else count)
    return (Vector(name="norms", dims=(COPIES[vectors], hidden)),) if vectors else ()


def dense(config: Config, hidden: Any, style: Style, *keys: str, intermediate: Any = None) -> Dense:
    """A dense feed-forward part."""
    width = intermediate if intermediate is not None else config.count(*(keys or ("intermediate_size",)))
    return Dense(hidden=hidden, intermediate=width, matrices=style.matrices, biases=BIASES if style.mlp_bias else NONE)


def moe(
    hidden: Any, *, experts: Any, per_token: Any, intermediate: Any, shared: Any = NONE, shared_intermediate: Any = NONE, **more: Any
) -> MoE:
    """Routed experts, gated like the shared ones unless told otherwise."""
    if per_token > experts:
        raise UnsupportedModel("num_experts_per_tok", int(per_token), f"must not exceed the {int(experts)} experts")
    fields = {"matrices": GATED, "shared_matrices": GATED} | more
    return MoE(
        hidden=hidden,
        experts=experts,
        per_token=per_token,
        intermediate=intermediate,
        shared_experts=shared,
        shared_intermediate=shared_intermediate,
        **fields,
    )


def block(mixer: Mixer, ffn: FeedForward, *vectors: tuple[Vector, ...]) -> Block:
    """One layer."""
    return Block(count=1, attention=mixer, ffn=ffn, vectors=tuple(vector for group in vectors for vector in group))


def uniform(s: DecoderShape, style: Style, ffn: FeedForward, looks: list[AttentionPattern] | None = None) -> list[Block]:
    """Layers that differ, if at all, in how far they look back."""
    vectors = (*norms(s.hidden, style), *mixer_vectors(s, style))
    return [block(attention(s, look), ffn, vectors) for look in looks or [AttentionPattern()] * s.layers]


def finish(
    config: Config, layers: list[Block], hidden: Any, style: Style, final: tuple[Vector, ...] | None = None, embedding_dim: Any = None
) -> Model:
    """The model around its layers: vocabulary, embedding, head, final norm, precision."""
    vectors = norms(hidden, style, 1) if final is None else final
    context = config.count(*CONTEXT, default=None, unit="token")
    vocab, tied = config.count("vocab_size", "padded_vocab_size"), config.flag("tie_word_embeddings", default=style.tied)
    if style.positions:
        vectors = (*vectors, Vector(name="position embedding", dims=(config.count(*CONTEXT, unit="token"), hidden)))
    parts = [layer.ffn for layer in layers if not isinstance(layer.ffn, NoFeedForward)]
    only_routers = all(isinstance(ffn, MoE) and not ffn.shared_experts for ffn in parts)
    if style.head_bias:
        vectors = (*vectors, Vector(name="head bias", dims=(vocab,)))
    return Model(
        name=config.name,
        family=config.text("_family", default=config.text("model_type")),
        vocab=vocab,
        hidden=hidden,
        embedding_dim=hidden if embedding_dim is None else embedding_dim,
        tied=tied,
        blocks=grouped(layers),
        precision=precision(config, only_routers),
        max_context=context,
        vectors=vectors,
        notes=tuple(config.notes),
        source=config.source,
    )
