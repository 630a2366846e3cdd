"""The numbers of the blackboard's drawings: trains that leave on a clock, micro-batches in stages, activations made again, an expert layer
over racks, the memory of a pipeline's chips, and one flipped bit in a cipher.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from headway.core.errors import BadValue, UnknownName
from headway.core.listing import format_value
from headway.core.trace import record
from headway.evidence.claims.claim import ClaimInputs, claims
from headway.evidence.claims.training import layer_bytes
from headway.evidence.lecture.inputs import InputCase, figures
from headway.laws.coupling import random_avalanche
from headway.laws.queueing.departures import beat_wait_s, timetable_wait_s, train_rate
from headway.laws.roofline.balance import sent_s
from headway.laws.roofline.batch_step import latency_floor_s
from headway.laws.training.memory import activation_bytes_chip, reversible_bytes_chip, stream_bytes
from headway.laws.training.step import one_forward_one_backward_bubble, wall_time_share
from headway.reality import attacks
from headway.reality.ciphers.catalogue import cipher
from headway.reality.demonstrations import key_of
from headway.simulation.timetable import random_timetable
from headway.training.timeline import training

SEATS, TRAINS = 8, 24
LOADS = (0.1, 1.2)
MOST_STAGES, MOST_MICRO_BATCHES = 8, 32
SCHEDULE = "1f1b"
DRAWN_LAYERS = (2, 16)
MOST_RACKS = 4
CIPHER, MOST_ROUNDS, FLIPPED_BIT, TRIALS = "simon32", 16, 5, 1000
SEED = 7  # of arrivals and of blocks, the same for every reader


def drawing(request: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a drawing, with its controls and the words below it."""
    name = request.get("name")
    makers = {"trains": _trains, "stages": _stages, "activations": _activations, "experts": _experts, "memory": _pipeline_memory,
              "avalanche": _avalanche}  # fmt: skip
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
    layers, case = int(_number(request, "layers", 8, *DRAWN_LAYERS)), ClaimInputs(**claims()["CR-03"].inputs)
    layer, streams = layer_bytes(case), stream_bytes(case.width * case.hidden)
    ordinary = [float(activation_bytes_chip(layer, case.none, case.tokens, count * case.copies)) for count in range(layers + 1)]
    reversible = float(reversible_bytes_chip(streams, layer, case.tokens, case.copies))
    forward = [{"layer": place, "back": False, "kept": place + 1} for place in range(layers)]
    backward = [{"layer": place, "back": True, "kept": place} for place in reversed(range(layers))]
    sizes = [{"ordinary": ordinary[step["kept"]], "reversible": reversible} for step in (*forward, *backward)]
    texts = [{name: format_value(size, "byte") for name, size in step.items()} for step in sizes]
    facts = [
        _fact("kept at most, ordinary", ordinary[layers], "byte"),
        _fact("kept, reversible", reversible, "byte"),
        _fact("tokens", case.tokens, "token"),
    ]
    return {
        "title": "Activations kept, or made again on the way back", "layers": layers, "most": max(ordinary[layers], reversible),
        "steps": [place | step | {"text": text} for place, step, text in zip((*forward, *backward), sizes, texts, strict=True)],
        "facts": facts, "controls": [_control("layers", "Layers", *DRAWN_LAYERS, 1, layers)],
    }  # fmt: skip


# -- an expert layer on racks ----------------------------------------------------------------------------------------------------


def _recomputed(claim_id: str, **values: float) -> Mapping[str, float]:
    """Figures of a claim with some of its inputs changed, by its own recomputation."""
    return {name: float(value) for name, value in figures(claims()[claim_id], InputCase(labels={}, values=values)).items()}


def _experts(request: dict[str, Any]) -> dict[str, Any]:
    """One token on its way to its experts, evenly spread over racks, and what the links inside and between them carry for a layer."""
    racks = int(_number(request, "racks", 2, 1, MOST_RACKS))
    case, layer, over = ClaimInputs(**claims()["MOE-11"].inputs), _recomputed("MOE-11"), _recomputed("MOE-08", two=racks)
    chips, copies, ratio = int(case.chips), int(case.copies), float(claims()["MOE-08"].inputs["ratio"])
    leaving, slower, message = over["share that leaves one of two"], over["slower over 2 racks"], layer["bytes per chip and layer"]
    places = [chips * racks * place // copies + 5 * place % (chips // copies) for place in range(copies)]  # in no straight line
    links = [{"rack": place // chips, "chip": place % chips, "crosses": place >= chips} for place in places]
    speeds = {"inside": float(case.up_bw), "between": float(case.up_bw) / ratio}
    sizes = {"inside": message * (1 - leaving), "between": message * leaving}
    times = {where: float(sent_s(sizes[where], speed)) for where, speed in speeds.items()}
    words = {"inside": "inside the rack", "between": "between racks"}
    loads = [
        {"name": words[where], "text": f"{format_value(sizes[where], 'byte')} a chip at {format_value(speeds[where], 'byte/s')}"}
        for where in words if sizes[where]
    ]  # fmt: skip
    texts = {where: f"{words[where]}: {format_value(times[where], 's')}" for where in words if sizes[where]}
    facts = [
        *loads,
        {"name": "a token's experts in other racks", "text": f"{leaving:.0%}"},
        _fact("an exchange, one layer", layer["one layer in the rack"] * slower, "s"),
        {"name": "over that inside one rack", "text": f"{slower:.3g}x"},
        _fact("weight read of a layer", float(latency_floor_s(case.total, case.fp8, case.mem_bw) / case.moe_layers), "s"),
    ]
    title = f"Over {racks} racks {leaving:.0%} of the traffic leaves its rack, and the exchange takes {slower:.3g} times as long"
    return {
        "title": title if racks > 1 else "Inside one rack every link is fast, and the exchange hides behind the weight read",
        "racks": racks, "chips": chips, "home": chips // 2 + 1, "links": links, "texts": texts, "facts": facts,
        "legend": "holds an expert of this token",
        "seconds": {where: time / layer["one layer in the rack"] for where, time in times.items()},
        "controls": [_control("racks", "Racks under one expert layer", 1, MOST_RACKS, 1, racks)],
    }  # fmt: skip


# -- memory of a pipeline -------------------------------------------------------------------------------------------------------


def _pipeline_memory(request: dict[str, Any]) -> dict[str, Any]:
    """What a chip of each stage holds: fewer weights with more stages, and as much KV cache, since more sequences are in flight."""
    stages, case = int(_number(request, "stages", 4, 1, MOST_STAGES)), ClaimInputs(**claims()["PP-11"].inputs)
    alone, memory = _recomputed("PP-11", p_8=1), _recomputed("PP-11", p_8=stages)
    most = sum(alone[kind] for kind in ("weights", "KV"))
    kinds = [{"kind": kind, "size": memory[kind], "text": format_value(memory[kind], "byte")} for kind in ("weights", "KV")]
    facts = [
        _fact("weights of a chip", memory["weights"], "byte"), _fact("KV cache of a chip", memory["KV"], "byte"),
        _fact("sequences in flight", _recomputed("PP-09", stages=stages, micro_batch=float(case.micro_batch))["sequences in flight"], ""),
        {"name": "share of the layers on a chip", "text": f"1/{stages}" if stages > 1 else "all"},
    ]  # fmt: skip
    title = f"Over {stages} stages a chip holds 1/{stages} of the weights, and as much KV cache as before"
    return {
        "title": title if stages > 1 else "Without a pipeline a chip holds its share of all layers", "stages": stages, "kinds": kinds,
        "most": most, "legend": f"dashed: without a pipeline, {format_value(most, 'byte')}", "facts": facts,
        "controls": [_control("stages", "Stages", 1, MOST_STAGES, 1, stages)],
    }  # fmt: skip


# -- avalanche ------------------------------------------------------------------------------------------------------------------


def _avalanche(request: dict[str, Any]) -> dict[str, Any]:
    """The bits in which two blocks differ, round by round, that differed in one."""
    rounds, subject = int(_number(request, "rounds", 8, 0, MOST_ROUNDS)), cipher(CIPHER)
    key, bits = key_of(subject, None), subject.block_bits
    plain = attacks.random_blocks(np.random.default_rng(SEED), 1, bits)
    flipped = plain ^ np.uint64(1 << FLIPPED_BIT)
    differences = [int((subject.encrypt(plain, key, count) ^ subject.encrypt(flipped, key, count))[0]) for count in range(rounds + 1)]
    rows = [{"round": count, "bits": f"{difference:0{bits}b}", "text": f"{difference.bit_count()} of {bits}"}
            for count, difference in enumerate(differences)]  # fmt: skip
    mean = attacks.changed_bits(subject, rounds, key, TRIALS, SEED) / TRIALS
    facts = [
        {"name": f"mean of {TRIALS:,} blocks after {rounds} rounds", "text": f"{mean:.3g} of {bits} bits"},
        {"name": "behind a random permutation", "text": f"{float(random_avalanche(bits)) * bits:.3g}"},
        {"name": "bits that differ, by round", "text": ", ".join(str(difference.bit_count()) for difference in differences)},
    ]
    title = f"After {rounds} rounds of {subject.title}, one flipped bit has changed {differences[-1].bit_count()} of {bits}"
    return {
        "title": title, "rows": rows, "most": MOST_ROUNDS, "facts": facts,
        "controls": [_control("rounds", "Rounds", 0, MOST_ROUNDS, 1, rounds)],
    }  # fmt: skip
