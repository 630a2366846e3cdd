"""A card: memory as its driver reports it."""

from __future__ import annotations

from headway.core.formula import formula
from headway.core.units import Byte, Number

GIB_PER_GB = 2**30 / 1e9


@formula(source="rule from cards whose driver's figure is known: capacities are powers of two printed as GB, less what the driver keeps")
def reported_bytes(datasheet: Byte, share: Number) -> Byte:
    """Bytes of memory that a card's driver reports, by the datasheet's GB read as GiB and the share usual of its kind of memory.

    >>> round(reported_bytes(141e9, 0.9957) / 2**20)  # H200, nvidia-smi: 143771 MiB
    143763
    """
    return datasheet * GIB_PER_GB * share
