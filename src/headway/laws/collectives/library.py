"""Latency of reductions that a communication library runs (NCCL, RCCL), where no kernel of the engine reaches: over nodes, and over PCIe.

An engine's own all-reduce writes into the memory of every other chip: inside a domain of fast links, or between two cards with peer
access. Elsewhere the library runs trees: a chain of chips in each domain, a binary tree over the domains, up and down again.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import BytePerSecond, Number, Second

NCCL = "NVIDIA/nccl b647562 src/graph/tuning.cc, ncclTopoTuneModel: trees with protocol LL"
ENGINES = "vLLM and SGLang, custom all-reduce: one node; more than two cards only where NVLink joins them all"


@formula(source=NCCL)
def tree_latency_s(start: Second, inside: Number, hop: Second, domains: Number, hop_out: Second) -> Second:
    """Latency of an all-reduce by the library's tree over `domains` chains of `inside` chips (NCCL's own estimate for two nodes of 8).

    >>> round(float(tree_latency_s(6.8e-6, 8, 0.6e-6, 2, 5e-6)) * 1e6, 1)  # as its log prints
    25.2
    """
    return start + 2 * ((inside - 1) * hop + np.log2(domains) * hop_out)


@formula(source=NCCL + ", solved for the hop between domains")
def domain_hop_s(latency: Second, start: Second, inside: Number, hop: Second, domains: Number) -> Second:
    """Hop between domains that a measured all-reduce of a short message implies (131.6 us over two nodes of 8 H100).

    >>> round(float(domain_hop_s(131.6e-6, 6.8e-6, 8, 0.6e-6, 2)) * 1e6, 1)
    58.2
    """
    return (latency - start - 2 * (inside - 1) * hop) / (2 * np.log2(domains))


@formula(source=NCCL + ", solved for the hop inside a domain")
def chain_hop_s(latency: Second, start: Second, members: Number) -> Second:
    """Hop inside a domain that a measured all-reduce of a short message implies (42.1 us of 8 cards over PCIe).

    >>> round(float(chain_hop_s(42.14e-6, 6.8e-6, 8)) * 1e6, 2)
    2.52
    """
    return (latency - start) / (2 * (members - 1))


@formula(source=NCCL + ", solved for the start")
def library_start_s(latency: Second, members: Number, hop: Second) -> Second:
    """Start of a reduction, its launch included, that a measured one of a chain of chips implies (40.3 us of four over PCIe).

    >>> round(float(library_start_s(40.3e-6, 4, 2.52e-6)) * 1e6, 1)
    25.2
    """
    return np.maximum(latency - 2 * (members - 1) * hop, 0 * latency)


@formula(source="definition")
def middle_s(times: tuple[Second, ...]) -> Second:
    """Median of times; of an even number the mean of the two in the middle.

    >>> middle_s((58.2e-6, 12.5e-6, 30.0e-6)), middle_s((1.0, 2.0, 4.0, 9.0))
    (3e-05, 3.0)
    """
    in_order = sorted(times)
    return (in_order[(len(times) - 1) // 2] + in_order[len(times) // 2]) / 2


@formula(source="definition")
def slowest_share(times: tuple[Second, ...], middle: Second) -> Number:
    """Slowest of several times over the middle one (hops between the nodes of six clusters: 4.9 to 58 us, around 26 us).

    >>> round(float(slowest_share((58.2e-6, 12.5e-6, 30.0e-6), 30.0e-6)), 2)
    1.94
    """
    return sorted(times)[-1] / middle


@formula(source="definition")
def fastest_share(times: tuple[Second, ...], middle: Second) -> Number:
    """Fastest of several times over the middle one.

    >>> round(float(fastest_share((58.2e-6, 12.5e-6, 30.0e-6), 30.0e-6)), 2)
    0.42
    """
    return sorted(times)[0] / middle


@formula(source="a sum of which one part is uncertain by a factor of its own")
def part_factor(part: Second, total: Second, factor: Number, certain: Number) -> Number:
    """Factor on a sum of which a part takes its own factor, 1 where that part is `certain`.

    >>> float(part_factor(9e-3, 18e-3, 3.0, 0)), float(part_factor(9e-3, 18e-3, 3.0, 1))
    (2.0, 1.0)
    """
    return 1 + (1 - certain) * np.minimum(part / total, 1) * (factor - 1)


@formula(source="a sum of which one part is uncertain by a factor of its own")
def part_gain(part: Second, total: Second, factor: Number, certain: Number) -> Number:
    """The same towards faster: how many times less a sum is when a part of it falls to `factor`.

    >>> float(part_gain(9e-3, 18e-3, 0.5, 0)), float(part_gain(9e-3, 18e-3, 0.5, 1))
    (1.3333333333333333, 1.0)
    """
    return 1 / part_factor(part, total, factor, certain)


@formula(source="definition: both widen an interval")
def linked_factor(spread: Number, links: Number) -> Number:
    """Factor of half an interval that is wider by what links may take.

    >>> linked_factor(1.5, 2.0)
    3.0
    """
    return spread * links


@formula(source="definition")
def links_measured(family: Number, members: Number, domain: Number) -> Number:
    """1 where a group stays inside one domain of a family whose links were measured, else 0.

    >>> float(links_measured(1, 8, 8)), float(links_measured(1, 16, 8)), float(links_measured(0, 8, 8))
    (1.0, 0.0, 0.0)
    """
    return family * np.where(members <= domain, 1.0, 0.0)


@formula(source="definition")
def peer_share(peer_bw: BytePerSecond, link_bw: BytePerSecond) -> Number:
    """Share of a link that messages between two cards of a host reach (RTX 5090, through the host's memory).

    >>> round(peer_share(16e9, 63e9), 3)
    0.254
    """
    return peer_bw / link_bw


@formula(source=ENGINES)
def reduction_latency_s(kernels: Second, library: Second, inside: Number, domains: Number, kernel_chips: Number) -> Second:
    """Latency of a reduction: the engine's own rounds in a group that its kernels reach, else not before the library's tree.

    >>> float(reduction_latency_s(3e-6, 25e-6, 8, 1, 8)), float(reduction_latency_s(3e-6, 25e-6, 8, 2, 8))
    (3e-06, 2.5e-05)
    """
    return np.where((domains > 1) | (inside > kernel_chips), np.maximum(kernels, library), kernels)
