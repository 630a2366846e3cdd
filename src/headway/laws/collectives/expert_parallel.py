"""Expert parallelism: distinct experts that a batch uses, load imbalance, and bytes of dispatch and combine.

Copies are counted per token of a rank (chips that hold equal tokens) on the receiving chip, its own tokens included; the combine
sends them back. `groups` and `active_groups` are the router's limit: a token's experts lie in at most `active_groups` groups.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Byte, BytePerToken, Number, PerToken, Token


@formula(source="occupancy of E boxes by T draws of k: E (1 - (1 - k/E)^T)")
def distinct_experts(experts: Number, experts_per_token: Number, tokens: Token) -> Number:
    """Experts that at least one token uses, whose weights the step must read: few at a small batch, all at a large one.

    >>> [round(float(distinct_experts(256, 8, t)), 1) for t in (1, 8, 32, 128)]  # DeepSeek-V3
    [8.0, 57.4, 163.3, 251.6]
    """
    return experts * (1 - (1 - experts_per_token / experts) ** (tokens / ONE_TOKEN))


POWER_LAW = "fitted to kernels of routed experts with power-law and balanced routing, of the same shapes"


@formula(source=POWER_LAW)
def skewed_tokens(tokens: Token, skew: Number) -> Token:
    """Tokens that, spread evenly, would use as many distinct experts as these, whose router prefers some experts.

    >>> round(float(skewed_tokens(32.0, 0.1)), 1), float(skewed_tokens(1.0, 0.1))
    (22.6, 1.0)
    """
    return ONE_TOKEN * (tokens / ONE_TOKEN) ** (1 - skew)


@formula(source=POWER_LAW + ": 1.07 times the mean on one chip, 1.32 on the busiest of 8, 1.6 of 64, in the experts' arithmetic")
def skewed_imbalance(ep: Number, skew: Number) -> Number:
    """Routed work of the busiest of `ep` chips over the mean, and of the busiest expert on one chip.

    >>> [round(float(skewed_imbalance(ep, 0.1)), 2) for ep in (1, 8, 64)]
    [1.07, 1.32, 1.62]
    """
    return (2 * ep) ** skew


@formula(source="definition; copies and places as DeepSeek's balancer (deepseek-ai/EPLB) chooses them, without copies in order")
def load_imbalance(tokens: tuple[Number, ...], ep: Number, redundant: Number) -> Number:
    """Work of the busiest chip over that of as many experts of mean load; each copy goes to the expert with most tokens per copy.

    >>> [round(float(load_imbalance((1, 1, 1, 5), *ways)), 4) for ways in ((4, 0), (2, 0), (2, 2), (2, 4))]
    [2.5, 1.5, 1.0833, 1.0]
    """

    def of(degree: float, copies: float) -> float:
        per_chip = math.ceil((len(tokens) + int(copies)) / int(degree))
        loads = placed_loads(tokens, per_chip, int(degree), int(copies))
        return max(loads) / sum(tokens) * (len(tokens) + int(copies)) / per_chip

    return np.vectorize(of, otypes=[float])(ep, redundant)[()]


def placed_loads(tokens: tuple[Number, ...], per_chip: int, chips: int, copies: int) -> list[float]:
    """Tokens on each chip; with copies the heaviest are placed first, each on the emptiest chip that has room."""
    if not copies:
        return [float(sum(tokens[start : start + per_chip])) for start in range(0, len(tokens), per_chip)]
    copied = [1] * len(tokens)
    heaviest = [(-float(load), expert) for expert, load in enumerate(tokens)]
    heapq.heapify(heaviest)
    for _ in range(copies):
        _, expert = heaviest[0]
        copied[expert] += 1
        heapq.heapreplace(heaviest, (-float(tokens[expert]) / copied[expert], expert))
    parts = sorted((float(tokens[expert]) / count for expert, count in enumerate(copied) for _ in range(count)), reverse=True)
    open_chips = [(0.0, chip) for chip in range(chips)]
    loads, counts = [0.0] * chips, [0] * chips
    for part in parts:
        _, chip = heapq.heappop(open_chips)
        loads[chip] += part
        counts[chip] += 1
        if counts[chip] < per_chip:
            heapq.heappush(open_chips, (loads[chip], chip))
    return loads


PER_TOKEN: PerToken = 1.0
LIMITED = "DeepSeek-V3 (arXiv:2412.19437) section 2.1.2, node-limited routing"
DEEPEP = "deepseek-ai/DeepEP: low-latency kernels send a token once per chosen expert, normal ones once per rank and node"


@formula(source="uniform routing without replacement: the product of (1 - k/(E-j)) over e experts, at its middle factor")
def passed_by_share(experts: Number, active: Number, place_experts: Number) -> Number:
    """Chance that a token selects none of a chip's `place_experts` experts; exact for one expert (DeepSeek-V3, 4 to a chip).

    >>> round(float(passed_by_share(256, 8, 4)), 4)
    0.8801
    """
    return np.maximum(1 - active / (experts - (place_experts - 1) / 2), 0) ** place_experts


@formula(source="lecture MOE-12: n (1 - chance of being passed by)")
def distinct_places(places: Number, experts: Number, active: Number) -> Number:
    """Chips (or domains) that hold a token's experts; exact with one expert each (8 of 256 experts over 64 chips: 7.68).

    >>> round(float(distinct_places(64, 256, 8)), 2), float(distinct_places(256, 256, 8))
    (7.68, 8.0)
    """
    return places * (1 - passed_by_share(experts, active, experts / places))


@formula(source=LIMITED)
def reachable_places(places: Number, groups: Number, active_groups: Number) -> Number:
    """Chips (or domains) that a router limited to some groups of experts can reach (4 of 8 groups: 4 of 8 nodes, 72 of 144 chips).

    >>> float(reachable_places(8, 8, 4)), float(reachable_places(144, 8, 4)), float(reachable_places(144, 1, 1))
    (4.0, 72.0, 144.0)
    """
    return places * (1 - passed_by_share(groups, active_groups, np.maximum(groups / places, 1)))


@formula(source=LIMITED)
def places_hit(places: Number, experts: Number, active: Number, groups: Number, active_groups: Number) -> Number:
    """Distinct chips (or domains) that receive a token, under the router's group limit.

    >>> round(float(places_hit(18, 256, 8, 1, 1)), 2), round(float(places_hit(18, 256, 8, 8, 4)), 2)  # DeepSeek-V3 over 18 nodes
    (6.68, 5.59)
    """
    return distinct_places(reachable_places(places, groups, active_groups), experts * active_groups / groups, active)


@formula(source="uniform routing")
def exchange_up(copies: Number, ranks: Number, inside: Number) -> Number:
    """Copies from other ranks of the chip's own domain (64 chips of one rack, 8 experts: 7.875).

    >>> exchange_up(8, 64, 64)
    7.875
    """
    return copies * (inside - 1) / ranks


@formula(source="uniform routing; lecture MOE-08: half leaves for the other of two racks")
def exchange_out(copies: Number, ranks: Number, inside: Number) -> Number:
    """Copies from other domains.

    >>> exchange_out(8, 144, 72)
    4.0
    """
    return copies * (ranks - inside) / ranks


@formula(source=DEEPEP + "; the first chip of a node passes a token on over scale-up")
def forwarded_up(copies: Number, inside: Number) -> Number:
    """Copies forwarded inside a domain when each token enters it once.

    >>> forwarded_up(8, 8)
    7.0
    """
    return copies * (inside - 1) / inside


@formula(source=DEEPEP)
def forwarded_out(domains_hit: Number, domains: Number, tp: Number) -> Number:
    """Copies over scale-out when each token enters a domain once, split over the chips of its rank.

    >>> round(forwarded_out(5.59, 18, 1), 2)
    5.28
    """
    return domains_hit * (1 - 1 / domains) / tp


@formula(source="definition: experts spread over fewer places than domains are needed in several")
def domains_hit(places: Number, hit: Number, domains: Number) -> Number:
    """Scale-up domains that receive a token.

    >>> domains_hit(8, 3.5, 8), domains_hit(1, 1.0, 2)
    (3.5, 2.0)
    """
    return hit * domains / places


@formula(source="definition")
def activation_bytes_per_token(hidden: Number, element: Byte) -> BytePerToken:
    """Bytes on the wire of one token's activation vector (DeepSeek-V3, bf16).

    >>> activation_bytes_per_token(7168, 2)
    14336.0
    """
    return hidden * element * PER_TOKEN


@formula(source="DeepSeek-V3 (arXiv:2412.19437) section 3.3: fp8 in tiles of 128 with a 4-byte scale; combine in bf16 without scales")
def wire_bytes_per_token(hidden: Number, element: Byte, scale: Byte, tile: Number) -> BytePerToken:
    """Bytes on the wire of one token's quantised vector with its scales (DeepSeek-V3 dispatch, fp8).

    >>> wire_bytes_per_token(7168, 1, 4, 128)
    7392.0
    """
    return hidden * (element + scale / tile) * PER_TOKEN


@formula(source="bisection, see torus.axis_exchange_share; the copies of a token's own domain stay on the torus")
def torus_exchange_up(copies: Number, share: Number, domains: Number) -> Number:
    """Load of the busiest link in an exchange over several tori, in messages (16 chips in a ring, 8 copies).

    >>> torus_exchange_up(8, 2.0, 1)
    16.0
    """
    return copies * share / domains


@formula(source="lecture MOE-04: two exchanges a layer, of unequal bytes; both go the same way")
def mean_message(dispatch: BytePerToken, combine: BytePerToken) -> BytePerToken:
    """Bytes per token of one phase, the mean of dispatch and combine (DeepSeek-V3: fp8 with scales out, bf16 back).

    >>> mean_message(7392.0, 14336.0)
    10864.0
    """
    return (dispatch + combine) / 2


@formula(source="lecture MOE-11")
def exchange_bytes(tokens: Token, copies: Number, dispatch: BytePerToken, combine: BytePerToken) -> Byte:
    """Bytes one chip sends for dispatch and combine of a layer (2400 tokens over 64 chips, 8 experts, 7168 wide, 1 + 2 bytes).

    >>> exchange_bytes(2400 / 64, 8, 7168.0, 2 * 7168.0)
    6451200.0
    """
    return tokens * copies * (dispatch + combine)
