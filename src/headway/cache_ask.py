"""What is asked about a cache: how a prefix is held and used, and what a service finds in it and writes to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.schema import Q
from headway.workload import MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """How a prefix is kept and used."""

    hold: Annotated[Any, Q("s", high=1e12, help="time for which a prefix is held: 5min,1h,24h")]
    reuse: Annotated[Any, Q(open_low=False, high=1, help="probability that the prefix is used within the hold")] = 1
    uses: Annotated[Any, Q(high=1e9, help="reads and writes of the bytes held, within one hold")] = 1
    waiting: Annotated[Any, Q(open_low=False, high=1, help="share of the loading time in which the chip waits (0: hidden)")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What a service finds in its cache and writes to it; both as rates of tokens, or described by its requests."""

    hit_tokens: Annotated[Any, Q("token/s", high=1e18, help="prompt tokens found in the cache, over all: 342G/d")] = None
    new_tokens: Annotated[Any, Q("token/s", high=1e18, help="tokens whose KV is made and stored: missed prompt tokens and answers")] = None
    rate: Annotated[Any, Q("1/s", high=MOST, help="requests per second, with --prompt, --output and --hit-rate instead of the two")] = None
    hit_rate: Annotated[Any, Q(open_low=False, high=1, help="share of prompt tokens found in the cache")] = None
