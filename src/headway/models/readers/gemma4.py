"""Reader of Gemma 4: wide heads in full layers, one projection for key and value, shared KV, embeddings of each layer, experts."""

from __future__ import annotations

from typing import Any

from headway.models.attention import AttentionPattern
from headway.models.attention.narrow_kv import NarrowKvAttention
from headway.models.model import FeedForward, Model, Vector
from headway.models.readers.dense import alternating
from headway.models.readers.read import Config
from headway.models.readers.standard import DecoderShape, Style, attention, block, dense, finish, layer_count, moe, norms, shape

WINDOW = "window"


def gemma4(config: Config) -> Model:
    """Gemma-4 text decoder: dense, with experts beside the dense FFN, or with embeddings of each layer."""
    config.assume(
        "Gemma4TextConfig", vocab_size=262144, hidden_size=2304, intermediate_size=9216, num_hidden_layers=30, num_attention_heads=8,
        num_key_value_heads=4, head_dim=256, global_head_dim=512, sliding_window=512, max_position_embeddings=131072,
        vocab_size_per_layer_input=262144,
    )  # fmt: skip
    is_width_stated = config.data.get("hidden_size_per_layer_input") is not None
    config.assume("Gemma4TextConfig", hidden_size_per_layer_input=256)
    s, style = shape(config), Style(norms=4, tied=True)
    if config.flag("attention_bias"):
        raise config.refuse("attention_bias", "--as dense, moe or mla reads the usual keys")
    first_shared = s.layers - int(config.count("num_kv_shared_layers", default=0, low=0, high=s.layers))
    looks = alternating(config, s, 6)
    looks[-1] = AttentionPattern()  # the last layer sees the whole context, whatever the list says
    width = config.count("hidden_size_per_layer_input", low=0)
    if not is_width_stated:
        table = int(config.count("vocab_size_per_layer_input")) * s.layers * int(width)
        config.notes.append(f"assumed: hidden_size_per_layer_input {int(width)}, the default: its tables have {table:,} parameters")
    parts = norms(s.hidden, style), _experts_beside(config, s, style), _layer_input(s.hidden, width)
    layers = []
    for layer, look in enumerate(looks):
        mixer, scales = _attention(config, s, look, shared=layer >= first_shared > 0)
        ffn, extra = parts[1] or (_dense(config, s, style, shared=layer >= first_shared > 0), ())
        layers.append(block(mixer, ffn, parts[0], scales, extra, parts[2]))
    config.ignore("attention_k_eq_v", "use_double_wide_mlp", "num_global_key_value_heads", "top_k_experts", "moe_intermediate_size")
    config.ignore("num_experts", "enable_moe_block", "expert_intermediate_size", "vocab_size_per_layer_input", "global_head_dim")
    return finish(config, layers, s.hidden, style, (*norms(s.hidden, style, 1), *_layer_tables(config, s.hidden, width)))


def _attention(config: Config, s: DecoderShape, look: AttentionPattern, shared: bool) -> tuple[Any, tuple[Vector, ...]]:
    """Attention of a layer with its query and key norms: full layers have wider heads, may have fewer KV heads and no value."""
    full = look.name != WINDOW
    one_projection = full and config.flag("attention_k_eq_v")
    head_dim = config.count("global_head_dim") if full else s.head_dim
    kv_heads = config.count("num_global_key_value_heads", default=s.kv_heads) if one_projection else s.kv_heads
    if s.heads % kv_heads:
        raise config.refuse("num_global_key_value_heads", f"must divide num_attention_heads = {int(s.heads)}")
    wide = DecoderShape(hidden=s.hidden, layers=s.layers, heads=s.heads, kv_heads=kv_heads, head_dim=head_dim)
    scales = (Vector(name="query norm" if shared else "query and key norm", dims=(1 if shared else 2, head_dim)),)
    if not shared and not one_projection:
        return attention(wide, look), scales
    mixer = NarrowKvAttention(
        hidden=s.hidden, heads=s.heads, kv_heads=kv_heads, head_dim=head_dim, value_dim=head_dim, look=look, caches=not shared,
        kv_projections=0 if shared else 1,
    )  # fmt: skip
    return mixer, scales


def _dense(config: Config, s: DecoderShape, style: Style, shared: bool) -> FeedForward:
    """Dense FFN: twice as wide in layers that read an earlier layer's KV, if the file asks for it."""
    if not (shared and config.flag("use_double_wide_mlp")):
        return dense(config, s.hidden, style)
    width = config.derived(2 * int(config.count("intermediate_size")), "FFN width", "2 * intermediate_size")
    return dense(config, s.hidden, style, intermediate=width)


def _experts_beside(config: Config, s: DecoderShape, style: Style) -> tuple[FeedForward, tuple[Vector, ...]] | None:
    """Routed experts beside the dense FFN of each layer, with the router's scales and three more norms; None where there are none."""
    if not config.flag("enable_moe_block"):
        return None
    experts = config.count("num_experts")
    ffn = moe(
        s.hidden, experts=experts, per_token=config.count("top_k_experts"), intermediate=config.count("moe_intermediate_size"),
        shared=1, shared_intermediate=config.count("intermediate_size"),
    )  # fmt: skip
    vectors = (Vector(name="router scale", dims=(s.hidden,)), Vector(name="scale of each expert", dims=(experts,)))
    return ffn, (*vectors, *norms(s.hidden, style, 3))


def _layer_input(hidden: Any, width: Any) -> tuple[Vector, ...]:
    """The layer's scale; gate, projection and norm of its own embedding where there is one."""
    scale = (Vector(name="scale of the layer", dims=(1,)),)
    if not width:
        return scale
    gates = Vector(name="gate and projection of the layer's embedding", dims=(2, hidden, width))
    return (*scale, gates, Vector(name="norm of the layer's embedding", dims=(hidden,)))


def _layer_tables(config: Config, hidden: Any, width: Any) -> tuple[Vector, ...]:
    """Embeddings of all layers, their projection and its norm."""
    if not width:
        return ()
    layers = config.derived(layer_count(config), "layers", "num_hidden_layers")
    config.notes.append("embeddings of each layer are counted as parameters; their small matmuls are not timed")
    return (
        Vector(name="embedding of each layer", dims=(config.count("vocab_size_per_layer_input"), layers, width)),
        Vector(name="projection to the layers' embeddings", dims=(hidden, layers, width)),
        Vector(name="norm of it", dims=(width,)),
    )
