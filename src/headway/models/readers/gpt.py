"""Readers of the GPT-2 generation, with LayerNorm and plain FFNs, and of encoder-decoders with experts (Switch Transformers)."""

from __future__ import annotations

from typing import Any

from headway.core.units import Number
from headway.models.attention import AttentionPattern
from headway.models.model import Block, Model, Vector
from headway.models.readers.read import Config
from headway.models.readers.standard import (
    COPIES,
    GATED,
    PLAIN,
    DecoderShape,
    Style,
    alike,
    attention,
    block,
    dense,
    divided,
    finish,
    layer_count,
    moe,
    norms,
    shape,
)

OLD = Style(matrices=PLAIN, qkv_bias=True, out_bias=True, mlp_bias=True, norm_parts=2, tied=True)


def four_times(config: Config, hidden: Number, *keys: str) -> Any:
    """FFN width: under one of `keys`, else four times the hidden size."""
    width = config.count(*keys, default=None)
    return width if width is not None else config.derived(4 * int(hidden), keys[0], "4 * hidden size")


def _old(config: Config, s: DecoderShape, style: Style, width: Number, final: tuple[Vector, ...] | None = None) -> Model:
    return alike(config, s, style, dense(config, s.hidden, style, intermediate=width), final=final)


def gpt2(config: Config) -> Model:
    """GPT-2 and GPT-3: learned positions, a bias everywhere, a tied head."""
    if config.flag("add_cross_attention"):
        raise config.refuse("add_cross_attention", "only decoders without an encoder are read")
    s = shape(config)
    return _old(config, s, OLD.but(positions=True), four_times(config, s.hidden, "n_inner", "intermediate_size"))


def gpt_bigcode(config: Config) -> Model:
    """StarCoder 1: GPT-2 with one KV head."""
    kv_heads = config.fixed(1, "num_key_value_heads", "multi_query in config.json") if config.flag("multi_query", default=True) else None
    s = shape(config, kv_default=kv_heads)
    return _old(config, s, OLD.but(positions=True), four_times(config, s.hidden, "n_inner"))


def gptj(config: Config) -> Model:
    """GPT-J: one norm for attention and FFN in parallel, biases on the FFN and the head only, an untied head."""
    s = shape(config)
    style = OLD.but(qkv_bias=False, out_bias=False, norms=1, tied=False, head_bias=True)
    return _old(config, s, style, four_times(config, s.hidden, "n_inner"))


def gpt_neox(config: Config) -> Model:
    """GPT-NeoX and Pythia: rotary positions, an untied head."""
    s, bias = shape(config), config.flag("attention_bias", default=True)
    return _old(config, s, OLD.but(tied=False, qkv_bias=bias, out_bias=bias), config.count("intermediate_size"))


def opt(config: Config) -> Model:
    """OPT: learned positions with two spare rows; the smallest models have a different embedding width."""
    s, bias = shape(config), config.flag("enable_bias", default=True)
    style = OLD.but(qkv_bias=bias, out_bias=bias, mlp_bias=bias)
    rows = config.count("max_position_embeddings", unit="token")
    table = config.derived(int(rows) + 2, "position rows", "max_position_embeddings + 2", "token")
    width = config.count("word_embed_proj_dim", default=s.hidden)
    final = [Vector(name="position embedding", dims=(table, s.hidden))]
    if config.flag("do_layer_norm_before", default=True) and not config.flag("_remove_final_layer_norm"):
        final += norms(s.hidden, style, 1)
    if width != s.hidden:
        final.append(Vector(name="projections from and to the embedding", dims=(2, width, s.hidden)))
    return alike(config, s, style, dense(config, s.hidden, style, "ffn_dim"), final=tuple(final), embedding_dim=width)


def bloom(config: Config) -> Model:
    """BLOOM: relative positions (ALiBi), a norm on the embedding, a tied head."""
    s = shape(config)
    return _old(config, s, OLD, four_times(config, s.hidden, "n_inner"), norms(s.hidden, OLD, 2))


def mpt(config: Config) -> Model:
    """MPT: ALiBi or learned positions, by default no bias anywhere, a tied head."""
    hidden, heads = config.count("d_model", "hidden_size"), config.count("n_heads", "num_attention_heads")
    inner = config.table("attn_config")
    kv_heads = heads
    if inner is not None:
        kind = inner.text("attn_type", default="multihead_attention")
        if kind not in ("multihead_attention", "multiquery_attention", "grouped_query_attention"):
            raise inner.refuse("attn_type")
        for key in ("qk_ln", "qk_gn", "clip_qkv", "prefix_lm", "softmax_scale", "attn_impl", "attn_pdrop", "rope"):
            if inner.raw(key) is True and key in ("qk_ln", "qk_gn", "prefix_lm"):
                raise inner.refuse(key)
        if kind == "multiquery_attention":
            kv_heads = config.fixed(1, "kv_heads", "attn_type multiquery_attention in config.json")
        if kind == "grouped_query_attention":
            kv_heads = inner.count("kv_n_heads")
        inner.check_unread()
    alibi, bias = inner is not None and inner.flag("alibi"), not config.flag("no_bias", default=True)
    head_dim = divided(config, hidden, heads, "head_dim", "d_model / n_heads")
    s = DecoderShape(
        hidden=hidden, layers=layer_count(config, "n_layers", "num_hidden_layers"), heads=heads, kv_heads=kv_heads, head_dim=head_dim
    )
    style = OLD.but(qkv_bias=bias, out_bias=bias, mlp_bias=bias, norm_parts=2 if bias else 1, positions=not alibi)
    ratio = int(config.count("expansion_ratio", default=4))
    return _old(config, s, style, config.derived(ratio * int(hidden), "FFN width", "expansion_ratio * d_model"))


def falcon(config: Config) -> Model:
    """Falcon: attention and FFN in parallel, one or few KV heads, no bias, a tied head."""
    heads, new = config.count("num_attention_heads", "n_head"), config.flag("new_decoder_architecture")
    multi, parallel = config.flag("multi_query", default=True), config.flag("parallel_attn", default=True)
    config.flag("alibi")
    if new:
        kv_heads = config.count("num_kv_heads", "n_head_kv", default=heads)
    else:
        kv_heads = config.fixed(1, "num_kv_heads", "multi_query in config.json") if multi else heads
        config.ignore("num_kv_heads", "n_head_kv")
    bias = config.flag("bias")
    count = int(config.count("num_ln_in_parallel_attn", default=2 if new else 1)) if parallel or new else 2
    s = shape(config, kv_default=kv_heads)
    style = OLD.but(qkv_bias=bias, out_bias=bias, mlp_bias=bias, norms=count)
    return _old(config, s, style, four_times(config, s.hidden, "ffn_hidden_size"), norms(s.hidden, style, 1))


NO_CACHE = AttentionPattern(name="none")  # an encoder layer has no KV cache during decode


def switch(config: Config) -> Model:
    """Switch (T5 with experts): decoder layers have self-attention, whose KV is counted, and attention to the encoder."""
    heads, hidden = config.count("num_heads"), config.count("d_model")
    style = Style(matrices=GATED if config.flag("is_gated_act") else PLAIN, tied=True)
    encoder, decoder = layer_count(config, "num_layers"), layer_count(config, "num_decoder_layers", "num_layers")
    s = DecoderShape(hidden=hidden, layers=decoder, heads=heads, kv_heads=heads, head_dim=config.count("d_kv"))
    layers = [
        *_stack(config, s, style, encoder, "num_sparse_encoder_layers", encodes=True),
        *_stack(config, s, style, decoder, "num_sparse_decoder_layers", encodes=False),
    ]
    config.notes.append(
        "encoder and decoder are counted as one stack; KV is the decoder's self-attention, the encoder's output is not timed"
    )
    buckets = config.count("relative_attention_num_buckets", default=32)
    final = (*norms(hidden, style, 2), Vector(name="relative position bias of each stack", dims=(2, buckets, heads)))
    config.ignore("expert_capacity")
    return finish(config, layers, hidden, style, final)


def _stack(config: Config, s: DecoderShape, style: Style, count: int, key: str, encodes: bool) -> list[Block]:
    sparse = int(config.count(key, default=0, low=0))
    step = max(count // sparse, 1) if sparse else 0
    width, plain = config.count("d_ff"), dense(config, s.hidden, style, "d_ff")
    routed = moe(
        s.hidden, experts=config.count("num_experts"), per_token=config.count("num_selected_experts", default=1), intermediate=width,
        matrices=style.matrices,
    )  # fmt: skip
    mixer = attention(s, NO_CACHE) if encodes else attention(s, stacks=2)
    vectors = (Vector(name="norms", dims=(COPIES[2 if encodes else 3], s.hidden)),)
    return [block(mixer, routed if step and (step == 1 or layer % step == 1) else plain, vectors) for layer in range(count)]
