"""What a fit leaves behind: numbers with their error, and how far predictions miss; and the file that keeps them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.efficiency import kind_of
from headway.errors import BadFile

INTERVAL = "interval"
UNSAID = {"value": 0.0, "unit": "", "error": 0.0, "rows": 0, "range": "stated", "meaning": "", "source": "user's file", "date": "undated"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedNumbers:
    """One number of data/efficiency.toml."""

    section: str  # class.family.dtype
    key: str
    value: float
    unit: str
    error: float  # one standard error, in the number's own unit
    rows: int
    range: str  # what it was fitted on
    meaning: str
    source: str = "measurements"
    date: str = "undated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """How far predictions of one group miss: |ln(predicted/measured)| and its sign."""

    kind: str  # class of operator
    family: str
    dtype: str
    scope: str  # in sample, or what was left out of the fit
    rows: int
    median: float
    p90: float
    bias: float  # median of ln(predicted/measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFit:
    """Numbers and the table of their errors."""

    parameters: tuple[FittedNumbers, ...]
    errors: tuple[ErrorRow, ...]


def line(number: FittedNumbers) -> str:
    """One number as one line of TOML."""
    texts = {"range": number.range, "meaning": number.meaning, "source": number.source, "date": number.date, "kind": "fitted"}
    words = ", ".join(f"{key} = {quoted(text)}" for key, text in texts.items())
    figures = f"value = {_short(number.value, 4)}, unit = {quoted(number.unit)}, error = {_short(number.error, 2)}, rows = {number.rows}"
    return f"{number.key} = {{ {figures}, {words} }}"


def quoted(text: str) -> str:
    """A basic string of TOML."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _short(value: float, digits: int) -> str:
    text = f"{float(f'{value:.{digits}g}')!r}"
    return text if "inf" not in text else "inf"


def write_efficiency(path: Path, fitted: tuple[FittedNumbers, ...], head: str, keep_other_sections: bool = True) -> None:
    """Write numbers to `path`: classes that `fitted` has none of stay as they are, when they are to be kept."""
    previous_numbers = _retained_numbers(fitted, read_efficiency(path)) if keep_other_sections else ()
    blocks = [head.rstrip("\n")] if head else []
    all_numbers = (*fitted, *previous_numbers)
    for section in dict.fromkeys(number.section for number in all_numbers):
        blocks.append("\n".join([f"[{section}]", *(line(number) for number in all_numbers if number.section == section)]))
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def _retained_numbers(new_numbers: Sequence[FittedNumbers], old_numbers: Sequence[FittedNumbers]) -> tuple[FittedNumbers, ...]:
    """Those of classes that are not stated yet: numbers of one class belong together, but for intervals, each of which stands alone."""
    kinds, places = {kind_of(number.section) for number in new_numbers}, {(number.section, number.key) for number in new_numbers}
    candidates = (number for number in old_numbers if (kind := kind_of(number.section)) not in kinds or kind == INTERVAL)
    return tuple(number for number in candidates if (number.section, number.key) not in places)


def read_efficiency(path: Path) -> tuple[FittedNumbers, ...]:
    """Every number of the file, in its order; none where there is no file yet."""
    if not path.exists():
        return ()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BadFile(path, str(error)) from error
    return tuple(_numbers(document, (), path))


def _numbers(table: dict, section: tuple[str, ...], path: Path) -> list[FittedNumbers]:
    numbers = []
    for key, item in table.items():
        if isinstance(item, dict) and "value" in item:
            numbers.append(_fitted_number(item, ".".join(section), key, path))
        elif isinstance(item, dict):
            numbers += _numbers(item, (*section, key), path)
    return numbers


def _fitted_number(item: dict, section: str, key: str, path: Path) -> FittedNumbers:
    """One number, of which a file written by hand may say no more than its value."""
    values = {name: item.get(name, default) for name, default in UNSAID.items()}
    for name, value in values.items():
        wants = str if isinstance(UNSAID[name], str) else int | float
        if isinstance(value, bool) or not isinstance(value, wants):
            raise BadFile(path, f"{section}.{key}: got {name} {value!r}; wants {'text' if wants is str else 'a number'}")
    return FittedNumbers(section=section, key=key, **values)


def markdown(errors: tuple[ErrorRow, ...]) -> str:
    """The table of errors as Markdown."""
    rows = ["| class | family | dtype | scope | rows | median | p90 | bias |", "|---|---|---|---|---|---|---|---|"]
    for e in errors:
        rows.append(f"| {e.kind} | {e.family} | {e.dtype} | {e.scope} | {e.rows} | {e.median:.3f} | {e.p90:.3f} | {e.bias:+.3f} |")
    return "\n".join(rows)
