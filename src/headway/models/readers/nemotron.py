"""Readers of Nemotron-H and Nemotron-3 (one part per layer, latent experts), Nemotron-NAS and Puzzle (a config per layer)."""

from __future__ import annotations

from typing import Any

from headway.core.errors import BadValue
from headway.models.attention import NoMixer
from headway.models.model import Block, Model, NoFeedForward, Vector
from headway.models.readers.read import MAX_COUNT, MAX_LAYERS, Config, translate_layers, whole_number
from headway.models.readers.recurrent import mamba2_mixer
from headway.models.readers.standard import (
    GATED,
    PLAIN,
    DecoderShape,
    Style,
    attention,
    block,
    dense,
    divided,
    finish,
    layer_count,
    mixer_vectors,
    moe,
    norms,
    shape,
)

EXTEND = "--as dense, moe or mla reads the usual keys"
# Names of a layer's part, in lists and in the letters of a pattern.
PARTS = {
    "M": "mamba", "*": "attention", "-": "mlp", "E": "moe", "mamba": "mamba", "linear_attention": "mamba", "attention": "attention",
    "full_attention": "attention", "mlp": "mlp", "moe": "moe",
}  # fmt: skip


def nemotron_h(config: Config) -> Model:
    """Nemotron-H and Nemotron-3: one part per layer, by a pattern or a list: Mamba-2, attention, plain FFN or experts."""
    parts = _parts(config)
    config.data = config.data | {"num_hidden_layers": len(parts)}
    if config.raw("attention_head_dim") is not None and config.data.get("head_dim") is None:
        config.data = config.data | {"head_dim": config.data["attention_head_dim"]}
    bias = config.flag("attention_bias")
    s, style = shape(config), Style(matrices=PLAIN, norms=1, mlp_bias=config.flag("mlp_bias"), qkv_bias=bias, out_bias=bias)
    blocks = config.raw("block_configs")
    if blocks is not None and (not isinstance(blocks, list) or len(blocks) < s.layers):
        raise config.refuse("block_configs", f"wants an object for each of the {s.layers} layers")
    layers: list[Block] = []
    kinds: dict[Any, Block] = {}
    for index, part in enumerate(parts):
        sizes = _layer_sizes(config, blocks[index], index) if blocks is not None and part == "moe" else {}
        key = (part, tuple(sorted(sizes.items())))
        kinds[key] = kinds.get(key) or _layer(config, s, style, part, sizes)
        layers.append(kinds[key])
    config.ignore(
        "intermediate_size", "moe_intermediate_size", "mamba_hidden_act", "layers_block_type", "layer_types", "block_configs",
        "n_routed_experts", "n_shared_experts", "moe_shared_expert_intermediate_size", "num_experts_per_tok", "expand", "conv_kernel",
        "n_groups", "ssm_state_size", "mamba_num_heads", "mamba_head_dim", "moe_latent_size", "use_conv_bias",
        "mamba_proj_bias", "use_bias",
    )  # fmt: skip
    return finish(config, layers, s.hidden, style)


def _parts(config: Config) -> list[str]:
    """The part of each layer."""
    pattern = config.raw("hybrid_override_pattern")
    key = "hybrid_override_pattern" if pattern is not None else "layers_block_type"
    entries = pattern if pattern is not None else config.raw("layers_block_type", "layer_types")
    layers = config.data.get("num_hidden_layers")
    if not isinstance(entries, str if pattern is not None else list) or not 0 < len(entries) <= MAX_LAYERS:
        raise BadValue(f"config.json {key}", entries, "a letter (M * - E) or a name (mamba, attention, mlp, moe) for each layer")
    if layers is not None and len(entries) != layers:
        raise config.refuse(key, f"wants one letter for each of the {layers} layers")
    return translate_layers(entries, PARTS, config, key)


def _layer_sizes(config: Config, entry: Any, index: int) -> dict[str, int]:
    """Sizes of the experts of one layer, where the file states them layer by layer."""
    if not isinstance(entry, dict):
        raise BadValue("config.json block_configs", entry, "an object for each layer")
    field = f"config.json block_configs[{index}]"
    keys = ("moe_intermediate_size", "n_routed_experts", "num_experts_per_tok", "moe_latent_size", "moe_shared_expert_intermediate_size")
    unknown = set(entry) - {*keys, "block_type"}
    if unknown:
        raise BadValue(field, ", ".join(sorted(map(str, unknown))), f"the known keys {', '.join(keys)}; {EXTEND}")
    return {key: whole_number(entry[key], f"{field} {key}", 1, MAX_COUNT) for key in keys if entry.get(key) is not None}


def _layer(config: Config, s: DecoderShape, style: Style, part: str, sizes: dict[str, int]) -> Block:
    """One layer: its only part behind a norm."""
    norm = norms(s.hidden, style)
    if part == "mamba":
        keys = ("mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel", "mamba_proj_bias", "expand")
        mixer, vectors = mamba2_mixer(config, s.hidden, *keys)
        return block(mixer, NoFeedForward(), norm, vectors)
    if part == "attention":
        return block(attention(s), NoFeedForward(), norm, mixer_vectors(s, style))
    if part == "mlp":
        return block(NoMixer(), dense(config, s.hidden, style), norm)
    experts = _experts(config, s.hidden, sizes)
    return block(NoMixer(), experts, norm, (Vector(name="router correction bias", dims=(experts.experts,)),))


def _experts(config: Config, hidden: Any, sizes: dict[str, int]) -> Any:
    """Routed and shared experts of two matrices; the routed experts may work at a latent width."""

    def size(key: str, **more: Any) -> Any:
        return config.derived(sizes[key], key, f"{key} of a layer in block_configs") if key in sizes else config.count(key, **more)

    latent = size("moe_latent_size", default=0)
    if latent and "latent experts" not in " ".join(config.notes):
        config.notes.append("latent experts: tokens are sent between chips as if at the hidden width, which is wider")
    return moe(
        hidden, experts=size("n_routed_experts"), per_token=size("num_experts_per_tok"), intermediate=size("moe_intermediate_size"),
        shared=config.count("n_shared_experts", default=0, low=0),
        shared_intermediate=size("moe_shared_expert_intermediate_size", default=0), matrices=PLAIN, shared_matrices=PLAIN, latent=latent,
    )  # fmt: skip


def nemotron_nas(config: Config) -> Model:
    """Nemotron-NAS (Llama-Nemotron): Llama whose layers each state their KV heads and FFN width, or lack attention or FFN."""
    layers, style = layer_count(config), Style(mlp_bias=config.flag("mlp_bias"))
    if config.flag("attention_bias"):
        raise config.refuse("attention_bias", EXTEND)
    entries = config.layer_list("block_configs", layers)
    if entries is None:
        raise config.refuse("block_configs", "Nemotron-NAS states each layer there")
    hidden, heads = config.count("hidden_size"), config.count("num_attention_heads")
    head_dim = config.count("head_dim", default=divided(config, hidden, heads, "head_dim", "hidden_size / num_attention_heads"))
    config.ignore("num_key_value_heads", "intermediate_size", "ffn_hidden_size")
    kinds: dict[str, Block] = {}
    blocks = []
    for index, entry in enumerate(entries):
        text = repr(entry)
        if text not in kinds:
            kinds[text] = _searched(config, entry, index, (hidden, layers, heads, head_dim), style)
        blocks.append(kinds[text])
    return finish(config, blocks, hidden, style)


def _searched(config: Config, entry: Any, index: int, sizes: tuple[Any, int, Any, Any], style: Style) -> Block:
    """One layer of Nemotron-NAS from its object in block_configs."""
    hidden, layers, heads, head_dim = sizes
    field = f"config.json block_configs[{index}]"
    parts = [entry.get(name) if isinstance(entry, dict) else None for name in ("attention", "ffn")]
    if not all(isinstance(part, dict) for part in parts):
        raise BadValue(field, entry, "an object with `attention` and `ffn`")
    mixing, feeding = (Config(part, config.name, f"{config.source}, block_configs[{index}]") for part in parts if isinstance(part, dict))
    for part in (mixing, feeding):
        for key in ("replace_with_linear", "sparsify", "num_sink_tokens", "window_length", "use_prefill_window_in_sink_attention"):
            if part.raw(key):
                raise BadValue(f"{field} {key}", part.data[key], f"a layer without it; {EXTEND}")
    mixer: Any = NoMixer()
    if not mixing.flag("no_op"):
        group = mixing.count("n_heads_in_group")
        kv_heads = divided(config, heads, group, "KV heads", "num_attention_heads / n_heads_in_group")
        mixer = attention(DecoderShape(hidden=hidden, layers=layers, heads=heads, kv_heads=kv_heads, head_dim=head_dim))
    ffn: Any = NoFeedForward()
    if not feeding.flag("no_op"):
        ffn = dense(config, hidden, style.but(matrices=GATED), intermediate=_width(config, feeding, hidden, field))
    parts_present = (not mixing.flag("no_op")) + (not feeding.flag("no_op"))
    mixing.ignore("no_op", "n_heads_in_group")
    feeding.ignore("no_op", "ffn_mult", "intermediate_size")
    for part in (mixing, feeding):
        part.check_unread()
    return block(mixer, ffn, norms(hidden, style, parts_present))


def _width(config: Config, feeding: Config, hidden: Any, field: str) -> Any:
    """FFN width: stated, or 2/3 of `ffn_mult` times the hidden size, rounded up to a multiple of 256."""
    width = feeding.count("intermediate_size", default=None)
    if width is not None:
        return width
    factor = feeding.raw("ffn_mult")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1000:
        raise BadValue(f"{field} ffn_mult", factor, "a number above 0 and below 1000")
    width = -(-int(2 * factor * int(hidden) / 3) // 256) * 256
    return config.derived(width, "FFN width", "2/3 * ffn_mult * hidden_size, rounded up to 256")
