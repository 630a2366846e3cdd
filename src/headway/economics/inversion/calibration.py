"""Calibration of the inversion on price sheets of models of known size, cross-validated by family.

The cost laws are not touched: only by how much list prices exceed what the laws give, how that varies between models, and which
sizes and sparsities are sold (FITTED_PRIORS). Each family of models has one vote.

The baselines: one interval and one point for every model, and a straight line of log size on the logarithms of both prices.
"""

from __future__ import annotations

import csv
import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headway.core.catalog import Catalog
from headway.core.errors import BadFile
from headway.economics.inversion.features import Features
from headway.economics.inversion.posterior import spans
from headway.economics.inversion.priors import AssumedIntervals, Priors, priors, reference
from headway.economics.inversion.samples import SD_TO_P90, draw, reference_log_cost, stated_only

SPARSE = 1.5  # total over active parameters from which a model is sparse
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


def calibrated(priors: Priors, examples: Sequence[Example], catalog: Catalog | None = None) -> Priors:
    """The priors with FITTED_PRIORS replaced by fits to these examples."""
    shares = _votes(examples)
    active, total = (np.array([getattr(example, key) for example in examples]) for key in ("active", "total"))
    families = len({example.family for example in examples})
    unbiased = (families + 1) / (families - 1)  # corrects for the subtracted mean and its own uncertainty
    costs = reference_log_cost(priors, reference(catalog), active, total / active)[:2].T
    markup = np.log([[example.input, example.output] for example in examples]) - costs
    middle = shares @ markup
    spread = (shares[:, None] * (markup - middle)).T @ (markup - middle) * unbiased
    sd = np.sqrt(spread.diagonal())
    sparse = total > SPARSE * active
    sparse_middle, sparse_spread = _moments(np.log(total / active)[sparse], shares[sparse], unbiased)
    active_middle, active_spread = _moments(np.log(active), shares, unbiased)
    fitted = dict(zip(FITTED_PRIORS, map(float, (
        np.exp(middle[0]), np.exp(middle[1]), sd[0], sd[1], spread[0, 1] / (sd[0] * sd[1]), np.exp(active_middle), active_spread,
        1 - shares @ sparse, np.exp(sparse_middle), sparse_spread,
    )), strict=True))  # fmt: skip
    return dataclasses.replace(priors, **fitted)


def _votes(examples: Sequence[Example]) -> np.ndarray:
    counts = Counter(example.family for example in examples)
    return np.array([1 / counts[example.family] for example in examples]) / len(counts)


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
PRICES = ("model", "input_usd_per_mtok", "output_usd_per_mtok")
TRUTH = ("model", "active_params_b", "total_params_b")


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


def read_examples(prices: str | Path, truth: str | Path) -> list[Example]:
    """Examples of models with published sizes, priced at the median of their hosts' standard tiers."""
    sizes = {row["model"]: row for row in _rows(truth, TRUTH) if row["active_params_b"] and row["total_params_b"]}
    by: dict[str, list[dict[str, str]]] = {}
    for row in _rows(prices, PRICES):
        standard = row.get("service_tier", STANDARD) == STANDARD
        if standard and row["model"] in sizes and row["input_usd_per_mtok"] and row["output_usd_per_mtok"]:
            by.setdefault(row["model"], []).append(row)
    examples = [_example(rows, sizes[model], prices) for model, rows in by.items()]
    if len({example.family for example in examples}) < 3:
        raise BadFile(prices, f"has standard prices for {len(examples)} models of {truth}; wants models of at least three families")
    return examples


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
        ends = [float(np.exp(middle + sign * SD_TO_P90 * spread)) for sign in (-1, 0, 1)]
        yield SizeVerdict(method=method, size=size, example=example, lo=ends[0], value=ends[1], hi=ends[2])


def _constant(size: str, examples: Sequence[Example]) -> Callable[[Example], tuple[float, float]]:
    logs = np.log([getattr(example, size) for example in examples])
    return lambda _: (float(logs.mean()), float(logs.std(ddof=1)))


def _line(size: str, examples: Sequence[Example]) -> Callable[[Example], tuple[float, float]]:
    """The function of a straight line of log size on the logarithms of both prices."""
    features = np.array([_log_prices(example) for example in examples])
    log_sizes = np.log([getattr(example, size) for example in examples])
    weights = np.linalg.lstsq(features, log_sizes, rcond=None)[0]
    spread = float(np.sqrt(((log_sizes - features @ weights) ** 2).sum() / (len(examples) - features.shape[1])))
    return lambda example: (float(np.array(_log_prices(example)) @ weights), spread)


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


# -- context tiers --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderVerdict:
    """KV bytes per token inferred from context tiers, against a model's public config."""

    sold: str
    model: str
    fp8: float  # bytes per token, one byte per element
    bf16: float
    lo: float
    value: float
    hi: float


LADDERS = {"qwen3-coder-plus": "qwen3-coder-480b-a35b-instruct", "qwen3-coder-flash": "qwen3-30b-a3b"}  # sold model -> its open model


def ladders() -> list[LadderVerdict]:
    """The catalogue's sheets with context tiers that sell an open model, each with its verdict."""
    from headway.economics.inversion.answer import invert, row
    from headway.economics.sheets.catalogue import sheet
    from headway.models.config import model
    from headway.models.totals import kv_bytes_per_token

    rows = []
    for answer in invert([sheet(name) for name in LADDERS]):
        name = LADDERS[answer.sheet.model]
        wide, kv = float(kv_bytes_per_token(model(name))), row(answer, "kv")
        rows.append(LadderVerdict(sold=answer.sheet.model, model=name, fp8=wide / 2, bf16=wide, lo=kv.lo, value=kv.value, hi=kv.hi))
    return rows


def fitted_priors(examples: Sequence[Example]) -> dict[str, float]:
    """FITTED_PRIORS of all examples, by their names in data/inversion.toml."""
    basis = calibrated(priors(), examples)
    return {name: float(getattr(basis, name)) for name in FITTED_PRIORS}
