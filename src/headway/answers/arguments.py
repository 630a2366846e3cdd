"""Models, machines and loads from the command line: the user's catalogue and edits applied, a note for each default used."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.core import schema, units
from headway.core.catalog import open_catalog, user_folder
from headway.core.errors import BadValue, IllegalLayout, UnknownName
from headway.core.notes import borrow, note, remark
from headway.core.quantity import default
from headway.core.question import Question, refuse
from headway.hardware.chip import chip as find_chip
from headway.hardware.chip_price import MARKET, TypedPrice
from headway.hardware.edit import edit, editable
from headway.hardware.system import market_kinds, system, with_market
from headway.models import config, reading, variants
from headway.models.precision import Precision
from headway.performance import achieved, drafts
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout, expand
from headway.performance.workload import SLO, Load
from headway.simulation.traffic import distributions

if TYPE_CHECKING:
    from headway.core.table import Table
    from headway.hardware.system import System
    from headway.models.model import Model
    from headway.performance.layout import ModelShape
    from headway.simulation.questions import Plan


MOST_TABLES = 2000  # most combinations of models, machines, formats and assumptions, each a grid
MOST_VALUES = 10_000  # most values of one flag of a search
COUNTS = ("batch", "context", "prompt", "output")
NO_CONFIG = "a model by name or file: it is about a config.json, which this model has not"


def catalog(args: Question) -> Any:
    """Catalogue with the user's folders first."""
    if not getattr(args, "shipped", False):
        return open_catalog(args.catalog)
    home = user_folder()
    if home is None or not (home / "sheets").is_dir():
        note("--shipped has no effect: no price tables of yours are there")
    return open_catalog(args.catalog, ("sheets",))


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


def models(args: Question, names: Any = None) -> list[Any]:
    """The models of a question, or those named, with --attention and --kv-share applied."""
    return [model(name, args) for name in split(args.model if names is None else names, "model")]


def model(name: Any, args: Question) -> Any:
    """Model by name or file, or an object of a Python call, with the command line's changes."""
    folders = [root / "models" for root in catalog(args).roots[:-1]]
    if not isinstance(name, str) or name.lstrip().startswith("("):
        refuse(args, dict.fromkeys(("strict", "as_", "key"), NO_CONFIG))
    base_model = config.model(name, folders, reading.reading(args.strict, args.as_ or "", args.key)) if isinstance(name, str) else name
    if args.embedding:
        base_model = reading.with_embedding(base_model, args.embedding)
    remark(*(note for note in base_model.notes if note.startswith(("assumed", "weights differ"))))
    if args.attention or args.kv_share:
        return variants.override(base_model, args.attention, args.kv_share)
    return base_model


def systems(args: Question, machines: Any = None) -> list[tuple[Any, dict[str, Any]]]:
    """The machines of --on or of another field, for each combination of --set values, with the edits that vary."""
    names = split(args.on if machines is None else machines, "--on")
    known_machines = with_market([system(name, catalog(args)) if isinstance(name, str) else name for name in names])
    edits = _edits(args)
    combinations = list(itertools.product(*(values for _, values in edits)))
    if len(known_machines) * len(combinations) > 1000:
        raise BadValue("--set", f"{len(combinations)} combinations", "at most 1000")
    _borrow([machine.chip for machine in known_machines])
    all_edited = [edited(machine, [key for key, _ in edits], values) for machine in known_machines for values in combinations]
    if getattr(args, "price_metric", "none of this verb") in (None, MARKET):
        remark(*filter(None, [market_kinds([machine for machine, _ in all_edited])]))
    return all_edited


def _edits(args: Question) -> list[tuple[str, tuple[Any, ...]]]:
    """Keys and values of --set and --chip-price, in the order in which `systems` combines them."""
    return [*(edit_values(text) for text in args.set), *_typed_price(args)]


def at_place(args: Plan, place: int) -> Plan:
    """The question about one of its models on one of its `systems`, counted as a search does: its names and edited values alone."""
    names = [split(args.model, "model"), split(args.on, "--on")]
    typed = [*args.set, *(f"chip.price={args.chip_price}" for _ in _typed_price(args))]
    edits = [[_one_value(text, key, value) for value in values] for text, (key, values) in zip(typed, _edits(args), strict=True)]
    model, machine, *members = next(itertools.islice(itertools.product(*names, *edits), place, None))
    price = {"chip_price": members[-1].partition("=")[2]} if len(typed) > len(args.set) else {}
    return args.replace(model=model, on=machine, set=tuple(members[: len(args.set)]), **price)


def _one_value(text: str, key: str, value: float) -> str:
    """An edit with one of its values, as it was typed or, of a range, as it is printed."""
    field = editable()[key]
    typed = [part.strip() for part in text.partition("=")[2].split(",") if ".." not in part]
    printed = units.show(value, field.unit, 9).replace(" ", "")
    return f"{key}={next((part for part in typed if schema.scalar(part, field, key) == value), printed)}"


def _typed_price(args: Question) -> list[tuple[str, tuple[Any, ...]]]:
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
        borrow(*filter(None, map(achieved.borrowed_costs, chips)))


def chip(name: str, args: Question) -> Any:
    """Chip by name, with --set chip.FACT=VALUE applied."""
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


def edited(machine: System, keys: list[str], values: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    """System with edits applied, and the edits by key."""
    for key, value in zip(keys, values, strict=True):
        machine = edit(machine, key, value)
    return machine, dict(zip(keys, values, strict=True))


def replaced(table: Table, extra: dict[str, Any]) -> Table:
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


def length_distributions(load: Mapping[str, Any]) -> tuple[Any, Any]:
    """Distributions of the prompts and outputs of a load, from their texts or numbers."""
    prompt, output = (value if isinstance(value := load[name], str) else str(int(value)) for name in REQUEST)
    return distributions.parse_lengths(prompt, "--prompt"), distributions.parse_lengths(output, "--output", answers=True)


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


def layouts(args: Question, shape: ModelShape, degrees: dict[str, Any]) -> list[Layout]:
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


def typed_edits(args: Question) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each edit of a machine or a model that was typed: its flag, its value, and the arguments without it."""
    for name, flag in (("set", "--set"), ("key", "--key")):
        for text in getattr(args, name, None) or ():
            yield flag, text, {name: tuple(edit for edit in getattr(args, name) if edit is not text)}
    for name, flag in (("attention", "--attention"), ("kv_share", "--kv-share"), ("embedding", "--embedding")):
        if getattr(args, name, None):
            yield flag, getattr(args, name), {name: None}


def combinations(args: Question, record: type, skip: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Combinations of the user's values for the fields of a record but those to `skip`."""
    values = schema.read(args, record, skip=tuple(skip), most=MOST_TABLES)
    lists = [schema.several(value) for value in values.values()]
    count = 1
    for members in lists:
        count *= len(members)
        if count > MOST_TABLES:
            raise BadValue(record.__name__.lower(), f"{count} combinations", f"at most {MOST_TABLES}")
    all_members = [dict(zip(values, members, strict=True)) for members in itertools.product(*lists)]
    if record is not Assumptions:
        return all_members
    drafts.check_counts(all_members)
    return drafts.members(all_members)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchGrid:
    """What a search is asked, its flags read once: lists of loads, limits and assumptions are searches of their own."""

    models: list[Model]
    systems: list[tuple[System, dict[str, Any]]]  # with the edits of each
    load: dict[str, Any]
    limits: dict[str, Any]
    degrees: dict[str, Any]
    formats: dict[str, Any]
    assumptions: list[dict[str, Any]]

    def cases(self, verb: str, most: int, inputs: dict[str, Any], each_subject: bool = True) -> list[SearchCase]:
        """Each combination, at most `most`: of models and machines too, unless one search takes them all; `inputs` are the verb's own."""
        axes = schema.axes(self.load | self.limits | inputs)
        subjects = itertools.product(self.models, self.systems) if each_subject else [(None, (None, {}))]
        points = itertools.product(subjects, itertools.product(*axes.values()), self.assumptions)
        cases = list(itertools.islice(points, most + 1))
        if len(cases) > most:
            of = "models, machines, " if each_subject else ""
            raise BadValue(verb, f"too many combinations of {of}loads, limits and assumptions", f"at most {most}")
        labels = [name for name, values in axes.items() if len(values) > 1 and name not in self.load]
        return [
            SearchCase(
                model=model, system=system, edits=edits, inputs=(values := dict(zip(axes, point, strict=True))), assumptions=assumptions,
                labels={name: values[name] for name in labels}, varied=assumptions if len(self.assumptions) > 1 else {},
            )
            for (model, (system, edits)), point, assumptions in cases
        ]  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchCase:
    """One combination of a SearchGrid; what tells its rows from those of the others are edits, `labels` and `varied` assumptions."""

    model: Any
    system: Any
    edits: dict[str, Any]
    inputs: dict[str, Any]  # load, limits, and those of the verb
    assumptions: dict[str, Any]
    labels: dict[str, Any]
    varied: dict[str, Any]

    @property
    def load(self) -> Load:
        """Its request, and the rate if there is one."""
        return Load(prompt=self.inputs["prompt"], output=self.inputs["output"], rate=self.inputs.get("rate"))

    @property
    def slo(self) -> SLO:
        """Its limits."""
        return SLO(**{name: value for name, value in self.inputs.items() if name in schema.fields(SLO)})


def search_grid(args: Question, skip: Sequence[str] = ()) -> SearchGrid:
    """The grid of a question that searches; `skip`: flags of the verb that bear an assumption's name."""
    load = schema.read(args, Load, COUNTS, most=MOST_VALUES)
    limits = schema.read(args, SLO, most=MOST_VALUES)
    degrees = schema.read(args, Layout, most=MOST_VALUES)
    formats = schema.axes(schema.read(args, Precision))
    assumptions = combinations(args, Assumptions, skip)
    load = requested(load)
    all_models, all_systems = models(args), systems(args)
    note_beyond(all_models, load)
    return SearchGrid(
        models=all_models, systems=all_systems, load=load, limits=limits, degrees=degrees, formats=formats, assumptions=assumptions,
    )  # fmt: skip
