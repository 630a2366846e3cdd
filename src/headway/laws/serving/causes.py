"""Parts of a measured TTFT and TPOT: what each costs, and what no part explains, so that they sum to the measurement."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, PerSecond, Same, Second


@formula(source="definition: kernels overlap, so only the arithmetic that no read hides adds to a step")
def exposed_compute_s(step: Second, weights: Second, kv: Second, network: Second, overhead: Second) -> Second:
    """Time that arithmetic adds to a step beyond its reads of weights and KV cache, its collectives and its overhead.

    >>> round(exposed_compute_s(0.01238, 0.006341, 0.000957, 0.001779, 0.002528), 6)
    0.000775
    """
    return step - (weights + kv + network + overhead)


@formula(source="definition")
def prompts_before_s(ttft: Second, overhead: Second, prefill: Second, seat_wait: Second) -> Second:
    """Part of TTFT that other requests' prompts and the step in progress take.

    >>> round(prompts_before_s(0.9, 0.02, 0.35, 0.1), 3)
    0.43
    """
    return ttft - (overhead + prefill + seat_wait)


@formula(source="fluid limit of an overloaded queue: the last of n requests arrives at n / rate and is served at n / capacity")
def backlog_wait_s(requests: Number, rate: PerSecond, capacity: PerSecond) -> Second:
    """Mean wait of `requests` that arrive at `rate` where `capacity` per second are served; 0 below the capacity.

    >>> float(backlog_wait_s(1000, 20.0, 10.0)), float(backlog_wait_s(1000, 5.0, 10.0))
    (25.0, 0.0)
    """
    return requests / 2 * np.maximum(1 / capacity - 1 / rate, 0 / rate)


@formula(source="definition: signed, so that the parts sum to the measurement")
def unexplained_s(measured: Second, explained: Second) -> Second:
    """Measured time that the parts do not explain; negative where the server is faster than they say.

    >>> round(unexplained_s(0.0618, 0.0595), 4)
    0.0023
    """
    return measured - explained


@formula(source="definition: squared distance in the logarithm, in half-widths of the 90 % interval")
def misfit(measured: Same, expected: Same, factor: Number) -> Number:
    """How far a measurement is from its expectation: 1 at either end of the 90 % interval; `factor` is half of the interval.

    >>> float(misfit(0.02, 0.01, 2.0)), float(misfit(0.01, 0.01, 1.36))
    (1.0, 0.0)
    """
    return (np.log(measured / expected) / np.log(factor)) ** 2
