"""The closest layout that an engine can express, on the same chips where there is one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from headway.launch.ask import Ask
from headway.layout import Layout, illegal


def nearest(asked: Ask, why: Callable[[Ask], str]) -> Layout | None:
    """The legal layout for which `why` is "", closest in the product of ratios: on the same chips, else on a power of two of them."""
    for ways in (asked.ways, *_powers(asked.ways)):
        fits = [one for one in _spread(asked, ways) if not illegal(_layout(one), asked.needs.shape) and not why(one)]
        if fits:
            return _layout(min(fits, key=lambda one: (_distance(asked, one), one.tp, one.cp, one.ep)))
    return None


def offer(asked: Ask, closest: Layout | None) -> str:
    """The nearest layout in words, with what of it differs from the chips asked for."""
    if closest is None:
        return "it has no layout for this model"
    chips = closest.tp * closest.cp * closest.dp * closest.pp
    copies = f", {closest.replicas} replicas" if closest.replicas != asked.replicas else ""
    fewer = f", on {chips} chips" if not copies and chips != asked.chips else ""
    return f"nearest it can: {closest}{copies}{fewer}"


def _spread(asked: Ask, ways: int) -> Iterator[Ask]:
    experts = [ep for ep in _divisors(ways) if ep <= max(asked.needs.shape.experts, 1)]
    for tp in (tp for tp in _divisors(ways) if not any(heads % tp for heads in asked.needs.shape.heads)):
        for cp in _divisors(ways // tp):
            for ep in experts:
                yield replace(asked, tp=tp, cp=cp, dp=ways // tp // cp, ep=ep)
                if asked.redundant:
                    yield replace(asked, tp=tp, cp=cp, dp=ways // tp // cp, ep=ep, redundant=0)
    if ways == asked.ways and not asked.needs.shape.experts:  # data parallelism of a dense model is replicas by another name
        yield replace(asked, dp=1, replicas=asked.replicas * asked.dp)


def _distance(asked: Ask, one: Ask) -> float:
    return round(sum(abs(math.log(getattr(one, name) / getattr(asked, name))) for name in ("tp", "cp", "dp", "ep", "replicas")), 9)


def _layout(asked: Ask) -> Layout:
    return Layout(tp=asked.tp, ep=asked.ep, dp=asked.dp, pp=asked.pp, cp=asked.cp, replicas=asked.replicas, redundant=asked.redundant)


def _powers(most: int) -> list[int]:
    return [2**n for n in reversed(range(most.bit_length()))]


def _divisors(number: int) -> list[int]:
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})
