"""Pre-training, reinforcement learning and serving as one bill, in training FLOPs: 6 N (D + eta R + kappa D_served / 3)."""

from __future__ import annotations

from headway.formula import formula
from headway.laws.scaling import SIX_FLOP
from headway.units import Flop, FlopPerToken, Number, Second, Token, TokenPerSecond

BILL = "derived: least 6 N (D + eta R + kappa D_served / 3) at fixed loss"
LECTURE = "Reiner Pope, blackboard lecture, 01:18"
FORWARD: FlopPerToken = 2.0  # of a parameter and token
THREE: Number = 3.0  # passes of a training step for each one of serving
DAY: Second = 86400.0


@formula(source="definition")
def calendar_s(months: Number, days: Number) -> Second:
    """Time of so many months of so many days.

    >>> calendar_s(2, 30) / 86400
    60.0
    """
    return months * days * DAY


@formula(source=LECTURE + ": rate times time")
def served_tokens(rate: TokenPerSecond, time: Second, utilisation: Number, deployed: Number) -> Token:
    """Tokens that a model will have generated: its rate, how much of it is used on average, and the chance that it is deployed at all.

    >>> round(served_tokens(50e6, 2 * 30.4375 * 86400, 0.76, 1) / 1e12)
    200
    """
    return rate * time * utilisation * deployed


@formula(source="the same backwards")
def serving_rate(tokens: Token, time: Second, utilisation: Number, deployed: Number) -> TokenPerSecond:
    """The rate at which so many tokens are served.

    >>> round(serving_rate(200e12, 2 * 30.4375 * 86400, 0.76, 1) / 1e6)
    50
    """
    return tokens / (time * utilisation * deployed)


@formula(source=LECTURE + ": decoding at 30 % of training's MFU costs 1 / 0.3")
def serving_price(mfu: Number, price: Number) -> Number:
    """Kappa: price of a useful FLOP in serving over one in training. `mfu` and `price` of a chip are serving's over training's.

    >>> round(serving_price(0.3, 1), 2)
    3.33
    """
    return price / mfu


@formula(source=LECTURE + ", with the update at training's MFU: (2 rho + 6 phi) / 6")
def rl_token_price(mfu: Number, trained: Number) -> Number:
    """Eta: cost of an RL token over a pre-training token, generated slowly and, a share of them, trained on.

    >>> round(rl_token_price(0.3, 0), 2), round(rl_token_price(0.3, 0.25), 2), round(rl_token_price(0.3, 1), 2)
    (1.11, 1.36, 2.11)
    """
    return (FORWARD / mfu + SIX_FLOP * trained) / SIX_FLOP


@formula(source=LECTURE + ": alpha = (2 .. 6) / 6 / 0.3, all at decoding's MFU")
def decode_token_price(per_token: FlopPerToken, mfu: Number) -> Number:
    """Cost of a token generated at decoding's MFU over a pre-training token, for so many FLOPs per parameter.

    >>> round(decode_token_price(2, 0.3), 2), round(decode_token_price(6, 0.3), 2)
    (1.11, 3.33)
    """
    return per_token / SIX_FLOP / mfu


@formula(source=BILL)
def serving_in_training(served: Token, kappa: Number) -> Token:
    """Pre-training tokens that cost what serving costs: the rule of thumb trains on just as many.

    >>> serving_in_training(200e12, 3) / 1e12
    200.0
    """
    return kappa * served / THREE


@formula(source=BILL + ", backwards")
def served_for(equivalent: Token, kappa: Number) -> Token:
    """Tokens served that cost what so many pre-training tokens cost.

    >>> served_for(150e12, 3) / 1e12
    150.0
    """
    return THREE * equivalent / kappa


@formula(source=BILL)
def rl_in_training(tokens: Token, ratio: Number, eta: Number) -> Token:
    """Pre-training tokens that cost what RL costs, for so many RL tokens per pre-training token.

    >>> round(rl_in_training(150e12, 0.67, 1.5) / 1e12)
    151
    """
    return tokens * ratio * eta


@formula(source=BILL)
def life_flop(params: Number, tokens: Token, rl: Token, serving: Token) -> Flop:
    """The whole bill in training FLOPs; RL and serving as the pre-training tokens that cost the same.

    >>> f"{life_flop(100e9, 150e12, 151e12, 150e12):.3g}"
    '2.71e+26'
    """
    return SIX_FLOP * params * (tokens + rl + serving)


@formula(source="definition")
def share_of_bill(part: Token, tokens: Token, rl: Token, serving: Token) -> Number:
    """A part of the whole bill.

    >>> round(share_of_bill(150e12, 150e12, 151e12, 150e12), 2)
    0.33
    """
    return part / (tokens + rl + serving)
