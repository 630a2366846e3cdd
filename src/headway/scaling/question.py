"""Which question a set of flags asks, and whether it is one that can be answered."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from headway.errors import BadValue, UnknownName
from headway.scaling import experts
from headway.scaling.answer import RULE, Asked
from headway.scaling.ask import Doubt
from headway.scaling.fits import DEFAULT, Fit, fit, fits
from headway.units import show

MOST_POINTS = 1000
EXAMPLES = "--flop 1e25, --active 100B --serve 50M/s --months 2, or --moe --active 30B --experts 64"
LIFE = ("serve", "months", "served", "month_days", "utilisation", "deployed", "serve_mfu", "serve_price", "kappa", "rl", "rl_mfu",
        "rl_trained", "eta")  # fmt: skip
OWN = {
    "split": (),
    "given": LIFE,
    "life": LIFE,
    "quality": LIFE,
    "experts": ("experts", "total", "per_token", "granularity"),
}
BITS = ("weight_bits", "activation_bits", "kv_bits", "post_bits")
ALWAYS = ("flop", "active", "tokens", "quality", "tokens_per_param")


def question(given: Mapping[str, Any], doubt: Doubt, law: str | None, beside: str, moe: bool) -> tuple[Asked, tuple[str, ...]]:
    """The question that flags ask, lists as points; and what of them it does not use."""
    mode = _mode(given, moe)
    axes = {key: value if isinstance(value, tuple) else (value,) for key, value in given.items()}
    if (count := _product(axes)) > MOST_POINTS:
        raise BadValue("scale", f"{count} points", f"at most {MOST_POINTS}")
    points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    for one in points:
        _possible(one)
    answering, others = _laws(mode, law, beside)
    used = {
        *ALWAYS,
        *OWN[mode],
        *(BITS if mode in ("split", "given") else ()),
        *(() if mode in ("quality", "experts") else ("tokens_unique",)),
    }
    idle = [f"--{key.replace('_', '-')}" for key in given if key not in used]
    notes = (f"not used in this question: {', '.join(idle)}",) if idle else ()
    varied = tuple(key for key, values in axes.items() if len(values) > 1)
    return Asked(mode=mode, points=points, laws=answering, beside=others, doubt=doubt, varied=varied), notes


def _product(axes: Mapping[str, Sequence[Any]]) -> int:
    count = 1
    for values in axes.values():
        count *= len(values)
    return count


def _mode(given: Mapping[str, Any], moe: bool) -> str:
    """Which question: every flag that is missing or too many is named."""
    if moe or "experts" in given or "total" in given:
        return _experts(given)
    if "served" in given and "serve" in given:
        raise BadValue("scale", "--serve and --served", "one of them")
    if "serve" in given and "months" not in given:
        raise BadValue("--serve", "a rate", "how long too: --months 2")
    serves = "served" in given or "serve" in given
    if "quality" in given:
        if "active" in given or "flop" in given or not serves:
            raise BadValue("--quality", "a quality", "what is served, such as --served 5T, and no --active or --flop: the size is free")
        return "quality"
    if serves:
        if "active" not in given or "flop" in given:
            raise BadValue("scale", "what is served", "a size too and no --flop: --active 100B, or --quality 70B where the size is free")
        return "life"
    known = [key for key in ("flop", "active", "tokens") if key in given]
    if len(known) == 3:
        raise BadValue("scale", "--flop, --active and --tokens", "two of them: the third follows")
    if not known:
        raise BadValue("scale", "no budget, size or tokens", EXAMPLES)
    if "tokens_unique" in given and len(known) == 1 and known != ["flop"]:
        raise BadValue("--tokens-unique", "unique tokens", "a budget, or size and tokens: --flop 1e25, or --active 9B --tokens 900B")
    return "given" if len(known) == 2 else "split"


def _experts(given: Mapping[str, Any]) -> str:
    if "active" not in given:
        raise BadValue("--moe", "no size", "the active parameters: --active 30B")
    if ("experts" in given) == ("total" in given):
        raise BadValue("--moe", "experts", "either their number, --experts 64..512*2, or all parameters, --total 600B")
    if "flop" in given and "tokens" in given:
        raise BadValue("--moe", "--flop and --tokens", "one of them")
    return "experts"


def _possible(one: Mapping[str, Any]) -> None:
    """What no single flag can know is wrong."""
    if "total" in one and one["active"] > one["total"]:
        raise BadValue("--active", show(one["active"], ""), f"at most the total, {show(one['total'], '')}")
    if "experts" in one and one.get("per_token", 1) > one["experts"]:
        raise BadValue("--per-token", one["per_token"], f"at most the experts, {one['experts']}")


def _laws(mode: str, law: str | None, beside: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The laws that answer, and those that are shown beside them."""
    if mode == "experts":
        return _routed(law), ()
    named = tuple(dict.fromkeys(fit(name).name for name in (law or DEFAULT).split(",")))
    for name in named:
        _splits(fit(name), mode)
    if beside == "none":
        return named, ()
    others = [one.name for one in fits().values() if not one.rounded] if beside == "all" else [fit(name).name for name in beside.split(",")]
    for name in others:
        _splits(fit(name), mode)
    rule = (RULE,) if mode == "split" and beside == "all" else ()
    return named, (*(name for name in dict.fromkeys(others) if name not in named), *rule)


def _routed(law: str | None) -> tuple[str, ...]:
    if law is None:
        return experts.names()
    named = tuple(dict.fromkeys(name.strip().lower().replace("_", "-") for name in law.split(",")))
    for name in named:
        if name not in experts.names():
            raise UnknownName("law of experts", name, experts.names(), "one of " + ", ".join(experts.names()))
    return named


def _splits(one: Fit, mode: str) -> None:
    """BadValue where a fit has too few digits for what is asked."""
    if one.rounded and mode != "given":
        wants = f"its digits in full, --law {one.rounded}: at 5.76e23 FLOP rounding alone moves tokens per parameter from 59 to 93"
        raise BadValue("--law", one.name, wants)
