"""(Query, key) pairs of a prompt chunk: tokens attended to, summed over its queries."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Token
from headway.laws.step.coefficients import RankWork, SpanTerm

NOTHING: Token = 1e-300  # keeps 0 / 0 a zero


@formula(source="causal mask: tokens * (start + end) / 2 pairs, end = start + tokens")
def chunk_start(tokens: Token, pairs: Token) -> Token:
    """Context before a prefill chunk of `tokens` that has `pairs` (query, key) pairs: tokens attended to, summed over queries.

    >>> float(chunk_start(1000.0, 500e3)), float(chunk_start(500.0, 500 * 750.0))
    (0.0, 500.0)
    """
    return np.maximum(ONE_TOKEN * pairs / np.maximum(tokens, NOTHING) - tokens / 2, 0 * tokens)


@formula(source="causal mask: tokens * (start + end) / 2 pairs")
def chunk_end(tokens: Token, pairs: Token, start: Token) -> Token:
    """Context at the end of a prefill chunk.

    >>> float(chunk_end(1000.0, 500e3, 0.0))
    1000.0
    """
    return 2 * ONE_TOKEN * pairs / np.maximum(tokens, NOTHING) - start


@formula(source="integral of min(c, cap) for c from start to end")
def capped_pairs(tokens: Token, start: Token, end: Token, cap: Token) -> Token:
    """(query, key) pairs of a prefill chunk when each query attends to at most `cap` tokens.

    >>> float(capped_pairs(1000.0, 0.0, 1000.0, np.inf)), float(capped_pairs(1000.0, 0.0, 1000.0, 100.0))
    (500000.0, 95000.0)
    """
    low, high = np.minimum(start, cap), np.minimum(end, cap)
    area = (high * high - low * low) / 2 + high * (np.maximum(end, high) - np.maximum(start, high))
    return tokens * area / np.maximum(end - start, NOTHING) / ONE_TOKEN


@formula(source="integral of sqrt(c * root) for c from start to end")
def root_pairs(start: Token, end: Token, root: Token) -> Token:
    """(query, key) pairs of a prefill chunk when each query attends to sqrt(context * root) tokens.

    >>> round(float(root_pairs(0.0, 900.0, 100.0)))
    180000
    """
    per_query = np.sqrt(np.minimum(root, 1e200 * ONE_TOKEN)) * (end * np.sqrt(end) - start * np.sqrt(start))
    return 2 / 3 * per_query / ONE_TOKEN


def span_pairs(span: SpanTerm, rank_work: RankWork) -> Token:
    """(query, key) pairs of a rank's prompt tokens under one attention span."""
    return np.minimum(
        capped_pairs(rank_work.prompt_tokens, rank_work.start, rank_work.end, span.cap),
        rank_work.prompts * root_pairs(rank_work.start, rank_work.end, span.root),
    )


def empty_slots(span: SpanTerm, rank_work: RankWork) -> Token:
    """Slots of the top k that a chunk's queries leave empty; none where the whole context is shorter, which engines attend to densely."""
    cap = np.minimum(span.cap, rank_work.end)
    slots = rank_work.prompt_tokens * cap / ONE_TOKEN - span_pairs(span, rank_work)
    return slots * np.minimum(np.maximum(rank_work.end - span.cap, 0) / ONE_TOKEN, 1)


def index_pairs(rank_work: RankWork) -> Token:
    """(query, token) pairs that an index scan scores for a rank's prompts: every query looks at its whole context."""
    return rank_work.prompt_tokens * ((rank_work.start + rank_work.end) / 2) / ONE_TOKEN
