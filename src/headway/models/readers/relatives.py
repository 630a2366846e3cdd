"""Readers of further dense decoders: between GPT-2 and Llama, and relatives of Llama with a norm or bias of their own."""

from __future__ import annotations

from typing import Any

from headway.models.attention import AttentionPattern
from headway.models.model import Model, Vector
from headway.models.readers.dense import alternating, full_every, plain
from headway.models.readers.gpt import OLD, four_times
from headway.models.readers.read import Config, translate_layers
from headway.models.readers.standard import (
    COPIES,
    GATED,
    PLAIN,
    DecoderShape,
    Style,
    attention,
    biased,
    block,
    dense,
    divided,
    finish,
    layer_count,
    mixer_vectors,
    norms,
    shape,
    uniform,
    window,
)

EXTEND = "--as dense, moe or mla reads the usual keys"


def qwen(config: Config) -> Model:
    """Qwen 1: Llama with a bias on query, key and value; the stated FFN width counts gate and up together."""
    hidden, both = config.count("hidden_size"), config.count("intermediate_size")
    if not config.flag("no_bias", default=True):
        raise config.refuse("no_bias", EXTEND)
    width = config.derived(int(both) // 2, "FFN width", "intermediate_size / 2")
    s, style = shape(config), Style(qkv_bias=True)
    return finish(config, uniform(s, style, dense(config, hidden, style, intermediate=width)), hidden, style)


def chatglm(config: Config) -> Model:
    """ChatGLM 2, 3 and GLM-4 in their first format: grouped queries under names of their own."""
    hidden, heads = config.count("hidden_size"), config.count("num_attention_heads")
    is_grouped = config.flag("multi_query_attention")
    kv_heads = config.count("multi_query_group_num") if is_grouped else heads
    head_dim = config.count("kv_channels", default=divided(config, hidden, heads, "head_dim", "hidden_size / num_attention_heads"))
    bias = config.flag("add_bias_linear")
    s = DecoderShape(hidden=hidden, layers=layer_count(config), heads=heads, kv_heads=kv_heads, head_dim=head_dim)
    style = Style(
        qkv_bias=bias or config.flag("add_qkv_bias"), out_bias=bias, mlp_bias=bias,
        norm_parts=1 if config.flag("rmsnorm", default=True) else 2,
    )  # fmt: skip
    if config.data.get("pre_seq_len"):
        raise config.refuse("pre_seq_len", f"a trained prefix; {EXTEND}")
    config.ignore("multi_query_group_num", "original_rope", "post_layer_norm", "prefix_projection")
    return finish(config, uniform(s, style, dense(config, hidden, style, "ffn_hidden_size")), hidden, style)


def gpt_neo(config: Config) -> Model:
    """GPT-Neo: no bias on query, key and value, a local window in every other layer, learned positions."""
    s, style = shape(config), OLD.but(qkv_bias=False, positions=True)
    kinds = config.raw("attention_types", default=[[["global", "local"], s.layers // 2]])
    config.ignore("attention_layers")
    kind_list = [kind for names, repeats in kinds for kind in list(names) * int(repeats)][: s.layers]
    if len(kind_list) != s.layers:
        raise config.refuse("attention_types", f"wants a kind for each of the {s.layers} layers")
    looks = translate_layers(kind_list, {"global": AttentionPattern(), "local": window(config, "window_size")}, config, "attention_types")
    ffn = dense(config, s.hidden, style, intermediate=four_times(config, s.hidden, "intermediate_size"))
    return finish(config, uniform(s, style, ffn, looks), s.hidden, style)


def xglm(config: Config) -> Model:
    """XGLM: sinusoidal positions, biases everywhere, a tied head."""
    hidden, heads = config.count("d_model"), config.count("attention_heads")
    head_dim = divided(config, hidden, heads, "head_dim", "d_model / attention_heads")
    s = DecoderShape(hidden=hidden, layers=layer_count(config), heads=heads, kv_heads=heads, head_dim=head_dim)
    return finish(config, uniform(s, OLD, dense(config, hidden, OLD, "ffn_dim")), hidden, OLD)


def persimmon(config: Config) -> Model:
    """Persimmon: LayerNorm on each query and key head, a plain FFN, biases everywhere, an untied head."""
    s, style = shape(config), OLD.but(tied=False)
    ffn = dense(config, s.hidden, style)
    scales = (Vector(name="query and key norm", dims=(COPIES[4], s.head_dim)),) if config.flag("qk_layernorm", default=True) else ()
    layer = block(attention(s), ffn, norms(s.hidden, style), mixer_vectors(s, style), scales)
    return finish(config, [layer] * s.layers, s.hidden, style)


def bitnet(config: Config) -> Model:
    """BitNet b1.58: Llama with a norm before the output and down projections, stored here as in the 16-bit checkpoint."""
    s, style = shape(config), Style(tied=True)
    ffn = dense(config, s.hidden, style)
    inner = (Vector(name="norm before the output", dims=(s.hidden,)), Vector(name="norm before down", dims=(ffn.intermediate,)))
    layer = block(attention(s), ffn, norms(s.hidden, style), inner)
    return finish(config, [layer] * s.layers, s.hidden, style)


def apertus(config: Config) -> Model:
    """Apertus: a plain FFN with a learned activation, norms on each query and key head."""
    s, style = shape(config), biased(config, matrices=PLAIN, qk_norm="head", mlp_bias=config.flag("mlp_bias"))
    learned = () if config.text("hidden_act", default="xielu") != "xielu" else (Vector(name="learned activation", dims=(2,)),)
    layer = block(attention(s), dense(config, s.hidden, style), norms(s.hidden, style), mixer_vectors(s, style), learned)
    config.ignore("post_norm", "qk_norm")
    return finish(config, [layer] * s.layers, s.hidden, style)


def layered(config: Config) -> Model:
    """Orion: Llama with LayerNorm."""
    return plain(config, shape(config), biased(config, norm_parts=2))


def internlm(config: Config) -> Model:
    """InternLM 1: Llama with a bias on the four attention projections."""
    bias = config.flag("bias", default=True)
    return plain(config, shape(config), Style(qkv_bias=bias, out_bias=bias))


def vaultgemma(config: Config) -> Model:
    """VaultGemma: Gemma-2 without norms after each part."""
    s = shape(config, head_dim_default=256)
    return plain(config, s, Style(tied=True), alternating(config, s, 2))


NO_IMAGE = AttentionPattern(name="none")  # layers that attend to an image: its KV is fixed, and text alone is timed


def mllama(config: Config) -> Model:
    """Llama-3.2-Vision: Llama with layers that attend to the image; text alone is timed, and those layers cost their matrices."""
    s, style = shape(config), Style()
    places = config.places("cross_attention_layers")
    ffn, plain_norms = dense(config, s.hidden, style), norms(s.hidden, style)
    gates = (Vector(name="query and key norm", dims=(2, s.head_dim)), Vector(name="gates of attention and FFN", dims=(2,)))
    seeing: Any = block(attention(s, NO_IMAGE), ffn, plain_norms, gates)
    layers = [seeing if layer in places else block(attention(s), ffn, plain_norms) for layer in range(s.layers)]
    config.notes.append("layers that attend to the image are timed without one: their matrices run, their KV is not read")
    config.ignore("pad_token_id")
    return finish(
        config, layers, s.hidden, style, (*norms(s.hidden, style, 1), Vector(name="rows of image tokens", dims=(COPIES[8], s.hidden)))
    )


def jais(config: Config) -> Model:
    """Jais 1 and its family: GPT-2 with a gated FFN (SwiGLU) and positions that are computed (ALiBi)."""
    s = shape(config)
    is_gated = config.text("activation_function", default="gelu_new") == "swiglu"
    is_learned = config.text("position_embedding_type", default="learned") == "learned"
    style = OLD.but(matrices=GATED if is_gated else PLAIN, positions=is_learned)
    ffn = dense(config, s.hidden, style, intermediate=four_times(config, s.hidden, "n_inner"))
    config.ignore("width_scale", "mup_width_scale", "scale_qk_dot_by_d", "mup_scale_qk_dot_by_d")
    return finish(config, uniform(s, style, ffn), s.hidden, style)


def jais2(config: Config) -> Model:
    """Jais 2: LayerNorm, a plain squared-ReLU FFN, biases everywhere, an untied head."""
    mlp_bias = config.flag("mlp_bias", default=True)
    return plain(config, shape(config), biased(config, default=True, matrices=PLAIN, norm_parts=2, mlp_bias=mlp_bias))


def solar(config: Config) -> Model:
    """Solar Pro: Llama with a sliding window, and layers that add the output of earlier ones by fixed weights."""
    config.ignore("bskcn_1", "bskcn_2", "bskcn_3", "bskcn_4", "bskcn_tv")
    return plain(config, shape(config), biased(config, mlp_bias=config.flag("mlp_bias")))


def telechat(config: Config) -> Model:
    """TeleChat 1 and 2: Llama with a bias on the output and down projections."""
    if config.flag("embed_layernorm"):
        raise config.refuse("embed_layernorm", EXTEND)
    s, style = shape(config), Style(out_bias=True)
    config.ignore("skip_bias_add", "skip_bias_add_qkv", "logn", "n_inner", "offset_alibi", "slow_but_exact", "base_seqlen")
    config.ignore("training_seqlen", "flash_attn", "bias_dropout_fusion", "masked_softmax_fusion", "parallel_attn")
    down = (Vector(name="down bias", dims=(s.hidden,)),)
    layer = block(attention(s), dense(config, s.hidden, style, "ffn_hidden_size"), norms(s.hidden, style), mixer_vectors(s, style), down)
    return finish(config, [layer] * s.layers, s.hidden, style)


def plamo3(config: Config) -> Model:
    """PLaMo 3: norms before and after each part and on each query and key head, windows in 7 of 8 layers."""
    s, style = shape(config), Style(norms=4, qk_norm="head")
    period = int(config.count("sliding_window_pattern", default=8))
    patterns = full_every(config, s.layers, period, "window_size", "sliding_window")
    config.ignore("interleaved_sliding_window", "sliding_window")
    return plain(config, s, style, patterns)
