"""Calibration of the inversion on price sheets of models of known size, cross-validated by family.

The cost laws are not touched: only by how much list prices exceed what the laws give, how that varies between models, and which
sizes and sparsities are sold (FITTED_PRIORS). Each family of models has one vote.

The baselines: one interval and one point for every model, and a straight line of log size on the logarithms of both prices.
"""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headway.core import user_file
from headway.core.catalog import Catalog
from headway.core.csv_text import csv_header, csv_lines, refuse_twins, width_error
from headway.core.errors import BadFile, clip
from headway.core.measured import PARAMS_B, USD_PER_MTOK, BadCell, cell
from headway.core.schema import Field
from headway.economics.inversion.features import Features, spans
from headway.economics.inversion.priors import SD_TO_END, AssumedIntervals, Priors, draw, priors, reference, reference_log_cost, stated_only

SPARSE = 1.5  # total over active parameters from which a model is sparse
LEAST_SPARSE = 2  # sparse models, without which their sparsity stays as assumed
FITTED_PRIORS = (
    "markup_input", "markup_output", "markup_input_spread", "markup_output_spread", "markup_correlation", "active_middle", "active_spread",
    "dense_share", "sparsity_middle", "sparsity_spread",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A model of published size, with its prices."""

    model: str
    family: str
    active: float
    total: float
    input: float  # USD/token
    output: float
    released: str = ""  # date or month, where it is known
    priced: str = ""


def calibrated(priors: Priors, examples: Sequence[Example], catalog: Catalog | None = None) -> Priors:
    """The priors with FITTED_PRIORS replaced by fits to these examples."""
    shares = votes([example.family for example in examples])
    active, total = (np.array([getattr(example, key) for example in examples]) for key in ("active", "total"))
    families = len({example.family for example in examples})
    unbiased = (families + 1) / (families - 1)  # corrects for the subtracted mean and its own uncertainty
    costs = reference_log_cost(priors, reference(catalog), active, total / active)[:2].T
    markup = np.log([[example.input, example.output] for example in examples]) - costs
    middle = shares @ markup
    spread = (shares[:, None] * (markup - middle)).T @ (markup - middle) * unbiased
    sd = np.sqrt(spread.diagonal())
    sparse = total > SPARSE * active
    sparse_middle, sparse_spread = np.log(priors.sparsity_middle), priors.sparsity_spread
    if sparse.sum() >= LEAST_SPARSE:
        sparse_middle, sparse_spread = _moments(np.log(total / active)[sparse], shares[sparse], unbiased)
    active_middle, active_spread = _moments(np.log(active), shares, unbiased)
    fitted = dict(zip(FITTED_PRIORS, map(float, (
        np.exp(middle[0]), np.exp(middle[1]), sd[0], sd[1], spread[0, 1] / (sd[0] * sd[1]), np.exp(active_middle), active_spread,
        1 - shares @ sparse, np.exp(sparse_middle), sparse_spread,
    )), strict=True))  # fmt: skip
    return dataclasses.replace(priors, **fitted)


def votes(families: Sequence[str]) -> np.ndarray:
    """Shares of one vote for each family, by the family of each model."""
    counts = Counter(families)
    return np.array([1 / counts[family] for family in families]) / len(counts)


def _moments(values: np.ndarray, shares: np.ndarray, unbiased: float) -> tuple[float, float]:
    """Weighted mean and standard deviation."""
    share = shares / shares.sum()
    middle = share @ values
    return middle, np.sqrt(share @ (values - middle) ** 2 * unbiased)


MTOK = 1e6
DRAWS = 16384
SIZES = ("active", "total")
STANDARD = "standard"
OURS, STATED_MARKUP, CONSTANT, LINE = "cost laws", "cost laws, markup as stated", "constant", "regression"
PRICES = {"model": None, "input_usd_per_mtok": USD_PER_MTOK, "output_usd_per_mtok": USD_PER_MTOK}
TRUTH = {"model": None, "active_params_b": PARAMS_B, "total_params_b": PARAMS_B}
LEAST_FAMILIES = 3  # from two of which the third is estimated


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeVerdict:
    """One method's estimate of one size of a held-out model."""

    method: str
    size: str
    example: Example
    lo: float
    value: float
    hi: float

    @property
    def truth(self) -> float:
        """The published size."""
        return getattr(self.example, self.size)

    @property
    def holds(self) -> bool:
        """Whether the interval holds the published size."""
        return self.lo <= self.truth <= self.hi


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceScore:
    """The errors of one method for one size, over all models."""

    method: str
    size: str
    models: int
    rms: float  # root mean square of ln(value / truth)
    over_constant: float  # rms over the rms of a constant guess
    width: float  # median of hi / lo
    coverage: float


# -- the rows -------------------------------------------------------------------------------------------------------------------


def read_examples(prices: str | Path, truth: str | Path, left_out: list[str] | None = None) -> list[Example]:
    """Examples of models with published sizes, priced at the median of their hosts' standard tiers; `left_out` takes a note a bad line."""
    notes = [] if left_out is None else left_out
    sizes = {row["model"]: row for row in _rows(truth, TRUTH, notes)}
    by: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(prices, PRICES, notes):
        if row.get("service_tier", STANDARD) == STANDARD and row["model"] in sizes:
            by.setdefault(row["model"], []).append(row)
    examples = [_example(rows, sizes[model]) for model, rows in by.items()]
    if len({example.family for example in examples}) < LEAST_FAMILIES:
        first = f"; {notes[0]}" if notes else ""
        wants = f"wants models of at least {LEAST_FAMILIES} families"
        raise BadFile(prices, f"has standard prices for {len(examples)} models of {clip(truth)}; {wants}{first}")
    if any(len({getattr(example, key) for example in examples}) < LEAST_FAMILIES for key in ("input", "output", "active", "total")):
        raise BadFile(prices, f"has fewer than {LEAST_FAMILIES} different prices or sizes, from which nothing can be learned")
    return examples


def _rows(path: str | Path, columns: Mapping[str, Field | None], notes: list[str]) -> Iterator[dict[str, Any]]:
    """Rows of a table with the columns needed, their numbers checked; a line that lacks a cell is passed over, a wrong one noted."""
    lines = csv_lines(user_file.text_of(path, user_file.PRICES))
    header = csv_header(lines, path)
    missing = [key for key in columns if key not in header]
    if missing:
        raise BadFile(path, f"lacks {', '.join(missing)}")
    refuse_twins([name for name in header if name], path)
    for number, cells, why in lines:
        try:
            wrong = why or width_error(cells, len(header))
            if wrong:
                raise BadCell(wrong)
            row: dict[str, Any] = {key: text.strip() for key, text in zip(header, cells, strict=False)}
            if all(row[key] for key in columns):
                row |= {key: cell(row[key], q, key) for key, q in columns.items() if q is not None}
                if columns is TRUTH and row["active_params_b"] > row["total_params_b"]:
                    raise BadCell(f"active_params_b: got {row['active_params_b']:g}; wants at most the total, {row['total_params_b']:g}")
                yield row
        except BadCell as error:
            notes.append(f"{Path(path).name} line {number}: {error}; left out")


def date_of(text: str | None) -> str:
    """A date or month as it is, empty where a cell holds none.

    >>> date_of("2026-11-12"), date_of("2025-08"), date_of("undated"), date_of(None)
    ('2026-11-12', '2025-08', '', '')
    """
    return text if text and re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])(-\d{2})?", text) else ""


def _example(rows: list[dict[str, Any]], size: dict[str, Any]) -> Example:
    price = {key: statistics.median(row[key] for row in rows) / MTOK for key in ("input_usd_per_mtok", "output_usd_per_mtok")}
    return Example(
        model=size["model"], family=rows[0].get("family") or size.get("family") or size["model"], active=size["active_params_b"] * 1e9,
        total=size["total_params_b"] * 1e9, input=price["input_usd_per_mtok"], output=price["output_usd_per_mtok"],
        released=date_of(size.get("released")), priced=date_of(rows[0].get("price_asof")),
    )  # fmt: skip


# -- cross-validation by family -------------------------------------------------------------------------------------------------


def left_out(examples: Sequence[Example], families: Collection[str] = ()) -> list[SizeVerdict]:
    """Each method's estimates of every model, or of those of some families, fitted on the other families."""
    estimates: list[SizeVerdict] = []
    for family in sorted(families or {example.family for example in examples}):
        other_examples = [example for example in examples if example.family != family]
        family_examples = [example for example in examples if example.family == family]
        basis = calibrated(priors(), other_examples)
        estimates += by_laws(OURS, basis, family_examples)
        estimates += by_laws(STATED_MARKUP, stated_only(basis), family_examples)
        for size in SIZES:
            estimates += _by(CONSTANT, size, family_examples, _constant(size, other_examples))
            estimates += _by(LINE, size, family_examples, _line(size, other_examples))
    return estimates


def by_laws(method: str, basis: Priors, examples: Sequence[Example]) -> Iterator[SizeVerdict]:
    """Estimates by inverting the models' prices."""
    sheets = [Features(input=example.input, output=example.output) for example in examples]
    intervals = spans(draw(basis, AssumedIntervals(), DRAWS), basis, sheets, only=SIZES).quantiles
    for number, example in enumerate(examples):
        for index, size in enumerate(SIZES):
            lo, value, hi = map(float, intervals[number, index])
            yield SizeVerdict(method=method, size=size, example=example, lo=lo, value=value, hi=hi)


def _by(method: str, size: str, examples: Sequence[Example], estimator: Callable[[Example], tuple[float, float]]) -> Iterator[SizeVerdict]:
    for example in examples:
        middle, spread = estimator(example)
        ends = [float(np.exp(middle + sign * SD_TO_END * spread)) for sign in (-1, 0, 1)]
        yield SizeVerdict(method=method, size=size, example=example, lo=ends[0], value=ends[1], hi=ends[2])


def _constant(size: str, examples: Sequence[Example]) -> Callable[[Example], tuple[float, float]]:
    logs = np.log([getattr(example, size) for example in examples])
    return lambda _: (float(logs.mean()), float(logs.std(ddof=1)))


def _line(size: str, examples: Sequence[Example]) -> Callable[[Example], tuple[float, float]]:
    """The function of a straight line of log size on the logarithms of both prices."""
    weights, spread = _line_terms(size, examples)
    return lambda example: (float(np.array(_log_prices(example)) @ weights), spread)


def _line_terms(size: str, examples: Sequence[Example]) -> tuple[np.ndarray, float]:
    features = np.array([_log_prices(example) for example in examples])
    log_sizes = np.log([getattr(example, size) for example in examples])
    weights = np.linalg.lstsq(features, log_sizes, rcond=None)[0]
    return weights, float(np.sqrt(((log_sizes - features @ weights) ** 2).sum() / (len(examples) - features.shape[1])))


def fitted_lines(examples: Sequence[Example]) -> dict[str, float]:
    """The straight lines of both sizes through all examples, by their names in data/inversion.toml; prices in USD/Mtok."""
    fitted: dict[str, float] = {}
    for size in SIZES:
        (middle, power_in, power_out), spread = _line_terms(size, examples)
        scale = float(np.exp(middle - (power_in + power_out) * np.log(MTOK)))
        names = ("scale", "input", "output", "spread")
        terms = zip(names, (scale, float(power_in), float(power_out), spread), strict=True)
        fitted |= {f"line_{name}_{size}": term for name, term in terms}
    return fitted


def _log_prices(example: Example) -> tuple[float, float, float]:
    return 1.0, float(np.log(example.input)), float(np.log(example.output))


def scores(estimates: Sequence[SizeVerdict]) -> list[PriceScore]:
    """The errors of each method and size."""
    results = []
    for size in SIZES:
        constant = _rms([estimate for estimate in estimates if estimate.size == size and estimate.method == CONSTANT])
        for method in dict.fromkeys(estimate.method for estimate in estimates):
            method_rows = [estimate for estimate in estimates if estimate.size == size and estimate.method == method]
            widths, rms = [estimate.hi / estimate.lo for estimate in method_rows], _rms(method_rows)
            results.append(PriceScore(
                method=method, size=size, models=len(method_rows), rms=rms, over_constant=rms / constant, width=statistics.median(widths),
                coverage=sum(estimate.holds for estimate in method_rows) / len(method_rows),
            ))  # fmt: skip
    return results


def _rms(estimates: Sequence[SizeVerdict]) -> float:
    return float(np.sqrt(np.mean([np.log(estimate.value / estimate.truth) ** 2 for estimate in estimates])))


def fitted_priors(examples: Sequence[Example]) -> dict[str, float]:
    """FITTED_PRIORS of all examples, by their names in data/inversion.toml."""
    basis = calibrated(priors(), examples)
    return {name: float(getattr(basis, name)) for name in FITTED_PRIORS}
