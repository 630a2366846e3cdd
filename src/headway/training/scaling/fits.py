"""Fitted scaling laws as facts: coefficients with their errors, the range of the fitted models, and whether a row is in that range."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from headway.core import catalog
from headway.core.errors import BadFile, UnknownName
from headway.core.quantity import known
from headway.core.units import show

FOLDER = "data/scaling"
DEFAULT = "epoch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Range of the fitted models; None where the source does not state it."""

    params_low: Any = None
    params_high: Any = None
    tokens_low: Any = None
    tokens_high: Any = None
    ratio_low: Any = None  # tokens per parameter
    ratio_high: Any = None
    experts_high: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """Coefficients of L = irreducible + a N^-alpha + b D^-beta, or their standard errors."""

    a: Any
    b: Any
    irreducible: Any
    alpha: Any
    beta: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingFit:
    """One fit of the loss."""

    name: str
    title: str
    status: str
    by: Coefficients
    errors: Coefficients | None  # None where none are published
    range: Range
    rounded: str = ""  # name of the full-precision fit of these data, if this fit has too few digits to split compute


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponents:
    """A published estimate of the exponents of compute alone, without a loss."""

    name: str
    title: str
    size: Any
    data: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """Decay constants (repetitions for 1/e) of the value of repeated tokens and of parameters beyond the optimum for unique tokens."""

    size: Any
    data: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedFit:
    """One fit of Clark's law of routed models."""

    name: str
    title: str
    status: str
    a: Any
    b: Any
    c: Any
    d: Any
    start: Any
    most: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Leverage:
    """Ling's law of efficiency leverage, and its default granularity."""

    title: str
    status: str
    a: Any
    d: Any
    gamma: Any
    beta: Any
    start: Any
    most: Any
    granularity: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits:
    """Bits at which a part of a model keeps 1 - 1/e of its parameters, by part; and the fit of post-training rounding."""

    title: str
    status: str
    weights: Any
    activations: Any
    kv: Any
    post_factor: Any
    post_bits: Any
    post_data: Any
    post_size: Any


@functools.cache
def document(name: str) -> tuple[dict[str, Any], Path]:
    """One file of data/scaling as tables, with its path."""
    path = Path(str(files("headway").joinpath(f"{FOLDER}/{name}.toml")))
    return catalog.read(path), path


def fact(entry: dict[str, Any], name: str, key: str = "value", file: str = "dense") -> Any:
    """One number of an entry with its origin: its value, or another key such as its error."""
    tables, path = document(file)
    kind, source, date = catalog.origin(entry, name, catalog.table(tables, "sources", path), path)
    source_text = source if key == "value" else f"{source}: {key}"
    return known(entry[key], f"{name}.{key}" if key != "value" else name, entry["unit"], kind, source_text, date)


@functools.cache
def fits() -> dict[str, ScalingFit]:
    """Every fit of the loss, the default first."""
    tables, path = document("dense")
    ranges = {name: Range(**_facts(entry, f"range.{name}", "dense")) for name, entry in tables["ranges"].items()}
    fits_by_name = {}
    for name, entry in tables.items():
        if name in ("ranges", "sources"):
            continue
        names = [field.name for field in fields(Coefficients)]
        if entry.keys() - {*names, "title", "status", "rounded", "range"}:
            raise BadFile(path, f"{name}: has an entry that nothing reads")
        errors = None
        if all("error" in entry[key] for key in names):
            errors = Coefficients(**{key: fact(entry[key], f"{name}.{key}", "error") for key in names})
        by = Coefficients(**{key: fact(entry[key], f"{name}.{key}") for key in names})
        texts = {"name": name, "title": entry["title"], "status": entry["status"], "rounded": entry.get("rounded", "")}
        fits_by_name[name] = ScalingFit(**texts, by=by, errors=errors, range=ranges[entry["range"]])
    return fits_by_name


def fit(name: str) -> ScalingFit:
    """One fit by its name.

    >>> fit("epoch").by.alpha, float(fit("epoch").errors.alpha)
    (0.348, 0.015)
    """
    key = name.strip().lower().replace("_", "-")
    if key not in fits():
        known = "Chinchilla's is hoffmann, or with the paper's rounded coefficients hoffmann-printed; " * (key == "chinchilla")
        raise UnknownName("scaling law", name, fits(), f"{known}one of {', '.join(fits())}")
    return fits()[key]


@functools.cache
def exponents() -> tuple[Exponents, ...]:
    """Published estimates of exponents of compute without a loss."""
    entries = {name: entry for name, entry in document("exponents")[0].items() if name != "sources"}
    return tuple(Exponents(name=name, **_texts_and_facts(entry, name, "exponents")) for name, entry in entries.items())


@functools.cache
def decay() -> Decay:
    """Decay constants of repeated tokens and surplus parameters."""
    entry = document("repeated")[0]["facts"]
    return Decay(**{name: fact(entry[f"{name}_decay"], f"{name}_decay", file="repeated") for name in ("size", "data")})


@functools.cache
def lecture_assumptions() -> dict[str, Any]:
    """The assumptions of the lecture's worked example, by the names of their flags."""
    return _facts(document("life_cycle")[0]["facts"], "", "life_cycle")


@functools.cache
def routed() -> dict[str, RoutedFit]:
    """Clark's law of routed models, as published and as refitted, by name."""
    entries = {name: entry for name, entry in document("routed")[0].items() if "start" in entry and "c" in entry}
    return {name: RoutedFit(name=name, **_texts_and_facts(entry, name, "routed")) for name, entry in entries.items()}


@functools.cache
def clark() -> dict[str, Any]:
    """Facts of Clark's models: range, training tokens, and the shares of blocks and FFN parameters that are routed."""
    return _facts(document("routed")[0]["ranges"]["clark"], "clark", "routed")


@functools.cache
def leverage() -> Leverage:
    """Ling's law of efficiency leverage."""
    return Leverage(**_texts_and_facts(document("routed")[0]["ling"], "ling", "routed"))


@functools.cache
def bits() -> Bits:
    """Kumar's law of low-bit training and rounding."""
    return Bits(**_texts_and_facts(document("routed")[0]["precision"], "precision", "routed"))


def _texts_and_facts(entry: dict[str, Any], subject: str, file: str) -> dict[str, Any]:
    """The entries of a table: its texts, and its numbers with their origin."""
    texts = {key: value for key, value in entry.items() if isinstance(value, str)}
    return texts | _facts({key: value for key, value in entry.items() if key not in texts}, subject, file)


def _facts(entries: dict[str, Any], subject: str, file: str) -> dict[str, Any]:
    return {key: fact(entry, f"{subject}.{key}" if subject else key, file=file) for key, entry in entries.items()}


DENSE = (("active", "params", "N", ""), ("tokens", "tokens", "D", "token"), ("tokens_per_param", "ratio", "D/N", ""))


def least_ratio() -> float:
    """The fewest tokens a parameter of any model that a law of dense models was fitted to.

    >>> least_ratio()
    0.04
    """
    return min(float(entry.range.ratio_low) for entry in fits().values() if entry.range.ratio_low is not None)


def dense_range(
    row: Mapping[str, Any], fitted: Range, names: tuple[str, ...] = ("active", "tokens", "tokens_per_param")
) -> tuple[bool, str]:
    """Whether size, data and their ratio are in the fitted range, and a text on those outside it."""
    sentences = []
    for key, stem, symbol, unit in DENSE:
        if key in names and row.get(key) is not None:
            sentences += _beyond(row[key], symbol, unit, getattr(fitted, f"{stem}_low"), getattr(fitted, f"{stem}_high"))
    return not sentences, "; ".join(sentences)


def routed_range(row: Mapping[str, Any], per_token: float) -> tuple[bool, str]:
    """Whether size, experts and experts per token are in the range of Clark's law, and a text on those outside it."""
    fitted = clark()
    sentences = _beyond(row["active"], "N", "", fitted["params_low"], fitted["params_high"])
    sentences += _beyond(row["experts"], "experts", "", None, fitted["experts_high"])
    if per_token > 1:
        sentences.append(f"{per_token:g} experts per token, fitted with 1")
    return not sentences, "; ".join(sentences)


def _beyond(value: float, symbol: str, unit: str, low: Any, high: Any) -> list[str]:
    if high is not None and value > high:
        return [f"{symbol} {value / high:,.3g}x above {show(high, unit)}"]
    if low is not None and value < low:
        return [f"{symbol} {low / value:,.3g}x below {show(low, unit)}"]
    return []
