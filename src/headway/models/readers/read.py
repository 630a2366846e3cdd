"""A config.json as typed numbers with their keys: each wrong value raises a clear error, each key read is recorded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.core import user_file
from headway.core.errors import BadFile, BadValue, UnsupportedModel
from headway.core.quantity import known
from headway.laws.architecture.params import largest_cache_share, largest_params_share
from headway.models import totals

if TYPE_CHECKING:
    from headway.models.model import Model

# Keys that no reader asks for. One that is known to change nothing is passed over, once for all architectures, with its reason. One that
# makes an architecture another one (experts, latents, recurrences) and that a reader does not read is an error. Any other is a note with
# the largest change that it could make, or an error with `--strict`.
# Reason -> keys that change neither parameters nor bytes nor FLOPs.
HARMLESS: dict[str, str] = {
    "positions are computed, not stored": (
        r"rope_.*|.*_rope_.*theta|rotary_.*|.*_theta|partial_rotary_factor|position_embedding_type|original_max_position_embeddings|"
        r"initial_context_length|alibi.*|n_ctx|no_rope_layers?|no_rope_layer_interval|nope_.*interval|hybrid_rope.*|rope_interleave|.*_rope_interleave|"
        r"mrope_.*|use_mrope|.*_rope_(proportion|percentage)|yarn_.*|scale_attn_by_.*|use_rope|max_window_layers|use_dynamic_ntk|use_logn_attn|"
        r"seq_length|kv_channels|mla_use_nope|partial_rotary_factors|max_seq_len|model_max_length|longrope_.*|attn_rope_fp32"
    ),
    "a factor or a limit on values": (
        r".*_multipliers?|logit_scale|logits_scaling|.*_scale|scaling_factor|.*scaling_factor|.*_scaling|.*soft_?cap(ping)?|logits_soft_cap|"
        r"query_pre_attn_scalar|.*_limit|.*_alpha|.*_alphas|.*_beta|clip_qkv|max_attn_value|embedding_multiplier|scale_emb|scale_depth|dim_model_base|"
        r"attn_temperature_tuning|floor_scale|swiglu_.*|.*_clamp_.*|time_step_(min|max|floor|limit|scale|init_scheme)|mamba_dt_(min|max|init_floor|limit)|"
        r"mamba_(dt|proj|conv)_(min|max|floor|limit)|use_mup|mup_.*|mup.*|attention_value_scale|use_qk_clip|scale_attn_.*|layer_scale_.*|rescale_.*|hc_eps|"
        r"hc_sinkhorn_iters|.*_range|.*_(lower|upper)_bound|rescale_every|attn_scale.*|residual_scale.*|embedding_scale"
    ),
    "the form of an activation or a norm": (
        r".*_act|hidden_act|hidden_activation|activation_function|activation_type|activation|.*_activation|.*_activation_func|layer_norm_eps.*|"
        r"layernorm_eps.*|rms_norm_eps.*|norm_eps.*|.*_eps|.*_epsilon|rms_norm|norm_type|normalization.*|norm_topk.*|feed_forward_proj|"
        r"block_use_swiglu|use_gemma_norm|postnorm|layernorm_.*_alpha|hidden_act_.*|attention_softmax_in_fp32|.*_in_fp32|.*_fp32|mlp_hidden_act|"
        r"layer_norm_type|embed_layernorm_eps|rms_norm_type|zero_centered_.*|.*_norm_min|time_step_rank|"
        r"apply_residual_connection_post_layernorm|gating_types?|swiglu"
    ),
    "how experts are picked, not how many": (
        r"scoring_func|.*score_func.*|topk_method|routed_scaling_factor|n_group|topk_group|.*_capacity.*|moe_router_(?!topk|num).*|moe_dispatch.*|"
        r"moe_use_aux_free|moe_renorm.*|moe_gate_.*|use_grouped_topk|moe_token_.*|router_jitter.*|router_(aux|z)_.*|expert_capacity|output_router_logits|"
        r"moe_group_.*|expert_parallel.*|ep_size|seq_aux|moe_primary_router.*|router_(dtype|bias_update.*|activation.*|scal.*)|moe_use_.*|moe_jitter.*|"
        r"expert_tensor.*|use_routed_scaling.*|moe_apply_.*|moe_sigmoid.*|hash_layer_seed|moe_shared_expert_overlap|num_limited_groups|"
        r"expert_selection_fn|expert_bias_.*|need_fp32_gate|use_moe_router_bias_update|moe_router_(topk_)?scaling_factor|shared_moe_mode"
    ),
    "training alone": (
        r".*dropout.*|.*_pdrop|pdrop|initializer_.*|init_.*|.*_init|.*_init_.*|.*_(coef|coeff|loss|loss_.*|std|std_.*|jitter|noise|weight_decay)|.*noise|pretraining_tp|"
        r"gradient_checkpointing|.*_aux_loss.*|classifier_dropout|block_mlp_init_scale|resid_pdrop|embd_pdrop|attn_pdrop|mup_init|summary_.*|"
        r"label_smoothing|training_.*|mamba_(dt_)?init.*|layerdrop|layer_dropout|.*layerdrop|keep_.*|drop_path.*|reorder_and_upcast_attn|is_training|"
        r"finetuning_.*|lora_.*|peft.*|num_tokens_trained|pad_token_.*|unsloth_.*|moe_aux.*|.*z_loss.*|zloss.*|multi_token_prediction_loss.*"
    ),
    "the kernels, not the model": (
        r".*_kernels?|.*_impl(ementation)?|.*_backend|cache_implementation|chunk_size|.*_chunk_size|chunk_size_.*|use_flash_attn|flash_.*|attn_implementation.*|"
        r"use_cache_.*|fused_.*|fuse_.*|fp32_residual_connection|use_mamba_kernels|mode|disable_.*quantizer|memory_efficient.*|softmax_in_fp32|"
        r"bf16|fp16|fp32|onnx_safe|chunkwise_kernel|sequence_kernel|step_kernel|autocast_.*|return_last_states|use_sdpa|use_triton.*|"
        r"kv_cache_.*|inference_.*|.*_dtype|is_inference.*|mamba_step_rank_.*|tpa.*size|pre_weight.*|ttt_.*"
    ),
    "the vocabulary's special tokens": (
        r".*_token_ids?|.*_token_index|.*_token|.*_tokens|(bos|eos|pad|sep|cls|mask|image|video|audio|vision|boi|eoi|boa|eoa)_.*(id|ids|index|start|end)|"
        r"tokenizer_.*|forced_.*|suppress_tokens|bad_words_ids|decoder_start_.*|chat_template|stop_.*|tokens_per_.*|image_seq_length"
    ),
    "the file, its loader or its task": (
        r"architectures|auto_map|transformers_version|torch_dtype|dtype|_.*|name_or_path|model_name|use_cache|return_.*|output_(attentions|hidden_states|past)|"
        r"id2label|label2id|problem_type|num_labels|task_.*|language|license|author|version|.*_version|is_(encoder_)?decoder|is_llama_config|torchscript|pruned_heads|"
        r"prefix|tie_encoder_decoder|gguf.*|quantization.*|compression_config|model_type|comments?|description|save_.*|transformers\.js_config|"
        r"remove_invalid_values|typical_p|verbose|logit_.*|num_logits_to_keep|logits_to_keep|attn_mask_.*|layer_types_.*note|ignore_keys.*|onnx.*"
    ),
    "defaults of a generation": (
        r"max_length|min_length|max_new_tokens|temperature|top_k|top_p|num_beams|num_beam_groups|do_sample|early_stopping|length_penalty|repetition_penalty|"
        r"diversity_penalty|no_repeat_ngram_size|encoder_no_repeat_ngram_size|num_return_sequences|exponential_decay_.*|max_batch_size|"
        r"generation_.*|penalty_.*|begin_suppress_tokens|use_return_dict"
    ),
    "prediction or draft layers, which are left out": (
        r"mtp_.*|.*_mtp(_.*)?|num_mtp.*|num_nextn.*|use_mtp|nextn_.*|n_predict|draft_.*|eagle_.*|.*_mtps?|mtp"
    ),
    "vision and audio parts, which are left out": (
        r"vision_.*|visual.*|audio_.*|image_.*|video_.*|mm_.*|projector_.*|.*_projector(_.*)?|spatial_.*|downsample_ratio|dynamic_image_size|"
        r"force_image_size|ps_version|select_layer|use_thumbnail|template|min_dynamic_patch|max_dynamic_patch|patch_size|vit_.*|talker_.*|tts_.*|speech_.*|"
        r"use_bidirectional_attention|deepstack_.*|temporal_.*|merger_.*|.*_processor.*|multi_modal_.*|max_image_.*"
    ),
    "no size in it: a fact of a known architecture that its reader fixes": (
        r"block_dim|use_logn.*|use_qk_norm_.*|use_parallel_embedding|fim_.*|is_causal|attention_type|attention_window_.*|index_topk_freq|topk_indices.*|"
        r"sparse_attention_warmup|use_pos_enc.*|use_post_norm|use_pre_norm|use_mlp_norm.*|sandwich_norm|moe_permute.*|use_unified_.*"
    ),
}
# Keys that make an architecture another one: experts, latents, indexers, recurrences, shared caches, tables of blocks: an error.
DEFINING = re.compile(
    r"(num|n|moe_num)_(.*_)?experts|num_experts_per_tok(en)?|kv_lora_rank|q_lora_rank|qk_(rope|nope)_head_dim|index_(topk|n_heads|head_dim)|"
    r"num_kv_shared_layers|use_cla|kv_share.*|linear_(num_.*|key_.*|value_.*|attn_config)|mamba_(d_.*|n_.*|num_.*|expand)|ssm_(?!cfg|dtype).*|"
    r"attn_type_list|compress_ratios?|block_configs|hidden_size_per_layer_input|altup_num_inputs|laurel_rank|sparse_attention_config|"
    r"add_cross_attention|layer_types|attention_chunk_size|num_memory_.*blocks"
)
# Keys that say how kinds of layers alternate, or how far they look back.
INTERLEAVES = re.compile(
    r"_?sliding_window_pattern|full_attention_interval|full_attn_.*|linear_attn_.*factor|mlp_alpha_factor|attn_layer_(period|offset)|"
    r"global_attn_every_n_layers|no_rope_layers?|max_window_layers|use_sliding_window|"
    r"interleav.*|layer_types_.*|attn_type_list|hybrid_layer_pattern"
)
LOOK_BACK = re.compile(
    r".*window.*|.*layer_types|.*chunk_size|.*_pattern|.*attn_every.*|.*_interval|.*_period|"
    r".*_freq|.*stride.*|.*topk.*|.*kv_share.*|use_.*attn.*"
)
EXTEND = "--as dense, moe or mla reads the usual keys"
ANOTHER_WAY = "--as dense, moe or mla reads it by the usual keys"
_HARMLESS = {reason: re.compile(patterns) for reason, patterns in HARMLESS.items()}
NOTHING = (None, False, 0, "", [], {})


def harmless_reason(key: str) -> str:
    """Why a key changes no parameter, byte or FLOP of any architecture; "" where that is not known.

    >>> harmless_reason("rope_theta"), harmless_reason("num_local_experts")
    ('positions are computed, not stored', '')
    """
    return next((reason for reason, pattern in _HARMLESS.items() if pattern.fullmatch(key)), "")


def check_unread(
    data: dict[str, Any], keys_read: set[str], strict: bool, model: Model | None = None, mechanism: str = ""
) -> list[str]:
    """Notes on keys that no reader read, each with the largest change that it could make; raises UnsupportedModel for some.

    Those are the keys that make an architecture another one (experts, latents, recurrences), unless the user named the mechanism, and
    with `strict` every unread key. A key that another one already gives is passed over.
    """
    unknown = []
    for key, value in data.items():
        is_given = INTERLEAVES.fullmatch(key) and "layer_types" in keys_read and isinstance(data.get("layer_types"), list)
        if key in keys_read or value in NOTHING or harmless_reason(key) or is_given:
            continue
        if strict:
            raise UnsupportedModel(key, value, "no reader knows this key; without --strict it is a note")
        if DEFINING.fullmatch(key) and not mechanism:
            raise UnsupportedModel(key, value, f"it makes this another architecture; {ANOTHER_WAY}, --key {_short(key)}=null leaves it out")
        unknown.append(f"assumed: key {_short(key)} is not read; {largest_change(key, value, model)}")
    more = f"assumed: {len(unknown) - 5} further unknown keys are not read either (--strict names the first)"
    return [*unknown[:5], more] if len(unknown) > 5 else unknown


def largest_change(key: str, value: Any, model: Model | None) -> str:
    """What an unread key could change at most, in parameters and KV cache, in words."""
    if model is None:
        return "what it changes is not known"
    if LOOK_BACK.fullmatch(key):
        return "at most: no parameters, up to all of the KV cache less"
    numbers = [item for item in _numbers(value) if item >= 0]
    width = max(numbers, default=1.0)
    if isinstance(value, bool) or not numbers:
        width = 1.0 if re.search("bias|norm|scale", key) else float(model.hidden)
    params = largest_params_share(width, float(model.hidden), float(totals.layers(model)), float(totals.total_params(model)))
    if isinstance(value, bool) or re.search("bias|norm|expert|intermediate|ffn|mlp", key):
        return f"at most: {params:.2g} of the parameters more, no KV cache"
    elements = [float(store.elements_per_token) for block in model.blocks for store in block.attention.stores()]
    cache = largest_cache_share(width, max([*elements, 1.0]))
    return f"at most: {params:.2g} of the parameters and {cache:.2g} of the KV cache more"


def _numbers(value: Any) -> list[float]:
    """Numbers in a value, however deep."""
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return [float(value)] if abs(value) < 1e12 else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for item in items for number in _numbers(item)]


def _short(key: str) -> str:
    return " ".join(key.split())[:60]


MAX_COUNT = 10**9  # far above any dimension of a real model
MAX_LAYERS = 100_000
_MISSING = object()


def load(path: Path) -> dict[str, Any]:
    """JSON object in the file `path`; raises BadFile if it is too large, malformed, too deep or not an object."""
    return parse(user_file.text_of(path, user_file.CONFIG), path)


def parse(text: str, path: object) -> dict[str, Any]:
    """JSON object in `text`."""
    data = user_file.json_of(text, path, user_file.CONFIG)
    if not isinstance(data, dict):
        raise BadFile(path, f"holds a {type(data).__name__}; wants a JSON object with the keys of a config.json")
    return data


class Config:
    """Reader of one config.json: returns Sourced numbers and records the keys read."""

    def __init__(self, data: dict[str, Any], name: str, source: str, strict: bool = False, mechanism: str = "") -> None:
        self.data, self.name, self.source, self.strict, self.mechanism = data, name, source, strict, mechanism
        self.user_keys: set[str] = set()  # keys by hand, in place of the file's
        self.keys_read: set[str] = set()
        self.class_defaults: dict[str, str] = {}  # absent keys -> note on the configuration class that gives the default
        self.notes: list[str] = []
        self._memo: dict[tuple, Any] = {}  # one object per number, so that equal layers share it

    def raw(self, *keys: str, default: Any = None) -> Any:
        """Value of the first of `keys` that is present and not null."""
        value = default
        for key in keys:
            self.keys_read.add(key)
            if value is default and self.data.get(key) is not None:
                value = self.data[key]
        return value

    def ignore(self, *keys: str) -> None:
        """Mark keys as read that do not affect storage or computation of this architecture."""
        self.keys_read.update(keys)

    def count(self, *keys: str, default: Any = _MISSING, low: int = 1, high: int = MAX_COUNT, unit: str = "") -> Any:
        """Whole number under one of `keys` (synonyms), else `default`, which may be a Sourced number."""
        self.keys_read.update(keys)
        key = next((key for key in keys if self.data.get(key) is not None), None)
        if key is None:
            if default is _MISSING:
                raise BadValue(f"config.json {keys[0]}", "nothing", f"a whole number >= {low} under this key")
            return (
                self.fixed(default, keys[0], "not in config.json; the architecture's default", "default", unit)
                if type(default) is int
                else default
            )
        value = whole_number(self.data[key], f"config.json {key}", low, high)
        if key in self.user_keys:
            return self._make(value, key, unit, "input", "given by the user (--key)")
        if key in self.class_defaults:
            return self._make(value, key, unit, "default", self.class_defaults[key])
        return self._make(value, key, unit, "config", f"config.json of {self.source}, key {key}")

    def assume(self, owner: str, **defaults: Any) -> None:
        """Fill absent keys with the defaults of the configuration class `owner`, because files may omit default values."""
        missing = {key: value for key, value in defaults.items() if self.data.get(key) is None}
        self.data = missing | {key: value for key, value in self.data.items() if key not in missing}
        self.class_defaults |= dict.fromkeys(missing, f"not in config.json; default of {owner} in transformers")

    def flag(self, *keys: str, default: bool = False) -> bool:
        value = self.raw(*keys)
        if value is None:
            return default
        if not isinstance(value, bool) and value not in (0, 1):
            raise BadValue(f"config.json {keys[0]}", value, "true or false")
        return bool(value)

    def text(self, *keys: str, default: str = "") -> str:
        value = self.raw(*keys, default=default)
        if not isinstance(value, str):
            raise BadValue(f"config.json {keys[0]}", value, "a text")
        return value

    def layer_list(self, key: str, length: int) -> list[Any] | None:
        """List with one entry per layer (further entries, of prediction layers, are cut), or None if absent."""
        value = self.raw(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) < length:
            raise BadValue(f"config.json {key}", value, f"a list with an entry for each of the {length} layers")
        return value[:length]

    def places(self, key: str) -> list[int]:
        """List of layer numbers; empty if absent."""
        value = self.raw(key, default=[])
        if not isinstance(value, list):
            raise BadValue(f"config.json {key}", value, "a list of layer numbers")
        return [whole_number(item, f"config.json {key}", 0, MAX_LAYERS) for item in value]

    def table(self, key: str) -> Config | None:
        """Nested object as a Config; None if absent."""
        value = self.raw(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise BadValue(f"config.json {key}", value, "an object")
        inner = Config(value, self.name, f"{self.source}, {key}", self.strict, self.mechanism)
        inner.notes = self.notes
        return inner

    def derived(self, value: int, name: str, how: str, unit: str = "") -> Any:
        """Number derived from other keys; `how` is the formula."""
        if not 0 <= value <= MAX_COUNT:
            raise BadValue(f"config.json {name}", value, f"a derived count ({how}) between 0 and {MAX_COUNT}")
        return self._make(int(value), name, unit, "derived", f"{how} of config.json of {self.source}")

    def fixed(self, value: int, name: str, why: str, kind: str = "constant", unit: str = "") -> Any:
        """Number that the architecture fixes; `why` is its source."""
        return self._make(value, name, unit, kind, why)

    def _make(self, value: int, name: str, unit: str, kind: str, source: str) -> Any:
        key = (value, name, unit, kind, source)
        if key not in self._memo:
            self._memo[key] = known(value, f"{self.name}.{name}", unit, kind, source)
        return self._memo[key]

    def refuse(self, key: str, hint: str = "") -> UnsupportedModel:
        """Error for a value of `key` that this reader does not support."""
        self.keys_read.add(key)
        return UnsupportedModel(key, self.data.get(key), hint or EXTEND)

    def check_unread(self, model: Model | None = None) -> None:
        """Note keys that the reader did not read; raises UnsupportedModel for one that makes another architecture, or any with `strict`."""
        self.notes += check_unread(self.data, self.keys_read, self.strict, model, self.mechanism)


def whole_number(value: Any, field: str, low: int, high: int) -> int:
    """`value` as a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high or value != int(value):
        is_text = isinstance(value, str) and value.strip().isdigit()
        raise BadValue(field, value, f"a whole number from {low} to {high}" + (", not text: without quotes" if is_text else ""))
    return int(value)


def translate_layers(pattern: Sequence[Any], choices: dict[Any, Any], config: Config, key: str) -> list[Any]:
    """Per-layer list with each entry translated by `choices`; raises UnsupportedModel for an unknown entry."""
    for item in pattern:
        if isinstance(item, list | dict) or item not in choices:
            known_values = ", ".join(map(str, choices))
            raise UnsupportedModel(key, item, f"known values are {known_values}; {EXTEND}")
    return [choices[item] for item in pattern]
