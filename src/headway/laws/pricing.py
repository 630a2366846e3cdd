"""When writing to a prefix cache pays for itself, and what a provider that charges for storage asks."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Number, TokenSecond, Usd, UsdPerTokenSecond


@formula(source="Pope 2026 lecture, claim AP-17: n >= (m_write - 1) / (1 - m_read)")
def break_even_reads(write_multiple: Number, read_multiple: Number) -> Number:
    """How often a prefix must be read within its time to live before writing it has paid, rates as multiples of the input rate.

    >>> round(break_even_reads(1.25, 0.1), 2), round(break_even_reads(2.0, 0.1), 2)  # Claude Opus 4.6, 5 min and 1 h
    (0.28, 1.11)
    """
    return (write_multiple - 1) / (1 - read_multiple)


@formula(source="reads are whole")
def whole_reads(reads: Number) -> Number:
    """The least whole number of reads that pays.

    >>> float(whole_reads(0.28)), float(whole_reads(1.11))  # Claude Opus 4.6, 5 min and 1 h
    (1.0, 2.0)
    """
    return np.ceil(reads)


@formula(source="tokens held, over time, at a fee by the hour")
def holding_fee(token_seconds: TokenSecond, fee: UsdPerTokenSecond) -> Usd:
    """What a provider that charges for storage asks for keeping prefixes.

    >>> round(holding_fee(100e3 * 3600.0, 4.5e-6 / 3600), 2)  # 100k tokens for an hour at $4.50 per Mtok and hour
    0.45
    """
    return token_seconds * fee
