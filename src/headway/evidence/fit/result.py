"""Numbers of a fit: log-normal priors, fitted values with standard errors, and data/efficiency.toml."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core import catalog
from headway.core.errors import BadFile
from headway.core.quantity import known
from headway.performance.achieved import KERNELS, Efficiencies, entries, kernel_sections, kind_of

INTERVAL = "interval"
UNSAID = {"value": 0.0, "unit": "", "error": 0.0, "rows": 0, "range": "stated", "meaning": "", "source": "user's file", "date": "undated"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedNumbers:
    """A fitted number of data/efficiency.toml."""

    section: str  # class.family.dtype
    key: str
    value: float
    unit: str
    error: float  # one standard error, in `unit`
    rows: int
    range: str  # scope of the measurements behind the fit
    meaning: str
    source: str = "measurements"
    date: str = "undated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """Errors of the predictions of one group: |ln(predicted/measured)| and bias."""

    kind: str  # operator class
    family: str
    dtype: str
    scope: str  # "in sample", or the group left out of the fit
    rows: int
    median: float
    p90: float
    bias: float  # median of ln(predicted/measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFit:
    """Result of the kernel fit: numbers, and the table of errors."""

    parameters: tuple[FittedNumbers, ...]
    errors: tuple[ErrorRow, ...]


def line(number: FittedNumbers) -> str:
    """A fitted number as a line of TOML."""

    def short(value: float, digits: int) -> str:
        text = repr(float(f"{value:.{digits}g}"))
        return text if "inf" not in text else "inf"

    texts = {"range": number.range, "meaning": number.meaning, "source": number.source, "date": number.date, "kind": "fitted"}
    words = ", ".join(f"{key} = {quoted(text)}" for key, text in texts.items())
    figures = f"value = {short(number.value, 4)}, unit = {quoted(number.unit)}, error = {short(number.error, 2)}, rows = {number.rows}"
    return f"{number.key} = {{ {figures}, {words} }}"


def quoted(text: str) -> str:
    """Text as a TOML basic string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write_efficiency(path: Path, fitted: tuple[FittedNumbers, ...], head: str, keep_other_sections: bool = True) -> None:
    """Write numbers to `path`; `keep_other_sections` retains classes of the old file that `fitted` does not contain.

    Numbers of a class belong together, so that one new number of it drops all old ones; intervals count one by one.
    """
    kinds, places = {kind_of(number.section) for number in fitted}, {(number.section, number.key) for number in fitted}
    retained = [
        number
        for number in (read_efficiency(path) if keep_other_sections else ())
        if (number.section, number.key) not in places and ((kind := kind_of(number.section)) not in kinds or kind == INTERVAL)
    ]
    blocks = [head.rstrip("\n")] if head else []
    all_numbers = (*fitted, *retained)
    sections = dict.fromkeys(number.section for number in all_numbers)
    for section in sections:
        blocks.append("\n".join([*_heading(section, sections), *(line(number) for number in all_numbers if number.section == section)]))
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def _heading(section: str, present: Collection[str]) -> list[str]:
    """The line that opens a section; for a class of kernels also where a number that is not in the section is looked for."""
    kind, *family_and_form = section.split(".")
    if kind not in KERNELS or len(family_and_form) < 2:
        return [f"[{section}]"]
    family, form = family_and_form[0], ".".join(family_and_form[1:])
    fallbacks = [name for name in dict.fromkeys(kernel_sections(kind, family, form)) if name in present and name != section]
    return [f"[{section}]", *([f"# what is not here is in {', then '.join(fallbacks)}"] if fallbacks else [])]


def read_efficiency(path: Path) -> tuple[FittedNumbers, ...]:
    """All numbers of the file, in file order; empty if there is no file. A file written by hand may give values alone."""
    numbers = []
    for section, key, entry in entries(catalog.read(path), path) if path.exists() else ():
        values = {name: entry.get(name, default) for name, default in UNSAID.items()}
        for name, value in values.items():
            wants = str if isinstance(UNSAID[name], str) else int | float
            if isinstance(value, bool) or not isinstance(value, wants):
                raise BadFile(path, f"{section}.{key}: got {name} {value!r}; wants {'text' if wants is str else 'a number'}")
        numbers.append(FittedNumbers(section=section, key=key, **values))
    return tuple(numbers)


DATE = "2026-11"
Place = tuple[str, str]  # section and key of a number


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorNumber:
    """A number with a log-normal prior: one standard deviation is a factor exp(spread); fixed if `spread` is 0."""

    section: str
    key: str
    prior: float  # times the value of the same key in the section `parent`, if any
    spread: float = 0.0
    unit: str = ""
    meaning: str = ""
    most: float = math.inf
    parent: str = ""

    @property
    def place(self) -> Place:
        """Section and key."""
        return self.section, self.key

    def at(self, z: float, base: float = 1.0) -> float:
        """Value at `z` standard deviations from the prior; `base` is the parent's value."""
        return min(self.prior * base * math.exp(self.spread * z), self.most)


def free_places(numbers: Iterable[PriorNumber]) -> list[Place]:
    """Places of the numbers that a fit moves."""
    return [number.place for number in numbers if number.spread]


def values_at(numbers: Sequence[PriorNumber], moves: Mapping[Place, float]) -> dict[Place, float]:
    """Values of all numbers, parents first; `moves` in standard deviations of the priors."""
    values: dict[Place, float] = {}
    for number in numbers:
        values[number.place] = number.at(moves.get(number.place, 0.0), values[number.parent, number.key] if number.parent else 1.0)
    return values


def overlaid(
    sections: Mapping[str, Mapping[str, Any]], numbers: Sequence[PriorNumber | FittedNumbers], values: Iterable[float]
) -> Efficiencies:
    """Efficiencies of `sections` with these values of numbers."""
    table = {name: dict(section) for name, section in sections.items()}
    for number, value in zip(numbers, values, strict=True):
        fact = known(value, f"{number.section}.{number.key}", number.unit, "fitted", number.meaning)
        table.setdefault(number.section, {})[number.key] = fact
    return Efficiencies(table)


def fitted_lines(
    numbers: Sequence[PriorNumber], values: Mapping[Place, float], errors: Mapping[Place, float], rows: int, what: str, runs: str
) -> tuple[FittedNumbers, ...]:
    """Lines of a file of fitted numbers; `errors` of their logarithms: without one a number was stated, not fitted to `runs`."""
    lines = []
    for number in numbers:
        value, error = values[number.place], errors.get(number.place, 0.0)
        source = f"published {runs} runs, docs/accuracy.md" if error else "stated, docs/decisions.md"
        lines.append(FittedNumbers(
            section=number.section, key=number.key, value=value, unit=number.unit, error=value * error, rows=rows if error else 0,
            range=what if error else "fixed", meaning=number.meaning, source=source, date=DATE,
        ))  # fmt: skip
    return tuple(lines)
