"""The experiment `trains`: random arrivals, a departure every interval, and a step that takes its real time."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headway.core.errors import BadValue
from headway.core.progress import expect, tick
from headway.core.quantity import known
from headway.core.trace import record
from headway.core.units import Byte, Second, show
from headway.laws.queueing.departures import timetable_wait_s, train_load, train_rate, worst_latency_s
from headway.models.totals import kv_bytes_per_token, total_params
from headway.reality.lab.clock import REAL, Clock
from headway.reality.lab.decoder import random_decoder
from headway.reality.lab.experiment import WIDEST, Calibration, Child, PredictedPoint, Say, calibrated
from headway.reality.lab.platform import Passenger, Platform, TrainRun
from headway.reality.lab.shape import model_of
from headway.reality.lab.train_setup import TrainSetup
from headway.reality.lab.train_work import DecoderStep, StatedStep, TrainWork
from headway.simulation.timetable import random_timetable

LOADS = (0.25, 0.5, 0.75, 0.9)  # of the seats
WAIT, FILL, WORST = "mean wait", "seats taken", "longest response"
DRAWS = 200  # timetables whose spread is the interval of so many requests
ENDS = (0.025, 0.975)  # of that spread: points of one run go together, so that 90 % would often miss several
SLEEPS = 40
QUICK_S, LEAST = 13.0, 100  # seconds of trains with --quick, and requests that they must hold
LATE = 0.05  # of an interval: a machine whose usual train leaves later is not quiet
WORD = 4.0  # bytes of a number


def fitted(setup: TrainSetup) -> TrainSetup:
    """A timetable that stated steps can keep; with --quick as many requests as its time holds."""
    if setup.step is not None and (longest := setup.step[0] + setup.step[1] * setup.limit) > setup.every:
        want = f"a step within --every ({show(setup.every, 's')}) with all {setup.limit} seats taken"
        raise BadValue("--step", show(longest, "s"), want)
    if not setup.quick:
        return setup
    request_s = setup.every / setup.limit * sum(1 / load for load in LOADS)  # seconds of a request at all loads
    if LEAST * request_s > QUICK_S:
        most = show(setup.every * QUICK_S / (LEAST * request_s), "s")
        raise BadValue("--every", show(setup.every, "s"), f"at most {most} beside --quick with --limit {setup.limit}, or no --quick")
    return replace(setup, requests=int(min(setup.requests / 4, QUICK_S / request_s)))


def memory(setup: TrainSetup) -> Byte:
    """Bytes of the decoder and of the cache of all seats; a step that is stated has neither."""
    if setup.step is not None:
        return 0.0
    model = model_of(setup.shape)
    return float(total_params(model)) * WORD + setup.limit * setup.context * float(kv_bytes_per_token(model, WORD))


def work(setup: TrainSetup, clock: Clock) -> TrainWork:
    """What a train does."""
    if setup.step is not None:
        return StatedStep(*setup.step, clock, setup.shape.vocab)
    return DecoderStep(random_decoder(setup.shape, setup.seed), setup.limit, setup.context)


def calibrate(setup: TrainSetup, child: Child) -> Calibration:
    """How late sleeps end here."""
    return calibrated("trains", setup, child)


# -- predicted --------------------------------------------------------------------------------------------------------------------


def predict(setup: TrainSetup, calibration: Calibration) -> Iterator[PredictedPoint]:
    """Waits, fill and the longest response, by load: the law, and how far as many requests scatter around it.

    A sleep that ends late is a departure that leaves late.
    """
    late = known(calibration["late_s"], "late_s", "s", "measured", "this machine: how much later than asked its sleeps end")
    interval, seats = (known(value, name, unit, "input", "the experiment") for value, name, unit in (
        (setup.every, "interval", "s"), (setup.limit, "seats", "")))  # fmt: skip
    with record():
        for load in LOADS:
            rate = train_rate(known(load, "load", "", "input", "the experiment"), interval, seats)
            wait, fill = timetable_wait_s(rate, interval, seats), train_load(rate, interval, seats)
            waits, fills, longest = scatter(float(rate), setup)
            middle = statistics.mean(waits)
            low, high = (wait * (end / middle) for end in _ends(waits))
            yield PredictedPoint(quantity=WAIT, claim="TS-05", at=load, unit="s", value=wait, low=low, high=high + late)
            low, high = _ends(fills)
            yield PredictedPoint(quantity=FILL, claim="TS-13", at=load, unit="", value=fill, low=low, high=high)
            if load == LOADS[0] and _ends(longest)[1] <= setup.every:  # else some find their train full, and the law is silent
                high = worst_latency_s(interval) + late
                yield PredictedPoint(quantity=WORST, claim="TS-04", at=load, unit="s", value=high - late, low=high / WIDEST, high=high)


def scatter(rate: float, setup: TrainSetup) -> tuple[list[float], list[float], list[float]]:
    """Mean waits, fills and longest waits of so many requests in timetables that are drawn, not run."""
    trains = max(2, round(setup.requests / (rate * setup.every)))
    waits, fills, longest = [], [], []
    for seed in range(DRAWS):
        table = random_timetable(rate, setup.every, setup.limit, trains, seed)
        single_waits = [boarding.departure_s - boarding.arrival_s for boarding in table.boardings]
        waits.append(statistics.fmean(single_waits))
        longest.append(max(single_waits))
        fills.append(statistics.fmean(departure.riders for departure in table.departures) / setup.limit)
    return waits, fills, longest


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(values, ENDS)
    return float(low), float(high)


# -- measured, in a process of its own --------------------------------------------------------------------------------------------


def calibration(setup: TrainSetup, clock: Clock = REAL) -> dict[str, Any]:
    """How late sleeps end here."""
    late = []
    for _ in range(SLEEPS):
        due = clock.now() + setup.every / 10
        clock.sleep_until(due)
        late.append(clock.now() - due)
    return {"late_s": statistics.median(late)}


def measure(setup: TrainSetup, plan: Sequence[Mapping[str, Any]], say: Say, clock: Clock = REAL) -> dict[str, Any]:
    """Each load in turn, its points as they are known; how late departures were, how long steps took."""
    late, steps, most = [], [], []
    expect(len(plan))
    job = work(setup, clock)
    for load in dict.fromkeys(point["at"] for point in plan):
        passengers, trains = ride(setup, load, job, clock)
        waits = [passenger.departure - passenger.arrival for passenger in passengers]
        figures = {
            WAIT: (statistics.fmean(waits), statistics.stdev(waits) / len(waits) ** 0.5 / statistics.fmean(waits)),
            FILL: (statistics.fmean(train.riders for train in trains) / setup.limit, 0.0),
            WORST: (max(passenger.end - passenger.arrival for passenger in passengers), 0.0),
        }
        for place, point in enumerate(plan):
            if point["at"] == load:
                say((place, *figures[point["quantity"]]))
        late += [train.departure - train.due for train in trains]
        steps += [train.seconds for train in trains if train.riders]
        most.append(max(train.riders for train in trains))
        tick(sum(point["at"] == load for point in plan))
    return {"late_s": statistics.median(late), "step_s": statistics.median(steps), "longest_step_s": max(steps), "most_riders": most}


def ride(setup: TrainSetup, load: float, job: TrainWork, clock: Clock) -> tuple[list[Passenger], list[TrainRun]]:
    """Requests at a load of the seats, and the trains that took them, those in which the platform was still filling among them."""
    rate = float(train_rate(load, setup.every, setup.limit))
    draw = np.random.default_rng((setup.seed, round(1000 * load)))
    start = clock.now()
    times = start + np.cumsum(draw.exponential(1 / rate, setup.requests))
    passengers = [Passenger(arrival=time) for time in times.tolist()]
    platform, trains = Platform(setup.limit, setup.every, job, clock), list[TrainRun]()
    queue = iter(passengers)
    following = [next(queue, None)]

    def arrived(now: Second) -> Iterator[Passenger]:
        while (passenger := following[0]) is not None and passenger.arrival <= now:
            yield passenger
            following[0] = next(queue, None)

    def goes_on(train: TrainRun) -> bool:
        trains.append(train)
        return following[0] is not None or bool(platform.waiting)

    platform.run(arrived, goes_on)
    return passengers, trains


def noise(setup: TrainSetup, facts: Mapping[str, Any]) -> list[str]:
    """Trains that left late, and steps longer than the interval."""
    late, longest = facts.get("late_s", 0.0) / setup.every, facts.get("step_s", 0.0) / setup.every
    reasons = [f"the usual train left {late:.0%} of an interval late"] if late > LATE else []
    return [*reasons, *([f"the usual step took {longest:.0%} of an interval"] if longest > 1 else [])]
