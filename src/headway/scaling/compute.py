"""Compute, size and data: one of them split best, or two of them as given, by one fit."""

from __future__ import annotations

from typing import Any

from headway.laws import life_cycle, over_training
from headway.laws import scaling as laws
from headway.laws.compare import relative
from headway.laws.scaling_repeated import epochs
from headway.laws.sums import total
from headway.scaling import loss as losses
from headway.scaling.fits import ScalingFit
from headway.scaling.point import ScalingPoint


def best_split(fit: ScalingFit, at: ScalingPoint) -> dict[str, Any]:
    """The compute-optimal model: of a budget, of a size or of so many tokens, whichever is given."""
    if at.flop is not None:
        active = losses.optimal_params(fit, at.flop, at.unique)
        tokens = laws.tokens_of_compute(at.flop, active)
    elif at.active is not None:
        active, tokens = at.active, losses.chinchilla_tokens(fit, at.active)
    else:
        active, tokens = losses.chinchilla_params(fit, at.tokens), at.tokens
    powers = {
        "size_exponent": laws.size_exponent(fit.by.alpha, fit.by.beta),
        "data_exponent": laws.data_exponent(fit.by.alpha, fit.by.beta),
    }
    return _model(fit, at, active, tokens) | powers


def as_given(fit: ScalingFit, at: ScalingPoint) -> dict[str, Any]:
    """A model of two given numbers: its loss, how far it is over-trained, and how much serving would justify that."""
    active, tokens = at.active, at.tokens
    if active is None:
        active = laws.params_of_compute(at.flop, tokens)
    if tokens is None:
        tokens = laws.tokens_of_compute(at.flop, active)
    chinchilla = losses.chinchilla_tokens(fit, active)
    exact = life_cycle.served_for(over_training.justified_serving(tokens, chinchilla, at.rl_share, fit.by.beta), at.kappa)
    rule = life_cycle.served_for(tokens, at.kappa)
    columns = _model(fit, at, active, tokens) | {
        "over_training": relative(tokens, laws.tokens_at_ratio(active, at.ratio)),
        "over_law": relative(tokens, chinchilla),
        "served_exact": exact,
        "served_rule": rule,
    }
    if at.time is not None:
        columns["serve_exact"] = life_cycle.serving_rate(exact, at.time, at.utilisation, at.deployed)
        columns["serve_rule"] = life_cycle.serving_rate(rule, at.time, at.utilisation, at.deployed)
    return columns


def by_ratio(at: ScalingPoint) -> dict[str, Any]:
    """The rule of thumb beside the fits: so many tokens per parameter."""
    if at.flop is not None:
        active = laws.params_at_ratio(at.flop, at.ratio)
        tokens = laws.tokens_of_compute(at.flop, active)
    elif at.active is not None:
        active, tokens = at.active, laws.tokens_at_ratio(at.active, at.ratio)
    else:
        active, tokens = laws.params_for_ratio(at.tokens, at.ratio), at.tokens
    return {
        "active": active, "tokens": tokens, "flop": laws.training_flop(active, tokens),
        "tokens_per_param": laws.tokens_per_param(tokens, active),
    }  # fmt: skip


def _model(fit: ScalingFit, at: ScalingPoint, active: Any, tokens: Any) -> dict[str, Any]:
    """Size, data, compute and loss."""
    loss = losses.loss(fit, active, tokens, at.unique, dict(at.bits))
    model = {
        "active": active, "tokens": tokens, "flop": laws.training_flop(active, tokens),
        "tokens_per_param": laws.tokens_per_param(tokens, active), "loss": loss.total,
    }  # fmt: skip
    if at.unique is not None:
        fresh = losses.loss(fit, active, tokens, None, dict(at.bits))
        model |= {
            "epochs": epochs(tokens, at.unique), "tokens_worth": loss.tokens_worth,
            "fresh_share": relative(loss.tokens_worth, tokens), "loss_fresh": fresh.total,
        }  # fmt: skip
    if at.post_bits is not None:
        model["loss_rounded"] = total((loss.total, losses.rounded(active, tokens, at.post_bits)))
    if loss.params_worth is not None:
        model["params_worth"] = loss.params_worth
    return model
