"""Claims on equalising costs and on over-training (OT)."""

from __future__ import annotations

from typing import Any

from headway.laws import life_cycle as life
from headway.laws import over_training as laws
from headway.laws import scaling
from headway.laws.compare import relative
from headway.laws.sums import divided
from headway.laws.training_flop import hardware_flop_per_token, matmul_flop_per_token, model_flop_per_token, run_flop, training_passes
from headway.ledger.register import Parts, recomputes
from headway.scaling import loss as losses
from headway.scaling.fits import Fit, fit


def _at_minimum(rising: Any, falling: Any, p: Any, q: Any) -> Any:
    """The rising part over the falling one where their sum is least."""
    at = laws.least_at(rising, falling, p, q)
    return relative(laws.power_term(rising, at, p), laws.inverse_term(falling, at, q))


@recomputes("OT-01")
def equal_at_minimum(i: Any) -> Parts:
    """e^x and e^-x are x and 1/x of another x, with rates in place of powers."""
    return {
        "A over B, x and 1/x": _at_minimum(i.a, i.b, i.power, i.inverse),
        "A over B, e^x and e^-x": _at_minimum(i.a, i.b, i.rate, i.inverse_rate),
    }


@recomputes("OT-02")
def ratio_at_minimum(i: Any) -> Parts:
    """Found at the minimum, beside the powers' ratio."""
    return {
        "A/B over q/p": relative(_at_minimum(i.a, i.b, i.p, i.q), laws.balance_of_powers(i.p, i.q)),
        "A over B, x^2 and 1/x": _at_minimum(i.a, i.b, i.two, i.one),
    }


def _per_token(params: Any, trainable: Any, none: Any) -> Any:
    return model_flop_per_token(matmul_flop_per_token(params), none, training_passes(trainable))


@recomputes("OT-03")
def training_cost(i: Any) -> Parts:
    """6 N D beside a forward pass and a backward one of twice its work."""
    per_token = _per_token(i.active, i.trainable, i.none)
    return {
        "6 N D over forward and backward": relative(scaling.training_flop(i.active, i.tokens), run_flop(per_token, i.tokens)),
        "forward over the whole": relative(matmul_flop_per_token(i.active), per_token),
    }


@recomputes("OT-04")
def rl_cost(i: Any) -> Parts:
    """FLOPs of a parameter and an RL token: generated and discarded; trained on; both."""
    forward, whole = matmul_flop_per_token(i.one), _per_token(i.one, i.trainable, i.none)
    return {"least": forward, "most": whole, "generated, then trained on": hardware_flop_per_token(whole, forward, i.once)}


@recomputes("OT-05")
def serving_cost(i: Any) -> Parts:
    """FLOPs of a parameter and a generated token."""
    forward = matmul_flop_per_token(i.one)
    return {"FLOP per parameter and token": forward, "serving over training": relative(forward, _per_token(i.one, i.trainable, i.none))}


@recomputes("OT-06")
def slow_decoding(i: Any) -> Parts:
    """Work at a lower MFU costs more, not less."""
    return {"factor on the board at first": life.serving_price(i.mfu, i.price), "by the flashcards": life.serving_price(i.third, i.price)}


@recomputes("OT-07")
def rl_factor(i: Any) -> Parts:
    """Cost of an RL token over a pre-training token, all of it at decoding's MFU."""
    found = {f"{name} FLOPs": life.decode_token_price(each, i.mfu) for name, each in (("2", i.two), ("3", i.three), ("6", i.six))}
    return found | {"by the flashcards": life.decode_token_price(i.three, i.third)}


@recomputes("OT-08")
def serving_factor(i: Any) -> Parts:
    """The same of a served token."""
    return {"at 30 %": life.decode_token_price(i.two, i.mfu), "by the flashcards": life.decode_token_price(i.two, i.third)}


@recomputes("OT-09")
def equal_tokens(i: Any) -> Parts:
    """Tokens of equal cost, by the flashcards' factors."""
    rl = divided(i.tokens, life.decode_token_price(i.three, i.third))
    served = divided(i.tokens, life.decode_token_price(i.two, i.third))
    return {
        "D_pre over D_RL": relative(i.tokens, rl),
        "D_pre over D_inf": relative(i.tokens, served),
        "D_RL over D_pre": relative(rl, i.tokens),
    }


@recomputes("OT-10")
def two_splits(i: Any) -> Parts:
    """Shares of the two splits, and what the larger bill does to the tokens by a fit."""
    equal, half = life.share_of_bill(i.part, i.part, i.part, i.part), life.share_of_bill(i.double, i.part, i.part, i.double)
    rest = life.share_of_bill(i.part, i.part, i.part, i.double)
    beta = fit("epoch").by.beta
    bills = (divided(i.whole, equal), divided(i.whole, rest))
    return {
        "inference, the second over the first": relative(half, equal),
        "pre-training, the second over the first": relative(rest, equal),
        "over-training, the second over the first": relative(*(laws.over_training_of_bill(bill, beta) for bill in reversed(bills))),
    }


@recomputes("OT-11")
def tokens_of_a_fleet(i: Any) -> Parts:
    """Rate times time, by two lengths of a month."""
    return {name: _served(i, days) for name, days in (("60 days", i.days), ("365.25 / 6 days", i.month))}


def _served(i: Any, days: Any) -> Any:
    return life.served_tokens(i.rate, life.calendar_s(i.months, days), i.use, i.sure)


@recomputes("OT-12")
def tokens_of_a_model(i: Any) -> Parts:
    """The same of one model of a family, and how much of it the stated tokens are."""
    long = _served(i, i.month)
    return {"60 days": _served(i, i.days), "365.25 / 6 days": long, "utilisation that 200 T imply": relative(i.said, long)}


@recomputes("OT-14")
def rule_of_twenty(i: Any) -> Parts:
    """The rule, and what the fits have for the same size."""
    found = {"20 per parameter": scaling.tokens_at_ratio(i.active, i.ratio)}
    names = {"Epoch": "epoch", "Hoffmann, unrounded": "hoffmann", "Hoffmann, printed": "hoffmann-printed"}
    return found | {name: losses.chinchilla_tokens(fit(key), i.active) for name, key in names.items()}


@recomputes("OT-15")
def over_trained(i: Any) -> Parts:
    """Tokens over the rule's, for three numbers of tokens."""
    usual = scaling.tokens_at_ratio(i.active, i.ratio)
    return {name: relative(tokens, usual) for name, tokens in (("200 T", i.served), ("150 T", i.rumour), ("259 T", i.unrounded))}


@recomputes("OT-16")
def size_cancels(i: Any) -> Parts:
    """The two bills at the tokens that equalise them, and these over those served."""
    tokens = life.serving_in_training(i.served, i.kappa)
    training, serving = life.life_flop(i.active, tokens, i.none, i.none), life.life_flop(i.active, i.none, i.none, tokens)
    return {"training over serving": relative(training, serving), "D_pre over D_inf": relative(tokens, i.served)}


@recomputes("OT-17")
def perhaps_deployed(i: Any) -> Parts:
    """Tokens expected where deployment is not certain, over those where it is."""
    time = life.calendar_s(i.months, i.days)
    uncertain, sure = (life.served_tokens(i.rate, time, i.use, chance) for chance in (i.chance, i.sure))
    return {"expected over certain": relative(uncertain, sure)}


@recomputes("OT-18")
def by_the_loss(i: Any) -> Parts:
    """The closed form by two fits, what 100 times would need, and the optimum found on the curve of equal loss beside it."""
    found: Parts = {}
    for name, key in (("Epoch", "epoch"), ("Hoffmann, unrounded", "hoffmann"), ("Hoffmann, printed", "hoffmann-printed")):
        beta = fit(key).by.beta
        found[f"equal halves, {name}"] = laws.over_training_of_bill(i.halves, beta)
        found[f"equal thirds, {name}"] = laws.over_training_of_bill(i.thirds, beta)
        found[f"bill that 100 times needs, {name}"] = laws.bill_of_over_training(i.hundred, beta)
    return found | {"optimum at equal loss over the closed form": _both_ways(fit("epoch"), i)}


def _both_ways(law: Fit, i: Any) -> Any:
    """Tokens of the cheapest model of a loss, over those the closed form has for its size."""
    serving, by = life.serving_in_training(i.served, i.kappa), law.by
    tokens = laws.best_tokens(losses.chinchilla_tokens(law, i.active), serving, i.none, by.beta)
    reached = losses.loss(law, i.active, tokens).total
    return relative(laws.cheapest_tokens(reached, by.irreducible, by.b, by.alpha, by.beta, serving), tokens)


@recomputes("OT-19")
def both_directions(i: Any) -> Parts:
    """Served tokens to training tokens, from the rate and from the rounded tokens; and back from the rumour."""
    return {
        "D_pre from 50 M tokens/s": life.serving_in_training(_served(i, i.days), i.kappa),
        "D_pre from 200 T served": life.serving_in_training(i.said, i.kappa),
        "D_inf from 150 T trained": life.served_for(i.rumour, i.kappa),
    }
