"""Weights beside a config.json: exact shapes from the headers of safetensors files, or the size that their index states.

Parameters counted from them are compared with the reader's count, and a difference is a note. No weight is read.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway.core import user_file
from headway.core.errors import BadFile
from headway.models import totals
from headway.models.model import Model

INDEX = "model.safetensors.index.json"
MAX_HEADER_BYTES = 100 * 2**20  # the limit of the format itself
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1}  # types that hold one parameter in one element
PACKED = {"I32": 4, "U32": 4, "I64": 8, "U64": 8, "I16": 2, "U16": 2, "F4": 0.5}  # types that hold several parameters in one element
AGREES = 0.02  # of the bytes of a quantised checkpoint, whose scales and spared modules are not all counted
APART = re.compile(  # tensors that are no part of the text decoder, or no parameters
    r"(^|\.)(visual|vision_.*|image_.*|audio_.*|multi_modal_projector|mm_projector|embed_vision|embed_audio|mtp|mtp_.*|eh_proj|enorm|hnorm|shared_head)(\.|$)|"
    r"rotary_emb\.|inv_freq$|\.(k|v|q|input|output)_scale$|weight_scale(_inv|_2)?$|\.masked_bias$|attn\.bias$"
)
LAYER = re.compile(r"\.(?:layers|h|blocks|block)\.(\d+)\.")


def with_weights(model: Model, folder: Path | None) -> Model:
    """The model with a note on how the weights in `folder` compare with its count; as it was where there are none."""
    if folder is None:
        return model
    try:
        files = sorted(folder.glob("*.safetensors"))
    except OSError:
        return model
    shards = [path for path in files if "consolidated" not in path.name and path.is_file()]
    if shards:
        return _noted(model, _compared(model, {name: entry for path in shards for name, entry in header(path).items()}))
    return _noted(model, _indexed(model, folder / INDEX))


def with_hub_weights(model: Model, repository: str) -> Model:
    """The model with that note, from the headers that the hub serves; as it was where it serves none."""
    try:
        from huggingface_hub import get_safetensors_metadata  # type: ignore[import-not-found]

        metadata = get_safetensors_metadata(repository)
        tensors = {name: tensor for file in metadata.files_metadata.values() for name, tensor in file.tensors.items()}
        entries = {name: {"dtype": tensor.dtype, "shape": list(tensor.shape)} for name, tensor in tensors.items()}
    except Exception:  # the hub raises many types, and a repository need not hold safetensors files: the config alone is an answer too
        return model
    return _noted(model, _compared(model, entries))


def header(path: Path) -> dict[str, dict[str, Any]]:
    """Tensors of a safetensors file by name, each with its dtype and shape; BadFile where the header is not one."""
    with user_file.opened(path, user_file.WEIGHTS) as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= MAX_HEADER_BYTES:
            raise BadFile(path, "is not a safetensors file: its header has no legal length")
        data = file.read(length)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise BadFile(path, "is not a safetensors file: its header is not JSON") from None
    entries = {name: entry for name, entry in document.items() if name != "__metadata__"} if isinstance(document, dict) else None
    if entries is None or not all(_is_tensor(entry) for entry in entries.values()):
        raise BadFile(path, "is not a safetensors file: its header lists no tensors with dtype and shape")
    return entries


def _is_tensor(entry: Any) -> bool:
    shape = entry.get("shape") if isinstance(entry, dict) else None
    return (
        isinstance(shape, list)
        and isinstance(entry.get("dtype"), str)
        and all(isinstance(side, int) and not isinstance(side, bool) and side >= 0 for side in shape)
    )


def count_params(entries: dict[str, dict[str, Any]], layers: int, tied: bool) -> tuple[int, int, set[str]]:
    """(parameters of the text decoder, parameters apart from it, types that hold no parameter each) of the tensors of a checkpoint."""
    text, apart, packed = 0, 0, set[str]()
    for name, entry in entries.items():
        layer = LAYER.search(f".{name}")
        beyond = layer is not None and int(layer[1]) >= layers
        copy = tied and name.endswith("lm_head.weight")
        size = math.prod(entry["shape"])
        if beyond or copy or APART.search(name):
            apart += size
        elif entry["dtype"] in BYTES:
            text += size
        else:
            packed.add(entry["dtype"])
    return text, apart, packed


def _compared(model: Model, entries: dict[str, dict[str, Any]]) -> str:
    """How the count of the headers compares with that of the config."""
    text, apart, packed = count_params(entries, int(totals.layers(model)), model.tied)
    more = f"; {apart:,} further numbers are apart from the text decoder" if apart else ""
    if packed:
        size = sum(math.prod(entry["shape"]) * PACKED.get(entry["dtype"], BYTES.get(entry["dtype"], 1)) for entry in entries.values())
        kinds = ", ".join(sorted(packed))
        return f"weights beside the config are packed ({kinds}), so their bytes are compared: {_byte_difference(model, size, 'headers')}"
    return _difference(model, text, "headers of the safetensors files") + more


def _indexed(model: Model, path: Path) -> str:
    """How the size in an index compares with the config's count in the stored formats; "" where there is no index."""
    if not path.is_file():
        return ""
    document = user_file.json_of(user_file.text_of(path, user_file.INDEX), path, user_file.INDEX)
    size = (
        document.get("metadata", {}).get("total_size")
        if isinstance(document, dict) and isinstance(document.get("metadata"), dict)
        else None
    )
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < 1e18:
        return ""
    stored = {getattr(model.precision, part) for part in ("mixer", "ffn", "expert", "embedding")}
    widths = {"bf16": 2, "fp16": 2, "fp32": 4}
    if len(stored) != 1 or not stored <= widths.keys():
        return f"{INDEX}: {_byte_difference(model, size, 'the index')}"
    return _difference(model, int(size) // widths[stored.pop()], f"total size in {INDEX}")


def _difference(model: Model, count: int, where: str) -> str:
    expected = int(totals.total_params(model)) + (int(model.tower.params) if model.tower is not None and INDEX in where else 0)
    if count == expected:
        return f"weights agree: {count:,} parameters by the {where}"
    return f"weights differ: {count:,} parameters by the {where}, {expected:,} by config.json ({(count - expected) / expected:+.2%})"


def _byte_difference(model: Model, size: float, where: str) -> str:
    """How the bytes of all weights, a vision tower's in 16 bits, compare with those that the formats of the config give."""
    expected = float(totals.loaded_bytes(model))
    word = "agree" if abs(size / expected - 1) < AGREES else "differ"
    return f"weights {word}: {size / 1e9:.4g} GB by {where}, {expected / 1e9:.4g} GB by config.json ({size / expected - 1:+.2%})"


def _noted(model: Model, note: str) -> Model:
    return replace(model, notes=(*model.notes, note)) if note else model
