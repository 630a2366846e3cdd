"""The ledger: every quantitative claim of the lecture beside what the project's own laws give. Reads data/claims.

`rows` recomputes and judges; a file for each group of claims holds the functions (`@recomputes`).
"""

from headway.evidence.claims.rows import ClaimInput, ClaimPart, ClaimRow, claim, explain, rows

__all__ = ["ClaimInput", "ClaimPart", "ClaimRow", "claim", "explain", "rows"]
