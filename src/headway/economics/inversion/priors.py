"""Priors of the inversion, with their sources, and the user's assumptions that replace them."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from headway.core import catalog as facts
from headway.core.catalog import Catalog
from headway.core.errors import BadValue, UnknownName
from headway.core.interval import Interval
from headway.core.interval import read as read_interval
from headway.core.schema import Field, fields
from headway.economics.chip_cost import over_all
from headway.hardware.chip import Chip, chip

LEVEL = 0.8  # share of the weighted draws within every interval


def _share(help: str) -> Field:
    return Field(help=help, high=1, open_low=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors:
    """Facts of data/inversion.toml. From `markup_input` on they are fitted to open models' prices."""

    dense_mfu: Annotated[Any, Field(help="share of peak FLOP/s at which a dense model's prompts are computed", high=1)]
    sparse_exponent: Annotated[Any, Field(help="power of total over active parameters by which that share falls", open_low=False)]
    mfu_spread: Annotated[Any, Field(help="spread of its logarithm")]
    eff_compute: Annotated[Any, Field(help="share of peak FLOP/s that decode's arithmetic reaches", high=1)]
    eff_memory: Annotated[Any, Field(help="share of memory bandwidth that decode reaches", high=1)]
    step_fixed: Annotated[Any, Field("s", "fixed cost of a decode step")]
    weights_share: Annotated[Any, Field(help="share of a replica's memory that weights may fill", high=1)]
    context: Annotated[Any, Field("token", "tokens that a decoded token attends to, mean")]
    batch_low: Annotated[Any, Field(help="sequences decoded together in a replica, 10 % point")]
    batch_high: Annotated[Any, Field(help="the same, 90 % point")]
    kv_low: Annotated[Any, Field("byte", "KV bytes read per token of context, 10 % point")]
    kv_high: Annotated[Any, Field("byte", "the same, 90 % point")]
    weight_byte_low: Annotated[Any, Field(help="bytes of a weight, 10 % point")]
    weight_byte_high: Annotated[Any, Field(help="the same, 90 % point")]
    utilisation_low: Annotated[Any, _share("share of paid chip-hours that work, least")]
    utilisation_high: Annotated[Any, _share("the same, most")]
    margin_low: Annotated[Any, _share("share of a price that is not cost, least")]
    margin_high: Annotated[Any, _share("the same, most")]
    policy_spread: Annotated[Any, Field(help="spread of a list price's logarithm around cost with idle hours and margin")]
    ladder_markup: Annotated[Any, _share("share of the output markup's logarithm that the price of further context carries")]
    tier_spread: Annotated[Any, Field(help="spread of the logarithm of a ladder's slope around that of its cost")]
    markup_input: Annotated[Any, Field(help="input price over the cost of busy reference chips, middle")]
    markup_output: Annotated[Any, Field(help="output price over the cost of busy reference chips, middle")]
    markup_input_spread: Annotated[Any, Field(help="spread of its logarithm between models")]
    markup_output_spread: Annotated[Any, Field(help="spread of its logarithm between models, that of batch, KV and formats left out")]
    markup_correlation: Annotated[Any, Field(help="correlation of the two", low=-1, high=1)]
    active_middle: Annotated[Any, Field(help="active parameters of models that are sold, middle")]
    active_spread: Annotated[Any, Field(help="spread of the logarithm")]
    dense_share: Annotated[Any, _share("share of models that are dense")]
    sparsity_middle: Annotated[Any, Field(help="total over active parameters of the others, middle")]
    sparsity_spread: Annotated[Any, Field(help="spread of the logarithm")]
    host_spread_input: Annotated[Any, Field(help="spread of the logarithm of one host's input price around the median over hosts")]
    host_spread_output: Annotated[Any, Field(help="the same of the output price")]
    host_correlation: Annotated[Any, Field(help="correlation of the two", low=-1, high=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateChip:
    """A chip that may be behind a sheet, with its price range."""

    chip: Chip
    peak: Any  # flop/s, in fp8 if the chip has it
    price: Interval  # USD/s


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedIntervals:
    """Intervals that a user assumes; None to keep the prior."""

    active: Annotated[Any, Field(help="active parameters", high=1e15)] = None
    total: Annotated[Any, Field(help="all parameters", high=1e16)] = None
    kv: Annotated[Any, Field("byte", "KV bytes read per token of context", high=1e9)] = None
    batch: Annotated[Any, Field(help="sequences decoded together in a replica", low=1, open_low=False, high=1e7)] = None
    price: Annotated[Any, Field("USD/s", "price of a chip", bare="USD/h")] = None
    mfu: Annotated[Any, Field(help="share of peak FLOP/s at which prompts are computed", high=1)] = None
    utilisation: Annotated[Any, Field(help="share of paid chip-hours that work", high=1)] = None
    margin: Annotated[Any, Field(help="share of a price that is not cost", low=-10, high=0.999)] = None
    weight_byte: Annotated[Any, Field(help="bytes of a weight", high=8)] = None
    context: Annotated[Any, Field("token", "tokens that a decoded token attends to, mean", high=1e9)] = None
    hosts: Annotated[Any, Field(help="1: the sheet is one host's among several, not a median over them", integer=True, high=1000)] = None
    chip: str = ""


def path() -> Path:
    """Path of the file of priors."""
    return Path(str(files("headway").joinpath("data/inversion.toml")))


@functools.cache
def priors() -> Priors:
    """The priors that ship with the package."""
    where = path()
    return Priors(**facts.numbers(facts.read(where), Priors, "inversion", where))


def machines(assumptions: AssumedIntervals, catalog: Catalog | None = None) -> tuple[CandidateChip, ...]:
    """The chips that may be behind a sheet: the assumed chip, or the chips in the file of priors."""
    names = (assumptions.chip,) if assumptions.chip else tuple(facts.read(path())["chips"])
    return tuple(machine(name, assumptions.price, catalog) for name in names)


def reference(catalog: Catalog | None = None) -> CandidateChip:
    """The reference chip of markups."""
    return machine(facts.read(path())["reference"], None, catalog)


def machine(name: str, price: Interval | None = None, catalog: Catalog | None = None) -> CandidateChip:
    """A chip with its peak FLOP/s and price range."""
    device = chip(name, catalog) if catalog else chip(name)
    peak = device.peak_fp8 if device.peak_fp8 is not None else device.need("peak_bf16")
    for fact in ("hbm", "hbm_bw"):
        device.need(fact)
    return CandidateChip(chip=device, peak=peak, price=price or over_all(device).interval)


def read_assumed(text: str) -> AssumedIntervals:
    """Assumptions from text such as `active=100B,chip=tpu-v7,margin=0.3..0.6`."""
    declared = {name: q for name, (q, _) in fields(AssumedIntervals).items()}
    values: dict[str, Any] = {}
    for part in filter(None, (word.strip() for word in text.split(","))):
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not value.strip():
            raise BadValue("--assume", part, "KEY=VALUE with commas between, such as active=100B,chip=tpu-v7,margin=0.3..0.6")
        if key in values:
            raise BadValue("--assume", text, f"{key} once")
        if key == "chip":
            values[key] = value.strip()
        elif key in declared:
            values[key] = _interval(value.strip(), declared[key], key)
        else:
            raise UnknownName("assumption", key, (*declared, "chip"), "one of " + ", ".join((*declared, "chip")))
    return AssumedIntervals(**values)


def _interval(text: str, q: Field, key: str) -> Interval:
    quantity = text.removesuffix("/token").strip()  # KV is bytes per token
    intervals = read_interval(quantity, q, key)
    if len(intervals) != 1:
        raise BadValue(key, text, "one value, or one interval such as 0.3..0.6")
    return intervals[0]


def assumed_intervals(assumptions: AssumedIntervals) -> dict[str, Interval]:
    """The assumed intervals, by name."""
    values = {field.name: getattr(assumptions, field.name) for field in dataclasses.fields(assumptions) if field.name != "chip"}
    return {name: value for name, value in values.items() if value is not None}
