"""A scaling question as rows: every law at every point, the chosen law first; what routed experts are worth; the uncertainty of each.

A and B are drawn log-normal, so that neither is negative; other coefficients normal. Sources publish errors but no correlations: without
correlation the interval is too wide, since a fit moves A with alpha and B with beta as a line's height moves with its slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.listing import computed
from headway.core.quantity import known
from headway.core.trace import record
from headway.laws.architecture.params import sparsity
from headway.laws.scaling import power_laws as laws
from headway.training.scaling import compute, fits
from headway.training.scaling.compute import ScalingPoint, point
from headway.training.scaling.fits import DEFAULT, Coefficients, Leverage, RoutedFit, ScalingFit, clark, exponents, fit, leverage, routed
from headway.training.scaling.inputs import Uncertainty

LING = "ling"


def expert_laws() -> tuple[str, ...]:
    """Every law of experts, refitted laws first because their absolute loss is more accurate."""
    return (*sorted(routed(), key=lambda name: not name.endswith("-refit")), LING)


def law_columns(name: str) -> Callable[[ScalingPoint], dict[str, Any]]:
    """The function from a point to the columns of the named law."""
    if name == LING:
        return lambda at: _ling(leverage(), at)
    return lambda at: _clark(routed()[name], at)


def _experts(at: ScalingPoint) -> Any:
    """Experts as given, or the number that gives the total parameters."""
    if at.experts is not None:
        return at.experts
    return laws.experts_for_total(sparsity(at.total, at.active), _routed_share())


def _routed_share() -> Any:
    return clark()["blocks_share"] * clark()["ffn_share"]


def _clark(by: RoutedFit, at: ScalingPoint) -> dict[str, Any]:
    """The columns of Clark's law: every second FFN routed, one expert per token."""
    experts = _experts(at)
    expert_count, total = laws.saturated(experts, by.start, by.most), laws.routed_total_params(at.active, experts, _routed_share())
    exponent, dense = (laws.routed_exponent(by.a, by.c, number) for number in (expert_count, by.start))
    effective = laws.effective_params(at.active, expert_count, by.start, exponent, dense, by.b)
    return {
        "active": at.active, "experts": experts, "total_of_law": total, "total_over_active": sparsity(total, at.active),
        "experts_counted": expert_count, "effective_params": effective, "effective_over_active": effective / at.active,
        "cutoff_params": laws.routing_cutoff(by.b, by.c), "loss_routed": laws.routed_loss(at.active, expert_count, by.a, by.b, by.c, by.d),
    }  # fmt: skip


def _ling(by: Leverage, at: ScalingPoint) -> dict[str, Any]:
    """The columns of Ling's law: efficiency leverage of compute, which equals that of size at equal tokens."""
    experts = at.experts
    if experts is None:  # one per token is Clark's layout
        experts = laws.experts_by_share(at.per_token, at.total, at.active) if float(np.max(at.per_token)) > 1 else _experts(at)
    tokens = compute.chinchilla_tokens(fit(DEFAULT), at.active) if at.tokens is None else at.tokens
    flop = laws.training_flop(at.active, tokens) if at.flop is None else at.flop
    fineness = by.granularity if at.granularity is None else at.granularity
    share = at.per_token / experts
    gain = laws.efficiency_leverage(share, fineness, flop, by.a, by.d, by.gamma, by.beta, by.start, by.most)
    return {
        "active": at.active, "experts": experts, "flop": flop, "granularity": fineness, "effective_params": at.active * gain,
        "effective_over_active": gain,
    }  # fmt: skip


LEVEL = 0.9
ENDS = {"_lo": 100 * (1 - LEVEL) / 2, "_hi": 100 * (1 + LEVEL) / 2}
INTERVAL_COLUMNS = (
    "active",
    "tokens",
    "tokens_per_param",
    "over_training",
    "over_law",
    "served_exact",
    "serve_exact",
    "rule_regret",
    "size_exponent",
)


def draw_coefficients(fit: ScalingFit, doubt: Uncertainty) -> ScalingFit:
    """The fit with arrays of draws in place of its coefficients."""
    by, errors = fit.by, fit.errors
    if errors is None:
        raise ValueError(f"{fit.name} has no standard errors")
    rng, count, shared = np.random.default_rng(int(doubt.seed)), int(doubt.draws), float(doubt.correlation)
    alpha, beta, own_a, own_b, irreducible = rng.standard_normal((5, count))
    independent_share = np.sqrt(1 - shared**2)
    log_a, log_b = (shared * slope + independent_share * noise for slope, noise in ((alpha, own_a), (beta, own_b)))
    return replace(
        fit,
        by=Coefficients(
            a=by.a * np.exp(errors.a / by.a * log_a),
            b=by.b * np.exp(errors.b / by.b * log_b),
            irreducible=by.irreducible + errors.irreducible * irreducible,
            alpha=np.maximum(by.alpha + errors.alpha * alpha, by.alpha / 10),
            beta=np.maximum(by.beta + errors.beta * beta, by.beta / 10),
        ),
    )


def interval(columns: Callable[[ScalingFit], Mapping[str, Any]], fit: ScalingFit, doubt: Uncertainty) -> dict[str, Any]:
    """Ends of the 90 % interval of each column that depends on the coefficients, by column name."""
    with np.errstate(all="ignore"):
        values = columns(draw_coefficients(fit, doubt))
    interval_ends: dict[str, Any] = {}
    for key in INTERVAL_COLUMNS:
        samples = values.get(key)
        if samples is None or np.ndim(samples) == 0:
            continue
        for end, percent in ENDS.items():
            value = float(np.percentile(samples, percent))
            if np.isfinite(value):
                interval_ends[key + end] = max(value, 0.0)
    return interval_ends


def leaf(value: float, key: str, fit: ScalingFit, doubt: Uncertainty) -> Any:
    """The end of an interval as a leaf of an explanation, with its draws, seed and correlation."""
    from headway.core import columns

    sampling = f"{doubt.draws} draws of the coefficients of {fit.name}, seed {doubt.seed}, correlation {doubt.correlation:g}"
    return known(value, key, columns.unit(key), "derived", f"{'5' if key.endswith('_lo') else '95'} % point of {sampling}")


MODES: dict[str, Callable[[ScalingFit, ScalingPoint], dict[str, Any]]] = {
    "split": compute.best_split,
    "given": compute.as_given,
    "life": compute.given_size,
    "quality": compute.given_quality,
}
OF_SPLIT = ("over_law", "served_exact", "serve_exact")  # columns that a rounded fit cannot give
HIDDEN = ("rule_left",)
NO_SERVING = "trained on fewer tokens than are best without serving: none justifies it"
NO_SIZE = "tokens equal to serving leave more loss than is sought, whatever the size"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingQuestion:
    """One question: its mode, the flags of every point, the laws that answer and the laws for comparison."""

    mode: str  # split, given, life, quality or experts
    points: Sequence[Mapping[str, Any]]
    laws: tuple[str, ...]
    beside: tuple[str, ...] = ()
    doubt: Uncertainty
    varied: tuple[str, ...] = ()  # flags with several values


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingRow:
    """A row as printed, with its law and point."""

    plain: dict[str, Any]
    law: str
    at: int  # index of its point; -1 without a point


def rows(request: ScalingQuestion) -> list[ScalingRow]:
    """Every row, point by point, the answering laws before the laws for comparison."""
    stacked = point({key: np.array([flags[key] for flags in request.points]) for key in request.points[0]})
    rows_by_law = [_of_law(request, name, stacked) for name in (*request.laws, *request.beside)]
    all_rows = [law_rows[at] for at in range(len(request.points)) for law_rows in rows_by_law]
    if request.mode == "split" and request.beside:
        all_rows += [_exponents(estimate) for estimate in exponents()]
    return all_rows


def explained(request: ScalingQuestion, row: ScalingRow, key: str) -> Any:
    """The number under `key` of a row with every law recorded; the end of an interval is a leaf."""
    flags = request.points[row.at] if row.at >= 0 else {}
    if key in row.plain and key.endswith(tuple(ENDS)) and row.plain[key] is not None:
        return leaf(row.plain[key], key, fit(row.law), request.doubt)
    if row.plain.get("kind") == "exponents":
        estimate = next(entry for entry in exponents() if entry.name == row.law)
        return {"size_exponent": estimate.size, "data_exponent": estimate.data}.get(key)
    if row.plain.get(key) is None and key not in flags:
        return computed(None, key)
    with record():
        columns = _columns(request.mode, row.law)(point(flags))
    return computed(columns[key] if key in columns else flags.get(key), key)


def _columns(mode: str, law: str) -> Callable[[ScalingPoint], dict[str, Any]]:
    """The function from a point to the columns of one law, in the question's mode."""
    if mode == "experts":
        return law_columns(law)
    if law == RULE:
        return compute.by_ratio
    return lambda at: MODES[mode](fit(law), at)


RULE = "rule"


def _of_law(request: ScalingQuestion, law: str, stacked: ScalingPoint) -> list[ScalingRow]:
    """The rows of one law, all points computed at once."""
    count = len(request.points)
    with np.errstate(all="ignore"):
        columns = _columns(request.mode, law)(stacked)
    spread = {key: np.broadcast_to(np.asarray(value, float), (count,)) for key, value in columns.items()}
    kind = "rule" if law == RULE else "law" if law in request.laws else "beside"
    law_rows = []
    for at, flags in enumerate(request.points):
        axes = {key: flags[key] for key in request.varied}
        numbers = {key: _finite(values[at]) for key, values in spread.items()}
        plain = {"kind": kind, "law": law} | axes | numbers
        if request.mode != "experts" and law != RULE:
            plain |= _doubted(request, law, flags) | _settled(request.mode, law, plain)
        elif request.mode == "experts":
            plain |= _routed_range(law, plain, float(flags.get("per_token", 1)))
        law_rows.append(ScalingRow(plain={key: value for key, value in plain.items() if key not in HIDDEN}, law=law, at=at))
    return law_rows


def _doubted(request: ScalingQuestion, law: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Ends of intervals; empty for a law shown for comparison or without published errors."""
    law_fit = fit(law)
    if law not in request.laws or law_fit.errors is None:
        return {}
    at = point(flags)
    return interval(lambda drawn_fit: MODES[request.mode](drawn_fit, at), law_fit, request.doubt)


def _settled(mode: str, law: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Columns that a law cannot give set to None, with the reason; and whether the row is in the law's fitted range."""
    values: dict[str, Any] = {}
    law_fit, why = fit(law), ""
    if mode == "given" and law_fit.rounded:
        values |= {key: None for key in OF_SPLIT if key in plain}
        why = f"too few digits to split compute by: {law_fit.rounded} has them all"
    elif mode == "given" and (plain["served_exact"] or 0) <= 0:
        values |= {key: None for key in ("served_exact", "serve_exact") if key in plain}
        why = NO_SERVING
    elif mode == "quality" and (plain["rule_left"] or 0) <= 0:
        values |= {"rule_active": None, "rule_regret": None}
        why = NO_SIZE
    inside, beyond = fits.dense_range(plain, law_fit.range)
    return values | {"in_range": inside, "beyond": beyond, "why": why}


def _routed_range(law: str, plain: Mapping[str, Any], per_token: float) -> dict[str, Any]:
    if law == LING:
        return {"in_range": None, "beyond": "its range is not stated in what was read"}
    inside, beyond = fits.routed_range(plain, per_token)
    return {"in_range": inside, "beyond": beyond}


def _exponents(estimate: Any) -> ScalingRow:
    plain = {"kind": "exponents", "law": estimate.name, "size_exponent": float(estimate.size), "data_exponent": float(estimate.data)}
    return ScalingRow(plain=plain, law=estimate.name, at=-1)


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
