"""Workload of a machine: requests, latency limits, and expert load."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from headway.core import user_file
from headway.core.errors import BadFile, clip
from headway.core.quantity import known
from headway.core.schema import Field

MOST = 1e12  # beyond any batch or context; keeps products finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One point or grid of load: either a context, or a prompt and an output."""

    batch: Annotated[
        Any, Field(integer=True, low=1, open_low=False, high=MOST, help="users of one replica, who each wait for the answer")
    ] = 1
    context: Annotated[
        Any, Field("token", integer=True, low=1, open_low=False, high=MOST, help="tokens attended to in the decode step")
    ] = None
    prompt: Annotated[Any, Field("token", integer=True, low=1, open_low=False, high=MOST, help="prompt tokens of a request")] = None
    output: Annotated[Any, Field("token", integer=True, low=1, open_low=False, high=MOST, help="output tokens of a request")] = None
    rate: Annotated[Any, Field("1/s", high=MOST, help="requests that arrive per second over all replicas, whatever the backlog")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SLO:
    """Latency limits of a plan; None is no limit."""

    ttft: Annotated[Any, Field("s", bare_most=60, help="limit of mean time to first token at the load")] = None
    tpot: Annotated[
        Any, Field("s", bare_most=1, per="per token", help="limit of mean time per output token; prefill of other requests counts")
    ] = None
    e2e: Annotated[Any, Field("s", bare_most=3600, help="limit of a whole request: TTFT and all output tokens, mean")] = None
    tpot_decode: Annotated[Any, Field("s", bare_most=1, per="per token", help="limit of mean time of decode steps alone per token")] = None


def read_expert_load(path: str) -> tuple[Any, ...]:
    """Tokens per expert: a JSON list of numbers, or one number a line; BadFile for anything else."""
    text = user_file.text_of(path, user_file.EXPERT_LOAD).strip()
    is_json = text.startswith("[")
    values: list[Any] = user_file.json_of(text, path, user_file.EXPERT_LOAD) if is_json else [*map(_number, text.splitlines())]
    for number, value in enumerate(values, 1):
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MOST:
            raise BadFile(path, f"expert {number}: got {clip(value)!r}; wants a number of tokens, 0 to {MOST:g}")
    if sum(values) <= 0:
        raise BadFile(path, "wants tokens per expert, not all zero")
    source = f"expert load in {Path(path).name}"
    return tuple(known(float(value), f"tokens of expert {index}", "", "input", source) for index, value in enumerate(values))


def _number(line: str) -> float | str:
    """The number of a line, or the line if it is none."""
    try:
        return float(line)
    except ValueError:
        return line
