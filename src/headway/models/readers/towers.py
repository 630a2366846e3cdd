"""Vision towers and their projectors, by the tower's model_type: counted apart from the text decoder.

A tower whose kind is not listed here is left out, and the note says so; it never keeps a text decoder from being read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from headway.core import catalog
from headway.core.catalog import PACKAGED
from headway.core.errors import BadFile, HeadwayError
from headway.core.quantity import known
from headway.models.model import PIXELS, Model, Tower
from headway.models.readers.read import Config

PATH = PACKAGED / "towers.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class TowerShape:
    """Counts of a tower in plain numbers, as a reader finds them."""

    encoder: int
    projector: int
    tables: int
    hidden: int
    full_layers: int
    image_tokens: int
    patches_per_token: int = 1
    window_layers: int = 0
    window: int = 1


def with_tower(model: Model, config: Config) -> Model:
    """The text decoder of a multimodal config, with its vision tower where its kind is known."""
    vision = config.data.get("vision_config")
    if not isinstance(vision, dict):
        return model
    tower = _tower(vision, config, int(model.hidden), f"shapes in the config.json of {config.source}")
    if tower is None:
        return model
    notes = (*(note for note in model.notes if "vision or audio" not in note), words(tower))
    return replace(model, tower=tower, notes=notes)


def words(tower: Tower) -> str:
    """What a note says of a tower that is known."""
    return f"vision tower ({tower.kind}) of {int(tower.params):,} parameters: its bytes count in memory, its time with --images"


def _tower(vision: dict[str, Any], outer: Config, hidden: int, source: str) -> Tower | None:
    """The tower of a vision_config before a decoder of this width; None where its kind is not known or a key is missing."""
    kind = vision.get("model_type")
    reader = TOWERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        return None
    try:
        shape = reader(Config(vision, outer.name, f"{outer.source}, vision_config"), outer, hidden)
    except (HeadwayError, OverflowError):
        return None

    def count(name: str, value: int) -> Any:
        return known(value, f"{outer.name}.tower_{name}", "", "derived", source)

    return Tower(
        kind=str(kind), encoder_params=count("encoder", shape.encoder), projector_params=count("projector", shape.projector),
        table_params=count("tables", shape.tables), hidden=count("hidden", shape.hidden), full_layers=count("layers", shape.full_layers),
        window_layers=count("window_layers", shape.window_layers), window=count("window", shape.window),
        patches_per_token=count("patches_per_token", shape.patches_per_token), image_tokens=count("image_tokens", shape.image_tokens),
    )  # fmt: skip


@functools.cache
def catalogue_tower(name: str, hidden: int) -> Tower:
    """A tower of the catalogue, for checkpoints whose decoder the catalogue has under another name.

    >>> f"{int(catalogue_tower('qwen3_vl_1152', 4096).params):,}"
    '576,388,336'
    """
    document = catalog.read(PATH)
    entry = catalog.table(document, name, PATH)
    outer = Config({"model_type": entry["of"]}, name, str(entry["source"]))
    tower = _tower(entry["vision_config"], outer, hidden, str(entry["source"]))
    if tower is None:
        raise BadFile(PATH, f"{name}: its kind has no reader, or a key is missing")
    return tower


def _square(v: Config, merge: int) -> int:
    """Tokens of a square image of PIXELS, its side rounded to whole tokens."""
    return round(PIXELS / (int(v.count("patch_size")) * merge)) ** 2


def _list_length(v: Config, key: str, default: int) -> int:
    """Length of a list under a key."""
    value = v.raw(key)
    if value is not None and not isinstance(value, list):
        raise v.refuse(key, "wants a list")
    return default if value is None else len(value)


def _layers(v: Config, hidden: int, width: int, *, biases: bool, norms: int) -> int:
    """Encoder layers of four square projections and a plain FFN, each with biases or none, and norms of `norms` vectors."""
    attention = 4 * (hidden * hidden + biases * hidden)
    ffn = 2 * hidden * width + biases * (hidden + width)
    return _depth(v) * (attention + ffn + norms * hidden)


def _depth(v: Config) -> int:
    return int(v.count("num_hidden_layers", "depth"))


def _sizes(v: Config) -> tuple[int, int, int, int]:
    """Hidden size, FFN width, patch side and patches of an image."""
    side = int(v.count("patch_size"))
    return int(v.count("hidden_size")), int(v.count("intermediate_size")), side, (int(v.count("image_size")) // side) ** 2


def _siglip(v: Config, outer: Config, text: int) -> TowerShape:
    """SigLIP without its pooling head, and the projector of the model around it."""
    v.assume("SiglipVisionConfig", hidden_size=768, intermediate_size=3072, num_hidden_layers=12, image_size=224, patch_size=16)
    hidden, width, side, patches = _sizes(v)
    encoder = (3 * side * side + 1) * hidden + _layers(v, hidden, width, biases=True, norms=4) + 2 * hidden
    around = outer.data.get("model_type")
    if around == "gemma3":
        tokens = int(outer.count("mm_tokens_per_image", default=256))
        projector = hidden * text + hidden  # projection and norm of the soft tokens
    elif around == "paligemma":
        tokens, projector = patches, (hidden + 1) * text
    else:
        raise outer.refuse("model_type", "the projector of this model is not known")
    return TowerShape(
        encoder=encoder, projector=projector, tables=patches * hidden, hidden=hidden, full_layers=_depth(v), image_tokens=tokens,
        patches_per_token=max(1, patches // tokens),
    )  # fmt: skip


def _clip(v: Config, outer: Config, text: int) -> TowerShape:
    """CLIP's vision tower (a class token, two norms more) and LLaVA's projector of two matrices."""
    v.assume("CLIPVisionConfig", hidden_size=768, intermediate_size=3072, num_hidden_layers=12, image_size=224, patch_size=32)
    hidden, width, side, patches = _sizes(v)
    if outer.data.get("model_type") != "llava":
        raise outer.refuse("model_type", "the projector of this model is not known")
    return TowerShape(
        encoder=3 * side * side * hidden + _layers(v, hidden, width, biases=True, norms=4) + 4 * hidden,
        projector=(hidden + 1) * text + (text + 1) * text, tables=hidden + (patches + 1) * hidden, hidden=hidden, full_layers=_depth(v),
        image_tokens=patches,
    )  # fmt: skip


def _mllama(v: Config, outer: Config, text: int) -> TowerShape:
    """Llama-3.2-Vision: local layers, global layers with gates, tables of tiles and positions, a projector; no token of the prompt."""
    v.assume(
        "MllamaVisionConfig", hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_global_layers=8, image_size=448,
        patch_size=14, max_num_tiles=4, vision_output_dim=7680,
    )  # fmt: skip
    hidden, width, side, patches = _sizes(v)
    tiles, ratios = int(v.count("max_num_tiles")), _list_length(v, "supported_aspect_ratios", 8) + 1
    per_layer = 4 * hidden * hidden + 2 * hidden * width + hidden + width + 4 * hidden
    local, global_layers = int(v.count("num_hidden_layers")), int(v.count("num_global_layers"))
    positions = (patches + 1) * hidden
    tables = 2 * (ratios * tiles * hidden + 1) + positions + 1 + ratios * tiles * positions
    encoder = 3 * side * side * hidden + hidden + 4 * hidden + (local + global_layers) * per_layer + 2 * global_layers
    return TowerShape(
        encoder=encoder, projector=(int(v.count("vision_output_dim")) + 1) * text, tables=tables, hidden=hidden,
        full_layers=local + global_layers, image_tokens=0,
    )  # fmt: skip


def _llama4(v: Config, outer: Config, text: int) -> TowerShape:
    """Llama 4: one tile at a time, a pixel shuffle of 2 x 2 patches, an adapter of two matrices and a projection."""
    v.assume(
        "Llama4VisionConfig", hidden_size=1408, intermediate_size=5632, num_hidden_layers=34, image_size=336, patch_size=14,
        vision_output_dim=4096,
    )  # fmt: skip
    hidden, width, side, patches = _sizes(v)
    middle = int(v.count("vision_output_dim"))
    return TowerShape(
        encoder=3 * side * side * hidden + _layers(v, hidden, width, biases=True, norms=4) + 4 * hidden,
        projector=4 * hidden * middle + middle * middle + middle * text, tables=(patches + 2) * hidden, hidden=hidden, full_layers=0,
        window_layers=_depth(v), window=patches + 1, patches_per_token=4, image_tokens=patches // 4,
    )  # fmt: skip


def _pixtral(v: Config, outer: Config, text: int) -> TowerShape:
    """Pixtral's tower (gated FFNs, RMS norms, no biases), and the projector of Pixtral or, with merged patches, of Mistral Small 3.1."""
    v.assume("PixtralVisionConfig", hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, patch_size=16)
    hidden, width, side = int(v.count("hidden_size")), int(v.count("intermediate_size")), int(v.count("patch_size"))
    encoder = 3 * side * side * hidden + hidden + _depth(v) * (4 * hidden * hidden + 3 * hidden * width + 2 * hidden)
    if outer.data.get("model_type") == "mistral3":
        merge = int(outer.count("spatial_merge_size", default=2))
        projector = merge * merge * hidden * hidden + hidden + hidden * text + text * text
    elif outer.data.get("model_type") in ("llava", "pixtral"):
        merge, projector = 1, (hidden + 1) * text + (text + 1) * text
    else:
        raise outer.refuse("model_type", "the projector of this model is not known")
    return TowerShape(
        encoder=encoder, projector=projector, tables=0, hidden=hidden, full_layers=_depth(v), image_tokens=_square(v, merge),
        patches_per_token=merge * merge,
    )  # fmt: skip


def _qwen2_vl(v: Config, outer: Config, text: int) -> TowerShape:
    """Qwen2-VL: patches of two frames, fused projections, a merger of 2 x 2 patches."""
    v.assume("Qwen2VLVisionConfig", depth=32, embed_dim=1280, mlp_ratio=4, patch_size=14, temporal_patch_size=2, spatial_merge_size=2)
    hidden, merge = int(v.count("embed_dim")), int(v.count("spatial_merge_size"))
    layers = _layers(v, hidden, hidden * int(v.count("mlp_ratio")), biases=True, norms=4)
    return TowerShape(
        encoder=_frames(v, hidden) + layers + 2 * hidden, projector=_merger(hidden * merge**2, text), tables=0, hidden=hidden,
        full_layers=_depth(v), image_tokens=_square(v, merge), patches_per_token=merge**2,
    )  # fmt: skip


def _frames(v: Config, hidden: int) -> int:
    """Projection of the patches of several frames, without a bias."""
    return 3 * int(v.count("temporal_patch_size")) * int(v.count("patch_size")) ** 2 * hidden


def _merger(width: int, text: int) -> int:
    """Two matrices with biases, from merged patches to the decoder's width."""
    return (width + 1) * width + (width + 1) * text


def _qwen2_5_vl(v: Config, outer: Config, text: int) -> TowerShape:
    """Qwen2.5-VL: RMS norms and gated FFNs, windows in most layers, a merger of 2 x 2 patches."""
    v.assume(
        "Qwen2_5_VLVisionConfig", depth=32, hidden_size=1280, intermediate_size=3420, patch_size=14, temporal_patch_size=2,
        spatial_merge_size=2, window_size=112,
    )  # fmt: skip
    hidden, width, merge = int(v.count("hidden_size")), int(v.count("intermediate_size")), int(v.count("spatial_merge_size"))
    layer = 4 * hidden * hidden + 4 * hidden + 3 * hidden * width + 2 * width + hidden + 2 * hidden
    full = min(_list_length(v, "fullatt_block_indexes", 4), _depth(v))
    return TowerShape(
        encoder=_frames(v, hidden) + _depth(v) * layer + hidden, projector=_merger(hidden * merge**2, text), tables=0, hidden=hidden,
        full_layers=full, window_layers=_depth(v) - full, window=(int(v.count("window_size")) // int(v.count("patch_size"))) ** 2,
        image_tokens=_square(v, merge), patches_per_token=merge**2,
    )  # fmt: skip


def _qwen3_vl(v: Config, outer: Config, text: int) -> TowerShape:
    """Qwen3-VL: learned positions, plain FFNs, and a merger of its own for each layer that feeds the decoder's first layers."""
    v.assume(
        "Qwen3VLVisionConfig", depth=27, hidden_size=1152, intermediate_size=4304, patch_size=16, temporal_patch_size=2,
        spatial_merge_size=2, num_position_embeddings=2304,
    )  # fmt: skip
    hidden, width, merge = int(v.count("hidden_size")), int(v.count("intermediate_size")), int(v.count("spatial_merge_size"))
    merged, deep = hidden * merge**2, _list_length(v, "deepstack_visual_indexes", 0 if "3_5" in str(v.data.get("model_type")) else 3)
    return TowerShape(
        encoder=_frames(v, hidden) + hidden + _layers(v, hidden, width, biases=True, norms=4),
        projector=2 * hidden + _merger(merged, text) + deep * (2 * merged + _merger(merged, text)),
        tables=int(v.count("num_position_embeddings")) * hidden, hidden=hidden, full_layers=_depth(v), image_tokens=_square(v, merge),
        patches_per_token=merge**2,
    )  # fmt: skip


TOWERS: dict[str, Callable[[Config, Config, int], TowerShape]] = {
    "siglip_vision_model": _siglip, "clip_vision_model": _clip, "mllama_vision_model": _mllama, "llama4_vision_model": _llama4,
    "pixtral": _pixtral, "qwen2_vl": _qwen2_vl, "qwen2_5_vl": _qwen2_5_vl, "qwen3_vl": _qwen3_vl, "qwen3_vl_moe": _qwen3_vl,
    "qwen3_5": _qwen3_vl, "qwen3_5_moe": _qwen3_vl, "qwen3_5_vision": _qwen3_vl, "qwen3_5_moe_vision": _qwen3_vl,
}  # fmt: skip
