"""What is asked about a cache: how a prefix is held and used, what its tokens cost to compute, what a service finds and writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from headway.schema import Field
from headway.workload import MOST

COUNT = Field("token", integer=True, low=1, open_low=False, high=MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheHold:
    """How a prefix is kept and used."""

    hold: Annotated[Any, Field("s", high=1e12, help="time for which a prefix is held: 5min,1h,24h")]
    reuse: Annotated[Any, Field(open_low=False, high=1, help="probability that the prefix is used within the hold")] = 1
    uses: Annotated[Any, Field(high=1e9, help="reads and writes of the bytes held, within one hold")] = 1
    waiting: Annotated[Any, Field(open_low=False, high=1, help="share of the loading time in which the chip waits (0: hidden)")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheService:
    """What a service finds in its cache and writes to it; both as rates of tokens, or described by its requests."""

    hit_tokens: Annotated[Any, Field("token/s", high=1e18, help="prompt tokens found in the cache, over all: 342G/d")] = None
    new_tokens: Annotated[Any, Field("token/s", high=1e18, help="tokens whose KV is made and stored: missed prompt tokens and answers")] = (
        None
    )
    rate: Annotated[Any, Field("1/s", high=MOST, help="requests per second, with --prompt, --output and --hit-rate instead of the two")] = (
        None
    )
    hit_rate: Annotated[Any, Field(open_low=False, high=1, help="share of prompt tokens found in the cache")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillCost:
    """The model, and what computing its tokens costs, where it is not the estimate's answer."""

    prompt: Annotated[Any, replace(COUNT, help="prompt tokens of a request, for the estimate of prefill (default 8k)")] = None
    output: Annotated[Any, replace(COUNT, help="output tokens of a request (default 1k)")] = None
    mfu: Annotated[Any, Field(high=1, help="computing again reaches this share of the peak, instead of the estimate")] = None
    fresh: Annotated[Any, Field("token/s", high=1e12, help="prompt tokens that one chip was measured to compute, instead")] = None
    kv_bytes: Annotated[Any, Field("byte", high=1e12, help="KV bytes per token, instead of the model's")] = None
    active: Annotated[Any, Field(high=1e15, help="active parameters, instead of the model's (for --mfu)")] = None
