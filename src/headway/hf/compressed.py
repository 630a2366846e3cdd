"""DeepSeek-V4: attention over compressed entries and a short window, with hyper-connections between layers."""

from __future__ import annotations

from typing import Any

from headway.hf.latent import deepseek_experts, left_out
from headway.hf.read import Config, translate_layers
from headway.hf.standard import COPIES, Style, block, constant, finish, layer_count, norms
from headway.model import UNITY, CompressedAttention, Indexer, Model, Vector

OVERLAPPED = 4  # entries of this ratio see two groups of tokens, and an indexer picks among them
RATIOS = {0: None, 4: 4, 128: 128}
TWO, THREE = COPIES[2], constant(3, "scales of a hyper-connection")


def deepseek_v4(config: Config) -> Model:
    """DeepSeek-V4: each layer has a ratio: 0 the window alone, 4 picked entries, 128 all entries."""
    hidden, layers, style = config.count("hidden_size"), layer_count(config), Style()
    config.ignore("num_key_value_heads")
    routed, bias = deepseek_experts(config, hidden, config.count("n_routed_experts"), router_bias=True)
    ratios = translate_layers(config.layer_list("compress_ratios", layers) or [], RATIOS, config, "compress_ratios")
    hashed = int(config.count("num_hash_layers", default=0, low=0))
    mixers = {ratio: _mixer(config, hidden, ratio) for ratio in set(ratios)}
    joins = _hyper_connections(config, hidden)
    blocks = [
        block(mixers[ratio][0], routed, norms(hidden, style), mixers[ratio][1], joins, () if layer < hashed else bias)
        for layer, ratio in enumerate(ratios)
    ]
    left_out(config)
    config.ignore("compress_rope_theta")
    return finish(config, blocks, hidden, style, (*norms(hidden, style, 1), *_head_connection(config, hidden)))


def _mixer(config: Config, hidden: Any, ratio: int | None) -> tuple[CompressedAttention, tuple[Vector, ...]]:
    head_dim, heads, query_rank = config.count("head_dim"), config.count("num_attention_heads"), config.count("q_lora_rank")
    config.ignore("qk_rope_head_dim")
    vectors = [
        Vector(name="query norm", dims=(query_rank,)),
        Vector(name="entry norm", dims=(head_dim,)),
        Vector(name="attention sinks", dims=(heads,)),
    ]
    indexer, overlap, tokens, top = None, UNITY, None, None
    if ratio is not None:
        tokens = config.derived(ratio, "compress ratio", "an entry of compress_ratios", "token")
        overlap = TWO if ratio == OVERLAPPED else UNITY
        vectors += _compressor_vectors(tokens, overlap, head_dim)
    for key in ("index_n_heads", "index_head_dim", "index_topk"):
        config.count(key)
    if ratio == OVERLAPPED:
        indexer = Indexer(heads=config.count("index_n_heads"), dim=config.count("index_head_dim"), query_input=query_rank)
        top = config.count("index_topk")
        vectors += _compressor_vectors(tokens, overlap, indexer.dim)
    mixer = CompressedAttention(
        hidden=hidden,
        heads=heads,
        head_dim=head_dim,
        query_rank=query_rank,
        output_groups=config.count("o_groups"),
        output_rank=config.count("o_lora_rank"),
        window=config.count("sliding_window", unit="token"),
        ratio=tokens,
        overlap=overlap,
        top_entries=top,
        indexer=indexer,
    )
    return mixer, tuple(vectors)


def _compressor_vectors(ratio: Any, overlap: Any, dim: Any) -> list[Vector]:
    return [Vector(name="position bias of the compressor", dims=(ratio, overlap, dim)), Vector(name="compressor norm", dims=(dim,))]


def _hyper_connections(config: Config, hidden: Any) -> tuple[Vector, ...]:
    """Two per layer: weights from all residual streams to what mixes them, (2 + n) * n numbers for n streams."""
    streams = config.count("hc_mult")
    mixes = config.derived((2 + int(streams)) * int(streams), "hyper-connection weights", "(2 + hc_mult) * hc_mult")
    return (
        Vector(name="hyper-connections", dims=(TWO, mixes, streams, hidden)),
        Vector(name="hyper-connection bases", dims=(TWO, mixes)),
        Vector(name="hyper-connection scales", dims=(TWO, THREE)),
    )


def _head_connection(config: Config, hidden: Any) -> tuple[Vector, ...]:
    streams = config.count("hc_mult")
    return (
        Vector(name="hyper-connection of the head", dims=(streams, streams, hidden)),
        Vector(name="its bases", dims=(streams,)),
        Vector(name="its scale", dims=(UNITY,)),
    )
