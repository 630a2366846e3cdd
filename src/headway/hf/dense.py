"""Decoders in which every token uses every parameter: Llama and its relatives."""

from __future__ import annotations

from headway.hf.read import Config, every
from headway.hf.standard import PLAIN, Shape, Style, dense, finish, shape, uniform, window
from headway.model import Look, Model


def looks(config: Config, s: Shape, sliding_default: bool = False) -> list[Look]:
    """How far each layer looks back: layer_types where given, else one sliding window for all or none."""
    has_window = config.data.get("sliding_window") is not None
    types = config.listed("layer_types", s.layers)
    if types is not None:
        config.seen.add("sliding_window")
        choices = {"full_attention": Look()} | ({"sliding_attention": window(config)} if has_window else {})
        return every(types, choices, config, "layer_types")
    config.raw("sliding_window")
    used = config.flag("use_sliding_window", default=sliding_default)
    return [window(config) if has_window and used else Look()] * s.layers


def llama(config: Config) -> Model:
    """Llama 1 to 3 and what keeps its shape (Yi, InternLM3, Mistral without window, SmolLM, ...)."""
    s = shape(config)
    style = Style(qkv_bias=config.flag("attention_bias"), out_bias=config.flag("attention_bias"), mlp_bias=config.flag("mlp_bias"))
    return finish(config, uniform(config, s, style, dense(config, s.hidden, style), looks(config, s, True)), s.hidden, style)


def qwen2(config: Config) -> Model:
    """Qwen2 and 2.5: a bias on query, key and value."""
    s = shape(config)
    style = Style(qkv_bias=True)
    return finish(config, uniform(config, s, style, dense(config, s.hidden, style), qwen_looks(config, s)), s.hidden, style)


def qwen_looks(config: Config, s: Shape) -> list[Look]:
    """Qwen slides only where use_sliding_window says so, and only from layer max_window_layers on."""
    if not config.flag("use_sliding_window"):
        config.raw("sliding_window"), config.raw("layer_types")
        return [Look()] * s.layers
    if config.data.get("layer_types") is not None:
        return looks(config, s)
    first = int(config.count("max_window_layers", low=0, default=28))
    return [Look() if layer < first else window(config) for layer in range(s.layers)]


def qwen3(config: Config) -> Model:
    """Qwen3: no bias, a norm on each query and key head."""
    s = shape(config, head_dim_default=128)
    bias = config.flag("attention_bias")
    style = Style(qk_norm="head", qkv_bias=bias, out_bias=bias)
    return finish(config, uniform(config, s, style, dense(config, s.hidden, style), qwen_looks(config, s)), s.hidden, style)


def phi3(config: Config) -> Model:
    """Phi-3 and Phi-4: Llama with fused projections; `partial_rotary_factor` changes no count."""
    config.flag("attention_bias")
    s = shape(config)
    style = Style()
    return finish(config, uniform(config, s, style, dense(config, s.hidden, style), looks(config, s, True)), s.hidden, style)


def gpt2(config: Config) -> Model:
    """GPT-2 and GPT-3: learned positions, LayerNorm, a bias everywhere, tied head."""
    s = shape(config)
    style = Style(matrices=PLAIN, qkv_bias=True, out_bias=True, mlp_bias=True, norm_parts=2, tied=True, positions=True)
    inner = config.count("n_inner", default=None)
    width = inner if inner is not None else config.derived(4 * int(s.hidden), "n_inner", "4 * n_embd")
    return finish(config, uniform(config, s, style, dense(config, s.hidden, style, intermediate=width)), s.hidden, style)
