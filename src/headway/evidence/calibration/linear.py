"""Quantities of measured rows under factors of runs, and how each follows from them: by differences, all rows of a kind at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from headway.evidence.serving.machines import ONLINE, MeasuredLoad, Quantities, quantities, rows
from headway.performance.calibration.factors import FIRST, MOVE, PARAMETERS, RunFactors, calibrated, factors_of
from headway.performance.request import Server


def linear(kind: str, m: Server, load: MeasuredLoad, pool: Server | None, logs: Any) -> tuple[Quantities, Mapping[str, Any]]:
    """Expected quantities of rows of a kind at these logarithms of factors, and their slopes there by quantity: rows by PARAMETERS."""
    moves = np.concatenate([np.zeros((1, len(PARAMETERS))), np.delete(np.eye(len(PARAMETERS)), FIRST, axis=0) * MOVE])
    count = len(load.prompt)
    index, shifted = np.tile(np.arange(count), len(moves)), (logs[None, :, :] + moves[:, None, :]).reshape(-1, len(PARAMETERS))
    factors = RunFactors(**factors_of(shifted))
    workers = pool and calibrated(rows(pool, index), factors)
    values = quantities(kind, calibrated(rows(m, index), factors), rows(load, index), False, workers)
    by_move = {field.name: np.reshape(getattr(values, field.name), (len(moves), count)) for field in fields(Quantities)}
    slopes = {}
    for name, table in by_move.items():
        logarithms = np.log(table)
        slopes[name] = np.insert((logarithms[1:] - logarithms[0]) / MOVE, FIRST, float(name == "ttft" and kind in ONLINE), axis=0).T
    return Quantities(**{name: table[0] for name, table in by_move.items()}), slopes
