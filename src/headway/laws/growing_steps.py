"""Iterations that take longer the more requests they carry, fixed + each * batch, with seats for all: the batch that settles.

Each starts when the last has ended and a request waits. A request rides in one of them, or in the fluid limit in as many as it has tokens.
"""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number, PerSecond, Second, Token

NEW_TOKEN: Token = 1.0
NEVER: Second = float("inf")
NEGLIGIBLE = 1e-16
MOST = 100_000  # terms: enough for a load of 0.9995
AFFINE = "chain N' = max(Poisson(rate * (fixed + each * N)), 1), by its generating function at 0 and its first two moments"


@formula(source=AFFINE)
def idle_share(rate: PerSecond, fixed: Second, each: Second) -> Number:
    """Share of iterations of `fixed` + `each` * batch after which nobody waits.

    >>> round(float(idle_share(50.0, 20e-3, 1e-3)), 4)
    0.343
    """
    slope, come = rate * each, rate * fixed
    slope = np.where(slope < 1, slope, 0)
    gap = 1.0 + 0 * slope * come  # 1 - z, from z = 0 on: each iteration back in time brings z nearer to 1
    passed, seen, once = 0 * gap, np.exp(-come * gap), 0 * gap
    for _ in range(MOST):
        if not np.any(seen * gap > NEGLIGIBLE * (1 - slope)):
            break
        passed = passed + come * gap
        seen = np.exp(-passed)
        gap = -np.expm1(-slope * gap)
        once = once + seen * gap
    return np.where(rate * each < 1, seen / (1 + once), 0)


@formula(source=AFFINE)
def affine_batch(rate: PerSecond, fixed: Second, each: Second) -> Number:
    """Mean batch of iterations of `fixed` + `each` * batch that start once one request waits, each of one iteration.

    >>> round(float(affine_batch(5000.0, 20e-3, 0.1e-3)), 9)
    200.0
    """
    slope = rate * each
    steady = slope < 1
    return np.where(steady, (rate * fixed + idle_share(rate, fixed, each)) / np.where(steady, 1 - slope, 1), np.inf)


@formula(source=AFFINE)
def affine_square(rate: PerSecond, fixed: Second, each: Second) -> Number:
    """Mean of the square of that batch.

    >>> round(float(affine_square(5000.0, 20e-3, 0.1e-3)), 3)
    40266.667
    """
    slope, come = rate * each, rate * fixed
    steady = slope < 1
    mean = np.where(steady, affine_batch(rate, fixed, each), 0)
    drawn = come + slope * mean + come * come + 2 * come * slope * mean + idle_share(rate, fixed, each)
    return np.where(steady, drawn / np.where(steady, 1 - slope * slope, 1), np.inf)


@formula(source=AFFINE + "; W = E[D^2] / (2 E[cycle])")
def affine_wait_s(rate: PerSecond, fixed: Second, each: Second) -> Second:
    """Mean wait for iterations of `fixed` + `each` * batch with seats for all.

    >>> round(float(affine_wait_s(5000.0, 20e-3, 0.1e-3)) * 1e3, 3)
    20.033
    """
    steady = rate * each < 1
    mean = np.where(steady, affine_batch(rate, fixed, each), 1)
    square = np.where(steady, affine_square(rate, fixed, each), 1)
    squared = fixed * fixed + 2 * fixed * each * mean + each * each * square
    return np.where(steady, squared * rate / (2 * mean), NEVER)


@formula(source=AFFINE + "; a request rides in an iteration as often as that has riders")
def affine_response_s(rate: PerSecond, fixed: Second, each: Second) -> Second:
    """Mean wait and ride of the same.

    >>> round(float(affine_response_s(5000.0, 20e-3, 0.1e-3)) * 1e3, 3)
    60.167
    """
    steady = rate * each < 1
    mean = np.where(steady, affine_batch(rate, fixed, each), 1)
    square = np.where(steady, affine_square(rate, fixed, each), 1)
    return affine_wait_s(rate, fixed, each) + fixed + each * square / mean


@formula(source="fluid limit: a batch of rate * N * TPOT, TPOT = c0 + c1 * batch")
def fluid_tpot_s(rate: PerSecond, output: Token, fixed: Second, each: Second) -> Second:
    """Step time once the batch has settled, when each request rides for N tokens; infinite beyond the capacity.

    >>> round(float(fluid_tpot_s(5.0, 400, 20e-3, 0.1e-3)) * 1e3, 9)
    25.0
    """
    load = rate / fluid_capacity_per_s(output, each)
    steady = load < 1
    return np.where(steady, fixed / np.where(steady, 1 - load, 1), NEVER)


@formula(source="fluid limit: N c1 is what one more request adds to the steps it rides in")
def fluid_capacity_per_s(output: Token, each: Second) -> PerSecond:
    """Requests per second at which the batch would grow without end.

    >>> fluid_capacity_per_s(400, 0.1e-3)
    25.0
    """
    return 1 / (output / NEW_TOKEN * each)
