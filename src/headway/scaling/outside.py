"""Whether a row lies where its law was fitted, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.scaling.fits import Range, clark
from headway.units import show

DENSE = (("active", "params", "N", ""), ("tokens", "tokens", "D", "token"), ("tokens_per_param", "ratio", "D/N", ""))


def dense(row: Mapping[str, Any], fitted: Range, names: tuple[str, ...] = ("active", "tokens", "tokens_per_param")) -> tuple[bool, str]:
    """Whether size, data and their ratio are within what was fitted, and which are not."""
    sentences = []
    for key, stem, symbol, unit in DENSE:
        if key in names and row.get(key) is not None:
            sentences += _beyond(row[key], symbol, unit, getattr(fitted, f"{stem}_low"), getattr(fitted, f"{stem}_high"))
    return not sentences, "; ".join(sentences)


def routed(row: Mapping[str, Any], per_token: float) -> tuple[bool, str]:
    """The same of Clark's law: size, experts, and one expert per token."""
    fitted = clark()
    sentences = _beyond(row["active"], "N", "", fitted["params_low"], fitted["params_high"])
    sentences += _beyond(row["experts"], "experts", "", None, fitted["experts_high"])
    if per_token > 1:
        sentences.append(f"{per_token:g} experts per token, fitted with 1")
    return not sentences, "; ".join(sentences)


def _beyond(value: float, symbol: str, unit: str, low: Any, high: Any) -> list[str]:
    if high is not None and value > high:
        return [f"{symbol} {value / high:,.3g}x above {show(high, unit)}"]
    if low is not None and value < low:
        return [f"{symbol} {low / value:,.3g}x below {show(low, unit)}"]
    return []
