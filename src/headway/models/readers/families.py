"""Table of readers by model_type; the error for an unknown architecture names this file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from headway.core.errors import UnsupportedModel, clip, nearest
from headway.models.drafter import PREDICTION_KEYS
from headway.models.model import Model
from headway.models.readers import dense, gpt, latent, linear, mixture, recurrent
from headway.models.readers.mechanism import MECHANISMS
from headway.models.readers.read import Config
from headway.models.readers.towers import with_tower
from headway.models.reading import WRAPPERS, Reading

Reader = Callable[[Config], Model]
# Architectures that no reader covers, by the key that matters: what it means, and why it is not guessed.
REFUSED = {
    "zamba": ("attn_layer_period", "one attention block is shared by many layers, so that its weights are read many times a step"),
    "zamba2": ("num_mem_blocks", "attention blocks are shared by many layers, so that their weights are read many times a step"),
    "recurrent_gemma": ("lru_width", "a gated linear recurrence (RG-LRU) is not modelled"),
    "rwkv5": ("head_size", "a matrix-valued state per head is not modelled; RWKV-4 is"),
    "rwkv6": ("head_size", "a matrix-valued state per head is not modelled; RWKV-4 is"),
    "rwkv7": ("head_dim", "a matrix-valued state per head is not modelled; RWKV-4 is"),
    "xlstm": ("mlstm_round_up_to_multiple_of", "a matrix memory with exponential gates is not modelled"),
    "phi3small": ("blocksparse_block_size", "block-sparse attention is not modelled"),
    "longcat_flash": ("zero_expert_num", "experts without weights change how many a token uses from token to token"),
    "hymba": ("num_memory_tokens", "learned memory tokens and KV shared across layers are not modelled"),
    "step3": ("share_q_dim", "attention by factored matrices (MFA) is not modelled"),
    "step3_text": ("share_q_dim", "attention by factored matrices (MFA) is not modelled"),
    "ouro": ("total_ut_steps", "the same layers run several times for a token, so that their weights are read many times a step"),
    "internlm2_ve": ("num_hidden_layers", "a second FFN for image tokens in each layer is not modelled"),
    "plamo2": ("mamba_step", "its state-space layers norm the step, B and C, which is not modelled"),
    "PanguProMoE": ("num_experts_per_tok", "experts are picked one from each group of a chip, which is not modelled"),
    "pangu_ultra_moe": ("attention_kv_lora_dim", "latent attention under keys of its own is not read"),
    "ernie4_5_moe_vl": ("moe_num_experts", "two groups of experts, of text and of vision, are not modelled"),
    "diffllama": ("lambda_std_dev", "differential attention scores twice, which is not modelled"),
    "t5": ("num_decoder_layers", "an encoder with a dense decoder is not modelled; Switch Transformers are"),
    "bert": ("is_decoder", "an encoder generates no text"),
}  # fmt: skip


def _kinds(reader: Reader, kinds: str) -> dict[str, Reader]:
    """One reader for several values of model_type."""
    return dict.fromkeys(kinds.split(), reader)


READERS: dict[str, Reader] = {
    # dense
    **_kinds(
        dense.llama,
        "llama granite internlm3 smollm3 seed_oss minicpm baichuan internlm2 ernie4_5 exaone helium cwm aquila xverse minicpm4 "
        "PanguEmbedded TeleFLM teleflm",
    ),
    **_kinds(dense.mistral, "mistral ministral ministral3"),
    **_kinds(dense.qwen2, "qwen2 mimo qwen2_vl qwen2_5_vl qwen2_vl_text qwen2_5_vl_text qwen2_5_omni_text"),
    **_kinds(dense.qwen3, "qwen3 qwen3_vl_text qwen3_omni_text"),
    **_kinds(dense.olmo2, "olmo2 olmo3"),
    **_kinds(dense.exaone4, "exaone4 exaone4_text"),
    "phi": dense.phi, "phi3": dense.phi3, "gemma": dense.gemma, "gemma2": dense.gemma2, "gemma3_text": dense.gemma3,
    "gemma3n_text": dense.gemma3n, "gemma4_text": dense.gemma4, "cohere": dense.cohere, "cohere2": dense.cohere2, "olmo": dense.olmo,
    "starcoder2": dense.starcoder2, "glm": dense.glm, "glm4": dense.glm4, "nemotron": dense.nemotron, "stablelm": dense.stablelm,
    "minicpm3": latent.deepseek_v2, "qwen": dense.qwen, "chatglm": dense.chatglm, "gpt_neo": dense.gpt_neo, "xglm": dense.xglm,
    "persimmon": dense.persimmon, "bitnet": dense.bitnet, "apertus": dense.apertus, "orion": dense.layered, "internlm": dense.internlm,
    "vaultgemma": dense.vaultgemma, "mllama_text_model": dense.mllama, "jais2": dense.jais2, "solar": dense.solar,
    "telechat": dense.telechat, "plamo3": dense.plamo3, "arcee": dense.arcee, "hunyuan_v1_dense": dense.hunyuan_dense,
    "palm": dense.palm,
    # GPT-2's generation
    **_kinds(gpt.gptj, "gptj codegen"),
    **_kinds(gpt.falcon, "falcon RefinedWeb RefinedWebModel"),
    "gpt2": gpt.gpt2, "gpt_bigcode": gpt.gpt_bigcode, "gpt_neox": gpt.gpt_neox, "opt": gpt.opt, "bloom": gpt.bloom, "jais": dense.jais,
    "mpt": gpt.mpt,
    # experts
    **_kinds(mixture.qwen3_moe, "qwen3_moe qwen3_vl_moe_text"),
    **_kinds(mixture.deepseek_like, "glm4_moe glm4v_moe_text dots1 deepseek solar_open"),
    **_kinds(mixture.bailing, "bailing_moe bailing_moe_v2"),
    **_kinds(mixture.olmoe, "olmoe flex_olmo"),
    **_kinds(mixture.granite_moe, "granitemoe granitemoeshared"),
    **_kinds(mixture.hunyuan, "hunyuan hunyuan_v1_moe"),
    "mixtral": mixture.mixtral, "gpt_oss": mixture.gpt_oss, "qwen2_moe": mixture.qwen2_moe, "phimoe": mixture.phimoe,
    "dbrx": mixture.dbrx, "grok-1": mixture.grok, "glam": mixture.glam, "arctic": mixture.arctic, "afmoe": mixture.afmoe,
    "llama4_text": mixture.llama4, "ernie4_5_moe": mixture.ernie_moe,
    # latent and sparse attention
    **_kinds(latent.deepseek_v3, "deepseek_v3 kimi_k2 glm4_moe_lite"),
    **_kinds(latent.deepseek_v32, "deepseek_v32 glm_moe_dsa"),
    **_kinds(mixture.mimo_v2, "mimo_v2_flash mimo_v2"),
    "deepseek_v2": latent.deepseek_v2, "deepseek_v4": latent.deepseek_v4, "minimax_m2": mixture.minimax_m2,
    "minimax_m3": mixture.minimax_m3,
    # fixed state
    **_kinds(recurrent.mamba, "mamba falcon_mamba"),
    **_kinds(recurrent.nemotron_h, "nemotron_h nemotron_h_puzzle"),
    **_kinds(linear.qwen3_next, "qwen3_next qwen3_5_text qwen3_5_moe_text"),
    **_kinds(linear.minimax_lightning, "minimax minimax_m1 minimax_text_01"),
    **_kinds(linear.lfm2, "lfm2 lfm2_moe"),
    "mamba2": recurrent.mamba2, "jamba": recurrent.jamba, "nemotron-nas": recurrent.nemotron_nas, "falcon_h1": recurrent.falcon_h1,
    "bamba": recurrent.bamba, "granitemoehybrid": recurrent.granite_hybrid, "kimi_linear": linear.kimi_linear, "rwkv": recurrent.rwkv,
    # encoder and decoder
    "switch_transformers": gpt.switch,
}  # fmt: skip


def read_config(config: Config, user: Reading | None = None) -> Model:
    """Model that a config.json describes, read as the user asks."""
    inner = next((key for key in WRAPPERS if isinstance(config.data.get(key), dict)), None)
    kind = config.data.get("model_type")
    if inner is not None and (kind not in READERS or "num_hidden_layers" not in config.data):
        return with_tower(read_config(unwrapped(config, inner), user), config)
    if user is not None and user.keys:
        config.data = config.data | dict(user.keys)
        config.user_keys |= dict(user.keys).keys()
        config.notes += [f"assumed: {key} = {clip(value)} (--key)" for key, value in user.keys]
        kind = config.data.get("model_type")
    if config.mechanism:
        return _as_mechanism(config, kind)
    if kind is None:
        raise UnsupportedModel("model_type", None, "a config.json names its architecture under this key")
    reader = READERS.get(kind) if isinstance(kind, str) else None
    if reader is None and isinstance(kind, str) and kind in REFUSED:
        key, why = REFUSED[kind]
        raise UnsupportedModel(key, config.data.get(key), f"{kind}: {why}; read it as another with --as dense, moe or mla")
    if reader is None:
        near = nearest(kind, READERS) if isinstance(kind, str) else []
        offer = f"the nearest of {len(READERS)} known are {', '.join(near)}" if near else f"known are {len(READERS)} others"
        raise UnsupportedModel("model_type", kind, f"{offer}; read it as one with --as dense, moe or mla")
    model = reader(config)
    config.check_unread(model)
    if len(config.notes) > len(model.notes):
        model = replace(model, notes=tuple(config.notes))
    keys = [key for key in PREDICTION_KEYS if type(config.data.get(key)) is int]
    layers = config.count(*keys[:1], low=0) if keys else None
    return with_tower(replace(model, prediction_layers=layers), config)


def _as_mechanism(config: Config, kind: object) -> Model:
    """The model read as a mechanism that the user names; what the file states beyond it is noted as assumed to change nothing."""
    config.notes.append(f"assumed: {clip(kind)} is built as {config.mechanism} (--as)")
    if not isinstance(kind, str):
        config.data = config.data | {"model_type": config.mechanism}
    model = MECHANISMS[config.mechanism](config)
    config.check_unread(model)
    return with_tower(replace(model, notes=tuple(config.notes)), config)


def unwrapped(config: Config, key: str) -> Config:
    """Text decoder of a multimodal config, with the outer keys that apply to it."""
    outer_keys = ("torch_dtype", "dtype", "quantization_config", "tie_word_embeddings", "_family", "_hf_id")
    inner = {name: config.data[name] for name in outer_keys if name in config.data} | config.data[key]
    decoder = Config(inner, config.name, config.source, config.strict, config.mechanism)
    decoder.notes = [*config.notes, "the vision or audio part is left out"]
    if inner.get("model_type") is None:
        _infer_type(decoder, config.data.get("model_type"))
    return decoder


def _infer_type(decoder: Config, outer: object) -> None:
    """The type of a text decoder that states none: that of the whole, with `_text`, or without the word for its further parts."""
    name = outer if isinstance(outer, str) else ""
    names = (f"{name}_text", name, re.sub(r"_?(vl|vlm|omni|mm|vision|text)$", "", name))
    kind = next((kind for kind in names if kind in READERS), None)
    if kind is not None:
        decoder.data = decoder.data | {"model_type": kind}
        decoder.notes.append(f"assumed: the text decoder of {name}, whose type is not stated, is {kind}")
