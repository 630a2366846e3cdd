"""Parts of a step at peak rates: matmuls, weight reads, attention, KV traffic.

`place` turns a replica's work into one rank's; the other laws are the lecture's lines (RB-02, RB-03) with experts, spans and state.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Number, Second, SecondPerToken, Token
from headway.laws.architecture.kv import attended_tokens
from headway.laws.collectives.expert_parallel import distinct_experts, skewed_tokens
from headway.laws.step.coefficients import ExpertTerm, RankWork, SpanTerm, StepCoefficients

NONE: Token = 0.0
NOTHING: Token = 1e-300  # keeps 0 / 0 a zero
LECTURE = "Pope 2026 lecture, claims "


@formula(source=LECTURE + "PP-08, PP-09; a rank holds whole sequences")
def rank_sequences(sequences: Number, dp: Number, pp: Number) -> Number:
    """Sequences on the fullest data-parallel rank in one micro-batch; a single rank may have a fraction of a sequence.

    >>> float(rank_sequences(100, 72, 1))
    2.0
    """
    return np.where(dp * pp == 1, sequences, np.ceil(sequences / (dp * pp)))


@formula(source="definition")
def mean_context(kv_tokens: Token, sequences: Number) -> Token:
    """Tokens attended to per decoding sequence, 0 when nothing is decoded.

    >>> float(mean_context(8192 * 64, 64))
    8192.0
    """
    return kv_tokens / np.maximum(sequences, 1e-300)


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
    per_query = np.sqrt(np.minimum(root, 1e200 * ONE_TOKEN)) * (end**1.5 - start**1.5)
    return 2 / 3 * per_query / ONE_TOKEN


@formula(source="definition; context-parallel chips share a prompt's tokens, and each holds every decoded token")
def chip_tokens(sequences: Number, prompt_tokens: Token, cp: Number) -> Token:
    """Tokens of a step that pass through one chip's projections.

    >>> chip_tokens(64, 0.0, 1)
    64.0
    """
    return sequences * ONE_TOKEN + prompt_tokens / cp


@formula(source="definition: a prompt is sampled from once, after its last token")
def sampled_tokens(sequences: Number, prompt_tokens: Token, prompts: Number) -> Token:
    """Tokens of a step that pass through the head of one chip.

    >>> float(sampled_tokens(64, 8192.0, 1)), float(sampled_tokens(64, 8192.0, 4)), float(sampled_tokens(64, 0.0, 1))
    (65.0, 68.0, 64.0)
    """
    return sequences * ONE_TOKEN + np.minimum(prompt_tokens, prompts * ONE_TOKEN)


@formula(source="definition; `lanes` are ranks and micro-batches that share a step's prompt tokens, at most `dp` in a micro-batch")
def expert_group_tokens(sequences: Number, dp: Number, prompt_tokens: Token, lanes: Number) -> Token:
    """Tokens of one micro-batch for a replica's experts, from all data-parallel ranks; `prompt_tokens` are those of one lane.

    >>> float(expert_group_tokens(2, 72, 0.0, 1)), float(expert_group_tokens(2, 8, 1000.0, 16))
    (144.0, 8016.0)
    """
    return sequences * dp * ONE_TOKEN + prompt_tokens * np.minimum(lanes, dp)


def place(
    coefficients: StepCoefficients, decode_sequences: Number, kv_tokens: Token, prefill_tokens: Token, prefill_pairs: Token
) -> RankWork:
    """One rank's share of a step that decodes and prefills for the whole replica."""
    sequences = rank_sequences(decode_sequences, coefficients.dp, coefficients.pp)
    prompt, pairs = prefill_tokens / coefficients.prefill_ranks, prefill_pairs / coefficients.prefill_ranks
    prompts = coefficients.rank_prompts
    start = chunk_start(prompt / prompts, pairs / prompts)  # of each of them alike
    return RankWork(
        sequences=sequences,
        context=mean_context(kv_tokens, decode_sequences),
        prompt_tokens=prompt,
        prompts=prompts,
        start=start,
        end=chunk_end(prompt / prompts, pairs / prompts, start),
        tokens=chip_tokens(sequences, prompt, coefficients.cp),
        sampled=sampled_tokens(sequences, prompt, prompts),
        group_tokens=expert_group_tokens(sequences, coefficients.dp, prompt, coefficients.prefill_ranks),
    )


@formula(source=LECTURE + "RB-02 with 2 FLOP per multiply-add")
def dense_compute_s(compute: SecondPerToken, tokens: Token, head: SecondPerToken, sampled: Token) -> Second:
    """Compute time of dense layers and head (Llama-3.1-70B over 8 H100: 17.3 and 0.27 us per token at peak).

    >>> round(dense_compute_s(1.73e-5, 64.0, 2.7e-7, 64.0), 6)
    0.001124
    """
    return compute * tokens + head * sampled


@formula(source=LECTURE + "RB-24: the expert group's tokens share its experts")
def expert_compute_s(experts: tuple[ExpertTerm, ...], group_tokens: Token) -> Second:
    """Compute time of routed experts on the fullest chip.

    >>> expert_compute_s((ExpertTerm(compute=1e-7, weights=1e-3, activations=3e-9, experts=256, active=8),), 4096.0)
    0.0004096
    """
    return sum(term.compute * group_tokens for term in experts)


@formula(source=LECTURE + "RB-24, RB-05: whichever format a kernel multiplies them in")
def expert_compute_floor_s(experts: tuple[ExpertTerm, ...], group_tokens: Token) -> Second:
    """Compute time of routed experts in the fastest format that could multiply their stored weights.

    >>> expert_compute_floor_s((ExpertTerm(compute=1e-7, weights=1e-3, activations=3e-9, experts=256, active=8, gain=2),), 4096.0)
    0.0002048
    """
    return sum(term.compute / term.gain * group_tokens for term in experts)


@formula(source=LECTURE + "RB-23: E*(1-(1-k/E)^T) distinct experts are touched")
def expert_weights_s(experts: tuple[ExpertTerm, ...], group_tokens: Token) -> Second:
    """Time to read the routed experts that at least one token uses (DeepSeek-V3: one token uses 8 of 256).

    >>> expert_weights_s((ExpertTerm(compute=1e-7, weights=1e-3, activations=3e-9, experts=256, active=8),), 1.0)
    3.125e-05
    """
    return sum(
        (
            term.weights * distinct_experts(term.experts, term.active, skewed_tokens(group_tokens, term.skew)) / term.experts
            for term in experts
        ),
    )


@formula(source="definition")
def expert_activations_s(experts: tuple[ExpertTerm, ...], group_tokens: Token) -> Second:
    """HBM time of the inputs and outputs of the routed experts' matmuls.

    >>> expert_activations_s((ExpertTerm(compute=1e-7, weights=1e-3, activations=3e-9, experts=256, active=8),), 4096.0)
    1.2288e-05
    """
    return sum(term.activations * group_tokens for term in experts)


def span_pairs(span: SpanTerm, rank_work: RankWork) -> Token:
    """(query, key) pairs of a rank's prompt tokens under one attention span."""
    return np.minimum(
        capped_pairs(rank_work.prompt_tokens, rank_work.start, rank_work.end, span.cap),
        rank_work.prompts * root_pairs(rank_work.start, rank_work.end, span.root),
    )


@formula(source=LECTURE + "CW-02, CW-03; DeepSeek-V2 (arXiv:2405.04434) for the absorbed form in decode")
def attention_compute_s(spans: tuple[SpanTerm, ...], rank_work: RankWork) -> Second:
    """Compute time of attention: each new token against its context, and the causal triangle of prompts.

    >>> span = SpanTerm(cap=np.inf, root=np.inf, read=1e-8, decode_compute=2e-9, prefill_compute=3e-9)
    >>> work = RankWork(sequences=64, context=1000.0, prompt_tokens=0.0, start=0.0, end=0.0, tokens=64.0, sampled=64.0, group_tokens=64.0)
    >>> round(float(attention_compute_s((span,), work)), 9)
    0.000128
    """
    return decode_score_s(spans, rank_work) + prefill_score_s(spans, rank_work)


@formula(source=LECTURE + "CW-02")
def decode_score_s(spans: tuple[SpanTerm, ...], rank_work: RankWork) -> Second:
    """Compute time of decode attention: scores and values of each new token against its context.

    >>> span = SpanTerm(cap=np.inf, root=np.inf, read=1e-8, decode_compute=2e-9, prefill_compute=3e-9)
    >>> work = RankWork(sequences=64, context=1000.0, prompt_tokens=0.0, start=0.0, end=0.0, tokens=64.0, sampled=64.0, group_tokens=64.0)
    >>> round(float(decode_score_s((span,), work)), 9)
    0.000128
    """
    return rank_work.sequences * sum(span.decode_compute * attended_tokens(rank_work.context, span.cap, span.root) for span in spans)


@formula(source=LECTURE + "CW-02; causal mask")
def prefill_score_s(spans: tuple[SpanTerm, ...], rank_work: RankWork) -> Second:
    """Compute time of prefill attention: scores and values over the causal triangle of a rank's prompt.

    >>> span = SpanTerm(cap=np.inf, root=np.inf, read=1e-8, decode_compute=2e-9, prefill_compute=3e-9)
    >>> work = RankWork(sequences=0, context=0.0, prompt_tokens=1e3, start=0.0, end=1e3, tokens=1e3, sampled=1.0, group_tokens=1e3)
    >>> round(float(prefill_score_s((span,), work)), 9)
    0.0015
    """
    return sum(span.prefill_compute * span_pairs(span, rank_work) for span in spans)


@formula(source="vLLM and SGLang, prompts of MLA: keys and values of the cached latents are made again for each chunk")
def latent_expansion_s(spans: tuple[SpanTerm, ...], rank_work: RankWork) -> Second:
    """Compute time of keys and values that are expanded again from the latents before a prompt's new tokens.

    >>> span = SpanTerm(cap=np.inf, root=np.inf, read=1e-8, decode_compute=2e-9, prefill_compute=3e-9, expand=3.4e-8)  # DeepSeek-V3
    >>> work = RankWork(sequences=0, context=0.0, prompt_tokens=1e3, start=9e3, end=1e4, tokens=1e3, sampled=1.0, group_tokens=1e3)
    >>> round(float(latent_expansion_s((span,), work)), 9)
    0.000306
    """
    return rank_work.prompts * sum(span.expand * attended_tokens(rank_work.start, span.cap, span.root) for span in spans)


@formula(source="a kernel's causal triangle has steps, and its first tiles wait for memory: fitted as tokens looked at in vain")
def prefill_pad_s(spans: tuple[SpanTerm, ...], rank_work: RankWork, pad: Token) -> Second:
    """Compute time of masked tokens in prefill attention: `pad` tokens per prompt query.

    >>> span = SpanTerm(cap=np.inf, root=np.inf, read=1e-8, decode_compute=2e-9, prefill_compute=3e-9)
    >>> work = RankWork(sequences=0, context=0.0, prompt_tokens=1e3, start=0.0, end=1e3, tokens=1e3, sampled=1.0, group_tokens=1e3)
    >>> round(float(prefill_pad_s((span,), work, 100.0)), 9)
    0.0003
    """
    return sum(span.prefill_compute * (rank_work.prompt_tokens * (pad / ONE_TOKEN)) for span in spans)


@formula(source=LECTURE + "RB-03, RB-20")
def kv_traffic_s(spans: tuple[SpanTerm, ...], state: Second, kv_write: SecondPerToken, rank_work: RankWork) -> Second:
    """HBM time of KV cache and recurrent state: read for each attended token, written for each new token.

    A prompt reads the KV before it once, even where several layers share it: reading a cached token never takes longer than writing it.

    >>> span = SpanTerm(cap=np.inf, root=np.inf, read=1e-8, decode_compute=2e-9, prefill_compute=3e-9)
    >>> work = RankWork(sequences=64, context=1000.0, prompt_tokens=0.0, start=0.0, end=0.0, tokens=64.0, sampled=64.0, group_tokens=64.0)
    >>> round(float(kv_traffic_s((span,), 0.0, 1e-8, work)), 9)
    0.00064064
    """
    read = sum((span.read * attended_tokens(rank_work.context, span.cap, span.root) for span in spans), start=state)
    before = sum(span.read * attended_tokens(rank_work.start, span.cap, span.root) for span in spans)
    prefix = rank_work.prompts * np.minimum(before, kv_write * rank_work.start)
    return rank_work.sequences * read + (prefix + kv_write * (rank_work.sequences * ONE_TOKEN + rank_work.prompt_tokens))
