"""Readers of decoders with state-space layers: Mamba, Jamba, Bamba, Granite hybrids, Falcon-H1."""

from __future__ import annotations

from typing import Any

from headway.models.attention.parallel import ParallelMixer
from headway.models.attention.state_space import Mamba, Mamba2
from headway.models.model import Model, NoFeedForward, Vector
from headway.models.readers.mixture import mixtral_experts
from headway.models.readers.read import Config, translate_layers
from headway.models.readers.standard import Style, attention, biased, block, dense, finish, layer_count, mixer_vectors, moe, norms, shape


def mamba(config: Config) -> Model:
    """Mamba-1 (and Falcon-Mamba): state-space layers only, no FFN, a tied head."""
    hidden, style = config.count("hidden_size", "d_model"), Style(norms=1, tied=True)
    mixer, vectors = _mamba1(config, hidden, "state_size", "conv_kernel", "expand", "time_step_rank", "use_bias", "use_conv_bias")
    return finish(config, [block(mixer, NoFeedForward(), norms(hidden, style), vectors)] * layer_count(config), hidden, style)


def _mamba1(
    config: Config, hidden: Any, state: str, kernel: str, expand: str, rank: str, bias: str, conv_bias: str
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
    hidden: Any,
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
        hidden=hidden,
        heads=config.count(heads),
        head_dim=config.count(head_dim),
        groups=config.count(groups, default=1),
        state=config.count(state),
        kernel=config.count(kernel, default=4),
    )
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
        block(attention(s), ffn, norms(s.hidden, style), mixer_vectors(s, style))
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
            s.hidden,
            experts=experts,
            per_token=config.count("num_experts_per_tok"),
            intermediate=config.count("intermediate_size"),
            shared=1,
            shared_intermediate=shared,
        )
    else:
        config.ignore("num_experts_per_tok", "intermediate_size")
        ffn = dense(config, s.hidden, style, intermediate=shared)
    choices = {"attention": block(attention(s), ffn, norms(s.hidden, style), mixer_vectors(s, style))}
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
        raise config.refuse("projectors_bias", "--as dense, moe or mla reads the usual keys")
    mixer, mamba_vectors = mamba2_mixer(config, s.hidden, *_BAMBA, gated_norm=config.flag("mamba_rms_norm"))
    both = ParallelMixer(attention=attention(s), recurrence=mixer)
    layer = block(both, dense(config, s.hidden, style), norms(s.hidden, style), mixer_vectors(s, style), mamba_vectors)
    return finish(config, [layer] * s.layers, s.hidden, style)
