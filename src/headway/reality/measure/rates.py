"""The numbers of the step law, from what was measured: by the same laws that every verb replays, turned round.

Peak and bandwidth are those that were reached, so the shares of them are 1 but where a kind of kernel reaches less. The half of an
interval is what the measured times scatter about the laws, and in themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from headway.laws.roofline.balance import compute_s_per_token
from headway.laws.step.layer_terms import elementwise_s, matmul_activations_s
from headway.laws.step.parts import decode_attention_s, matmul_s, packed_weights_s, prefill_attention_s
from headway.reality.measure.record import (
    GATE,
    MATMUL,
    NORM,
    ROTATION,
    ROUTING,
    AttentionTime,
    MachineRecord,
    MatmulTime,
    VectorTime,
)

NORMS = np.geomspace(0.6, 8.0, 30)  # of the smooth maximum, that are tried
SHARES = np.geomspace(0.03, 1.5, 60)  # of a rate
INNER_PER_HIDDEN = 8 / 3  # of a usual gated MLP, whose activations stand for all
BATCHED = 2  # matmuls of attention: scores and values
OWN_MATMULS = 2  # of an expert: in, with the gate, and out
END_OF_INTERVAL = 1.645  # standard deviations to either end of 90 %
LEAST_HALF = 1.02


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRates:
    """What a chip's file and its file of efficiencies say; shares are of `peak` and `bandwidth`."""

    peak: float  # FLOP/s
    bandwidth: float  # byte/s
    call_s: float  # a matmul with next to no work
    memory: float  # weights of a single row
    packing: float  # of more rows: further reads and writes of the weights
    norm: float  # how compute and weights meet
    activation: float
    decode_t0_s: float
    decode_memory: float
    block_s: float  # of each pair of sequence and KV head
    prefill_t0_s: float
    prefill_compute: float  # of the causal half
    prefill_pad: float  # tokens that each query looks at in vain
    vector_t0_s: float  # a norm, a rotation, an activation
    vector_memory: float
    routing_s: float  # a layer's choice of experts, of few tokens
    expert_s: float  # the calls of one expert
    half: float  # of a 90 % interval, as a factor


def rates_of(record: MachineRecord) -> MachineRates:
    """The numbers of a machine, in its main number format."""
    peak, bandwidth, call_s = record.peak().flop_per_s, record.read().bytes_per_s, record.call_s(MATMUL)
    norm, rotation, gate, routing = (_by_kind(record.vectors, kind) for kind in (NORM, ROTATION, GATE, ROUTING))
    fits = (
        _matmuls([time for time in record.matmuls if time.format == record.main], peak, bandwidth, call_s),
        _decodes([time for time in record.attentions if time.queries == 1], bandwidth, call_s),
        _prefills([time for time in record.attentions if time.queries > 1], peak, call_s),
    )
    (memory, packing, meeting), (decode_t0_s, decode_memory, block_s), (prefill_t0_s, compute, pad) = (fit.numbers for fit in fits)
    squares = [error**2 for fit in fits for error in fit.errors]
    scatter = math.sqrt(sum(squares) / len(squares) + math.log1p(record.spread) ** 2)
    slope = 2 * _slope(norm) + _slope(rotation)  # of a layer: two norms, queries and keys turned
    return MachineRates(
        peak=peak, bandwidth=bandwidth, call_s=call_s, memory=memory, packing=packing, norm=meeting,
        activation=_share(float(matmul_activations_s(3 / INNER_PER_HIDDEN, 1 / INNER_PER_HIDDEN, 2, bandwidth)), _slope(gate)),
        decode_t0_s=decode_t0_s, decode_memory=decode_memory, block_s=block_s, prefill_t0_s=prefill_t0_s, prefill_compute=compute,
        prefill_pad=pad, vector_t0_s=(2 * norm[0].seconds + rotation[0].seconds + gate[0].seconds) / 4,
        vector_memory=_share(2 * float(elementwise_s(1, 1, 1.0, bandwidth)), slope),
        routing_s=routing[0].seconds, expert_s=OWN_MATMULS * call_s + gate[0].seconds,
        half=max(LEAST_HALF, math.exp(END_OF_INTERVAL * scatter)),
    )  # fmt: skip


def _by_kind(times: Sequence[VectorTime], kind: str) -> list[VectorTime]:
    """Times of a kind, the fewest rows first."""
    return sorted((time for time in times if time.kind == kind), key=lambda time: time.rows)


def _slope(times: Sequence[VectorTime]) -> float:
    """Seconds that one more element of one more row adds."""
    short, long = times[0], times[-1]
    return max(0.0, (long.seconds - short.seconds) / ((long.rows - short.rows) * long.width)) if long.rows > short.rows else 0.0


def _share(by_law: float, measured: float) -> float:
    """Share of the bandwidth that a kind of kernel reaches."""
    return by_law / measured if measured > 0 else 1.0


@dataclass(frozen=True, slots=True)
class _Fit:
    """Numbers of a law, and the logarithms of its times over those measured."""

    numbers: tuple[float, ...]
    errors: tuple[float, ...]


def _fitted(law: Callable[..., Any], times: Sequence[Any], *choices: Any) -> _Fit:
    """The numbers, one of each choice, whose law lies nearest to the times; all of them are tried."""
    tried = np.array(list(itertools.product(*choices))).T
    seconds = np.array([time.seconds for time in times])
    errors = np.log(np.array([law(time, *tried) for time in times]) / seconds[:, None])
    best = int(np.argmin((errors**2).sum(axis=0)))
    return _Fit(tuple(map(float, tried[:, best])), tuple(map(float, errors[:, best])))


def _matmuls(times: Sequence[MatmulTime], peak: float, bandwidth: float, start: float) -> _Fit:
    """Share of the bandwidth of single rows, what packing adds, and how compute and weights meet."""
    share = min(1.0, median(time.weights_per_s for time in times if time.rows == 1) / bandwidth)  # if they wait for nothing else

    def law(time: MatmulTime, memory: Any, packing: Any, norm: Any) -> Any:
        compute = compute_s_per_token(time.inner * time.columns, peak) * time.rows
        weights = packed_weights_s(time.inner * time.columns * time.element / bandwidth, packing, float(time.rows))
        return start + matmul_s(compute, weights, 0.0, 1.0, memory, 1.0, norm)

    return _fitted(law, times, np.linspace(share, min(1.0, 1.4 * share), 9), np.linspace(0.0, 5.0, 51), NORMS)


def _decodes(times: Sequence[AttentionTime], bandwidth: float, start: float) -> _Fit:
    """Fixed time, share of the bandwidth that a cache is read with, and the fixed time of each pair of sequence and KV head."""

    def law(time: AttentionTime, t0: Any, memory: Any, block: Any) -> Any:
        return t0 + decode_attention_s(0.0, time.bytes / bandwidth, time.sequences * time.kv_heads, 0.0, 1.0, memory, block)

    shortest = min(time.seconds for time in times)
    starts = np.linspace(min(BATCHED * start, shortest / 2), shortest, 8)
    return _fitted(law, times, starts, SHARES, [0.0, *np.geomspace(shortest / 100, shortest, 12)])


def _prefills(times: Sequence[AttentionTime], peak: float, start: float) -> _Fit:
    """Fixed time, share of the peak of the causal half of a prompt's scores, and tokens that each query looks at in vain."""

    def law(time: AttentionTime, t0: Any, compute: Any, pad: Any) -> Any:
        score_s = 4.0 * time.heads * time.head / peak
        pairs = time.queries * (time.queries + 1) / 2
        return t0 + time.sequences * prefill_attention_s(pairs * score_s, time.queries * pad * score_s, compute)

    return _fitted(law, times, [BATCHED * start], SHARES, np.linspace(0.0, max(time.queries for time in times), 40))
