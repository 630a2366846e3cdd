"""Readers of MiniMax-M2 and M3: many experts; attention of M3 reads only the KV blocks that an index selects."""

from __future__ import annotations

from typing import Any

from headway.models.attention import AttentionPattern, Indexer
from headway.models.model import Model, Vector
from headway.models.readers.latent import deepseek_sparse, left_out
from headway.models.readers.mixture import mixtral_experts
from headway.models.readers.read import Config
from headway.models.readers.standard import DecoderShape, Style, attention, block, dense, finish, mixer_vectors, moe, norms, shape, uniform


def minimax_m2(config: Config) -> Model:
    """MiniMax-M2: full attention with norms over all query and key heads."""
    s = shape(config)
    style = Style(qk_norm=_qk_norm(config))
    if config.count("shared_intermediate_size", default=0, low=0):
        raise config.refuse("shared_intermediate_size", "a shared expert; --as dense, moe or mla reads the usual keys")
    if any(kind != 1 for kind in config.layer_list("attn_type_list", s.layers) or []):
        raise config.refuse("attn_type_list", "only full attention (1) is known here; --as dense, moe or mla reads the usual keys")
    ffn = mixtral_experts(config, s.hidden)
    left_out(config)
    config.ignore("mtp_transformer_layers", "use_mtp")
    bias = (Vector(name="router correction bias", dims=(ffn.experts,)),) if config.flag("use_routing_bias") else ()
    layers = [block(layer.attention, ffn, layer.vectors, bias) for layer in uniform(s, style, ffn)]
    return finish(config, layers, s.hidden, style)


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
    base, (mixer, extra) = (norms(s.hidden, style), mixer_vectors(s, style)), _picked(config, s)
    layers = [
        block(mixer if picks else attention(s), routed if sparse else plain, *base, extra if picks else (), router if sparse else ())
        for picks, sparse in zip(_picks(config, s.layers), deepseek_sparse(config, s.layers), strict=True)
    ]
    return finish(config, layers, s.hidden, style)


def _picks(config: Config, layers: int) -> list[bool]:
    inner = config.table("sparse_attention_config")
    if inner is None or not inner.flag("use_sparse_attention"):
        return [False] * layers
    return [bool(flag) for flag in inner.layer_list("sparse_attention_freq", layers) or [True] * layers]


def _picked(config: Config, s: DecoderShape) -> tuple[Any, tuple[Vector, ...]]:
    """Attention that reads the top-k KV blocks, including the newest block."""
    inner = config.table("sparse_attention_config")
    if inner is None or not inner.flag("use_sparse_attention"):
        return attention(s), ()
    dim = inner.count("sparse_index_dim")
    indexer = Indexer(heads=inner.count("sparse_num_index_heads"), dim=dim, query_input=s.hidden, head_weights=0)
    blocks, size = inner.count("sparse_topk_blocks"), inner.count("sparse_block_size", unit="token")
    cap = inner.derived(int(blocks) * int(size), "tokens picked", "sparse_topk_blocks * sparse_block_size", "token")
    vectors = (Vector(name="index query and key norm", dims=(2, dim)),)
    return attention(s, AttentionPattern(name="topk", cap_tokens=cap), indexer=indexer), vectors
