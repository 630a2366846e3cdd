"""A model by numbers: `(params=30B active=3B layers=48 kv_bytes=100kB)`, or `(hidden=4096 layers=32 ...)`, in place of a name.

By counts: the totals are the user's to the parameter; what a machine must know beyond them (width, heads, experts) is assumed and noted.
By shape: a decoder as Llama (or with experts as Mixtral), its other dimensions as typed or assumed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from headway.core import schema, units
from headway.core.errors import BadValue, UnknownName
from headway.core.quantity import default, known, user_input
from headway.models.attention.grouped_query import StatedAttention
from headway.models.by_numbers import ByNumbers
from headway.models.model import Block, Dense, FeedForward, Model, MoE, StoredPrecision, Vector
from headway.models.readers.families import read_config
from headway.models.readers.read import Config
from headway.models.readers.standard import GATED

KEYS = {name: field for name, (field, _) in schema.fields(ByNumbers).items()}
BY_COUNTS = ("params", "active", "layers", "kv_bytes", "hidden", "heads", "kv_heads", "head_dim", "experts", "experts_per_token")
EXAMPLE = "(params=30B active=3B layers=48 kv_bytes=100kB) or (hidden=4096 layers=32)"
HEAD_DIM = 128
WIDTH = "assumed: sqrt(active / (12 layers)), rounded to 1024"
USER_NUMBERS = "numbers given by the user"  # source of such a model
ROUTED_SHARE = 0.6  # of the active parameters, where the number of experts is not stated
FORMAT = "weights in bf16 (--weights)"  # as they are stored, where nobody says
FINEST = 128  # parts of a unit of FFN width, so that stated counts are met to a few parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What a model by counts has per layer."""

    hidden: int
    attention: int
    routed: float  # one expert, 0 where there is none
    experts: int
    per_token: int
    common: float  # the dense FFN, or the shared expert


def parse(text: str) -> dict[str, Any]:
    """Keys and values of a model by numbers, each the user's."""
    inner = text.strip()
    if not (inner.startswith("(") and inner.endswith(")")) or len(inner) > 1000:
        raise BadValue("model", text, EXAMPLE)
    values: dict[str, Any] = {}
    for word in inner[1:-1].replace(",", " ").split():
        key, equals, value = word.partition("=")
        name = key.strip("-").replace("-", "_")
        if not equals:
            raise BadValue("model", word, f"KEY=VALUE, as in {EXAMPLE}")
        if name not in KEYS:
            raise UnknownName("number of a model", key, KEYS, "one of " + ", ".join(KEYS))
        if name in values:
            raise BadValue("model", text, f"{name} once")
        values[name] = schema.scalar(value, KEYS[name], name)
    return values


def by_numbers(text: str) -> Model:
    """The model that a text of numbers describes."""
    values = parse(text)
    return _by_counts(values) if "params" in values else _by_shape(values, text)


def _by_shape(values: dict[str, Any], text: str) -> Model:
    """A decoder as Llama, or with experts as Mixtral, from its dimensions."""
    missing = [key for key in ("hidden", "layers") if key not in values]
    if missing:
        raise BadValue("model", text, f"{' and '.join(missing)} too, as in {EXAMPLE}")
    for key in ("active", "kv_bytes"):
        if key in values:
            raise BadValue(key, values[key], "params beside it; by hidden and layers it follows from the dimensions")
    hidden, head_dim = int(values["hidden"]), int(values.get("head_dim", HEAD_DIM))
    heads = int(values.get("heads", max(1, hidden // head_dim)))
    kv_heads = int(values.get("kv_heads", 8 if heads % 8 == 0 else heads))
    width = int(values.get("intermediate", -(-8 * hidden // (3 * 256)) * 256))
    data = {
        "model_type": "mixtral" if "experts" in values else "llama", "hidden_size": hidden, "num_hidden_layers": int(values["layers"]),
        "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim, "intermediate_size": width,
        "vocab_size": int(values.get("vocab", 128256)), "torch_dtype": "bfloat16", "tie_word_embeddings": False,
    }  # fmt: skip
    if "experts" in values:
        data |= {"num_local_experts": int(values["experts"]), "num_experts_per_tok": int(values.get("experts_per_token", 8))}
    elif "experts_per_token" in values:
        raise BadValue("experts_per_token", values["experts_per_token"], "experts beside it")
    dimensions = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "intermediate": width, "vocab": data["vocab_size"]}
    if "experts" in values:
        dimensions["experts_per_token"] = data["num_experts_per_tok"]
    config = Config(data, f"{hidden}x{values['layers']}", USER_NUMBERS)
    config.user_keys |= {"hidden_size", "num_hidden_layers"}
    defaults_taken = [f"{key}={value}" for key, value in dimensions.items() if key not in values]
    config.notes.append(f"assumed: {', '.join([*defaults_taken, FORMAT])}")
    return read_config(config)


def _by_counts(values: dict[str, Any]) -> Model:
    """A decoder of stated parameters, active parameters, layers and KV bytes per token."""
    missing = [key for key in ("layers", "kv_bytes") if key not in values]
    if missing:
        raise BadValue("params", units.show(values["params"]), f"{' and '.join(missing)} too, as in {EXAMPLE}")
    for key in values:
        if key not in BY_COUNTS:
            raise BadValue(key, values[key], f"no params beside it; by params it takes {', '.join(BY_COUNTS)}")
    if "active" in values and values["active"] > values["params"]:
        raise BadValue("active", units.show(values["active"]), f"at most the {units.show(values['params'])} in all")
    for key in ("params", "active"):
        if key in values and values[key] != int(values[key]):
            raise BadValue(key, values[key], "a whole number")
    sizes, notes = _sizes(values)
    layers = int(values["layers"])
    name = units.show(values["params"]).lower() + (f"-a{units.show(values['active']).lower()}" if sizes.experts else "")
    attention = _attention(values, sizes)
    block = Block(count=user_input(layers, "layers"), attention=attention, ffn=_ffn(sizes, name))
    notes.insert(0, _assumption_note(values, sizes, attention))
    rest = int(values["params"]) - layers * _layer_params(block, sizes)
    remainder = Vector(name="remainder", dims=(known(rest, f"{name}.remainder", "", "derived", "params less those of the layers"),))
    return Model(
        name=name, family="by-numbers", vocab=0,
        hidden=values["hidden"] if "hidden" in values else known(sizes.hidden, "hidden", "", "derived", WIDTH),
        embedding_dim=0, tied=True, blocks=(block,),
        precision=StoredPrecision(mixer="bf16", ffn="bf16", expert="bf16", embedding="bf16"),
        vectors=(remainder,) if rest else (), notes=tuple(notes), source=USER_NUMBERS,
    )  # fmt: skip


def _sizes(values: dict[str, Any]) -> tuple[Sizes, list[str]]:
    """Parameters of each part of a layer, and notes on what was assumed."""
    params, layers = int(values["params"]), int(values["layers"])
    active = int(values.get("active", params))
    per_layer = active / layers
    hidden = int(values["hidden"]) if "hidden" in values else _hidden(per_layer)
    attention = round(2 * hidden * hidden + hidden * values["kv_bytes"] / 2 / layers)
    dense = active == params and "experts" not in values
    per_token = 0 if dense else int(values.get("experts_per_token", 8))
    experts = 0 if dense else int(values.get("experts", _experts(params, active, per_token)))
    if not dense and (active == params or not per_token < experts):
        raise BadValue("experts", experts, f"more than the {per_token} that a token uses, and active below params")
    routed = (params - active) / layers / (experts - per_token) if experts else 0.0
    common = per_layer - attention - per_token * routed - hidden * experts
    if common < 0:
        share = "attention of that width and cache, and the routed experts," if experts else "attention of that width and cache"
        wants = "fewer layers, a smaller kv_bytes or hidden" + (", or more experts" if experts else "")
        raise BadValue("active" if experts else "params", units.show(active), f"more than {share} take; {wants}")
    notes = ["embedding and head are counted among the layers; their split is not known"]
    if experts and "experts" not in values:
        notes.insert(0, f"assumed: the experts of a token have {routed * per_token * layers / active:.0%} of the active parameters")
    return Sizes(hidden=hidden, attention=attention, routed=routed, experts=experts, per_token=per_token, common=common), notes


def _assumption_note(values: dict[str, Any], sizes: Sizes, attention: StatedAttention) -> str:
    """Note on every dimension that nobody stated and that moves a number, and on the format."""
    shape: dict[str, Any] = {"hidden": sizes.hidden} | {key: getattr(attention, key) for key in ("heads", "kv_heads", "head_dim")}
    if sizes.experts:
        shape |= {"experts": sizes.experts, "experts_per_token": sizes.per_token, "shared_experts": 1}
    return f"assumed: {', '.join([*(f'{key}={int(value)}' for key, value in shape.items() if key not in values), FORMAT])}"


def _hidden(active_per_layer: float) -> int:
    """Width of a usual decoder, sqrt(active parameters of a layer / 12): a multiple of 1024, or a power of two below."""
    width = math.sqrt(active_per_layer / 12)
    return round(width / 1024) * 1024 if width >= 1024 else max(128, 2 ** round(math.log2(max(width, 1))))


def _experts(params: int, active: int, per_token: int) -> int:
    """Experts, a power of two, with which those of a token are at most ROUTED_SHARE of the active parameters."""
    least = per_token + per_token * (params - active) / (ROUTED_SHARE * active)
    if least > 2**20:
        raise BadValue("active", units.show(active), f"more of the {units.show(params)} in all")
    return max(2 ** math.ceil(math.log2(least)), 2 * per_token)


def _attention(values: dict[str, Any], sizes: Sizes) -> StatedAttention:
    """Attention whose parameters and cache are stated; heads as typed, or of HEAD_DIM and as many as width and cache would hold."""
    elements = values["kv_bytes"] / 2 / values["layers"]
    head_dim = int(values.get("head_dim", HEAD_DIM))
    heads = int(values.get("heads", max(1, sizes.hidden // head_dim)))
    most = max(1, min(heads, round(elements / (2 * head_dim))))
    kv_heads = int(values.get("kv_heads", max(count for count in range(1, most + 1) if heads % count == 0)))
    if heads % kv_heads:
        raise BadValue("kv_heads", kv_heads, f"a divisor of the {heads} query heads")
    typed_heads = {key: user_input(value, key) for key, value in values.items() if key in ("heads", "kv_heads", "head_dim")}
    return StatedAttention(
        hidden=known(sizes.hidden, "hidden", "", "derived", "assumed width"),
        heads=typed_heads.get("heads", default(heads, "heads", "", f"hidden / {head_dim}")),
        kv_heads=typed_heads.get("kv_heads", default(kv_heads, "kv_heads", "", "heads that the stated cache would hold")),
        head_dim=typed_heads.get("head_dim", default(head_dim, "head_dim", "", "the usual width")),
        value_dim=default(head_dim, "value_dim", "", "width of a head"),
        stated_params=known(sizes.attention, "attention", "", "derived", "2 hidden^2 + hidden * KV elements"),
        stated_elements=known(elements, "KV elements", "", "derived", "kv_bytes / 2 bytes / layers"),
    )  # fmt: skip


def _width(params: float, hidden: int) -> float:
    """FFN width with which three matrices have about so many parameters, in parts of a unit that keep their count whole."""
    parts = math.gcd(hidden, FINEST)
    return math.floor(params / (3 * hidden) * parts) / parts


def _ffn(sizes: Sizes, name: str) -> FeedForward:
    hidden = known(sizes.hidden, "hidden", "", "derived", "assumed width")
    common = known(_width(sizes.common, sizes.hidden), f"{name}.intermediate", "", "derived", "what params leave per layer / (3 hidden)")
    if not sizes.experts:
        return Dense(hidden=hidden, intermediate=common, matrices=GATED)
    width = known(
        _width(sizes.routed, sizes.hidden), f"{name}.intermediate", "", "derived", "(params - active) / experts left out / (3 hidden)"
    )
    return MoE(
        hidden=hidden, experts=default(sizes.experts, "experts", "", "assumed, or given"),
        per_token=default(sizes.per_token, "experts_per_token", "", "assumed, or given"), intermediate=width, matrices=GATED,
        shared_experts=default(1, "shared_experts", "", "what every token uses, beside attention"), shared_intermediate=common,
        shared_matrices=GATED,
    )  # fmt: skip


def _layer_params(block: Block, sizes: Sizes) -> int:
    """Parameters of one layer."""
    ffn: Any = block.ffn
    if isinstance(ffn, Dense):
        return int(sizes.attention + 3 * sizes.hidden * ffn.intermediate)
    shared = 3 * sizes.hidden * ffn.shared_intermediate
    return int(sizes.attention + sizes.hidden * sizes.experts + shared + sizes.experts * 3 * sizes.hidden * ffn.intermediate)
