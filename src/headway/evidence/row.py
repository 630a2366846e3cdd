"""One published measurement of serving, in SI, and one line that could not be read."""

from __future__ import annotations

from dataclasses import dataclass

MODES = ("decode_step", "prefill", "serving_concurrency", "offline_throughput", "disagg")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """What a row states; None or "" where it is silent. Times in seconds, rates in tokens per second."""

    line: int
    id: str
    model: str
    hardware: str
    mode: str
    chips: int | None = None
    engine: str = ""
    engine_version: str = ""
    date: str = ""  # as the source states it, year first
    weights: str = ""
    kv: str = ""
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    dp: int | None = None
    prompt: float | None = None
    output: float | None = None
    context: float | None = None  # mean KV length during decode
    concurrency: float | None = None  # batch or users, over all chips
    ttft_s: float | None = None
    tpot_s: float | None = None
    output_tok_per_s: float | None = None  # of all chips
    input_tok_per_s: float | None = None  # of all chips
    tok_per_s_chip: float | None = None  # output tokens, of a prefill input tokens
    source: str = ""
    reliability: str = ""
    roofline: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A line that is no row, and why."""

    line: int
    id: str
    why: str
