"""What the user may choose of `lab trains`."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.core.units import Second
from headway.reality.lab.experiment import LabSetup
from headway.reality.lab.shape import LabShape

LIGHT = LabShape(  # whose step takes a small part of an interval
    layers=2, hidden=128, heads=4, kv_heads=2, head_dim=32, experts=16, per_token=2, expert_width=64, shared_width=128, vocab=512
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSetup(LabSetup):
    """A decoder, the timetable and the seats, and how many requests come."""

    shape: LabShape = field(default=LIGHT)
    context: int = 64  # tokens of a sequence
    every: Second = 0.02
    limit: int = 16
    requests: int = 2000
    step: tuple[float, float] | None = None  # seconds of a stated step: its base, and for each rider; None: the decoder's
