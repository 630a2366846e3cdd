"""Readers of decoders with linear attention or short convolutions: Qwen3-Next and 3.5, MiniMax-01 and M1, Kimi-Linear, LFM2."""

from __future__ import annotations

from typing import Any

from headway.core.errors import BadValue
from headway.core.units import Number
from headway.models.attention import Mixer
from headway.models.attention.recurrent import GatedDelta, Lightning, ShortConvolution
from headway.models.model import Model, Vector
from headway.models.readers.latent import deepseek_experts, deepseek_sparse, latent_attention, left_out
from headway.models.readers.mixture import mixtral_experts, qwen_experts, qwen_sparse
from headway.models.readers.read import EXTEND, Config, translate_layers
from headway.models.readers.standard import (
    Style,
    attention,
    block,
    dense,
    finish,
    layer_count,
    mixer_vectors,
    moe,
    norms,
    shape,
)


def qwen3_next(config: Config) -> Model:
    """Qwen3-Next: three gated DeltaNet layers per layer of gated attention, with many small experts."""
    s, style = shape(config, head_dim_default=256), Style(qk_norm="head")
    delta = GatedDelta(
        hidden=s.hidden, key_heads=config.count("linear_num_key_heads"), value_heads=config.count("linear_num_value_heads"),
        key_dim=config.count("linear_key_head_dim"), value_dim=config.count("linear_value_head_dim"),
        kernel=config.count("linear_conv_kernel_dim"),
    )  # fmt: skip
    inner = (Vector(name="decay and step bias", dims=(2, delta.value_heads)), Vector(name="gated norm", dims=(delta.value_dim,)))
    gated = config.flag("attn_output_gate", default=True)
    full = (attention(s, query_copies=2 if gated else 1), mixer_vectors(s, style))
    types = config.layer_list("layer_types", s.layers)
    period = int(config.count("full_attention_interval", default=4))
    kinds = types or ["full_attention" if (layer + 1) % period == 0 else "linear_attention" for layer in range(s.layers)]
    mixers = translate_layers(kinds, {"full_attention": full, "linear_attention": (delta, inner)}, config, "layer_types")
    has_experts = config.count("num_experts", default=0, low=0) > 0
    routed = qwen_experts(config, s.hidden, shared=True) if has_experts else None
    sparse = qwen_sparse(config, s.layers) if has_experts else [False] * s.layers
    layers = [
        block(mixer, routed if routed and is_sparse else dense(config, s.hidden, style), norms(s.hidden, style), vectors)
        for (mixer, vectors), is_sparse in zip(mixers, sparse, strict=True)
    ]
    config.ignore("intermediate_size", "sliding_window")
    left_out(config)
    return finish(config, layers, s.hidden, style)


def minimax_lightning(config: Config) -> Model:
    """MiniMax-01 and M1: lightning attention with softmax attention every eighth layer, experts in all."""
    s, style = shape(config), Style()
    if config.count("shared_intermediate_size", default=0, low=0):
        raise config.refuse("shared_intermediate_size", f"a shared expert of MiniMax-01; {EXTEND}")
    ffn = mixtral_experts(config, s.hidden)
    linear = block(
        Lightning(hidden=s.hidden, heads=s.heads, head_dim=s.head_dim), ffn, norms(s.hidden, style),
        (Vector(name="output norm", dims=(s.heads, s.head_dim)),),
    )  # fmt: skip
    full = block(attention(s), ffn, norms(s.hidden, style))
    types = config.layer_list("layer_types", s.layers)
    if types is not None:
        layers = translate_layers(types, {"linear_attention": linear, "full_attention": full}, config, "layer_types")
    else:
        layers = translate_layers(
            config.layer_list("attn_type_list", s.layers) or [1] * s.layers, {0: linear, 1: full}, config, "attn_type_list"
        )
    config.ignore("sliding_window")
    return finish(config, layers, s.hidden, style)


def kimi_linear(config: Config) -> Model:
    """Kimi-Linear: three layers of Kimi delta attention per layer of MLA, with DeepSeek-V3's experts."""
    hidden, layers, style = config.count("hidden_size"), layer_count(config), Style()
    inner = config.table("linear_attn_config")
    if inner is None:
        raise config.refuse("linear_attn_config", "Kimi-Linear lists its full and linear layers there")
    full = set(inner.places("full_attn_layers"))  # counted from 1
    inner.ignore("kda_layers")
    mixers: dict[bool, tuple[Mixer, tuple[Vector, ...]]] = {
        True: latent_attention(config, hidden, sparse=False),
        False: _kimi_delta(inner, hidden),
    }
    inner.check_unread()
    config.ignore("num_key_value_heads", "num_expert_group", "mla_use_nope", "attn_res_block_size")
    residual = _residual_attention(config, hidden)
    routed, router = deepseek_experts(config, hidden, config.count("num_experts"), router_bias=True)
    plain = dense(config, hidden, style)
    blocks = []
    for layer, sparse in enumerate(deepseek_sparse(config, layers)):
        mixer, vectors = mixers[layer + 1 in full]
        blocks.append(block(mixer, routed if sparse else plain, norms(hidden, style), vectors, router if sparse else (), residual))
    left_out(config)
    final = (*norms(hidden, style, 1), Vector(name="residual attention before the head", dims=(2, hidden))) if residual else None
    return finish(config, blocks, hidden, style, final)


def _residual_attention(config: Config, hidden: Number) -> tuple[Vector, ...]:
    """Norms and scores with which each part of a Kimi-K3 layer weighs the residuals of earlier blocks of layers."""
    if not config.raw("attn_res_block_size"):
        return ()
    config.notes.append("attention over earlier residuals is counted as parameters, not timed")
    return (Vector(name="residual attention", dims=(2, 2, hidden)),)


def _kimi_delta(inner: Config, hidden: Number) -> tuple[Mixer, tuple[Vector, ...]]:
    """Kimi delta attention: a decay per channel; decay and output gate have low-rank projections of a head's width."""
    heads, dim = inner.count("num_heads"), inner.count("head_dim")
    mixer = GatedDelta(
        hidden=hidden, key_heads=heads, value_heads=heads, key_dim=dim, value_dim=dim, kernel=inner.count("short_conv_kernel_size"),
        gate_rank=dim, full_gate=inner.flag("use_full_rank_gate"),
    )  # fmt: skip
    vectors = (
        Vector(name="decay", dims=(heads,)), Vector(name="step bias", dims=(heads, dim)), Vector(name="gated norm", dims=(dim,)),
    )  # fmt: skip
    return mixer, vectors


def lfm2(config: Config) -> Model:
    """LFM2: short convolutions, with grouped-query attention in listed layers; experts after leading dense layers in LFM2-MoE."""
    s, style = shape(config), Style(qk_norm="head", tied=True)
    if config.flag("conv_bias"):
        raise config.refuse("conv_bias")
    conv = ShortConvolution(hidden=s.hidden, kernel=config.count("conv_L_cache"))
    kinds = config.layer_list("layer_types", s.layers)
    if not kinds:
        places = config.places("full_attn_idxs")
        if not places:
            raise BadValue("config.json layer_types", "nothing", "a list with an entry for each layer, or full_attn_idxs")
        kinds = ["full_attention" if layer in places else "conv" for layer in range(s.layers)]
    choices = {"full_attention": (attention(s), mixer_vectors(s, style)), "conv": (conv, ())}
    ffn = dense(config, s.hidden, style, intermediate=_lfm2_width(config))
    has_experts = config.data.get("model_type") == "lfm2_moe"
    routed = moe(
        s.hidden, experts=config.count("num_experts"), per_token=config.count("num_experts_per_tok"),
        intermediate=config.count("moe_intermediate_size"),
    ) if has_experts else None  # fmt: skip
    first = int(config.count("num_dense_layers", default=0, low=0)) if routed else s.layers
    blocks = [
        block(mixer, routed if routed and layer >= first else ffn, norms(s.hidden, style), vectors)
        for layer, (mixer, vectors) in enumerate(translate_layers(kinds, choices, config, "layer_types"))
    ]
    config.ignore("use_expert_bias")
    config.ignore("conv_dim", "conv_dim_out", "conv_use_xavier_init", "full_attn_idxs", "num_heads")
    return finish(config, blocks, s.hidden, style)


def _lfm2_width(config: Config) -> Any:
    """FFN width: two thirds of the stated width, scaled and rounded up to a multiple, unless the file disables the adjustment."""
    base_width = config.count("block_ff_dim", "intermediate_size")
    if config.data.get("model_type") == "lfm2_moe":
        return base_width
    multiple = int(config.count("block_multiple_of", default=256))
    factor = config.raw("block_ffn_dim_multiplier", default=1.0)
    if not config.flag("block_auto_adjust_ff_dim", default=True):
        return base_width
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 100:
        raise BadValue("config.json block_ffn_dim_multiplier", factor, "a number above 0")
    width = int(factor * int(2 * int(base_width) / 3))
    return config.derived(-(-width // multiple) * multiple, "FFN width", "2/3 * block_ff_dim, times its multiplier, rounded up")
