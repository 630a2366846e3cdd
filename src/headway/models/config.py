"""Lookup of a model by catalogue name, alias, config.json or its folder, or Hugging Face id."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from headway.core.catalog import default_catalog, fold, lines, names_alone
from headway.core.errors import BadValue, HeadwayError, UnknownName, UnsupportedModel, printable
from headway.models import hub, numbers
from headway.models.checkpoints import SCHEMES, as_asked, catalogue_checkpoints, checkpoint, published_by, with_named_format, with_side_file
from headway.models.model import Model
from headway.models.readers.families import read_config
from headway.models.readers.read import Config, load, parse
from headway.models.reading import Reading, cut, shortened
from headway.models.weights import with_hub_weights, with_weights

Keys = tuple[tuple[str, Any], ...]  # keys of a config.json with their values


@functools.cache
def catalogue_index() -> tuple[dict[str, str], ...]:
    """Rows of the catalogue's models: name, file, hf_id, family, total_params, active_params."""
    return lines("model_index.csv")


@functools.cache
def spellings() -> dict[str, str]:
    """File of each catalogue model, by every normalised spelling of its name."""
    files = {row["name"]: row["file"] for row in catalogue_index()}
    file_by_spelling = {fold(name): file for name, file in files.items()}
    file_by_spelling |= {fold(row["hf_id"]): row["file"] for row in catalogue_index()}
    for checkpoint_row in catalogue_checkpoints():
        file_by_spelling |= {fold(text): files[checkpoint_row.model] for text in (checkpoint_row.name, checkpoint_row.hf_id) if text}
    return file_by_spelling | {alias: files[name] for alias, name in default_catalog().aliases("models").items() if name in files}


def model(name: str | os.PathLike[str] | Model, folders: Iterable[str | os.PathLike[str]] = (), user: Reading | None = None) -> Model:
    """Model called `name`: catalogue name or alias, a config.json or a folder with one, a Hugging Face id, or numbers in brackets.

    `llama-3.1-70b:12layers` is its first 12 layers, `(params=30B active=3B layers=48 kv_bytes=100kB)` a model by
    numbers (models/numbers.py).
    `folders` are searched first, for NAME.json. `user` says how it is read (models/reading.py). Raises UnknownName, BadFile, BadValue
    or UnsupportedModel with a one-line message.
    """
    if isinstance(name, Model):
        return name
    text = os.fspath(name)
    how = user or Reading()
    if isinstance(text, str) and text.lstrip().startswith("("):
        return numbers.by_numbers(text)
    if isinstance(text, str) and _existing(text) is None:
        text, layers = cut(text)
        how = how if layers is None else replace(how, layers=layers)
    if not isinstance(text, str) or not text.strip() or "\x00" in text or len(text) > 4096:
        raise BadValue("model", text, "a catalogue name (headway list models), a path to a config.json, or a Hugging Face id")
    for folder in folders:
        for path in sorted(Path(folder).glob("*.json")):
            if fold(path.stem) == fold(text):
                return from_file(path, how)
    file = shipped_file(text)
    if file is not None:
        row = checkpoint(text)
        keys = () if row is None else row.keys
        return as_asked(_read_catalogue(file, how, keys) if how.changes() else _catalogue_model(file, keys), text)
    if names_alone.get():
        raise UnknownName("model", text, [row["name"] for row in catalogue_index()], "a dropped file names models of the catalogue")
    path = _existing(text)
    return _from_hub(text, how) if path is None else from_file(path, how)


def shipped_file(text: str) -> str | None:
    """File of the catalogue model that a name, an alias or a Hugging Face id means; None where it means no model that ships."""
    return spellings().get(fold(text)) or _variant(fold(text))


@functools.cache
def catalogue_name(name: str) -> str:
    """Name of the architecture of a model: of a published checkpoint that of the catalogue's model; another name as it is.

    >>> catalogue_name("meta-llama/Llama-3.1-8B-Instruct"), catalogue_name("llama-3.1-8b:12layers"), catalogue_name("mine")
    ('llama-3.1-8b', 'llama-3.1-8b:12layers', 'mine')
    """
    file = shipped_file(name)
    return next((row["name"] for row in catalogue_index() if row["file"] == file), name)


def _variant(text: str) -> str | None:
    """Catalogue file for a Hugging Face id that is a variant (such as instruct) by the model's publisher; else None."""
    owner, slash, name = text.partition("/")
    file = spellings().get(name) if slash else None
    published = {fold(row["hf_id"].partition("/")[0]) for row in catalogue_index() if row["file"] == file}
    tune = checkpoint(name) if slash else None
    return file if owner in published | ({published_by(tune)} if tune is not None else set()) else None


def _existing(text: str) -> Path | None:
    """`text` as a path, if it exists or ends in .json; else None."""
    path = Path(text)
    try:
        path = path.expanduser() if text.startswith("~/") else path
        return path if path.exists() or text.endswith(".json") else None
    except (OSError, RuntimeError):  # a name too long for a file, no home folder
        return None


FROM_MEMORY = "{}: dimensions from memory, no public copy of its config.json with a known place was found; a path reads your own copy"


@functools.cache
def _catalogue_model(file: str, keys: Keys = ()) -> Model:
    return _read_catalogue(file, Reading(), keys)


def _read_catalogue(file: str, user: Reading, keys: Keys) -> Model:
    text = resources.files("headway").joinpath("data/models", file).read_text(encoding="utf-8")
    row = next(row for row in catalogue_index() if row["file"] == file)
    data = parse(text, file)
    entry = from_data(data | dict(keys), row["name"], row["hf_id"], user)
    notes = (FROM_MEMORY.format(row["name"]),) if str(data["_source"]).startswith("from memory") else ()
    return replace(entry, origin=f"{data['_source']} ({data.get('_date', 'undated')})", notes=(*entry.notes, *notes))


def from_file(path: Path, user: Reading | None = None) -> Model:
    """Model from a config.json, or from a folder that contains one; weights that lie beside it are compared with the counts."""
    config_path = path / "config.json" if path.is_dir() else path
    in_folder = config_path.name == "config.json"
    name = printable(config_path.parent.name if in_folder and config_path.parent.name else config_path.stem)
    if not in_folder:
        return with_named_format(from_data(load(config_path), name, str(config_path), user), name)
    return _with_folder(config_path, name, str(config_path), user)


def _with_folder(config_path: Path, name: str, source: str, user: Reading | None) -> Model:
    """Model of a config.json with what the files beside it state."""
    data, note = with_side_file(load(config_path), config_path.parent)
    base_model = from_data(data, name, source, user)
    if note:
        base_model = replace(base_model, notes=(note, *base_model.notes))
    return with_weights(with_named_format(base_model, name, source), config_path.parent)


def from_data(data: dict[str, Any], name: str, source: str, user: Reading | None = None) -> Model:
    """Model from the keys of a config.json."""
    how = user or Reading()
    try:
        if how.layers is not None:
            data, name = shortened(data, how.layers, name), f"{name}:{how.layers}layers"
        return read_config(Config(data, name, source, how.strict, how.mechanism), how)
    except HeadwayError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise UnsupportedModel(
            "structure", type(error).__name__, f"a value has an unexpected type ({error})"
        ) from error


def _from_hub(text: str, user: Reading) -> Model:
    """Model of a Hugging Face id: from the local cache, else downloaded if the optional package is installed."""
    names = [row["name"] for row in catalogue_index()]
    if text.count("/") != 1 or text.startswith(("/", ".")) or not all(text.split("/")):
        raise UnknownName("model", text, names, "a catalogue name (headway list models), a path to a config.json, or a Hugging Face id")
    cached = hub.cached(text)
    name = fold(text.split("/")[1])
    if cached is not None:
        return _with_folder(cached, name, text, user)
    path = hub.download(text)
    for side in SCHEMES:
        hub.download_beside(text, side)
    data, note = with_side_file(load(path), path.parent)
    base_model = from_data(data, name, text, user)
    if note:
        base_model = replace(base_model, notes=(note, *base_model.notes))
    return with_hub_weights(with_named_format(base_model, text), text)
