"""Rows that state a rate of arrivals: their times as of a server that carried it, with ends that the laws give.

Near the capacity a step that is a little slower makes a batch, and so a TPOT, that is much larger: a factor on the expected time
is no interval there. A rate beyond the predicted capacity was carried all the same, as it was published, so the steps were faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.evidence.serving.machines import MeasuredLoad, Quantities, rows, run_servers
from headway.laws.queueing.carried import END, carried_step, step_deviations
from headway.performance import request
from headway.performance.request import Requests, Server

SHARES = (0.5, 0.05, 0.95)  # quantiles: expected, and the ends of a 90 % interval
BEYOND = "rate_req_s: {:.3g} times the predicted capacity, beyond its interval: taken as carried, by steps as fast"
IMPOSSIBLE = "rate_req_s: {:.3g} times the predicted capacity, more than the datasheet allows: not carried, with every seat taken"


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedRates:
    """Expected quantities, their halves of the interval as factors, and a flag per row ("" for none)."""

    expected: Quantities
    faster: Quantities
    slower: Quantities
    flags: tuple[str, ...]


def carried(
    m: Server, load: MeasuredLoad, expected: Quantities, floor: Quantities, faster: Quantities, slower: Quantities
) -> CarriedRates:
    """The quantities of served rows, of which those with a rate are conditioned on its having been carried.

    A rate for which steps would have to be faster than the floor was not: its row stays one of every seat taken.
    """
    flags = [""] * len(load.rate)
    at = np.flatnonzero(~np.isnan(load.rate))
    if not len(at):
        return CarriedRates(expected=expected, faster=faster, slower=slower, flags=tuple(flags))
    arrivals, server = rows(load, at), rows(run_servers(m, load), at).online()
    requests = Requests(prompt=arrivals.prompt, output=arrivals.output, spread=arrivals.spread)
    rate, ends = arrivals.rate / server.replicas, (faster.tpot[at], slower.tpot[at])
    capacity = request.capacity(server, requests)
    ttft, tpot = _times(server, requests, rate, [carried_step(share, rate, capacity, *ends) for share in SHARES])
    is_beyond = step_deviations(capacity / rate, *ends) < -END
    full = np.where(is_beyond, expected.tpot[at] * slower.tpot[at] / tpot[0], 1.0)  # if it was not carried: every seat taken
    waits = np.where(is_beyond, expected.ttft[at] * slower.ttft[at] / ttft[0], 1.0)
    is_possible = tpot[0] >= floor.tpot[at]
    for index in np.flatnonzero(is_beyond):
        flags[at[index]] = (BEYOND if is_possible[index] else IMPOSSIBLE).format(float(rate[index] / capacity[index]))
    tokens = arrivals.rate * arrivals.output
    times = {"ttft": ttft[0], "tpot": tpot[0], "rate": tokens, "per_chip": tokens / server.chips}
    low = {"ttft": np.maximum(faster.ttft[at], ttft[0] / ttft[1]), "tpot": tpot[0] / tpot[1]}
    high = {"ttft": np.fmax(np.maximum(slower.ttft[at], ttft[2] / ttft[0]), waits), "tpot": np.fmax(tpot[2] / tpot[0], full)}
    changes = ((expected, times), (faster, low), (slower, high))
    parts = (_put(quantities, at[is_possible], is_possible, values) for quantities, values in changes)
    return CarriedRates(**dict(zip(("expected", "faster", "slower"), parts, strict=True)), flags=tuple(flags))


def _times(server: Server, requests: Requests, rate: Any, steps: list[Any]) -> tuple[Any, Any]:
    """TTFT and TPOT at a rate with all times so many times as long: a row for each of `steps`."""
    count, factor = len(rate), np.concatenate(steps)
    index = np.tile(np.arange(count), len(steps))
    times = request.open_loop(rows(server, index), rows(requests, index), rate[index] * factor)
    return (times.ttft * factor).reshape(-1, count), (times.tpot * factor).reshape(-1, count)


def _put(quantities: Quantities, at: Any, among: Any, values: Mapping[str, Any]) -> Quantities:
    """The quantities with other values of the rows `at`, those of `values` that are `among` (a mask)."""
    changed = {name: np.array(getattr(quantities, name), float) for name in values}
    for name, value in values.items():
        changed[name][at] = value[among]
    return replace(quantities, **changed)
