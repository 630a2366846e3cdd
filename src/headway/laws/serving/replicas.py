"""Replicas: number that a system holds and that a rate needs, their load, and chips shared by prefill and decode pools."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import (
    ONE_TOKEN,
    Number,
    PerSecond,
    Second,
    SecondPerToken,
    Token,
    TokenPerMtok,
    UsdPerMtok,
    UsdPerSecond,
)

NO_TIME: Second = 0.0


@formula(source="operational law: busy servers = rate * service time")
def replicas_needed(rate: PerSecond, request: Second) -> Number:
    """Fewest replicas whose capacity reaches a request rate.

    >>> int(replicas_needed(40.0, 0.23625))
    10
    """
    return np.maximum(np.ceil(rate * request), 1)


@formula(source="definition; a replica stays inside one node or takes whole ones")
def nodes_needed(replicas: Number, node: Number, replica: Number) -> Number:
    """Whole nodes of `node` chips that hold a number of replicas (10 of 3 chips in nodes of 8: 5 nodes).

    >>> int(nodes_needed(10, 8, 3)), int(nodes_needed(10, 8, 4)), int(nodes_needed(3, 8, 16))
    (5, 5, 6)
    """
    inside = np.maximum(np.floor(node / replica), 1)
    return np.where(replica > node, replicas * np.ceil(replica / node), np.ceil(replicas / inside))


@formula(source="definition; a replica stays inside one node or takes whole ones")
def replicas_in_nodes(nodes: Number, node: Number, replica: Number) -> Number:
    """Replicas that whole nodes hold (5 nodes of 8 chips, 3 chips each: 10).

    >>> int(replicas_in_nodes(5, 8, 3)), int(replicas_in_nodes(6, 8, 16))
    (10, 3)
    """
    return np.where(replica > node, np.floor(nodes / np.ceil(replica / node)), nodes * np.floor(node / replica))


@formula(source="definition")
def utilisation(rate: PerSecond, capacity: PerSecond) -> Number:
    """Request rate over capacity; from 1 up the queue grows without end.

    >>> utilisation(40.0, 50.0)
    0.8
    """
    return rate / capacity


@formula(source="definition; a replica stays inside one scale-up domain or takes whole ones; the last domain may be partly filled")
def replicas_held(chips: Number, domain: Number, replica: Number) -> Number:
    """Replicas that a system holds (16 H100 in two nodes of 8, 3 chips each: 2 + 2).

    >>> int(replicas_held(16, 8, 3)), int(replicas_held(72, 72, 64)), int(replicas_held(144, 8, 64))
    (4, 1, 2)
    """
    full_domains = np.floor(chips / domain)
    inside = full_domains * np.floor(domain / replica) + np.floor((chips - domain * full_domains) / replica)
    return np.where(replica > domain, np.floor(full_domains / np.ceil(replica / domain)), inside)


@formula(source="definition; a batch between two multiples of the ranks takes as long as the upper one, so only multiples can be best")
def full_batch(rank_sequences: Number, dp: Number, pp: Number) -> Number:
    """Sequences of a replica with equally many on every rank and pipeline stage.

    >>> full_batch(29, 18, 2)
    1044
    """
    return rank_sequences * dp * pp


@formula(source="definition; the last users that fit a rank may leave some stages with one sequence less")
def fitting_batch(rank_sequences: Number, dp: Number, pp: Number, limit: Number) -> Number:
    """Sequences of a replica with equally many on every rank and stage, or as many as fit a rank (`limit`) where those do not.

    >>> float(fitting_batch(2, 1, 4, 13.5)), float(fitting_batch(1, 2, 4, 3.5))
    (8.0, 6.0)
    """
    return np.minimum(full_batch(rank_sequences, dp, pp), np.maximum(np.floor(limit), 1) * dp)


@formula(source="definition; where the two overlap, they share the request's time as they would without")
def prompt_taken_s(request: Second, prompt: Second, decode: Second, decoding: Number, output: Token) -> Second:
    """Replica time that a request's prompt is charged; `decode`: time of a token in steps of `decoding` sequences.

    >>> round(float(prompt_taken_s(0.236, 0.076, 0.010, 64, 1000)), 3), round(float(prompt_taken_s(0.2, 0.3, 0.1, 1, 1)), 3)
    (0.076, 0.15)
    """
    answer = decode * (output / ONE_TOKEN) / np.maximum(decoding, 1)
    least = np.maximum(prompt, NO_TIME)  # a prompt of a token or two may take a step no longer than a decode step is
    return least * np.minimum(request / (least + answer), 1)


@formula(source="definition: a request's share of a replica, less what its prompt takes")
def answer_token_s(request: Second, prompt: Second, output: Token) -> Second:
    """Replica time per output token; `request` is the mean time between finished requests of the replica.

    >>> round(float(answer_token_s(0.236, 0.076, 1000)), 6)
    0.00016
    """
    return np.maximum(request - prompt, 0) / (output / ONE_TOKEN)


@formula(source="definition: ranks of a replica load their prefixes side by side")
def cached_load_s(tokens: Token, load: SecondPerToken, ranks: Number) -> Second:
    """Replica time to load a request's cached tokens (2,700 tokens of Llama-2-7B over a link of 64 GB/s).

    >>> round(cached_load_s(2700, 8.192e-6, 1), 4)
    0.0221
    """
    return tokens * load / ranks


@formula(source="definition: what a request is charged is what the machine costs meanwhile, divided as the parts take alone")
def share_beside_loads(request: Second, load: Second) -> Number:
    """Share of its own time that each part of a request is charged where loads of cached tokens are charged too.

    >>> round(share_beside_loads(0.060, 0.0221), 3)
    0.731
    """
    return 1 / (1 + load / request)  # 1 of a request that never ends


@formula(source="definition: d ln(objective) / d ln(input), by one finite step, the optimum searched again")
def elasticity(gain: Number, factor: Number) -> Number:
    """Improvement of the best objective in per cent per per cent of an input; positive helps.

    >>> round(float(elasticity(1.005, 1.01)), 3)
    0.501
    """
    return np.log(gain) / np.log(factor)


MILLION: TokenPerMtok = 1e6
DISAGGREGATED = "DistServe (Zhong et al. 2024, arXiv:2401.09670) and Splitwise (Patel et al. 2024, arXiv:2311.18677)"


@formula(source=DISAGGREGATED + "; the slower side's links bind, no overlap with prefill is taken for granted")
def transfer_s(prefill_side: Second, decode_side: Second) -> Second:
    """Time to transfer one prompt's KV cache from the prefill to the decode pool: the slower side sets it.

    >>> float(transfer_s(0.007, 0.003))
    0.007
    """
    return np.maximum(prefill_side, decode_side)


@formula(source="definition: a replica is held up by its work or by its links; ranks send at once")
def pool_request_s(work: Second, side: Second, ranks: Number) -> Second:
    """Replica time per request in one pool: the longer of compute and KV transfer.

    >>> float(pool_request_s(0.05, 0.007, 8))
    0.05
    """
    return np.maximum(work, side / ranks)


@formula(source="definition: the slower pool sets the pace")
def pools_capacity(prefill_replicas: Number, prefill_request: Second, decode_replicas: Number, decode_request: Second) -> PerSecond:
    """Requests per second of two pools: the smaller of prefill and decode capacity.

    >>> round(float(pools_capacity(4, 0.05, 3, 0.04)), 1)
    75.0
    """
    return np.minimum(prefill_replicas / prefill_request, decode_replicas / decode_request)


@formula(source="definition: the chip time that a request takes of both pools, with whole numbers of replicas left out")
def fluid_capacity(
    chips: Number, prefill_chips: Number, prefill_request: Second, decode_chips: Number, decode_request: Second
) -> PerSecond:
    """Upper bound of requests per second over all splits of the chips between two pools.

    >>> round(fluid_capacity(272, 32, 0.05, 48, 0.04), 1)
    77.3
    """
    return chips / (prefill_chips * prefill_request + decode_chips * decode_request)


@formula(source="definition")
def between_s(capacity: PerSecond) -> Second:
    """Mean time between completed requests.

    >>> between_s(50.0)
    0.02
    """
    return 1 / capacity


@formula(source="definition: prefill replicas fill whole domains one after the other, decode replicas take what is left in each")
def decode_replicas_held(prefill_replicas: Number, chips: Number, domain: Number, prefill_chips: Number, decode_chips: Number) -> Number:
    """Decode replicas that fit next to the prefill replicas (2 nodes of 8, 3 prefill replicas of 3 chips: 1 of 5 chips, or 3 of 2).

    >>> int(decode_replicas_held(3, 16, 8, 3, 5)), int(decode_replicas_held(3, 16, 8, 3, 2)), int(decode_replicas_held(4, 144, 8, 32, 16))
    (1, 3, 1)
    """
    replicas_per_domain, full_domains = np.maximum(np.floor(domain / prefill_chips), 1), np.floor(chips / domain)
    filled = np.floor(prefill_replicas / replicas_per_domain) * np.ceil(prefill_chips / domain)
    over = np.where(prefill_chips > domain, 0, prefill_replicas - filled * replicas_per_domain)
    mixed = np.floor((domain - over * prefill_chips) / decode_chips)
    rest = np.where(filled < full_domains, mixed + (full_domains - filled - 1) * np.floor(domain / decode_chips), 0)
    beside = filled * np.floor(np.maximum(domain - replicas_per_domain * prefill_chips, 0) / decode_chips)
    spanning = np.floor((full_domains - filled - np.minimum(over, 1)) / np.ceil(decode_chips / domain))
    inside = beside + rest + np.floor((chips - full_domains * domain) / decode_chips)
    return np.where(decode_chips > domain, np.maximum(spanning, 0), inside)


@formula(source="definition; chip time of one pool over the tokens that it works on")
def usd_per_mtok_pool(price: UsdPerSecond, chips: Number, share: Number, capacity: PerSecond, tokens: Token) -> UsdPerMtok:
    """Cost of a million tokens in one pool.

    >>> round(usd_per_mtok_pool(2 / 3600, 128, 0.25, 75.0, 4000), 4)
    0.0593
    """
    return price * chips * share / (capacity * tokens) * MILLION
