"""Collectives over named axes of a mesh: share of an array that crosses the busiest link, latency of its hops, and its time.

The array is counted whole, as one chip holds it after an all-gather or before a reduce-scatter. An all-reduce is both, one after the other.
Shares of a torus are per link and direction, those of a switch per chip.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerSecond, Number, Second

BOOK = "Austin et al. 2025, How to Scale Your Model, chapter 3"
GPUS = "Austin et al. 2025, How to Scale Your Model, chapter 12"


@formula(source=BOOK + ": (n - 1) / n goes to 1")
def long_ring_share(links: Number) -> Number:
    """Share of an array per link in an all-gather over a ring of many members, `links` feeding each chip.

    >>> long_ring_share(2)  # both directions of a ring
    0.5
    """
    return 1 / links


@formula(source=GPUS + ": each chip sends its part to every other")
def switch_gather_share(members: Number) -> Number:
    """Share of an array that each chip sends in an all-gather or reduce-scatter through a switch.

    >>> switch_gather_share(8)
    0.875
    """
    return (members - 1) / members


@formula(source=GPUS + ": each of n chips holds 1/n and sends all but 1/n of that")
def switch_exchange_share(members: Number) -> Number:
    """Share of an array that each chip sends in an all-to-all through a switch.

    >>> switch_exchange_share(8)
    0.109375
    """
    return (members - 1) / members**2


@formula(source=GPUS + ": a chip sends its part to the chips of other domains over its own link")
def domains_exchange_share(members: Number, domains: Number) -> Number:
    """Share of an array that each chip sends to other domains in an all-to-all (16 H100 in two nodes).

    >>> domains_exchange_share(16, 2)
    0.03125
    """
    return (domains - 1) / (domains * members)


@formula(source=GPUS + ": with at most k of n parts not empty")
def filled_share(share: Number, active: Number, members: Number) -> Number:
    """Share sent by an all-to-all of which each chip fills only some parts, as tokens go to k experts.

    >>> float(filled_share(0.109375, 4, 8))
    0.0546875
    """
    return share * np.minimum(active / members, 1)


@formula(source=BOOK + ": max(hops x latency, bytes / bandwidth)")
def collective_time_s(latency: Second, transfer: Second) -> Second:
    """Lower bound of a collective's time: its hops or its bytes, whichever takes longer.

    >>> float(collective_time_s(2e-6, 0.7e-6))
    2e-06
    """
    return np.maximum(latency, transfer)


@formula(source="Hockney 1994, Parallel Computing 20(3): alpha + bytes / bandwidth")
def message_time_s(latency: Second, transfer: Second) -> Second:
    """Lower bound of a message's time: the last byte leaves after the transfer, and has the hops before it as the first had.

    >>> round(float(message_time_s(6e-6, 186.4e-6)) * 1e6, 1)  # 16.8 MB over 6 hops and two links of 45 GB/s
    192.4
    """
    return latency + transfer


@formula(source=BOOK + ": a buffer below bandwidth x latency is bound by latency")
def latency_bound_bytes(hops: Number, hop: Second, share: Number, bandwidth: BytePerSecond) -> Byte:
    """Size of the array below which latency sets the time (TPU v5e, one hop of one link at 45 GB/s: 45 kB).

    >>> round(latency_bound_bytes(1, 1e-6, 1, 45e9))
    45000
    """
    return hops * hop * bandwidth / share


@formula(source=BOOK + ": the shortest path on a torus")
def path_hops(distance: Number, side: Number, wrap: Number) -> Number:
    """Hops between two chips along one axis: the shorter way round where the axis closes to a ring.

    >>> float(path_hops(12, 16, 1)), float(path_hops(3, 4, 0))
    (4.0, 3.0)
    """
    return np.where(wrap > 0, np.minimum(distance, side - distance), distance)
