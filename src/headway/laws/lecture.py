"""The blackboard convention, kept apart: a multiply-add counts once, a parameter is one byte, the hardware ratio is 300.

The missing factor 2 and the missing bytes per parameter cancel, which is why the board's ratio is right; never mix the two conventions.
"""

from __future__ import annotations

from headway.formula import formula
from headway.units import Byte, BytePerSecond, BytePerToken, FlopPerSecond, FlopPerToken, Number, Second, Token

ONE_FLOP: FlopPerToken = 1.0  # the board counts a multiply and its add as one
ONE_BYTE: Byte = 1.0  # the board adds parameters to bytes
BOARD_RATIO: Token = 300.0  # the board's FLOPs over bandwidth


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: B N_a / FLOPs")
def board_compute_s(tokens: Token, active_params: Number, multiplies_per_s: FlopPerSecond) -> Second:
    """Compute time on the board, right when FLOPs means multiplies per second.

    >>> round(board_compute_s(2400, 37e9, 162e15) * 1e3, 3)  # DeepSeek-V3, fp8, on 72 B200
    0.548
    """
    return ONE_FLOP * tokens * active_params / multiplies_per_s


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: (N_t + B L kappa) / BW")
def board_memory_s(total_params: Number, batch: Number, context: Token, kv_bytes_per_token: BytePerToken, mem_bw: BytePerSecond) -> Second:
    """Memory time on the board, right when a weight is one byte.

    >>> round(board_memory_s(671e9, 2400, 8192, 35136.0, 576e12) * 1e3, 2)  # DeepSeek-V3
    2.36
    """
    return (ONE_BYTE * total_params + batch * context * kv_bytes_per_token) / mem_bw


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: FLOPs over bandwidth, made dimensionless")
def board_ratio(multiplies_per_s: FlopPerSecond, mem_bw: BytePerSecond) -> Token:
    """The board's hardware ratio, for weights of one byte.

    >>> round(board_ratio(1978.9e12 / 2, 3.35e12))  # H100, fp8
    295
    """
    return ONE_BYTE * multiplies_per_s / (ONE_FLOP * mem_bw)


@formula(source="Reiner Pope, blackboard lecture, 2026-04-29: 300 times sparsity")
def board_balanced_batch(total_params: Number, active_params: Number) -> Token:
    """The board's balanced batch.

    >>> board_balanced_batch(256, 32)  # the board's DeepSeek-V3, whose sparsity is in truth 32
    2400.0
    """
    return BOARD_RATIO * total_params / active_params
