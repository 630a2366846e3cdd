"""What the user may choose of `lab rack`."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.reality.lab.experiment import LabSetup
from headway.reality.lab.shape import LabShape

WIDE = LabShape(  # much to send for each multiplication, so that links take a time that a clock tells
    layers=4, hidden=2048, heads=2, kv_heads=1, head_dim=32, experts=16, per_token=4, expert_width=16, shared_width=16, vocab=512
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RackSetup(LabSetup):
    """A decoder, the sequences of each worker, and the link between racks."""

    shape: LabShape = field(default=WIDE)
    context: int = 32  # tokens of a sequence, its new one among them
    sequences: int = 64  # of each worker
    slower: float = 8.0  # times that the link between racks is slower than the copies inside one
