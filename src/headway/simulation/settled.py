"""Hits of a prefix cache once they have settled: the share that capacity and verdict count.

The first requests of a run hit unlike those of an endless load: an empty cache has dropped nothing yet, and conversations that have just
begun have few turns to find. So hits are counted over the second half of the time in which conversations begin, and have settled where its
two quarters agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.units import PerSecond, Second
from headway.simulation.capacity import Saturation, begins_end
from headway.simulation.simulate import SimulatedRun
from headway.simulation.traffic.requests import Ints, Mask, Traffic

DRIFT = 0.02  # most by which the hit share of one quarter may differ from that of the next
LONGER_PROMPTS = 0.05  # and their mean prompts, relatively: conversations whose turns still become more have not settled
FEW = 50  # requests of a quarter below which nothing is known
AT_EASE = 0.8  # load over the capacity without hits below which hits do not matter to the verdict
TIMES_LONGER = 4  # the next run, where hits have not settled
LONGEST = 10  # times as many requests has the longest such run, but no more than
MOST, PLAIN_MOST = 200_000, 20_000  # compiled and as plain Python
STOP_S, STOPS = 120.0, 4  # a stop after which a load is carried again or not, and how many of its length are played
MOST_PLAYED = 1_000_000  # requests of the longest run, a replay or after a stop; compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class LateHits:
    """Share of prompt tokens that a prefix cache found late in a run, and whether it still changed."""

    share: float
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Stability of a load, the share of hits that it counts, and the requests of the run that showed it."""

    standing: Saturation
    hits: float | None
    requests: int
    settled: bool = True
    without_hits: float | None = None  # requests per second that an empty cache carries, where the load is more
    recovers: bool | None = None  # whether such a load is carried again after `after_stop`; None where that was not played


def late_hits(run: SimulatedRun) -> LateHits | None:
    """Hits of the requests admitted in the second half of the time in which conversations begin; None without a prefix cache."""
    cached = run if run.prefill is None else run.prefill
    if not run.caches:
        return None
    is_offered = run.is_sent & ~run.refused
    first, last = run.sent_between(is_offered)[0], begins_end(run, is_offered)
    computed = np.asarray(cached.states[0].cache.expected)
    quarters = [
        (cached.scheduled >= first + begin * (last - first)) & (cached.scheduled <= first + end * (last - first))
        for begin, end in ((0.5, 0.75), (0.75, 1.0))
    ]
    if min(int(part.sum()) for part in quarters) < FEW:
        return LateHits(share=_share(run.traffic.prompt, computed, np.isfinite(cached.scheduled)), settled=False)
    earlier, later = (_share(run.traffic.prompt, computed, part) for part in quarters)
    before, after = (float(run.traffic.prompt[part].mean()) for part in quarters)
    settled = abs(later - earlier) <= DRIFT and abs(after - before) <= LONGER_PROMPTS * before
    return LateHits(share=_share(run.traffic.prompt, computed, quarters[0] | quarters[1]), settled=settled)


def stop(talk_s: Second, rate: PerSecond, is_plain: bool) -> tuple[float, int]:
    """Seconds of a stop, and how many requests are played after it: at least so many that hits which will be lost are lost in them.

    >>> stop(3000.0, 18.0, False), stop(12.0, 18.0, True)
    ((3000.0, 216000), (120.0, 20000))
    """
    least, most = (PLAIN_MOST, PLAIN_MOST) if is_plain else (MOST, MOST_PLAYED)
    stop_s = min(max(STOP_S, talk_s), most / rate / STOPS)
    return stop_s, max(least, int(STOPS * stop_s * rate))


def after_stop(traffic: Traffic, stop_s: float) -> Traffic:
    """The traffic as it meets replicas that stood still for so long: what came meanwhile is there at once, and caches are empty."""
    return replace(traffic, arrival=np.maximum(traffic.arrival - stop_s, 0.0))


def _share(prompt: Ints, computed: Any, only: Mask) -> float:
    """Share of the prompt tokens of some requests that were not computed."""
    tokens = float(prompt[only].sum())
    return 1.0 - float(computed[only].sum()) / tokens if tokens else 0.0
