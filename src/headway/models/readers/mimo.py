"""Reader of MiMo-V2: full and sliding-window layers with heads of their own, keys wider than values, experts in listed layers."""

from __future__ import annotations

from typing import Any

from headway.core.errors import UnsupportedModel
from headway.models.attention import AttentionPattern
from headway.models.attention.grouped_query import Attention
from headway.models.model import Model, Vector
from headway.models.readers.latent import deepseek_experts, deepseek_sparse, left_out
from headway.models.readers.read import Config, translate_layers
from headway.models.readers.standard import Style, block, dense, finish, layer_count, norms, window


def mimo_v2(config: Config) -> Model:
    """MiMo-V2-Flash and Pro."""
    hidden, layers, style = config.count("hidden_size"), layer_count(config), Style()
    for key in ("attention_bias", "mlp_bias", "attention_projection_layout", "use_qk_norm"):
        if config.raw(key) not in (None, False, "fused_qkv", "split"):
            raise config.refuse(key, "--as dense, moe or mla reads the usual keys")
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


def _attention(config: Config, hidden: Any, stem: str, look: AttentionPattern) -> Attention:
    """Attention of one of the two kinds; the keys of sliding layers begin with `stem`."""
    head_dim = config.count(f"{stem}head_dim", "head_dim")
    heads, kv_heads = config.count(f"{stem}num_attention_heads", "num_attention_heads"), config.count(f"{stem}num_key_value_heads")
    if heads % kv_heads:
        raise UnsupportedModel(f"{stem}num_key_value_heads", int(kv_heads), f"must divide the {int(heads)} query heads")
    value_dim = config.count(f"{stem}v_head_dim", "v_head_dim", default=head_dim)
    return Attention(hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim, value_dim=value_dim, look=look)
