"""`headway cache --workload FILE --ttl 5min,1h`: hit rate by time to live and room on a trace, and the bill."""

from __future__ import annotations

from typing import Any

from headway import output
from headway.errors import BadValue


def add_flags(parser: Any) -> None:
    """The trace and how its cache is kept."""
    group = parser.add_argument_group("workload: hit rate and bill of a trace")
    group.add_argument("--workload", metavar="FILE", help="Mooncake JSON lines with hash_ids, or a CSV with conversations")
    group.add_argument("--ttl", metavar="TIME,...", help="times to live, renewed by each use: 5min,1h,never")
    group.add_argument("--capacity", metavar="BYTES,...", help="room for the cache, least recently used first out: 10GB..1TB*2")
    group.add_argument("--requests", metavar="N", help="the first N requests of the trace alone")


def check_unused(args: Any) -> None:
    """What only a trace takes."""
    for key in ("ttl", "capacity", "requests"):
        if getattr(args, key) is not None:
            raise BadValue(f"--{key}", getattr(args, key), "--workload FILE beside it (the time a prefix is held: --hold)")


def run(args: Any) -> output.Answer:
    raise BadValue("--workload", args.workload, "soon")
