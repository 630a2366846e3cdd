"""Sparse attention: scans of an index that picks tokens, and what its kernels compute beside the scores that are asked for."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Number, Second, SecondPerToken
from headway.laws.architecture.kv import attended_tokens
from headway.laws.step.coefficients import IndexTerm, RankWork, SpanTerm
from headway.laws.step.pairs import empty_slots, index_pairs, span_pairs


@formula(source="FlashMLA: sparse kernels take query heads in whole blocks, filled up where a chip has fewer")
def decode_filling_s(spans: tuple[SpanTerm, ...], rank_work: RankWork) -> Second:
    """Compute time of the heads that fill up blocks in decode attention.

    >>> span = SpanTerm(cap=2048, root=np.inf, read=1e-8, decode_compute=2e-9, prefill_compute=2e-9, decode_filling=6e-9)
    >>> work = RankWork(sequences=64, context=9000.0, prompt_tokens=0.0, start=0.0, end=0.0, tokens=64.0, sampled=64.0, group_tokens=64.0)
    >>> round(float(decode_filling_s((span,), work)), 9)
    0.000786432
    """
    filled = [span for span in spans if np.any(span.decode_filling)]
    filling = rank_work.sequences * sum(span.decode_filling * attended_tokens(rank_work.context, span.cap, span.root) for span in filled)
    return filling if rank_work.queries == 1 else filling * rank_work.queries


@formula(source="FlashMLA: sparse kernels take query heads in whole blocks; those called without the number of picks compute every slot")
def prefill_filling_s(spans: tuple[SpanTerm, ...], rank_work: RankWork) -> Second:
    """Compute time of the heads that fill up blocks in prefill attention, and of slots of the top k that short contexts leave empty.

    >>> span = SpanTerm(cap=np.inf, root=np.inf, read=1e-8, decode_compute=2e-9, prefill_compute=3e-9, prefill_filling=9e-9)
    >>> work = RankWork(sequences=0, context=0.0, prompt_tokens=1e3, start=0.0, end=1e3, tokens=1e3, sampled=1.0, group_tokens=1e3)
    >>> round(float(prefill_filling_s((span,), work)), 9)
    0.0045
    """
    filled = [span for span in spans if np.any(span.prefill_filling) or np.any(span.prefill_slot)]
    return sum(
        span.prefill_filling * span_pairs(span, rank_work) + span.prefill_slot * empty_slots(span, rank_work) for span in filled
    )


def decode_pairs(rank_work: RankWork) -> Number:
    """Pairs of a new token of a decoding sequence and a token before it, which an index scores."""
    pairs = rank_work.sequences * rank_work.context
    return pairs if rank_work.queries == 1 else pairs * rank_work.queries


def key_read_s(term: IndexTerm, rank_work: RankWork) -> SecondPerToken:
    """Read of a key, which all new tokens of a sequence share, by each of them."""
    return term.read if rank_work.queries == 1 else term.read / rank_work.queries


@formula(source="DeepSeek-V3.2 (arXiv:2512.02556) section 2.1: the indexer scores every token before a query")
def index_compute_s(indexes: tuple[IndexTerm, ...], rank_work: RankWork) -> Second:
    """Compute time at peak of the scores of index scans, of decoding sequences and of prompts.

    >>> term = IndexTerm(compute=5.1e-10, read=1.7e-9, choice=1e-10)  # DeepSeek-V3.2 on an H200
    >>> work = RankWork(sequences=0, context=0.0, prompt_tokens=1e3, start=0.0, end=1e3, tokens=1e3, sampled=1.0, group_tokens=1e3)
    >>> round(float(index_compute_s((term,), work)), 9)
    0.000255
    """
    pairs = index_pairs(rank_work) + decode_pairs(rank_work)
    return sum(term.compute * pairs for term in indexes)


@formula(source="definition: in the fastest format that could multiply the keys")
def index_floor_s(indexes: tuple[IndexTerm, ...], rank_work: RankWork) -> Second:
    """Compute time of the scores of index scans that nothing beats.

    >>> term = IndexTerm(compute=5.1e-10, read=1.7e-9, choice=1e-10, gain=2)
    >>> work = RankWork(sequences=0, context=0.0, prompt_tokens=1e3, start=0.0, end=1e3, tokens=1e3, sampled=1.0, group_tokens=1e3)
    >>> round(float(index_floor_s((term,), work)), 10)
    0.0001275
    """
    pairs = index_pairs(rank_work) + decode_pairs(rank_work)
    return sum(term.compute / term.gain * pairs for term in indexes)


@formula(source="DeepGEMM fp8_mqa_logits, then top_k_per_row of vLLM and TensorRT-LLM: scores are written, counted by size and collected")
def index_s(
    indexes: tuple[IndexTerm, ...], rank_work: RankWork, eff_compute: Number, eff_read: Number, eff_choice: Number
) -> Second:
    """Time of index scans beside the reads of their keys, which the cache's traffic counts: scores, and the choice of the largest.

    In decode scores overlap with those reads, in prefill with the writes of the scores, half of what the choice reads.

    >>> term = IndexTerm(compute=5.1e-10, read=1.7e-9, choice=1e-10)  # DeepSeek-V3.2 on an H200, a prompt of 128k tokens
    >>> work = RankWork(sequences=0, context=0.0, prompt_tokens=1.28e5, start=0.0, end=1.28e5, tokens=1e3, sampled=1.0, group_tokens=1e3)
    >>> round(float(index_s((term,), work, 0.55, 0.9, 0.54)), 3)
    9.113
    """
    decode, pairs = decode_pairs(rank_work), index_pairs(rank_work)
    return sum(
        pairs * np.maximum(term.compute / eff_compute, term.choice / 2 / eff_choice)
        + decode * np.maximum(term.compute / eff_compute - key_read_s(term, rank_work) / eff_read, 0 * term.read)
        + (decode + pairs) * term.choice / eff_choice
        for term in indexes
    )
