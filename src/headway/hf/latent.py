"""DeepSeek-V2, V3 and V3.2 and what shares their shape (Kimi-K2): latent attention, leading dense layers, shared experts."""

from __future__ import annotations

from typing import Any

from headway.hf.read import Config
from headway.hf.standard import COPIES, Style, block, dense, finish, layer_count, moe, norms
from headway.model import NONE, AttentionPattern, Indexer, LatentAttention, Model, Vector


def deepseek_v2(config: Config) -> Model:
    """DeepSeek-V2: MLA; its router has no correction bias."""
    return _deepseek(config, router_bias=False)


def deepseek_v3(config: Config) -> Model:
    """DeepSeek-V3, R1, Kimi-K2: MLA, one shared expert, a correction bias on the router."""
    return _deepseek(config, router_bias=True)


def deepseek_v32(config: Config) -> Model:
    """DeepSeek-V3.2: V3 with a lightning indexer that picks the tokens attention reads."""
    return _deepseek(config, router_bias=True, sparse=True)


def _deepseek(config: Config, router_bias: bool, sparse: bool = False) -> Model:
    style, hidden, layers = Style(), config.count("hidden_size"), layer_count(config)
    mixer, vectors = latent_attention(config, hidden, sparse)
    experts = config.count("n_routed_experts", "num_experts", default=None)
    if experts is None:
        return finish(config, [block(mixer, dense(config, hidden, style), norms(hidden, style), vectors)] * layers, hidden, style)
    routed, bias = deepseek_experts(config, hidden, experts, router_bias)
    sparse_layers = deepseek_sparse(config, layers)
    blocks = [
        block(mixer, routed, norms(hidden, style), vectors, bias)
        if is_sparse
        else block(mixer, dense(config, hidden, style), norms(hidden, style), vectors)
        for is_sparse in sparse_layers
    ]
    config.ignore("intermediate_size")
    left_out(config)
    return finish(config, blocks, hidden, style)


def left_out(config: Config) -> None:
    """Say that layers which predict further tokens are not counted."""
    if config.raw("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"):
        config.notes.append("multi-token prediction layers are left out")


def deepseek_experts(config: Config, hidden: Any, experts: Any, router_bias: bool) -> tuple[Any, tuple[Vector, ...]]:
    """Routed and shared experts of one size, and the router's correction bias."""
    width = config.count("moe_intermediate_size")
    groups, topk = config.count("n_group", default=None), config.count("topk_group", default=None)
    limit = {"groups": groups, "groups_chosen": topk} if groups is not None and topk is not None and topk <= groups else {}
    shared = config.count("n_shared_experts", "num_shared_experts", default=0, low=0)
    routed = moe(
        hidden,
        experts=experts,
        per_token=config.count("num_experts_per_tok", "num_experts_per_token"),
        intermediate=width,
        shared=shared,
        shared_intermediate=width,
        **limit,
    )
    noaux = router_bias and config.text("topk_method", default="noaux_tc") == "noaux_tc"
    return routed, (Vector(name="router correction bias", dims=(experts,)),) if noaux else ()


def deepseek_sparse(config: Config, layers: int) -> list[bool]:
    """Which layers are routed: after the leading dense ones, every moe_layer_freq-th (a number, or a list of 0 and 1)."""
    first = int(config.count("first_k_dense_replace", default=0, low=0))
    if isinstance(config.data.get("moe_layer_freq"), list):
        return [bool(flag) and layer >= first for layer, flag in enumerate(config.layer_list("moe_layer_freq", layers) or [])]
    step = int(config.count("moe_layer_freq", default=1))
    return [layer >= first and layer % step == 0 for layer in range(layers)]


def latent_attention(config: Config, hidden: Any, sparse: bool) -> tuple[LatentAttention, tuple[Vector, ...]]:
    """MLA, its norms and biases, and the indexer where there is one."""
    config.ignore("num_key_value_heads", "head_dim", "qk_head_dim")
    heads, query_rank = config.count("num_attention_heads"), config.count("q_lora_rank", default=None)
    kv_rank, rope = config.count("kv_lora_rank"), config.count("qk_rope_head_dim")
    vectors = [Vector(name="latent norm", dims=(kv_rank,))]
    if query_rank is not None:
        vectors.append(Vector(name="query norm", dims=(query_rank,)))
    if config.flag("attention_bias"):
        vectors += [Vector(name="projection bias", dims=(size,)) for size in (query_rank or NONE, kv_rank, rope, hidden)]
    indexer = None
    if sparse:
        indexer = Indexer(heads=config.count("index_n_heads"), dim=config.count("index_head_dim"), query_input=query_rank or hidden)
        vectors.append(Vector(name="index key norm, weight and bias", dims=(COPIES[2], indexer.dim)))
    mixer = LatentAttention(
        hidden=hidden,
        heads=heads,
        query_rank=query_rank,
        kv_rank=kv_rank,
        nope_dim=config.count("qk_nope_head_dim"),
        rope_dim=rope,
        value_dim=config.count("v_head_dim"),
        look=top_k(config) if sparse else AttentionPattern(),
        indexer=indexer,
    )
    return mixer, tuple(vectors)


def top_k(config: Config) -> AttentionPattern:
    """Reads the tokens that an indexer picks; all stay stored."""
    return AttentionPattern(name="topk", cap_tokens=config.count("index_topk", unit="token"))
