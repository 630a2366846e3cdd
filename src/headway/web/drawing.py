"""Numbers of the three drawings that move: trains that leave on a clock, micro-batches that flow through stages, activations made again."""

from __future__ import annotations

from typing import Any

from headway.core.errors import BadValue, UnknownName
from headway.core.listing import format_value
from headway.core.trace import record
from headway.evidence.claims.claim import claims
from headway.evidence.claims.reversible import layer_bytes
from headway.laws.queueing.departures import beat_wait_s, timetable_wait_s, train_rate
from headway.laws.training.activations import activation_bytes_chip
from headway.laws.training.reversible import reversible_bytes_chip, stream_bytes
from headway.laws.training.step import one_forward_one_backward_bubble, wall_time_share
from headway.simulation.timetable import random_timetable
from headway.training.timeline import training

SEATS, TRAINS = 8, 24
LOADS = (0.1, 1.2)
MOST_STAGES, MOST_MICRO_BATCHES = 8, 32
SCHEDULE = "1f1b"
DRAWN_LAYERS = (2, 16)
SEED = 7  # of the arrivals, the same for every reader


def drawing(request: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a drawing, with its controls and the words below it."""
    name = request.get("name")
    makers = {"trains": _trains, "stages": _stages, "activations": _activations}
    if name not in makers:
        raise UnknownName("drawing", str(name)[:40], makers, "one of " + ", ".join(makers))
    with record():
        return makers[name](request) | {"name": name}


def _number(request: dict[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = request.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise BadValue(name, str(value)[:40], f"a number from {low:g} to {high:g}")
    return value


def _control(name: str, label: str, low: float, high: float, step: float, value: float) -> dict[str, Any]:
    return {"name": name, "label": label, "low": low, "high": high, "step": step, "value": value}


def _fact(name: str, value: Any, unit: str) -> dict[str, str]:
    return {"name": name, "text": format_value(float(value), unit)}


# -- trains ---------------------------------------------------------------------------------------------------------------------


def _trains(request: dict[str, Any]) -> dict[str, Any]:
    """Requests drawn at random, who board the next train with a free seat, first come, first served."""
    period, load = float(claims()["TS-05"].inputs["step_s"]), _number(request, "load", 0.8, *LOADS)
    rate = float(train_rate(load, period, SEATS))
    table = random_timetable(rate, period, SEATS, TRAINS, SEED)
    trains = [
        {"departs_s": train.time_s, "aboard": train.boarded, "left": waiting}
        for train, waiting in zip(table.departures, table.left_behind, strict=True)
    ]
    requests = [{"arrives_s": entry.arrival_s, "train": round(entry.departure_s / period) - 1} for entry in table.boardings]
    facts = [_fact("a train leaves every", period, "s"), _fact("mean wait, a seat in every train", beat_wait_s(period), "s")]
    facts.append(
        _fact("mean wait at this load", timetable_wait_s(rate, period, SEATS), "s")
        if load < 1
        else {"name": "mean wait", "text": "grows without end"}
    )
    return {
        "title": "Trains leave on the clock, full or not", "period_s": period, "seats": SEATS, "trains": trains, "requests": requests,
        "facts": facts, "controls": [_control("load", "Load: seats asked for over seats", *LOADS, 0.05, load)],
    }  # fmt: skip


# -- stages ---------------------------------------------------------------------------------------------------------------------


def _stages(request: dict[str, Any]) -> dict[str, Any]:
    """One forward, one backward: every micro-batch through every stage, a backward as long as two forwards."""
    stages = int(_number(request, "stages", 4, 2, MOST_STAGES))
    count = int(_number(request, "micro_batches", 8, 1, MOST_MICRO_BATCHES))
    spans = training(SCHEDULE, stages, count, 1.0, 1.0, 1.0)
    blocks = [
        {"stage": span.stage, "micro_batch": span.micro_batch, "back": span.kind == "B", "start": span.start, "end": span.end}
        for span in spans
    ]
    bubble = one_forward_one_backward_bubble(stages, count)
    controls = [
        _control("stages", "Stages", 2, MOST_STAGES, 1, stages),
        _control("micro_batches", "Micro-batches", 1, MOST_MICRO_BATCHES, 1, count),
    ]
    facts = [
        _fact("idle over busy time: (stages - 1) / micro-batches", bubble, ""),
        _fact("idle share of the step: (stages - 1) / (micro-batches + stages - 1)", wall_time_share(bubble), ""),
    ]
    end = max(block["end"] for block in blocks)
    title = "Micro-batches flow through the stages; the white is the bubble"
    return {"title": title, "stages": stages, "blocks": blocks, "end": end, "facts": facts, "controls": controls}


# -- activations ----------------------------------------------------------------------------------------------------------------


def _activations(request: dict[str, Any]) -> dict[str, Any]:
    """Layers forward and back: what ordinary training keeps, and what a reversible network keeps and makes again."""
    layers = int(_number(request, "layers", 8, *DRAWN_LAYERS))
    inputs = {name: float(value) for name, value in claims()["CR-03"].inputs.items()}
    claim_inputs = claims()["CR-03"].inputs
    layer, streams = layer_bytes(_Inputs(claim_inputs)), stream_bytes(claim_inputs["width"] * claim_inputs["hidden"])
    none, tokens, copies = (claim_inputs[name] for name in ("none", "tokens", "copies"))
    ordinary = [float(activation_bytes_chip(layer, none, tokens, count * copies)) for count in range(layers + 1)]
    reversible = float(reversible_bytes_chip(streams, layer, claim_inputs["tokens"], claim_inputs["copies"]))
    forward = [{"layer": place, "back": False, "kept": place + 1} for place in range(layers)]
    backward = [{"layer": place, "back": True, "kept": place} for place in reversed(range(layers))]
    steps = [step | {"ordinary": ordinary[step["kept"]], "reversible": reversible} for step in (*forward, *backward)]
    texts = [{"ordinary": format_value(step["ordinary"], "byte"), "reversible": format_value(reversible, "byte")} for step in steps]
    facts = [
        _fact("kept at most, ordinary", ordinary[layers], "byte"),
        _fact("kept, reversible", reversible, "byte"),
        _fact("tokens", inputs["tokens"], "token"),
    ]
    return {
        "title": "Activations kept, or made again on the way back", "layers": layers, "most": max(ordinary[layers], reversible),
        "steps": [step | {"text": text} for step, text in zip(steps, texts, strict=True)], "facts": facts,
        "controls": [_control("layers", "Layers", *DRAWN_LAYERS, 1, layers)],
    }  # fmt: skip


class _Inputs:
    """Inputs of a claim as its recomputation reads them."""

    def __init__(self, inputs: Any) -> None:
        self.__dict__.update(inputs)
