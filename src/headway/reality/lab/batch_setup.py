"""What the user may choose of `lab batch`."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.reality.lab.experiment import LabSetup
from headway.reality.lab.shape import LabShape


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSetup(LabSetup):
    """A decoder, and the batches of its steps; none: those of the experiment."""

    shape: LabShape = field(default_factory=LabShape)
    context: int = 64  # tokens before each sequence's new one
    batch: tuple[int, ...] = ()
