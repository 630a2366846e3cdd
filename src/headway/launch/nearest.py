"""The closest layout that an engine can express, on the same chips where there is one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from headway.launch.ask import LaunchRequest
from headway.layout import Layout, illegal


def nearest(request: LaunchRequest, why: Callable[[LaunchRequest], str]) -> Layout | None:
    """The legal layout for which `why` is "", closest in the product of ratios: on the same chips, else on a power of two of them."""
    for chips in (request.stage_chips, *_powers(request.stage_chips)):
        fits = [variant for variant in _spread(request, chips) if not illegal(_layout(variant), request.needs.shape) and not why(variant)]
        if fits:
            return _layout(min(fits, key=lambda variant: (_distance(request, variant), variant.tp, variant.cp, variant.ep)))
    return None


def offer(request: LaunchRequest, closest: Layout | None) -> str:
    """The nearest layout in words, with what of it differs from the chips asked for."""
    if closest is None:
        return "it has no layout for this model"
    chips = closest.tp * closest.cp * closest.dp * closest.pp
    copies = f", {closest.replicas} replicas" if closest.replicas != request.replicas else ""
    fewer = f", on {chips} chips" if not copies and chips != request.chips else ""
    return f"nearest it can: {closest}{copies}{fewer}"


def _spread(request: LaunchRequest, chips: int) -> Iterator[LaunchRequest]:
    experts = [ep for ep in _divisors(chips) if ep <= max(request.needs.shape.experts, 1)]
    for tp in (tp for tp in _divisors(chips) if not any(heads % tp for heads in request.needs.shape.heads)):
        for cp in _divisors(chips // tp):
            for ep in experts:
                yield replace(request, tp=tp, cp=cp, dp=chips // tp // cp, ep=ep)
                if request.redundant:
                    yield replace(request, tp=tp, cp=cp, dp=chips // tp // cp, ep=ep, redundant=0)
    if chips == request.stage_chips and not request.needs.shape.experts:  # data parallelism of a dense model is replicas by another name
        yield replace(request, dp=1, replicas=request.replicas * request.dp)


def _distance(request: LaunchRequest, variant: LaunchRequest) -> float:
    return round(sum(abs(math.log(getattr(variant, name) / getattr(request, name))) for name in ("tp", "cp", "dp", "ep", "replicas")), 9)


def _layout(request: LaunchRequest) -> Layout:
    return Layout(
        tp=request.tp, ep=request.ep, dp=request.dp, pp=request.pp, cp=request.cp, replicas=request.replicas, redundant=request.redundant
    )


def _powers(most: int) -> list[int]:
    return [2**n for n in reversed(range(most.bit_length()))]


def _divisors(number: int) -> list[int]:
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})
