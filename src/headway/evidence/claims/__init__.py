"""The ledger: every quantitative claim of the lecture beside what the project's own laws give."""

from headway.evidence.claims.rows import ClaimInput, ClaimPart, ClaimRow, claim, explain, rows

__all__ = ["ClaimInput", "ClaimPart", "ClaimRow", "claim", "explain", "rows"]
