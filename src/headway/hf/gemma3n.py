"""Gemma-3n: the last layers read the KV of earlier ones, every layer has an embedding of its own, four residual streams (AltUp)."""

from __future__ import annotations

from typing import Any

from headway.hf.read import MAX_COUNT, Config, translate_layers, whole_number
from headway.hf.standard import COPIES, Style, attention, block, dense, finish, layer_count, mixer_vectors, norms, shape, window
from headway.model import AttentionPattern, Dense, Model, Vector

TWO = COPIES[2]


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
    default_types = ["full_attention" if (layer + 1) % 5 == 0 else "sliding_attention" for layer in range(s.layers)]
    types = config.layer_list("layer_types", s.layers) or default_types
    looks = translate_layers(types, {"full_attention": AttentionPattern(), "sliding_attention": window(config)}, config, "layer_types")
    vectors = (norms(s.hidden, style), mixer_vectors(s, style), _streams(config, s.hidden))
    layers = [
        block(attention(s, look, caches=layer < s.layers - shared), ffn, *vectors)
        for layer, (look, ffn) in enumerate(zip(looks, _ffns(config, s.hidden, style, s.layers), strict=True))
    ]
    config.ignore("activation_sparsity_pattern", "altup_active_idx", "altup_coef_clip", "altup_correct_scale")
    config.notes.append("embeddings of each layer, Laurel and AltUp are counted as parameters; their small matmuls are not timed")
    return finish(config, layers, s.hidden, style, (*norms(s.hidden, style, 1), *_ends(config, s.hidden)))


def _ffns(config: Config, hidden: Any, style: Style, layers: int) -> list[Dense]:
    """One width, or one for each layer."""
    if not isinstance(config.data.get("intermediate_size"), list):
        return [dense(config, hidden, style)] * layers
    widths = [
        whole_number(width, "config.json intermediate_size", 1, MAX_COUNT) for width in config.layer_list("intermediate_size", layers) or []
    ]
    intermediates = {width: config.derived(width, "intermediate_size", "an entry of intermediate_size") for width in set(widths)}
    return [dense(config, hidden, style, intermediate=intermediates[width]) for width in widths]


def _streams(config: Config, hidden: Any) -> tuple[Vector, ...]:
    """Of each layer: the low-rank residual (Laurel), the mixing of streams (AltUp), the gate of the layer's own embedding."""
    rank, streams, layer_width = config.count("laurel_rank"), config.count("altup_num_inputs"), config.count("hidden_size_per_layer_input")
    return (
        Vector(name="Laurel projections", dims=(TWO, hidden, rank)),
        Vector(name="Laurel, AltUp and layer-embedding norms, AltUp scale", dims=(COPIES[4], hidden)),
        Vector(name="AltUp router", dims=(hidden, streams)),
        Vector(name="AltUp correction", dims=(streams, streams)),
        Vector(name="AltUp prediction", dims=(streams, streams, streams)),
        Vector(name="gate and projection of the layer's embedding", dims=(TWO, hidden, layer_width)),
    )


def _ends(config: Config, hidden: Any) -> tuple[Vector, ...]:
    """Of the model: the embeddings of all layers, their projection, and what splits and joins the streams."""
    layers, layer_width = config.derived(layer_count(config), "layers", "num_hidden_layers"), config.count("hidden_size_per_layer_input")
    further_streams = config.derived(max(int(config.count("altup_num_inputs")) - 1, 0), "further streams", "altup_num_inputs - 1")
    return (
        Vector(name="embedding of each layer", dims=(config.count("vocab_size_per_layer_input"), layers, layer_width)),
        Vector(name="projection to the layers' embeddings", dims=(hidden, layers, layer_width)),
        Vector(name="norm of it", dims=(layer_width,)),
        Vector(name="stream projections, in and out", dims=(TWO, further_streams, hidden, hidden)),
    )
