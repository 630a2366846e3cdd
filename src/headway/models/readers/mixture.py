"""Readers of decoders with routed experts and grouped-query attention: Mixtral, Qwen-MoE and their relatives, MiniMax, MiMo."""

from __future__ import annotations

from typing import Any

from headway.core.errors import UnsupportedModel
from headway.core.units import Number
from headway.models.attention import AttentionPattern, Indexer
from headway.models.attention.grouped_query import Attention
from headway.models.model import Model, MoE, Vector
from headway.models.readers.dense import full_every, looks, qwen_looks
from headway.models.readers.latent import deepseek_experts, deepseek_sparse, left_out
from headway.models.readers.read import EXTEND, MAX_COUNT, Config, translate_layers, whole_number
from headway.models.readers.standard import (
    PLAIN,
    DecoderShape,
    Style,
    alike,
    attention,
    biased,
    block,
    chunk,
    dense,
    finish,
    layer_count,
    layer_vectors,
    moe,
    norms,
    routed_layers,
    shape,
    window,
)


def mixtral(config: Config) -> Model:
    """Mixtral: eight gated experts in place of the FFN."""
    config.assume("MixtralConfig", num_key_value_heads=8)
    s, style = shape(config), Style()
    return alike(config, s, style, mixtral_experts(config, s.hidden), looks(config, s, True))


def mixtral_experts(config: Config, hidden: Number, **more: Any) -> MoE:
    """Routed experts with the width of a dense FFN."""
    return moe(
        hidden, experts=config.count("num_local_experts", "num_experts"), per_token=config.count("num_experts_per_tok"),
        intermediate=config.count("intermediate_size"), **more,
    )  # fmt: skip


def gpt_oss(config: Config) -> Model:
    """gpt-oss: biased experts and router, an attention sink per head, a sliding window in every other layer."""
    s = shape(config)
    config.ignore("experts_per_token")
    bias = config.flag("attention_bias", default=True)
    style = Style(qkv_bias=bias, out_bias=bias)
    ffn = mixtral_experts(config, s.hidden, biases=1, clamped=1 if config.raw("swiglu_limit") else 0)
    extra = (Vector(name="attention sinks", dims=(s.heads,)), Vector(name="router bias", dims=(ffn.experts,)))
    return alike(config, s, style, ffn, looks(config, s), extra)


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


def qwen_experts(config: Config, hidden: Number, shared: bool) -> MoE:
    """Routed experts of a Qwen layer, with a gated shared expert if the architecture has one."""
    width = config.count("shared_expert_intermediate_size", default=None, low=0)
    more = {"shared": 1, "shared_intermediate": width, "shared_gates": 1} if shared and width else {}
    if width and not shared:
        raise config.refuse("shared_expert_intermediate_size", "this architecture has no shared expert")
    return moe(
        hidden, experts=config.count("num_experts", "num_local_experts"), per_token=config.count("num_experts_per_tok"),
        intermediate=config.count("moe_intermediate_size"), **more,
    )  # fmt: skip


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
            "moe_shared_expert_intermediate_size", f"wants moe_intermediate_size; {EXTEND}"
        )
    return _deepseek_experts(config, shape(config), style, config.count("num_experts"), router_bias)


def _deepseek_experts(config: Config, s: DecoderShape, style: Style, experts: Number, router_bias: bool) -> Model:
    routed, router = deepseek_experts(config, s.hidden, experts, router_bias)
    layers = routed_layers(config, s, style, looks(config, s), routed, deepseek_sparse(config, s.layers), router)
    left_out(config)
    return finish(config, layers, s.hidden, style)


def olmoe(config: Config) -> Model:
    """OLMoE: 64 small experts, norms over all query and key heads."""
    s, style = shape(config), biased(config, qk_norm="full")
    return alike(config, s, style, mixtral_experts(config, s.hidden))


def phimoe(config: Config) -> Model:
    """Phi-3.5-MoE: Mixtral with LayerNorm and biases on attention and head."""
    s, style = shape(config), biased(config, norm_parts=2, head_bias=config.flag("lm_head_bias"))
    ffn = mixtral_experts(config, s.hidden)
    return alike(config, s, style, ffn, looks(config, s, True))


def granite_moe(config: Config) -> Model:
    """Granite-3 MoE: small experts; the shared variant adds a shared FFN."""
    s, style = shape(config), biased(config)
    width = config.count("shared_intermediate_size", default=0, low=0)
    more = {"shared": 1, "shared_intermediate": width} if width else {}
    ffn = mixtral_experts(config, s.hidden, **more)
    return alike(config, s, style, ffn)


def dbrx(config: Config) -> Model:
    """DBRX: 16 experts, LayerNorm without bias; the config has two nested objects."""
    inner, routing = config.table("attn_config"), config.table("ffn_config")
    if inner is None or routing is None:
        raise config.refuse("attn_config" if inner is None else "ffn_config", "DBRX keeps its dimensions in attn_config and ffn_config")
    s, style = shape(config, kv_default=inner.count("kv_n_heads")), Style()
    ffn = moe(
        s.hidden, experts=routing.count("moe_num_experts"), per_token=routing.count("moe_top_k"),
        intermediate=routing.count("ffn_hidden_size"),
    )  # fmt: skip
    inner.check_unread()
    return alike(config, s, style, ffn)


def grok(config: Config) -> Model:
    """Grok-1: eight gated experts, norms before and after each part, a tied head."""
    s, style = shape(config), Style(norms=4, tied=True)
    return alike(config, s, style, mixtral_experts(config, s.hidden))


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
        s.hidden, experts=config.count("num_local_experts"), per_token=config.count("num_experts_per_tok", default=1),
        intermediate=width, shared=1, shared_intermediate=width,
    )  # fmt: skip
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
        config, [block(attention(s, kv_share=share), ffn, layer_vectors(s, style))] * s.layers, s.hidden, style
    )


def same_in_all(config: Config, key: str, layers: int, default: Any = None) -> Any:
    """Count stated as one number, or as a list with an equal number per layer."""
    if not isinstance(config.data.get(key), list):
        return config.count(key, default=default) if default is not None else config.count(key)
    counts = config.layer_list(key, layers) or []
    if len(set(map(str, counts))) != 1:
        raise config.refuse(key, f"wants the same number in all layers; {EXTEND}")
    return config.derived(whole_number(counts[0], f"config.json {key}", 1, MAX_COUNT), key, f"{key}, equal in all layers,")


def ernie_moe(config: Config) -> Model:
    """ERNIE-4.5: routed and shared experts between leading and trailing dense layers."""
    bias = config.flag("use_bias")
    s, style = shape(config), Style(qkv_bias=bias, out_bias=bias, mlp_bias=bias, tied=True)
    experts, width = config.count("moe_num_experts"), config.count("moe_intermediate_size")
    routed = moe(
        s.hidden, experts=experts, per_token=config.count("moe_k"), intermediate=width,
        shared=config.count("moe_num_shared_experts", default=0, low=0), shared_intermediate=width, biases=1 if bias else 0,
    )  # fmt: skip
    first, last = int(config.count("moe_layer_start_index", low=0)), config.raw("moe_layer_end_index", default=-1)
    end = s.layers - 1 if last == -1 else whole_number(last, "config.json moe_layer_end_index", 0, s.layers)
    step, router = int(config.count("moe_layer_interval", default=1)), (Vector(name="router correction bias", dims=(experts,)),)
    sparse = [first <= layer <= end and (layer + 1) % step == 0 for layer in range(s.layers)]
    layers = routed_layers(config, s, style, [AttentionPattern()] * s.layers, routed, sparse, router)
    left_out(config)
    return finish(config, layers, s.hidden, style)


# -- readers of MiniMax-M2 and M3: many experts; attention of M3 reads only the KV blocks that an index selects -----------------


def minimax_m2(config: Config) -> Model:
    """MiniMax-M2: full attention with norms over all query and key heads."""
    s = shape(config)
    style = Style(qk_norm=_qk_norm(config))
    if config.count("shared_intermediate_size", default=0, low=0):
        raise config.refuse("shared_intermediate_size", f"a shared expert; {EXTEND}")
    if any(kind != 1 for kind in config.layer_list("attn_type_list", s.layers) or []):
        raise config.refuse("attn_type_list", f"only full attention (1) is known here; {EXTEND}")
    ffn = mixtral_experts(config, s.hidden)
    left_out(config)
    config.ignore("mtp_transformer_layers", "use_mtp")
    bias = (Vector(name="router correction bias", dims=(ffn.experts,)),) if config.flag("use_routing_bias") else ()
    return alike(config, s, style, ffn, extra=bias)


def _qk_norm(config: Config) -> str:
    kinds = {"per_layer": "full", "per_head": "head"}
    kind = config.text("qk_norm_type", default="per_layer")
    if not config.flag("use_qk_norm"):
        return ""
    if kind not in kinds:
        raise config.refuse("qk_norm_type", "known are per_layer and per_head")
    return kinds[kind]


def minimax_m3(config: Config) -> Model:
    """MiniMax-M3: leading dense layers, then routed and shared experts; sparse layers select KV blocks by an index key."""
    s = shape(config)
    style = Style(qk_norm=_qk_norm(config))
    if config.flag("attention_output_gate"):
        raise config.refuse("attention_output_gate")
    routed = moe(
        s.hidden,
        experts=config.count("num_local_experts"),
        per_token=config.count("num_experts_per_tok"),
        intermediate=config.count("moe_intermediate_size", "intermediate_size"),
        shared=config.count("n_shared_experts", default=0, low=0),
        shared_intermediate=config.count("shared_intermediate_size", default=0, low=0),
    )
    plain = dense(config, s.hidden, style, "dense_intermediate_size")
    config.ignore("intermediate_size", "mtp_transformer_layers", "use_mtp")
    left_out(config)
    router = (Vector(name="router correction bias", dims=(routed.experts,)),) if config.flag("use_routing_bias") else ()
    base, (mixer, extra, picking) = layer_vectors(s, style), _picked(config, s)
    layers = [
        block(mixer if picks else attention(s), routed if sparse else plain, base, extra if picks else (), router if sparse else ())
        for picks, sparse in zip(picking, deepseek_sparse(config, s.layers), strict=True)
    ]
    return finish(config, layers, s.hidden, style)


def _picked(config: Config, s: DecoderShape) -> tuple[Attention, tuple[Vector, ...], list[bool]]:
    """Attention that reads the top-k KV blocks, including the newest block, with its vectors, and whether each layer has it."""
    inner = config.table("sparse_attention_config")
    if inner is None or not inner.flag("use_sparse_attention"):
        return attention(s), (), [False] * s.layers
    dim = inner.count("sparse_index_dim")
    indexer = Indexer(heads=inner.count("sparse_num_index_heads"), dim=dim, query_input=s.hidden, head_weights=0)
    blocks, size = inner.count("sparse_topk_blocks"), inner.count("sparse_block_size", unit="token")
    cap = inner.derived(int(blocks) * int(size), "tokens picked", "sparse_topk_blocks * sparse_block_size", "token")
    vectors = (Vector(name="index query and key norm", dims=(2, dim)),)
    picking = [bool(flag) for flag in inner.layer_list("sparse_attention_freq", s.layers) or [True] * s.layers]
    return attention(s, AttentionPattern(name="topk", cap_tokens=cap), indexer=indexer), vectors, picking


# -- readers of routed decoders with more beside the experts: Arctic's dense path in each layer, Trinity's gated attention ------


def arctic(config: Config) -> Model:
    """Snowflake Arctic: beside the experts each routed layer has a dense FFN as wide as the model, with a norm of its own."""
    s, style = shape(config), Style()
    if not config.flag("use_residual"):
        raise config.refuse("use_residual")
    config.ignore("parallel_attn_mlp_res", "enc_index", "enable_expert_tensor_parallelism", "moe_token_dropping")
    routed = mixtral_experts(config, s.hidden, shared=1, shared_intermediate=s.hidden)
    dense_block = block(attention(s), dense(config, s.hidden, style), norms(s.hidden, style))
    step, pattern = int(config.count("moe_layer_frequency", default=2)), looks(config, s, True)
    layers = [
        block(attention(s, look), routed, norms(s.hidden, style, 3)) if (layer + 1) % step == 0 else dense_block
        for layer, look in enumerate(pattern)
    ]
    return finish(config, layers, s.hidden, style)


def afmoe(config: Config) -> Model:
    """Arcee's Trinity: a gate on the output of attention, norms around each part, windows in 3 of 4 layers, sigmoid routing with a bias."""
    s, style = shape(config), biased(config, norms=4, qk_norm="head")
    width = config.count("moe_intermediate_size")
    routed = moe(
        s.hidden, experts=config.count("num_experts"), per_token=config.count("num_experts_per_tok"), intermediate=width,
        shared=config.count("num_shared_experts", default=0, low=0), shared_intermediate=width,
    )  # fmt: skip
    first = int(config.count("num_dense_layers", default=0, low=0, high=s.layers))
    plain, vectors = dense(config, s.hidden, style), layer_vectors(s, style)
    router = (Vector(name="router correction bias", dims=(routed.experts,)),)
    config.ignore("num_expert_groups", "route_norm")
    layers = [
        block(attention(s, look, query_copies=2), plain if layer < first else routed, vectors, () if layer < first else router)
        for layer, look in enumerate(full_every(config, s.layers, int(config.count("global_attn_every_n_layers", default=4))))
    ]
    return finish(config, layers, s.hidden, style)


# -- reader of MiMo-V2: full and sliding-window layers with heads of their own, keys wider than values, experts in listed layers 


def mimo_v2(config: Config) -> Model:
    """MiMo-V2-Flash and Pro."""
    hidden, layers, style = config.count("hidden_size"), layer_count(config), Style()
    for key in ("attention_bias", "mlp_bias", "attention_projection_layout", "use_qk_norm"):
        if config.raw(key) not in (None, False, "fused_qkv", "split"):
            raise config.refuse(key)
    config.ignore("sliding_window_size", "attention_chunk_size", "hybrid_block_size", "num_key_value_heads")
    pattern = config.layer_list("hybrid_layer_pattern", layers)
    if pattern is None:
        raise config.refuse("hybrid_layer_pattern", "MiMo-V2 lists there which layers have a sliding window (1)")
    near = window(config, "sliding_window", "sliding_window_size")
    mixers = {0: _attention(config, hidden, "", AttentionPattern()), 1: _attention(config, hidden, "swa_", near)}
    sinks = {0: config.flag("add_full_attention_sink_bias"), 1: config.flag("add_swa_attention_sink_bias")}
    routed, router = deepseek_experts(config, hidden, config.count("n_routed_experts"), router_bias=True)
    plain = dense(config, hidden, style)
    blocks = []
    kinds = translate_layers(pattern, {0: 0, 1: 1}, config, "hybrid_layer_pattern")
    for kind, sparse in zip(kinds, deepseek_sparse(config, layers), strict=True):
        mixer = mixers[kind]
        sink = (Vector(name="attention sinks", dims=(mixer.heads,)),) if sinks[kind] else ()
        blocks.append(block(mixer, routed if sparse else plain, norms(hidden, style), sink, router if sparse else ()))
    left_out(config)
    return finish(config, blocks, hidden, style)


def _attention(config: Config, hidden: Number, stem: str, look: AttentionPattern) -> Attention:
    """Attention of one of the two kinds; the keys of sliding layers begin with `stem`."""
    head_dim = config.count(f"{stem}head_dim", "head_dim")
    heads, kv_heads = config.count(f"{stem}num_attention_heads", "num_attention_heads"), config.count(f"{stem}num_key_value_heads")
    if heads % kv_heads:
        raise UnsupportedModel(f"{stem}num_key_value_heads", int(kv_heads), f"must divide the {int(heads)} query heads")
    value_dim = config.count(f"{stem}v_head_dim", "v_head_dim", default=head_dim)
    return Attention(hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim, value_dim=value_dim, look=look)
