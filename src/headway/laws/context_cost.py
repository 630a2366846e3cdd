"""What a long context costs: flat while compute binds, then with the KV that a token reads; and for how long KV is worth holding."""

from __future__ import annotations

import numpy as np

from headway.formula import formula
from headway.units import Byte, BytePerToken, Number, Second, Token, UsdPerByteSecond, UsdPerTokenSecond

CLAIMS = "Pope 2026 lecture, claims "
ONE_TOKEN: Token = 1.0


@formula(source=CLAIMS + "AP-02, AP-14, CW-05: compute below the crossing, KV reads that grow as L^power beyond it")
def context_multiple(context: Token, crossing: Token, power: Number) -> Number:
    """What a token costs at a context over what it costs at short ones, weights apart.

    >>> float(context_multiple(1e6, 200e3, 1.0)), round(float(context_multiple(1e6, 200e3, 0.5)), 2)  # dense, square root
    (5.0, 2.24)
    """
    return np.maximum((context / crossing) ** power, 1)


@formula(source=CLAIMS + "AP-14: the same solved for the context")
def covered_context(multiple: Number, crossing: Token, power: Number) -> Token:
    """The context up to which a price so many times higher covers the cost.

    >>> round(float(covered_context(1.5, 200e3, 1.0))), round(float(covered_context(1.5, 200e3, 0.5)))  # dense, square root
    (300000, 450000)
    """
    return crossing * multiple ** (1 / power)


@formula(source=CLAIMS + "KT-12: with KV bytes per token from the crossing, recompute cost over holding cost is crossing x drain time")
def crossing_hold_s(crossing: Token, drain: Second) -> Second:
    """The time for which a token's KV is cheaper held in HBM than computed again, whatever the chip costs.

    >>> crossing_hold_s(200e3, 0.020)  # the lecture's crossing and drain time
    4000.0
    """
    return crossing / ONE_TOKEN * drain


@formula(source=CLAIMS + "AP-04, AP-05: compute time = KV time, by the hardware ratio: w N_a / (R L)")
def kv_of_crossing(active_params: Number, weight_byte: Byte, ratio: Token, crossing: Token) -> BytePerToken:
    """KV bytes per token of a model whose KV reads take as long as its arithmetic at a context, both at their peaks.

    >>> round(kv_of_crossing(100e9, 1.0, 300.0, 200e3))  # the lecture's model: 100 B active, one byte per weight
    1667
    """
    return weight_byte * active_params / (ratio * crossing) * ONE_TOKEN


@formula(source=CLAIMS + "KT-02: kappa / C x price, by the second")
def kv_holding_usd(kv: BytePerToken, holding: UsdPerByteSecond) -> UsdPerTokenSecond:
    """What holding a token's KV costs by the second.

    >>> round(kv_holding_usd(1667.0, 2 / 3600 / 192e9) * 3600e6, 4)  # the lecture's KV in a B200's HBM at $2/h, USD/Mtok and hour
    0.0174
    """
    return kv * holding
