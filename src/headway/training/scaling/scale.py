"""Answer of `scale`: the question that the flags ask, and its rows: every law at every point, the chosen law first, each with its interval.

A and B are drawn log-normal, so that neither is negative; other coefficients normal. Sources publish errors but no correlations: without
correlation the interval is too wide, since a fit moves A with alpha and B with beta as a line's height moves with its slope.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core import columns as column_table
from headway.core.errors import BadValue, check_known
from headway.core.listing import Listing, clean, computed
from headway.core.notes import note
from headway.core.quantity import known
from headway.core.trace import record
from headway.core.units import show
from headway.laws.architecture.params import sparsity
from headway.laws.scaling import power_laws as laws
from headway.training.scaling import compute, fits
from headway.training.scaling.compute import ScalingPoint, point
from headway.training.scaling.fits import DEFAULT, Coefficients, Leverage, RoutedFit, ScalingFit, clark, exponents, fit, leverage, routed
from headway.training.scaling.inputs import Uncertainty

MOST_POINTS = 1000
EXAMPLES = "--flop 1e25, --active 100B --serve 50M/s --months 2, or --moe --active 30B --experts 64"
LIFE = ("serve", "months", "served", "month_days", "utilisation", "deployed", "serve_mfu", "serve_price", "kappa", "rl", "rl_mfu",
        "rl_trained", "eta")  # fmt: skip
MODE_FLAGS = {
    "split": (),
    "given": LIFE,
    "life": LIFE,
    "quality": LIFE,
    "experts": ("experts", "total", "per_token", "granularity"),
}
BITS = ("weight_bits", "activation_bits", "kv_bits", "post_bits")
ALWAYS = ("flop", "active", "tokens", "quality", "tokens_per_param")
LING, RULE = "ling", "rule"
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
MODES: dict[str, Callable[[ScalingFit, ScalingPoint], dict[str, Any]]] = {
    "split": compute.best_split,
    "given": compute.as_given,
    "life": compute.given_size,
    "quality": compute.given_quality,
}
OF_SPLIT = ("over_law", "served_exact", "serve_exact")  # columns that a rounded fit cannot give
HIDDEN = ("rule_left",)
NO_RULE = ("rule_active", "rule_regret", "rule_regret_lo", "rule_regret_hi")  # what there is not where the rule cannot reach the loss
NO_SERVING = "trained on fewer tokens than are best without serving: none justifies it"
NO_SIZE = "tokens equal to serving leave more loss than is sought, whatever the size"
NO_SIZE_SEEN = (
    "tokens equal to serving leave size so little of the loss that it would take {params} parameters, at fewer tokens each than any fit saw"
)
CLARK = (
    "Clark's laws: one routed FFN in every second block, one expert per token, 130 B tokens for every size, so that large models "
    "were under-trained; printed digits bias the loss, the refits do not"
)
ABOUT_LING = (
    "Ling's law comes from one transcription that does not state the base of its logarithms: log10 of compute and natural log of "
    "granularity are taken, which give its published 'above 7'; leverage is of compute, so of size at equal tokens"
)
ROUNDING = "at 5.76e23 FLOP rounding alone moves tokens per parameter from 59 to 93"
FAR = "no such model was fitted: read the spread over laws, not one law"


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


# -- the question ------------------------------------------------------------------------------------------------------------------


def question(flags: Mapping[str, Any], doubt: Uncertainty, law: str | None, beside: str, moe: bool) -> ScalingQuestion:
    """The question of the given flags, with a point per combination of lists; a note names flags that it does not use.

    >>> asked = question({"flop": 5.76e23}, Uncertainty(), None, "none", False)
    >>> listing(asked).plain[0]["active"] / 1e9  # doctest: +ELLIPSIS
    72.3...
    """
    mode = _mode(flags, moe)
    axes = {key: value if isinstance(value, tuple) else (value,) for key, value in flags.items()}
    if (count := math.prod(map(len, axes.values()))) > MOST_POINTS:
        raise BadValue("scale", f"{count} points", f"at most {MOST_POINTS}")
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    for at in points:
        if "total" in at and at["active"] > at["total"]:
            raise BadValue("--active", show(at["active"], ""), f"at most the total, {show(at['total'], '')}")
        if "experts" in at and at.get("per_token", 1) > at["experts"]:
            raise BadValue("--per-token", at["per_token"], f"at most the experts, {at['experts']}")
    answering, beside_laws = _laws(mode, law, beside)
    unique = () if mode in ("quality", "experts") else ("tokens_unique",)
    in_use = {*ALWAYS, *MODE_FLAGS[mode], *(BITS if mode in ("split", "given") else ()), *unique}
    idle = [f"--{key.replace('_', '-')}" for key in flags if key not in in_use]
    if idle:
        note(f"not used in this question: {', '.join(idle)}")
    varied = tuple(key for key, values in axes.items() if len(values) > 1)
    return ScalingQuestion(mode=mode, points=points, laws=answering, beside=beside_laws, doubt=doubt, varied=varied)


def _mode(flags: Mapping[str, Any], moe: bool) -> str:
    """The mode of the question; an error names every missing or superfluous flag."""
    if moe or "experts" in flags or "total" in flags:
        if "active" not in flags:
            raise BadValue("--moe", "no size", "the active parameters: --active 30B")
        if ("experts" in flags) == ("total" in flags):
            raise BadValue("--moe", "experts", "either their number, --experts 64..512*2, or all parameters, --total 600B")
        if "flop" in flags and "tokens" in flags:
            raise BadValue("--moe", "--flop and --tokens", "one of them")
        return "experts"
    if "served" in flags and "serve" in flags:
        raise BadValue("scale", "--serve and --served", "one of them")
    if "serve" in flags and "months" not in flags:
        raise BadValue("--serve", "a rate", "how long too: --months 2")
    serves = "served" in flags or "serve" in flags
    if "quality" in flags:
        if "active" in flags or "flop" in flags or not serves:
            raise BadValue("--quality", "a quality", "what is served, such as --served 5T, and no --active or --flop: the size is free")
        return "quality"
    if serves:
        if "active" not in flags or "flop" in flags:
            raise BadValue("scale", "what is served", "a size too and no --flop: --active 100B, or --quality 70B where the size is free")
        return "life"
    amounts = [key for key in ("flop", "active", "tokens") if key in flags]
    if len(amounts) == 3:
        raise BadValue("scale", "--flop, --active and --tokens", "two of them: the third follows")
    if not amounts:
        raise BadValue("scale", "no budget, size or tokens", EXAMPLES)
    if "tokens_unique" in flags and len(amounts) == 1 and amounts != ["flop"]:
        raise BadValue("--tokens-unique", "unique tokens", "a budget, or size and tokens: --flop 1e25, or --active 9B --tokens 900B")
    return "given" if len(amounts) == 2 else "split"


def _laws(mode: str, law: str | None, beside: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The laws that answer, and the laws shown for comparison; BadValue for a fit of too few digits."""
    if mode == "experts":
        if law is None:
            return expert_laws(), ()
        law_names = tuple(dict.fromkeys(name.strip().lower().replace("_", "-") for name in law.split(",")))
        for name in law_names:
            check_known("law of experts", name, expert_laws())
        return law_names, ()

    def names_of(text: str) -> list[str]:
        entries = [fit(name) for name in text.split(",")]
        for entry in entries:
            if entry.rounded and mode != "given":
                wants = f"its digits in full, --law {entry.rounded}: {ROUNDING}"
                raise BadValue("--law", entry.name, wants)
        return list(dict.fromkeys(entry.name for entry in entries))

    law_names = tuple(names_of(law or DEFAULT))
    if beside == "none":
        return law_names, ()
    beside_names = [entry.name for entry in fits.fits().values() if not entry.rounded] if beside == "all" else names_of(beside)
    rule = (RULE,) if mode == "split" and beside == "all" else ()
    return law_names, (*(name for name in beside_names if name not in law_names), *rule)


# -- rows --------------------------------------------------------------------------------------------------------------------------


def listing(request: ScalingQuestion) -> Listing:
    """The rows of a question, each number with its tree of laws."""
    answer_rows = rows(request)
    plain = [clean(row.plain) for row in answer_rows]

    def tree(row: Any, key: str) -> Any:
        place = next(index for index, plain_row in enumerate(plain) if all(row.get(name) == plain_row[name] for name in plain_row))
        return explained(request, answer_rows[place], key)

    return Listing(plain, notes=remarks(request, plain), tree=tree)


def rows(request: ScalingQuestion) -> list[ScalingRow]:
    """Every row, point by point, the answering laws before the laws for comparison."""
    stacked = point({key: np.array([flags[key] for flags in request.points]) for key in request.points[0]})
    rows_by_law = [_of_law(request, name, stacked) for name in (*request.laws, *request.beside)]
    all_rows = [law_rows[at] for at in range(len(request.points)) for law_rows in rows_by_law]
    if request.mode == "split" and request.beside:
        for estimate in exponents():
            powers = {"size_exponent": float(estimate.size), "data_exponent": float(estimate.data)}
            all_rows.append(ScalingRow(plain={"kind": "exponents", "law": estimate.name} | powers, law=estimate.name, at=-1))
    return all_rows


def explained(request: ScalingQuestion, row: ScalingRow, key: str) -> Any:
    """The number under `key` of a row with every law recorded; the end of an interval is a leaf."""
    flags = request.points[row.at] if row.at >= 0 else {}
    if key in row.plain and key.endswith(tuple(ENDS)) and row.plain[key] is not None:
        doubt = request.doubt
        sampling = f"{doubt.draws} draws of the coefficients of {row.law}, seed {doubt.seed}, correlation {doubt.correlation:g}"
        origin = f"{'5' if key.endswith('_lo') else '95'} % point of {sampling}"
        return known(row.plain[key], key, column_table.unit(key), "derived", origin)
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


def _of_law(request: ScalingQuestion, law: str, stacked: ScalingPoint) -> list[ScalingRow]:
    """The rows of one law, all points computed at once; ends of intervals where the law answers and its errors are published."""
    count = len(request.points)
    with np.errstate(all="ignore"):
        columns = _columns(request.mode, law)(stacked)
    spread = {key: np.broadcast_to(np.asarray(value, float), (count,)) for key, value in columns.items()}
    kind = "rule" if law == RULE else "law" if law in request.laws else "beside"
    law_rows = []
    for at, flags in enumerate(request.points):
        plain = {"kind": kind, "law": law} | {key: flags[key] for key in request.varied}
        for key, values in spread.items():
            plain[key] = float(values[at]) if math.isfinite(values[at]) else None
        if request.mode == "experts":
            inside, beyond = None, "its range is not stated in what was read"
            if law != LING:
                inside, beyond = fits.routed_range(plain, float(flags.get("per_token", 1)))
            plain |= {"in_range": inside, "beyond": beyond}
        elif law != RULE:
            law_fit = fit(law)
            settled = _settled(request.mode, law_fit, plain)
            if law in request.laws and law_fit.errors is not None:
                plain |= interval(functools.partial(_columns_at, request.mode, point(flags)), law_fit, request.doubt)
            plain |= settled
        law_rows.append(ScalingRow(plain={key: value for key, value in plain.items() if key not in HIDDEN}, law=law, at=at))
    return law_rows


def _columns_at(mode: str, at: ScalingPoint, fit: ScalingFit) -> dict[str, Any]:
    return MODES[mode](fit, at)


def _settled(mode: str, law_fit: ScalingFit, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Columns that a law cannot give set to None, with the reason; and whether the row is in the law's fitted range."""
    values: dict[str, Any] = {}
    why = ""
    if mode == "given" and law_fit.rounded:
        values |= {key: None for key in OF_SPLIT if key in plain}
        why = f"too few digits to split compute by: {law_fit.rounded} has them all"
    elif mode == "given" and (plain["served_exact"] or 0) <= 0:
        values |= {key: None for key in ("served_exact", "serve_exact") if key in plain}
        why = NO_SERVING
    elif mode == "quality" and (plain["rule_left"] or 0) <= 0:
        values |= dict.fromkeys(NO_RULE)
        why = NO_SIZE
    elif mode == "quality" and plain["rule_tokens"] / plain["rule_active"] < fits.least_ratio():
        values |= dict.fromkeys(NO_RULE)
        why = NO_SIZE_SEEN.format(params=show(plain["rule_active"], ""))
    inside, beyond = fits.dense_range(plain, law_fit.range)
    return values | {"in_range": inside, "beyond": beyond, "why": why}


def remarks(request: ScalingQuestion, rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The notes of an answer on fits, ranges and intervals."""
    if request.mode == "experts":
        laws = {row["law"] for row in rows}
        return (*((CLARK,) if laws - {LING} else ()), *((ABOUT_LING,) if LING in laws else ()))
    notes = []
    out = [row["law"] for row in rows if row.get("in_range") is False]
    if out:
        notes.append(f"outside what was fitted: {', '.join(dict.fromkeys(out))}; {FAR}")
    if any(key.endswith("_lo") for row in rows for key in row):
        how = (
            f"correlated by {request.doubt.correlation:g}"
            if request.doubt.correlation
            else "taken as independent, an upper bound on the width"
        )
        notes.append(f"intervals: 90 % of {request.doubt.draws} draws of the coefficients with their standard errors, {how}: "
                    "correlations are not published, and a fit moves A with alpha and B with beta (--correlation 0.99)")  # fmt: skip
    if any(key.endswith("_bits") for key in request.points[0]) and request.mode in ("split", "given"):
        notes.append("formats of few bits: a soft law from one transcription, at odds with practice in fp8 and fp4")
    if request.mode == "life" and any(row.get("fresh_share") is not None for row in rows):
        notes.append("the optimum takes all tokens as new; fresh_share says what repeating takes from them")
    return tuple(notes)


# -- intervals ---------------------------------------------------------------------------------------------------------------------


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
    if "rule_left" in values:  # draws by which no size reaches the loss with the rule's tokens
        reaches = (values["rule_left"] > 0) & (values["rule_tokens"] / values["rule_active"] >= fits.least_ratio())
        values = {**values, "rule_regret": np.where(reaches, values["rule_regret"], np.inf)}
    interval_ends: dict[str, Any] = {}
    for key in INTERVAL_COLUMNS:
        samples = values.get(key)
        if samples is None or np.ndim(samples) == 0:
            continue
        for end, percent in ENDS.items():
            method: Any = "nearest" if np.isinf(samples).any() else "linear"  # nothing lies between a number and an endless draw
            value = float(np.percentile(samples, percent, method=method))
            interval_ends[key + end] = max(value, 0.0) if np.isfinite(value) else None
    return interval_ends


# -- what experts are worth --------------------------------------------------------------------------------------------------------


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
