"""The ledger: every quantitative claim of the lecture beside what the project's own laws give."""

from headway.ledger.rows import ClaimRow, Part, claim, explain, rows

__all__ = ["ClaimRow", "Part", "claim", "explain", "rows"]
