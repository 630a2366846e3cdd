"""Prefill and decode on pools of their own: the hand-over of the KV cache, what each pool carries, and how the chips are shared out."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Byte, BytePerSecond, Number, PerSecond, Second, Token, TokenPerMtok, UsdPerMtok, UsdPerSecond

MILLION: TokenPerMtok = 1e6
DISAGGREGATED = "DistServe (Zhong et al. 2024, arXiv:2401.09670) and Splitwise (Patel et al. 2024, arXiv:2311.18677)"


@formula(source="definition; the fullest chip of a replica sends or takes its own part of a prompt's KV over its own link")
def link_s(kv_bytes: Byte, link: BytePerSecond, efficiency: Number) -> Second:
    """Time in which one side's chips move the KV cache of one prompt (DeepSeek-V3, 4k tokens in bf16 on one chip, 50 GB/s: 7 ms).

    >>> round(link_s(70_272 * 4000, 50e9, 0.8), 5)
    0.00703
    """
    return kv_bytes / (link * efficiency)


@formula(source=DISAGGREGATED + "; the slower side's links bind, no overlap with prefill is taken for granted")
def transfer_s(prefill_side: Second, decode_side: Second) -> Second:
    """Time of the hand-over of one prompt's KV cache from the prefill to the decode pool.

    >>> float(transfer_s(0.007, 0.003))
    0.007
    """
    return np.maximum(prefill_side, decode_side)


@formula(source=DISAGGREGATED)
def handed_over_s(ttft: Second, transfer: Second) -> Second:
    """TTFT with the hand-over of the KV cache in it.

    >>> round(handed_over_s(0.2, 0.007), 3)
    0.207
    """
    return ttft + transfer


@formula(source="definition")
def prompt_s(prefill: Second, lanes: Number) -> Second:
    """Replica time of one of the prompts that are prefilled together.

    >>> prompt_s(0.4, 8)
    0.05
    """
    return prefill / lanes


@formula(source="definition: a replica is held up by its work or by its links; ranks send at once")
def pool_request_s(work: Second, side: Second, ranks: Number) -> Second:
    """Replica time per request in one pool.

    >>> float(pool_request_s(0.05, 0.007, 8))
    0.05
    """
    return np.maximum(work, side / ranks)


@formula(source="definition: the slower pool sets the pace")
def pools_capacity(prefill_replicas: Number, prefill_request: Second, decode_replicas: Number, decode_request: Second) -> PerSecond:
    """Requests per second that both pools carry.

    >>> round(float(pools_capacity(4, 0.05, 3, 0.04)), 1)
    75.0
    """
    return np.minimum(prefill_replicas / prefill_request, decode_replicas / decode_request)


@formula(source="definition: the chip time that a request takes of both pools, with whole numbers of replicas left out")
def fluid_capacity(
    chips: Number, prefill_chips: Number, prefill_request: Second, decode_chips: Number, decode_request: Second
) -> PerSecond:
    """Requests per second that no split of so many chips between two pools exceeds.

    >>> round(fluid_capacity(272, 32, 0.05, 48, 0.04), 1)
    77.3
    """
    return chips / (prefill_chips * prefill_request + decode_chips * decode_request)


@formula(source="definition")
def between_s(capacity: PerSecond) -> Second:
    """Time between two finished requests.

    >>> between_s(50.0)
    0.02
    """
    return 1 / capacity


@formula(source="definition: prefill replicas fill whole domains one after the other, decode replicas take what is left in each")
def decode_replicas_held(prefill_replicas: Number, chips: Number, domain: Number, prefill_chips: Number, decode_chips: Number) -> Number:
    """Decode replicas that a system still holds (2 nodes of 8: 3 prefill replicas of 3 chips leave 1 of 5 chips, or 3 of 2).

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


@formula(source="definition")
def pool_chips(replicas: Number, replica: Number) -> Number:
    """Chips that the replicas of one pool use.

    >>> pool_chips(4, 32)
    128
    """
    return replicas * replica


@formula(source="definition")
def pools_used(prefill: Number, decode: Number) -> Number:
    """Chips that both pools use.

    >>> pools_used(128, 144)
    272
    """
    return prefill + decode


@formula(source="definition; idle chips are shared as the used ones are")
def pool_share(own_chips: Number, used_chips: Number) -> Number:
    """Share of what is paid that one pool bears.

    >>> pool_share(32, 128)
    0.25
    """
    return own_chips / used_chips


@formula(source="definition; chip time of one pool over the tokens that it works on")
def usd_per_mtok_pool(price: UsdPerSecond, chips: Number, share: Number, capacity: PerSecond, tokens: Token) -> UsdPerMtok:
    """Cost of a million tokens of one pool.

    >>> round(usd_per_mtok_pool(2 / 3600, 128, 0.25, 75.0, 4000), 4)
    0.0593
    """
    return price * chips * share / (capacity * tokens) * MILLION
