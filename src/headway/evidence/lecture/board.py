"""The lecture's board as curves: time of a step and cost of a token against batch, from a claim's inputs by the laws of the board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from headway.laws.economics.cost import usd_per_mtok_out
from headway.laws.roofline.balance import balanced_batch, hardware_ratio
from headway.laws.roofline.batch_step import batch_compute_s, latency_floor_s, roofline_s
from headway.serving.curves import Curves

POINTS = 160
BEYOND = 2.5  # largest batch drawn, over the balanced one
AT_ONCE = 1.0  # replicas
MOST_BATCH = 1e7  # batch at which the cost has reached its floor


def board_curves(inputs: Mapping[str, Any]) -> Curves:
    """Curves of a model given by total and active parameters on a machine given by its peak and bandwidth."""
    ratio = hardware_ratio(inputs["weight_byte"], inputs["peak"], inputs["mem_bw"])
    knee = float(balanced_batch(ratio, inputs["total"], inputs["active"]))
    batch = np.linspace(1.0, BEYOND * knee, POINTS)
    weights = float(latency_floor_s(inputs["total"], inputs["weight_byte"], inputs["mem_bw"]))

    def times(batches: Any) -> dict[str, Any]:
        compute = batch_compute_s(batches, inputs["active"], inputs["peak"])
        flat = np.full(len(batches), weights)
        nothing = np.zeros(len(batches))
        return {"compute": compute, "weights": flat, "KV cache": nothing, "network": nothing, "floor": roofline_s(compute, flat)}

    def costs(batches: Any) -> dict[str, Any]:
        price, chips = inputs["chip_price"], inputs["chips"]
        return {name: usd_per_mtok_out(price, chips, time, batches, AT_ONCE) for name, time in times(batches).items()}

    end = costs(np.array([MOST_BATCH]))["floor"]
    return Curves(batch=batch, times=times(batch), costs=costs(batch), latency_floor=weights, cost_floor=float(end[0]), knee=knee,
                  turn=None, capacity=None)  # fmt: skip
