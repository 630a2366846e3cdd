"""Chips of one host: the server or compute tray that one process of an engine can reach without the network."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any

from headway.core.catalog import fold
from headway.core.quantity import known
from headway.hardware.system import System

MOST = 8  # chips of a scale-up domain that is one server where no fact says otherwise


@functools.cache
def host_facts() -> dict[str, Any]:
    """Chips per host of each chip whose scale-up domain spans several hosts."""
    import tomllib

    document = tomllib.loads(files("headway").joinpath("data/hosts.toml").read_text(encoding="utf-8"))
    sources = document["sources"]
    return {
        name: known(row["value"], f"{name}.chips_per_host", "", "datasheet", sources[row["source"]], row["date"])
        for name, row in document["chips"].items()
    }


def chips_per_host(system: System) -> Any:
    """Chips of one host of a system: a fact, else a scale-up domain of at most 8 chips, else None."""
    fact = host_facts().get(fold(system.chip.name).replace("-", "_"))
    domain = system.scale_up_domain
    if fact is not None:
        return fact
    return domain if domain is not None and domain <= MOST else None
