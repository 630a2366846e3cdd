"""Measured rows near a question, and how unlike them it is: data/evidence.csv, a line per chip, engine, model class and kind of row.

A fit writes the table (evidence/fit/nearest.py); reading it needs none. Intervals grow with the distance, alike in every verb.
"""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from headway.core.records import record_of
from headway.hardware.chip import Chip
from headway.models.model import Model
from headway.models.model_class import NAMES, model_class
from headway.performance.achieved import OTHER_FAMILY, chip_kind, family, kind_of_chip
from headway.performance.layout import Layout

ENGINES = {"TensorRT-LLM": "trtllm", "vLLM": "vllm", "SGLang": "sglang", "llama.cpp": "llamacpp", "native": "native", "other": "other"}
MEASURES = ("served TPOT", "throughput", "decode", "prefill")  # measures in order of preference
PLACES = ("chip", "family")


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestEntry:
    """A group of measured rows and the median error of their predictions."""

    chip: str
    family: str
    engine: str
    model_class: str
    kind: str
    measure: str
    rows: int
    median_error: float
    cross_validated: bool  # whether the fits had not seen these rows
    sources: str
    date: str
    formats: str = ""  # forms of most dense weights, as kernels have them
    layouts: str = ""  # kinds of layout: KINDS_OF_LAYOUT


@functools.cache
def shipped() -> tuple[NearestEntry, ...]:
    """Table that ships with the package."""
    return read(files("headway").joinpath("data/evidence.csv").read_text(encoding="utf-8"))


def read(lines: str) -> tuple[NearestEntry, ...]:
    """Table from CSV text."""
    return tuple(record_of(NearestEntry, row) for row in csv.DictReader(io.StringIO(lines)))


def nearest(chip: Chip, model: Model, engine: str, table: Sequence[NearestEntry] | None = None) -> list[NearestEntry]:
    """Entries of the nearest rows, largest group first; empty if none is within range.

    Within range: the chip itself, else a chip with its kernels; a model of this structure, at most one size class away;
    the requested engine before any other.
    """
    known = shipped() if table is None else table
    place = {"chip": chip.name, "family": family(chip)}
    structure, _, size = model_class(model).rpartition(" ")
    for where in PLACES:
        if place[where] == OTHER_FAMILY:
            continue
        chip_entries = [entry for entry in known if getattr(entry, where) == place[where] and _away(entry, structure, size) <= 1]
        for away in (0, 1):
            candidates = [entry for entry in chip_entries if _away(entry, structure, size) == away]
            matches = _preferred([entry for entry in candidates if entry.engine == engine]) or _preferred(candidates)
            if matches:
                return sorted(matches, key=lambda entry: -entry.rows)
    return []


def _away(entry: NearestEntry, structure: str, size: str) -> int:
    """Size classes between an entry's models and `size`; a large number if the structure differs."""
    entry_structure, _, name = entry.model_class.rpartition(" ")
    return abs(NAMES.index(name) - NAMES.index(size)) if entry_structure == structure else len(NAMES)


def _preferred(candidates: Sequence[NearestEntry]) -> list[NearestEntry]:
    """Candidates of the first measure, in order of preference, that any candidate has."""
    return next((matches for measure in MEASURES if (matches := [entry for entry in candidates if entry.measure == measure])), [])


# -- how unlike the measured rows a question is -----------------------------------------------------------------------------------


KINDS_OF_LAYOUT = ("one", "tp", "pp", "dp")  # a chip alone, layers split, stages of layers, ranks with attention of their own
FARTHEST = 4  # distance from which on a question is of a new kind altogether
TWO_AWAY = 2  # a model of another structure, or two size classes away and more; a chip of another kind


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSubject:
    """What is asked about, as far as measured rows can be like it; an empty form or layout is any."""

    chip: str
    chip_kind: str
    engine: str  # as assumptions name it
    model_class: str
    form: str = ""
    layout: Any = ""  # or an array of kinds

    @property
    def routed(self) -> bool:
        """Whether the model has routed experts."""
        return not self.model_class.startswith("dense")


def subject(model: Model, chip: Chip, engine: str, form: str = "", layout: Layout | None = None) -> QuestionSubject:
    """The subject of a question about a model on a chip under an engine."""
    kind = "" if layout is None else layout_kind(layout)
    return QuestionSubject(chip=chip.name, chip_kind=chip_kind(chip), engine=engine, model_class=model_class(model), form=form, layout=kind)


def layout_kind(layout: Layout) -> Any:
    """Kind of a layout, of KINDS_OF_LAYOUT; an array where its degrees are."""
    several = [np.greater(layout.dp, 1), np.greater(layout.pp, 1), np.greater(layout.tp * layout.cp, 1)]
    kinds = np.select(np.broadcast_arrays(*several), ["dp", "pp", "tp"], "one")
    return kinds if kinds.ndim else str(kinds)


def unlike(about: QuestionSubject, table: Sequence[NearestEntry] | None = None) -> Any:
    """How unlike all measured rows a subject is: 0 for one among them, 1 for a new kind altogether; an array where its layout is.

    Steps to the nearest group of rows: a chip of its kind 1, of another 2; another engine 1; each size class 1, another structure 2;
    weights in another format 1; another kind of layout 1. FARTHEST steps and more are a new kind.
    """
    if not isinstance(about.layout, str):
        shares = [_unlike(about, kind, table) for kind in KINDS_OF_LAYOUT]
        return np.select([about.layout == kind for kind in KINDS_OF_LAYOUT], shares)
    return _unlike(about, about.layout, table)


def _unlike(about: QuestionSubject, layout: str, table: Sequence[NearestEntry] | None) -> float:
    case = (about.chip, about.chip_kind, about.engine, about.model_class, about.form, layout)
    steps = _steps(*case) if table is None else min((_apart(entry, *case) for entry in table), default=FARTHEST)
    return min(steps, FARTHEST) / FARTHEST


@functools.lru_cache(maxsize=100_000)
def _steps(*case: str) -> int:
    """Steps to the nearest of the shipped groups."""
    return min(_apart(entry, *case) for entry in shipped())


def _apart(entry: NearestEntry, chip: str, kind: str, engine: str, model: str, form: str, layout: str) -> int:
    """Steps between a group of rows and a subject."""
    structure, _, size = model.rpartition(" ")
    chips = 0 if entry.chip == chip else 1 if kind != OTHER_FAMILY and kind_of_chip(entry.chip) == kind else TWO_AWAY
    differs = (ENGINES[entry.engine] != engine, form and form not in entry.formats.split(), layout and layout not in entry.layouts.split())
    return chips + min(_away(entry, structure, size), TWO_AWAY) + sum(map(bool, differs))
