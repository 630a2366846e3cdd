"""Loss, compute, size and data at one point by one fit: the best split, repeated data, and over-training for a served load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.quantity import default
from headway.laws.scaling import lifetime, power_laws
from headway.laws.scaling.lifetime import calendar_s, rl_token_price, served_tokens, serving_price
from headway.training.scaling.fits import ScalingFit, bits, decay, fit, lecture_assumptions

NOTHING = default(0, "rl", "", "no reinforcement learning unless --rl says so")
ONE_EXPERT = default(1, "per_token", "", "default of --per-token")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """Inputs of a point and the quantities that no law changes; None for an input without a value."""

    flop: Any = None
    active: Any = None
    tokens: Any = None
    unique: Any = None
    quality: Any = None
    ratio: Any  # Chinchilla's tokens per parameter
    time: Any = None  # seconds of serving
    served: Any = None  # tokens served, times the chance of deployment
    utilisation: Any
    deployed: Any
    kappa: Any
    rl: Any
    eta: Any
    rl_share: Any  # eta times RL tokens per pre-training token
    experts: Any = None
    total: Any = None
    per_token: Any = ONE_EXPERT
    granularity: Any = None
    bits: Mapping[str, Any]  # bits of weights, activations and KV cache
    post_bits: Any = None


def point(flags: Mapping[str, Any]) -> ScalingPoint:
    """A point from the given flags, by name, with the lecture's assumptions as defaults."""
    usual = {**lecture_assumptions(), **flags}
    time = None if "months" not in flags else calendar_s(flags["months"], usual["month_days"])
    kappa = flags["kappa"] if "kappa" in flags else serving_price(usual["serve_mfu"], usual["serve_price"])
    eta = flags["eta"] if "eta" in flags else rl_token_price(usual["rl_mfu"], usual["rl_trained"])
    rl, served = flags.get("rl", NOTHING), None
    if "served" in flags:
        served = flags["served"] * usual["deployed"]
    elif "serve" in flags and time is not None:
        served = served_tokens(flags["serve"], time, usual["utilisation"], usual["deployed"])
    return ScalingPoint(
        flop=flags.get("flop"), active=flags.get("active"), tokens=flags.get("tokens"), unique=flags.get("tokens_unique"),
        quality=flags.get("quality"), ratio=usual["tokens_per_param"], time=time, served=served,
        utilisation=usual["utilisation"], deployed=usual["deployed"], kappa=kappa, rl=rl, eta=eta, rl_share=eta * rl,
        experts=flags.get("experts"), total=flags.get("total"), per_token=flags.get("per_token", ONE_EXPERT),
        granularity=flags.get("granularity"), post_bits=flags.get("post_bits"),
        bits={part: flags[f"{name}_bits"] for part, name in (("weights", "weight"), ("activations", "activation"), ("kv", "kv"))
              if f"{name}_bits" in flags},
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A loss and its parts in nats per token; effective tokens and parameters, None if equal to the actual counts."""

    total: Any
    size: Any
    data: Any
    tokens_worth: Any = None
    params_worth: Any = None


def predicted_loss(fit: ScalingFit, active: Any, tokens: Any, unique: Any = None, narrow: dict[str, Any] | None = None) -> Loss:
    """The loss of a model by size and tokens, of which `unique` are distinct, with `narrow` bits by part of the model."""
    by, worth_n, worth_d = fit.by, None, None
    if narrow:
        worth_n = active
        for part, count in narrow.items():
            worth_n = worth_n * power_laws.precision_share(count, getattr(bits(), part))
    if unique is not None:
        size = active if worth_n is None else worth_n
        worth_n = power_laws.effective_amount(size, fed(fit, unique), decay().size)
        worth_d = power_laws.effective_amount(tokens, unique, decay().data)
    u = power_laws.size_loss(active if worth_n is None else worth_n, by.a, by.alpha)
    y = power_laws.data_loss(tokens if worth_d is None else worth_d, by.b, by.beta)
    return Loss(total=power_laws.scaling_loss(by.irreducible, u, y), size=u, data=y, tokens_worth=worth_d, params_worth=worth_n)


def rounded(active: Any, tokens: Any, count: Any) -> Any:
    """Loss added by rounding the weights to `count` bits after training."""
    by = bits()
    return power_laws.quantised_loss(count, active, tokens, by.post_factor, by.post_bits, by.post_data, by.post_size)


def split(fit: ScalingFit) -> Any:
    """Factor G of a fit in the compute-optimal size."""
    by = fit.by
    return power_laws.split_factor(by.a, by.b, by.alpha, by.beta)


def fed(fit: ScalingFit, unique: Any) -> Any:
    """Parameters for which the unique tokens are compute-optimal."""
    return power_laws.params_fed(unique, split(fit), fit.by.alpha, fit.by.beta)


def optimal_params(fit: ScalingFit, flop: Any, unique: Any = None) -> Any:
    """The compute-optimal parameters of a budget in FLOP; with `unique`, data repeats after that many tokens."""
    by = fit.by
    if unique is None:
        return power_laws.optimal_params(flop, split(fit), power_laws.size_exponent(by.alpha, by.beta))
    decays = decay()
    return power_laws.repeated_params(flop, unique, fed(fit, unique), by.a, by.b, by.alpha, by.beta, decays.size, decays.data)


def chinchilla_tokens(fit: ScalingFit, active: Any) -> Any:
    """The compute-optimal tokens of a size, without serving."""
    by = fit.by
    return power_laws.chinchilla_tokens(active, by.a, by.b, by.alpha, by.beta)


def chinchilla_params(fit: ScalingFit, tokens: Any) -> Any:
    """The compute-optimal parameters for a number of tokens, without serving."""
    by = fit.by
    return power_laws.chinchilla_params(tokens, by.a, by.b, by.alpha, by.beta)


def best_split(fit: ScalingFit, at: ScalingPoint) -> dict[str, Any]:
    """The columns of the compute-optimal model for a given budget, size or number of tokens."""
    if at.flop is not None:
        active = optimal_params(fit, at.flop, at.unique)
        tokens = power_laws.tokens_of_compute(at.flop, active)
    elif at.active is not None:
        active, tokens = at.active, chinchilla_tokens(fit, at.active)
    else:
        active, tokens = chinchilla_params(fit, at.tokens), at.tokens
    powers = {
        "size_exponent": power_laws.size_exponent(fit.by.alpha, fit.by.beta),
        "data_exponent": power_laws.data_exponent(fit.by.alpha, fit.by.beta),
    }
    return _model(fit, at, active, tokens) | powers


def as_given(fit: ScalingFit, at: ScalingPoint) -> dict[str, Any]:
    """The columns of a model given by two of budget, size and tokens: loss, over-training, and the serving that would justify it."""
    active, tokens = at.active, at.tokens
    if active is None:
        active = power_laws.params_of_compute(at.flop, tokens)
    if tokens is None:
        tokens = power_laws.tokens_of_compute(at.flop, active)
    chinchilla = chinchilla_tokens(fit, active)
    exact = lifetime.served_for(lifetime.justified_serving(tokens, chinchilla, at.rl_share, fit.by.beta), at.kappa)
    rule = lifetime.served_for(tokens, at.kappa)
    columns = _model(fit, at, active, tokens) | {
        "over_training": tokens / power_laws.tokens_at_ratio(active, at.ratio),
        "over_law": tokens / chinchilla,
        "served_exact": exact,
        "served_rule": rule,
    }
    if at.time is not None:
        columns["serve_exact"] = lifetime.serving_rate(exact, at.time, at.utilisation, at.deployed)
        columns["serve_rule"] = lifetime.serving_rate(rule, at.time, at.utilisation, at.deployed)
    return columns


def by_ratio(at: ScalingPoint) -> dict[str, Any]:
    """The columns of the rule of thumb: a fixed number of tokens per parameter."""
    if at.flop is not None:
        active = power_laws.params_at_ratio(at.flop, at.ratio)
        tokens = power_laws.tokens_of_compute(at.flop, active)
    elif at.active is not None:
        active, tokens = at.active, power_laws.tokens_at_ratio(at.active, at.ratio)
    else:
        active, tokens = at.tokens / at.ratio, at.tokens
    return {
        "active": active, "tokens": tokens, "flop": power_laws.training_flop(active, tokens),
        "tokens_per_param": power_laws.tokens_per_param(tokens, active),
    }  # fmt: skip


def _model(fit: ScalingFit, at: ScalingPoint, active: Any, tokens: Any) -> dict[str, Any]:
    """The columns of size, data, compute and loss of a model."""
    loss = predicted_loss(fit, active, tokens, at.unique, dict(at.bits))
    model = {
        "active": active, "tokens": tokens, "flop": power_laws.training_flop(active, tokens),
        "tokens_per_param": power_laws.tokens_per_param(tokens, active), "loss": loss.total,
    }  # fmt: skip
    if at.unique is not None:
        fresh = predicted_loss(fit, active, tokens, None, dict(at.bits))
        model |= {
            "epochs": tokens / at.unique, "tokens_worth": loss.tokens_worth,
            "fresh_share": loss.tokens_worth / tokens, "loss_fresh": fresh.total,
        }  # fmt: skip
    if at.post_bits is not None:
        model["loss_rounded"] = loss.total + rounded(active, tokens, at.post_bits)
    if loss.params_worth is not None:
        model["params_worth"] = loss.params_worth
    return model


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestModel:
    """The cheapest model that reaches a loss, and its lifetime compute in training FLOP."""

    active: Any
    tokens: Any
    flop: Any
    size_loss: Any  # loss left for the size term; at 0 or less no size reaches the loss


def given_size(fit: ScalingFit, at: ScalingPoint) -> dict[str, Any]:
    """The columns of a given size: tokens at which it is the cheapest model of its loss, and the rule's tokens, each with its bill."""
    serving = lifetime.serving_in_training(at.served, at.kappa)
    chinchilla = chinchilla_tokens(fit, at.active)
    tokens = lifetime.best_tokens(chinchilla, serving, at.rl_share, fit.by.beta)
    rl = tokens * at.rl * at.eta
    usual = power_laws.tokens_at_ratio(at.active, at.ratio)
    columns = {
        "active": at.active, "served": at.served, "kappa": at.kappa, "eta": at.eta, "serving_tokens": serving, "chinchilla": usual,
        "tokens": tokens, "over_training": tokens / usual, "over_law": tokens / chinchilla,
        "tokens_per_param": power_laws.tokens_per_param(tokens, at.active),
        "loss": predicted_loss(fit, at.active, tokens).total, "bill_flop": lifetime.life_flop(at.active, tokens, rl, serving),
        **_shares(tokens, rl, serving),
        "rule_tokens": serving, "rule_over_training": serving / usual,
        **{f"rule_{key}": share for key, share in _shares(serving, serving * at.rl * at.eta, serving).items()},
        **_judged(fit, at, serving, serving, "rule"),
    }  # fmt: skip
    if at.unique is not None:
        tokens_worth = power_laws.effective_amount(tokens, at.unique, decay().data)
        columns |= {
            "epochs": tokens / at.unique,
            "tokens_worth": tokens_worth,
            "fresh_share": tokens_worth / tokens,
        }
    if at.tokens is not None:
        columns |= {"chosen_tokens": at.tokens, "chosen_over_training": at.tokens / usual}
        columns |= _judged(fit, at, at.tokens, serving, "chosen")
    return columns


def _shares(tokens: Any, rl: Any, serving: Any) -> dict[str, Any]:
    parts = {"train": tokens, "rl": rl, "serve": serving}
    return {f"share_{name}": lifetime.share_of_bill(part, tokens, rl, serving) for name, part in parts.items()}


def _judged(fit: ScalingFit, at: ScalingPoint, tokens: Any, serving: Any, name: str) -> dict[str, Any]:
    """The columns that compare a choice of tokens with the cheapest model of equal loss, serving and RL tokens."""
    rl = tokens * at.rl * at.eta
    loss = predicted_loss(fit, at.active, tokens).total
    bill, best = lifetime.life_flop(at.active, tokens, rl, serving), cheapest(fit, loss, rl, serving)
    return {
        f"{name}_loss": loss, f"{name}_flop": bill, f"{name}_regret": lifetime.regret(bill, best.flop),
        f"{name}_cheapest_active": best.active, f"{name}_cheapest_tokens": best.tokens,
    }  # fmt: skip


def cheapest(fit: ScalingFit, loss: Any, rl: Any, serving: Any) -> CheapestModel:
    """The size and tokens that reach a loss at the least lifetime compute, serving and RL included."""
    by = fit.by
    tokens = lifetime.cheapest_tokens(loss, by.irreducible, by.b, by.alpha, by.beta, rl + serving)
    active, size_loss = sized(fit, loss, tokens)
    return CheapestModel(active=active, tokens=tokens, flop=lifetime.life_flop(active, tokens, rl, serving), size_loss=size_loss)


def sized(fit: ScalingFit, loss: Any, tokens: Any) -> tuple[Any, Any]:
    """The parameters that reach a loss with `tokens`, and the loss left for the size term."""
    by = fit.by
    data = power_laws.data_loss(tokens, by.b, by.beta)
    size = lifetime.params_at_loss(loss, by.irreducible, data, by.a, by.alpha)
    return size, lifetime.left_to_size(loss, by.irreducible, data)


def given_quality(fit: ScalingFit, at: ScalingPoint) -> dict[str, Any]:
    """The columns of the cheapest model that matches a compute-optimal model's loss, and of the model with training equal to serving."""
    serving = lifetime.serving_in_training(at.served, at.kappa)
    before = chinchilla_tokens(fit, at.quality) if at.tokens is None else at.tokens
    rl = before * at.rl * at.eta
    loss = predicted_loss(fit, at.quality, before).total
    bill, best = lifetime.life_flop(at.quality, before, rl, serving), cheapest(fit, loss, rl, serving)
    equal, size_loss = sized(fit, loss, serving)
    return {
        "quality": at.quality, "served": at.served, "kappa": at.kappa, "quality_tokens": before, "loss": loss,
        "active": best.active, "tokens": best.tokens, "tokens_per_param": power_laws.tokens_per_param(best.tokens, best.active),
        "over_training": best.tokens / power_laws.tokens_at_ratio(best.active, at.ratio),
        "bill_flop": best.flop, "saved": lifetime.bill_saved(bill, best.flop), **_shares(best.tokens, rl, serving),
        "serve_over_train": serving / best.tokens, "rule_tokens": serving, "rule_active": equal, "rule_left": size_loss,
        "rule_regret": lifetime.regret(lifetime.life_flop(equal, serving, rl, serving), best.flop),
    }  # fmt: skip


# -- models of one quality: fewer parameters on more tokens ------------------------------------------------------------------------


POINTS = 120
SPAN = 12.0  # tokens drawn reach from the cheapest over this to the cheapest times this


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityCurve:
    """One law's curve: tokens, lifetime compute over that of the cheapest model, and the marked tokens."""

    law: str
    tokens: Any
    over_cheapest: Any  # None where no size reaches the quality
    best_tokens: float
    rule_tokens: float  # training equal to serving


def quality_curve(law: str, flags: Mapping[str, Any]) -> QualityCurve:
    """The curve of one law at the quality of the model that the simple rule makes, whose cost the sentence tells."""
    by, at = fit(law), point(flags)
    columns = given_size(by, at)
    loss, rl = columns["rule_loss"], columns["rule_tokens"] * at.rl * at.eta
    best = cheapest(by, loss, rl, columns["serving_tokens"])
    centre = float(best.tokens)
    tokens = np.geomspace(centre / SPAN, centre * SPAN, POINTS)
    with np.errstate(all="ignore"):
        active, left_to_size = sized(by, loss, tokens)
        bill = lifetime.life_flop(active, tokens, rl, columns["serving_tokens"])
    ratio = np.where(np.asarray(left_to_size) > 0, np.asarray(bill) / float(best.flop), np.nan)
    return QualityCurve(law=law, tokens=tokens, over_cheapest=ratio, best_tokens=centre, rule_tokens=float(columns["serving_tokens"]))
