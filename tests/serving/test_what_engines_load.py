"""Launch lines over the catalogue: none that breaks an assertion of the engine, each written here from a checkpoint's own numbers.

Sources: docs/serve.md, "What engines refuse".
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from headway.models.config import catalogue_index, model
from headway.models.precision import Precision
from headway.models.work import works
from headway.performance.layout import Layout, illegal, shape
from headway.serving.launch.launch import ENGINES, launch

WAYS = range(1, 73)
FILES = {row["name"]: row["file"] for row in catalogue_index()}


def config_of(name: str) -> dict[str, Any]:
    """The numbers of a catalogue config, a decoder's own on top."""
    raw = json.loads(files("headway").joinpath("data/models", FILES[name]).read_text(encoding="utf-8"))
    return {**raw, **raw.get("text_config", {})}


def refusal(config: dict[str, Any], vocab: int, tp: int, expert_chips: int, engine: str) -> str:
    """Why the engine refuses to load a checkpoint with these numbers over tp chips, by its own assertions."""
    heads, kv_heads = config.get("num_attention_heads"), config.get("num_key_value_heads")
    if isinstance(heads, int) and heads % tp:
        return "attention heads"
    latent = "kv_lora_rank" in config
    if isinstance(kv_heads, int) and not latent and kv_heads % tp and tp % kv_heads:
        return "KV heads"
    scheme = config.get("quantization_config") or {}
    block = (scheme.get("weight_block_size") or [1])[0]
    expert_width = config.get("moe_intermediate_size") if isinstance(config.get("moe_intermediate_size"), int) else None
    dense = config.get("intermediate_size")
    all_routed = expert_width is None and any(config.get(key) for key in ("num_local_experts", "num_experts", "n_routed_experts"))
    splits_dense = isinstance(dense, int) and not all_routed and has_dense_layers(config)
    if splits_dense and (dense % tp or (tp > 1 and dense // tp % block)):
        return "FFN width"
    width = expert_width or (dense if all_routed else None)
    if isinstance(width, int) and (width % expert_chips or (expert_chips > 1 and width // expert_chips % block)):
        return "expert width"
    padded = -(-vocab // 64) * 64
    return "vocabulary" if engine == "vllm" and padded % tp else ""


def has_dense_layers(config: dict[str, Any]) -> bool:
    """Whether `intermediate_size` is of layers that every token uses."""
    routed = any(config.get(key) for key in ("num_local_experts", "num_experts", "n_routed_experts"))
    return not routed or bool(config.get("first_k_dense_replace")) or bool(config.get("mlp_only_layers"))


@pytest.mark.parametrize("engine", tuple(ENGINES))
def test_launch_lines__over_the_catalogue_break_no_assertion(engine: str) -> None:
    """238 models, tp = 1 .. 72, experts shared by all chips and one to a chip."""
    lines = refused = 0
    for name in FILES:
        subject, config = model(name), config_of(name)
        form = shape(works(subject))
        for tp in WAYS:
            for ep in (1, tp) if form.experts else (1,):
                layout = Layout(tp=tp, ep=ep)
                why = refusal(config, int(subject.vocab), tp, tp // ep, engine)
                made = None if illegal(layout, form) else launch(engine, subject, layout, Precision())
                if made is not None and made.lines:
                    assert not why, (engine, name, tp, ep, why)
                    lines += 1
                refused += bool(why)
    assert lines > 500 and refused > 5_000, (lines, refused)


@pytest.mark.parametrize(
    ("name", "layout", "weights", "said"),
    [
        ("phi-4", Layout(tp=4), "", "10 KV heads"), ("llama-3.2-3b", Layout(tp=6), "", "8 KV heads"),
        ("llama-3.2-3b", Layout(tp=24), "", "FFN's width 8192"), ("deepseek-v3", Layout(tp=32), "", "blocks of 128"),
        ("qwen3-235b-a22b-fp8", Layout(tp=8), "", "192"), ("qwen2.5-72b", Layout(tp=8), "int4_g128", "blocks of 128"),
        ("deepseek-v3", Layout(tp=32), "bf16", ""), ("qwen3-235b-a22b-fp8", Layout(tp=8, ep=8), "", ""),
        ("qwen2.5-72b", Layout(tp=8), "", ""),
        ("gpt-oss-120b", Layout(tp=8), "", ""), ("gemma-3-1b", Layout(tp=4), "", ""), ("minimax-m2.5", Layout(tp=8), "", "192"),
    ],
)  # fmt: skip
def test_illegal__is_what_engines_refuse(name: str, layout: Layout, weights: str, said: str) -> None:
    """Failures that users report: MiniMax-M2.5 and Qwen3-235B in FP8 over 8 chips, Qwen2.5-72B with groups of 128; and what loads."""
    why = illegal(layout, shape(works(model(name)), weights))
    assert said in why if said else not why
