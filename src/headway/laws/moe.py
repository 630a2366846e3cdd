"""Experts met by a batch: which expert weights a step reads, and how much work each gets (uniform routing)."""

from __future__ import annotations

from headway.formula import formula
from headway.units import Number, Token

ONE_TOKEN: Token = 1.0  # each token draws its experts once


@formula(source="occupancy of E boxes by T draws of k: E (1 - (1 - k/E)^T)")
def distinct_experts(experts: Number, experts_per_token: Number, tokens: Token) -> Number:
    """Experts that at least one token uses, whose weights the step must read: few at a small batch, all at a large one.

    >>> [round(float(distinct_experts(256, 8, t)), 1) for t in (1, 8, 32, 128)]  # DeepSeek-V3
    [8.0, 57.4, 163.3, 251.6]
    """
    return experts * (1 - (1 - experts_per_token / experts) ** (tokens / ONE_TOKEN))


@formula(source="tokens times k over E")
def tokens_per_expert(tokens: Token, experts: Number, experts_per_token: Number) -> Token:
    """Rows of the matrix product that one expert sees.

    >>> tokens_per_expert(2400, 256, 8)  # DeepSeek-V3
    75.0
    """
    return tokens * experts_per_token / experts
