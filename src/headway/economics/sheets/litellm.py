"""Price sheets from litellm's model_prices_and_context_window.json, by path. Its entries have no date; a cache write at 0 is no fee."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.economics.sheets.schema import SheetMatches, read_all, tiers_of

MTOK = 1e6
CHAT = ("chat", "responses", "completion")
# A rate's key, optionally followed by a time to live, a threshold and a mode; threshold and mode come in either order.
KEY = re.compile(
    r"(input_cost_per_token|output_cost_per_token|cache_read_input_token_cost|cache_creation_input_token_cost)"
    r"(?:_above_(\d+)hr)?(?P<early>_[a-z]+)??(?:_above_(\d+)k_tokens)?(?P<late>_[a-z]+)?"
)
NAMES = {"input_cost_per_token": "input", "output_cost_per_token": "output", "cache_read_input_token_cost": "cache_read"}
MODES = {"batches": "batch", "flex": "flex", "priority": "priority", "fast": "fast", "ultrafast": "ultrafast", "balanced": "balanced"}
INCLUSIVE = ("xai",)  # these providers charge the higher rate at the threshold too
WRITE, LONG = "cache_creation_input_token_cost", "cache_creation_input_token_cost_above_1hr"  # first: 5 min if both
MONDAY = 1


def sheets_of(document: Mapping[str, Any], path: Path) -> SheetMatches:
    """One sheet for each priced chat model."""
    documents, left_out = [], Counter[str]()
    for name, entry in document.items():
        if not isinstance(entry, Mapping) or name in ("sample_spec", "fallback_generalizations"):
            continue
        if entry.get("mode", "chat") not in CHAT:
            left_out["that do not chat"] += 1
        elif sheet_document := _document(name, {key: value for key, value in entry.items() if not (key.startswith(WRITE) and value == 0)}):
            documents.append(sheet_document)
        else:
            left_out["without prices of tokens"] += 1
    return read_all(documents, path, left_out)


def _document(name: str, entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """An entry as a document of the project's schema, or None."""
    provider = str(entry.get("litellm_provider", "unknown"))
    modes = _modes(entry, provider in INCLUSIVE)
    usual = modes.pop("standard", {}) or _tiered_rates(entry)
    if "input" not in usual.get(0, {}) or "output" not in usual[0]:
        return None
    document: dict[str, Any] = {
        "currency": "USD", "provider": provider, "model": name.removeprefix(provider + "/"), "as_of": "undated",
        "source": f"litellm price JSON ({entry.get('source') or 'no source stated'})", "rates": dict(usual[0]), "tiers": tiers_of(usual),
    }  # fmt: skip
    priced = {mode: steps for mode, steps in modes.items() if "input" in steps.get(0, {}) or "output" in steps.get(0, {})}
    document |= _off_peak(entry)
    document["modes"] = {mode: {"rates": dict(steps[0]), "tiers": tiers_of(steps)} for mode, steps in priced.items()}
    limit = entry.get("max_input_tokens")
    if isinstance(limit, int | float) and not isinstance(limit, bool) and limit > 0:
        document["context_limit"] = float(limit)
    if entry.get("prompt_cache_min_tokens") is not None:
        document["min_prefix"] = entry["prompt_cache_min_tokens"]
    return document


def _modes(entry: Mapping[str, Any], inclusive: bool) -> dict[str, dict[float, dict[str, Any]]]:
    """Rates in USD per Mtok by mode and threshold."""
    rates_by_mode: dict[str, dict[float, dict[str, Any]]] = {}
    for key, value in entry.items():
        match = KEY.fullmatch(key)
        if not match or value is None:
            continue
        words = (match["early"] or match["late"] or "").removeprefix("_")
        if words and words not in MODES:
            continue
        above = float(match[4]) * 1000 - inclusive if match[4] else 0.0
        rates = rates_by_mode.setdefault(MODES.get(words, "standard"), {}).setdefault(above, {})
        if match[1] in NAMES:
            rates[NAMES[match[1]]] = _mtok(value)
        else:
            default = "5min" if LONG in entry else "default"
            rates.setdefault("cache_write", {})[f"{match[2]}h" if match[2] else default] = _mtok(value)
    return rates_by_mode if "standard" in rates_by_mode and 0.0 in rates_by_mode["standard"] else {}


def _tiered_rates(entry: Mapping[str, Any]) -> dict[float, dict[str, Any]]:
    """Rates by threshold in tokens, from a list of ranges."""
    tiers = entry.get("tiered_pricing")
    steps: dict[float, dict[str, Any]] = {}
    for tier in tiers if isinstance(tiers, list) else ():
        start = tier.get("range", [None])[0] if isinstance(tier, Mapping) else None
        if isinstance(start, int | float):
            steps[float(start)] = {NAMES[key]: _mtok(tier[key]) for key in NAMES if tier.get(key) is not None}
    return steps


def _off_peak(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Off-peak hours of a working day with their rates; hours of other days are dropped with a note."""
    about = entry.get("off_peak_pricing")
    if not isinstance(about, Mapping) or not isinstance(about.get("windows"), list):
        return {}
    rates = {NAMES[key]: _mtok(about[key]) for key in NAMES if about.get(key) is not None}
    hours: list[str] = []
    has_other_days = False
    for window in about["windows"]:
        utc_hours = window.get("hours_utc") if isinstance(window, Mapping) else None
        if utc_hours is not None and MONDAY in window.get("weekdays", [MONDAY]):
            hours += utc_hours if isinstance(utc_hours, list) else [utc_hours]
        else:
            has_other_days = True
    notes = ["hours of a working day; other days are off-peak for longer and not computed"] if has_other_days else []
    return {"time_of_day": [{"utc": utc, "rates": rates} for utc in hours], "notes": notes}


def _mtok(value: Any) -> Any:
    """USD per token as USD per million tokens; a value that is no number passes on for the schema to refuse."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(f"{value * MTOK:.12g}") if number else value
