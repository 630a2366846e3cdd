"""What the user may choose of `lab attention`."""

from __future__ import annotations

from dataclasses import dataclass

from headway.reality.lab.experiment import LabSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSetup(LabSetup):
    """Patterns, contexts, the index of top-k, and how far a question resembles the fact that it asks for."""

    patterns: str = "dense,window:1k,topk:128,topk:1k,sqrt:64"
    context: tuple[int, ...] = ()  # none: those of the experiment
    index_width: int = 16  # numbers of an index key, beside the 128 of a key
    noise: float = 0.36  # share of a query's variance
