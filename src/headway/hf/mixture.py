"""Decoders with routed experts and ordinary attention: Mixtral, Qwen-MoE and their relatives."""

from __future__ import annotations

from headway.hf.dense import looks, qwen_looks
from headway.hf.read import Config
from headway.hf.standard import BIASES, Style, attention, block, constant, dense, finish, mixer_vectors, moe, norms, shape, uniform
from headway.model import NONE, Model, Vector

ONE_SHARED = constant(1, "shared experts")


def mixtral(config: Config) -> Model:
    """Mixtral: eight gated experts in place of the FFN."""
    s, style = shape(config, kv_default=None), Style()
    ffn = moe(config, s.hidden, experts=config.count("num_local_experts"), per_token=config.count("num_experts_per_tok"), intermediate=config.count("intermediate_size"))
    return finish(config, uniform(config, s, style, ffn, looks(config, s, True)), s.hidden, style)


def gpt_oss(config: Config) -> Model:
    """gpt-oss: biased experts and router, an attention sink per head, every other layer a sliding window."""
    s = shape(config)
    config.raw("experts_per_token")
    bias = config.flag("attention_bias", default=True)
    style = Style(qkv_bias=bias, out_bias=bias)
    experts = config.count("num_local_experts", "num_experts")
    ffn = moe(config, s.hidden, experts=experts, per_token=config.count("num_experts_per_tok", "experts_per_token"),
              intermediate=config.count("intermediate_size"), biases=BIASES)  # fmt: skip
    extra = (Vector(name="attention sinks", dims=(s.heads,)), Vector(name="router bias", dims=(experts,)))
    layers = [block(attention(s, look), ffn, norms(s.hidden, style), mixer_vectors(s, style), extra) for look in looks(config, s)]
    return finish(config, layers, s.hidden, style)


def qwen2_moe(config: Config) -> Model:
    """Qwen1.5/2-MoE: one gated shared expert beside the routed ones."""
    return _qwen_moe(config, Style(qkv_bias=True), shared=True)


def qwen3_moe(config: Config) -> Model:
    """Qwen3-MoE: no shared expert; `mlp_only_layers` and `decoder_sparse_step` keep some layers dense."""
    bias = config.flag("attention_bias")
    config.raw("use_qk_norm"), config.raw("qkv_bias")
    return _qwen_moe(config, Style(qk_norm="head", qkv_bias=bias, out_bias=bias), shared=False)


def _qwen_moe(config: Config, style: Style, shared: bool) -> Model:
    s = shape(config, head_dim_default=128 if style.qk_norm else None)
    routed = qwen_experts(config, s.hidden, shared)
    vectors = (norms(s.hidden, style), mixer_vectors(s, style))
    layers = [
        block(attention(s, look), routed if sparse else dense(config, s.hidden, style), *vectors)
        for look, sparse in zip(qwen_looks(config, s), qwen_sparse(config, s.layers), strict=True)
    ]
    config.raw("intermediate_size")
    return finish(config, layers, s.hidden, style)


def qwen_experts(config: Config, hidden, shared: bool):
    """The routed experts of a Qwen layer, with a gated shared one where the architecture has it."""
    width = config.count("shared_expert_intermediate_size", default=None, low=0)
    more = {"shared": ONE_SHARED, "shared_intermediate": width, "shared_gates": ONE_SHARED} if shared and width else {}
    if width and not shared:
        raise config.refuse("shared_expert_intermediate_size", "this architecture has no shared expert")
    return moe(config, hidden, experts=config.count("num_experts", "num_local_experts"), per_token=config.count("num_experts_per_tok"),
               intermediate=config.count("moe_intermediate_size"), **more)  # fmt: skip


def qwen_sparse(config: Config, layers: int) -> list[bool]:
    """Which layers are routed."""
    step = int(config.count("decoder_sparse_step", default=1))
    only = config.raw("mlp_only_layers", default=[])
    return [layer not in only and (layer + 1) % step == 0 for layer in range(layers)]
