"""Why nothing meets every limit: the candidate that misses by least, which limit it misses first, and by how much."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from headway import units
from headway.pick import Pick, pick
from headway.search import Weighed, batch_of, fits, tpot
from headway.workload import SLO


def nearest(weighed: Sequence[Weighed], slo: SLO, batches: Sequence[int], pinned: Collection[str]) -> tuple[Pick, str]:
    """The nearest miss and its reason: memory before TTFT before TPOT."""
    rows = [(w, *_row(w, slo, batches)) for w in weighed]
    w, row, batch, _ = min(rows, key=lambda found: found[3])
    chosen = pick(w, row, batch, pinned)
    return chosen, _reason(w, row, batch, slo)


def _row(w: Weighed, slo: SLO, batches: Sequence[int]) -> tuple[int, int, tuple[int, float]]:
    """The layout that misses by least: (row, batch, (how far it gets, by what ratio it misses there))."""
    batch = np.full((w.count, 1), min(batches)) if batches else batch_of(w, np.ones((w.count, 1), dtype=np.int64))
    room = _full(fits(w, batch), w)
    if room.any():
        missed = np.zeros(w.count)
        for value, limit in ((w.ttft, slo.ttft), (tpot(w, batch), slo.tpot)):
            missed = missed if limit is None else np.maximum(missed, _full(value, w) / limit)
        missed = np.where(room, missed, np.inf)
        stage = 0
    else:
        weights = _full(w.compiled.weights_bytes, w)
        usable = _full(w.usable, w)
        inside = weights <= usable
        missed = np.where(inside, 1 / np.maximum(_full(w.limit, w), 1e-9), np.inf) if inside.any() else weights / usable
        stage = 1 if inside.any() else 2
    row = int(np.argmin(missed))
    return row, int(batch[row, 0]), (stage, float(missed[row]))


def _full(value: Any, w: Weighed) -> Any:
    return np.broadcast_to(value, (w.count, 1))[:, 0]


def _reason(w: Weighed, row: int, batch: int, slo: SLO) -> str:
    one = w.rows(np.array([row]))
    weights, usable, limit = (float(_full(value, one)[0]) for value in (one.compiled.weights_bytes, one.usable, one.limit))
    where = " ".join(f"{name}={int(_full(getattr(one.layout, name), one)[0])}" for name in ("tp", "ep", "dp", "pp"))
    if weights > usable:
        return f"weights need {_gb(weights)} per chip at {where}, {_gb(usable)} are usable"
    if not _full(fits(one, batch), one)[0]:
        room = f"{_gb(usable)} usable per chip at {where} hold {_gb(weights)} of weights"
        return f"{room} and the KV cache of {limit:.3g} sequences per rank, fewer than batch {batch} needs"
    missed = []
    ttft, times = float(_full(one.ttft, one)[0]), float(_full(tpot(one, batch), one)[0])
    for name, value, most in (("TTFT", ttft, slo.ttft), (f"TPOT at batch {batch}", times, slo.tpot)):
        if most is not None and value > most:
            missed.append(f"{name} is {units.show(value, 's')}, limit {units.show(most, 's')}")
    return "; ".join(missed) + f" (nearest miss: {where})"


def _gb(value: float) -> str:
    return units.show(value, "byte")
