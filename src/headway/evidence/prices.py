"""Price sheets of models whose weights are public, read backwards with each family left out, beside baselines that see the same families.

What is learned is what inversion/calibrate.py names: by how much list prices exceed the cost laws and how that varies, and which sizes are
sold. The baselines: one interval and one point for every model, and a straight line of size on both prices.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headway.errors import BadFile
from headway.inversion.calibrate import LEARNED, Example, calibrated
from headway.inversion.draws import TENTH, draw
from headway.inversion.features import Features
from headway.inversion.markup import stated_only
from headway.inversion.posterior import spans
from headway.inversion.priors import Assumed, Priors, priors

MTOK = 1e6
DRAWS = 16384
SIZES = ("active", "total")
STANDARD = "standard"
OURS, STATED, CONSTANT, LINE = "cost laws", "cost laws, markup as stated", "constant", "regression"
PRICES = ("model", "input_usd_per_mtok", "output_usd_per_mtok")
TRUTH = ("model", "active_params_b", "total_params_b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one method says of one size of one model that it has not seen."""

    method: str
    size: str
    example: Example
    lo: float
    value: float
    hi: float

    @property
    def truth(self) -> float:
        """What is published."""
        return getattr(self.example, self.size)

    @property
    def holds(self) -> bool:
        """Whether the interval does."""
        return self.lo <= self.truth <= self.hi


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The errors of one method for one size, over all models."""

    method: str
    size: str
    models: int
    rms: float  # of ln(value / truth)
    over_constant: float  # of that of the constant point
    width: float  # median of hi / lo
    coverage: float


# -- the rows -------------------------------------------------------------------------------------------------------------------


def read_examples(prices: str | Path, truth: str | Path) -> list[Example]:
    """Medians over the hosts of each model's standard tier, beside its published sizes; a model without a size is left out."""
    sizes = {row["model"]: row for row in _rows(truth, TRUTH) if row["active_params_b"] and row["total_params_b"]}
    by: dict[str, list[dict[str, str]]] = {}
    for row in _rows(prices, PRICES):
        standard = row.get("service_tier", STANDARD) == STANDARD
        if standard and row["model"] in sizes and row["input_usd_per_mtok"] and row["output_usd_per_mtok"]:
            by.setdefault(row["model"], []).append(row)
    found = [_example(rows, sizes[model], prices) for model, rows in by.items()]
    if len({one.family for one in found}) < 3:
        raise BadFile(prices, f"has standard prices for {len(found)} models of {truth}; wants models of at least three families")
    return found


def _rows(path: str | Path, keys: Sequence[str]) -> list[dict[str, str]]:
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise BadFile(path, "cannot be read as a CSV file") from None
    missing = [key for key in keys if not rows or key not in rows[0]]
    if missing:
        raise BadFile(path, f"lacks {', '.join(missing)}")
    return [{key: (value or "").strip() if isinstance(value, str) else "" for key, value in row.items() if key} for row in rows]


def _example(rows: list[dict[str, str]], size: dict[str, str], path: str | Path) -> Example:
    def middle(key: str) -> float:
        return statistics.median(_number(row[key], key, path) for row in rows) / MTOK

    active, total = (_number(size[key], key, path) * 1e9 for key in ("active_params_b", "total_params_b"))
    return Example(
        model=size["model"], family=rows[0].get("family") or size.get("family") or size["model"], active=active, total=total,
        input=middle("input_usd_per_mtok"), output=middle("output_usd_per_mtok"),
    )  # fmt: skip


def _number(text: str, key: str, path: str | Path) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise BadFile(path, f"{key}: got {text!r}; wants a number above 0")
    return value


# -- each family left out -------------------------------------------------------------------------------------------------------


def left_out(examples: Sequence[Example]) -> list[Told]:
    """What each method says of every model, from the other families alone."""
    told: list[Told] = []
    for family in sorted({one.family for one in examples}):
        seen = [one for one in examples if one.family != family]
        asked = [one for one in examples if one.family == family]
        learned = calibrated(priors(), seen)
        told += by_laws(OURS, learned, asked)
        told += by_laws(STATED, stated_only(learned), asked)
        for size in SIZES:
            told += _by(CONSTANT, size, asked, _constant(size, seen))
            told += _by(LINE, size, asked, _line(size, seen))
    return told


def by_laws(method: str, basis: Priors, asked: Sequence[Example]) -> Iterator[Told]:
    """The inversion of the models' prices."""
    sheets = [Features(input=one.input, output=one.output) for one in asked]
    found = spans(draw(basis, Assumed(), DRAWS), basis, sheets, only=SIZES).found
    for number, one in enumerate(asked):
        for index, size in enumerate(SIZES):
            lo, value, hi = map(float, found[number, index])
            yield Told(method=method, size=size, example=one, lo=lo, value=value, hi=hi)


def _by(method: str, size: str, asked: Sequence[Example], say: Callable[[Example], tuple[float, float]]) -> Iterator[Told]:
    for one in asked:
        middle, spread = say(one)
        ends = [float(np.exp(middle + sign * TENTH * spread)) for sign in (-1, 0, 1)]
        yield Told(method=method, size=size, example=one, lo=ends[0], value=ends[1], hi=ends[2])


def _constant(size: str, seen: Sequence[Example]) -> Callable[[Example], tuple[float, float]]:
    logs = np.log([getattr(one, size) for one in seen])
    return lambda _: (float(logs.mean()), float(logs.std(ddof=1)))


def _line(size: str, seen: Sequence[Example]) -> Callable[[Example], tuple[float, float]]:
    """A straight line in the logarithms of both prices."""
    known, logs = np.array([_priced(one) for one in seen]), np.log([getattr(one, size) for one in seen])
    weights = np.linalg.lstsq(known, logs, rcond=None)[0]
    spread = float(np.sqrt(((logs - known @ weights) ** 2).sum() / (len(seen) - known.shape[1])))
    return lambda one: (float(np.array(_priced(one)) @ weights), spread)


def _priced(one: Example) -> tuple[float, float, float]:
    return 1.0, float(np.log(one.input)), float(np.log(one.output))


def scores(told: Sequence[Told]) -> list[Score]:
    """The errors of each method and size."""
    found = []
    for size in SIZES:
        constant = _rms([one for one in told if one.size == size and one.method == CONSTANT])
        for method in dict.fromkeys(one.method for one in told):
            own = [one for one in told if one.size == size and one.method == method]
            widths, rms = [one.hi / one.lo for one in own], _rms(own)
            found.append(Score(
                method=method, size=size, models=len(own), rms=rms, over_constant=rms / constant, width=statistics.median(widths),
                coverage=sum(one.holds for one in own) / len(own),
            ))  # fmt: skip
    return found


def _rms(told: Sequence[Told]) -> float:
    return float(np.sqrt(np.mean([np.log(one.value / one.truth) ** 2 for one in told])))


# -- ladders --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderTold:
    """What a ladder of context tiers says of the KV of a model whose config is public."""

    sold: str
    model: str
    fp8: float  # bytes per token, one byte per element
    bf16: float
    lo: float
    value: float
    hi: float


LADDERS = {"qwen3-coder-plus": "qwen3-coder-480b-a35b-instruct", "qwen3-coder-flash": "qwen3-30b-a3b"}  # what is sold -> the open model


def ladders() -> list[LadderTold]:
    """The ladders of the catalogue that sell an open model."""
    from headway.hfconfig import model
    from headway.inversion.answer import invert, row
    from headway.sheets.catalogue import sheet
    from headway.whole_model import kv_bytes_per_token

    found = []
    for answer in invert([sheet(name) for name in LADDERS]):
        name = LADDERS[answer.sheet.model]
        wide, own = float(kv_bytes_per_token(model(name))), row(answer, "kv")
        found.append(LadderTold(sold=answer.sheet.model, model=name, fp8=wide / 2, bf16=wide, lo=own.lo, value=own.value, hi=own.hi))
    return found


def learned(examples: Sequence[Example]) -> dict[str, float]:
    """The numbers that all of the examples give, by their names in data/inversion.toml."""
    basis = calibrated(priors(), examples)
    return {name: float(getattr(basis, name)) for name in LEARNED}
