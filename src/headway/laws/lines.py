"""What the collectives of a step compile to: each algorithm a line in the tokens carried. Numbers only, scalar or array alike."""

from __future__ import annotations

from dataclasses import dataclass

from headway.units import Number, Second, SecondPerToken


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveLine:
    """One algorithm: what it costs however short the message, and per token carried at the efficiency it reaches."""

    alpha: Second
    slope: SecondPerToken


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTerm:
    """Collectives of one kind in a step, one after the other."""

    count: Number
    lines: tuple[CollectiveLine, ...]
    floor: SecondPerToken  # the least slope of any algorithm, at the links' peak
