"""Every legal layout of a training run on a machine, as one record of arrays: what a search weighs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from headway.errors import IllegalLayout
from headway.quantity import known
from headway.schema import defaults
from headway.training.legality import Bounds, legal, why_illegal
from headway.training.recipe import TrainingLayout

NAMES = tuple(field.name for field in fields(TrainingLayout))
MOST_TP, MOST_CHUNKS = 64, 20
MICRO_BATCHES = (1, 2, 4, 8)
ZERO = (1, 3)
FEWEST_TOKENS = 1024  # of a sequence on a chip: beyond it context parallelism gains nothing


def candidates(of: Bounds, domain: int, pinned: Mapping[str, Sequence[int]]) -> TrainingLayout:
    """Every legal layout, each number an array along them; `pinned` values are kept to."""
    columns = np.array(list(_rows(of, domain, pinned)), dtype=np.int64).reshape(-1, len(NAMES))
    found = TrainingLayout(**{name: columns[:, index] for index, name in enumerate(NAMES)})
    return rows(found, np.flatnonzero(legal(found, of)))


def rows(layout: TrainingLayout, keep: Any) -> TrainingLayout:
    """Some of the layouts."""
    return TrainingLayout(**{name: getattr(layout, name)[keep] for name in NAMES})


def one(layout: TrainingLayout, index: int) -> TrainingLayout:
    """One of them, each number with where it comes from."""
    why = "the layout that the search chose"
    return TrainingLayout(**{name: known(int(getattr(layout, name)[index]), name, "", "derived", why) for name in NAMES})


def _rows(of: Bounds, domain: int, pinned: Mapping[str, Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Ways that divide what they have to; data parallel ranks are as many as the chips left and the sequences allow."""
    for tp, cp, pp in _model_ways(of, domain, pinned):
        most = of.chips // (tp * cp * pp)
        for micro in pinned.get("micro_batch", MICRO_BATCHES):
            dp = pinned.get("dp") or (_ranks(of.sequences, micro, most),)
            for each in dp:
                if not 1 <= each <= most:
                    continue
                for vpp in _chunks(of, pp, pinned):
                    for ep in _experts(of, tp, tp * cp * each, pinned):
                        yield from ((tp, cp, pp, vpp, ep, each, micro, zero) for zero in pinned.get("zero", ZERO))


def _model_ways(of: Bounds, domain: int, pinned: Mapping[str, Sequence[int]]) -> Iterator[tuple[int, int, int]]:
    heads = math.gcd(*of.shape.heads) if of.shape.heads else MOST_TP
    for tp in pinned.get("tp") or [n for n in divisors(heads) if n <= min(domain, MOST_TP)]:
        for cp in pinned.get("cp") or _contexts(of, of.chips // tp):
            for pp in pinned.get("pp") or _stages(of, of.chips // (tp * cp)):
                if tp * cp * pp <= of.chips:
                    yield tp, cp, pp


def _contexts(of: Bounds, most: int) -> list[int]:
    return [n for n in powers(most) if n == 1 or (of.sequence % n == 0 and of.sequence // n >= FEWEST_TOKENS)]


def _stages(of: Bounds, most: int) -> list[int]:
    """Powers of two, and what divides the layers."""
    return sorted({n for n in (*powers(min(most, of.shape.layers)), *divisors(of.shape.layers)) if n <= most})


def _chunks(of: Bounds, pp: int, pinned: Mapping[str, Sequence[int]]) -> Sequence[int]:
    """Chunks of layers of a stage: those that leave no stage fuller than others."""
    if "vpp" in pinned:
        return pinned["vpp"]
    if pp == 1 or of.schedule not in ("", "interleaved"):
        return (1,)
    whole = -(-of.shape.layers // pp)
    return [n for n in range(1, min(whole, MOST_CHUNKS) + 1) if n * pp <= of.shape.layers and n * -(-of.shape.layers // (pp * n)) == whole]


def _experts(of: Bounds, tp: int, chips: int, pinned: Mapping[str, Sequence[int]]) -> Sequence[int]:
    if "ep" in pinned:
        return pinned["ep"]
    if not of.shape.experts:
        return (1,)
    return [n for n in divisors(math.gcd(of.shape.experts, chips)) if n % tp == 0 or tp % n == 0]


def _ranks(sequences: int, micro: int, most: int) -> int:
    """The most data-parallel ranks whose micro-batches divide a step's sequences; 0 where there are none."""
    return max((n for n in divisors(sequences // micro) if n <= most), default=0) if sequences % micro == 0 else 0


def divisors(number: int) -> tuple[int, ...]:
    """Every divisor, smallest first.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [n for n in range(1, math.isqrt(max(number, 1)) + 1) if number % n == 0]
    return tuple(dict.fromkeys([*small, *(number // n for n in reversed(small))]))


def powers(most: int) -> tuple[int, ...]:
    """Powers of two up to a number.

    >>> powers(12)
    (1, 2, 4, 8)
    """
    return tuple(1 << n for n in range(max(most, 1).bit_length()))


def pinned_one(values: Mapping[str, int], of: Bounds, domain: int) -> TrainingLayout:
    """A layout given whole, or IllegalLayout with the nearest that is legal."""
    layout = defaults(TrainingLayout, dict(values))
    why = why_illegal(layout, of)
    if why:
        raise IllegalLayout(" ".join(f"{name}={value}" for name, value in values.items()), f"{why}; {nearest(values, of, domain)}")
    return layout


def nearest(values: Mapping[str, int], of: Bounds, domain: int) -> str:
    """The legal layout nearest to one that is not, in words."""
    every = candidates(of, domain, {})
    if not len(every.tp):
        return "no layout of this model, batch and machine is legal"
    far = sum(np.abs(np.log(getattr(every, name) / max(value, 1e-9))) for name, value in values.items() if name != "zero")
    best, shown = int(np.argmin(far)), tuple(name for name in dict.fromkeys(("tp", "pp", "dp", *values)) if name != "zero")
    return "nearest legal: " + " ".join(f"{name}={int(getattr(every, name)[best])}" for name in shown)
