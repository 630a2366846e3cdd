"""Parameters of vision towers and their projectors, by the tower's model_type: counted apart from the text decoder, and never timed.

A tower whose kind is not listed here is left out, and the note says so; it never keeps a text decoder from being read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headway.core.errors import HeadwayError
from headway.core.quantity import known
from headway.models.model import Model
from headway.models.readers.read import Config


def with_tower(model: Model, config: Config) -> Model:
    """The text decoder of a multimodal config, with the parameters of its vision tower where its kind is known."""
    vision = config.data.get("vision_config")
    if not isinstance(vision, dict):
        return model
    kind = vision.get("model_type")
    counter = TOWERS.get(kind) if isinstance(kind, str) else None
    if counter is None:
        return model
    try:
        count = counter(Config(vision, config.name, f"{config.source}, vision_config"), config, int(model.hidden))
    except (HeadwayError, OverflowError):
        return model
    tower = known(count, f"{config.name}.tower_params", "", "derived", f"shapes of {kind} in the config.json of {config.source}")
    words = f"vision tower ({kind}) of {count:,} parameters: in no other count, not timed"
    return replace(model, tower_params=tower, notes=(*(note for note in model.notes if "vision or audio" not in note), words))


def _layers(v: Config, hidden: int, width: int, *, biases: bool, norms: int) -> int:
    """Encoder layers of four square projections and a plain FFN, each with biases or none, and norms of `norms` vectors."""
    attention = 4 * (hidden * hidden + biases * hidden)
    ffn = 2 * hidden * width + biases * (hidden + width)
    return int(v.count("num_hidden_layers", "depth")) * (attention + ffn + norms * hidden)


def _sizes(v: Config) -> tuple[int, int, int, int]:
    """Hidden size, FFN width, patch side and patches of an image."""
    side = int(v.count("patch_size"))
    return int(v.count("hidden_size")), int(v.count("intermediate_size")), side, (int(v.count("image_size")) // side) ** 2


def _siglip(v: Config, outer: Config, text: int) -> int:
    """SigLIP without its pooling head, and the projector of the model around it."""
    v.assume("SiglipVisionConfig", hidden_size=768, intermediate_size=3072, num_hidden_layers=12, image_size=224, patch_size=16)
    hidden, width, side, patches = _sizes(v)
    tower = (3 * side * side + 1) * hidden + patches * hidden + _layers(v, hidden, width, biases=True, norms=4) + 2 * hidden
    if outer.data.get("model_type") == "gemma3":
        return tower + hidden * text + hidden  # projection and norm of the soft tokens
    if outer.data.get("model_type") == "paligemma":
        return tower + (hidden + 1) * text
    raise outer.refuse("model_type", "the projector of this model is not known")


def _clip(v: Config, outer: Config, text: int) -> int:
    """CLIP's vision tower (a class token, two norms more) and LLaVA's projector of two matrices."""
    v.assume("CLIPVisionConfig", hidden_size=768, intermediate_size=3072, num_hidden_layers=12, image_size=224, patch_size=32)
    hidden, width, side, patches = _sizes(v)
    tower = 3 * side * side * hidden + hidden + (patches + 1) * hidden + _layers(v, hidden, width, biases=True, norms=4) + 4 * hidden
    if outer.data.get("model_type") == "llava":
        return tower + (hidden + 1) * text + (text + 1) * text
    raise outer.refuse("model_type", "the projector of this model is not known")


def _mllama(v: Config, outer: Config, text: int) -> int:
    """Llama-3.2-Vision: local layers, global layers with gates, tables of tiles and positions, a projector."""
    v.assume(
        "MllamaVisionConfig", hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, num_global_layers=8, image_size=448,
        patch_size=14, max_num_tiles=4, vision_output_dim=7680,
    )  # fmt: skip
    hidden, width, side, patches = _sizes(v)
    tiles, ratios = int(v.count("max_num_tiles")), len(v.raw("supported_aspect_ratios", default=[0] * 8)) + 1
    per_layer = 4 * hidden * hidden + 2 * hidden * width + hidden + width + 4 * hidden
    local, global_layers = int(v.count("num_hidden_layers")), int(v.count("num_global_layers"))
    positions = (patches + 1) * hidden
    tables = 2 * (ratios * tiles * hidden + 1) + positions + 1 + ratios * tiles * positions
    tower = 3 * side * side * hidden + hidden + 4 * hidden + (local + global_layers) * per_layer + 2 * global_layers + tables
    return tower + (int(v.count("vision_output_dim")) + 1) * text


def _qwen2_vl(v: Config, outer: Config, text: int) -> int:
    """Qwen2-VL: patches of two frames, fused projections, a merger of 2 x 2 patches."""
    v.assume("Qwen2VLVisionConfig", depth=32, embed_dim=1280, mlp_ratio=4, patch_size=14, temporal_patch_size=2, spatial_merge_size=2)
    hidden = int(v.count("embed_dim"))
    merged_width = hidden * int(v.count("spatial_merge_size")) ** 2
    patch = 3 * int(v.count("temporal_patch_size")) * int(v.count("patch_size")) ** 2 * hidden
    merger = 2 * hidden + (merged_width + 1) * merged_width + (merged_width + 1) * text
    return patch + _layers(v, hidden, hidden * int(v.count("mlp_ratio")), biases=True, norms=4) + merger


def _qwen2_5_vl(v: Config, outer: Config, text: int) -> int:
    """Qwen2.5-VL: RMS norms and gated FFNs, a merger of 2 x 2 patches."""
    v.assume(
        "Qwen2_5_VLVisionConfig", depth=32, hidden_size=1280, intermediate_size=3420, patch_size=14, temporal_patch_size=2,
        spatial_merge_size=2,
    )  # fmt: skip
    hidden, width = int(v.count("hidden_size")), int(v.count("intermediate_size"))
    merged_width = hidden * int(v.count("spatial_merge_size")) ** 2
    layer = 4 * hidden * hidden + 4 * hidden + 3 * hidden * width + 2 * width + hidden + 2 * hidden
    patch = 3 * int(v.count("temporal_patch_size")) * int(v.count("patch_size")) ** 2 * hidden
    return patch + int(v.count("depth")) * layer + hidden + (merged_width + 1) * merged_width + (merged_width + 1) * text


TOWERS: dict[str, Callable[[Config, Config, int], int]] = {
    "siglip_vision_model": _siglip, "clip_vision_model": _clip, "mllama_vision_model": _mllama, "qwen2_vl": _qwen2_vl,
    "qwen2_5_vl": _qwen2_5_vl,
}  # fmt: skip
