"""Which reader reads which model_type. An architecture that is not here is refused, with this file named."""

from __future__ import annotations

from collections.abc import Callable

from headway.errors import UnsupportedModel
from headway.hf import dense, latent, mixture
from headway.hf.read import Config
from headway.model import Model

Reader = Callable[[Config], Model]
READERS: dict[str, Reader] = {
    "llama": dense.llama, "mistral": dense.llama, "qwen2": dense.qwen2, "qwen3": dense.qwen3, "phi3": dense.phi3, "gpt2": dense.gpt2,
    "mixtral": mixture.mixtral, "gpt_oss": mixture.gpt_oss, "qwen2_moe": mixture.qwen2_moe, "qwen3_moe": mixture.qwen3_moe,
    "deepseek_v2": latent.deepseek_v2, "deepseek_v3": latent.deepseek_v3, "deepseek_v32": latent.deepseek_v32, "kimi_k2": latent.deepseek_v3,
}  # fmt: skip
WRAPPERS = ("text_config", "language_config", "llm_config")  # where a multimodal config keeps its decoder


def read_config(config: Config) -> Model:
    """The model that this config.json describes."""
    inner = next((key for key in WRAPPERS if isinstance(config.data.get(key), dict)), None)
    kind = config.data.get("model_type")
    if inner is not None and (kind not in READERS or "num_hidden_layers" not in config.data):
        return read_config(unwrapped(config, inner))
    if kind is None:
        raise UnsupportedModel("model_type", None, "a config.json names its architecture under this key")
    reader = READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise UnsupportedModel("model_type", kind, f"known are {', '.join(sorted(READERS))}; extend src/headway/hf/families.py")
    model = reader(config)
    config.check_unread(f"src/headway/hf/{reader.__module__.rpartition('.')[2]}.py")
    return model


def unwrapped(config: Config, key: str) -> Config:
    """The text decoder of a multimodal config, with what the outer level says about it."""
    kept = ("torch_dtype", "dtype", "quantization_config", "tie_word_embeddings", "_family", "_hf_id")
    inner = {name: config.data[name] for name in kept if name in config.data} | config.data[key]
    made = Config(inner, config.name, config.source)
    made.notes = [*config.notes, "the vision or audio part is left out"]
    return made
