"""What the user may choose of `lab tiers`."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.core.units import BytePerSecond, Second, UsdPerSecond
from headway.reality.lab.experiment import LabSetup
from headway.reality.lab.shape import LabShape

DENSE = LabShape(  # a third of a millisecond and 8 kB of cache for a token
    layers=4, hidden=512, heads=8, kv_heads=4, head_dim=64, experts=0, shared_width=1408
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSetup(LabSetup):
    """A decoder, how long a cache lives in each tier, and how long conversations pause."""

    shape: LabShape = field(default=DENSE)
    ttl: tuple[Second, ...] = (60.0, 300.0, 3600.0)  # from when a cache was kept until it leaves memory, file and slow file
    pause: tuple[Second, ...] = (60.0, 1800.0)  # means of exponential pauses, each as likely as the others
    throttle: BytePerSecond = 100e6  # of the slow file
    machine_price: UsdPerSecond = 0.05 / 3600
