"""The bill of a cache over a trace: what it holds, writes, loads and leaves to compute again."""

from __future__ import annotations

from headway.formula import formula
from headway.units import (
    Byte,
    BytePerToken,
    Number,
    Second,
    Token,
    TokenPerSecond,
    TokenSecond,
    Usd,
    UsdPerByteSecond,
    UsdPerToken,
)


@formula(source="definition")
def hit_share_of(hit: Token, prompt: Token) -> Number:
    """Share of the prompt tokens that the cache had.

    >>> hit_share_of(342e9, 608e9)  # DeepSeek's day of 2025-02-27
    0.5625
    """
    return hit / prompt


@formula(source="definition")
def tokens_left(prompt: Token, hit: Token) -> Token:
    """Prompt tokens that are left to compute.

    >>> tokens_left(608e9, 342e9) / 1e9  # DeepSeek's day, billion
    266.0
    """
    return prompt - hit


@formula(source="time integral over the trace, over its length")
def mean_held_tokens(token_seconds: TokenSecond, span: Second) -> Token:
    """Tokens that a cache without a limit holds, mean over time.

    >>> mean_held_tokens(7.2e9, 3600.0)
    2000000.0
    """
    return token_seconds / span


@formula(source="definition")
def token_rate(tokens: Token, span: Second) -> TokenPerSecond:
    """Tokens a second over a trace.

    >>> token_rate(608e9, 86400.0) / 1e6  # DeepSeek's day, prompts, million tokens/s
    7.037037037037037
    """
    return tokens / span


@formula(source="definition")
def held_bytes(tokens: Token, kv: BytePerToken) -> Byte:
    """Room for the KV of so many tokens.

    >>> held_bytes(2e6, 35136) / 1e9  # DeepSeek-V3, fp8, GB
    70.272
    """
    return tokens * kv


@formula(source="room x time x its cost")
def room_usd(room: Byte, span: Second, holding: UsdPerByteSecond) -> Usd:
    """What holding so much for so long costs.

    >>> round(room_usd(70.272e9, 3600.0, 0.513e-12 / 3600), 4)  # in DDR5 for an hour
    0.036
    """
    return room * span * holding


@formula(source="tokens x cost of a token")
def tokens_usd(tokens: Token, cost: UsdPerToken) -> Usd:
    """What loading or computing so many tokens costs.

    >>> round(tokens_usd(266e9, 0.138e-6))  # DeepSeek's day, all that was missed
    36708
    """
    return tokens * cost


@formula(source="sum")
def cache_usd(holding: Usd, worn: Usd, loaded: Usd, computed: Usd) -> Usd:
    """All that prompts cost with a cache: holding, wear, loading what is found, computing what is not.

    >>> cache_usd(1.0, 0.5, 0.25, 8.0)
    9.75
    """
    return holding + worn + loaded + computed


@formula(source="definition")
def usd_each(cost: Usd, requests: Number) -> Usd:
    """The same per request.

    >>> usd_each(10.0, 4000)
    0.0025
    """
    return cost / requests


@formula(source="definition")
def saved_share(cost: Usd, without: Usd) -> Number:
    """Share of the bill without a cache that the cache saves; below 0 where it costs more than it saves.

    >>> saved_share(6.0, 8.0)
    0.25
    """
    return 1 - cost / without


@formula(source="list rates: what was not found is written, what was found is read")
def listed_usd(miss: Token, write: UsdPerToken, hit: Token, read: UsdPerToken) -> Usd:
    """What prompts cost at a provider's rates, all of each cached.

    >>> round(listed_usd(0.7e6, 6.25e-6, 0.3e6, 0.5e-6), 3)  # a million prompt tokens of Opus 4.6, 5 minutes, 30 % found
    4.525
    """
    return miss * write + hit * read
