"""Readers of a config.json as a named mechanism (`--as`): dense, moe or mla, for an architecture that nobody here knows.

What the file states under the usual names is read; what else it states is assumed to change nothing, and said so.
"""

from __future__ import annotations

from headway.models.model import Model
from headway.models.readers.latent import deepseek_sparse, deepseek_v3, left_out
from headway.models.readers.read import Config
from headway.models.readers.standard import Style, attention, block, dense, finish, mixer_vectors, moe, norms, shape, uniform

EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "num_routed_experts")
PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts", "moe_top_k")
SHARED = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")


def as_dense(config: Config) -> Model:
    """Grouped-query attention and a gated FFN in every layer."""
    s, style = shape(config), _style(config)
    return finish(config, uniform(s, style, dense(config, s.hidden, style)), s.hidden, style)


def as_moe(config: Config) -> Model:
    """Grouped-query attention in every layer; gated routed and shared experts after leading dense layers."""
    s, style = shape(config), _style(config)
    width = config.count("moe_intermediate_size", "expert_intermediate_size", "intermediate_size")
    routed = moe(
        s.hidden, experts=config.count(*EXPERTS), per_token=config.count(*PER_TOKEN), intermediate=width,
        shared=config.count(*SHARED, default=0, low=0),
        shared_intermediate=config.count("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", default=width),
    )  # fmt: skip
    vectors = norms(s.hidden, style), mixer_vectors(s, style)
    layers = [
        block(attention(s), routed if sparse else dense(config, s.hidden, style), *vectors) for sparse in deepseek_sparse(config, s.layers)
    ]
    config.ignore("intermediate_size")
    left_out(config)
    return finish(config, layers, s.hidden, style)


def as_mla(config: Config) -> Model:
    """Latent attention in every layer, with experts as in DeepSeek-V3 where the file states any."""
    return deepseek_v3(config)


def _style(config: Config) -> Style:
    """Biases as the usual keys state them."""
    bias = config.flag("attention_bias", "qkv_bias", "use_qkv_bias")
    norm = "head" if config.flag("use_qk_norm", "qk_norm", "qk_layernorm") else ""
    return Style(qkv_bias=bias, out_bias=config.flag("attention_out_bias"), mlp_bias=config.flag("mlp_bias"), qk_norm=norm)


MECHANISMS = {"dense": as_dense, "moe": as_moe, "mla": as_mla}
