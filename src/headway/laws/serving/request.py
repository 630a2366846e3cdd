"""From steps to requests: prefill, TPOT over a growing context, steady state, prefix cache hits, speculative decoding."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Byte, BytePerSecond, Number, PerSecond, Same, Second, Token, TokenPerSecond

DEFINITIONS = "TTFT and TPOT as vLLM's `bench serve` defines them"


@formula(source="causal mask: each query attends to itself and what came before")
def causal_pairs(prompt: Token) -> Token:
    """(query, key) pairs of a whole prompt: tokens attended to, summed over queries.

    >>> causal_pairs(1000.0)
    500000.0
    """
    return prompt * (prompt / ONE_TOKEN) / 2


@formula(source="definition")
def middle_context(prompt: Token, output: Token) -> Token:
    """Context half way through the output: the mean of a steady batch.

    >>> middle_context(8000, 1000)
    8500.0
    """
    return prompt + output / 2


@formula(source="`middle_context` solved for the output")
def mean_output(context: Token, prompt_over_output: Number) -> Token:
    """Tokens of an answer whose mean context is published beside the tokens of a whole service, prompts over outputs.

    >>> round(mean_output(4989, 608 / 168))  # DeepSeek's day of 2025-02-27
    1211
    """
    return context / (prompt_over_output + 1 / 2)


@formula(source="Simpson's rule over prompt..prompt+output, exact while a step is linear in context; " + DEFINITIONS)
def tpot_s(first: Second, middle: Second, last: Second) -> Second:
    """Mean decode step over a request's growing context (Simpson's rule).

    >>> round(tpot_s(0.010, 0.011, 0.012), 6)
    0.011
    """
    return (first + 4 * middle + last) / 6


@formula(source="steady state: a replica prefills as many prompts as it finishes")
def request_s(batch: Number, output: Token, tpot: Second, prefill: Second, lanes: Number) -> Second:
    """Replica time per request: its share of the decode steps, and its prefill.

    >>> round(request_s(64, 1000, 0.010, 0.080, 1), 6)
    0.23625
    """
    return output / ONE_TOKEN * tpot / batch + prefill / lanes


@formula(source="lecture TS-07: B/tau")
def decode_tok_per_s(batch: Number, step: Second, replicas: Number) -> TokenPerSecond:
    """Output tokens per second while all replicas only decode.

    >>> decode_tok_per_s(2000, 0.020, 1)
    100000.0
    """
    return batch * ONE_TOKEN / step * replicas


@formula(source="lecture TS-12: 1/tau")
def user_tok_per_s(step: Second) -> TokenPerSecond:
    """Output tokens per second of one user while decoding.

    >>> user_tok_per_s(0.020)
    50.0
    """
    return ONE_TOKEN / step


@formula(source="intervals are symmetric in the logarithm; docs/accuracy.md")
def interval_factor(factor: Number, wider: Number) -> Number:
    """Factor of half an interval that is `wider` times as wide in the logarithm.

    >>> round(float(interval_factor(1.4, 1.5)), 3)
    1.657
    """
    return factor**wider


@formula(source="errors of left-out rows: flat beyond half, docs/accuracy.md")
def queued_width_share(queued: Number) -> Number:
    """How far the interval of a TTFT widens, 0 to 1, by the share of it that other users add: in full from half on.

    >>> float(queued_width_share(0.25)), float(queued_width_share(0.9))
    (0.5, 1.0)
    """
    return np.minimum(2 * queued, 1)


@formula(source="errors of left-out rows: flat up to half, docs/accuracy.md")
def seats_width_share(share: Number) -> Number:
    """How far the slow end widens, 0 to 1, by the share of the seats that is taken: from half on, for how many the cache has is uncertain.

    >>> float(seats_width_share(0.4)), float(seats_width_share(0.75))
    (0.0, 0.5)
    """
    return np.maximum(2 * share - 1, 0)


@formula(source="definition")
def interval_share(factor: Number) -> Number:
    """Part by which a time is shorter at the lower end of an interval of this half as a factor.

    >>> interval_share(1.25)
    0.19999999999999996
    """
    return 1 - 1 / factor


@formula(source="90 % interval of cross-validated residuals, docs/accuracy.md: expected / spread, never below the floor")
def interval_low(expected: Second, floor: Second, spread: Number) -> Second:
    """Lower end of an interval, at least the floor.

    >>> float(interval_low(0.010, 0.009, 1.6))
    0.009
    """
    return np.maximum(expected / spread, floor)


@formula(source="90 % interval of cross-validated residuals, docs/accuracy.md: expected * spread, at most what the floor of time allows")
def rate_high(expected: PerSecond, most: PerSecond, spread: Number) -> PerSecond:
    """Upper end of the interval of a rate, at most the rate at the floor.

    >>> float(rate_high(10.0, 12.0, 1.6))
    12.0
    """
    return np.minimum(expected * spread, np.maximum(most, expected))


@formula(source="vLLM's `bench serve`: TPOT = (E2E - TTFT) / (output tokens - 1), solved for E2E")
def e2e_s(ttft: Second, tpot: Second, output: Token) -> Second:
    """E2E time of a request, from arrival to its last token.

    >>> round(e2e_s(0.5, 0.020, 1000), 2)
    20.48
    """
    return ttft + (output / ONE_TOKEN - 1) * tpot


@formula(source="GPipe (arXiv:1811.06965) ; unequal chunks: all turns and stages - 1 of the longest, as in a proportionate flow shop")
def pipelined_s(chunk: Second, chunks: Number, longest: Second, pp: Number, overlap: Number) -> Second:
    """Prefill time of a prompt in chunks pipelined through stages; times of the mean and the longest chunk are through all stages.

    `overlap`: share of the chunks that are pipelined.

    >>> pipelined_s(0.4, 8, 0.4, 4, 1), pipelined_s(0.4, 8, 0.4, 4, 0), pipelined_s(0.2, 2, 0.4, 4, 1)
    (1.1, 3.2, 0.4)
    """
    return chunk * chunks * (overlap / pp + (1 - overlap)) + overlap * longest * (pp - 1) / pp


@formula(
    source="fullest of dp bins that n prompts fall in: n/dp + sqrt(2 n/dp ln dp), Raab and Steger 1998, from one prompt to all; engines "
    "keep requests even (vLLM, DPLBAsyncMPClient: the rank with fewest; SGLang: in turn), so no rank has more than its share of them"
)
def prompt_ranks(prompts: Number, dp: Number, requests: Number) -> Number:
    """Data-parallel ranks that concurrent prompts keep busy while others wait for the fullest; `requests` are in service, prompts included.

    Of 8 ranks 1 prompt uses 1; 80 of 800 requests use 5; 8 prompts use 8 where there are no other requests.

    >>> [round(float(prompt_ranks(prompts, 8, requests)), 1) for prompts, requests in ((1, 1), (80, 800), (8, 8))]
    [1.0, 4.9, 8.0]
    """
    mean = np.maximum(prompts, 1) / dp
    share = np.maximum(requests, np.maximum(prompts, 1)) / dp
    fullest = np.maximum(np.minimum(mean + np.sqrt(2 * mean * np.log(dp)), share), 1)
    return np.maximum(np.maximum(prompts, 1) / np.where(dp > 1, fullest, np.maximum(prompts, 1)), 1)


@formula(source="a scheduler gives each micro-batch that enters the pipeline the next prompt: stages fill evenly, ranks as prompts fall")
def prompt_lanes(prompts: Number, dp: Number, pp: Number, requests: Number) -> Number:
    """Data-parallel ranks and pipeline stages that concurrent prompts keep busy (4 stages: 1 prompt uses 1, 40 use 4).

    >>> float(prompt_lanes(1, 1, 4, 1)), float(prompt_lanes(40, 1, 4, 80)), float(prompt_lanes(5, 1, 1, 5))
    (1.0, 4.0, 1.0)
    """
    stages = np.minimum(pp, np.maximum(prompts, 1))
    return stages * prompt_ranks(prompts / stages, dp, requests / stages)


@formula(source="definition")
def lane_prompts(prompts: Number, lanes: Number) -> Number:
    """Prompts of a step on each rank and stage that has any.

    >>> float(lane_prompts(32, 1)), float(lane_prompts(0.3, 1))
    (32.0, 1.0)
    """
    return np.maximum(prompts / lanes, 1)


@formula(source="definition: the first token comes with the prefill")
def run_s(ttft: Second, tpot: Second, output: Token, batch: Number) -> Second:
    """Replica time per request of a batch run from prefill to last tokens.

    >>> run_s(0.5, 0.010, 1001, 10)
    1.05
    """
    return (ttft + (output / ONE_TOKEN - 1) * tpot) / batch


SPECULATION = "Leviathan et al. 2023, arXiv:2211.17192"
BISECTIONS = 60  # halve an acceptance down to rounding
CACHE = "prefix caching as in vLLM and SGLang: the cached part of a prompt is in HBM, only the rest is prefilled"


@formula(source=CACHE)
def missed_tokens(prompt: Token, hit_rate: Number) -> Token:
    """Prompt tokens that miss the prefix cache and must be prefilled; at least one, whose step gives the first token.

    >>> float(missed_tokens(8000, 0.75)), float(missed_tokens(8000, 1))
    (2000.0, 1.0)
    """
    return np.maximum(prompt * (1 - hit_rate), ONE_TOKEN)


@formula(source="causal mask: the missed tokens come last and attend to the whole prefix before them")
def missed_pairs(prompt: Token, hit_rate: Number) -> Token:
    """(query, key) pairs of the prompt tokens that miss the prefix cache; at least those of the last token.

    >>> float(missed_pairs(1000.0, 0.5)), float(missed_pairs(1000.0, 1))
    (375000.0, 999.5)
    """
    tokens = np.maximum(prompt * (1 - hit_rate), ONE_TOKEN)
    return (tokens / ONE_TOKEN) * (prompt - tokens / 2)


@formula(source="KV over the host link; each chip loads its own part")
def prefix_load_s(sequence: Byte, stage_share: Number, cp: Number, link: BytePerSecond) -> Second:
    """Time to load one prompt's cached prefix into the HBM of the fullest chip.

    >>> round(prefix_load_s(1.966e9, 1.0, 1, 63e9), 4)
    0.0312
    """
    return sequence * stage_share / cp / link


@formula(source=SPECULATION + ", equation 1: (1 - a^(g+1)) / (1 - a), with the token that the model itself adds")
def expected_accept_length(acceptance: Number, drafted: Number) -> Number:
    """Mean tokens per step when each drafted token is accepted with this probability (0.85 of one MTP token).

    >>> round(expected_accept_length(0.85, 1), 3), round(expected_accept_length(0.8, 4), 3)
    (1.85, 3.362)
    """
    return (1 - acceptance ** (drafted + 1)) / (1 - acceptance)


@formula(source=SPECULATION + ", section 3.1: a draft counts if all before it are accepted; and the token that the model adds")
def accepted_length(acceptance: tuple[Number, ...]) -> Number:
    """Mean tokens of a step: 1 + a1 + a1 a2 + ..., where a_i is the share of i-th drafts that are accepted if those before were.

    >>> round(accepted_length((0.85,)), 3), round(accepted_length((0.8, 0.8, 0.8, 0.8)), 3)
    (1.85, 3.362)
    """
    chance, total = 1, 1
    for share in acceptance:
        chance = chance * share
        total = total + chance
    return total


@formula(source=SPECULATION + ", equation 1 solved by bisection", empirical="an iteration; its residual is tested instead")
def acceptance_of_length(accept_length: Number, drafted: Number) -> Number:
    """Acceptance, alike for every draft, with which `drafted` of them yield this many tokens a step.

    >>> round(acceptance_of_length(1.8, 1), 6), round(acceptance_of_length(3.3616, 4), 6)
    (0.8, 0.8)
    """
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if sum(middle**place for place in range(int(drafted) + 1)) < float(accept_length):
            low = middle
        else:
            high = middle
    return high


@formula(source=SPECULATION + ", theorem 3.8: a step with its drafts yields the accepted tokens and one more")
def speculative_s(step: Second, accept_length: Number) -> Second:
    """Time per token of a step that drafts and verifies.

    >>> round(float(speculative_s(0.021, 1.85)), 5)
    0.01135
    """
    return step / accept_length


@formula(source="definition")
def time_saved_share(time: Second, without: Second) -> Number:
    """Share of a time that is saved, below zero where it grew.

    >>> round(time_saved_share(0.784, 1.0), 3), round(time_saved_share(1.2, 1.0), 3)
    (0.216, -0.2)
    """
    return 1 - time / without


# -- confidence in an estimate of known error: the factor between truth and estimate is lognormal, with 1 as its median ---------


NORMAL = NormalDist()
END = NORMAL.inv_cdf(0.95)  # upper end of a 90 % interval, in standard deviations
LOGNORMAL = "lognormal factor whose 90 % interval is 1/spread to spread, as residuals left out of a fit are measured (docs/accuracy.md)"


@formula(source=LOGNORMAL)
def factor_probability(factor: Number, spread: Number) -> Number:
    """Probability that truth over estimate is at most `factor`.

    >>> float(factor_probability(1.0, 1.358)), round(float(factor_probability(1.358, 1.358)), 3)
    (0.5, 0.95)
    """
    return NORMAL.cdf(float(np.log(factor) / np.log(spread)) * END)


@formula(source=LOGNORMAL)
def factor_of_probability(probability: Number, spread: Number) -> Number:
    """Factor that truth over estimate does not exceed with this probability.

    >>> round(float(factor_of_probability(0.8, 1.358)), 3), round(float(factor_of_probability(0.95, 1.358)), 3)
    (1.17, 1.358)
    """
    return np.exp(np.log(spread) * NORMAL.inv_cdf(float(probability)) / END)


# -- parts of a measured TTFT and TPOT: what each costs, and what no part explains, so that they sum to the measurement ---------


@formula(source="definition: kernels overlap, so only the arithmetic that no read hides adds to a step")
def exposed_compute_s(step: Second, weights: Second, kv: Second, network: Second, overhead: Second) -> Second:
    """Time that arithmetic adds to a step beyond its reads of weights and KV cache, its collectives and its overhead.

    >>> round(float(exposed_compute_s(0.01238, 0.006341, 0.000957, 0.001779, 0.002528)), 6)
    0.000775
    """
    return np.maximum(step - (weights + kv + network + overhead), 0 * step)


@formula(source="definition")
def prompts_before_s(ttft: Second, overhead: Second, prefill: Second, seat_wait: Second) -> Second:
    """Part of TTFT that other requests' prompts and the step in progress take.

    >>> round(float(prompts_before_s(0.9, 0.02, 0.35, 0.1)), 3)
    0.43
    """
    return np.maximum(ttft - (overhead + prefill + seat_wait), 0 * ttft)


@formula(source="definition: parts sum to the measurement; each in proportion where a server is faster than they say")
def share_s(part: Second, explained: Second, measured: Second) -> Second:
    """Part of a measured time, of parts that explain `explained` of it: as it is, or less in proportion where they explain too much.

    >>> float(share_s(0.03, 0.06, 0.08)), float(share_s(0.03, 0.06, 0.04))
    (0.03, 0.02)
    """
    return part * np.minimum(measured / np.maximum(explained, measured), 1)


@formula(source="definition")
def unexplained_s(measured: Second, explained: Second) -> Second:
    """Measured time that the parts do not explain; none where they explain more.

    >>> round(float(unexplained_s(0.0618, 0.0595)), 4), float(unexplained_s(0.05, 0.06))
    (0.0023, 0.0)
    """
    return np.maximum(measured - explained, 0 * measured)


@formula(
    source="Little's law over a run, and Jensen's inequality: 1 / TPOT <= E[b / f(b)] / E[b] over its time, at most the concave envelope of"
    " b / f(b) at E[b], over E[b]",
    empirical="the envelope compares batches with one another",
)
def unsteady_floor_s(decoding: Number, batches: Number, steps: Second) -> Second:
    """Least mean time per token of a run whose batch was `decoding` on average, whatever it was from step to step.

    `steps` are the floors of a step at each of the `batches`, in ascending order from 1.

    >>> batches = np.array([1.0, 2.0, 4.0, 8.0])
    >>> [round(float(unsteady_floor_s(batch, batches, 0.005 + 0.001 * batches)), 9) for batch in (0.5, 4.0)]
    [0.006, 0.009]
    >>> round(float(unsteady_floor_s(4.0, 8.0, 0.013)), 12)
    0.013
    """
    at, through = np.append(0.0, batches), np.append(0.0, batches / steps)
    inside = np.minimum(decoding, at[-1])
    low, high = np.flatnonzero(at <= inside)[:, None], np.flatnonzero(at >= inside)[None, :]
    along = (inside - at[low]) / np.maximum(at[high] - at[low], 1e-12)
    return inside / np.max(through[low] + (through[high] - through[low]) * along)


@formula(source="definition: squared distance in the logarithm, in half-widths of the 90 % interval")
def misfit(measured: Same, expected: Same, factor: Number) -> Number:
    """How far a measurement is from its expectation: 1 at either end of the 90 % interval; `factor` is half of the interval.

    >>> float(misfit(0.02, 0.01, 2.0)), float(misfit(0.01, 0.01, 1.36))
    (1.0, 0.0)
    """
    return (np.log(measured / expected) / np.log(factor)) ** 2
