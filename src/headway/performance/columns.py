"""Columns of `matmul`, `collective` and `capacity`."""

from __future__ import annotations

from headway.core.columns import Column

PRODUCT = {
    "kind": Column("", "total of the chain, then each step: product or collective"),
    "what": Column("", "the product, or the collective and its array"),
    "time_s": Column("s", "lower bound: compute, memory and network overlap"),
    "serial_s": Column("s", "upper bound: nothing overlaps"),
    "bound": Column("", "what takes longest: compute, memory or network"),
    "attained_flops": Column("flop/s", "FLOP/s of one chip at the lower bound"),
    "flop": Column("flop", "FLOP of one chip"),
    "bytes": Column("byte", "bytes that one chip reads and writes, or of the array that a collective moves"),
    "intensity": Column("flop/byte", "FLOP per byte of memory traffic"),
    "compute_s": Column("s", "FLOP over the peak"),
    "memory_s": Column("s", "bytes over the memory's bandwidth"),
    "network_s": Column("s", "all collectives, one after the other"),
    "balanced": Column("", "size of the first dimension at which compute and memory take equal time"),
}
COLLECTIVE = {
    "operation": Column("", "the collective"),
    "array": Column("", "the array, where one was given"),
    "over": Column("", "mesh axes of the group"),
    "members": Column("", "chips of the group"),
    "bytes": Column("byte", "the array as one chip holds it after an all-gather, or before a reduce-scatter"),
    "time_s": Column("s", "time of the collective: latency or transfer, whichever takes longer"),
    "share": Column("", "exact: (n-1)/n of the array moves; limit: all of it, as on a long ring"),
    "exact_s": Column("s", "time at the exact share"),
    "limit_s": Column("s", "time in the limit of a long ring"),
    "latency_s": Column("s", "hops times their latency"),
    "transfer_s": Column("s", "bytes over the busiest link, at the exact share"),
    "bound": Column("", "latency, or the level of links that sets the transfer"),
    "bandwidth": Column("byte/s", "bytes of the array over its exact time"),
    "latency_bound_bytes": Column("byte", "size of the array below which latency sets the time"),
}
CAPACITY = {
    "weights_bytes": Column("byte", "all weights, each part in its format"),
    "sequence_bytes": Column("byte", "KV cache and state of one sequence of this context"),
    "load_bytes": Column("byte", "weights and all sequences"),
    "usable_bytes": Column("byte", "HBM of all chips that weights and cache may use"),
    "chips_exact": Column("", "chips whose usable HBM the load fills"),
    "chips_needed": Column("", "chips rounded up"),
    "largest_batch": Column("", "most sequences of this context that fit"),
    "largest_context": Column("token", "longest context at which this batch fits"),
    "room_bytes": Column("byte", "usable HBM left beside the load"),
    "read_floor_s": Column(
        "s", "time to read all weights and the cache once with all chips: floor of a decode step that uses every expert"
    ),
}
COLUMNS = PRODUCT | COLLECTIVE | CAPACITY
