"""Inputs of `scale` as records, one flag per field: budget or model, serving, reinforcement learning, experts, bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.core.schema import RARE, Field
from headway.core.units import show
from headway.training.scaling.fits import lecture_assumptions

MOST_FLOP, MOST_PARAMS, MOST_TOKENS = 1e30, 1e17, 1e20


def _usual(name: str, help: str, **rest: Any) -> Field:
    """A flag whose default is a fact of the lecture."""
    value = lecture_assumptions()[name]
    return Field(value.unit, help=f"{help} (default {show(value, value.unit, 6)})", **rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Compute, size and data: given one, the best split follows; given two, the third follows."""

    flop: Annotated[Any, Field("flop", low=1e9, high=MOST_FLOP, help="compute of the training run")] = None
    active: Annotated[Any, Field(low=1, high=MOST_PARAMS, help="active parameters")] = None
    tokens: Annotated[Any, Field("token", low=1, high=MOST_TOKENS, help="tokens that it is trained on")] = None
    tokens_unique: Annotated[Any, Field("token", low=1, high=MOST_TOKENS, help="tokens there are: beyond them data is repeated")] = None
    quality: Annotated[
        Any,
        Field(low=1, high=MOST_PARAMS, help="instead of --active: the loss of a Chinchilla model of so many parameters (or with --tokens)"),
    ] = None
    tokens_per_param: Annotated[Any, _usual("tokens_per_param", "tokens per parameter that count as not over-trained"), RARE] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTokens:
    """Tokens served over a model's life, and their price relative to training."""

    serve: Annotated[Any, Field("token/s", high=1e18, help="tokens served per second")] = None
    months: Annotated[Any, Field(high=1e5, help="months of serving at that rate")] = None
    served: Annotated[Any, Field("token", high=MOST_TOKENS, help="tokens served in all, instead of --serve and --months")] = None
    month_days: Annotated[Any, _usual("month_days", "days of a month", high=366), RARE] = None
    utilisation: Annotated[Any, _usual("utilisation", "average of the rate over the rate", high=1)] = None
    deployed: Annotated[Any, _usual("deployed", "probability that the model is deployed at all", high=1), RARE] = None
    serve_mfu: Annotated[Any, _usual("serve_mfu", "MFU of serving over that of training", high=1e3), RARE] = None
    serve_price: Annotated[Any, _usual("serve_price", "price of a chip in serving over one in training", high=1e6), RARE] = None
    kappa: Annotated[Any, Field(high=1e6, help="price of a useful FLOP, serving over training (default serve_price / serve_mfu)"), RARE] = (
        None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReinforcementLearning:
    """Reinforcement learning after pre-training."""

    rl: Annotated[Any, Field(open_low=False, high=1e6, help="RL tokens per pre-training token (default 0: none)")] = None
    rl_mfu: Annotated[Any, _usual("rl_mfu", "MFU of generating RL's tokens over that of training", high=1e3), RARE] = None
    rl_trained: Annotated[Any, _usual("rl_trained", "share of generated tokens that are trained on", open_low=False, high=1), RARE] = None
    eta: Annotated[
        Any, Field(high=1e6, help="cost of an RL token over a pre-training token (default (2 / rl_mfu + 6 rl_trained) / 6)"), RARE
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Routed experts of a model."""

    experts: Annotated[Any, Field(integer=True, low=1, open_low=False, high=1e7, help="routed experts of a layer")] = None
    total: Annotated[Any, Field(low=1, high=MOST_PARAMS, help="all parameters, instead of --experts")] = None
    per_token: Annotated[Any, Field(integer=True, low=1, open_low=False, high=1e6, help="experts that a token uses")] = 1
    granularity: Annotated[Any, Field(low=1, open_low=False, high=1e4, help="fineness of experts, of Ling's law (default 12)"), RARE] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FewBits:
    """Bits of the formats that a model is trained in; the law behind them is uncertain."""

    weight_bits: Annotated[Any, Field(high=64, help="bits of weights in training")] = None
    activation_bits: Annotated[Any, Field(high=64, help="bits of activations in training"), RARE] = None
    kv_bits: Annotated[Any, Field(high=64, help="bits of the KV cache in training")] = None
    post_bits: Annotated[Any, Field(high=64, help="bits that the weights are rounded to after training"), RARE] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """Draws of the coefficients that give intervals: number, seed and correlation."""

    correlation: Annotated[
        Any, Field(open_low=False, high=0.9999, help="of log A with alpha and of log B with beta (only errors are published)"), RARE
    ] = 0.0
    draws: Annotated[
        Any, Field(integer=True, low=20, open_low=False, high=100_000, help="draws of the coefficients; 90 % of them lie within"), RARE
    ] = 4000
    seed: Annotated[Any, Field(integer=True, open_low=False, high=2**32 - 1, help="seed of the draws")] = 0


RECORDS = (Budget, ServedTokens, ReinforcementLearning, Routing, FewBits)
