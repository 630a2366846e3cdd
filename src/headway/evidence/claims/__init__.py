"""Quantitative claims of the lecture, compared with the results of the project's laws. Reads data/claims.

`rows` recomputes the claims and gives verdicts; a file per group of claims has the functions (`@recomputes`).
"""

from headway.evidence.claims.rows import ClaimInput, ClaimPart, ClaimRow, claim, explain, rows

__all__ = ["ClaimInput", "ClaimPart", "ClaimRow", "claim", "explain", "rows"]
