"""One point of a question: every number that may be given, scalar or array, the assumptions filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.laws.life_cycle import calendar_s, rl_token_price, served_tokens, serving_price
from headway.laws.sums import times
from headway.quantity import default
from headway.scaling.fits import assumed

NOTHING = default(0, "rl", "", "no reinforcement learning unless --rl says so")
ONE_EXPERT = default(1, "per_token", "", "default of --per-token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
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


def point(given: Mapping[str, Any]) -> Point:
    """A point from the flags that were given, by name."""
    usual = {**assumed(), **given}
    time = None if "months" not in given else calendar_s(given["months"], usual["month_days"])
    kappa = given["kappa"] if "kappa" in given else serving_price(usual["serve_mfu"], usual["serve_price"])
    eta = given["eta"] if "eta" in given else rl_token_price(usual["rl_mfu"], usual["rl_trained"])
    rl = given.get("rl", NOTHING)
    return Point(
        flop=given.get("flop"), active=given.get("active"), tokens=given.get("tokens"), unique=given.get("tokens_unique"),
        quality=given.get("quality"), ratio=usual["tokens_per_param"], time=time, served=_served(given, usual, time),
        utilisation=usual["utilisation"], deployed=usual["deployed"], kappa=kappa, rl=rl, eta=eta, rl_share=times(eta, rl),
        experts=given.get("experts"), total=given.get("total"), per_token=given.get("per_token", ONE_EXPERT),
        granularity=given.get("granularity"), post_bits=given.get("post_bits"),
        bits={part: given[f"{name}_bits"] for part, name in (("weights", "weight"), ("activations", "activation"), ("kv", "kv"))
              if f"{name}_bits" in given},
    )  # fmt: skip


def _served(given: Mapping[str, Any], usual: Mapping[str, Any], time: Any) -> Any:
    if "served" in given:
        return times(given["served"], usual["deployed"])
    if "serve" not in given or time is None:
        return None
    return served_tokens(given["serve"], time, usual["utilisation"], usual["deployed"])
