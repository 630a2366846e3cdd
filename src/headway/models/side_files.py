"""Files beside a config.json that state the format of quantised weights, and names that state one where no file does."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway.models.model import Model
from headway.models.readers.read import load
from headway.models.reading import decoder

# File -> the scheme whose words it has. NVIDIA's ModelOpt, AutoGPTQ and AutoAWQ wrote them before transformers read `quantization_config`.
SCHEMES = {"hf_quant_config.json": "modelopt", "quantize_config.json": "gptq", "quant_config.json": "awq"}
PLAIN = {"fp32", "bf16", "fp16"}
# A format in a name, and the --weights that counts it.
IN_A_NAME = (
    (r"nvfp4|fp4", "nvfp4"), (r"mxfp4", "mxfp4"), (r"fp8(?:[-_]?(?:dynamic|block|kv))?|w8a8[-_]?fp8|float8", "fp8"),
    (r"awq(?:[-_]?int4)?|gptq(?:[-_]?int4)?|int4|w4a16|w4a8|4[-_]?bit|autoround|bnb[-_]?4bit", "int4_g128"),
    (r"gptq[-_]?int8|int8|w8a16|w8a8|8[-_]?bit", "int8"), (r"i?q\d_(?:k(?:_[sml])?|[01]|xxs|xs|nl|s|m)", ""),
)  # fmt: skip


def with_side_file(data: dict[str, Any], folder: Path) -> tuple[dict[str, Any], str]:
    """The keys of a config with the scheme that a file beside it states, and a note; as they are where the config states one itself."""
    if any(level.get(key) for level in (data, decoder(data)) for key in ("quantization_config", "compression_config")):
        return data, ""
    for name, method in SCHEMES.items():
        if (folder / name).is_file():
            document = load(folder / name)
            inner = document.get("quantization")
            scheme = {"quant_method": method} | (inner if isinstance(inner, dict) else document)
            return data | {"quantization_config": scheme}, f"the format of the weights is read from {name}"
    return data, ""


def with_named_format(model: Model, *names: str) -> Model:
    """The model, with a note where a name of it states a format that nothing else does."""
    parts = {model.precision.mixer, model.precision.ffn, model.precision.expert}
    if not parts <= PLAIN:
        return model
    for name in names:
        matches = [(re.search(rf"(?<![a-z0-9])({pattern})(?![a-z0-9])", name, re.IGNORECASE), weights) for pattern, weights in IN_A_NAME]
        texts = [(match[1], weights) for match, weights in matches if match]
        if texts:
            text, weights = max(texts, key=lambda pair: len(pair[0]))
            flag, stored = weights or text.lower(), model.precision.mixer
            what = f"weights in {stored}, though the name says {text} and no file states the format"
            note = f"assumed: {what}; --weights {flag} counts them so"
            return replace(model, notes=(note, *model.notes))
    return model
