"""Models, machines and loads from the command line: the user's catalogue and edits applied, a note for each default used."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.core import schema
from headway.core.catalog import open_catalog
from headway.core.errors import BadValue, IllegalLayout, UnknownName
from headway.core.notes import borrow, note, remark
from headway.core.quantity import default
from headway.core.question import Question, refuse
from headway.hardware.chip import chip as find_chip
from headway.hardware.chip_price import MARKET, TypedPrice
from headway.hardware.edit import editable
from headway.performance.layout import expand

if TYPE_CHECKING:
    from headway.performance.layout import Layout, ModelShape


MOST_TABLES = 2000  # most combinations of models, machines, formats and assumptions, each a grid
MOST_VALUES = 10_000  # most values of one flag of a search
COUNTS = ("batch", "context", "prompt", "output")
NO_CONFIG = "a model by name or file: it is about a config.json, which this model has not"


def catalog(args: Any) -> Any:
    """Catalogue with the user's folders first."""
    return open_catalog(args.catalog)


def split(text: Any, what: str) -> list[Any]:
    """Names of a comma-separated list, a path that contains commas whole; objects of a Python call as they are."""
    if not isinstance(text, str):
        return list(text) if isinstance(text, tuple) else [text]
    if _is_path(text):
        return [text]
    names = [part.strip() for part in re.split(r",(?![^()]*\))", text)]  # commas in brackets belong to a model or chip by numbers
    if not all(names):
        raise BadValue(what, text, "one name, or several with a comma between")
    return list(dict.fromkeys(names))


def _is_path(text: str) -> bool:
    try:
        return bool(text) and Path(text).exists()
    except (OSError, ValueError):
        return False


def models(args: Any, names: Any = None) -> list[Any]:
    """The models of a question, or those named, with --attention and --kv-share applied."""
    return [model(name, args) for name in split(args.model if names is None else names, "model")]


def model(name: Any, args: Any) -> Any:
    """Model by name or file, or an object of a Python call, with the command line's changes."""
    from headway.models import config
    from headway.models.reading import reading, with_embedding
    from headway.models.variants import override

    folders = [root / "models" for root in catalog(args).roots[:-1]]

    if not isinstance(name, str) or name.lstrip().startswith("("):
        refuse(args, dict.fromkeys(("strict", "as_", "key"), NO_CONFIG))
    base_model = config.model(name, folders, reading(args.strict, args.as_ or "", args.key)) if isinstance(name, str) else name
    if args.embedding:
        base_model = with_embedding(base_model, args.embedding)
    remark(*(note for note in base_model.notes if note.startswith(("assumed", "weights differ"))))
    if args.attention or args.kv_share:
        return override(base_model, args.attention, args.kv_share)
    return base_model


def systems(args: Any, machines: Any = None) -> list[tuple[Any, dict[str, Any]]]:
    """The machines of --on or of another field, for each combination of --set values, with the edits that vary."""
    from headway.hardware.system import market_kinds, system, with_market

    names = split(args.on if machines is None else machines, "--on")
    known_machines = with_market([system(name, catalog(args)) if isinstance(name, str) else name for name in names])
    edits = [*(edit_values(text) for text in args.set), *_typed_price(args)]
    combinations = list(itertools.product(*(values for _, values in edits)))
    if len(known_machines) * len(combinations) > 1000:
        raise BadValue("--set", f"{len(combinations)} combinations", "at most 1000")
    _borrow([machine.chip for machine in known_machines])
    all_edited = [edited(machine, [key for key, _ in edits], values) for machine in known_machines for values in combinations]
    if getattr(args, "price_metric", "none of this verb") in (None, MARKET):
        remark(*filter(None, [market_kinds([machine for machine, _ in all_edited])]))
    return all_edited


def _typed_price(args: Any) -> list[tuple[str, tuple[Any, ...]]]:
    """The edit of --chip-price; each way to say what a chip costs stands alone."""
    text = getattr(args, "chip_price", None)
    if text is None or not isinstance(args, Question) or TypedPrice not in (group.record for group in args.groups):
        return []
    if args.price_metric or any(edit.replace("-", "_").startswith("chip.price") for edit in args.set):
        raise BadValue("--chip-price", text, "no --price-metric and no --set chip.price beside it: each says what a chip costs")
    values, _ = schema.axis(text, editable()["chip.price"], "--chip-price")
    return [("chip.price", schema.several(values))]


def _borrow(chips: Iterable[Any]) -> None:
    """Add what hypothetical chips borrow to the first sentence of the answer."""
    if any(chip.hypothetical for chip in chips):
        from headway.performance.achieved import borrowed_costs

        borrow(*filter(None, map(borrowed_costs, chips)))


def chip(name: str, args: Any) -> Any:
    """Chip by name, with --set chip.FACT=VALUE applied."""
    from headway.hardware.edit import edit
    from headway.hardware.system import system

    where = catalog(args)
    machine = system(name if "(" in name and where.find("chips", name) is None else find_chip(name, where).name, where)
    _borrow([machine.chip])
    for key, values in (edit_values(text) for text in args.set):
        machine = edit(machine, key, values[0])
    return machine.chip


def edit_values(text: str) -> tuple[str, tuple[Any, ...]]:
    """Key and values of an edit such as `chip.hbm_bw=5TB/s,10TB/s`."""
    key, equals, value = text.partition("=")
    key = key.strip().replace("-", "_")
    if not equals:
        raise BadValue("--set", text, "KEY=VALUE, such as chip.hbm_bw=10TB/s")
    keys = editable()
    if key not in keys:
        raise UnknownName("fact to set", key, keys, "wants chip.FACT or system.FACT, as `headway show` prints them")
    values, _ = schema.axis(value, keys[key], key)
    return key, schema.several(values)


def edited(system: Any, keys: list[str], values: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    """System with edits applied, and the edits by key."""
    from headway.hardware.edit import edit

    for key, value in zip(keys, values, strict=True):
        system = edit(system, key, value)
    return system, dict(zip(keys, values, strict=True))


def replaced(table: Any, extra: dict[str, Any]) -> Any:
    """Table with constant columns for inputs varied outside its axes."""
    return dataclasses.replace(table, columns={**table.columns, **extra}) if extra else table


CONTEXT = 8192
REQUEST = {"prompt": 8000, "output": 1000}
RANKS = "one attention rank on each chip that --ep takes, where no --tp, --cp or --dp says otherwise"


def requested(load: dict[str, Any]) -> dict[str, Any]:
    """Load with default prompt and output if the user gave neither; with one of them, the other is not guessed."""
    missing = [key for key in REQUEST if key not in load]
    if len(missing) == 1:
        raise BadValue(f"--{missing[0]}", "nothing", f"how many {missing[0]} tokens a request has, such as 1k")
    filled = {key: default(REQUEST[key], key, "token", f"default of --{key}") for key in missing}
    flags = " and ".join(f"--{key} {REQUEST[key] // 1000}k" for key in missing)
    if missing:
        note(f"by default {flags}")
    return load | filled


def attended(load: dict[str, Any]) -> dict[str, Any]:
    """Load with a default context if the user gave neither a context nor a request."""
    if "context" in load:
        return load
    if load.keys() & {*REQUEST, "rate"}:
        return requested(load)
    note(f"by default --context {CONTEXT}")
    return load | {"context": default(CONTEXT, "context", "token", "default of --context")}


def note_beyond(models: Iterable[Any], load: dict[str, Any]) -> None:
    """Say of each model whose load exceeds the longest context in its config."""
    most = {key: max(value) if isinstance(value, tuple) else value for key, value in load.items()}
    tokens = most.get("context") or most.get("prompt", 0) + most.get("output", 0)
    short = [model for model in models if model.max_context is not None and tokens > model.max_context]
    for model in short:
        note(f"{tokens} tokens exceed the longest context of {model.name}, {model.max_context}: computed as if it took them")


def layouts(args: Any, shape: ModelShape, degrees: dict[str, Any]) -> list[Layout]:
    """Layouts that a Python call listed, else the legal layouts of a product of degrees."""
    return list(args.layouts) if args.layouts else ranked(shape, degrees)


def ranked(shape: ModelShape, degrees: dict[str, Any]) -> list[Layout]:
    """Legal layouts of a product of degrees; --ep alone sets an equal --dp, because each of its chips holds attention too."""
    if "ep" not in degrees or degrees.keys() & {"tp", "cp", "dp"}:
        layouts, drop_notes = expand(shape, degrees)
        note(*drop_notes)
        return layouts
    ep_degrees = schema.several(degrees["ep"])
    legal_layouts: list[Layout] = []
    illegal: list[IllegalLayout] = []
    note(f"by default dp = ep: {RANKS}")
    for ep in ep_degrees:
        try:
            layouts, drop_notes = expand(shape, degrees | {"ep": ep, "dp": default(int(ep), "dp", "", RANKS)})
        except IllegalLayout as error:
            illegal.append(error)
            continue
        legal_layouts += layouts
        note(*drop_notes)
    if not legal_layouts:
        raise illegal[0]
    note(*(f"dropped as illegal: {error}" for error in illegal[:1]))
    return legal_layouts


def typed_edits(args: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each edit of a machine or a model that was typed: its flag, its value, and the arguments without it."""
    for name, flag in (("set", "--set"), ("key", "--key")):
        for text in getattr(args, name, None) or ():
            yield flag, text, {name: tuple(edit for edit in getattr(args, name) if edit is not text)}
    for name, flag in (("attention", "--attention"), ("kv_share", "--kv-share"), ("embedding", "--embedding")):
        if getattr(args, name, None):
            yield flag, getattr(args, name), {name: None}


def combinations(args: Any, record: type, skip: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Combinations of the user's values for the fields of a record but those to `skip`."""
    values = schema.read(args, record, skip=tuple(skip), most=MOST_TABLES)
    lists = [schema.several(value) for value in values.values()]
    count = 1
    for members in lists:
        count *= len(members)
        if count > MOST_TABLES:
            raise BadValue(record.__name__.lower(), f"{count} combinations", f"at most {MOST_TABLES}")
    return [dict(zip(values, members, strict=True)) for members in itertools.product(*lists)]
