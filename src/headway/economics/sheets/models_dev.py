"""Price sheets from models.dev's api.json, by path. A sheet's date is the entry's last change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.economics.sheets.schema import SheetMatches, read_all, tiers_of

RATES = ("input", "output", "cache_read", "cache_write")
OLD_THRESHOLD = 200_000.0  # tokens, for the key `context_over_200k`


def sheets_of(document: Mapping[str, Any], path: Path) -> SheetMatches:
    """One sheet for each model of each provider."""
    documents, left_out = [], Counter[str]()
    for provider, entry in document.items():
        models = entry.get("models") if isinstance(entry, Mapping) else None
        for name, model in (models if isinstance(models, Mapping) else {}).items():
            cost = model.get("cost") if isinstance(model, Mapping) else None
            if isinstance(cost, Mapping) and cost.get("input") is not None and cost.get("output") is not None:
                documents.append(_document(provider, name, model, cost))
            else:
                left_out["without prices of tokens"] += 1
    return read_all(documents, path, left_out)


def _document(provider: str, name: str, model: Mapping[str, Any], cost: Mapping[str, Any]) -> dict[str, Any]:
    """An entry as a document of the project's schema."""
    steps = _steps(cost)
    document: dict[str, Any] = {
        "currency": "USD", "provider": provider, "model": name, "as_of": str(model.get("last_updated") or "undated"),
        "source": "models.dev api.json", "rates": dict(steps[0]), "tiers": tiers_of(steps), "modes": _modes(model),
    }  # fmt: skip
    limit = model.get("limit")
    if isinstance(limit, Mapping) and limit.get("context"):
        document["context_limit"] = limit["context"]
    return document


def _steps(cost: Mapping[str, Any]) -> dict[float, dict[str, Any]]:
    """Rates by threshold in tokens, from the list of context tiers or the older single threshold."""
    steps = {0.0: _rates(cost)}
    for tier in cost.get("tiers") or ():
        about = tier.get("tier", {}) if isinstance(tier, Mapping) else {}
        if isinstance(about, Mapping) and about.get("type") == "context" and about.get("size"):
            steps[float(about["size"])] = _rates(tier)
    if len(steps) == 1 and isinstance(cost.get("context_over_200k"), Mapping):
        steps[OLD_THRESHOLD] = _rates(cost["context_over_200k"])
    return steps


def _modes(model: Mapping[str, Any]) -> dict[str, Any]:
    """The modes of an entry that have their own cost."""
    experimental = model.get("experimental")
    modes = experimental.get("modes") if isinstance(experimental, Mapping) else None
    mode_rates = {}
    for name, mode in (modes if isinstance(modes, Mapping) else {}).items():
        if isinstance(mode, Mapping) and isinstance(mode.get("cost"), Mapping) and _rates(mode["cost"]):
            steps = _steps(mode["cost"])
            mode_rates[name] = {"rates": dict(steps[0]), "tiers": tiers_of(steps)}
    return mode_rates


def _rates(cost: Mapping[str, Any]) -> dict[str, Any]:
    return {key: cost[key] for key in RATES if cost.get(key) is not None}
