"""Checkpoints that have the shapes of a catalogue model under a name of their own: tunes, later versions, models with a vision tower."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headway.core.catalog import fold, lines
from headway.models.model import Model
from headway.models.readers.read import load
from headway.models.readers.towers import catalogue_tower, words
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


UNKNOWN = "unknown"  # a tower whose shapes no source that was read states


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint, the catalogue model whose config.json it has, and the keys of that file in which it differs."""

    name: str
    model: str  # its catalogue name; that of the checkpoint itself where only its tower is to be noted
    hf_id: str  # "" where no Hugging Face id of this name is known
    tower: str  # its vision tower, by its name in data/towers.toml; UNKNOWN, or "" where it has none
    keys: tuple[tuple[str, Any], ...]  # keys of config.json with their values, in place of the model's
    source: str  # where shapes and id are from; unverified where they are from memory

    def note(self, model: str) -> str:
        """What is assumed of it: whose shapes are computed, with which keys, and whether a tower is left out."""
        tower = "its vision tower is neither counted nor timed" if self.tower == UNKNOWN else ""
        if fold(self.name) == fold(self.model):
            return f"assumed: {model} as its text decoder: {tower}" if tower else ""
        keys = "".join(f", with {key} {json.dumps(value)}" for key, value in self.keys)
        return f"assumed: {self.hf_id or self.name} has the shapes of {model}{keys}" + (f"; {tower}" if tower else "")


@functools.cache
def catalogue_checkpoints() -> tuple[Checkpoint, ...]:
    """Every checkpoint of the catalogue that is not itself a model of it, and models of it whose tower is left out."""
    return tuple(_checkpoint(row) for row in lines("checkpoints.csv"))


def _checkpoint(row: dict[str, str]) -> Checkpoint:
    pairs = (pair.partition("=") for pair in row["keys"].split())
    return Checkpoint(
        name=row["name"], model=row["model"], hf_id=row["hf_id"], tower=row["vision"], source=row["source"],
        keys=tuple((key, json.loads(value)) for key, _, value in pairs),
    )  # fmt: skip


@functools.cache
def _by_spelling() -> dict[str, Checkpoint]:
    by_id = {fold(row.hf_id): row for row in reversed(catalogue_checkpoints()) if row.hf_id}
    return by_id | {fold(row.name): row for row in catalogue_checkpoints()}


def checkpoint(text: str) -> Checkpoint | None:
    """The checkpoint that a name or a Hugging Face id means, None where it means a catalogue model or nothing.

    An id that is not listed is a checkpoint of its own with the shapes of the one whose name it has after the slash.

    >>> checkpoint("Llama-3.3-70B").hf_id, checkpoint("Qwen/Qwen2.5-Coder-32B").hf_id, checkpoint("qwen3-8b")
    ('meta-llama/Llama-3.3-70B-Instruct', 'Qwen/Qwen2.5-Coder-32B', None)
    """
    row = _by_spelling().get(fold(text))
    if row is not None or text.count("/") != 1:
        return row
    bare = _by_spelling().get(fold(text.partition("/")[2]))
    return None if bare is None else replace(bare, hf_id=text.strip())


def published_by(row: Checkpoint) -> str:
    """Folded publisher of a checkpoint, the part of its id before the slash; "" where its id is not known."""
    return fold(row.hf_id.partition("/")[0])


def as_asked(model: Model, text: str) -> Model:
    """The model under the name that was typed, where that is another checkpoint's or one with a tower, with a note that says so."""
    catalogue_name = model.name.partition(":")[0]
    row = checkpoint(text) or checkpoint(catalogue_name)
    if row is None:
        return model
    if row.tower not in ("", UNKNOWN) and model.tower is None:
        model = _towered(model, row.tower)
    notes = [*filter(None, [row.note(catalogue_name)])]
    if fold(row.name) == fold(row.model):
        return replace(model, notes=(*model.notes, *notes))
    typed = row.hf_id if "/" in text else row.name
    stored = with_named_format(model, typed, row.hf_id)
    return replace(stored, name=typed + model.name[len(catalogue_name):], notes=(*stored.notes, *notes))


def _towered(model: Model, name: str) -> Model:
    """The model with a tower of the catalogue."""
    tower = catalogue_tower(name, int(model.hidden))
    return replace(model, tower=tower, notes=(*model.notes, words(tower)))
