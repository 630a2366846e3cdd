"""The ledger: every quantitative claim of the lecture beside what the project's own laws give."""

from headway.ledger.claim_rows import ClaimRow, Input, Part, claim, explain, rows

__all__ = ["ClaimRow", "Input", "Part", "claim", "explain", "rows"]
