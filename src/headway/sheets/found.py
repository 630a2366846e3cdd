"""What a file of prices gives: its sheets, and what must be said about the rest of it."""

from __future__ import annotations

from dataclasses import dataclass

from headway.price_sheet import PriceSheet


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetMatches:
    """The sheets that could be read, and notes."""

    sheets: tuple[PriceSheet, ...]
    notes: tuple[str, ...] = ()
