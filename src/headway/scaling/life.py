"""How far to over-train, given what will be served: the rule of thumb, the optimum by a fit, and what the rule costs beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.laws import life_cycle, over_training, scaling, scaling_repeated
from headway.laws.compare import relative
from headway.laws.sums import total
from headway.scaling import loss as losses
from headway.scaling.fits import ScalingFit, decay
from headway.scaling.point import ScalingPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestModel:
    """The cheapest model of a quality, and its bill."""

    active: Any
    tokens: Any
    flop: Any
    size_loss: Any  # of the loss for the size: none left, no size will do


def given_size(fit: ScalingFit, at: ScalingPoint) -> dict[str, Any]:
    """A size is given: the tokens that make it the cheapest of its quality, and the rule's, each with its bill."""
    serving = life_cycle.serving_in_training(at.served, at.kappa)
    chinchilla = losses.chinchilla_tokens(fit, at.active)
    tokens = over_training.best_tokens(chinchilla, serving, at.rl_share, fit.by.beta)
    rl = life_cycle.rl_in_training(tokens, at.rl, at.eta)
    usual = scaling.tokens_at_ratio(at.active, at.ratio)
    columns = {
        "active": at.active, "served": at.served, "kappa": at.kappa, "eta": at.eta, "serving_tokens": serving, "chinchilla": usual,
        "tokens": tokens, "over_training": relative(tokens, usual), "over_law": relative(tokens, chinchilla),
        "tokens_per_param": scaling.tokens_per_param(tokens, at.active),
        "loss": losses.loss(fit, at.active, tokens).total, "bill_flop": life_cycle.life_flop(at.active, tokens, rl, serving),
        **_shares(tokens, rl, serving),
        "rule_tokens": serving, "rule_over_training": relative(serving, usual),
        **_judged(fit, at, serving, serving, "rule"),
    }  # fmt: skip
    if at.unique is not None:
        tokens_worth = scaling_repeated.effective_amount(tokens, at.unique, decay().data)
        columns |= {
            "epochs": scaling_repeated.epochs(tokens, at.unique),
            "tokens_worth": tokens_worth,
            "fresh_share": relative(tokens_worth, tokens),
        }
    if at.tokens is not None:
        columns |= {"chosen_tokens": at.tokens, "chosen_over_training": relative(at.tokens, usual)}
        columns |= _judged(fit, at, at.tokens, serving, "chosen")
    return columns


def _shares(tokens: Any, rl: Any, serving: Any) -> dict[str, Any]:
    parts = {"train": tokens, "rl": rl, "serve": serving}
    return {f"share_{name}": life_cycle.share_of_bill(part, tokens, rl, serving) for name, part in parts.items()}


def _judged(fit: ScalingFit, at: ScalingPoint, tokens: Any, serving: Any, name: str) -> dict[str, Any]:
    """A choice of tokens beside the cheapest model of the same quality, which serves as much and has as many RL tokens."""
    rl = life_cycle.rl_in_training(tokens, at.rl, at.eta)
    loss = losses.loss(fit, at.active, tokens).total
    bill, best = life_cycle.life_flop(at.active, tokens, rl, serving), cheapest(fit, loss, rl, serving)
    return {
        f"{name}_loss": loss, f"{name}_flop": bill, f"{name}_regret": over_training.regret(bill, best.flop),
        f"{name}_cheapest_active": best.active, f"{name}_cheapest_tokens": best.tokens,
    }  # fmt: skip


def cheapest(fit: ScalingFit, loss: Any, rl: Any, serving: Any) -> CheapestModel:
    """The size and the tokens that reach a loss for least, with what is served."""
    by = fit.by
    tokens = over_training.cheapest_tokens(loss, by.irreducible, by.b, by.alpha, by.beta, total((rl, serving)))
    active, size_loss = _sized(fit, loss, tokens)
    return CheapestModel(active=active, tokens=tokens, flop=life_cycle.life_flop(active, tokens, rl, serving), size_loss=size_loss)


def _sized(fit: ScalingFit, loss: Any, tokens: Any) -> tuple[Any, Any]:
    """The size that reaches a loss with so many tokens, and what of the loss is left to it."""
    by = fit.by
    data = scaling.data_loss(tokens, by.b, by.beta)
    size = over_training.params_at_loss(loss, by.irreducible, data, by.a, by.alpha)
    return size, over_training.left_to_size(loss, by.irreducible, data)


def given_quality(fit: ScalingFit, at: ScalingPoint) -> dict[str, Any]:
    """A quality is given, as a model that is not over-trained: the cheapest model of it, and the one of equal parts, beside that model."""
    serving = life_cycle.serving_in_training(at.served, at.kappa)
    before = losses.chinchilla_tokens(fit, at.quality) if at.tokens is None else at.tokens
    rl = life_cycle.rl_in_training(before, at.rl, at.eta)
    loss = losses.loss(fit, at.quality, before).total
    bill, best = life_cycle.life_flop(at.quality, before, rl, serving), cheapest(fit, loss, rl, serving)
    equal, size_loss = _sized(fit, loss, serving)
    return {
        "quality": at.quality, "served": at.served, "kappa": at.kappa, "quality_tokens": before, "loss": loss,
        "active": best.active, "tokens": best.tokens, "tokens_per_param": scaling.tokens_per_param(best.tokens, best.active),
        "over_training": relative(best.tokens, scaling.tokens_at_ratio(best.active, at.ratio)),
        "bill_flop": best.flop, "saved": over_training.bill_saved(bill, best.flop), **_shares(best.tokens, rl, serving),
        "serve_over_train": relative(serving, best.tokens), "rule_tokens": serving, "rule_active": equal, "rule_left": size_loss,
        "rule_regret": over_training.regret(life_cycle.life_flop(equal, serving, rl, serving), best.flop),
    }  # fmt: skip
