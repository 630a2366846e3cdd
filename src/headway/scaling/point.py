"""One point of a question: every number that may be given, scalar or array, the assumptions filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.laws.life_cycle import calendar_s, rl_token_price, served_tokens, serving_price
from headway.laws.sums import times
from headway.quantity import default
from headway.scaling.fits import lecture_assumptions

NOTHING = default(0, "rl", "", "no reinforcement learning unless --rl says so")
ONE_EXPERT = default(1, "per_token", "", "default of --per-token")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """What was given, and what follows from it whatever the law; None where nothing was said."""

    flop: Any = None
    active: Any = None
    tokens: Any = None
    unique: Any = None
    quality: Any = None
    ratio: Any  # tokens per parameter that count as Chinchilla's
    time: Any = None  # of serving, seconds
    served: Any = None  # tokens, the chance of deployment taken off
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
    bits: Mapping[str, Any]  # of weights, activations, kv
    post_bits: Any = None


def point(flags: Mapping[str, Any]) -> ScalingPoint:
    """A point from the flags that were given, by name."""
    usual = {**lecture_assumptions(), **flags}
    time = None if "months" not in flags else calendar_s(flags["months"], usual["month_days"])
    kappa = flags["kappa"] if "kappa" in flags else serving_price(usual["serve_mfu"], usual["serve_price"])
    eta = flags["eta"] if "eta" in flags else rl_token_price(usual["rl_mfu"], usual["rl_trained"])
    rl = flags.get("rl", NOTHING)
    return ScalingPoint(
        flop=flags.get("flop"), active=flags.get("active"), tokens=flags.get("tokens"), unique=flags.get("tokens_unique"),
        quality=flags.get("quality"), ratio=usual["tokens_per_param"], time=time, served=_served(flags, usual, time),
        utilisation=usual["utilisation"], deployed=usual["deployed"], kappa=kappa, rl=rl, eta=eta, rl_share=times(eta, rl),
        experts=flags.get("experts"), total=flags.get("total"), per_token=flags.get("per_token", ONE_EXPERT),
        granularity=flags.get("granularity"), post_bits=flags.get("post_bits"),
        bits={part: flags[f"{name}_bits"] for part, name in (("weights", "weight"), ("activations", "activation"), ("kv", "kv"))
              if f"{name}_bits" in flags},
    )  # fmt: skip


def _served(flags: Mapping[str, Any], usual: Mapping[str, Any], time: Any) -> Any:
    if "served" in flags:
        return times(flags["served"], usual["deployed"])
    if "serve" not in flags or time is None:
        return None
    return served_tokens(flags["serve"], time, usual["utilisation"], usual["deployed"])
