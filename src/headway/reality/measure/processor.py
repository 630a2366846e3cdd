"""The processor measured by numpy alone: matmuls by format and rows, reads and copies past the caches, calls, attention.

Weights come from a ring of matrices larger than any cache, one after the other, as a decode step meets them. Buffers are random: zeros
may share one page of memory.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.progress import expect, tick
from headway.reality.lab.decoder import softmax
from headway.reality.measure.record import (
    COPY,
    GATE,
    MATMUL,
    MATVEC,
    NORM,
    OPERATION,
    READ,
    ROTATION,
    ROUTING,
    AttentionTime,
    CallTime,
    MatmulTime,
    StreamTime,
    VectorTime,
)
from headway.reality.measure.timing import USUAL, Clock, Rounds, Timed, timed

Array = np.ndarray[Any, Any]
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
NATIVE = ("float32", "float64")  # which numpy hands to a BLAS
LOOPED = ("float16", "int8")  # which numpy multiplies element by element, so that libraries convert first
SMALL = 8  # rows and columns of a matmul that is next to no work
SMALL_VECTOR = 64
EXPERTS, PER_TOKEN = 48, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSizes:
    """What is multiplied and read, and for how long."""

    rows: tuple[int, ...] = ROWS
    width: int = 1536
    shapes: tuple[float, ...] = (1.0, 0.5, 2.0, 4.0)  # inputs of a matrix over the width; its outputs make up for it
    few: int = 64  # rows up to which all shapes are tried, of the first format
    ring_bytes: int = 256 * 10**6  # of weights, and of a stream: past the caches of any processor
    looped_width: int = 256
    vector_rows: tuple[int, ...] = (1, 96)
    vector_width: int = 896
    contexts: tuple[int, ...] = (96, 224, 448, 640, 1280)
    sequences: tuple[int, ...] = (1, 12)
    prompts: tuple[int, ...] = (96, 320)
    heads: int = 6
    kv_heads: int = 3
    head: int = 64
    rounds: Rounds = USUAL


QUICK = MeasureSizes(
    rows=(1, 2, 8, 32, 128, 512), ring_bytes=128 * 10**6, contexts=(96, 448, 640), sequences=(1, 12), prompts=(192,),
    rounds=Rounds(budget_s=0.25),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorTimes:
    """What `measure` gives."""

    matmuls: tuple[MatmulTime, ...]
    streams: tuple[StreamTime, ...]
    calls: tuple[CallTime, ...]
    vectors: tuple[VectorTime, ...]
    attentions: tuple[AttentionTime, ...]


def measure(sizes: MeasureSizes, clock: Clock = time.perf_counter, seed: int = 0) -> ProcessorTimes:
    """All times of the processor, with the threads that the library has by now."""
    draw = np.random.default_rng(seed)
    shapes = len(sizes.sequences) * len(sizes.contexts) + len(sizes.prompts)
    few = (len(sizes.shapes) - 1) * sum(rows <= sizes.few for rows in sizes.rows)
    expect(len(NATIVE) * len(sizes.rows) + few + len(LOOPED) + 4 + 4 * len(sizes.vector_rows) + shapes)
    clocked = functools.partial(_clocked, rounds=sizes.rounds, clock=clock)
    calls = tuple(_calls(draw, clocked))
    matmuls = tuple(itertools.chain.from_iterable(_matmuls(form, sizes, draw, clocked) for form in (*NATIVE, *LOOPED)))
    first = max((matmul for matmul in matmuls if matmul.rows == 1), key=lambda matmul: matmul.weights_per_s)
    matvec = StreamTime(kind=MATVEC, bytes=first.inner * first.columns * first.element, seconds=first.seconds, spread=first.spread)
    return ProcessorTimes(
        matmuls=matmuls, streams=(matvec, *_streams(sizes, draw, clocked)), calls=calls,
        vectors=tuple(_vectors(sizes, draw, clocked)), attentions=tuple(_attentions(sizes, draw, clocked)),
    )  # fmt: skip


Clocked = Callable[[Callable[[], object]], Timed]


def _clocked(work: Callable[[], object], rounds: Rounds, clock: Clock) -> Timed:
    result = timed(work, rounds, clock)
    tick(1)
    return result


def _random(draw: np.random.Generator, form: str, *shape: int) -> Array:
    if np.dtype(form).kind == "i":
        return draw.integers(-9, 9, shape, dtype=form)
    return draw.standard_normal(shape, np.float32).astype(form, copy=False)


def _calls(draw: np.random.Generator, clocked: Clocked) -> Iterator[CallTime]:
    vector, matrix = _random(draw, NATIVE[0], SMALL_VECTOR), _random(draw, NATIVE[0], SMALL, SMALL)
    for kind, work in ((OPERATION, lambda: vector + vector), (MATMUL, lambda: matrix @ matrix)):
        result = clocked(work)
        yield CallTime(kind=kind, seconds=result.median_s, spread=result.spread)


def _matmuls(form: str, sizes: MeasureSizes, draw: np.random.Generator, clocked: Clocked) -> Iterator[MatmulTime]:
    native, element = form in NATIVE, np.dtype(form).itemsize
    width = sizes.width if native else sizes.looped_width
    count = max(2, sizes.ring_bytes // (width * width * element)) if native else 1
    matrix = _random(draw, form, width, width)
    ring = [matrix.copy() for _ in range(count)]
    for shape in sizes.shapes if form == NATIVE[0] else (1.0,):
        inner = int(width * shape)
        matrices = itertools.cycle([matrix.reshape(inner, -1) for matrix in ring])
        all_rows = [rows for rows in sizes.rows if shape == 1 or rows <= sizes.few] if native else [min(sizes.rows[-1], width)]
        for rows in all_rows:
            inputs = _random(draw, form, rows, inner)
            result = clocked(lambda inputs=inputs, matrices=matrices: inputs @ next(matrices))
            yield MatmulTime(
                format=form, native=native, rows=rows, inner=inner, columns=width * width // inner, element=element,
                seconds=result.median_s, spread=result.spread,
            )  # fmt: skip


def _streams(sizes: MeasureSizes, draw: np.random.Generator, clocked: Clocked) -> Iterator[StreamTime]:
    source = _random(draw, NATIVE[0], sizes.ring_bytes // 4)
    target = np.empty_like(source)
    for kind, passes, work in ((READ, 1, lambda: np.dot(source, source)), (COPY, 2, lambda: np.copyto(target, source))):
        result = clocked(work)
        yield StreamTime(kind=kind, bytes=passes * source.nbytes, seconds=result.median_s, spread=result.spread)


def _vectors(sizes: MeasureSizes, draw: np.random.Generator, clocked: Clocked) -> Iterator[VectorTime]:
    for rows in sizes.vector_rows:
        x, wide = _random(draw, NATIVE[0], rows, sizes.vector_width), _random(draw, NATIVE[0], rows, 2 * sizes.vector_width)
        scale, halves = x[0].copy(), np.split(wide, 2, axis=1)
        works = {
            NORM: lambda x=x, scale=scale: (x + x) * (scale / np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / x.shape[1] + 1e-6)),
            ROTATION: lambda x=x: _rotated(x),
            ROUTING: lambda x=x: _routed(x),
            GATE: lambda halves=halves: halves[0] / (1 + np.exp(-halves[0])) * halves[1],
        }
        for kind, work in works.items():
            result = clocked(work)
            yield VectorTime(kind=kind, rows=rows, width=sizes.vector_width, seconds=result.median_s, spread=result.spread)


def _rotated(x: Array) -> Array:
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate((first * second[:1] - second * first[:1], second * second[:1] + first * first[:1]), axis=-1)


def _routed(x: Array) -> Array:
    """Tokens to a few of many experts, side by side those of one, and back; the experts themselves are matmuls."""
    scores = x[:, :EXPERTS].copy()
    experts = np.argpartition(-scores, PER_TOKEN - 1, axis=1)[:, :PER_TOKEN]
    weights = softmax(np.take_along_axis(scores, experts, 1))
    order = np.argsort(experts, axis=None, kind="stable")
    np.cumsum(np.bincount(experts.ravel(), minlength=EXPERTS)).tolist()
    inputs = x[order // PER_TOKEN]
    back = np.empty_like(inputs)
    back[order] = inputs
    return np.einsum("tk,tkh->th", weights, back.reshape(len(x), PER_TOKEN, -1))


def _attentions(sizes: MeasureSizes, draw: np.random.Generator, clocked: Clocked) -> Iterator[AttentionTime]:
    shapes = [(sequences, 1, context) for context in sizes.contexts for sequences in sizes.sequences]
    for sequences, queries, context in (*shapes, *((1, prompt, prompt) for prompt in sizes.prompts)):
        group, element = sizes.heads // sizes.kv_heads, np.dtype(NATIVE[0]).itemsize
        cache = (sequences, sizes.kv_heads, context, sizes.head)
        layers = max(1, min(64, sizes.ring_bytes // (2 * int(np.prod(cache)) * element)))  # past the caches, as the layers of a step
        ring = itertools.cycle([(_random(draw, NATIVE[0], *cache), _random(draw, NATIVE[0], *cache)) for _ in range(layers)])
        new = _random(draw, NATIVE[0], sequences, queries, sizes.kv_heads, group + 2, sizes.head)  # the last two: a key and a value
        hidden = np.triu(np.full((queries, context), -np.inf, NATIVE[0]), 1) if queries > 1 else None
        result = clocked(functools.partial(_attend, new, ring, hidden))
        yield AttentionTime(
            sequences=sequences, queries=queries, context=context, heads=sizes.heads, kv_heads=sizes.kv_heads, head=sizes.head,
            element=element, seconds=result.median_s, spread=result.spread,
        )  # fmt: skip


def _attend(new: Array, ring: Iterator[tuple[Array, Array]], hidden: Array | None) -> Array:
    """New keys and values into the cache, scores, their softmax, values; then the heads of a token side by side again."""
    (keys, values), (sequences, count, kv_heads, group, width) = next(ring), new.shape
    rows, places = np.arange(sequences)[:, None], np.arange(keys.shape[2] - count, keys.shape[2])[None, :]
    keys[rows, :, places], values[rows, :, places] = new[:, :, :, -2], new[:, :, :, -1]
    queries = new[:, :, :, :-2].transpose(0, 2, 3, 1, 4).reshape(sequences, kv_heads, (group - 2) * count, width)
    scores = queries @ keys.swapaxes(2, 3)
    if hidden is not None:
        by_query = scores.reshape(sequences, kv_heads, group - 2, *hidden.shape)
        by_query += hidden
    mixed = (softmax(scores) @ values).reshape(sequences, kv_heads, group - 2, count, width)
    return mixed.transpose(0, 3, 1, 2, 4).reshape(sequences * count, -1)
