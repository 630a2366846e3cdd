"""How many requests a play has, and in which form it runs: by the percentile asked for, the requests in flight and a bound on time.

Machine code simulates about a million requests a second and needs a second to load; plain Python a hundred times fewer. So plain Python
plays fewer requests, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.core.errors import BadValue
from headway.simulation.check.confidence import CLOSE
from headway.simulation.check.limits import LatencyLimit, check_requests, least_requests
from headway.simulation.compiled_loop import LOAD_S, STEP_S, is_ready
from headway.simulation.fleet import Fleet
from headway.simulation.run import LoadingPlan

COMPILED, PLAIN, AUTO = "compiled", "plain", "auto"
BEYOND, PLAIN_BEYOND = 400, 20  # requests beyond the highest limited percentile
LEAST, PLAIN_LEAST = 8_000, 800  # requests of a play at least
MOST, PLAIN_MOST = 60_000, 2_000  # and at most
LIFETIMES = 20  # mean times in service that a play lasts at least, so that filling and draining weigh little
PLAIN_CLOSE = 0.04  # width of the bracket around a confidence; the sampling error of so few requests is larger
PLAYS = 7  # plays of a candidate, about
PLAIN_REQUEST_S = 8e-5  # seconds of plain Python per request, about
FULL = 0.98  # share of what a replica holds from which it counts as full
ROUNDS = 30  # of the fixed point of requests in flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Form of the loop, and requests of a play."""

    how: str
    close: float  # width of the bracket around a confidence
    requests: int  # 0: as many as percentiles and requests in flight need
    is_short: bool = False  # plain Python, so fewer requests


def effort(
    limits: Sequence[LatencyLimit], how: str, requests: int | None, warmup: float, candidates: int = 1, meet: bool = False
) -> Effort:
    """The effort for plays of some candidates; `meet`: their replicas interact."""
    if how not in (AUTO, PLAIN, COMPILED):
        raise BadValue("--loop", how, f"{AUTO}, {PLAIN} or {COMPILED}")
    if requests is not None:
        check_requests(limits, requests, warmup)
    form = how
    if how == AUTO:
        takes_s = PLAYS * candidates * (requests or LEAST) * PLAIN_REQUEST_S
        form = COMPILED if is_ready(meet) and takes_s > LOAD_S + STEP_S * candidates else PLAIN
    close = CLOSE if form != PLAIN else PLAIN_CLOSE
    if requests is not None:
        return Effort(how=form, close=close, requests=requests)
    tail = min((1.0 - limit.percent / 100 for limit in limits if limit.percent is not None), default=1.0)
    beyond, least, most = (PLAIN_BEYOND, PLAIN_LEAST, PLAIN_MOST) if form == PLAIN else (BEYOND, LEAST, MOST)
    count = max(least, min(most, round(beyond / tail)), least_requests(limits, warmup))
    return Effort(how=form, close=close, requests=count, is_short=form == PLAIN)


def lifetimes(fleet: Fleet, load: LoadingPlan, work: Effort) -> int:
    """Requests that a play needs for LIFETIMES mean times in service, at most those that its form can play; 0 where no rate is given."""
    if load.rate is None or fleet.pace is None:
        return 0
    return min(round(LIFETIMES * in_flight(fleet, load)), PLAIN_MOST if work.how == PLAIN else MOST)


def in_flight(fleet: Fleet, load: LoadingPlan) -> float:
    """Requests in service at a rate, by Little's law at mean lengths; at most `most_in_flight`, where the rate is above the capacity."""
    if load.rate is None or fleet.pace is None:
        return float(load.users)
    running, prompt_tokens = _steady(fleet, load)
    return min(running + prompt_tokens / fleet.scheduler.rules.chunk, most_in_flight(fleet, load))


def _steady(fleet: Fleet, load: LoadingPlan) -> tuple[float, float]:
    """Sequences that decode and prompt tokens due in each step, in a steady state at mean lengths."""
    rules, rate, most, pace = fleet.scheduler.rules, float(load.rate or 0.0), most_in_flight(fleet, load), fleet.pace
    prompt, output = float(load.traffic.prompt.mean()), float(load.traffic.output.mean())
    uncached, context = prompt * (1.0 - rules.hit), prompt + output / 2
    running, step = 1.0, 0.0
    for _ in range(ROUNDS):
        tokens = min(max(rate * step, 1.0) * uncached, float(rules.budget))  # of a step with prompts, which few steps are
        prefilling = min(rate * step * uncached / max(tokens, 1.0), 1.0)
        prompts = max(1.0, rate * step)
        if pace:
            with_prompts = pace.step(running, running * context, tokens, tokens * context / 2, prompts)
            step = prefilling * with_prompts + (1 - prefilling) * pace.step(running, running * context, 0.0, 0.0, 1.0)
        running = min(max(rate * output * step, 1.0), most)
    return running, rate * step * uncached


def most_in_flight(fleet: Fleet, load: LoadingPlan) -> float:
    """Requests of mean length that seats and KV cache hold."""
    rules, traffic = fleet.scheduler.rules, load.traffic
    return max(1.0, min(float(rules.seats), rules.capacity * rules.block / float((traffic.prompt + traffic.output / 2).mean())))


def is_full(fleet: Fleet, load: LoadingPlan) -> bool:
    """Whether the requests at a rate fill a replica or every step's prompt tokens, so that it is overloaded."""
    if load.rate is None:
        return False
    running, prompt_tokens = _steady(fleet, load)
    return running >= FULL * most_in_flight(fleet, load) or prompt_tokens >= FULL * fleet.scheduler.rules.budget
