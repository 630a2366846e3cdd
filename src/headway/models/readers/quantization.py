"""Number format of each part of a checkpoint: from quantization_config if present, else from torch_dtype."""

from __future__ import annotations

import re
from typing import Any

from headway.core.errors import UnsupportedModel
from headway.models.model import StoredPrecision
from headway.models.readers.read import Config

BY_HAND = "--key quantization_config=null reads the checkpoint without it, and --weights states the format"
INTEGERS = ("awq", "gptq", "auto-round", "intel/auto-round", "auto_round", "gptq_marlin", "awq_marlin", "quark")
MODELOPT = {
    "FP8": "fp8", "FP8_PB_WO": "fp8", "FP8_PER_CHANNEL_PER_TOKEN": "fp8", "NVFP4": "nvfp4", "NVFP4_AWQ": "nvfp4", "W4A8_NVFP4_FP8": "nvfp4",
    "MXFP4": "mxfp4", "W4A8_MXFP4_FP8": "mxfp4", "MXFP8": "mxfp8", "W8A8_SQ_PER_CHANNEL": "int8", "INT8_SQ": "int8", "INT8": "int8",
}  # fmt: skip
MODELOPT_GROUPED = ("W4A16_AWQ", "W4A8_AWQ", "INT4_AWQ", "W4A16", "W4A8")
ONE_BYTE_SCALES = ("uint8", "e8m0", "float8")
ONE_BYTE_EXPONENT = "ue8m0"  # scales that are powers of two: 4-bit floats under them are MXFP4 (vLLM's models/deepseek_v4/quant_config.py)


def weight_formats(scheme: dict[str, Any]) -> dict[str, str]:
    """Formats by the module that they are for, "" for all others."""
    method = str(scheme.get("quant_method") or ("modelopt" if scheme.get("quant_algo") else "")).lower()
    if method in ("fp8", "fbgemm_fp8"):
        return {"": "fp8"}
    if method in ("mxfp4", "gpt_oss_mxfp4"):
        return {"": "mxfp4"}
    if method in INTEGERS:
        # AWQ, GPTQ and AutoRound: their files hold zero points even where the scheme is symmetric.
        bits = scheme.get("bits", scheme.get("w_bit", scheme.get("weight_bits")))
        return {"": format_name(bits, "int", scheme.get("group_size", scheme.get("q_group_size")), has_zeros=True)}
    if method == "bitsandbytes":
        if not (scheme.get("load_in_4bit") or scheme.get("_load_in_4bit")):
            return {"": "int8"}
        return {"": "nf4_double" if scheme.get("bnb_4bit_use_double_quant") else "nf4"}
    if method in ("compressed-tensors", "compressed_tensors"):
        return _compressed(scheme)
    if method.startswith("modelopt"):
        return _modelopt(scheme)
    if method in ("hqq", "quanto", "torchao", "eetq"):
        return {"": _few_words(method, scheme)}
    raise UnsupportedModel("quantization_config.quant_method", scheme.get("quant_method"), f"no format is known for it; {BY_HAND}")


def format_name(bits: Any, kind: str, group: Any = None, has_zeros: bool = False, one_byte_scale: bool = False) -> str:
    """Name of a format by its bits and what a group of weights shares.

    >>> format_name(4, "int", 128, has_zeros=True), format_name(4, "int", 64), format_name(4, "float", 32), format_name(4, "float", 16)
    ('int4_g128', 'int4_g64_sym', 'mxfp4', 'nvfp4')
    """
    group = group if isinstance(group, int) and not isinstance(group, bool) and group > 0 else None
    if kind == "float" and bits == 8 and not isinstance(bits, bool):
        return "mxfp8" if group == 32 and one_byte_scale else "fp8"
    if kind == "float" and bits == 4 and not isinstance(bits, bool):
        return "mxfp4" if group == 32 else "nvfp4"
    if kind != "int" or isinstance(bits, bool) or not isinstance(bits, int) or not 2 <= bits <= 8:
        raise UnsupportedModel("quantization_config bits", bits, f"known are whole numbers of 2 to 8 bits, floats of 4 and 8; {BY_HAND}")
    if group is None:
        return f"int{bits}"
    spellings = {(4, 128, True): "int4_g128", (4, 64, True): "int4_g64", (4, 32, False): "int4_g32"}
    return spellings.get((bits, group, has_zeros), f"int{bits}_g{group}" + ("_asym" if has_zeros else "_sym"))


def _compressed(scheme: dict[str, Any]) -> dict[str, str]:
    groups = scheme.get("config_groups")
    by_target: dict[str, str] = {}
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        if not isinstance(weights, dict):
            continue
        layout = str(group.get("format") or scheme.get("format") or "")
        targets = group.get("targets")
        for target in targets if isinstance(targets, list) else [""]:
            module = "" if str(target).isidentifier() else str(target)  # a class of modules such as Linear, or the module of this name
            by_target[module] = _weights_format(weights, layout)
    if not by_target:
        raise UnsupportedModel("quantization_config.config_groups", groups, f"wants a group with weights; {BY_HAND}")
    return by_target


def _weights_format(weights: dict[str, Any], layout: str) -> str:
    """Format of the weights of one group of compressed-tensors."""
    if layout.startswith(("mxfp4", "mxfp8", "nvfp4")):
        return layout.partition("-")[0]
    scale = str(weights.get("scale_dtype") or "").removeprefix("torch.")
    grouped = weights.get("strategy") in (None, "group", "tensor_group")
    return format_name(
        weights.get("num_bits"), str(weights.get("type")), weights.get("group_size") if grouped else None,
        has_zeros=weights.get("symmetric") is False, one_byte_scale=scale.startswith(ONE_BYTE_SCALES),
    )  # fmt: skip


def _modelopt(scheme: dict[str, Any]) -> dict[str, str]:
    """NVIDIA's ModelOpt, in its own words or in those of compressed-tensors."""
    algorithm = str(scheme.get("quant_algo") or "").upper()
    layers = scheme.get("quantized_layers")
    if algorithm == "MIXED_PRECISION" and isinstance(layers, dict):
        return {str(module): _algorithm(words) for module, words in layers.items() if isinstance(words, dict)} or _unknown(algorithm)
    if not algorithm and isinstance(scheme.get("config_groups"), dict):
        return _compressed(scheme)
    return {"": _algorithm(scheme)}


def _algorithm(scheme: dict[str, Any]) -> str:
    algorithm = str(scheme.get("quant_algo") or "").upper()
    if algorithm in MODELOPT_GROUPED:
        return format_name(4, "int", scheme.get("group_size", 128), has_zeros=bool(scheme.get("has_zero_point")))
    return MODELOPT[algorithm] if algorithm in MODELOPT else _unknown(algorithm)


def _unknown(algorithm: str) -> Any:
    known = ", ".join((*MODELOPT, *MODELOPT_GROUPED))
    raise UnsupportedModel("quantization_config.quant_algo", algorithm or None, f"known are {known}; {BY_HAND}")


def _few_words(method: str, scheme: dict[str, Any]) -> str:
    """Schemes that say bits and group in a few words of their own."""
    inner = scheme.get("quant_config")
    hqq = inner.get("weight_quant_params") if isinstance(inner, dict) else None
    if method == "hqq" and isinstance(hqq, dict):
        return format_name(hqq.get("nbits"), "int", hqq.get("group_size"), has_zeros=True)
    if method == "eetq":
        return "int8"
    text = str(scheme.get("weights") or scheme.get("quant_type") or "").lower()
    for word, name in (("int8", "int8"), ("int4", "int4"), ("int2", "int2"), ("float8", "fp8"), ("fp8", "fp8")):
        if word in text:
            return name
    raise UnsupportedModel("quantization_config.quant_method", f"{method} without bits", f"its weights are not stated; {BY_HAND}")


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
    plain = _plain(config)
    # Of a recurrent state, which engines keep as wide as the cache where the config names no format.
    dtype_keys = (key for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype") if config.raw(key) is not None)
    state = next((_torch(key, config.raw(key)) for key in dtype_keys), "bf16")
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
    cache = scheme.get("kv_cache_quant_algo") or scheme.get("kv_cache_scheme")
    if cache:
        name = cache if isinstance(cache, str) else f"{cache.get('num_bits')} bits" if isinstance(cache, dict) else str(cache)
        config.notes.append(f"the checkpoint asks engines for a KV cache in {name[:20]}: --kv fp8 counts it so")
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


def _plain(config: Config) -> str:
    text = config.raw("torch_dtype", "dtype")
    if text is None:
        config.notes.append("config.json names no torch_dtype: bf16 assumed for what is not quantised")
        return "bf16"
    name = _torch("torch_dtype", text)
    if name == "fp32":
        config.notes.append("the checkpoint has 32 bits a parameter, counted as 16, to which engines convert it as they load")
    return name


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
    scheme = config.raw("quantization_config", "compression_config")
    if text == "fp4" and isinstance(scheme, dict) and scheme.get("scale_fmt") == ONE_BYTE_EXPONENT:
        return "mxfp4"
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
