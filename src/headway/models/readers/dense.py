"""Readers of dense decoders: Llama and its relatives, Gemma-3n, whose last layers share the KV of earlier layers, and Gemma 4."""

from __future__ import annotations

from typing import Any

from headway.core.units import Number
from headway.models.attention import AttentionPattern
from headway.models.attention.grouped_query import NarrowKvAttention
from headway.models.model import Dense, FeedForward, Model, Vector
from headway.models.readers.gpt import OLD, four_times
from headway.models.readers.read import EXTEND, MAX_COUNT, Config, translate_layers, whole_number
from headway.models.readers.standard import (
    COPIES,
    GATED,
    PLAIN,
    DecoderShape,
    Style,
    alike,
    attention,
    biased,
    block,
    dense,
    divided,
    finish,
    layer_count,
    layer_vectors,
    moe,
    norms,
    shape,
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
    return alike(config, s, style, ffn, looks(config, s, True) if patterns is None else patterns)


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
        raise config.refuse("qk_layernorm")
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
    vectors = (layer_vectors(s, style), _streams(config, s.hidden))
    layers = [
        block(attention(s, look, caches=layer < s.layers - shared), ffn, *vectors)
        for layer, (look, ffn) in enumerate(zip(looks, _ffns(config, s.hidden, style, s.layers), strict=True))
    ]
    config.ignore("activation_sparsity_pattern", "altup_active_idx", "altup_coef_clip", "altup_correct_scale")
    config.notes.append("embeddings of each layer, Laurel and AltUp are counted as parameters; their small matmuls are not timed")
    further_streams = config.derived(max(int(config.count("altup_num_inputs")) - 1, 0), "further streams", "altup_num_inputs - 1")
    streams = Vector(name="stream projections, in and out", dims=(2, further_streams, s.hidden, s.hidden))
    tables = _layer_tables(config, s.hidden, config.count("hidden_size_per_layer_input"))
    return finish(config, layers, s.hidden, style, (*norms(s.hidden, style, 1), *tables, streams))


def _ffns(config: Config, hidden: Number, style: Style, layers: int) -> list[Dense]:
    """Dense FFN of each layer, from one width or a list of widths."""
    if not isinstance(config.data.get("intermediate_size"), list):
        return [dense(config, hidden, style)] * layers
    widths = [
        whole_number(width, "config.json intermediate_size", 1, MAX_COUNT) for width in config.layer_list("intermediate_size", layers) or []
    ]
    intermediates = {width: config.derived(width, "intermediate_size", "an entry of intermediate_size") for width in set(widths)}
    return [dense(config, hidden, style, intermediate=intermediates[width]) for width in widths]


def _streams(config: Config, hidden: Number) -> tuple[Vector, ...]:
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


# -- reader of Gemma 4: wide heads in full layers, one projection for key and value, shared KV, embeddings of each layer, experts 


WINDOW = "window"


def gemma4(config: Config) -> Model:
    """Gemma-4 text decoder: dense, with experts beside the dense FFN, or with embeddings of each layer."""
    config.assume(
        "Gemma4TextConfig", vocab_size=262144, hidden_size=2304, intermediate_size=9216, num_hidden_layers=30, num_attention_heads=8,
        num_key_value_heads=4, head_dim=256, global_head_dim=512, sliding_window=512, max_position_embeddings=131072,
        vocab_size_per_layer_input=262144,
    )  # fmt: skip
    is_width_stated = config.data.get("hidden_size_per_layer_input") is not None
    config.assume("Gemma4TextConfig", hidden_size_per_layer_input=256)
    s, style = shape(config), Style(norms=4, tied=True)
    if config.flag("attention_bias"):
        raise config.refuse("attention_bias")
    first_shared = s.layers - int(config.count("num_kv_shared_layers", default=0, low=0, high=s.layers))
    looks = alternating(config, s, 6)
    looks[-1] = AttentionPattern()  # the last layer sees the whole context, whatever the list says
    width = config.count("hidden_size_per_layer_input", low=0)
    if not is_width_stated:
        table = int(config.count("vocab_size_per_layer_input")) * s.layers * int(width)
        config.notes.append(f"assumed: hidden_size_per_layer_input {int(width)}, the default: its tables have {table:,} parameters")
    parts = norms(s.hidden, style), _experts_beside(config, s, style), _layer_input(s.hidden, width)
    layers = []
    for layer, look in enumerate(looks):
        mixer, scales = _attention(config, s, look, shared=layer >= first_shared > 0)
        wide = layer >= first_shared > 0 and config.flag("use_double_wide_mlp")  # layers that read an earlier layer's KV
        double = config.derived(2 * int(config.count("intermediate_size")), "FFN width", "2 * intermediate_size") if wide else None
        ffn, extra = parts[1] or (dense(config, s.hidden, style, intermediate=double), ())
        layers.append(block(mixer, ffn, parts[0], scales, extra, parts[2]))
    config.ignore("attention_k_eq_v", "use_double_wide_mlp", "num_global_key_value_heads", "top_k_experts", "moe_intermediate_size")
    config.ignore("num_experts", "enable_moe_block", "expert_intermediate_size", "vocab_size_per_layer_input", "global_head_dim")
    if width:
        config.notes.append("embeddings of each layer are counted as parameters; their small matmuls are not timed")
    return finish(config, layers, s.hidden, style, (*norms(s.hidden, style, 1), *_layer_tables(config, s.hidden, width)))


def _attention(config: Config, s: DecoderShape, look: AttentionPattern, shared: bool) -> tuple[Any, tuple[Vector, ...]]:
    """Attention of a layer with its query and key norms: full layers have wider heads, may have fewer KV heads and no value."""
    full = look.name != WINDOW
    one_projection = full and config.flag("attention_k_eq_v")
    head_dim = config.count("global_head_dim") if full else s.head_dim
    kv_heads = config.count("num_global_key_value_heads", default=s.kv_heads) if one_projection else s.kv_heads
    if s.heads % kv_heads:
        raise config.refuse("num_global_key_value_heads", f"must divide num_attention_heads = {int(s.heads)}")
    wide = DecoderShape(hidden=s.hidden, layers=s.layers, heads=s.heads, kv_heads=kv_heads, head_dim=head_dim)
    scales = (Vector(name="query norm" if shared else "query and key norm", dims=(1 if shared else 2, head_dim)),)
    if not shared and not one_projection:
        return attention(wide, look), scales
    mixer = NarrowKvAttention(
        hidden=s.hidden, heads=s.heads, kv_heads=kv_heads, head_dim=head_dim, value_dim=head_dim, look=look, caches=not shared,
        kv_projections=0 if shared else 1,
    )  # fmt: skip
    return mixer, scales


def _experts_beside(config: Config, s: DecoderShape, style: Style) -> tuple[FeedForward, tuple[Vector, ...]] | None:
    """Routed experts beside the dense FFN of each layer, with the router's scales and three more norms; None where there are none."""
    if not config.flag("enable_moe_block"):
        return None
    experts = config.count("num_experts")
    ffn = moe(
        s.hidden, experts=experts, per_token=config.count("top_k_experts"), intermediate=config.count("moe_intermediate_size"),
        shared=1, shared_intermediate=config.count("intermediate_size"),
    )  # fmt: skip
    vectors = (Vector(name="router scale", dims=(s.hidden,)), Vector(name="scale of each expert", dims=(experts,)))
    return ffn, (*vectors, *norms(s.hidden, style, 3))


def _layer_input(hidden: Number, width: Number) -> tuple[Vector, ...]:
    """The layer's scale; gate, projection and norm of its own embedding where there is one."""
    scale = (Vector(name="scale of the layer", dims=(1,)),)
    if not width:
        return scale
    gates = Vector(name="gate and projection of the layer's embedding", dims=(2, hidden, width))
    return (*scale, gates, Vector(name="norm of the layer's embedding", dims=(hidden,)))


def _layer_tables(config: Config, hidden: Number, width: Number) -> tuple[Vector, ...]:
    """Embeddings of all layers, their projection and its norm."""
    if not width:
        return ()
    layers = config.derived(layer_count(config), "layers", "num_hidden_layers")
    return (
        Vector(name="embedding of each layer", dims=(config.count("vocab_size_per_layer_input"), layers, width)),
        Vector(name="projection to the layers' embeddings", dims=(hidden, layers, width)),
        Vector(name="norm of it", dims=(width,)),
    )


# -- readers of further dense decoders: between GPT-2 and Llama, and relatives of Llama with a norm or bias of their own --------


def qwen(config: Config) -> Model:
    """Qwen 1: Llama with a bias on query, key and value; the stated FFN width counts gate and up together."""
    hidden, both = config.count("hidden_size"), config.count("intermediate_size")
    if not config.flag("no_bias", default=True):
        raise config.refuse("no_bias")
    width = config.derived(int(both) // 2, "FFN width", "intermediate_size / 2")
    s, style = shape(config), Style(qkv_bias=True)
    return alike(config, s, style, dense(config, hidden, style, intermediate=width))


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
    return alike(config, s, style, dense(config, hidden, style, "ffn_hidden_size"))


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
    return alike(config, s, style, ffn, looks)


def xglm(config: Config) -> Model:
    """XGLM: sinusoidal positions, biases everywhere, a tied head."""
    hidden, heads = config.count("d_model"), config.count("attention_heads")
    head_dim = divided(config, hidden, heads, "head_dim", "d_model / attention_heads")
    s = DecoderShape(hidden=hidden, layers=layer_count(config), heads=heads, kv_heads=heads, head_dim=head_dim)
    return alike(config, s, OLD, dense(config, hidden, OLD, "ffn_dim"))


def persimmon(config: Config) -> Model:
    """Persimmon: LayerNorm on each query and key head, a plain FFN, biases everywhere, an untied head."""
    s, style = shape(config), OLD.but(tied=False)
    ffn = dense(config, s.hidden, style)
    scales = (Vector(name="query and key norm", dims=(COPIES[4], s.head_dim)),) if config.flag("qk_layernorm", default=True) else ()
    return alike(config, s, style, ffn, extra=scales)


def bitnet(config: Config) -> Model:
    """BitNet b1.58: Llama with a norm before the output and down projections, stored here as in the 16-bit checkpoint."""
    s, style = shape(config), Style(tied=True)
    ffn = dense(config, s.hidden, style)
    inner = (Vector(name="norm before the output", dims=(s.hidden,)), Vector(name="norm before down", dims=(ffn.intermediate,)))
    return alike(config, s, style, ffn, extra=inner)


def apertus(config: Config) -> Model:
    """Apertus: a plain FFN with a learned activation, norms on each query and key head."""
    s, style = shape(config), biased(config, matrices=PLAIN, qk_norm="head", mlp_bias=config.flag("mlp_bias"))
    learned = () if config.text("hidden_act", default="xielu") != "xielu" else (Vector(name="learned activation", dims=(2,)),)
    config.ignore("post_norm", "qk_norm")
    return alike(config, s, style, dense(config, s.hidden, style), extra=learned)


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
    return alike(config, s, style, ffn)


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
        raise config.refuse("embed_layernorm")
    s, style = shape(config), Style(out_bias=True)
    config.ignore("skip_bias_add", "skip_bias_add_qkv", "logn", "n_inner", "offset_alibi", "slow_but_exact", "base_seqlen")
    config.ignore("training_seqlen", "flash_attn", "bias_dropout_fusion", "masked_softmax_fusion", "parallel_attn")
    down = (Vector(name="down bias", dims=(s.hidden,)),)
    return alike(config, s, style, dense(config, s.hidden, style, "ffn_hidden_size"), extra=down)


def plamo3(config: Config) -> Model:
    """PLaMo 3: norms before and after each part and on each query and key head, windows in 7 of 8 layers."""
    s, style = shape(config), Style(norms=4, qk_norm="head")
    period = int(config.count("sliding_window_pattern", default=8))
    patterns = full_every(config, s.layers, period, "window_size", "sliding_window")
    config.ignore("interleaved_sliding_window", "sliding_window")
    return plain(config, s, style, patterns)
