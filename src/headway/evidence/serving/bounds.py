"""Floors of a measured run: at the sequences that were in service, which a queue or the end of a run makes fewer than its users.

The floor of a prediction has every user in service and every prompt computed. Where more requests arrive than the server carries, where a
run is too short to be steady, and where a measurement shows that it was otherwise, what is certain is less: the decode steps at the batch
that the run's own times and rate say (Little's law), and a first token by one step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headway.evidence.rows.tasks import Task
from headway.evidence.serving.machines import machines
from headway.evidence.serving.predict import PredictedQuantity, Prediction, load_of
from headway.evidence.serving.quantities import with_room
from headway.laws.queueing.closed_loop import SINGLE
from headway.laws.serving.request import interval_low, unsteady_floor_s
from headway.laws.step.step import step_floor_s
from headway.performance import request
from headway.performance.request import Requests, Server

KINDS = ("serving", "serving_unloaded")
BATCHES = 64  # at which the floor of a step is computed
ROUNDS = 3  # requests for each of those at a time, from which a run is steady
BEYOND = 1.02  # times a measurement beyond which a floor is above it by more than clocks err


def unsteady(task: Task, capacity: float | None) -> bool:
    """Whether a run is no steady load: it had few requests for those at a time, or more arrived than `capacity` requests per second."""
    row = task.row
    short = bool(row.requests and task.concurrency and row.requests < ROUNDS * task.concurrency)
    return short or (row.request_rate is not None and capacity is not None and row.request_rate > capacity)


def beaten(task: Task, prediction: Prediction) -> bool:
    """Whether a run's TPOT is less than its floor, by more than clocks err."""
    return prediction.tpot is not None and bool(task.row.tpot_s) and (task.row.tpot_s or 0.0) * BEYOND < prediction.tpot.floor


def bounded(task: Task, prediction: Prediction, is_unsteady: bool) -> Prediction:
    """The prediction with floors that hold for this run."""
    if task.kind not in KINDS or prediction.why:
        return prediction
    row, change = task.row, {}
    server = with_room(machines([task.setup]), load_of([task])).ideal()
    tpot, decoding = prediction.tpot, decoding_of(task)
    if tpot is not None and decoding and row.tpot_s and (is_unsteady or row.tpot_s < tpot.floor):
        least = min(_token_floor(task, server, decoding), tpot.floor)
        change["tpot"] = _lowered(tpot, least)
    if prediction.ttft is not None and row.ttft_s and row.ttft_s < prediction.ttft.floor:
        step = request.decode_s(server, Requests(prompt=task.prompt, output=1.0), SINGLE, step_floor_s)
        change["ttft"] = _lowered(prediction.ttft, min(_scalar(step), prediction.ttft.floor))
    return replace(prediction, **change, **_limits(task, replace(prediction, **change), decoding, "tpot" in change))


def _limits(task: Task, prediction: Prediction, decoding: float | None, lowered: bool) -> dict[str, PredictedQuantity]:
    """Most tokens per second of a run with so many decoding, where the floor of their TPOT is lower, or arrivals were the limit."""
    measured, tpot = task.row.output_tok_per_s, prediction.tpot
    limits: dict[str, PredictedQuantity] = {}
    if tpot is None or not decoding or not measured or not task.output or task.output <= 1:
        return limits
    for name, chips in (("rate", 1.0), ("per_chip", float(task.setup.system.chips))):
        limit = getattr(prediction, name)
        if limit is not None and (lowered or measured / chips > limit.floor):
            most = decoding / tpot.floor * task.output / (task.output - 1) / chips  # first tokens come of prompts
            limits[name] = replace(limit, floor=max(limit.floor, most))
    return limits


def decoding_of(task: Task) -> float | None:
    """Sequences that decoded at once, over all chips: as the run's file says, else of its rate and TPOT; None without them."""
    row = task.row
    if row.decoding:
        return row.decoding
    if not row.tpot_s or not task.output or task.output <= 1:
        return None
    if row.output_tok_per_s:
        return row.output_tok_per_s * row.tpot_s * (task.output - 1) / task.output
    if row.ttft_s and task.concurrency:
        decode = row.tpot_s * (task.output - 1)
        return task.concurrency * decode / (row.ttft_s + decode)
    return None


def _token_floor(task: Task, server: Server, decoding: float) -> float:
    """Least mean TPOT of a replica whose mean batch over the run is this, however the batch varied."""
    users = (task.row.requests or task.concurrency or 1.0) / task.setup.replicas
    batch = decoding / task.setup.replicas
    batches = np.geomspace(1.0, max(min(users, _scalar(server.seats(task.prompt, task.output))), batch, 2.0), BATCHES)
    context = task.row.context or (task.prompt or 0.0) + (task.output or 0.0) / 2
    steps = np.ravel(step_floor_s(server.step, batches, batches * context, 0.0, 0.0))
    return float(unsteady_floor_s(batch, batches, steps))


def _lowered(quantity: PredictedQuantity, floor: float) -> PredictedQuantity:
    """A time with a lower floor, and the low end of its interval that this floor allows."""
    low = float(interval_low(quantity.expected, floor, quantity.hi / quantity.expected))
    return replace(quantity, floor=floor, lo=min(low, quantity.lo))


def _scalar(value: Any) -> float:
    return float(np.ravel(value)[0])
