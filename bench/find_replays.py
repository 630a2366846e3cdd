"""Has the rate that `--find` finds the same p99 in a run ten times longer? `python bench/find_replays.py [COUNT [SEED]]`: a table.

Each line: a random traffic, the rate, the requests that it was found with, its limited p99, that of ten times as many requests at that rate
(typed as a user would), and how far they are apart; of one in two the traffic is conversations with a prefix cache.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time

import numpy as np

from headway.cli.main import main as headway

PROMPTS = ("500", "uniform:100,2k", "lognormal:500,1")
OUTPUTS = ("20", "uniform:10,60", "lognormal:30,0.8")
ARRIVALS = ("poisson", "poisson", "even", "bursty:2")
CACHES = ("hbm:40GB", "hbm:6GB", "hbm:4GB,ddr:20GB")
LIMITS = ("p99_ttft_s=300ms", "p99_ttft_s=1s", "p99_ttft_s=2s")
WITHIN, REQUESTS = 0.1, 2_000


def row_of(line: str) -> dict:
    """First row of a command."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        headway([*line.split(), "-o", "json"])
    return json.loads(text.getvalue())["rows"][0]


def main() -> None:
    """The table, and how many replays are close."""
    count, seed = (int(text) for text in (sys.argv[1:] + ["20", "43"][len(sys.argv) - 1 :])[:2])
    rng, start, close, found_count = np.random.default_rng(seed), time.perf_counter(), 0, 0
    print(f"seed {seed}")
    for _ in range(count):
        prompt, output, arrivals, limit = (words[rng.integers(len(words))] for words in (PROMPTS, OUTPUTS, ARRIVALS, LIMITS))
        talks = f" --turns 4,3s --prefix-cache {CACHES[rng.integers(len(CACHES))]}" if rng.random() < 0.5 else ""
        asked = f"sim llama-3.1-8b --on h100 --loop compiled --prompt {prompt} --output {output} --arrivals {arrivals}{talks}"
        found = row_of(f"{asked} --requests {REQUESTS} --seeds 1 --find rate --so-that {limit}")
        if found["kind"] != "found":
            print(f"{asked} {limit}: no rate keeps it", flush=True)
            continue
        found_count += 1
        again = row_of(f"{asked} --rate {found['rate']:.3g} --requests {10 * found['requests']} --sensitivity 0")
        key = limit.partition("=")[0]
        apart = abs(again[key] / found[key] - 1.0) if again[key] is not None else np.inf
        close += apart <= WITHIN
        figures = f"{found['rate']:.3g}/s {found['requests']:,}: {found[key]:.4g} s, replayed {again[key]} s, {apart:.1%}"
        print(f"{asked[41:]} {limit}: {figures}", flush=True)
    print(f"{close} of {found_count} within {WITHIN:.0%}; {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
