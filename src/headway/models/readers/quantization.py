"""Number format of each part of a checkpoint: from quantization_config if present, else from torch_dtype."""

from __future__ import annotations

import re
from typing import Any

from headway.core.errors import UnsupportedModel
from headway.models.model import StoredPrecision
from headway.models.readers.read import Config
from headway.models.readers.schemes import BY_HAND, weight_formats

TORCH = {"float32": "fp32", "float": "fp32", "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float8_e4m3fn": "fp8"}
PER_BLOCK = 128  # of ModelOpt's FP8_PB_WO
EXCLUSIONS = ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers", "skip_modules", "llm_int8_skip_modules")
# Part that a module name in an exclusion list belongs to: the first pattern found in the name decides.
PARTS = (
    ("", r"norm|router|mlp\.gate$|\bgate$|shared_expert_gate|e_score|lm_head|embed|wte|output_layer"),  # never quantised
    ("ffn", r"shared_expert"),
    ("expert", r"experts"),
    ("mixer", r"attn|attention|mamba|mixer"),
    ("ffn", r"mlp|ffn|feed_forward"),
)


def precision(config: Config, only_routers: bool = False) -> StoredPrecision:
    """Stored formats of mixer, dense FFN, routed experts and embedding.

    `only_routers`: no layer has a dense FFN or a shared expert, so the FFN part is the routers, which stay unquantised.
    """
    plain, state = _plain(config), _state(config)
    scheme = config.raw("quantization_config", "compression_config")
    if scheme is None:
        return StoredPrecision(mixer=plain, ffn=plain, expert=_expert(config, plain), embedding=plain, state=state)
    if not isinstance(scheme, dict):
        raise UnsupportedModel("quantization_config", scheme, f"wants an object; {BY_HAND}")
    if isinstance(scheme.get("quantization"), dict):  # as in a hf_quant_config.json
        scheme = {"quant_method": "modelopt"} | scheme["quantization"]
    stored = _by_part(scheme)
    spared = _spared(scheme, config) | ({"ffn"} if only_routers else set())
    mixer, ffn, expert = (plain if part in spared else stored[part] for part in ("mixer", "ffn", "expert"))
    _note_cache(scheme, config)
    return StoredPrecision(
        mixer=mixer, ffn=ffn, expert=_expert(config, expert), embedding=plain, state=state, scale_block=_scale_block(scheme)
    )


def _scale_block(scheme: dict[str, Any]) -> int:
    """Side of the squares of weights that share a scale, 0 where the scheme has none."""
    groups = scheme.get("config_groups")
    weights = [group.get("weights") for group in groups.values() if isinstance(group, dict)] if isinstance(groups, dict) else []
    sides = [scheme.get("weight_block_size"), *(part.get("block_structure") for part in weights if isinstance(part, dict))]
    square = next((side for side in sides if isinstance(side, list) and side and isinstance(side[0], int)), None)
    return square[0] if square else PER_BLOCK if scheme.get("quant_algo") == "FP8_PB_WO" else 0


def _by_part(scheme: dict[str, Any]) -> dict[str, str]:
    """Format of each part: of all, but where the scheme names modules that have another."""
    by_target = weight_formats(scheme)
    main = by_target.get("", next(iter(by_target.values())))
    counts: dict[str, dict[str, int]] = {}
    for target, name in by_target.items():
        part = _part(target) if target else ""
        if part:
            counts.setdefault(part, {}).setdefault(name, 0)
            counts[part][name] += 1
    stored = {part: max(names, key=lambda name: names[name]) for part, names in counts.items()}
    return {part: stored.get(part, main) for part in ("mixer", "ffn", "expert")}


def _note_cache(scheme: dict[str, Any], config: Config) -> None:
    """A note where the checkpoint asks for a KV cache in another format than 16 bits."""
    cache = scheme.get("kv_cache_quant_algo") or scheme.get("kv_cache_scheme")
    if cache:
        name = cache if isinstance(cache, str) else f"{cache.get('num_bits')} bits" if isinstance(cache, dict) else str(cache)
        config.notes.append(f"the checkpoint asks engines for a KV cache in {name[:20]}: --kv fp8 counts it so")


def _plain(config: Config) -> str:
    text = config.raw("torch_dtype", "dtype")
    if text is None:
        config.notes.append("config.json names no torch_dtype: bf16 assumed for what is not quantised")
        return "bf16"
    name = _torch("torch_dtype", text)
    if name == "fp32":
        config.notes.append("the checkpoint has 32 bits a parameter, counted as 16, to which engines convert it as they load")
    return name


def _state(config: Config) -> str:
    """Format of a recurrent state; engines keep it as wide as the cache where the config names none."""
    for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"):
        if config.raw(key) is not None:
            return _torch(key, config.raw(key))
    return "bf16"


def _torch(key: str, text: object) -> str:
    name = str(text).removeprefix("torch.")
    if name not in TORCH:
        raise UnsupportedModel(key, text, f"known are {', '.join(TORCH)}; --key {key}=bfloat16 reads it so")
    return TORCH[name]


def _expert(config: Config, otherwise: str) -> str:
    """Format of the routed experts, which may differ from `otherwise` (DeepSeek-V4: fp4 experts, fp8 elsewhere)."""
    text = config.raw("expert_dtype")
    if text is None:
        return otherwise
    if text not in ("fp4", "fp8", "mxfp4", "nvfp4", "bf16"):
        raise UnsupportedModel("expert_dtype", text, "known are fp4, fp8, mxfp4, nvfp4, bf16: --key expert_dtype=fp8 reads it so")
    return text


def _spared(scheme: dict[str, Any], config: Config) -> set[str]:
    """Parts left unquantised: named for all layers, or by number for at least a quarter of the layers."""
    modules = next((scheme[key] for key in EXCLUSIONS if scheme.get(key)), [])
    layers = config.data.get("num_hidden_layers")
    enough = layers / 4 if isinstance(layers, int) else 4
    layers_by_part: dict[str, set[str]] = {}
    spared = set()
    for name in map(str, modules if isinstance(modules, list) else [modules]):
        part = _part(name)
        layer = re.search(r"layers\.(\d+)\b", name)
        if part and layer:
            layers_by_part.setdefault(part, set()).add(layer[1])
        elif part:
            spared.add(part)
    return spared | {part for part, layer_ids in layers_by_part.items() if len(layer_ids) >= enough}


def _part(module: str) -> str:
    """Part that a module belongs to, by its name; "" for what is never quantised, and for unknown ones."""
    return next((part for part, pattern in PARTS if re.search(pattern, module)), "")
