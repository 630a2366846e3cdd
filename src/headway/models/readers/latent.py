"""Readers of DeepSeek-V2 to V4 and Kimi-K2: latent attention, compressed entries, leading dense layers, shared experts."""

from __future__ import annotations

from typing import Any

from headway.core.quantity import known
from headway.core.units import Number
from headway.models.attention import AttentionPattern, Indexer
from headway.models.attention.latent import CompressedAttention, LatentAttention
from headway.models.model import Model, Vector
from headway.models.readers.read import Config, translate_layers
from headway.models.readers.standard import Style, block, constant, dense, finish, layer_count, moe, norms


def deepseek_v2(config: Config) -> Model:
    """DeepSeek-V2: MLA, a router without correction bias."""
    return _deepseek(config, router_bias=False)


def deepseek_v3(config: Config) -> Model:
    """DeepSeek-V3, R1, Kimi-K2: MLA, one shared expert, a correction bias on the router."""
    return _deepseek(config, router_bias=True)


def deepseek_v32(config: Config) -> Model:
    """DeepSeek-V3.2: V3 with a lightning indexer that selects the tokens that attention reads."""
    return _deepseek(config, router_bias=True, sparse=True)


def _deepseek(config: Config, router_bias: bool, sparse: bool = False) -> Model:
    style, hidden, layers = Style(), config.count("hidden_size"), layer_count(config)
    if sparse and (kinds := _indexer_kinds(config, layers)) is not None:
        mixers = [latent_attention(config, hidden, sparse, kind) for kind in kinds]
    else:
        mixers = [latent_attention(config, hidden, sparse)] * layers
    experts = config.count("n_routed_experts", "num_experts", default=None)
    if experts is None:
        plain = dense(config, hidden, style)
        return finish(config, [block(mixer, plain, norms(hidden, style), vectors) for mixer, vectors in mixers], hidden, style)
    routed, bias = deepseek_experts(config, hidden, experts, router_bias)
    sparse_layers = deepseek_sparse(config, layers)
    blocks = [
        block(mixer, routed, norms(hidden, style), vectors, bias)
        if is_sparse
        else block(mixer, dense(config, hidden, style), norms(hidden, style), vectors)
        for is_sparse, (mixer, vectors) in zip(sparse_layers, mixers, strict=True)
    ]
    config.ignore("intermediate_size", "layer_types")
    left_out(config)
    return finish(config, blocks, hidden, style)


def _indexer_kinds(config: Config, layers: int) -> list[str] | None:
    """Whether each layer has an indexer ("full") or reads the picks of the last that has ("shared"); None where all have one (GLM-5.2)."""
    kinds = {"F": "full", "S": "shared", "full": "full", "shared": "shared"}
    offset = int(config.count("index_skip_topk_offset", default=2, low=0))
    every_nth = int(config.count("index_topk_freq", default=1))
    if config.data.get("indexer_types") is not None:
        return translate_layers(config.layer_list("indexer_types", layers) or [], kinds, config, "indexer_types")
    pattern = config.raw("index_topk_pattern")
    if pattern is not None:
        if not isinstance(pattern, str | list) or len(pattern) < layers:
            raise config.refuse("index_topk_pattern", f"wants F or S for each of the {layers} layers")
        return translate_layers(pattern[:layers], kinds, config, "index_topk_pattern")
    return ["shared" if max(layer - offset + 1, 0) % every_nth else "full" for layer in range(layers)] if every_nth > 1 else None


def left_out(config: Config) -> None:
    """Add a note that multi-token prediction layers are not counted."""
    if config.raw("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"):
        config.notes.append("multi-token prediction layers are left out")


def deepseek_experts(config: Config, hidden: Number, experts: Number, router_bias: bool) -> tuple[Any, tuple[Vector, ...]]:
    """Routed and shared experts of one size, and the router's correction bias."""
    width = config.count("moe_intermediate_size")
    groups, topk = config.count("n_group", default=None), config.count("topk_group", default=None)
    limit = {"groups": groups, "groups_chosen": topk} if groups is not None and topk is not None and topk <= groups else {}
    shared = config.count("n_shared_experts", "num_shared_experts", default=0, low=0)
    latent = config.count("routed_expert_hidden_size", default=0)
    routed = moe(
        hidden, experts=experts, per_token=config.count("num_experts_per_tok", "num_experts_per_token"), intermediate=width,
        shared=shared, shared_intermediate=width, latent=latent, **limit,
    )  # fmt: skip
    noaux = router_bias and config.text("topk_method", default="noaux_tc") == "noaux_tc"
    vectors = (Vector(name="router correction bias", dims=(experts,)),) if noaux else ()
    if latent and config.flag("latent_moe_use_norm"):
        vectors += (Vector(name="norm of the latent experts' output", dims=(latent,)),)
    return routed, vectors


def deepseek_sparse(config: Config, layers: int) -> list[bool]:
    """Whether each layer is routed: after leading dense layers, every moe_layer_freq-th (a number, or a list of 0 and 1)."""
    first = int(config.count("first_k_dense_replace", default=0, low=0))
    kinds = config.layer_list("mlp_layer_types", layers)
    if kinds is not None:
        config.ignore("moe_layer_freq")
        return translate_layers(kinds, {"dense": False, "sparse": True}, config, "mlp_layer_types")
    if isinstance(config.data.get("moe_layer_freq"), list):
        return [bool(flag) and layer >= first for layer, flag in enumerate(config.layer_list("moe_layer_freq", layers) or [])]
    step = int(config.count("moe_layer_freq", default=1))
    return [layer >= first and layer % step == 0 for layer in range(layers)]


def latent_attention(config: Config, hidden: Number, sparse: bool, index: str = "full") -> tuple[LatentAttention, tuple[Vector, ...]]:
    """MLA with its norms and biases, and the indexer if there is one (`index` "shared": it reads the picks of an earlier layer's)."""
    config.ignore("num_key_value_heads", "head_dim", "qk_head_dim")
    heads, query_rank = config.count("num_attention_heads"), config.count("q_lora_rank", default=None)
    kv_rank, rope = config.count("kv_lora_rank"), config.count("qk_rope_head_dim")
    vectors = [Vector(name="latent norm", dims=(kv_rank,))]
    if query_rank is not None:
        vectors.append(Vector(name="query norm", dims=(query_rank,)))
    if config.flag("attention_bias"):
        vectors += [Vector(name="projection bias", dims=(size,)) for size in (query_rank or 0, kv_rank, rope, hidden)]
    indexer = None
    for key in ("index_n_heads", "index_head_dim") if sparse else ():
        config.count(key)
    if sparse and index == "full":
        dim = config.count("index_head_dim")
        indexer = Indexer(heads=config.count("index_n_heads"), dim=dim, query_input=query_rank or hidden, scaled=True)
        vectors.append(Vector(name="index key norm, weight and bias", dims=(2, indexer.dim)))
    mixer = LatentAttention(
        hidden=hidden, heads=heads, query_rank=query_rank, kv_rank=kv_rank, nope_dim=config.count("qk_nope_head_dim"), rope_dim=rope,
        value_dim=config.count("v_head_dim"), look=top_k(config) if sparse else AttentionPattern(), indexer=indexer,
        output_gate=config.flag("mla_use_output_gate"), reads_picks=sparse and index == "shared",
    )  # fmt: skip
    return mixer, tuple(vectors)


def top_k(config: Config) -> AttentionPattern:
    """Attention pattern that reads the tokens selected by an indexer; the KV of all tokens stays stored."""
    return AttentionPattern(name="topk", cap_tokens=config.count("index_topk", unit="token"))


OVERLAPPED = 4  # compression ratio whose entries cover two groups of tokens, with an indexer that selects entries
ENTRY_SCALES = known(8, "scales of an entry", "byte", "constant", "fp8 cache of DeepSeek-V4 in vLLM and SGLang: 448 + 128 + 8 bytes")
RATIOS = {0: None, 4: 4, 128: 128}
THREE = constant(3, "scales of a hyper-connection")


def deepseek_v4(config: Config) -> Model:
    """DeepSeek-V4: a compression ratio per layer: 0 window only, 4 selected entries, 128 all entries."""
    hidden, layers, style = config.count("hidden_size"), layer_count(config), Style()
    config.ignore("num_key_value_heads")
    routed, bias = deepseek_experts(config, hidden, config.count("n_routed_experts"), router_bias=True)
    ratios = translate_layers(config.layer_list("compress_ratios", layers) or [], RATIOS, config, "compress_ratios")
    if not ratios:
        raise config.refuse("compress_ratios", "DeepSeek-V4 lists there the compression ratio of each layer")
    hashed = int(config.count("num_hash_layers", default=0, low=0))
    mixers = {ratio: _mixer(config, hidden, ratio) for ratio in set(ratios)}
    joins = _hyper_connections(config, hidden)
    blocks = [
        block(mixers[ratio][0], routed, norms(hidden, style), mixers[ratio][1], joins, () if layer < hashed else bias)
        for layer, ratio in enumerate(ratios)
    ]
    left_out(config)
    config.ignore("compress_rope_theta")
    streams = config.count("hc_mult")
    head = (
        Vector(name="hyper-connection of the head", dims=(streams, streams, hidden)),
        Vector(name="its bases", dims=(streams,)),
        Vector(name="its scale", dims=(1,)),
    )
    return finish(config, blocks, hidden, style, (*norms(hidden, style, 1), *head))


def _mixer(config: Config, hidden: Number, ratio: int | None) -> tuple[CompressedAttention, tuple[Vector, ...]]:
    head_dim, heads, query_rank = config.count("head_dim"), config.count("num_attention_heads"), config.count("q_lora_rank")
    vectors = [
        Vector(name="query norm", dims=(query_rank,)),
        Vector(name="entry norm", dims=(head_dim,)),
        Vector(name="attention sinks", dims=(heads,)),
    ]
    indexer, overlap, tokens, top = None, 1, None, None
    if ratio is not None:
        tokens = config.derived(ratio, "compress ratio", "an entry of compress_ratios", "token")
        overlap = 2 if ratio == OVERLAPPED else 1
        vectors += _compressor_vectors(tokens, overlap, head_dim)
    for key in ("index_n_heads", "index_head_dim", "index_topk"):
        config.count(key)
    if ratio == OVERLAPPED:
        dim = config.count("index_head_dim")
        indexer = Indexer(heads=config.count("index_n_heads"), dim=dim, query_input=query_rank, scaled=True)
        top = config.count("index_topk")
        vectors += _compressor_vectors(tokens, overlap, indexer.dim)
    mixer = CompressedAttention(
        hidden=hidden, heads=heads, head_dim=head_dim, query_rank=query_rank, output_groups=config.count("o_groups"),
        output_rank=config.count("o_lora_rank"), window=config.count("sliding_window", unit="token"), ratio=tokens, overlap=overlap,
        rope_dim=config.count("qk_rope_head_dim", default=0, low=0), scale_bytes=ENTRY_SCALES, top_entries=top, indexer=indexer,
    )  # fmt: skip
    return mixer, tuple(vectors)


def _compressor_vectors(ratio: Number, overlap: Number, dim: Number) -> list[Vector]:
    return [Vector(name="position bias of the compressor", dims=(ratio, overlap, dim)), Vector(name="compressor norm", dims=(dim,))]


def _hyper_connections(config: Config, hidden: Number) -> tuple[Vector, ...]:
    """Two hyper-connections per layer: weights from all n residual streams to the (2 + n) * n numbers that mix them."""
    streams = config.count("hc_mult")
    mixes = config.derived((2 + int(streams)) * int(streams), "hyper-connection weights", "(2 + hc_mult) * hc_mult")
    return (
        Vector(name="hyper-connections", dims=(2, mixes, streams, hidden)),
        Vector(name="hyper-connection bases", dims=(2, mixes)),
        Vector(name="hyper-connection scales", dims=(2, THREE)),
    )
