"""The experiment `batch`: a routed decoder at growing batches, its step, the experts that it touches, the batch at which sharing pays."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headway.core.cores import cores
from headway.core.progress import expect, tick
from headway.core.quantity import known
from headway.core.trace import record
from headway.core.units import Byte, Number, Second
from headway.laws.collectives.expert_parallel import distinct_experts
from headway.laws.roofline.balance import balanced_batch, hardware_ratio
from headway.laws.roofline.batch_step import latency_floor_s
from headway.models.totals import active_params, kv_bytes_per_token, total_params
from headway.reality import here
from headway.reality.lab.batch_setup import BatchSetup
from headway.reality.lab.decoder import random_decoder
from headway.reality.lab.experiment import Calibration, Child, PredictedPoint, Say
from headway.reality.lab.shape import LabShape, model_of
from headway.reality.measure.decode import DECODE, DecodePoint, as_decoders_multiply, law_s
from headway.reality.measure.rates import rates_of
from headway.reality.measure.record import of_dict
from headway.reality.measure.run import MeasureRequest, measured
from headway.reality.measure.timing import QUIET, clock_of

STEP, TOUCHED, KNEE = "step", "experts touched", "knee"
BATCHES, QUICK_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024), (1, 2, 16, 64, 256, 1024)
BUDGET_S, QUICK_BUDGET_S = 2.0, 0.6  # of the steps of one batch
ROUNDS, QUICK_ROUNDS = 10, 4  # in which all batches have their turn
MOST = 300  # steps of one batch
LEAST_SHARE = 0.9  # of a core that the steps of one thread get where the machine is quiet
WORD = 4.0  # bytes of a number
HALF = 2**0.5  # an interval is no wider than a factor of 2, whatever the machine scattered
NEAR = 0.02  # of the law of experts touched
QUARTER = 0.25  # of the steps are faster than the one that counts: others' work only adds to a step
TWICE = 2.0  # the knee: time per token over that of the largest batch


def batches(setup: BatchSetup) -> tuple[int, ...]:
    """Batches of a run."""
    return setup.batch or (QUICK_BATCHES if setup.quick else BATCHES)


def fitted(setup: BatchSetup) -> BatchSetup:
    """Any setup can be run."""
    return setup


def memory(setup: BatchSetup) -> Byte:
    """Bytes of the decoder, twice while it is drawn, and of the cache of the largest batch."""
    model = model_of(setup.shape)
    return 2 * float(total_params(model)) * WORD + max(batches(setup)) * setup.context * float(kv_bytes_per_token(model, WORD))


# -- predicted --------------------------------------------------------------------------------------------------------------------


def calibrate(setup: BatchSetup, child: Child) -> Calibration:
    """This machine, measured without a step of the decoder."""
    request = MeasureRequest(threads=setup.threads, cores=cores(), quick=setup.quick)
    return as_decoders_multiply(measured(request, here.host(), child)).as_dict()


def predict(setup: BatchSetup, calibration: Calibration) -> Iterator[PredictedPoint]:
    """Each batch's step and the experts that it touches, then the knee of the time per token."""
    machine = of_dict(calibration)
    rates = rates_of(machine)
    half, shape = min(rates.half, HALF), setup.shape
    steps = []
    with record():
        for batch in batches(setup):
            step = law_s(machine, rates, shape, DecodePoint(kind=DECODE, shape="", batch=batch, tokens=setup.context))
            steps.append(float(step))
            yield PredictedPoint(quantity=STEP, claim="RB-06", at=batch, unit="s", value=step, low=step / half, high=step * half)
            if shape.experts:
                touched = distinct_experts(*_routing(shape), known(float(batch), "batch", "token", "input", "the experiment"))
                low, high = touched * (1 - NEAR), touched * (1 + NEAR)
                yield PredictedPoint(quantity=TOUCHED, claim="RB-23", at=batch, unit="", value=touched, low=low, high=high)
    at = knee(batches(setup), steps)
    if at is not None:
        yield PredictedPoint(quantity=KNEE, claim="RB-10", at=max(batches(setup)), unit="", value=at, low=at / HALF, high=at * HALF)


def _routing(shape: LabShape) -> tuple[Any, Any]:
    return tuple(known(getattr(shape, name), name, "", "input", "shape of the lab's decoder") for name in ("experts", "per_token"))


def knee(sizes: Sequence[Number], steps: Sequence[Second]) -> float | None:
    """Batch from which a token costs at most twice what it costs at the largest; None where it is cheaper throughout.

    >>> round(knee((1, 10, 100, 1000), (1.0, 1.1, 2.0, 11.0)), 1)  # a floor of 1 s, 10 ms each
    87.9
    """
    costs = [step / size for step, size in zip(steps, sizes, strict=True)]
    limit = TWICE * costs[-1]
    last = max((place for place, value in enumerate(costs) if value > limit), default=None)
    if last is None:
        return None
    (x, y), (x2, y2) = ((np.log(sizes[place]), np.log(costs[place])) for place in (last, last + 1))
    return float(np.exp(x + (np.log(limit) - y) * (x2 - x) / (y2 - y)))


def lines(setup: BatchSetup, calibration: Calibration) -> dict[str, float]:
    """The floor of a step that reads every weight, and the balanced batch, by the board's laws at the measured rates."""
    rates, model = rates_of(of_dict(calibration)), model_of(setup.shape)
    bandwidth = rates.bandwidth * rates.memory
    ratio = hardware_ratio(WORD, rates.peak, bandwidth)
    return {
        "floor_s": float(latency_floor_s(total_params(model), WORD, bandwidth)),
        "balanced": float(balanced_batch(ratio, total_params(model), active_params(model))),
        "peak": rates.peak, "bandwidth": bandwidth,
    }  # fmt: skip


# -- measured, in a process of its own --------------------------------------------------------------------------------------------


def measure(setup: BatchSetup, plan: Sequence[Mapping[str, Any]], say: Say) -> dict[str, Any]:
    """Steps of all batches in turn, so that no batch has the quiet moments for itself; each step has new tokens, and unlike experts."""
    decoder, sizes, clock = random_decoder(setup.shape, setup.seed), batches(setup), clock_of(setup.threads)
    draw = np.random.default_rng(setup.seed)
    cache = decoder.cache(max(sizes), setup.context, setup.context - 1, setup.seed)
    times: dict[int, list[float]] = {size: [] for size in sizes}
    touched: dict[int, list[float]] = {size: [] for size in sizes}
    rounds, now = QUICK_ROUNDS if setup.quick else ROUNDS, time.perf_counter  # a busy machine makes a run no longer, but its points fewer
    begun, wall = clock(), now()
    budget = (QUICK_BUDGET_S if setup.quick else BUDGET_S) / rounds

    def step(size: int) -> float:
        part = cache.of(0, size)
        part.lengths[:] = setup.context - 1
        tokens, begin = draw.integers(setup.shape.vocab, size=(size, 1)), clock()
        output = decoder.step(tokens, part)
        end = clock()
        times[size].append(end - begin)
        touched[size].append(statistics.fmean(output.experts_touched) if output.experts_touched else 0.0)
        return now()

    expect((rounds + 1) * len(sizes))
    for _ in range(rounds):
        for size in sizes:
            start = now()
            while step(size) - start < budget and len(times[size]) < MOST:
                pass
            tick(1)
        _say_points(plan, times, touched, say)
    for size in sizes:  # counts scatter more than times do
        start = now()
        while error_of(touched[size]) > NEAR / 3 and now() - start < rounds * budget:
            step(size)
        tick(1)
    _say_points(plan, times, touched, say)
    spreads = [statistics.median(values) / _quartile(values) - 1 for values in times.values()]
    share = (clock() - begun) / (now() - wall)
    return {"spread": statistics.median(spreads), "share": share, "steps": [len(values) for values in times.values()]}


def error_of(values: Sequence[float]) -> float:
    """Standard error of the mean of so many, as a share of it."""
    mean = statistics.fmean(values)
    return statistics.pstdev(values) / len(values) ** 0.5 / mean if mean else 0.0


def _quartile(values: Sequence[float]) -> float:
    return float(np.quantile(values, QUARTER))


def _say_points(plan: Sequence[Mapping[str, Any]], times: Mapping[int, list[float]], touched: Mapping[int, list[float]], say: Say) -> None:
    """All points as they are known by now: a run that is stopped keeps them."""
    steps = {size: _quartile(values) for size, values in times.items()}
    at = knee(list(steps), list(steps.values()))
    for place, point in enumerate(plan):
        size = int(point["at"])
        if point["quantity"] == STEP:
            say((place, steps[size], statistics.median(times[size]) / steps[size] - 1))
        elif point["quantity"] == TOUCHED:
            say((place, statistics.fmean(touched[size]), error_of(touched[size])))
        elif at is not None:
            say((place, at, 0.0))


def noise(setup: BatchSetup, facts: Mapping[str, Any]) -> list[str]:
    """Steps of one batch that scatter, and other work that took the core."""
    spread, share = facts.get("spread", 0.0), facts.get("share", 1.0)
    reasons = [f"the usual step took {spread:.0%} longer than the fastest quarter"] if spread > QUIET else []
    return [*reasons, *([f"the steps had {share:.0%} of a core"] if share < LEAST_SHARE else [])]
