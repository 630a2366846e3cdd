"""Lifetime compute: pre-training, reinforcement learning and serving as one bill, and the over-training of least bill at fixed loss.

The bill 6 N (D + eta R + kappa D_served / 3) is least where pre-training : RL : serving = beta y : gamma w : alpha u - beta y - gamma w,
with u and y the parts of the loss due to finite size and data and w the part due to RL. With D_chin, the best tokens without
serving, this means (D / D_chin)^beta = whole bill / pre-training. Making all parts equal is a rule of thumb.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Flop, FlopPerToken, Number, Second, Token, TokenPerSecond
from headway.laws.scaling.power_laws import SIX_FLOP, root

BILL = "derived: least 6 N (D + eta R + kappa D_served / 3) at fixed loss"
SMALLEST: Number = 1e-30  # of a loss due to model size: below it no size suffices


@formula(source=BILL + ": pre-training = beta y / (alpha u) of the bill")
def best_training_share(size: Number, data: Number, alpha: Number, beta: Number) -> Number:
    """Share of pre-training in the bill at the optimum, whatever is served.

    >>> best_training_share(0.08, 0.02, 0.4, 0.4)
    0.25
    """
    return beta * data / (alpha * size)


@formula(source=BILL + ": D / D_chin = (bill / pre-training)^(1 / beta)")
def over_training_of_bill(bill: Number, beta: Number) -> Number:
    """Over-training, in Chinchilla tokens, justified by a bill relative to pre-training (equal thirds, Epoch's fit: 20).

    >>> round(over_training_of_bill(3, 0.366), 1)
    20.1
    """
    return bill ** (1 / beta)


@formula(source=BILL + ": (D / D_chin)^beta = (D (1 + eta r) + K) / D")
def best_tokens(chinchilla: Token, serving: Token, rl_share: Number, beta: Number) -> Token:
    """Tokens at which a model of this size is the cheapest of its quality; `rl_share` is eta times RL tokens per token.

    >>> round(float(best_tokens(1.807e12, 200e12, 0, 0.366)) / 1e12)  # 100B, Epoch's fit, kappa 3
    71
    """
    start, load = np.log(chinchilla / ONE_TOKEN), serving / ONE_TOKEN
    return ONE_TOKEN * np.exp(root(lambda x: beta * (x - start) - np.log(1 + rl_share + load * np.exp(-x))))


@formula(source=BILL + ", backwards: K = D ((D / D_chin)^beta - 1 - eta r)")
def justified_serving(tokens: Token, chinchilla: Token, rl_share: Number, beta: Number) -> Token:
    """Serving, in pre-training tokens of equal cost, at which `tokens` is the best number; below zero where none is.

    >>> round(justified_serving(71e12, 1.807e12, 0, 0.366) / 1e12)
    201
    """
    return tokens * ((tokens / chinchilla) ** beta - 1 - rl_share)


@formula(source="the loss of Hoffmann et al. 2022 (arXiv:2203.15556), equation 2")
def left_to_size(loss: Number, irreducible: Number, data: Number) -> Number:
    """Part of the loss left to model size: below zero the data alone leave more, and no size suffices.

    >>> round(left_to_size(1.97286, 1.817, 0.07477), 4)
    0.0811
    """
    return loss - irreducible - data


@formula(source="the loss of Hoffmann et al. 2022 (arXiv:2203.15556), equation 2, solved for N")
def params_at_loss(loss: Number, irreducible: Number, data: Number, a: Number, alpha: Number) -> Number:
    """Parameters that reach a loss, given the part of the loss due to data.

    >>> round(float(params_at_loss(1.97286, 1.817, 0.07477, 482.006, 0.348)) / 1e9)
    70
    """
    return (a / np.maximum(loss - irreducible - data, SMALLEST)) ** (1 / alpha)


@formula(source=BILL + ": alpha (L - E - y) D = beta y (D + K)")
def cheapest_tokens(loss: Number, irreducible: Number, b: Number, alpha: Number, beta: Number, extra_tokens: Token) -> Token:
    """Tokens of the cheapest model of a quality at any size; `extra_tokens` cost as much as RL and serving.

    >>> round(float(cheapest_tokens(1.97286, 1.817, 2085.434, 0.348, 0.366, 1e13 / 3)) / 1e12, 2)  # 70B's quality, 10 T served
    3.74
    """
    above, load = alpha * (loss - irreducible), extra_tokens / ONE_TOKEN
    return ONE_TOKEN * np.exp(root(lambda x: above - b * np.exp(-beta * x) * (alpha + beta * (1 + load * np.exp(-x)))))


@formula(source="definition")
def regret(bill: Flop, least: Flop) -> Number:
    """Relative extra cost of a choice over the cheapest of equal quality.

    >>> round(float(regret(1.169, 1.0)), 3)
    0.169
    """
    return np.maximum(bill / least - 1, 0)  # rounding in the root may give less than the cheapest


@formula(source="definition")
def bill_saved(bill: Flop, least: Flop) -> Number:
    """Share of a bill that the cheapest model of equal quality saves (30B's quality, 5 T served: 16 %).

    >>> round(bill_saved(5.801e23, 4.856e23), 3)
    0.163
    """
    return 1 - least / bill


@formula(source="derivative of a x^p + b x^-q set to zero")
def least_at(rising: Number, falling: Number, p: Number, q: Number) -> Number:
    """Argument at which the sum of a rising and a falling power is least.

    >>> least_at(2, 8, 1, 1)
    2.0
    """
    return (q * falling / (p * rising)) ** (1 / (p + q))


LECTURE = "Reiner Pope, blackboard lecture, 01:18"
FORWARD: FlopPerToken = 2.0  # per parameter and token
THREE: Number = 3.0  # training pass equivalents per forward pass of serving
DAY: Second = 86400.0


@formula(source="definition")
def calendar_s(months: Number, days: Number) -> Second:
    """Time of a number of months of `days` days.

    >>> calendar_s(2, 30) / 86400
    60.0
    """
    return months * days * DAY


@formula(source=LECTURE + ": rate times time")
def served_tokens(rate: TokenPerSecond, time: Second, utilisation: Number, deployed: Number) -> Token:
    """Tokens that a model generates in its life: rate, mean utilisation, and the chance that it is deployed.

    >>> round(served_tokens(50e6, 2 * 30.4375 * 86400, 0.76, 1) / 1e12)
    200
    """
    return rate * time * utilisation * deployed


@formula(source="the same backwards")
def serving_rate(tokens: Token, time: Second, utilisation: Number, deployed: Number) -> TokenPerSecond:
    """Tokens per second of a served total.

    >>> round(serving_rate(200e12, 2 * 30.4375 * 86400, 0.76, 1) / 1e6)
    50
    """
    return tokens / (time * utilisation * deployed)


@formula(source=LECTURE + ": decoding at 30 % of training's MFU costs 1 / 0.3")
def serving_price(mfu: Number, price: Number) -> Number:
    """Kappa: price of a useful FLOP in serving over training; `mfu` and `price` are serving's over training's.

    >>> round(serving_price(0.3, 1), 2)
    3.33
    """
    return price / mfu


@formula(source=LECTURE + ", with the update at training's MFU: (2 rho + 6 phi) / 6")
def rl_token_price(mfu: Number, trained: Number) -> Number:
    """Eta: cost of an RL token, generated at decode MFU and trained on with share `trained`, over a pre-training token.

    >>> round(rl_token_price(0.3, 0), 2), round(rl_token_price(0.3, 0.25), 2), round(rl_token_price(0.3, 1), 2)
    (1.11, 1.36, 2.11)
    """
    return (FORWARD / mfu + SIX_FLOP * trained) / SIX_FLOP


@formula(source=LECTURE + ": alpha = (2 .. 6) / 6 / 0.3, all at decoding's MFU")
def decode_token_price(per_token: FlopPerToken, mfu: Number) -> Number:
    """Cost of a token generated at decode MFU over a pre-training token, at `per_token` FLOP per parameter.

    >>> round(decode_token_price(2, 0.3), 2), round(decode_token_price(6, 0.3), 2)
    (1.11, 3.33)
    """
    return per_token / SIX_FLOP / mfu


@formula(source=BILL)
def serving_in_training(served: Token, kappa: Number) -> Token:
    """Serving cost in pre-training tokens: the rule of thumb trains on equally many.

    >>> serving_in_training(200e12, 3) / 1e12
    200.0
    """
    return kappa * served / THREE


@formula(source=BILL + ", backwards")
def served_for(equivalent: Token, kappa: Number) -> Token:
    """Tokens served at the cost of `equivalent` pre-training tokens.

    >>> served_for(150e12, 3) / 1e12
    150.0
    """
    return THREE * equivalent / kappa


@formula(source=BILL)
def life_flop(params: Number, tokens: Token, rl: Token, serving: Token) -> Flop:
    """Whole bill in training FLOP; RL and serving in pre-training tokens of equal cost.

    >>> f"{life_flop(100e9, 150e12, 151e12, 150e12):.3g}"
    '2.71e+26'
    """
    return SIX_FLOP * params * (tokens + rl + serving)


@formula(source="definition")
def share_of_bill(part: Token, tokens: Token, rl: Token, serving: Token) -> Number:
    """Share of one part in the whole bill.

    >>> round(share_of_bill(150e12, 150e12, 151e12, 150e12), 2)
    0.33
    """
    return part / (tokens + rl + serving)
