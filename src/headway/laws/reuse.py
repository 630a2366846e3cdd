"""What a step need not do: prompt tokens found in a prefix cache, and output tokens drafted cheaply and accepted."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Byte, BytePerSecond, Number, Second, Token

NEW_TOKEN: Token = 1.0
SPECULATION = "Leviathan et al. 2023, arXiv:2211.17192"
CACHE = "prefix caching as in vLLM and SGLang: the cached part of a prompt is loaded, the rest prefilled after it"


@formula(source=CACHE)
def missed_tokens(prompt: Token, hit_rate: Number) -> Token:
    """Prompt tokens that are not in the prefix cache and have to be prefilled.

    >>> missed_tokens(8000, 0.75)
    2000.0
    """
    return prompt * (1 - hit_rate)


@formula(source="causal mask: the missed tokens come last and attend to the whole prefix before them")
def missed_pairs(prompt: Token, hit_rate: Number) -> Token:
    """(query, key) pairs that the missed tokens leave of a prompt's causal triangle.

    >>> missed_pairs(1000.0, 0.5)
    375000.0
    """
    return prompt * (prompt / NEW_TOKEN) / 2 * (1 - hit_rate * hit_rate)


@formula(source=CACHE)
def hit_tokens(prompt: Token, hit_rate: Number) -> Token:
    """Prompt tokens that are found in the prefix cache.

    >>> hit_tokens(8000, 0.75)
    6000.0
    """
    return prompt * hit_rate


@formula(source="KV over the host link; each chip loads its own part")
def prefix_load_s(sequence: Byte, stage_share: Number, cp: Number, link: BytePerSecond) -> Second:
    """Time in which the fullest chip brings one prompt's cached prefix into its HBM.

    >>> round(prefix_load_s(1.966e9, 1.0, 1, 63e9), 4)
    0.0312
    """
    return sequence * stage_share / cp / link


@formula(source="the chips wait while they load: no overlap is taken for granted")
def loaded_s(prefill: Second, load: Second, prompts: Number) -> Second:
    """A prefill with the cached parts of so many prompts loaded before it, one after the other.

    >>> round(loaded_s(0.080, 0.031, 2), 3)
    0.142
    """
    return prefill + prompts * load


@formula(source=SPECULATION + ", equation 1: (1 - a^(g+1)) / (1 - a), with the token that the model itself adds")
def expected_accept_length(acceptance: Number, drafted: Number) -> Number:
    """Mean tokens that a step yields when each of so many drafted tokens is accepted with that probability (0.85 of one MTP token).

    >>> round(expected_accept_length(0.85, 1), 3), round(expected_accept_length(0.8, 4), 3)
    (1.85, 3.362)
    """
    return (1 - acceptance ** (drafted + 1)) / (1 - acceptance)


@formula(source=SPECULATION + ", theorem 3.8: a step and its drafts yield the accepted tokens; each token that is accepted is computed")
def speculative_s(step: Second, arithmetic: Second, accept_length: Number, draft_cost: Number) -> Second:
    """Time per token when a step yields several and the drafts cost a share of a step: never less than one token's own arithmetic.

    >>> round(float(speculative_s(0.020, 0.002, 1.85, 0.05)), 5), float(speculative_s(0.020, 0.018, 4, 0.0))
    (0.01135, 0.018)
    """
    return np.maximum(step * (1 + draft_cost) / accept_length, arithmetic)
