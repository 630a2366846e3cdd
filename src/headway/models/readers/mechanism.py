"""Readers of a config.json as a named mechanism (`--as`): dense, moe or mla, for an architecture that nobody here knows.

What the file states under the usual names is read, layer by layer; of what else it states each key is named with its largest change.
"""

from __future__ import annotations

from headway.core.errors import UnsupportedModel
from headway.models.attention import AttentionPattern, Mixer
from headway.models.attention.recurrent import GatedDelta
from headway.models.model import Model, MoE
from headway.models.readers.dense import alternating, qwen_looks
from headway.models.readers.latent import deepseek_sparse, deepseek_v3, left_out
from headway.models.readers.mixture import qwen_sparse
from headway.models.readers.read import Config
from headway.models.readers.standard import (
    DecoderShape,
    Style,
    attention,
    block,
    chunk,
    dense,
    finish,
    layer_vectors,
    moe,
    shape,
    window,
)

EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "num_routed_experts")
PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts", "moe_top_k")
SHARED = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
SHARED_WIDTH = ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim")
DENSE_WIDTH = ("dense_intermediate_size", "intermediate_size_mlp", "intermediate_size")
LINEAR = ("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim")
FULL, NEAR, CHUNKED, RECURRENT = "full", "near", "chunked", "recurrent"
KINDS = {
    "full_attention": FULL, "attention": FULL, "full": FULL, "global": FULL, "global_attention": FULL, "sliding_attention": NEAR,
    "sliding_window": NEAR, "sliding": NEAR, "local": NEAR, "local_attention": NEAR, "chunked_attention": CHUNKED,
    "linear_attention": RECURRENT,
}  # fmt: skip


def as_dense(config: Config) -> Model:
    """Attention as the layers state it, and a gated FFN in every layer."""
    s, style = shape(config), _style(config)
    ffn = dense(config, s.hidden, style)
    vectors = layer_vectors(s, style)
    return finish(config, [block(mixer, ffn, vectors) for mixer in _mixers(config, s)], s.hidden, style)


def as_moe(config: Config) -> Model:
    """Attention as the layers state it; gated routed and shared experts in the layers that have them."""
    s, style = shape(config), _style(config)
    routed, vectors = _routed(config, s), layer_vectors(s, style)
    layers = [
        block(mixer, routed if sparse else dense(config, s.hidden, style, *DENSE_WIDTH), vectors)
        for mixer, sparse in zip(_mixers(config, s), _sparse(config, s.layers), strict=True)
    ]
    config.ignore("intermediate_size", "intermediate_size_mlp", "dense_intermediate_size")
    left_out(config)
    return finish(config, layers, s.hidden, style)


def as_mla(config: Config) -> Model:
    """Latent attention in every layer, with experts as in DeepSeek-V3 where the file states any."""
    return deepseek_v3(config)


def _routed(config: Config, s: DecoderShape) -> MoE:
    width = config.count("moe_intermediate_size", "expert_intermediate_size", "intermediate_size")
    shared_width = config.count(*SHARED_WIDTH, default=None, low=0)
    shared = config.count(*SHARED, default=1 if shared_width else 0, low=0)
    return moe(
        s.hidden, experts=config.count(*EXPERTS), per_token=config.count(*PER_TOKEN), intermediate=width,
        shared=shared, shared_intermediate=shared_width if shared_width else width,
    )  # fmt: skip


def _sparse(config: Config, layers: int) -> list[bool]:
    """Whether each layer is routed, by the keys of DeepSeek, Qwen and Llama 4."""
    places = config.places("moe_layers")
    if places:
        return [layer in places for layer in range(layers)]
    step = int(config.count("interleave_moe_layer_step", default=1))
    by_qwen = qwen_sparse(config, layers)
    by_deepseek = deepseek_sparse(config, layers)
    return [first and second and (layer + 1) % step == 0 for layer, (first, second) in enumerate(zip(by_qwen, by_deepseek, strict=True))]


def _mixers(config: Config, s: DecoderShape) -> list[Mixer]:
    """The mixer of each layer; the last `num_kv_shared_layers` read the KV of earlier ones."""
    first_shared = s.layers - int(config.count("num_kv_shared_layers", default=0, low=0, high=s.layers))
    looks = enumerate(_looks(config, s))

    def delta() -> GatedDelta:
        fields = ("key_heads", "value_heads", "key_dim", "value_dim", "kernel")
        return GatedDelta(hidden=s.hidden, **{field: config.count(key) for field, key in zip(fields, LINEAR, strict=True)})

    return [delta() if look is None else attention(s, look, caches=layer < first_shared) for layer, look in looks]


def _looks(config: Config, s: DecoderShape) -> list[AttentionPattern | None]:
    """Attention pattern of each layer; None for a recurrence."""
    types, data = config.layer_list("layer_types", s.layers), config.data
    if types is not None:
        config.ignore("sliding_window", "attention_chunk_size", *LINEAR, "full_attention_interval", "no_rope_layers", "max_window_layers")
        unknown = next((kind for kind in types if not isinstance(kind, str) or kind not in KINDS), None)
        if unknown is not None:
            raise UnsupportedModel("layer_types", unknown, f"known values are {', '.join(KINDS)}")
        return [_look(config, KINDS[kind]) for kind in types]
    if data.get("full_attention_interval") is not None and data.get(LINEAR[1]) is not None:
        period = int(config.count("full_attention_interval"))
        return [_look(config, FULL if (layer + 1) % period == 0 else RECURRENT) for layer in range(s.layers)]
    if data.get("attention_chunk_size") is not None:
        rotary = config.layer_list("no_rope_layers", s.layers) if data.get("no_rope_layers") else None
        period = int(config.count("no_rope_layer_interval", default=4))
        near = rotary or [(layer + 1) % period for layer in range(s.layers)]
        return [_look(config, CHUNKED if is_near else FULL) for is_near in near]
    if data.get("sliding_window") is None:
        return [AttentionPattern()] * s.layers
    if data.get("use_sliding_window") is not None or data.get("max_window_layers") is not None:
        return list(qwen_looks(config, s))
    return list(alternating(config, s, s.layers + 1))


def _look(config: Config, kind: str) -> AttentionPattern | None:
    if kind == RECURRENT:
        return None
    if kind == NEAR:
        return window(config)
    return chunk(config, "attention_chunk_size") if kind == CHUNKED else AttentionPattern()


def _style(config: Config) -> Style:
    """Biases as the usual keys state them."""
    bias = config.flag("attention_bias", "qkv_bias", "use_qkv_bias")
    norm = "head" if config.flag("use_qk_norm", "qk_norm", "qk_layernorm") else ""
    return Style(qkv_bias=bias, out_bias=config.flag("attention_out_bias"), mlp_bias=config.flag("mlp_bias"), qk_norm=norm)


MECHANISMS = {"dense": as_dense, "moe": as_moe, "mla": as_mla}
