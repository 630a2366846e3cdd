"""List prices that hosts would ask for a model, forwards: the cost laws of the inversion, and what open models' prices made of them.

Hosts serve prompts and answers apart, so each rate goes by its own cost on busy reference chips. A list price rises less than its cost,
and an older model keeps the price of its day. Three numbers a rate are fitted to the same open models as the inversion's markups.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.core.units import Number
from headway.economics.inversion import features as closed_forms
from headway.economics.inversion.calibration import MTOK, Example, PriceScore, votes
from headway.economics.inversion.priors import LIST_FACTOR, Priors, priors, reference, reference_log_cost
from headway.laws.economics import inversion as laws
from headway.laws.economics.cost import log_even_quantile
from headway.laws.roofline.balance import compute_s_per_token
from headway.laws.tiers import per_mtok
from headway.models.describe import releases
from headway.models.model import Model
from headway.models.totals import active_params, total_params

KINDS = ("input", "output")
FITTED_LISTS = ("list_age", *(f"list_{name}_{kind}" for kind in KINDS for name in ("scale", "power", "growth")))
MONTHS = 12
MIDDLE = known(0.5, "middle", "", "constant", "middle of a prior")
METHOD = "list prices, forwards"
BOTH = "both rates"
SIZES_LEFT_OUT = 3.0  # spreads from the sizes on sale, beyond which no list price is told


# -- one model ------------------------------------------------------------------------------------------------------------------


def list_prices(model: Model, basis: Priors | None = None) -> dict[str, Any]:
    """USD/Mtok that hosts would ask for fresh input and output, each with its ends; none far from the sizes that are on sale."""
    basis = basis or priors()
    active = active_params(model)
    away = abs(np.log(float(active) / float(basis.active_middle))) / float(basis.active_spread)
    if away > SIZES_LEFT_OUT:
        return {f"list_{kind}{end}": None for kind in ("in", "out") for end in ("", "_lo", "_hi")}
    costs = _costs(basis, active, total_params(model))
    years, values = _years(model, basis), dict[str, Any]()
    for kind, key, cost in zip(KINDS, ("in", "out"), costs, strict=True):
        scale, power, growth = (getattr(basis, f"list_{name}_{kind}") for name in ("scale", "power", "growth"))
        middle = per_mtok(laws.list_rate(scale, cost, power, growth, years))
        values |= {f"list_{key}": middle, f"list_{key}_lo": middle / LIST_FACTOR, f"list_{key}_hi": middle * LIST_FACTOR}
    return values


def _costs(basis: Priors, active: Number, total: Number) -> tuple[Any, Any]:
    """Costs of a token of input and of output on busy reference chips, each stated prior at its middle."""
    on = reference()
    price, compute = closed_forms.middle_price(on), compute_s_per_token(active, on.peak)
    byte, kv, batch = (
        log_even_quantile(getattr(basis, f"{name}_low"), getattr(basis, f"{name}_high"), MIDDLE) for name in ("weight_byte", "kv", "batch")
    )
    weights = total * byte
    chips = laws.chips_for(weights, on.chip.hbm, basis.weights_share)
    decode = laws.decode_chip_s(
        compute, basis.step_fixed, chips, weights, laws.context_kv(basis.context, kv), batch, on.chip.hbm_bw, basis.eff_compute,
        basis.eff_memory,
    )  # fmt: skip
    return compute / laws.sparse_mfu(basis.dense_mfu, total / active, basis.sparse_exponent) * price, decode * price


def _years(model: Model, basis: Priors) -> Any:
    """Years from a model's release to the prices that were learned from, beyond the usual; none where its date is not known."""
    release = releases().get(model.name)
    if release is None:
        return known(0.0, "years", "", "estimate", "the age of the models on sale: the catalogue has no release date")
    at = known(_year(str(basis.list_age.date)), "date of the prices", "", "datasheet", basis.list_age.source)
    return at - known(_year(release.month), f"{model.name}.released", "", "datasheet", release.source) - basis.list_age


def _year(month: str) -> float:
    """A month such as 2025-08 as a year with its part.

    >>> _year("2025-06")
    2025.5
    """
    year, of_year = month.split("-")[:2]
    return int(year) + int(of_year) / MONTHS


# -- fitted, and each family left out --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ListVerdict:
    """Both list prices of a model whose family was left out, over those that its hosts ask."""

    example: Example
    over_input: float
    over_output: float

    @property
    def holds(self) -> bool:
        """Whether both rates lie within their ends."""
        return max(abs(np.log(self.over_input)), abs(np.log(self.over_output))) <= np.log(float(LIST_FACTOR))


def calibrated_lists(basis: Priors, examples: Sequence[Example]) -> Priors:
    """The priors with FITTED_LISTS replaced by fits to these examples, one vote for each family."""
    shares = votes([example.family for example in examples])
    ages = np.array([_age(example) for example in examples])
    dated = np.isfinite(ages)
    usual = float(shares[dated] @ ages[dated] / shares[dated].sum()) if dated.any() else float(basis.list_age)
    years, costs = np.where(dated, ages - usual, 0.0), _log_costs(basis, examples)
    fitted = {"list_age": usual}
    for number, kind in enumerate(KINDS):
        terms = np.stack([np.ones(len(examples)), costs[number] + np.log(MTOK), years], axis=1) * np.sqrt(shares)[:, None]
        prices = np.log([getattr(example, kind) for example in examples]) * np.sqrt(shares)
        scale, power, growth = np.linalg.lstsq(terms, prices, rcond=None)[0]
        fitted |= {f"list_scale_{kind}": np.exp(scale), f"list_power_{kind}": power, f"list_growth_{kind}": np.exp(growth)}
    return dataclasses.replace(basis, **{name: float(value) for name, value in fitted.items()})


def lists_left_out(examples: Sequence[Example]) -> list[ListVerdict]:
    """Both rates of every model, told by the other families."""
    verdicts = []
    for family in sorted({example.family for example in examples}):
        basis = calibrated_lists(priors(), [example for example in examples if example.family != family])
        judged = [example for example in examples if example.family == family]
        for example, costs in zip(judged, _log_costs(basis, judged).T, strict=True):
            age = _age(example) - float(basis.list_age)
            over = [
                float(laws.list_rate(
                    *(getattr(basis, f"list_scale_{kind}"), float(np.exp(cost)), getattr(basis, f"list_power_{kind}")),
                    getattr(basis, f"list_growth_{kind}"), age if np.isfinite(age) else 0.0,
                )) / getattr(example, kind)
                for kind, cost in zip(KINDS, costs, strict=True)
            ]  # fmt: skip
            verdicts.append(ListVerdict(example=example, over_input=over[0], over_output=over[1]))
    return verdicts


def _log_costs(basis: Priors, examples: Sequence[Example]) -> np.ndarray:
    active, total = (np.array([getattr(example, key) for example in examples]) for key in ("active", "total"))
    return reference_log_cost(basis, reference(), active, total / active)[:2]


def _age(example: Example) -> float:
    """Years from release to the price; not a number where one of the dates is not known."""
    return _year(example.priced) - _year(example.released) if example.released and example.priced else float("nan")


def list_score(verdicts: Sequence[ListVerdict]) -> PriceScore:
    """The errors of both rates over all models, beside the middle of the other families' prices."""
    logs = np.log([[verdict.over_input, verdict.over_output] for verdict in verdicts])
    prices = np.log([[verdict.example.input, verdict.example.output] for verdict in verdicts])
    families = np.array([verdict.example.family for verdict in verdicts])
    constants = np.array([prices[families != family].mean(axis=0) for family in families])
    rms, constant = (float(np.sqrt(np.mean(errors**2))) for errors in (logs, constants - prices))
    return PriceScore(
        method=METHOD, size=BOTH, models=len(verdicts), rms=rms, over_constant=rms / constant, width=float(LIST_FACTOR) ** 2,
        coverage=sum(verdict.holds for verdict in verdicts) / len(verdicts),
    )  # fmt: skip


def fitted_lists(examples: Sequence[Example]) -> dict[str, float]:
    """FITTED_LISTS of all examples, by their names in data/inversion.toml."""
    basis = calibrated_lists(priors(), examples)
    return {name: float(getattr(basis, name)) for name in FITTED_LISTS}
