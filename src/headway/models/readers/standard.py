"""Parts common to most readers: dimensions, projections with or without bias, norms, dense and routed FFNs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headway.core.errors import UnsupportedModel
from headway.core.quantity import known
from headway.core.units import Number
from headway.models.attention import AttentionPattern, Mixer
from headway.models.attention.grouped_query import Attention
from headway.models.model import Block, Dense, FeedForward, Model, MoE, NoFeedForward, Vector, grouped
from headway.models.readers.quantization import precision
from headway.models.readers.read import MAX_LAYERS, Config


def constant(value: int, what: str) -> Any:
    """Small number that the architecture fixes."""
    return known(value, what, "", "constant", "the architecture")


GATED, PLAIN = constant(3, "matrices of a gated FFN"), constant(2, "matrices of a plain FFN")
CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length")
COPIES = {n: constant(n, f"{n} vectors of this kind") for n in range(1, 20)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderShape:
    """Dimensions of a decoder whose attention heads have one size."""

    hidden: Any
    layers: int
    heads: Any
    kv_heads: Any
    head_dim: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Details in which architectures of one kind differ: norms, biases, tied head, positions."""

    matrices: Any = GATED
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    norms: int = 2  # norms per layer
    norm_parts: int = 1  # 1: a weight (RMSNorm); 2: weight and bias (LayerNorm); 0: nothing learned
    qk_norm: str = ""  # "head": a norm of head_dim, shared by all heads; "full": a norm over all heads
    tied: bool = False  # default if the config does not state it
    positions: bool = False  # learned position embeddings
    head_bias: bool = False

    def but(self, **changes: Any) -> Style:
        """Style with some details changed."""
        return replace(self, **changes)


def biased(config: Config, default: bool = False, **details: Any) -> Style:
    """Style whose attention has biases where the config's `attention_bias` says so."""
    bias = config.flag("attention_bias", default=default)
    return Style(qkv_bias=bias, out_bias=bias, **details)


def layer_count(config: Config, *keys: str) -> int:
    """Number of layers, as a plain int."""
    return int(config.count(*(keys or ("num_hidden_layers", "n_layer", "num_layers", "n_layers")), high=MAX_LAYERS))


def shape(config: Config, kv_default: Number = None, head_dim_default: int | None = None) -> DecoderShape:
    """Hidden size, layers, heads, KV heads and head size, with the family's defaults for absent keys."""
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


def divided(config: Config, top: Number, bottom: Number, name: str, how: str) -> Any:
    """Quotient of two counts; raises an error if it is not whole."""
    if top % bottom:
        raise UnsupportedModel(name, f"{int(top)} / {int(bottom)}", f"{how} must be whole")
    return config.derived(top // bottom, name, how)


def attention(s: DecoderShape, look: AttentionPattern | None = None, **more: Any) -> Attention:
    """Grouped-query attention of this shape."""
    return Attention(
        hidden=s.hidden, heads=s.heads, kv_heads=s.kv_heads, head_dim=s.head_dim, value_dim=s.head_dim,
        look=look or AttentionPattern(), **more,
    )  # fmt: skip


def window(config: Config, *keys: str) -> AttentionPattern:
    """Sliding-window attention pattern, with the window from one of `keys`."""
    size = config.count(*(keys or ("sliding_window",)), unit="token")
    return AttentionPattern(name="window", cap_tokens=size, kept_tokens=size)


def chunk(config: Config, key: str) -> AttentionPattern:
    """Chunked attention pattern (aligned chunks), with the size from `key`."""
    size = config.count(key, unit="token")
    return AttentionPattern(name="chunk", cap_tokens=size, kept_tokens=size)


def mixer_vectors(s: DecoderShape, style: Style) -> tuple[Vector, ...]:
    """Biases and query/key norms of attention."""
    vectors = []
    if style.qkv_bias:
        vectors.append(Vector(name="query bias", dims=(s.heads, s.head_dim)))
        vectors.append(Vector(name="key and value bias", dims=(2, s.kv_heads, s.head_dim)))
    if style.out_bias:
        vectors.append(Vector(name="output bias", dims=(s.hidden,)))
    if style.qk_norm == "head":
        vectors.append(Vector(name="query and key norm", dims=(2, s.head_dim)))
    if style.qk_norm == "full":
        vectors.append(Vector(name="query norm", dims=(s.heads, s.head_dim)))
        vectors.append(Vector(name="key norm", dims=(s.kv_heads, s.head_dim)))
    return tuple(vectors)


def norms(hidden: Number, style: Style, count: int | None = None) -> tuple[Vector, ...]:
    """Norms of a layer, by style or `count` of them."""
    vectors = style.norm_parts * (style.norms if count is None else count)
    return (Vector(name="norms", dims=(COPIES[vectors], hidden)),) if vectors else ()


def dense(config: Config, hidden: Number, style: Style, *keys: str, intermediate: Number = None) -> Dense:
    """Dense FFN."""
    width = intermediate if intermediate is not None else config.count(*(keys or ("intermediate_size",)))
    return Dense(hidden=hidden, intermediate=width, matrices=style.matrices, biases=1 if style.mlp_bias else 0)


def moe(
    hidden: Number, *, experts: Number, per_token: Number, intermediate: Number, shared: Number = 0, shared_intermediate: Number = 0,
    **more: Any,
) -> MoE:  # fmt: skip
    """Routed and shared experts, gated by default."""
    if per_token > experts:
        raise UnsupportedModel("num_experts_per_tok", int(per_token), f"must not exceed the {int(experts)} experts")
    fields = {"matrices": GATED, "shared_matrices": GATED} | more
    return MoE(
        hidden=hidden, experts=experts, per_token=per_token, intermediate=intermediate, shared_experts=shared,
        shared_intermediate=shared_intermediate, **fields,
    )  # fmt: skip


def block(mixer: Mixer, ffn: FeedForward, *vectors: tuple[Vector, ...]) -> Block:
    """Layer from its mixer, FFN and vectors."""
    return Block(count=1, attention=mixer, ffn=ffn, vectors=tuple(vector for group in vectors for vector in group))


def layer_vectors(s: DecoderShape, style: Style) -> tuple[Vector, ...]:
    """Norms of a layer, and biases and norms of its attention."""
    return (*norms(s.hidden, style), *mixer_vectors(s, style))


def alike(
    config: Config, s: DecoderShape, style: Style, ffn: FeedForward, looks: list[AttentionPattern] | None = None,
    extra: tuple[Vector, ...] = (), **ends: Any,
) -> Model:  # fmt: skip
    """Model of equal layers, which may differ in attention pattern."""
    vectors = layer_vectors(s, style)
    layers = [block(attention(s, look), ffn, vectors, extra) for look in looks or [AttentionPattern()] * s.layers]
    return finish(config, layers, s.hidden, style, **ends)


def routed_layers(
    config: Config,
    s: DecoderShape,
    style: Style,
    looks: list[AttentionPattern],
    routed: MoE,
    sparse: list[bool],
    router: tuple[Vector, ...] = (),
    width: str = "intermediate_size",
) -> list[Block]:
    """Layers with experts and the router's vectors where `sparse`, with a dense FFN of the width under `width` elsewhere."""
    vectors = layer_vectors(s, style)
    layers = [
        block(attention(s, look), routed, vectors, router)
        if is_sparse
        else block(attention(s, look), dense(config, s.hidden, style, width), vectors)
        for look, is_sparse in zip(looks, sparse, strict=True)
    ]
    config.ignore(width)
    return layers


def finish(
    config: Config, layers: list[Block], hidden: Number, style: Style, final: tuple[Vector, ...] | None = None, embedding_dim: Number = None
) -> Model:
    """Model from its layers, with vocabulary, embedding, head, final norm and precision."""
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
        name=config.name, family=config.text("_family", default=config.text("model_type")), vocab=vocab, hidden=hidden,
        embedding_dim=hidden if embedding_dim is None else embedding_dim, tied=tied, blocks=grouped(layers),
        precision=precision(config, only_routers), max_context=context, vectors=vectors, notes=tuple(config.notes),
        source=config.source,
    )  # fmt: skip
