"""Readers of decoders with state-space layers: Mamba, Jamba, Bamba, Granite hybrids, Falcon-H1, Nemotron, RWKV."""

from __future__ import annotations

from typing import Any

from headway.core.errors import BadValue
from headway.core.units import Number
from headway.models.attention import NoMixer
from headway.models.attention.recurrent import Mamba, Mamba2, ParallelMixer, Rwkv
from headway.models.model import Block, Model, NoFeedForward, Vector
from headway.models.readers.gpt import four_times
from headway.models.readers.mixture import mixtral_experts
from headway.models.readers.read import EXTEND, MAX_COUNT, MAX_LAYERS, Config, translate_layers, whole_number
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
    layer_vectors,
    mixer_vectors,
    moe,
    norms,
    shape,
)


def mamba(config: Config) -> Model:
    """Mamba-1 (and Falcon-Mamba): state-space layers only, no FFN, a tied head."""
    hidden, style = config.count("hidden_size", "d_model"), Style(norms=1, tied=True)
    mixer, vectors = _mamba1(config, hidden, "state_size", "conv_kernel", "expand", "time_step_rank", "use_bias", "use_conv_bias")
    return finish(config, [block(mixer, NoFeedForward(), norms(hidden, style), vectors)] * layer_count(config), hidden, style)


def _mamba1(
    config: Config, hidden: Number, state: str, kernel: str, expand: str, rank: str, bias: str, conv_bias: str
) -> tuple[Mamba, tuple[Vector, ...]]:
    inner = config.count("intermediate_size", default=None) if state == "state_size" else None
    if inner is None:
        inner = config.derived(int(hidden) * int(config.count(expand, default=2)), "inner", f"{expand} * hidden_size")
    else:
        config.ignore(expand)
    dt_rank = None if config.data.get(rank) == "auto" else config.count(rank, default=None)
    if dt_rank is None:
        config.keys_read.add(rank)
        dt_rank = config.derived(-(-int(hidden) // 16), rank, "ceil(hidden_size / 16)")
    mixer = Mamba(
        hidden=hidden, inner=inner, state=config.count(state, default=16), dt_rank=dt_rank, kernel=config.count(kernel, default=4)
    )
    vectors = [Vector(name="A", dims=(inner, mixer.state)), Vector(name="D and step bias", dims=(2, inner))]
    if config.flag(conv_bias, default=True):
        vectors.append(Vector(name="convolution bias", dims=(inner,)))
    if config.flag(bias):
        vectors += [Vector(name="input bias", dims=(2, inner)), Vector(name="output bias", dims=(hidden,))]
    return mixer, tuple(vectors)


def mamba2(config: Config) -> Model:
    """Mamba-2: state-space layers only, no FFN, a tied head."""
    hidden, style = config.count("hidden_size"), Style(norms=1, tied=True)
    mixer, vectors = mamba2_mixer(config, hidden, "num_heads", "head_dim", "n_groups", "state_size", "conv_kernel", "use_bias", "expand")
    return finish(config, [block(mixer, NoFeedForward(), norms(hidden, style), vectors)] * layer_count(config), hidden, style)


def mamba2_mixer(
    config: Config,
    hidden: Number,
    heads: str,
    head_dim: str,
    groups: str,
    state: str,
    kernel: str,
    bias: str,
    expand: str,
    conv_bias: str = "use_conv_bias",
    gated_norm: bool = True,
) -> tuple[Mamba2, tuple[Vector, ...]]:
    """Mamba-2 with its vectors, from the keys of a family."""
    config.ignore(expand)
    mixer = Mamba2(
        hidden=hidden, heads=config.count(heads), head_dim=config.count(head_dim), groups=config.count(groups, default=1),
        state=config.count(state), kernel=config.count(kernel, default=4),
    )  # fmt: skip
    inner = config.derived(int(mixer.heads) * int(mixer.head_dim), "inner", f"{heads} * {head_dim}")
    both = config.derived(2 * int(mixer.groups) * int(mixer.state), "B and C", f"2 * {groups} * {state}")
    vectors = [
        Vector(name="A, D and step bias", dims=(config.fixed(3, "vectors per head", "Mamba-2"), mixer.heads)),
        *((Vector(name="gated norm", dims=(inner,)),) if gated_norm else ()),
    ]
    if config.flag(conv_bias, default=True):
        vectors += [Vector(name="convolution bias", dims=(inner,)), Vector(name="convolution bias of B and C", dims=(both,))]
    if config.flag(bias):
        vectors += [Vector(name="input bias", dims=(size,)) for size in (inner, inner, both, mixer.heads)]
        vectors.append(Vector(name="output bias", dims=(hidden,)))
    return mixer, tuple(vectors)


def jamba(config: Config) -> Model:
    """Jamba: Mamba-1 layers with attention every few layers, and an MoE in every other layer."""
    s, style = shape(config), Style()
    mixer, mamba_vectors = _mamba1(
        config, s.hidden, "mamba_d_state", "mamba_d_conv", "mamba_expand", "mamba_dt_rank", "mamba_proj_bias", "mamba_conv_bias"
    )
    inner = Vector(
        name="norms of step, B and C", dims=(config.derived(int(mixer.dt_rank) + 2 * int(mixer.state), "norms", "dt_rank + 2 * state"),)
    )
    experts = config.count("num_experts", default=1)
    routed = mixtral_experts(config, s.hidden) if experts > 1 else dense(config, s.hidden, style)
    plain = dense(config, s.hidden, style)
    attends = _periodic(config, "attn_layer", s.layers)
    layers = []
    for is_attention, is_routed in zip(attends, _periodic(config, "expert_layer", s.layers), strict=True):
        vectors = norms(s.hidden, style) if is_attention else (*norms(s.hidden, style), *mamba_vectors, inner)
        layers.append(block(attention(s) if is_attention else mixer, routed if is_routed else plain, vectors))
    return finish(config, layers, s.hidden, style)


def _periodic(config: Config, stem: str, layers: int) -> list[bool]:
    period, offset = int(config.count(f"{stem}_period")), int(config.count(f"{stem}_offset", low=0))
    return [layer % period == offset for layer in range(layers)]


def bamba(config: Config) -> Model:
    """Bamba: Mamba-2 layers, attention in listed layers, a gated FFN in each layer."""
    s, style = shape(config), biased(config, mlp_bias=config.flag("mlp_bias"))
    mixer, mamba_vectors = mamba2_mixer(config, s.hidden, *_BAMBA)
    ffn = dense(config, s.hidden, style)
    places = config.places("attn_layer_indices")
    layers = [
        block(attention(s), ffn, layer_vectors(s, style))
        if layer in places
        else block(mixer, ffn, norms(s.hidden, style), mamba_vectors)
        for layer in range(s.layers)
    ]
    return finish(config, layers, s.hidden, style)


_BAMBA = (
    "mamba_n_heads",
    "mamba_d_head",
    "mamba_n_groups",
    "mamba_d_state",
    "mamba_d_conv",
    "mamba_proj_bias",
    "mamba_expand",
    "mamba_conv_bias",
)


def granite_hybrid(config: Config) -> Model:
    """Granite-4 hybrids: Mamba-2 and attention layers, a shared FFN in each layer, with or without routed experts."""
    s, style = shape(config), biased(config, tied=True)
    kinds = (
        config.layer_list("layer_types" if config.data.get("layer_types") is not None else "layers_block_type", s.layers)
        or ["attention"] * s.layers
    )
    shared, experts = config.count("shared_intermediate_size"), config.count("num_local_experts", default=0, low=0)
    if experts:
        ffn: Any = moe(
            s.hidden, experts=experts, per_token=config.count("num_experts_per_tok"), intermediate=config.count("intermediate_size"),
            shared=1, shared_intermediate=shared,
        )  # fmt: skip
    else:
        config.ignore("num_experts_per_tok", "intermediate_size")
        ffn = dense(config, s.hidden, style, intermediate=shared)
    choices = {"attention": block(attention(s), ffn, layer_vectors(s, style))}
    if "mamba" in kinds or "linear_attention" in kinds:
        mixer, mamba_vectors = mamba2_mixer(config, s.hidden, *_BAMBA)
        choices["mamba"] = choices["linear_attention"] = block(mixer, ffn, norms(s.hidden, style), mamba_vectors)
        choices["full_attention"] = choices["attention"]
    for key in _BAMBA:
        config.ignore(key)
    return finish(config, translate_layers(kinds, choices, config, "layer_types"), s.hidden, style)


def falcon_h1(config: Config) -> Model:
    """Falcon-H1: attention and Mamba-2 side by side in each layer, then a gated FFN."""
    s, style = shape(config), biased(config, mlp_bias=config.flag("mlp_bias"))
    config.ignore("mamba_d_ssm", "mamba_norm_before_gate", "mamba_use_mlp", "attn_layer_indices")
    if config.data.get("mamba_d_head") == "auto":
        head_dim = int(config.count("mamba_d_ssm")) // int(config.count("mamba_n_heads"))
        config.data = config.data | {"mamba_d_head": head_dim}
    if config.flag("projectors_bias"):
        raise config.refuse("projectors_bias")
    mixer, mamba_vectors = mamba2_mixer(config, s.hidden, *_BAMBA, gated_norm=config.flag("mamba_rms_norm"))
    both = ParallelMixer(attention=attention(s), recurrence=mixer)
    layer = block(both, dense(config, s.hidden, style), layer_vectors(s, style), mamba_vectors)
    return finish(config, [layer] * s.layers, s.hidden, style)


# -- readers of Nemotron-H and Nemotron-3 (one part per layer, latent experts), Nemotron-NAS and Puzzle (a config per layer) ----


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


def _experts(config: Config, hidden: Number, sizes: dict[str, int]) -> Any:
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
        raise config.refuse("attention_bias")
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


def _width(config: Config, feeding: Config, hidden: Number, field: str) -> Any:
    """FFN width: stated, or 2/3 of `ffn_mult` times the hidden size, rounded up to a multiple of 256."""
    width = feeding.count("intermediate_size", default=None)
    if width is not None:
        return width
    factor = feeding.raw("ffn_mult")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1000:
        raise BadValue(f"{field} ffn_mult", factor, "a number above 0 and below 1000")
    width = -(-int(2 * factor * int(hidden) / 3) // 256) * 256
    return config.derived(width, "FFN width", "2/3 * ffn_mult * hidden_size, rounded up to 256")


# -- reader of RWKV-4: a recurrence with a decay per channel in every layer, and a squared-ReLU FFN -----------------------------


def rwkv(config: Config) -> Model:
    """RWKV-4: LayerNorms, a norm before the first layer, an untied head."""
    hidden, layers, style = config.count("hidden_size"), layer_count(config), Style(matrices=PLAIN, norm_parts=2)
    inner = config.count("attention_hidden_size", default=hidden)
    ffn = dense(config, hidden, style, intermediate=four_times(config, hidden, "intermediate_size"))
    vectors = (
        Vector(name="decay and bonus", dims=(2, inner)),
        Vector(name="mix of each input with the last one", dims=(COPIES[5], hidden)),
    )
    layer = block(Rwkv(hidden=hidden, inner=inner), ffn, norms(hidden, style), vectors)
    config.ignore("context_length", "rescale_every")
    return finish(config, [layer] * layers, hidden, style, norms(hidden, style, 2))
