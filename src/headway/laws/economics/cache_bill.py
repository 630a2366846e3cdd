"""Cost of a prefix cache: holding, writes, loads and recompute; providers' cache fees, and break-even."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import (
    Number,
    Usd,
)


@formula(source="definition")
def saved_share(cost: Usd, without: Usd) -> Number:
    """Share of the uncached bill that the cache saves; below 0 where it costs more than it saves.

    >>> saved_share(6.0, 8.0)
    0.25
    """
    return 1 - cost / without


@formula(source="Pope 2026 lecture, claim AP-17: n >= (m_write - 1) / (1 - m_read)")
def break_even_reads(write_multiple: Number, read_multiple: Number) -> Number:
    """Reads of a prefix within its TTL that pay for writing it, with rates as multiples of the input rate.

    >>> round(break_even_reads(1.25, 0.1), 2), round(break_even_reads(2.0, 0.1), 2)  # Claude Opus 4.6, 5 min and 1 h
    (0.28, 1.11)
    """
    return (write_multiple - 1) / (1 - read_multiple)


@formula(source="reads are whole")
def whole_reads(reads: Number) -> Number:
    """Fewest whole reads that pay for writing a prefix.

    >>> float(whole_reads(0.28)), float(whole_reads(1.11))  # Claude Opus 4.6, 5 min and 1 h
    (1.0, 2.0)
    """
    return np.ceil(reads)
