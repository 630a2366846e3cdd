"""What is asked of a machine: requests, and how fast they must be answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.schema import Field

MOST = 1e12  # beyond any batch or context; keeps products finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One point or grid of work: either a context, or a prompt and an output."""

    batch: Annotated[Any, Field(integer=True, low=1, open_low=False, high=MOST, help="sequences decoded together in one replica")] = 1
    context: Annotated[
        Any, Field("token", integer=True, low=1, open_low=False, high=MOST, help="tokens attended to in the decode step")
    ] = None
    prompt: Annotated[Any, Field("token", integer=True, low=1, open_low=False, high=MOST, help="prompt tokens of a request")] = None
    output: Annotated[Any, Field("token", integer=True, low=1, open_low=False, high=MOST, help="output tokens of a request")] = None
    rate: Annotated[Any, Field("1/s", high=MOST, help="requests that arrive per second, over all replicas")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SLO:
    """Limits that a plan must keep; None is no limit."""

    ttft: Annotated[Any, Field("s", help="time to first token at most, unloaded, as vLLM's bench serve defines it")] = None
    tpot: Annotated[Any, Field("s", help="time per output token at most, as vLLM's bench serve defines it")] = None
    tpot_interleaved: Annotated[Any, Field("s", help="the same at most, others' prompts prefilled in between")] = None
    e2e: Annotated[Any, Field("s", help="TTFT and all output tokens at most: E2E as vLLM's bench serve defines it")] = None
