"""What a provider asks for keeping a prefix, beside what keeping it costs: fees fix a tier only where the markup is known."""

from __future__ import annotations

from headway.formula import formula
from headway.units import BytePerSecond, BytePerToken, Number, Second, SecondPerToken, UsdPerByteSecond, UsdPerToken, UsdPerTokenSecond


@formula(source="fee over holding cost: what could be held for the money")
def kv_bytes_paid_for(fee: UsdPerToken, hold: Second, holding: UsdPerByteSecond) -> BytePerToken:
    """KV bytes per token at which a cache fee equals the cost of holding: an upper bound that says nothing without the markup.

    >>> round(kv_bytes_paid_for(5e-6, 3600.0, 0.025e-9 / 3600))  # $5/Mtok for an hour, in HBM
    200000
    """
    return fee / (hold * holding)


@formula(source="fee over cost")
def fee_markup(paid_for: BytePerToken, kv: BytePerToken) -> Number:
    """How many times what it costs to hold a token's KV is asked for.

    >>> round(fee_markup(200e3, 35136), 2)  # $5/Mtok for an hour, DeepSeek-V3's fp8 KV in HBM
    5.69
    """
    return paid_for / kv


@formula(source="definition: what writing to the cache costs beyond the plain input rate")
def write_premium(write: UsdPerToken, base: UsdPerToken) -> UsdPerToken:
    """The fee in a cache-write rate: the rest of it pays for computing the token, cached or not.

    >>> round(write_premium(10e-6, 5e-6) * 1e6, 2), round(write_premium(6.25e-6, 5e-6) * 1e6, 2)  # Opus, 1 h and 5 min, USD/Mtok
    (5.0, 1.25)
    """
    return write - base


@formula(source="definition: a fee by the hour, for one hold")
def storage_fee(storage: UsdPerTokenSecond, hold: Second) -> UsdPerToken:
    """What a storage fee adds up to over one hold.

    >>> round(storage_fee(4.5e-6 / 3600, 3600.0) * 1e6, 2)  # $4.50 per Mtok and hour
    4.5
    """
    return storage * hold


@formula(source="definition")
def longer_by(longer: Second, shorter: Second) -> Second:
    """What the longer of two times to live adds.

    >>> longer_by(3600.0, 300.0)
    3300.0
    """
    return longer - shorter


@formula(source="claim AP-19: cache-read rate = retrieval, input rate = computing, both at cost and both of a busy chip")
def kv_bytes_read_for(read_share: Number, recompute: SecondPerToken, bandwidth: BytePerSecond) -> BytePerToken:
    """KV bytes per token at which loading takes that share of the time that computing takes.

    >>> round(kv_bytes_read_for(0.1, 44.4e-6, 64e9) / 1e3)  # a tenth of the input rate, 100B active on 4.5 PFLOP/s, PCIe 5 x16, kB
    284
    """
    return read_share * recompute * bandwidth
