"""A decoder's steps, predicted from the measured machine alone, then measured: points chosen before, of sizes unlike those measured there.

The prediction is the step law of every verb. What depends on size (rows of an expert, reads of a cache by context) is taken where the
machine's own measurement lies nearest, never from a point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from headway.core.progress import expect, tick
from headway.core.schema import defaults
from headway.core.units import Second
from headway.hardware.system import of_chip
from headway.laws.collectives.expert_parallel import distinct_experts
from headway.laws.step.step import step_s
from headway.models.precision import Precision
from headway.models.totals import kv_bytes_per_token, total_params
from headway.models.work import work_of
from headway.performance.assumptions import Assumptions
from headway.performance.compile import compile_layout
from headway.performance.formats import resolve
from headway.performance.layout import Layout
from headway.reality import threads
from headway.reality.lab.decoder import random_decoder
from headway.reality.lab.experiment import hash_of
from headway.reality.lab.shape import LabShape, model_of
from headway.reality.measure.chip import chip_of, efficiencies_of, sections_of
from headway.reality.measure.rates import MachineRates
from headway.reality.measure.record import MachineRecord
from headway.reality.measure.timing import Clock, Rounds, clock_of, timed

DECODE, PREFILL = "decode", "prefill"
SHAPES = {
    "narrow": LabShape(layers=10, hidden=512, heads=8, kv_heads=2, head_dim=64, experts=0, shared_width=1408, vocab=4096),
    "wide": LabShape(layers=4, hidden=1024, heads=16, kv_heads=4, head_dim=64, experts=0, shared_width=2816, vocab=4096),
    "routed": LabShape(
        layers=4, hidden=512, heads=8, kv_heads=2, head_dim=64, experts=32, per_token=4, expert_width=384, shared_width=512, vocab=4096
    ),
}
BATCHES, CONTEXTS, PROMPTS = (1, 6, 24), (64, 384, 1024), (48, 160, 448)
QUICK_BATCHES, QUICK_CONTEXTS = (1, 6, 24), (64, 384)  # 18 steps and 6 prompts
QUICK_PROMPTS = (48, 160)
CHILD = "headway.reality.measure.decode"
FORMAT = "float32"  # of the decoders' numbers
ELEMENT = 4  # bytes of a number, 32 bits
MARGIN = 2.0  # random numbers are drawn beside the weights that they become
AIM = 0.25  # median error that is asked for
PLAIN = Rounds(budget_s=0.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePoint:
    """A step or a prompt of one decoder; `tokens` are the context of a step, or the prompt."""

    kind: str
    shape: str
    batch: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeResult:
    """A point with what was predicted of it and what it took."""

    point: DecodePoint
    predicted_s: float
    measured_s: float
    spread: float

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted_s / self.measured_s - 1


def points(quick: bool = False) -> tuple[DecodePoint, ...]:
    """The points, the same on every machine."""
    batches, contexts = (QUICK_BATCHES, QUICK_CONTEXTS) if quick else (BATCHES, CONTEXTS)
    steps = itertools.product((DECODE,), SHAPES, batches, contexts)
    prompts = itertools.product((PREFILL,), SHAPES, (1,), QUICK_PROMPTS if quick else PROMPTS)
    return tuple(DecodePoint(kind=kind, shape=shape, batch=batch, tokens=tokens) for kind, shape, batch, tokens in (*steps, *prompts))


def as_decoders_multiply(record: MachineRecord) -> MachineRecord:
    """The machine in the number format of the decoders alone."""
    return replace(record, matmuls=tuple(time for time in record.matmuls if time.format == FORMAT))


# -- prediction -----------------------------------------------------------------------------------------------------------------------


def predicted(record: MachineRecord, rates: MachineRates, point: DecodePoint) -> float:
    """Seconds of a point by the step law, from the machine's measurement alone."""
    return float(law_s(record, rates, SHAPES[point.shape], point))


def law_s(record: MachineRecord, rates: MachineRates, shape: LabShape, point: DecodePoint) -> Second:
    """The same of a decoder of any shape, with the laws behind it."""
    work, machine = work_of(model_of(shape)), of_chip(chip_of(record, rates, "measured"))
    assumptions = defaults(Assumptions, {"engine": "none", "imbalance": 1})
    formats = resolve(work, machine.chip, Precision(weights="fp32", kv="fp32"))
    table = efficiencies_of(sections_at(record, rates, shape, point), record.date)
    step = compile_layout(work, machine, Layout(), assumptions, formats, table).step
    tokens = float(point.tokens)
    if point.kind == PREFILL:
        return step_s(step, 0.0, 0.0, tokens, tokens**2 / 2)
    return step_s(step, float(point.batch), point.batch * tokens, 0.0, 0.0)


def sections_at(record: MachineRecord, rates: MachineRates, shape: LabShape, point: DecodePoint) -> dict[str, dict[str, float]]:
    """The machine's numbers at a point: what a cache of its length is read with, and the calls of the experts that it touches."""
    scores = shape.heads // shape.kv_heads * point.tokens * shape.head_dim
    sections = sections_of(replace(rates, decode_memory=_cache_share(record, rates, scores)))
    rows = point.batch if point.kind == DECODE else point.tokens
    if rows == 1:
        sections["gemm.other.bf16"] |= {"memory": _row_share(record, rates, _matrices(shape))}
    if not shape.experts:
        return sections
    touched = float(distinct_experts(shape.experts, shape.per_token, float(rows)))
    tokens = rows * shape.per_token / touched
    copied = 1 + rates.packing * min(tokens - 1, 1)  # of experts that several tokens share
    single = _row_share(record, rates, ((shape.hidden, 2 * shape.expert_width), (shape.expert_width, shape.hidden)))
    experts = {"t0_s": rates.routing_s + touched * rates.expert_s, "memory": (single if tokens == 1 else rates.memory) / copied}
    return sections | {"moe.other.bf16": sections["moe.other.bf16"] | experts}


def _matrices(shape: LabShape) -> tuple[tuple[int, int], ...]:
    """Inputs and outputs of the matrices that every token passes: those of a layer as often as there are layers, and the head."""
    hidden, width, heads = shape.hidden, shape.shared_width, shape.heads * shape.head_dim
    layer = ((hidden, heads + 2 * shape.kv_heads * shape.head_dim), (heads, hidden), (hidden, 2 * width), (width, hidden))
    return (*layer * shape.layers, (hidden, shape.vocab))


def _row_share(record: MachineRecord, rates: MachineRates, matrices: Sequence[tuple[int, int]]) -> float:
    """Share of the bandwidth with which a single row reads matrices, each by its outputs between those that were measured.

    A library takes a few rows of a matrix at a time, so that short ones are read more slowly.
    """
    singles = sorted((time.columns, time.weights_per_s / rates.bandwidth) for time in record.matmuls if time.rows == 1)
    usual = median(share for _, share in singles)
    columns, logs = [math.log(size) for size, _ in singles], [math.log(share * rates.memory / usual) for _, share in singles]
    sizes = [inputs * outputs for inputs, outputs in matrices]
    waits = [size / math.exp(float(np.interp(math.log(out), columns, logs))) for size, (_, out) in zip(sizes, matrices, strict=True)]
    return sum(sizes) / sum(waits)


def _cache_share(record: MachineRecord, rates: MachineRates, work: float) -> float:
    """Share of the bandwidth with which a KV head's cache is read, between the sizes that were measured.

    `work` are the multiplications of its scores, by which a library chooses whether it copies the keys first.
    """
    batch = max(time.sequences for time in record.attentions)
    times = [time for time in record.attentions if time.queries == 1 and time.sequences == batch]
    decodes = sorted((time.heads // time.kv_heads * time.context * time.head, time) for time in times)
    shares = []
    for _, attention in decodes:
        busy = max(attention.seconds - rates.decode_t0_s - attention.sequences * attention.kv_heads * rates.block_s, attention.seconds / 10)
        shares.append(math.log(attention.bytes / rates.bandwidth / busy))
    return math.exp(float(np.interp(math.log(work), [math.log(size) for size, _ in decodes], shares)))


def prediction(record: MachineRecord, rates: MachineRates, quick: bool) -> dict[str, Any]:
    """What is written before anything is measured: the points with their times, and the hash over them."""
    rows = [asdict(point) | {"predicted_s": predicted(record, rates, point)} for point in points(quick)]
    return {"machine": record.as_dict(), "points": rows, "sha256": hash_of(rows)}


def memory_need(quick: bool) -> float:
    """Bytes of the largest decoder with the cache of its largest point."""

    def need(point: DecodePoint) -> float:
        model = model_of(SHAPES[point.shape])
        cache = float(kv_bytes_per_token(model, ELEMENT)) * point.batch * point.tokens
        return MARGIN * (float(total_params(model)) * ELEMENT + cache)

    return max(map(need, points(quick)))


# -- measurement ----------------------------------------------------------------------------------------------------------------------


def results(document: Mapping[str, Any], count: int, child: Callable[..., dict[str, Any]] = threads.in_child) -> list[DecodeResult]:
    """The predicted points, measured in a process with so many threads."""
    rows = document["points"]
    plain = [{key: value for key, value in row.items() if key != "predicted_s"} for row in rows]
    times = child(CHILD, {"points": plain, "threads": count}, count)["times"]
    return [
        DecodeResult(point=DecodePoint(**place), predicted_s=row["predicted_s"], measured_s=seconds, spread=spread)
        for place, row, (seconds, spread) in zip(plain, rows, times, strict=True)
    ]


def median_error(all_results: Sequence[DecodeResult], kind: str) -> float:
    """Median of the absolute errors of a kind of point."""
    return median(abs(result.error) for result in all_results if result.point.kind == kind)


def measure_points(all_points: Sequence[DecodePoint], clock: Clock, rounds: Rounds = PLAIN) -> list[tuple[float, float]]:
    """Median time and spread of each point, in their order; one decoder at a time lies in memory."""
    expect(len(all_points))
    times: dict[DecodePoint, tuple[float, float]] = {}
    for name in dict.fromkeys(point.shape for point in all_points):
        decoder = random_decoder(SHAPES[name])
        draw = np.random.default_rng(1)
        for point in (point for point in all_points if point.shape == name):
            new, filled = (1, point.tokens - 1) if point.kind == DECODE else (point.tokens, 0)
            cache, texts = decoder.cache(point.batch, point.tokens, filled), draw.integers(0, decoder.shape.vocab, (point.batch, new))

            def step(cache: Any = cache, texts: Any = texts, filled: int = filled, decoder: Any = decoder) -> None:
                cache.lengths[:] = filled
                decoder.step(texts, cache)

            result = timed(step, rounds, clock)
            times[point] = result.median_s, result.spread
            tick(1)
    return [times[point] for point in all_points]


def job(request: Mapping[str, Any]) -> dict[str, Any]:
    """The child's side of `results`."""
    all_points = [DecodePoint(**point) for point in request["points"]]
    return {"times": measure_points(all_points, clock_of(request["threads"]))}


if __name__ == "__main__":
    threads.answer(job)
