"""Every legal layout of a training run on a machine, as one record of arrays: what a search weighs."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from headway.errors import BadValue, IllegalLayout
from headway.quantity import known, user_input
from headway.schema import defaults
from headway.training.legality import CHUNKED, Bounds, legal, why_illegal
from headway.training.recipe import TrainingLayout

NAMES = tuple(field.name for field in fields(TrainingLayout))
MOST_TP, MOST_CHUNKS = 64, 20
MOST_LAYOUTS = 2_000_000  # of one search
MICRO_BATCHES = (1, 2, 3, 4, 5, 6, 8, 16)
ZERO = (1, 2, 3)  # stage 0 keeps more and sends more than stage 1
FEWEST_TOKENS = 1024  # of a sequence on a chip: matmuls of fewer rows lose more than these laws count
FULLER = 1.25  # layers of the fullest stage over the fewest possible, up to which chunks are worth weighing


def candidates(of: Bounds, domain: int, pinned: Mapping[str, Sequence[int]]) -> TrainingLayout:
    """Every legal layout, each number an array along them; `pinned` values are kept to."""
    combinations = list(itertools.islice(_rows(of, domain, pinned), MOST_LAYOUTS + 1))
    if len(combinations) > MOST_LAYOUTS:
        raise BadValue("layout", f"more than {MOST_LAYOUTS:,} combinations of lists", "shorter lists")
    columns = np.array(combinations, dtype=np.int64).reshape(-1, len(NAMES))
    layouts = TrainingLayout(**{name: columns[:, index] for index, name in enumerate(NAMES)})
    return rows(layouts, np.flatnonzero(legal(layouts, of)))


def rows(layout: TrainingLayout, keep: Any) -> TrainingLayout:
    """Some of the layouts."""
    return TrainingLayout(**{name: getattr(layout, name)[keep] for name in NAMES})


def layout_at(layout: TrainingLayout, index: int, pinned: Mapping[str, Sequence[int]]) -> TrainingLayout:
    """One of them, each number with where it comes from."""

    def number(name: str) -> Any:
        value = int(getattr(layout, name)[index])
        if len(pinned.get(name, ())) == 1:
            return user_input(value, name)
        return known(value, name, "", "derived", "the layout that the search chose")

    return TrainingLayout(**{name: number(name) for name in NAMES})


def absent_values(layouts: TrainingLayout, pinned: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """A word for each listed value that no legal layout has."""
    lost = {name: sorted(set(values) - set(getattr(layouts, name).tolist())) for name, values in pinned.items() if len(values) > 1}
    return tuple(f"{name}: no legal layout has {', '.join(map(str, values))}" for name, values in lost.items() if values)


def _rows(of: Bounds, domain: int, pinned: Mapping[str, Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Ways that divide what they have to; data parallel ranks are as many as the chips left and the sequences allow."""
    for tp, cp, pp in _model_degrees(of, domain, pinned):
        most, chunks = of.chips // (tp * cp * pp), _chunks(of, pp, pinned)
        for micro in (n for n in pinned.get("micro_batch", MICRO_BATCHES) if of.sequences % n == 0):
            ranks = [n for n in pinned["dp"] if n <= most] if "dp" in pinned else _ranks(of.sequences, micro, most)
            for dp in (n for n in ranks if of.sequences % (n * micro) == 0):
                for ep in _experts(of, tp, tp * cp * dp, pinned):
                    stages = pinned.get("zero") or _zero(cp * dp, pp)
                    yield from ((tp, cp, pp, vpp, ep, dp, micro, zero) for vpp in chunks for zero in stages)


def _zero(data_degree: int, pp: int) -> Sequence[int]:
    """Stages that can pay: FSDP in a pipeline keeps what it gathered, and so more than stage 1."""
    return ZERO if data_degree > 1 and pp == 1 else [stage for stage in ZERO if stage < 3 and (data_degree > 1 or stage == 1)]


def _model_degrees(of: Bounds, domain: int, pinned: Mapping[str, Sequence[int]]) -> Iterator[tuple[int, int, int]]:
    heads = math.gcd(*of.shape.heads) if of.shape.heads else MOST_TP
    contexts = pinned.get("cp") or [n for n in divisors(of.sequence) if n == 1 or of.sequence // n >= FEWEST_TOKENS]
    for tp in pinned.get("tp") or [n for n in divisors(heads) if n <= min(domain, MOST_TP)]:
        for cp in (n for n in contexts if tp * n <= of.chips and of.sequence % n == 0):
            chips_left = of.chips // (tp * cp)
            yield from ((tp, cp, pp) for pp in pinned.get("pp") or _stages(of, chips_left) if pp <= min(chips_left, of.shape.layers))


def _stages(of: Bounds, chips: int) -> list[int]:
    """What divides the chips left, and the fewest stages for each number of layers on the fullest."""
    layers = of.shape.layers
    return sorted({-(-layers // per_stage) for per_stage in range(1, layers + 1)} | set(divisors(chips)))


def _chunks(of: Bounds, pp: int, pinned: Mapping[str, Sequence[int]]) -> Sequence[int]:
    """Chunks of layers of a stage: those that leave no stage much fuller than others."""
    if "vpp" in pinned:
        return [n for n in pinned["vpp"] if n * pp <= of.shape.layers]
    if pp == 1 or of.schedule not in CHUNKED:
        return (1,)
    layers = of.shape.layers
    full = FULLER * -(-layers // pp)
    return [n for n in range(1, min(layers // pp, MOST_CHUNKS) + 1) if n * -(-layers // (pp * n)) <= full]


def _experts(of: Bounds, tp: int, chips: int, pinned: Mapping[str, Sequence[int]]) -> Sequence[int]:
    if "ep" in pinned:
        return [n for n in pinned["ep"] if chips % n == 0]
    if not of.shape.experts:
        return (1,)
    return [n for n in divisors(math.gcd(of.shape.experts, chips)) if n % tp == 0 or tp % n == 0]


def _ranks(sequences: int, micro: int, most: int) -> list[int]:
    """The most data-parallel ranks whose micro-batches divide a step's sequences, and fewer down to half of the chips."""
    ranks = [n for n in divisors(sequences // micro) if n <= most]
    return [n for n in ranks if 2 * n > most] or ranks[-1:]


@functools.cache
def divisors(number: int) -> tuple[int, ...]:
    """Every divisor, smallest first.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [n for n in range(1, math.isqrt(max(number, 1)) + 1) if number % n == 0]
    return tuple(dict.fromkeys([*small, *(number // n for n in reversed(small))]))


def pinned_one(values: Mapping[str, int], of: Bounds, domain: int) -> TrainingLayout:
    """A layout given whole, or IllegalLayout with the nearest that is legal."""
    layout = defaults(TrainingLayout, dict(values))
    why = why_illegal(layout, of)
    if why:
        raise IllegalLayout(" ".join(f"{name}={value}" for name, value in values.items()), f"{why}; {nearest(values, of, domain)}")
    return layout


def none_legal(pinned: Mapping[str, Sequence[int]], of: Bounds, domain: int) -> IllegalLayout:
    """What to say where no layout with these values is legal: of the first of them, why, and the nearest that is."""
    first = {name: values[0] for name, values in pinned.items()}
    text = " ".join(f"{name}={','.join(map(str, values))}" for name, values in pinned.items()) or "any"
    why = why_illegal(defaults(TrainingLayout, first), of) or f"nothing divides {of.chips} chips and {of.sequences} sequences of a step"
    return IllegalLayout(text, f"{why}; {nearest(first, of, domain)}")


def nearest(values: Mapping[str, int], of: Bounds, domain: int) -> str:
    """The legal layout nearest to one that is not, in words."""
    layouts = candidates(of, domain, {})
    if not len(layouts.tp):
        return f"no layout of this model is legal with {of.sequences} sequences of {of.sequence} tokens on {of.chips} chips"
    far = sum(np.abs(np.log(getattr(layouts, name) / max(value, 1e-9))) for name, value in values.items() if name != "zero")
    best, keys = int(np.argmin(far)), tuple(name for name in dict.fromkeys(("tp", "pp", "dp", *values)) if name != "zero")
    return "nearest legal: " + " ".join(f"{name}={int(getattr(layouts, name)[best])}" for name in keys)
