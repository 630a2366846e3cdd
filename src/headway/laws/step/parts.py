"""Parts of a step at peak rates: matmuls, weight reads, attention, KV traffic.

`place` turns a replica's work into one rank's; the other laws are the lecture's lines (RB-02, RB-03) with experts, spans and state.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Byte, Flop, FlopPerSecond, FlopPerToken, Number, Second, SecondPerToken, Token
from headway.laws.architecture.kv import attended_tokens
from headway.laws.collectives.expert_parallel import distinct_experts, skewed_tokens
from headway.laws.step.coefficients import (
    LLAMA_70B_TP8,  # noqa: F401 (the doctests' example)
    ExpertTerm,
    ImageTerm,
    RankWork,
    SpanTerm,
    StepCoefficients,
)
from headway.laws.step.pairs import chunk_end, chunk_start, span_pairs
from headway.laws.step.sparse import decode_filling_s, index_s, prefill_filling_s

# -- images of a prompt: what a vision tower computes for each, and what that adds to every token of the prompt -----------------


MATMUL_FLOP: FlopPerToken = 2  # multiply and add
NO_IMAGE: Second = 0.0
SCORE_FLOP: FlopPerToken = 4  # scores and values, of one element of the hidden size


@formula(source="definition")
def tower_params(encoder: Number, projector: Number, tables: Number) -> Number:
    """Parameters of a tower; the Qwen3-VL checkpoint of 8B holds 8,767,123,696 in all, 8,190,735,360 of them in its text decoder.

    >>> f"{tower_params(413237232, 160496896, 2654208):,}", f"{8767123696 - 8190735360:,}"
    ('576,388,336', '576,388,336')
    """
    return encoder + projector + tables


@formula(source="definition")
def tower_bytes(params: Number, element: Byte) -> Byte:
    """Bytes of a tower's weights.

    >>> tower_bytes(576388336, 2) / 1e9
    1.152776672
    """
    return params * element


@formula(source="forward pass of a vision transformer (Dosovitskiy et al. 2020, arXiv:2010.11929): matmuls, and attention without a mask")
def image_flop(
    encoder: Number, projector: Number, hidden: Number, full_layers: Number, window_layers: Number, window: Token, patches: Token,
    tokens: Token,
) -> Flop:  # fmt: skip
    """FLOPs of one image of so many patches, which become so many tokens; both directions of attention count.

    >>> round(float(image_flop(413237232, 160496896, 1152, 27, 0, 1, 4096, 1024)) / 1e12, 2)  # Qwen3-VL-8B, 1,024 by 1,024 pixels
    5.8
    """
    scores = (full_layers * patches + window_layers * np.minimum(window, patches)) / ONE_TOKEN
    return MATMUL_FLOP * (encoder * patches + projector * tokens) + SCORE_FLOP * hidden * patches * scores


@formula(source="definition")
def images_s(images: tuple[ImageTerm, ...], prompt_tokens: Token) -> Second:
    """Time at peak of a tower on the images that come with so many prompt tokens.

    >>> images_s((), 4096.0), float(images_s((ImageTerm(compute=2.86e-6),), 4096.0))
    (0.0, 0.01171456)
    """
    return sum((term.compute * prompt_tokens for term in images), start=NO_IMAGE)


@formula(source="definition; vLLM splits a tower over tensor-parallel chips (--mm-encoder-tp-mode weights, its default)")
def image_s_per_token(flop: Flop, images: Number, prompt: Token, peak: FlopPerSecond, tp: Number) -> SecondPerToken:
    """Time of a prompt's images at peak, spread over all its tokens, so that a chunk of the prompt brings its share.

    >>> round(float(image_s_per_token(5.8e12, 2, 4096, 989.4e12, 1)) * 4096 * 1e3, 1)  # milliseconds of two images on an H100
    11.7
    """
    return flop * images / prompt / peak / tp


# -- parts of a step ------------------------------------------------------------------------------------------------------------


NONE: Token = 0.0
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


@formula(source="definition; context-parallel chips share a prompt's tokens, and each holds every decoded token")
def chip_tokens(sequences: Number, prompt_tokens: Token, cp: Number) -> Token:
    """Tokens of a step that pass through one chip's projections.

    >>> chip_tokens(64, 0.0, 1)
    64.0
    """
    return sequences * ONE_TOKEN + prompt_tokens / cp


@formula(source="Leviathan et al. 2023 (arXiv:2211.17192), algorithm 1: the model scores each draft and the token after them in one step")
def new_tokens(sequences: Number, queries: Number) -> Number:
    """New tokens of decoding sequences in a step that verifies drafts: one each, and a draft each for every place.

    >>> new_tokens(64, 4)
    256
    """
    return sequences * queries


@formula(source="Leviathan et al. 2023 (arXiv:2211.17192), algorithm 1")
def verified_tokens(drafted: Number) -> Number:
    """Tokens of a sequence that a step computes: its drafts and the token before them.

    >>> verified_tokens(3)
    4
    """
    return drafted + 1


@formula(source="Leviathan et al. 2023 (arXiv:2211.17192), algorithm 1")
def further_passes(drafted: Number) -> Number:
    """Passes of what drafts after its first, which yields a draft too.

    >>> further_passes(3)
    2
    """
    return drafted - 1


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
    queries, new, sampled = coefficients.queries, sequences, sequences
    if coefficients.queries != 1:
        new, sampled = new_tokens(sequences, queries), new_tokens(sequences, coefficients.sampled)
    return RankWork(
        sequences=sequences,
        context=mean_context(kv_tokens, decode_sequences),
        prompt_tokens=prompt,
        prompts=prompts,
        start=start,
        end=chunk_end(prompt / prompts, pairs / prompts, start),
        tokens=chip_tokens(new, prompt, coefficients.cp),
        sampled=sampled_tokens(sampled, prompt, prompts),
        group_tokens=expert_group_tokens(new, coefficients.dp, prompt, coefficients.prefill_ranks),
        queries=queries,
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
    """Time to read, or to move, the routed experts that at least one token uses (DeepSeek-V3: one token uses 8 of 256).

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
    scores = rank_work.sequences * sum(span.decode_compute * attended_tokens(rank_work.context, span.cap, span.root) for span in spans)
    return scores if rank_work.queries == 1 else scores * rank_work.queries


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
    again = [span for span in spans if np.any(span.expand)]
    return rank_work.prompts * sum(span.expand * attended_tokens(rank_work.start, span.cap, span.root) for span in again)


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
    sequences, passes = rank_work.sequences, state
    if rank_work.queries != 1:  # the state before is read once, that after each new token is kept until it is known which are accepted
        sequences, passes = rank_work.sequences * rank_work.queries, state * (1 + rank_work.queries) / 2
    read = sum((span.read * attended_tokens(rank_work.context, span.cap, span.root) for span in spans), start=passes)
    before = sum(span.read * attended_tokens(rank_work.start, span.cap, span.root) for span in spans)
    prefix = rank_work.prompts * np.minimum(before, kv_write * rank_work.start)
    return rank_work.sequences * read + (prefix + kv_write * (sequences * ONE_TOKEN + rank_work.prompt_tokens))


# -- the kernels of a step by class: dense and expert matmuls, decode and prefill attention, elementwise kernels; and their sum -
# Inputs called compute, weights, activations and kv are seconds at peak (FLOP over the dense peak, bytes over the HBM bandwidth), so
# that a law serves both one kernel and the sum over a step's layers.


NO_SCAN: Second = 0.0
NO_TIME: Second = 1e-300  # avoids 0 / 0 where a step has no work
SCAN_CHUNK: Token = 64  # tokens of a chunk in flash-linear-attention and FlashInfer
MEETS = "p-norm of the two limits, as kernels without perfect overlap follow; the hard roofline (Williams 2009) at norm = inf"


@formula(source=MEETS)
def smooth_max_s(first: Second, second: Second, norm: Number) -> Second:
    """Time under two limits that overlap, imperfectly near the ridge: (first^norm + second^norm)^(1/norm).

    >>> round(float(smooth_max_s(3.0, 4.0, 2)), 6), float(smooth_max_s(3.0, 4.0, np.inf)), float(smooth_max_s(0.0, 0.0, 3))
    (5.0, 4.0, 0.0)
    """
    most = np.maximum(first, second)
    return most * (1 + (np.minimum(first, second) / np.maximum(most, NO_TIME)) ** norm) ** (1 / norm)


@formula(source=MEETS + "; activations (read, written and, below 16 bits, quantised) are handled before and after the tiles")
def matmul_s(
    compute: Second, weights: Second, activations: Second, eff_compute: Number, eff_memory: Number, eff_activation: Number, norm: Number
) -> Second:
    """Time of a dense or grouped matmul: compute against streamed weights, plus its activations.

    >>> peak, bandwidth, m, n, k = 989.4e12, 3.35e12, 1024, 8192, 8192  # one projection of Llama-3.1-70B on an H100
    >>> compute, weights, activations = 2 * m * n * k / peak, 2 * n * k / bandwidth, 2 * (m * k + m * n) / bandwidth
    >>> round(float(matmul_s(compute, weights, activations, 0.8, 0.85, 1.0, 3.0)) * 1e6, 1)
    184.8
    """
    return smooth_max_s(compute / eff_compute, weights / eff_memory, norm) + activations / eff_activation


@formula(source="FlashDecoding, XQA: one thread block per sequence and KV head at least, however short the context")
def decode_attention_s(
    compute: Second, kv: Second, blocks: Number, streamed: Second, eff_compute: Number, eff_memory: Number, block: Second
) -> Second:
    """Time of decode attention: the streamed KV cache, a fixed time per pair of sequence and KV head, and that of one such stream alone.

    >>> kv = 256 * 1024 * 2 * 128 * 2 / 3.35e12  # Llama-3.1-70B, one KV head of one layer, 256 sequences of 1024 tokens, an H100
    >>> round(float(decode_attention_s(0.0, kv, 256, 0.0, 0.6, 0.9, 2.5e-8)) * 1e6, 1)
    50.9
    """
    return np.maximum(compute / eff_compute, kv / eff_memory) + (blocks * block + streamed)


@formula(source="Little's law: few thread blocks keep few bytes in flight; kernels were measured to take one stream's time longer")
def stream_s(spans: tuple[SpanTerm, ...], stream: Number, rank_work: RankWork) -> Second:
    """Time in which the cache of one KV head of one sequence is read, of all layers, after what all of them share.

    >>> span = SpanTerm(cap=np.inf, root=np.inf, read=1e-8, decode_compute=2e-9, prefill_compute=3e-9, stream=1e-9)
    >>> work = RankWork(sequences=64, context=1000.0, prompt_tokens=0.0, start=0.0, end=0.0, tokens=64.0, sampled=64.0, group_tokens=64.0)
    >>> round(float(stream_s((span,), 0.4, work)) * 1e6, 2)
    0.4
    """
    head_s = sum(span.stream * attended_tokens(rank_work.context, span.cap, span.root) for span in spans)
    return head_s * stream * np.minimum(rank_work.sequences, 1)


@formula(source="FlashAttention: a query tile pays for its first and its masked tiles in full, as if each prompt token saw `pad` more")
def prefill_attention_s(pair_compute: Second, pad_compute: Second, eff_compute: Number) -> Second:
    """Time of prefill attention: causal pairs, and a pad per token that slows short prompts.

    >>> flop, peak = 4 * 128 * 8, 989.4e12  # Llama-3.1-70B, one layer, 8 of its 64 heads, an H100
    >>> round(prefill_attention_s(flop * 8192 * 8193 / 2 / peak, flop * 8192 * 400 / peak, 0.67) * 1e6, 1)
    227.6
    """
    return (pair_compute + pad_compute) / eff_compute


@formula(source="gated delta rule in chunks: Yang et al. 2024 (arXiv:2412.06464) section 3.3; one thread block per sequence and head")
def scan_s(longest: Token, tokens: Token, heads: Number, chunk: Second, heads_at_once: Number) -> Second:
    """Time of the scan of a step's prompts in one layer: a chunk waits for the one before, and heads that find no place wait their turn.

    So tensor parallelism, which takes heads away, does not make the scan of a single prompt faster.

    >>> scans = [scan_s(8192.0, 8192.0, heads, 2.8e-6, 102.0) for heads in (8, 64, 128)]  # Qwen3.5-397B on 8, 1 and half an H100
    >>> [round(seconds * 1e6) for seconds in scans]
    [358, 358, 450]
    """
    return chunk / SCAN_CHUNK * np.maximum(longest, tokens * (heads / heads_at_once))


@formula(source="Goto and van de Geijn 2008, ACM TOMS 34(3): weights are copied in the order of a kernel's tiles; a single row needs none")
def packed_weights_s(weights: Second, packing: Number, tokens: Token) -> Second:
    """Time of reading weights, and of copying them where a processor's library does so before it multiplies more than one row.

    >>> [float(packed_weights_s(4e-3, 1.5, tokens)) for tokens in (1.0, 2.0, 64.0)]
    [0.004, 0.01, 0.01]
    """
    return weights * (1 + packing * np.minimum(np.maximum(tokens / ONE_TOKEN - 1, 0), 1))


def streamed_weights_s(coefficients: StepCoefficients, tokens: Token) -> Second:
    """Time at peak bandwidth of what a step moves of its dense weights."""
    packing = coefficients.achieved.packing
    return packed_weights_s(coefficients.dense_weights, packing, tokens) if np.any(packing) else coefficients.dense_weights


@formula(source=LECTURE + "RB-02, RB-03: projections, dense and shared FFN, output head")
def dense_matmuls_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of the matmuls that every token passes through.

    >>> round(float(dense_matmuls_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))), 6)
    0.006788
    """
    achieved = coefficients.achieved
    return matmul_s(
        compute=dense_compute_s(coefficients.dense_compute, rank_work.tokens, coefficients.head_compute, rank_work.sampled),
        weights=streamed_weights_s(coefficients, rank_work.tokens),
        activations=coefficients.activations * rank_work.tokens,
        eff_compute=achieved.compute,
        eff_memory=achieved.memory,
        eff_activation=achieved.activation,
        norm=achieved.norm,
    )


@formula(source=LECTURE + "RB-23, RB-24, MOE-02: of the fullest chip, whose routed work is `imbalance` times the mean")
def expert_matmuls_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of the grouped matmuls of routed experts.

    >>> float(expert_matmuls_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)))
    0.0
    """
    achieved, experts, tokens = coefficients.achieved, coefficients.experts, rank_work.group_tokens
    return matmul_s(
        compute=expert_compute_s(experts, tokens) * coefficients.imbalance,
        weights=expert_weights_s(experts, tokens),
        activations=expert_activations_s(experts, tokens) * coefficients.imbalance,
        eff_compute=achieved.expert_compute,
        eff_memory=achieved.expert_memory,
        eff_activation=achieved.expert_activation,
        norm=achieved.expert_norm,
    )


@formula(source=LECTURE + "RB-03, CW-02, with a fixed time per pair of sequence and KV head")
def decode_kernels_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of attention of the decoding sequences, each to its own cache.

    >>> round(float(decode_kernels_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))), 6)
    0.000957
    """
    achieved = coefficients.achieved
    return decode_attention_s(
        compute=decode_score_s(coefficients.spans, rank_work) + decode_filling_s(coefficients.spans, rank_work),
        kv=kv_traffic_s(coefficients.spans, coefficients.state, coefficients.kv_write, rank_work),
        blocks=coefficients.blocks * rank_work.sequences,
        streamed=stream_s(coefficients.spans, achieved.stream, rank_work),
        eff_compute=achieved.decode_compute,
        eff_memory=achieved.decode_memory,
        block=achieved.block,
    )


@formula(source=LECTURE + "CW-02; causal mask, with the masked part of each tile")
def prefill_kernels_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of attention of a step's prompt tokens.

    >>> round(float(prefill_kernels_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 0, 0.0, 2048.0, 2048.0**2 / 2))), 6)
    0.001377
    """
    achieved = coefficients.achieved
    return prefill_attention_s(
        pair_compute=(
            prefill_score_s(coefficients.spans, rank_work)
            + prefill_filling_s(coefficients.spans, rank_work)
            + latent_expansion_s(coefficients.spans, rank_work)
        ),
        pad_compute=prefill_pad_s(coefficients.spans, rank_work, achieved.prefill_pad),
        eff_compute=achieved.prefill_compute,
    )


@formula(source="DeepSeek-V3.2 (arXiv:2512.02556) section 2.1, as its kernels run it")
def index_kernels_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of the index scans of a step beside the reads of their keys.

    >>> index_kernels_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))  # no layer has an index
    0
    """
    achieved = coefficients.achieved
    return index_s(coefficients.indexes, rank_work, achieved.index_compute, achieved.decode_memory, achieved.elementwise)


@formula(source="gated delta rule in chunks: Yang et al. 2024 (arXiv:2412.06464) section 3.3")
def scan_kernels_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of the scans of a step's prompts in all layers; the longest is what the mean number of tokens attended to tells.

    >>> float(scan_kernels_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 0, 0.0, 2048.0, 2048.0**2 / 2)))  # no layer scans
    0.0
    """
    achieved, longest = coefficients.achieved, rank_work.end - rank_work.start
    return sum(
        (
            term.layers * scan_s(longest, rank_work.prompt_tokens, term.heads, achieved.scan_chunk, achieved.scan_heads)
            for term in coefficients.scans
        ),
        start=NO_SCAN,
    )


@formula(source="bytes over the HBM bandwidth that such kernels reach")
def elementwise_kernels_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of norms, residuals and other elementwise kernels.

    >>> round(float(elementwise_kernels_s(LLAMA_70B_TP8, place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0))), 6)
    0.000331
    """
    return coefficients.elementwise * rank_work.tokens / coefficients.achieved.elementwise


@formula(source="one law per class of kernel (laws/step/parts.py), classes one after the other")
def kernels_s(coefficients: StepCoefficients, rank_work: RankWork) -> Second:
    """Time of a step's arithmetic and HBM traffic, with kernel overlap as measured.

    >>> rank_work = place(LLAMA_70B_TP8, 64, 64 * 1000.0, 0.0, 0.0)
    >>> round(float(kernels_s(LLAMA_70B_TP8, rank_work)), 6)
    0.008075
    """
    matmuls = dense_matmuls_s(coefficients, rank_work)
    if coefficients.experts:
        matmuls = matmuls + expert_matmuls_s(coefficients, rank_work)
    attention = decode_kernels_s(coefficients, rank_work) + prefill_kernels_s(coefficients, rank_work)
    if coefficients.indexes:
        attention = attention + index_kernels_s(coefficients, rank_work)
    if coefficients.scans:
        attention = attention + scan_kernels_s(coefficients, rank_work)
    if coefficients.images:
        matmuls = matmuls + images_s(coefficients.images, rank_work.prompt_tokens) / coefficients.achieved.compute
    return attention + (matmuls + elementwise_kernels_s(coefficients, rank_work))
