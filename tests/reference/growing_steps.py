"""Iterations that take longer the more requests they carry, fixed + each * batch, with seats for all: the batch that settles.

Each starts when the last has ended and a request waits. A request rides in one of them, or in the fluid limit in as many as it has tokens.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, PerSecond, Second, Token

NEW_TOKEN: Token = 1.0
NEVER: Second = float("inf")
NEGLIGIBLE = 1e-16
MOST = 100_000  # terms: enough for a load of 0.9995
AFFINE = "chain N' = max(Poisson(rate * (fixed + per_request * N)), 1), by its generating function at 0 and its first two moments"


@formula(source=AFFINE)
def idle_share(rate: PerSecond, fixed: Second, per_request: Second) -> Number:
    """Share of iterations of `fixed` + `per_request` * batch after which nobody waits.

    >>> round(float(idle_share(50.0, 20e-3, 1e-3)), 4)
    0.343
    """
    slope, come = rate * per_request, rate * fixed
    slope = np.where(slope < 1, slope, 0)
    gap = 1.0 + 0 * slope * come  # 1 - z, from z = 0 on: each iteration back in time brings z nearer to 1
    passed, chance, once = 0 * gap, np.exp(-come * gap), 0 * gap
    for _ in range(MOST):
        if not np.any(chance * gap > NEGLIGIBLE * (1 - slope)):
            break
        passed = passed + come * gap
        chance = np.exp(-passed)
        gap = -np.expm1(-slope * gap)
        once = once + chance * gap
    return np.where(rate * per_request < 1, chance / (1 + once), 0)


@formula(source=AFFINE)
def affine_batch(rate: PerSecond, fixed: Second, per_request: Second) -> Number:
    """Mean batch of iterations of `fixed` + `per_request` * batch that start once one request waits, each of one iteration.

    >>> round(float(affine_batch(5000.0, 20e-3, 0.1e-3)), 9)
    200.0
    """
    slope = rate * per_request
    steady = slope < 1
    return np.where(steady, (rate * fixed + idle_share(rate, fixed, per_request)) / np.where(steady, 1 - slope, 1), np.inf)


@formula(source=AFFINE)
def affine_square(rate: PerSecond, fixed: Second, per_request: Second) -> Number:
    """Mean of the square of that batch.

    >>> round(float(affine_square(5000.0, 20e-3, 0.1e-3)), 3)
    40266.667
    """
    slope, come = rate * per_request, rate * fixed
    steady = slope < 1
    mean = np.where(steady, affine_batch(rate, fixed, per_request), 0)
    moment = come + slope * mean + come * come + 2 * come * slope * mean + idle_share(rate, fixed, per_request)
    return np.where(steady, moment / np.where(steady, 1 - slope * slope, 1), np.inf)


@formula(source=AFFINE + "; W = E[D^2] / (2 E[cycle])")
def affine_wait_s(rate: PerSecond, fixed: Second, per_request: Second) -> Second:
    """Mean wait for iterations of `fixed` + `per_request` * batch with seats for all.

    >>> round(float(affine_wait_s(5000.0, 20e-3, 0.1e-3)) * 1e3, 3)
    20.033
    """
    steady = rate * per_request < 1
    mean = np.where(steady, affine_batch(rate, fixed, per_request), 1)
    square = np.where(steady, affine_square(rate, fixed, per_request), 1)
    squared = fixed * fixed + 2 * fixed * per_request * mean + per_request * per_request * square
    return np.where(steady, squared * rate / (2 * mean), NEVER)


@formula(source=AFFINE + "; a request rides in an iteration as often as that has riders")
def affine_response_s(rate: PerSecond, fixed: Second, per_request: Second) -> Second:
    """Mean wait and ride of the same.

    >>> round(float(affine_response_s(5000.0, 20e-3, 0.1e-3)) * 1e3, 3)
    60.167
    """
    steady = rate * per_request < 1
    mean = np.where(steady, affine_batch(rate, fixed, per_request), 1)
    square = np.where(steady, affine_square(rate, fixed, per_request), 1)
    return affine_wait_s(rate, fixed, per_request) + fixed + per_request * square / mean


@formula(source="fluid limit: a batch of rate * N * TPOT, TPOT = c0 + c1 * batch")
def fluid_tpot_s(rate: PerSecond, output: Token, fixed: Second, per_request: Second) -> Second:
    """Step time once the batch has settled, when each request rides for N tokens; infinite beyond the capacity.

    >>> round(float(fluid_tpot_s(5.0, 400, 20e-3, 0.1e-3)) * 1e3, 9)
    25.0
    """
    load = rate / fluid_capacity_per_s(output, per_request)
    steady = load < 1
    return np.where(steady, fixed / np.where(steady, 1 - load, 1), NEVER)


@formula(source="fluid limit: N c1 is what one more request adds to the steps it rides in")
def fluid_capacity_per_s(output: Token, per_request: Second) -> PerSecond:
    """Requests per second at which the batch would grow without end.

    >>> fluid_capacity_per_s(400, 0.1e-3)
    25.0
    """
    return 1 / (output / NEW_TOKEN * per_request)
