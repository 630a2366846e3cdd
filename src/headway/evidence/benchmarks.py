"""What a public benchmark's own documentation says of every run of it: conditions of the measurement, never numbers fitted to it."""

from __future__ import annotations

import functools
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A benchmark whose rows are told by the start of their source_key."""

    key: str
    mean_length_ratio: float  # mean length of its requests over the nominal length
    spread: float  # standard deviation of their lengths over the mean
    how: str
    cache: str  # format of the KV cache that its launch scripts set,
    of: tuple[str, ...]  # for weights in these formats
    source: str


BENCHMARKS = (
    Benchmark(
        key="inferencex",
        mean_length_ratio=0.9,
        spread=0.064,
        how="request lengths uniform from 0.8 to 1 of the nominal ones",
        cache="fp8",
        of=("fp8", "nvfp4", "mxfp4"),
        source="SemiAnalysisAI/InferenceX: README (RANDOM_RANGE_RATIO 0.8); benchmarks/*.sh (kv-cache-dtype fp8, kv_cache_config)",
    ),
)


@functools.cache
def benchmark(source: str) -> Benchmark | None:
    """The benchmark that a row's source_key names, where its conditions are documented.

    >>> benchmark("inferencex_aic").mean_length_ratio, benchmark("a blog")
    (0.9, None)
    """
    return next((entry for entry in BENCHMARKS if source.lower().startswith(entry.key)), None)
