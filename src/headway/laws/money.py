"""What a token costs: chip time at a price, attributed to prefill and decode."""

from __future__ import annotations

from headway.formula import formula
from headway.units import BytePerSecond, BytePerToken, Number, Second, SecondPerToken, Token, TokenPerMtok, Usd, UsdPerMtok, UsdPerSecond

NEW_TOKEN: Token = 1.0
MILLION: TokenPerMtok = 1e6
CLAIMS = "Pope 2026 lecture, claims "


@formula(source=CLAIMS + "RB-21: cost per token = G * price * tau / B; idle chips are paid for")
def usd_per_mtok_out(price: UsdPerSecond, chips: Number, step: Second, batch: Number, replicas: Number) -> UsdPerMtok:
    """Cost of a million output tokens: the decode steps' share of the system.

    >>> round(usd_per_mtok_out(2 / 3600, 72, 0.020, 2000, 1), 3)
    0.4
    """
    return price * chips * step / (batch * replicas * NEW_TOKEN) * MILLION


@formula(source="chip time of prefill; each of `lanes` prompts shares the replica")
def usd_per_mtok_in(price: UsdPerSecond, chips: Number, prefill: Second, prompt: Token, lanes: Number, replicas: Number) -> UsdPerMtok:
    """Cost of a million prompt tokens.

    >>> round(usd_per_mtok_in(2 / 3600, 8, 0.5, 8000, 1, 1), 3)
    0.278
    """
    return price * chips * prefill / (prompt * lanes * replicas) * MILLION


@formula(source="KV load over the host link, and the decode it displaces: the replica waits while its fullest chip loads")
def cached_token_s(kv_bytes: BytePerToken, link: BytePerSecond) -> SecondPerToken:
    """Replica time to bring one cached prefix token's KV into the HBM.

    >>> round(cached_token_s(40960, 63e9) * 1e9, 1)
    650.2
    """
    return kv_bytes / link


@formula(source="chip time of the load; each rank of the replica loads its own prefixes")
def usd_per_mtok_cached(price: UsdPerSecond, chips: Number, load: SecondPerToken, ranks: Number, replicas: Number) -> UsdPerMtok:
    """Cost of a million prompt tokens read from a prefix cache.

    >>> round(usd_per_mtok_cached(2 / 3600, 8, 650e-9, 1, 1), 5)
    0.00289
    """
    return price * chips * load / (ranks * replicas) * MILLION


@formula(source="definition")
def usd_per_request(price: UsdPerSecond, chips: Number, request: Second, replicas: Number) -> Usd:
    """Cost of a request's share of the system, prefill and decode.

    >>> round(usd_per_request(2 / 3600, 8, 0.23625, 1), 6)
    0.00105
    """
    return price * chips * request / replicas


@formula(source="unit of the objective when no price is known")
def chip_seconds_per_request(chips: Number, request: Second, replicas: Number) -> Second:
    """Chip time of a request, prefill and decode: what cost is proportional to on one kind of chip.

    >>> chip_seconds_per_request(8, 0.25, 1)
    2.0
    """
    return chips * request / replicas
