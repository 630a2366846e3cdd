"""A config.json as typed numbers with their keys: each wrong value raises a clear error, each key read is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.core import user_file
from headway.core.errors import BadFile, BadValue, UnsupportedModel
from headway.core.quantity import known
from headway.models.readers import keys

if TYPE_CHECKING:
    from headway.models.model import Model

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
        return UnsupportedModel(key, self.data.get(key), hint or "--as dense, moe or mla reads the usual keys")

    def check_unread(self, model: Model | None = None) -> None:
        """Note keys that the reader did not read; raises UnsupportedModel for one that makes another architecture, or any with `strict`."""
        self.notes += keys.check_unread(self.data, self.keys_read, self.strict, model, self.mechanism)


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
            raise UnsupportedModel(key, item, f"known values are {known_values}; --as dense, moe or mla reads the usual keys")
    return [choices[item] for item in pattern]
