"""Claims on equal costs of pre-training, RL and serving, and on over-training (OT)."""

from __future__ import annotations

from typing import Any

from headway.evidence.claims.claim import Parts, recomputes
from headway.laws.scaling import lifetime as laws
from headway.laws.scaling import power_laws
from headway.laws.training.run import hardware_flop_per_token, matmul_flop_per_token, model_flop_per_token, training_passes
from headway.training.scaling import compute
from headway.training.scaling.fits import ScalingFit, fit


def _at_minimum(rising: Any, falling: Any, rising_power: Any, falling_power: Any) -> Any:
    """Rising term over falling term at the minimum of their sum."""
    at = laws.least_at(rising, falling, rising_power, falling_power)
    return rising * at**rising_power / (falling * at ** (-falling_power))


@recomputes("OT-01")
def equal_at_minimum(inputs: Any) -> Parts:
    """Ratio of the terms at the minimum: for x and 1/x, and for e^x and e^-x."""
    return {
        "A over B, x and 1/x": _at_minimum(inputs.a, inputs.b, inputs.power, inputs.inverse),
        "A over B, e^x and e^-x": _at_minimum(inputs.a, inputs.b, inputs.rate, inputs.inverse_rate),
    }


@recomputes("OT-02")
def ratio_at_minimum(inputs: Any) -> Parts:
    """Ratio of the terms at the numeric minimum, over the ratio of their powers."""
    return {
        "A/B over q/p": _at_minimum(inputs.a, inputs.b, inputs.p, inputs.q) / (inputs.q / inputs.p),
        "A over B, x^2 and 1/x": _at_minimum(inputs.a, inputs.b, inputs.two, inputs.one),
    }


def _per_token(params: Any, trainable: Any, none: Any) -> Any:
    return model_flop_per_token(matmul_flop_per_token(params), none, training_passes(trainable))


@recomputes("OT-03")
def training_cost(inputs: Any) -> Parts:
    """6 N D over the FLOPs of a forward pass and a backward pass of twice its work."""
    per_token = _per_token(inputs.active, inputs.trainable, inputs.none)
    return {
        "6 N D over forward and backward": power_laws.training_flop(inputs.active, inputs.tokens) / (per_token * inputs.tokens),
        "forward over the whole": matmul_flop_per_token(inputs.active) / per_token,
    }


@recomputes("OT-04")
def rl_cost(inputs: Any) -> Parts:
    """FLOPs per parameter and RL token: generated and discarded, trained on, or both."""
    forward, training_flop = matmul_flop_per_token(inputs.one), _per_token(inputs.one, inputs.trainable, inputs.none)
    return {
        "least": forward,
        "most": training_flop,
        "generated, then trained on": hardware_flop_per_token(training_flop, forward, inputs.once),
    }


@recomputes("OT-05")
def serving_cost(inputs: Any) -> Parts:
    """FLOPs per parameter and generated token."""
    forward = matmul_flop_per_token(inputs.one)
    return {
        "FLOP per parameter and token": forward,
        "serving over training": forward / _per_token(inputs.one, inputs.trainable, inputs.none),
    }


@recomputes("OT-06")
def slow_decoding(inputs: Any) -> Parts:
    """Cost factor of decoding at its lower MFU."""
    return {
        "factor on the board at first": laws.serving_price(inputs.mfu, inputs.price),
        "by the flashcards": laws.serving_price(inputs.third, inputs.price),
    }


@recomputes("OT-07")
def rl_factor(inputs: Any) -> Parts:
    """Cost of an RL token over a pre-training token, with all work at the MFU of decoding."""
    figures = {
        f"{name} FLOPs": laws.decode_token_price(flop, inputs.mfu)
        for name, flop in (("2", inputs.two), ("3", inputs.three), ("6", inputs.six))
    }
    return figures | {"by the flashcards": laws.decode_token_price(inputs.three, inputs.third)}


@recomputes("OT-08")
def serving_factor(inputs: Any) -> Parts:
    """Cost of a served token over a pre-training token, at the MFU of decoding."""
    return {
        "at 30 %": laws.decode_token_price(inputs.two, inputs.mfu),
        "by the flashcards": laws.decode_token_price(inputs.two, inputs.third),
    }


@recomputes("OT-09")
def equal_tokens(inputs: Any) -> Parts:
    """Ratios of tokens at equal cost, by the flashcards' factors."""
    rl = inputs.tokens / laws.decode_token_price(inputs.three, inputs.third)
    served = inputs.tokens / laws.decode_token_price(inputs.two, inputs.third)
    return {
        "D_pre over D_RL": inputs.tokens / rl,
        "D_pre over D_inf": inputs.tokens / served,
        "D_RL over D_pre": rl / inputs.tokens,
    }


@recomputes("OT-10")
def two_splits(inputs: Any) -> Parts:
    """Cost shares of the second split over the first, and the change in over-training by a fit."""
    equal, half = (
        laws.share_of_bill(inputs.part, inputs.part, inputs.part, inputs.part),
        laws.share_of_bill(inputs.double, inputs.part, inputs.part, inputs.double),
    )
    rest = laws.share_of_bill(inputs.part, inputs.part, inputs.part, inputs.double)
    beta = fit("epoch").by.beta
    bills = (inputs.whole / equal, inputs.whole / rest)
    return {
        "inference, the second over the first": half / equal,
        "pre-training, the second over the first": rest / equal,
        "over-training, the second over the first": laws.over_training_of_bill(bills[1], beta) / laws.over_training_of_bill(bills[0], beta),
    }


@recomputes("OT-11")
def tokens_of_a_fleet(inputs: Any) -> Parts:
    """Tokens of a fleet in its months of service, by two lengths of a month."""
    return {name: _served(inputs, days) for name, days in (("60 days", inputs.days), ("365.25 / 6 days", inputs.month))}


def _served(inputs: Any, days: Any) -> Any:
    return laws.served_tokens(inputs.rate, laws.calendar_s(inputs.months, days), inputs.use, inputs.sure)


@recomputes("OT-12")
def tokens_of_a_model(inputs: Any) -> Parts:
    """Tokens of one model of the family in its time of service, and the utilisation that the stated tokens imply."""
    long = _served(inputs, inputs.month)
    return {"60 days": _served(inputs, inputs.days), "365.25 / 6 days": long, "utilisation that 200 T imply": inputs.said / long}


@recomputes("OT-14")
def rule_of_twenty(inputs: Any) -> Parts:
    """Compute-optimal tokens by the rule of 20 per parameter, and by three fits at that size."""
    figures = {"20 per parameter": power_laws.tokens_at_ratio(inputs.active, inputs.ratio)}
    names = {"Epoch": "epoch", "Hoffmann, unrounded": "hoffmann", "Hoffmann, printed": "hoffmann-printed"}
    return figures | {name: compute.chinchilla_tokens(fit(key), inputs.active) for name, key in names.items()}


@recomputes("OT-15")
def over_trained(inputs: Any) -> Parts:
    """Training tokens over the rule's tokens, for three token counts."""
    usual = power_laws.tokens_at_ratio(inputs.active, inputs.ratio)
    return {name: tokens / usual for name, tokens in (("200 T", inputs.served), ("150 T", inputs.rumour), ("259 T", inputs.unrounded))}


@recomputes("OT-16")
def size_cancels(inputs: Any) -> Parts:
    """Training over serving cost at equal-cost tokens, and training over served tokens."""
    tokens = laws.serving_in_training(inputs.served, inputs.kappa)
    training, serving = (
        laws.life_flop(inputs.active, tokens, inputs.none, inputs.none),
        laws.life_flop(inputs.active, inputs.none, inputs.none, tokens),
    )
    return {"training over serving": training / serving, "D_pre over D_inf": tokens / inputs.served}


@recomputes("OT-17")
def perhaps_deployed(inputs: Any) -> Parts:
    """Expected served tokens with uncertain deployment, over those with certain deployment."""
    time = laws.calendar_s(inputs.months, inputs.days)
    uncertain, sure = (laws.served_tokens(inputs.rate, time, inputs.use, chance) for chance in (inputs.chance, inputs.sure))
    return {"expected over certain": uncertain / sure}


@recomputes("OT-18")
def by_the_loss(inputs: Any) -> Parts:
    """Over-training by the closed form for two fits, needs of a factor of 100, and the optimum on the curve of equal loss."""
    figures: Parts = {}
    for name, key in (("Epoch", "epoch"), ("Hoffmann, unrounded", "hoffmann"), ("Hoffmann, printed", "hoffmann-printed")):
        beta = fit(key).by.beta
        figures[f"equal halves, {name}"] = laws.over_training_of_bill(inputs.halves, beta)
        figures[f"equal thirds, {name}"] = laws.over_training_of_bill(inputs.thirds, beta)
        figures[f"bill that 100 times needs, {name}"] = inputs.hundred**beta
    return figures | {"optimum at equal loss over the closed form": _optimum_over_closed_form(fit("epoch"), inputs)}


def _optimum_over_closed_form(law: ScalingFit, inputs: Any) -> Any:
    """Training tokens of the cheapest model at a given loss, over those of the closed form at its size."""
    serving, by = laws.serving_in_training(inputs.served, inputs.kappa), law.by
    tokens = laws.best_tokens(compute.chinchilla_tokens(law, inputs.active), serving, inputs.none, by.beta)
    loss = compute.predicted_loss(law, inputs.active, tokens).total
    return laws.cheapest_tokens(loss, by.irreducible, by.b, by.alpha, by.beta, serving) / tokens


@recomputes("OT-19")
def both_directions(inputs: Any) -> Parts:
    """Training tokens from the served rate and from the rounded served tokens; served tokens from the rumoured training tokens."""
    return {
        "D_pre from 50 M tokens/s": laws.serving_in_training(_served(inputs, inputs.days), inputs.kappa),
        "D_pre from 200 T served": laws.serving_in_training(inputs.said, inputs.kappa),
        "D_inf from 150 T trained": laws.served_for(inputs.rumour, inputs.kappa),
    }
