"""How a model is to be read: strictly, as a named mechanism, with keys by hand, with fewer layers, with another format of its tables."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from headway.core import units
from headway.core.errors import BadValue, HeadwayError, UnknownName, check_known
from headway.models.model import Model
from headway.models.precision import WEIGHTS
from headway.models.readers.read import MAX_LAYERS

MECHANISMS = ("dense", "moe", "mla")
WRAPPERS = ("text_config", "language_config", "llm_config")  # keys of the text decoder in a multimodal config
LAYER_KEYS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_CUT = re.compile(r"(.+):(\d+)[ _-]?layers?", re.IGNORECASE)
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,80}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Requests of a user about how a config.json is read."""

    strict: bool = False  # a key that no reader knows is an error
    mechanism: str = ""  # "", or one of MECHANISMS: read as that, whatever the model_type
    keys: tuple[tuple[str, Any], ...] = ()  # keys by hand, in place of those of the file
    layers: int | None = None  # the first so many layers alone

    def changes(self) -> bool:
        """Whether anything differs from a plain reading."""
        return self != Reading()


def reading(strict: bool = False, mechanism: str = "", keys: tuple[str, ...] = ()) -> Reading:
    """A reading from the texts of the command line: `--as moe --key num_experts=64`."""
    if mechanism and mechanism not in MECHANISMS:
        raise UnknownName("mechanism to read a model as (--as)", mechanism, MECHANISMS, "one of " + ", ".join(MECHANISMS))
    return Reading(strict=strict, mechanism=mechanism, keys=tuple(_key(text) for text in keys))


def _key(text: str) -> tuple[str, Any]:
    """Key and value of `num_experts=64`; the value is JSON, a count with a prefix (4k), or text."""
    name, equals, value = text.partition("=")
    if not equals or not _KEY.fullmatch(name.strip()) or not value.strip() or len(value) > 10_000:
        raise BadValue("--key", text, "KEY=VALUE of a config.json, such as num_experts=64")
    try:
        return name.strip(), json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        number = units.parse(value, "", "--key")
    except HeadwayError:
        return name.strip(), value.strip()
    return name.strip(), int(number) if number == int(number) else number


def cut(text: str) -> tuple[str, int | None]:
    """Name of a model and the layers to keep of it: `llama-3.1-70b:12layers`.

    >>> cut("llama-3.1-70b:12layers"), cut("llama-3.1-70b")
    (('llama-3.1-70b', 12), ('llama-3.1-70b', None))
    """
    match = _CUT.fullmatch(text.strip()) if len(text) < 4096 else None
    return (match[1], int(match[2][:12])) if match else (text, None)


def decoder(data: dict[str, Any]) -> dict[str, Any]:
    """The object of a config.json that describes the text decoder: itself, or what a multimodal config wraps."""
    inner = next((data[key] for key in WRAPPERS if isinstance(data.get(key), dict)), None)
    return data if inner is None or ("num_hidden_layers" in data and "model_type" in data) else inner


def shortened(data: dict[str, Any], layers: int, name: str) -> dict[str, Any]:
    """A config.json whose text decoder has its first `layers` layers alone; lists with an entry for each layer are cut with it."""
    inner = decoder(data)
    key = next((key for key in LAYER_KEYS if isinstance(inner.get(key), int) and not isinstance(inner.get(key), bool)), None)
    if key is None:
        raise BadValue(f"{name}:{layers}layers", "no count of layers", f"a config.json with one of {', '.join(LAYER_KEYS)}")
    layer_total = inner[key]
    if not 1 <= layers <= min(layer_total, MAX_LAYERS):
        raise BadValue(f"{name}:{layers}layers", layers, f"from 1 to the {layer_total} layers that it has")
    lists = {name: value[:layers] for name, value in inner.items() if isinstance(value, list | str) and len(value) == layer_total > 8}
    short = inner | lists | {key: layers}
    if inner is data:
        return short
    wrapper = next(name for name in WRAPPERS if data.get(name) is inner)
    return data | {wrapper: short}


def with_embedding(model: Model, name: str) -> Model:
    """The model with its embedding and head stored in another format."""
    check_known("format of embedding and head (--embedding)", name, WEIGHTS)
    return replace(model, precision=replace(model.precision, embedding=name, head=name))
