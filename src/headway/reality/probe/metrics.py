"""What a server says of itself: its models at /v1/models, and its load at /metrics, by the names that each engine uses."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.core.catalog import lines
from headway.reality.probe.http import ProbeFault, ProbeTarget, get

MOST_NAME = 200  # letters of a model's name
SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{[^\n]*\})?[ \t]+(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLoad:
    """A server's own counts at one moment; None for what it does not say."""

    engine: str
    running: float | None = None
    waiting: float | None = None
    kv_used: float | None = None
    preemptions: float | None = None


@functools.cache
def names() -> Mapping[str, tuple[str, str]]:
    """Engine and quantity of each name."""
    return {line["name"]: (line["engine"], line["quantity"]) for line in lines("server_metrics.csv")}


def load_of(text: str) -> ServerLoad | None:
    """The load that a page of metrics states, summed over its labels (the KV share: the fullest); None without a known name.

    >>> load_of('vllm:num_requests_running{model="m"} 3.0\\nvllm:kv_cache_usage_perc{model="m"} 0.25').running
    3.0
    """
    values: dict[str, list[float]] = {}
    engine = ""
    for match in SAMPLE.finditer(text):
        if match[1] not in names():
            continue
        engine, quantity = names()[match[1]]
        try:
            value = float(match[2])
        except ValueError:
            continue
        if math.isfinite(value) and value >= 0:
            values.setdefault(quantity, []).append(value)
    if not values:
        return None
    return ServerLoad(engine=engine, **{name: (max if name == "kv_used" else sum)(amounts) for name, amounts in values.items()})


async def server_load(target: ProbeTarget) -> ServerLoad | None:
    """The load that the server states now, None where it states none."""
    try:
        return load_of((await get(target, "/metrics")).decode("utf-8", "replace"))
    except ProbeFault:
        return None


async def server_models(target: ProbeTarget) -> list[str]:
    """Names of the models that the server has; empty where it lists none. A name that cannot be printed and stored as it is, is no name."""
    try:
        value: Any = json.loads(await get(target, "/v1/models"))
        entries = value.get("data", []) if isinstance(value, dict) else []
        ids = [entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str) and entry["id"]]
    except (ValueError, RecursionError, TypeError):
        return []
    names = [name for name in ids if len(name) <= MOST_NAME and name.isprintable() and target.secrets.hidden(name) == name]
    if ids and not names:
        raise ProbeFault("lists only models whose names are long, not printable or hold a header's value: --served-model names one", 200)
    return names
