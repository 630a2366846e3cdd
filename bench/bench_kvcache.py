"""The KV cache over a trace: blocks and requests per CPU-second, plain and compiled, one pool and three tiers, and every capacity at once.

Without a path of a trace in Mooncake's format (plain or gzipped), conversations of about its shape are drawn.
"""

import gzip
import json
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from headway.simulation import compiled
from headway.simulation.hit_rates import hit_share, replayed, reuse
from headway.simulation.kv_pools import dense_ids, make_pools

REQUESTS, RUNS = 12_000, 5  # runs of compiled code; plain Python runs once
POOLS = {
    "one pool of 10,000 blocks": [10_000],
    "one pool of 100,000 blocks": [100_000],
    "tiers of 1,000, 9,000 and 40,000": [1_000, 9_000, 40_000],
}


def read(path):
    """Prompts and times of a trace."""
    raw = Path(path).read_bytes()
    rows = [json.loads(line) for line in (gzip.decompress(raw) if path.endswith(".gz") else raw).splitlines()]
    return [row["hash_ids"] for row in rows], np.array([row["timestamp"] / 1000 for row in rows])


def drawn():
    """Conversations over a few shared beginnings, 24 blocks a prompt on average."""
    rng, fresh, talks, prompts = np.random.default_rng(0), 0, [], []
    for _ in range(REQUESTS):
        if not talks or rng.random() < 0.55:
            talks.append([int(rng.integers(4))])
        talk = talks[int(rng.integers(max(0, len(talks) - 300), len(talks)))]
        grown = int(rng.geometric(1 / 14))
        talk += range(4 + fresh, 4 + fresh + grown)
        fresh += grown
        prompts.append(list(talk))
    return prompts, np.arange(REQUESTS) * 0.3


def cpu_s(run, runs):
    """CPU seconds of the fastest of a few runs."""
    best = np.inf
    for _ in range(runs):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def once(pools, hits, ids, starts, times, fast):
    """A replay over pools that nothing has been put into."""
    hits.append(replayed(pools.pop(), ids, starts, times, compile=fast))


def bench(prompts, times):
    """Print a line for each way to run."""
    ids, count = dense_ids([block for prompt in prompts for block in prompt])
    starts = np.concatenate(([0], np.cumsum([len(prompt) for prompt in prompts]))).astype(np.int64)
    print(f"{len(prompts):,} requests, {len(ids):,} blocks, {count:,} of them distinct")
    if compiled.available():
        start = time.process_time()
        replayed(make_pools(count, [10]), ids, starts, times, compile=True)
        reuse(ids, starts, times, compile=True)
        print(f"compiled, or found compiled, in {time.process_time() - start:.1f} s of CPU")
    for fast in (False, True)[: 1 + compiled.available()]:
        for name, room in POOLS.items():
            pools = [make_pools(count, room) for _ in range(RUNS if fast else 1)]
            hits = []
            run = partial(once, pools, hits, ids, starts, times, fast)
            seconds = cpu_s(run, len(pools))
            report(fast, name, len(ids), len(prompts), seconds, f"hits {hit_share(hits[0], starts):.4f}")
        seconds = cpu_s(lambda fast=fast: reuse(ids, starts, times, compile=fast), RUNS if fast else 1)
        report(fast, "every capacity and TTL at once", len(ids), len(prompts), seconds)


def report(fast, name, blocks, requests, seconds, found=""):
    """One line."""
    rates = f"{blocks / seconds:12,.0f} blocks/s {requests / seconds:10,.0f} requests/s"
    print(f"{'compiled' if fast else 'plain':8}  {name:36} {rates}   {found}")


if __name__ == "__main__":
    bench(*(read(sys.argv[1]) if len(sys.argv) > 1 else drawn()))
