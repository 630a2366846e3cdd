"""What torch measures: a card (matmuls, reads and copies, launches, attention, links), and a processor's matmuls in narrow formats.

Calls return before a card has done their work, so a round ends when the card is idle. Weights come from a ring larger than its caches.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

from headway.core.errors import HeadwayError
from headway.core.progress import expect, tick
from headway.reality.measure.processor import MeasureSizes
from headway.reality.measure.record import (
    COPY,
    GATE,
    LAUNCH,
    MATMUL,
    MATVEC,
    NORM,
    OPERATION,
    READ,
    ROTATION,
    ROUTING,
    AttentionTime,
    CallTime,
    LinkTime,
    MatmulTime,
    StreamTime,
    VectorTime,
)
from headway.reality.measure.timing import Clock, Timed, nothing, timed

WIDTH = 8192
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 8192)
FORMATS = ("bfloat16", "float16", "float32", "int8")
NARROW = ("bfloat16", "float16", "int8")  # of a processor, beside those of numpy
VECTOR_ROWS, VECTOR_WIDTH = (1, 4096), 4096
HEADS, KV_HEADS, HEAD = 32, 8, 128
CONTEXTS, SEQUENCES, PROMPTS = (512, 2048, 8192), (1, 16), (1024, 4096)
LINK_BYTES = 256 * 10**6
EXPERTS, PER_TOKEN = 64, 4
LIBRARY = "torch"


def measure(sizes: MeasureSizes, clock: Clock = time.perf_counter) -> dict[str, Any]:
    """The first card, as a part of a record."""
    import torch  # type: ignore[import-not-found]

    if not torch.cuda.is_available():
        raise HeadwayError("torch sees no card: headway measure --device processor")
    ring = max(sizes.ring_bytes, 4 * 128 * 10**6)  # of the card's own memory
    timer = _Timer(torch, replace(sizes, ring_bytes=ring, width=WIDTH, rows=ROWS), clock, "cuda")
    facts = torch.cuda.get_device_properties(0)
    formats = [form for form in FORMATS if form != "int8" or hasattr(torch, "_int_mm")]
    expect(2 + 3 + 8 + len(CONTEXTS) * len(SEQUENCES) + len(PROMPTS))
    matmuls = tuple(itertools.chain.from_iterable(_matmuls(timer, form, True) for form in formats))
    first = next(matmul for matmul in matmuls if matmul.rows == 1)
    matvec = StreamTime(kind=MATVEC, bytes=first.inner * first.columns * first.element, seconds=first.seconds, spread=first.spread)
    parts = {
        "matmuls": matmuls, "streams": (matvec, *_streams(timer)), "calls": tuple(_calls(timer)), "vectors": tuple(_vectors(timer)),
        "attentions": tuple(_attentions(timer)), "links": tuple(_links(timer)),
    }  # fmt: skip
    about = {"device": facts.name, "library": f"{LIBRARY} {torch.__version__}", "memory": facts.total_memory}
    return about | {"cards": torch.cuda.device_count()} | {name: [asdict(part) for part in group] for name, group in parts.items()}


def narrow_matmuls(sizes: MeasureSizes, clock: Clock, threads: int, fastest: float) -> Iterator[MatmulTime]:
    """The processor's matmuls in narrow formats; native where one is faster than `fastest`, the rate in float32."""
    import torch  # type: ignore[import-not-found]

    torch.set_num_threads(threads)
    timer = _Timer(torch, sizes, clock, "cpu")
    for form in NARROW:
        try:
            times = tuple(_matmuls(timer, form, False))
        except (RuntimeError, AttributeError):  # no such kernel for this processor
            continue
        native = max(time.flop_per_s for time in times) > fastest
        yield from (replace(time, native=native) for time in times)


class _Timer:
    """Times of calls on a device of torch's: each round of a card's ends when it is idle."""

    def __init__(self, torch: Any, sizes: MeasureSizes, clock: Clock, device: str) -> None:
        self.torch, self.sizes, self.clock, self.device = torch, sizes, clock, device
        self.ring_bytes = sizes.ring_bytes

    def __call__(self, work: Callable[[], object]) -> Timed:
        settle = self.torch.cuda.synchronize if self.device == "cuda" else nothing
        result = timed(work, self.sizes.rounds, self.clock, settle)
        tick(1)
        return result

    def random(self, form: str, *shape: int) -> Any:
        """Random numbers on the device."""
        torch = self.torch
        if form == "int8":
            return torch.randint(-9, 9, shape, dtype=torch.int8, device=self.device)
        return torch.randn(shape, dtype=torch.float32, device=self.device).to(getattr(torch, form))


def _matmuls(timer: _Timer, form: str, native: bool) -> Iterator[MatmulTime]:
    torch, width = timer.torch, timer.sizes.width
    matrix = timer.random(form, width, width)
    count = max(2, timer.ring_bytes // (width * width * matrix.element_size()))
    ring = itertools.cycle([matrix.clone() for _ in range(count)])
    multiply = torch._int_mm if form == "int8" else torch.matmul
    all_rows = [rows for rows in timer.sizes.rows if form != "int8" or rows > 16]  # below which torch has no such kernel
    expect(len(all_rows))
    for rows in all_rows:
        inputs = timer.random(form, rows, width)
        result = timer(lambda inputs=inputs: multiply(inputs, next(ring)))
        yield MatmulTime(
            format=form, native=native, rows=rows, inner=width, columns=width, element=matrix.element_size(), seconds=result.median_s,
            spread=result.spread,
        )  # fmt: skip


def _streams(timer: _Timer) -> Iterator[StreamTime]:
    source = timer.random("bfloat16", timer.ring_bytes)
    target = timer.torch.empty_like(source)
    size = source.numel() * source.element_size()
    for kind, passes, work in ((READ, 1, lambda: source.sum()), (COPY, 2, lambda: target.copy_(source))):
        result = timer(work)
        yield StreamTime(kind=kind, bytes=passes * size, seconds=result.median_s, spread=result.spread)


def _calls(timer: _Timer) -> Iterator[CallTime]:
    vector, matrix = timer.random("float32", 64), timer.random("float32", 16, 16)
    settle = timer.torch.cuda.synchronize
    works = {OPERATION: lambda: vector.add_(1), MATMUL: lambda: matrix @ matrix, LAUNCH: lambda: (vector.add_(1), settle())}
    for kind, work in works.items():  # the last waits for its kernel, the others are launched one behind the other
        result = timer(work)
        yield CallTime(kind=kind, seconds=result.median_s, spread=result.spread)


def _vectors(timer: _Timer) -> Iterator[VectorTime]:
    torch = timer.torch
    for rows in VECTOR_ROWS:
        x, gate = timer.random("bfloat16", rows, VECTOR_WIDTH), timer.random("bfloat16", rows, VECTOR_WIDTH)
        scale, scores = x[0].clone(), x[:, :EXPERTS].float()
        first, second = x.chunk(2, dim=-1)
        works = {
            NORM: lambda x=x, scale=scale: torch.nn.functional.rms_norm(x + x, (VECTOR_WIDTH,), scale),
            ROTATION: lambda first=first, second=second: torch.cat((first * second - second, second * first + first), dim=-1),
            ROUTING: lambda x=x, scores=scores: x[torch.topk(scores, PER_TOKEN, dim=1)[1].flatten().sort()[1] // PER_TOKEN],
            GATE: lambda x=x, gate=gate: torch.nn.functional.silu(gate) * x,
        }
        for kind, work in works.items():
            result = timer(work)
            yield VectorTime(kind=kind, rows=rows, width=VECTOR_WIDTH, seconds=result.median_s, spread=result.spread)


def _attentions(timer: _Timer) -> Iterator[AttentionTime]:
    shapes = [(sequences, 1, context) for context in CONTEXTS for sequences in SEQUENCES]
    for sequences, queries, context in (*shapes, *((1, prompt, prompt) for prompt in PROMPTS)):
        size = 2 * sequences * KV_HEADS * context * HEAD * 2
        layers = max(1, min(64, timer.ring_bytes // size))
        caches = [[timer.random("bfloat16", sequences, KV_HEADS, context, HEAD) for _ in range(2)] for _ in range(layers)]
        new = timer.random("bfloat16", sequences, HEADS, queries, HEAD)
        result = timer(functools.partial(_attend, timer.torch, new, itertools.cycle(caches)))
        yield AttentionTime(
            sequences=sequences, queries=queries, context=context, heads=HEADS, kv_heads=KV_HEADS, head=HEAD, element=2,
            seconds=result.median_s, spread=result.spread,
        )  # fmt: skip


def _attend(torch: Any, queries: Any, ring: Iterator[Any]) -> Any:
    keys, values = next(ring)
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(queries, keys, values, is_causal=queries.shape[2] > 1, enable_gqa=True)


def _links(timer: _Timer) -> Iterator[LinkTime]:
    torch = timer.torch
    pinned = torch.empty(LINK_BYTES, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(LINK_BYTES, dtype=torch.uint8, device="cuda:0")
    pairs = [("host", "card", pinned, target)]
    if torch.cuda.device_count() > 1:
        pairs.append(("card", "peer", target, torch.empty(LINK_BYTES, dtype=torch.uint8, device="cuda:1")))
    for origin, end, source, place in pairs:
        result = timer(lambda source=source, place=place: place.copy_(source, non_blocking=True))
        yield LinkTime(origin=origin, target=end, bytes=LINK_BYTES, seconds=result.median_s, spread=result.spread)
