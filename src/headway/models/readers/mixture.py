"""Readers of decoders with routed experts and grouped-query attention: Mixtral, Qwen-MoE and their relatives."""

from __future__ import annotations

from typing import Any

from headway.models.attention import AttentionPattern
from headway.models.model import Model, MoE, Vector
from headway.models.readers.dense import looks, qwen_looks
from headway.models.readers.latent import deepseek_experts, deepseek_sparse, left_out
from headway.models.readers.read import MAX_COUNT, Config, translate_layers, whole_number
from headway.models.readers.standard import (
    PLAIN,
    DecoderShape,
    Style,
    attention,
    biased,
    block,
    chunk,
    dense,
    finish,
    mixer_vectors,
    moe,
    norms,
    routed_layers,
    shape,
    uniform,
)


def mixtral(config: Config) -> Model:
    """Mixtral: eight gated experts in place of the FFN."""
    config.assume("MixtralConfig", num_key_value_heads=8)
    s, style = shape(config), Style()
    return finish(config, uniform(s, style, mixtral_experts(config, s.hidden), looks(config, s, True)), s.hidden, style)


def mixtral_experts(config: Config, hidden: Any, **more: Any) -> MoE:
    """Routed experts with the width of a dense FFN."""
    return moe(
        hidden,
        experts=config.count("num_local_experts", "num_experts"),
        per_token=config.count("num_experts_per_tok"),
        intermediate=config.count("intermediate_size"),
        **more,
    )


def gpt_oss(config: Config) -> Model:
    """gpt-oss: biased experts and router, an attention sink per head, a sliding window in every other layer."""
    s = shape(config)
    config.ignore("experts_per_token")
    bias = config.flag("attention_bias", default=True)
    style = Style(qkv_bias=bias, out_bias=bias)
    ffn = mixtral_experts(config, s.hidden, biases=1, clamped=1 if config.raw("swiglu_limit") else 0)
    extra = (Vector(name="attention sinks", dims=(s.heads,)), Vector(name="router bias", dims=(ffn.experts,)))
    layers = [block(attention(s, look), ffn, norms(s.hidden, style), mixer_vectors(s, style), extra) for look in looks(config, s)]
    return finish(config, layers, s.hidden, style)


def qwen2_moe(config: Config) -> Model:
    """Qwen1.5/2-MoE: routed experts and one gated shared expert."""
    return _qwen_moe(config, Style(qkv_bias=config.flag("qkv_bias", "attention_bias", default=True)), shared=True)


def qwen3_moe(config: Config) -> Model:
    """Qwen3-MoE: no shared expert; `mlp_only_layers` and `decoder_sparse_step` mark dense layers."""
    bias = config.flag("attention_bias")
    config.ignore("use_qk_norm", "qkv_bias")
    return _qwen_moe(config, Style(qk_norm="head", qkv_bias=bias, out_bias=bias), shared=False)


def _qwen_moe(config: Config, style: Style, shared: bool) -> Model:
    s = shape(config, head_dim_default=128 if style.qk_norm else None)
    routed = qwen_experts(config, s.hidden, shared)
    layers = routed_layers(config, s, style, qwen_looks(config, s), routed, qwen_sparse(config, s.layers))
    return finish(config, layers, s.hidden, style)


def qwen_experts(config: Config, hidden: Any, shared: bool) -> MoE:
    """Routed experts of a Qwen layer, with a gated shared expert if the architecture has one."""
    width = config.count("shared_expert_intermediate_size", default=None, low=0)
    more = {"shared": 1, "shared_intermediate": width, "shared_gates": 1} if shared and width else {}
    if width and not shared:
        raise config.refuse("shared_expert_intermediate_size", "this architecture has no shared expert")
    return moe(
        hidden,
        experts=config.count("num_experts", "num_local_experts"),
        per_token=config.count("num_experts_per_tok"),
        intermediate=config.count("moe_intermediate_size"),
        **more,
    )


def qwen_sparse(config: Config, layers: int) -> list[bool]:
    """Whether each layer is routed."""
    step = int(config.count("decoder_sparse_step", default=1))
    only = config.places("mlp_only_layers")
    return [layer not in only and (layer + 1) % step == 0 for layer in range(layers)]


def deepseek_like(config: Config) -> Model:
    """GLM-4.5 to 4.7 and dots1: grouped-query attention with DeepSeek-V3's experts, leading dense layers and router."""
    bias = config.flag("attention_bias")
    kind = config.data.get("model_type")
    qk = config.flag("use_qk_norm", default=kind == "dots1")
    style = Style(qkv_bias=bias, out_bias=bias and kind in ("dots1", "deepseek"), qk_norm="head" if qk else "")
    s = shape(config, head_dim_default=128 if kind != "deepseek" else None)
    return _deepseek_experts(config, s, style, config.count("n_routed_experts"), router_bias=kind != "deepseek")


def bailing(config: Config) -> Model:
    """Ling 1 and 2: DeepSeek's experts; the second generation has query and key norms and a router correction bias."""
    qk = config.flag("use_qk_norm")
    style = Style(qkv_bias=config.flag("use_qkv_bias"), out_bias=config.flag("use_bias"), qk_norm="head" if qk else "")
    router_bias = config.flag("moe_router_enable_expert_bias")
    shared_width = config.count("moe_shared_expert_intermediate_size", default=config.count("moe_intermediate_size"))
    if shared_width != config.count("moe_intermediate_size"):
        raise config.refuse(
            "moe_shared_expert_intermediate_size", "wants moe_intermediate_size; --as dense, moe or mla reads the usual keys"
        )
    return _deepseek_experts(config, shape(config), style, config.count("num_experts"), router_bias)


def _deepseek_experts(config: Config, s: DecoderShape, style: Style, experts: Any, router_bias: bool) -> Model:
    routed, router = deepseek_experts(config, s.hidden, experts, router_bias)
    layers = routed_layers(config, s, style, looks(config, s), routed, deepseek_sparse(config, s.layers), router)
    left_out(config)
    return finish(config, layers, s.hidden, style)


def olmoe(config: Config) -> Model:
    """OLMoE: 64 small experts, norms over all query and key heads."""
    s, style = shape(config), biased(config, qk_norm="full")
    return finish(config, uniform(s, style, mixtral_experts(config, s.hidden)), s.hidden, style)


def phimoe(config: Config) -> Model:
    """Phi-3.5-MoE: Mixtral with LayerNorm and biases on attention and head."""
    s, style = shape(config), biased(config, norm_parts=2, head_bias=config.flag("lm_head_bias"))
    ffn = mixtral_experts(config, s.hidden)
    return finish(config, uniform(s, style, ffn, looks(config, s, True)), s.hidden, style)


def granite_moe(config: Config) -> Model:
    """Granite-3 MoE: small experts; the shared variant adds a shared FFN."""
    s, style = shape(config), biased(config)
    width = config.count("shared_intermediate_size", default=0, low=0)
    more = {"shared": 1, "shared_intermediate": width} if width else {}
    ffn = mixtral_experts(config, s.hidden, **more)
    return finish(config, uniform(s, style, ffn), s.hidden, style)


def dbrx(config: Config) -> Model:
    """DBRX: 16 experts, LayerNorm without bias; the config has two nested objects."""
    inner, routing = config.table("attn_config"), config.table("ffn_config")
    if inner is None or routing is None:
        raise config.refuse("attn_config" if inner is None else "ffn_config", "DBRX keeps its dimensions in attn_config and ffn_config")
    s, style = shape(config, kv_default=inner.count("kv_n_heads")), Style()
    ffn = moe(
        s.hidden,
        experts=routing.count("moe_num_experts"),
        per_token=routing.count("moe_top_k"),
        intermediate=routing.count("ffn_hidden_size"),
    )
    inner.check_unread()
    return finish(config, uniform(s, style, ffn), s.hidden, style)


def grok(config: Config) -> Model:
    """Grok-1: eight gated experts, norms before and after each part, a tied head."""
    s, style = shape(config), Style(norms=4, tied=True)
    return finish(config, uniform(s, style, mixtral_experts(config, s.hidden)), s.hidden, style)


def glam(config: Config) -> Model:
    """GLaM: experts of two matrices in every other layer, a gated FFN in the rest, a tied head."""
    s, style = shape(config), Style(tied=True)
    gated = "glu" in config.text("dense_hidden_act", default="geglu")
    width = config.count("intermediate_size")
    routed = moe(
        s.hidden, experts=config.count("num_experts"), per_token=config.count("num_experts_per_tok"), intermediate=width, matrices=PLAIN
    )
    plain = dense(config, s.hidden, style if gated else style.but(matrices=PLAIN))
    layers = [block(attention(s), routed if sparse else plain, norms(s.hidden, style)) for sparse in qwen_sparse(config, s.layers)]
    return finish(config, layers, s.hidden, style)


def llama4(config: Config) -> Model:
    """Llama-4: one routed and one shared expert per token; 3 of 4 layers attend within chunks."""
    s, style = shape(config), biased(config)
    config.raw("use_qk_norm")  # query and key norms have no parameters
    width = config.count("intermediate_size")
    routed = moe(
        s.hidden,
        experts=config.count("num_local_experts"),
        per_token=config.count("num_experts_per_tok", default=1),
        intermediate=width,
        shared=1,
        shared_intermediate=width,
    )
    step, moe_layers = int(config.count("interleave_moe_layer_step", default=1)), config.places("moe_layers")
    sparse = [layer in moe_layers if moe_layers else (layer + 1) % step == 0 for layer in range(s.layers)]
    layers = routed_layers(config, s, style, _llama4_looks(config, s), routed, sparse, width="intermediate_size_mlp")
    return finish(config, layers, s.hidden, style)


def _llama4_looks(config: Config, s: DecoderShape) -> list[AttentionPattern]:
    if config.data.get("attention_chunk_size") is None:
        config.ignore("layer_types", "no_rope_layers")
        return [AttentionPattern()] * s.layers
    near = chunk(config, "attention_chunk_size")
    types = config.layer_list("layer_types", s.layers)
    if types is not None:
        return translate_layers(types, {"chunked_attention": near, "full_attention": AttentionPattern()}, config, "layer_types")
    rotary = config.layer_list("no_rope_layers", s.layers) if config.data.get("no_rope_layers") else None
    if rotary is not None:
        return translate_layers(rotary, {1: near, 0: AttentionPattern()}, config, "no_rope_layers")
    period = int(config.count("no_rope_layer_interval", default=4))
    return [AttentionPattern() if (layer + 1) % period == 0 else near for layer in range(s.layers)]


def hunyuan(config: Config) -> Model:
    """Hunyuan-Large and A13B: routed and shared experts; in Large, neighbouring layers share a KV cache (CLA)."""
    s, style = shape(config), biased(config, qk_norm="head" if config.flag("use_qk_norm") else "", tied=True)
    share = config.count("cla_share_factor", default=2) if config.flag("use_cla") else 1
    config.ignore("attention_head_dim", "cla_share_factor", "use_mixed_mlp_moe", "mlp_bias", "moe_layer_num_skipped")
    width = same_in_all(config, "moe_intermediate_size", s.layers, default=config.count("intermediate_size"))
    shared = same_in_all(config, "num_shared_expert", s.layers, default=0) if config.flag("use_mixed_mlp_moe", default=True) else 0
    experts, per_token = same_in_all(config, "num_experts", s.layers), same_in_all(config, "moe_topk", s.layers)
    ffn = moe(s.hidden, experts=experts, per_token=per_token, intermediate=width, shared=shared, shared_intermediate=width)
    return finish(
        config, [block(attention(s, kv_share=share), ffn, norms(s.hidden, style), mixer_vectors(s, style))] * s.layers, s.hidden, style
    )


def same_in_all(config: Config, key: str, layers: int, default: Any = None) -> Any:
    """Count stated as one number, or as a list with an equal number per layer."""
    if not isinstance(config.data.get(key), list):
        return config.count(key, default=default) if default is not None else config.count(key)
    counts = config.layer_list(key, layers) or []
    if len(set(map(str, counts))) != 1:
        raise config.refuse(key, "wants the same number in all layers; --as dense, moe or mla reads the usual keys")
    return config.derived(whole_number(counts[0], f"config.json {key}", 1, MAX_COUNT), key, f"{key}, equal in all layers,")


def ernie_moe(config: Config) -> Model:
    """ERNIE-4.5: routed and shared experts between leading and trailing dense layers."""
    bias = config.flag("use_bias")
    s, style = shape(config), Style(qkv_bias=bias, out_bias=bias, mlp_bias=bias, tied=True)
    experts, width = config.count("moe_num_experts"), config.count("moe_intermediate_size")
    routed = moe(
        s.hidden,
        experts=experts,
        per_token=config.count("moe_k"),
        intermediate=width,
        shared=config.count("moe_num_shared_experts", default=0, low=0),
        shared_intermediate=width,
        biases=1 if bias else 0,
    )
    first, last = int(config.count("moe_layer_start_index", low=0)), config.raw("moe_layer_end_index", default=-1)
    end = s.layers - 1 if last == -1 else whole_number(last, "config.json moe_layer_end_index", 0, s.layers)
    step, router = int(config.count("moe_layer_interval", default=1)), (Vector(name="router correction bias", dims=(experts,)),)
    sparse = [first <= layer <= end and (layer + 1) % step == 0 for layer in range(s.layers)]
    layers = routed_layers(config, s, style, [AttentionPattern()] * s.layers, routed, sparse, router)
    left_out(config)
    return finish(config, layers, s.hidden, style)
