"""Number format of each part of a checkpoint: from quantization_config if present, else from torch_dtype."""

from __future__ import annotations

import re
from typing import Any

from headway.core.errors import UnsupportedModel
from headway.models.model import StoredPrecision
from headway.models.readers.read import Config

TORCH = {"float32": "fp32", "float": "fp32", "bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float8_e4m3fn": "fp8"}
GROUPED = {32: "int4_g32", 128: "int4_g128"}  # weights that share a 16-bit scale: its bytes count
EXTEND = "extend src/headway/models/readers/quantization.py"
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
        raise UnsupportedModel("quantization_config", scheme, f"wants an object; {EXTEND}")
    stored = _scheme_dtype(scheme)
    spared = _spared(scheme, config) | ({"ffn"} if only_routers else set())
    mixer = plain if "mixer" in spared else stored
    ffn = plain if "ffn" in spared else stored
    expert = _expert(config, plain if "expert" in spared else stored)
    return StoredPrecision(mixer=mixer, ffn=ffn, expert=expert, embedding=plain, state=state)


def _plain(config: Config) -> str:
    text = config.raw("torch_dtype", "dtype")
    if text is None:
        config.notes.append("config.json names no torch_dtype: bf16 assumed for what is not quantised")
        return "bf16"
    return _torch("torch_dtype", text)


def _state(config: Config) -> str:
    """Format of a recurrent state; engines keep it as wide as the cache where the config names none."""
    for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"):
        if config.raw(key) is not None:
            return _torch(key, config.raw(key))
    return "bf16"


def _torch(key: str, text: object) -> str:
    name = str(text).removeprefix("torch.")
    if name not in TORCH:
        raise UnsupportedModel(key, text, f"known are {', '.join(TORCH)}; {EXTEND}")
    return TORCH[name]


def _expert(config: Config, otherwise: str) -> str:
    """Format of the routed experts, which may differ from `otherwise` (DeepSeek-V4: fp4 experts, fp8 elsewhere)."""
    text = config.raw("expert_dtype")
    if text is None:
        return otherwise
    if text not in ("fp4", "fp8", "mxfp4", "nvfp4", "bf16"):
        raise UnsupportedModel("expert_dtype", text, f"known are fp4, fp8, mxfp4, nvfp4, bf16; {EXTEND}")
    return text


def _scheme_dtype(scheme: dict[str, Any]) -> str:
    method = str(scheme.get("quant_method") or scheme.get("quant_algo") or "").lower()
    if method in ("fp8", "fbgemm_fp8"):
        return "fp8"
    if method == "mxfp4":
        return "mxfp4"
    if method in ("awq", "gptq", "auto-round", "intel/auto-round"):
        return _by_bits(scheme.get("bits", scheme.get("w_bit")), "int", scheme)
    if method == "bitsandbytes":
        if scheme.get("load_in_4bit") or scheme.get("_load_in_4bit"):
            return "fp4" if scheme.get("bnb_4bit_quant_type") in ("nf4", "fp4") else "int4"
        return "int8"
    if method in ("compressed-tensors", "compressed_tensors"):
        return _compressed(scheme)
    if method == "modelopt" or str(scheme.get("quant_algo", "")).upper() in ("FP8", "NVFP4"):
        return _modelopt(scheme)
    raise UnsupportedModel("quantization_config.quant_method", scheme.get("quant_method"), EXTEND)


def _by_bits(bits: Any, kind: str, scheme: Any) -> str:
    names = {("int", 4): "int4", ("int", 8): "int8", ("float", 8): "fp8", ("float", 4): "nvfp4"}
    if (kind, bits) not in names or isinstance(bits, bool):
        raise UnsupportedModel(
            "quantization_config bits", bits if bits is not None else scheme, f"known are int 4 and 8, float 4 and 8; {EXTEND}"
        )
    name = names[kind, bits]
    group = scheme.get("group_size", scheme.get("q_group_size")) if isinstance(scheme, dict) else None
    return GROUPED.get(group, name) if name == "int4" and isinstance(group, int) else name


def _compressed(scheme: dict[str, Any]) -> str:
    groups = scheme.get("config_groups")
    weights = [group.get("weights") for group in groups.values() if isinstance(group, dict)] if isinstance(groups, dict) else []
    kinds = {_by_bits(weight.get("num_bits"), str(weight.get("type")), weight) for weight in weights if isinstance(weight, dict)}
    if len(kinds) != 1:
        raise UnsupportedModel("quantization_config.config_groups", groups, f"wants one weight type for all groups; {EXTEND}")
    return kinds.pop()


def _modelopt(scheme: dict[str, Any]) -> str:
    algorithm = str(scheme.get("quant_algo", "")).upper()
    names = {"FP8": "fp8", "NVFP4": "nvfp4", "W4A16_AWQ": "int4", "W4A8_AWQ": "int4", "FP8_PB_WO": "fp8"}
    if algorithm not in names:
        raise UnsupportedModel("quantization_config.quant_algo", scheme.get("quant_algo"), f"known are {', '.join(names)}; {EXTEND}")
    return names[algorithm]


def _spared(scheme: dict[str, Any], config: Config) -> set[str]:
    """Parts left unquantised: named for all layers, or by number for at least a quarter of the layers."""
    modules = next((scheme[key] for key in ("modules_to_not_convert", "ignore", "exclude_modules") if scheme.get(key)), [])
    layers = config.data.get("num_hidden_layers")
    enough = layers / 4 if isinstance(layers, int) else 4
    layers_by_part: dict[str, set[str]] = {}
    spared = set()
    for name in map(str, modules if isinstance(modules, list) else [modules]):
        part = next((part for part, pattern in PARTS if re.search(pattern, name)), "")
        layer = re.search(r"layers\.(\d+)\b", name)
        if part and layer:
            layers_by_part.setdefault(part, set()).add(layer[1])
        elif part:
            spared.add(part)
    return spared | {part for part, layer_ids in layers_by_part.items() if len(layer_ids) >= enough}
