"""Parts of a measured TTFT and TPOT: what each costs, and what no part explains, so that they sum to the measurement."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, Same, Second


@formula(source="definition: kernels overlap, so only the arithmetic that no read hides adds to a step")
def exposed_compute_s(step: Second, weights: Second, kv: Second, network: Second, overhead: Second) -> Second:
    """Time that arithmetic adds to a step beyond its reads of weights and KV cache, its collectives and its overhead.

    >>> round(float(exposed_compute_s(0.01238, 0.006341, 0.000957, 0.001779, 0.002528)), 6)
    0.000775
    """
    return np.maximum(step - (weights + kv + network + overhead), 0 * step)


@formula(source="definition")
def prompts_before_s(ttft: Second, overhead: Second, prefill: Second, seat_wait: Second) -> Second:
    """Part of TTFT that other requests' prompts and the step in progress take.

    >>> round(float(prompts_before_s(0.9, 0.02, 0.35, 0.1)), 3)
    0.43
    """
    return np.maximum(ttft - (overhead + prefill + seat_wait), 0 * ttft)


@formula(source="definition: parts sum to the measurement; each in proportion where a server is faster than they say")
def share_s(part: Second, explained: Second, measured: Second) -> Second:
    """Part of a measured time, of parts that explain `explained` of it: as it is, or less in proportion where they explain too much.

    >>> float(share_s(0.03, 0.06, 0.08)), float(share_s(0.03, 0.06, 0.04))
    (0.03, 0.02)
    """
    return part * np.minimum(measured / np.maximum(explained, measured), 1)


@formula(source="definition")
def unexplained_s(measured: Second, explained: Second) -> Second:
    """Measured time that the parts do not explain; none where they explain more.

    >>> round(float(unexplained_s(0.0618, 0.0595)), 4), float(unexplained_s(0.05, 0.06))
    (0.0023, 0.0)
    """
    return np.maximum(measured - explained, 0 * measured)


@formula(
    source="Little's law over a run, and Jensen's inequality: 1 / TPOT <= E[b / f(b)] / E[b] over its time, at most the concave envelope of"
    " b / f(b) at E[b], over E[b]",
    empirical="the envelope compares batches with one another",
)
def unsteady_floor_s(decoding: Number, batches: Number, steps: Second) -> Second:
    """Least mean time per token of a run whose batch was `decoding` on average, whatever it was from step to step.

    `steps` are the floors of a step at each of the `batches`, in ascending order from 1.

    >>> batches = np.array([1.0, 2.0, 4.0, 8.0])
    >>> [round(float(unsteady_floor_s(batch, batches, 0.005 + 0.001 * batches)), 9) for batch in (0.5, 4.0)]
    [0.006, 0.009]
    >>> round(float(unsteady_floor_s(4.0, 8.0, 0.013)), 12)
    0.013
    """
    at, through = np.append(0.0, batches), np.append(0.0, batches / steps)
    inside = np.minimum(decoding, at[-1])
    low, high = np.flatnonzero(at <= inside)[:, None], np.flatnonzero(at >= inside)[None, :]
    along = (inside - at[low]) / np.maximum(at[high] - at[low], 1e-12)
    return inside / np.max(through[low] + (through[high] - through[low]) * along)


@formula(source="definition: squared distance in the logarithm, in half-widths of the 90 % interval")
def misfit(measured: Same, expected: Same, factor: Number) -> Number:
    """How far a measurement is from its expectation: 1 at either end of the 90 % interval; `factor` is half of the interval.

    >>> float(misfit(0.02, 0.01, 2.0)), float(misfit(0.01, 0.01, 1.36))
    (1.0, 0.0)
    """
    return (np.log(measured / expected) / np.log(factor)) ** 2
