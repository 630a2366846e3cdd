"""How long each block of a trace lay unused before a request came for it, for all at once: caches that forget by time alone.

The same as `reuse_distance.reuse(...).age`, block by block and without the pool's order, so that a million requests take a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def idle_before(blocks: Any, request: Any, times: Any) -> Any:
    """Seconds since the use of each block before this one; inf at its first."""
    order, same = _by_block(blocks)
    when = np.asarray(times, np.float64)[np.asarray(request)[order]]
    idle = np.full(len(order), np.inf)
    idle[order[1:][same]] = np.diff(when)[same]
    return idle


def idle_after(blocks: Any, request: Any, times: Any) -> Any:
    """Seconds from this use of each block to the next; inf after its last."""
    order, same = _by_block(blocks)
    when = np.asarray(times, np.float64)[np.asarray(request)[order]]
    idle = np.full(len(order), np.inf)
    idle[order[:-1][same]] = np.diff(when)[same]
    return idle


def leading(is_cached: Any, starts: Any) -> Any:
    """Of each request's blocks, those before the first that is not held."""
    first, end = np.asarray(starts)[:-1], np.asarray(starts)[1:]
    missing = np.append(np.flatnonzero(~np.asarray(is_cached)), len(is_cached))
    return np.minimum(missing[np.searchsorted(missing, first)], end) - first


def _by_block(blocks: Any) -> tuple[Any, Any]:
    """Uses in the order of blocks and, of one block, of time; and whether each is of the same block as the one before it."""
    order = np.argsort(blocks, kind="stable")
    ids = np.asarray(blocks)[order]
    return order, ids[1:] == ids[:-1]
