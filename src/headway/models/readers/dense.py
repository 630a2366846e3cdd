"""Readers of dense decoders: Llama and its relatives, and Gemma-3n, whose last layers share the KV of earlier layers."""

from __future__ import annotations

from typing import Any

from headway.models.attention import AttentionPattern
from headway.models.model import Dense, Model, Vector
from headway.models.readers.read import MAX_COUNT, Config, translate_layers, whole_number
from headway.models.readers.standard import (
    COPIES,
    PLAIN,
    DecoderShape,
    Style,
    attention,
    biased,
    block,
    dense,
    finish,
    layer_count,
    mixer_vectors,
    norms,
    shape,
    uniform,
    window,
)


def looks(config: Config, s: DecoderShape, sliding_default: bool = False) -> list[AttentionPattern]:
    """Attention pattern of each layer: from layer_types if present, else a sliding window in all layers or in none."""
    has_window = config.data.get("sliding_window") is not None
    types = config.layer_list("layer_types", s.layers)
    if types is not None:
        config.keys_read.add("sliding_window")
        choices = {"full_attention": AttentionPattern()} | ({"sliding_attention": window(config)} if has_window else {})
        return translate_layers(types, choices, config, "layer_types")
    config.ignore("sliding_window")
    uses_window = config.flag("use_sliding_window", default=sliding_default)
    return [window(config) if has_window and uses_window else AttentionPattern()] * s.layers


def plain(config: Config, s: DecoderShape, style: Style, patterns: list[AttentionPattern] | None = None, *width: str) -> Model:
    """Decoder with equal layers, which may differ in attention pattern."""
    ffn = dense(config, s.hidden, style, *width)
    return finish(config, uniform(s, style, ffn, looks(config, s, True) if patterns is None else patterns), s.hidden, style)


def llama(config: Config) -> Model:
    """Llama 1 to 3 and models of its shape: Yi, InternLM3, SmolLM3, MiniCPM, Granite, Seed-OSS."""
    bias = config.flag("attention_bias", "bias", "use_bias", "qkv_bias")
    out = config.flag("attention_out_bias", default=bias)
    return plain(config, shape(config), Style(qkv_bias=bias, out_bias=out, mlp_bias=config.flag("mlp_bias")))


def mistral(config: Config) -> Model:
    """Mistral: Llama with 8 KV heads by default, and a sliding window if the file names one."""
    config.assume("MistralConfig", num_key_value_heads=8)
    return plain(config, shape(config), Style())


def qwen2(config: Config) -> Model:
    """Qwen2 and 2.5: a bias on query, key and value."""
    s = shape(config)
    return plain(config, s, Style(qkv_bias=config.flag("attention_bias", "qkv_bias", default=True)), qwen_looks(config, s))


def qwen_looks(config: Config, s: DecoderShape) -> list[AttentionPattern]:
    """Attention pattern of each Qwen layer: sliding from layer max_window_layers on, if use_sliding_window is set."""
    if not config.flag("use_sliding_window"):
        config.ignore("sliding_window", "layer_types")
        return [AttentionPattern()] * s.layers
    if config.data.get("layer_types") is not None:
        return looks(config, s)
    first = int(config.count("max_window_layers", low=0, default=28))
    return [AttentionPattern() if layer < first else window(config) for layer in range(s.layers)]


def qwen3(config: Config) -> Model:
    """Qwen3: a norm on each query and key head."""
    s = shape(config, head_dim_default=128)
    return plain(config, s, biased(config, qk_norm="head"), qwen_looks(config, s))


def phi3(config: Config) -> Model:
    """Phi-3 and Phi-4: Llama with fused projections; `partial_rotary_factor` changes no count."""
    config.flag("attention_bias")
    return plain(config, shape(config), Style())


def phi(config: Config) -> Model:
    """Phi-1 and Phi-2: one LayerNorm before attention and FFN in parallel, biases everywhere including the head."""
    if config.flag("qk_layernorm"):
        raise config.refuse("qk_layernorm", "--as dense, moe or mla reads the usual keys")
    style = Style(matrices=PLAIN, qkv_bias=True, out_bias=True, mlp_bias=True, norms=1, norm_parts=2, head_bias=True)
    return plain(config, shape(config), style)


def gemma(config: Config) -> Model:
    """Gemma: heads of 256, a tied head."""
    return plain(config, shape(config, head_dim_default=256), Style(tied=True))


def gemma2(config: Config) -> Model:
    """Gemma-2: norms before and after each part, a sliding window in every other layer from the first on."""
    config.assume("Gemma2Config", sliding_window=4096)
    s = shape(config, head_dim_default=256)
    return plain(config, s, Style(norms=4, tied=True), alternating(config, s, 2))


def gemma3(config: Config) -> Model:
    """Gemma-3: Gemma-2 with query and key norms, and full attention in one layer of six."""
    config.assume(
        "Gemma3TextConfig", vocab_size=262208, hidden_size=2304, intermediate_size=9216, num_hidden_layers=26, num_attention_heads=8,
        num_key_value_heads=4, head_dim=256, sliding_window=4096, max_position_embeddings=131072,
    )  # fmt: skip
    s = shape(config)
    return plain(config, s, Style(norms=4, qk_norm="head", tied=True), alternating(config, s, 6))


def alternating(config: Config, s: DecoderShape, period: int) -> list[AttentionPattern]:
    """Attention pattern of each layer: from layer_types if present, else full in every `period`-th layer, sliding in the others."""
    if config.data.get("layer_types") is not None:
        return looks(config, s)
    every_nth = int(config.count("sliding_window_pattern", "_sliding_window_pattern", default=period))
    return [AttentionPattern() if (layer + 1) % every_nth == 0 else window(config) for layer in range(s.layers)]


def full_every(config: Config, layers: int, period: int, *window_keys: str) -> list[AttentionPattern]:
    """Attention pattern of each layer: as listed in layer_types, else full in every `period`-th layer and sliding in the others."""
    kinds = config.layer_list("layer_types", layers) or [
        "full_attention" if (layer + 1) % period == 0 else "sliding_attention" for layer in range(layers)
    ]
    choices = {"full_attention": AttentionPattern(), "sliding_attention": window(config, *window_keys)}
    return translate_layers(kinds, choices, config, "layer_types")


def cohere(config: Config) -> Model:
    """Command-R: one LayerNorm without bias for attention and FFN in parallel, a tied head."""
    qk_norm = "full" if config.flag("use_qk_norm") else ""
    return plain(config, shape(config), biased(config, norms=1, qk_norm=qk_norm, tied=True))


def cohere2(config: Config) -> Model:
    """Command-R7B and Command-A: Command-R with three sliding-window layers per full layer."""
    config.assume("Cohere2Config", sliding_window=4096)
    s = shape(config)
    return plain(config, s, biased(config, norms=1, tied=True), alternating(config, s, 4))


def olmo(config: Config) -> Model:
    """OLMo: norms without parameters."""
    return plain(config, shape(config), biased(config, norm_parts=0))


def olmo2(config: Config) -> Model:
    """OLMo-2 and 3: norms after each part, and over all query and key heads; OLMo-3 has sliding windows in 3 of 4 layers."""
    s = shape(config)
    patterns = alternating(config, s, 4) if config.data.get("sliding_window") is not None else None
    return plain(config, s, biased(config, qk_norm="full"), patterns)


def starcoder2(config: Config) -> Model:
    """StarCoder2: LayerNorm, a plain FFN, biases everywhere, a tied head."""
    bias = config.flag("use_bias", default=True)
    config.assume("Starcoder2Config", num_key_value_heads=2)
    return plain(config, shape(config), Style(matrices=PLAIN, qkv_bias=bias, out_bias=bias, mlp_bias=bias, norm_parts=2, tied=True))


def glm(config: Config) -> Model:
    """GLM-4-9B: a bias on query, key and value."""
    return plain(config, shape(config, head_dim_default=128), Style(qkv_bias=config.flag("attention_bias")))


def glm4(config: Config) -> Model:
    """GLM-4-0414: GLM with norms before and after each part."""
    return plain(config, shape(config, head_dim_default=128), Style(norms=4, qkv_bias=config.flag("attention_bias")))


def nemotron(config: Config) -> Model:
    """Nemotron-4: LayerNorm, a plain squared-ReLU FFN."""
    return plain(config, shape(config), biased(config, matrices=PLAIN, norm_parts=2, mlp_bias=config.flag("mlp_bias")))


def stablelm(config: Config) -> Model:
    """StableLM: LayerNorm, a bias on query, key and value if the file sets it."""
    norms = 1 if config.flag("use_parallel_residual") else 2
    qk = "full" if config.flag("qk_layernorm") else ""
    return plain(config, shape(config), Style(norms=norms, norm_parts=2, qkv_bias=config.flag("use_qkv_bias"), qk_norm=qk))


def exaone4(config: Config) -> Model:
    """EXAONE-4: norms after each part and on each query and key head; the large model has sliding windows in 3 of 4 layers."""
    s = shape(config)
    pattern = config.raw("sliding_window_pattern")
    layer_patterns = None
    if config.data.get("layer_types") is None and isinstance(pattern, str) and config.data.get("sliding_window") is not None:
        choices = {"L": window(config), "G": AttentionPattern()}
        layer_patterns = translate_layers(
            [pattern[layer % len(pattern)] for layer in range(s.layers)] if pattern else [], choices, config, "sliding_window_pattern"
        )
    return plain(config, s, Style(qk_norm="head"), layer_patterns)


def arcee(config: Config) -> Model:
    """Arcee: Llama with a plain squared-ReLU FFN."""
    return plain(config, shape(config), biased(config, matrices=PLAIN, mlp_bias=config.flag("mlp_bias")))


def hunyuan_dense(config: Config) -> Model:
    """Hunyuan dense: Llama with query and key norms."""
    return plain(config, shape(config), biased(config, qk_norm="head" if config.flag("use_qk_norm", default=True) else ""))


def palm(config: Config) -> Model:
    """PaLM: one KV head, one norm for attention and FFN in parallel, a tied head."""
    if not config.flag("parallel_attn", default=True):
        raise config.refuse("parallel_attn")
    return plain(config, shape(config), biased(config, norms=1, mlp_bias=config.flag("mlp_bias"), tied=True))




def gemma3n(config: Config) -> Model:
    """Gemma-3n text decoder."""
    config.assume(
        "Gemma3nTextConfig", vocab_size=262400, vocab_size_per_layer_input=262144, hidden_size=2048, hidden_size_per_layer_input=256,
        num_hidden_layers=35, num_attention_heads=8, num_key_value_heads=2, head_dim=256, sliding_window=512, num_kv_shared_layers=15,
        laurel_rank=64, altup_num_inputs=4, intermediate_size=16384, max_position_embeddings=32768,
    )  # fmt: skip
    s, style = shape(config), Style(norms=4, qk_norm="head", tied=True)
    shared = int(config.count("num_kv_shared_layers", low=0, high=s.layers))
    config.ignore("layer_types")
    looks = full_every(config, s.layers, 5)
    vectors = (norms(s.hidden, style), mixer_vectors(s, style), _streams(config, s.hidden))
    layers = [
        block(attention(s, look, caches=layer < s.layers - shared), ffn, *vectors)
        for layer, (look, ffn) in enumerate(zip(looks, _ffns(config, s.hidden, style, s.layers), strict=True))
    ]
    config.ignore("activation_sparsity_pattern", "altup_active_idx", "altup_coef_clip", "altup_correct_scale")
    config.notes.append("embeddings of each layer, Laurel and AltUp are counted as parameters; their small matmuls are not timed")
    return finish(config, layers, s.hidden, style, (*norms(s.hidden, style, 1), *_ends(config, s.hidden)))


def _ffns(config: Config, hidden: Any, style: Style, layers: int) -> list[Dense]:
    """Dense FFN of each layer, from one width or a list of widths."""
    if not isinstance(config.data.get("intermediate_size"), list):
        return [dense(config, hidden, style)] * layers
    widths = [
        whole_number(width, "config.json intermediate_size", 1, MAX_COUNT) for width in config.layer_list("intermediate_size", layers) or []
    ]
    intermediates = {width: config.derived(width, "intermediate_size", "an entry of intermediate_size") for width in set(widths)}
    return [dense(config, hidden, style, intermediate=intermediates[width]) for width in widths]


def _streams(config: Config, hidden: Any) -> tuple[Vector, ...]:
    """Parameters per layer of the low-rank residual (Laurel), stream mixing (AltUp) and the gate of the layer's embedding."""
    rank, streams, layer_width = config.count("laurel_rank"), config.count("altup_num_inputs"), config.count("hidden_size_per_layer_input")
    return (
        Vector(name="Laurel projections", dims=(2, hidden, rank)),
        Vector(name="Laurel, AltUp and layer-embedding norms, AltUp scale", dims=(COPIES[4], hidden)),
        Vector(name="AltUp router", dims=(hidden, streams)),
        Vector(name="AltUp correction", dims=(streams, streams)),
        Vector(name="AltUp prediction", dims=(streams, streams, streams)),
        Vector(name="gate and projection of the layer's embedding", dims=(2, hidden, layer_width)),
    )


def _ends(config: Config, hidden: Any) -> tuple[Vector, ...]:
    """Parameters of the embeddings of all layers, their projection, and the projections that split and join the streams."""
    layers, layer_width = config.derived(layer_count(config), "layers", "num_hidden_layers"), config.count("hidden_size_per_layer_input")
    further_streams = config.derived(max(int(config.count("altup_num_inputs")) - 1, 0), "further streams", "altup_num_inputs - 1")
    return (
        Vector(name="embedding of each layer", dims=(config.count("vocab_size_per_layer_input"), layers, layer_width)),
        Vector(name="projection to the layers' embeddings", dims=(hidden, layers, layer_width)),
        Vector(name="norm of it", dims=(layer_width,)),
        Vector(name="stream projections, in and out", dims=(2, further_streams, hidden, hidden)),
    )
