"""The loss of a model by a fit, its data repeated or its formats narrow where that was asked; and Chinchilla's split by a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.laws import few_bits
from headway.laws import scaling as laws
from headway.laws import scaling_repeated as repeated
from headway.laws.sums import times
from headway.scaling.fits import ScalingFit, bits, decay


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A loss and its parts; what size and data are worth where that is less than they are."""

    total: Any
    size: Any
    data: Any
    tokens_worth: Any = None
    params_worth: Any = None


def loss(fit: ScalingFit, active: Any, tokens: Any, unique: Any = None, narrow: dict[str, Any] | None = None) -> Loss:
    """The loss of so many parameters and tokens, of which only `unique` are new, with formats of so many bits."""
    by, worth_n, worth_d = fit.by, None, None
    if narrow:
        worth_n = active
        for part, count in narrow.items():
            worth_n = times(worth_n, few_bits.precision_share(count, getattr(bits(), part)))
    if unique is not None:
        size = active if worth_n is None else worth_n
        worth_n = repeated.effective_amount(size, fed(fit, unique), decay().size)
        worth_d = repeated.effective_amount(tokens, unique, decay().data)
    u = laws.size_loss(active if worth_n is None else worth_n, by.a, by.alpha)
    y = laws.data_loss(tokens if worth_d is None else worth_d, by.b, by.beta)
    return Loss(total=laws.scaling_loss(by.irreducible, u, y), size=u, data=y, tokens_worth=worth_d, params_worth=worth_n)


def rounded(active: Any, tokens: Any, count: Any) -> Any:
    """Loss that rounding the weights to so many bits after training adds."""
    by = bits()
    return few_bits.quantised_loss(count, active, tokens, by.post_factor, by.post_bits, by.post_data, by.post_size)


def split(fit: ScalingFit) -> Any:
    """How a budget leans to parameters."""
    by = fit.by
    return laws.split_factor(by.a, by.b, by.alpha, by.beta)


def fed(fit: ScalingFit, unique: Any) -> Any:
    """Parameters that unique tokens feed."""
    return repeated.params_fed(unique, split(fit), fit.by.alpha, fit.by.beta)


def optimal_params(fit: ScalingFit, flop: Any, unique: Any = None) -> Any:
    """The best size for a budget; with data that repeats where it runs out."""
    by = fit.by
    if unique is None:
        return laws.optimal_params(flop, split(fit), laws.size_exponent(by.alpha, by.beta))
    decays = decay()
    return repeated.repeated_params(flop, unique, fed(fit, unique), by.a, by.b, by.alpha, by.beta, decays.size, decays.data)


def chinchilla_tokens(fit: ScalingFit, active: Any) -> Any:
    """The best tokens of a size when nothing is served."""
    by = fit.by
    return laws.chinchilla_tokens(active, by.a, by.b, by.alpha, by.beta)


def chinchilla_params(fit: ScalingFit, tokens: Any) -> Any:
    """The best size of so many tokens when nothing is served."""
    by = fit.by
    return laws.chinchilla_params(tokens, by.a, by.b, by.alpha, by.beta)
