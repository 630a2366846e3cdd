"""A million requests under every sheet that ships (each mode, each cache, both layouts), against a plain loop over requests.

The loop prices a sample of the requests one way, with the same cliff rule and the same cache; its bill must be the same.
"""

import sys
import time

import numpy as np

from headway.economics.bill import FIRST, BillCalculator, requests_of, ways_of
from headway.economics.sheets.catalogue import newest, sheet, sheets
from headway.simulation.traffic.requests import Traffic

REQUESTS, SAMPLE, TALKS, SHARED = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000, 20_000, 5, 2000


def drawn(count):
    """Conversations of five turns on average, prompts of thousands to hundreds of thousands of tokens."""
    rng = np.random.default_rng(0)
    talks = rng.integers(0, max(1, count // TALKS), count)
    prompt = np.clip(rng.lognormal(9, 1.3, count), 10, 900_000).astype(np.int64) + SHARED
    return Traffic.of(np.cumsum(rng.exponential(1.0, count)), prompt, rng.integers(10, 2000, count), conversation=talks)


def looped(traffic, one, ttl):
    """Dollars, request by request."""
    last, before, previous, usd = {}, {}, -np.inf, 0.0
    write = next(each.rate for each in one.rates.cache_writes if each.ttl_s == ttl)
    for time_s, prompt, output, talk in zip(traffic.arrival, traffic.prompt, traffic.output, traffic.conversation, strict=True):
        found = SHARED if time_s - previous <= ttl else 0
        if time_s - before.get(talk, -np.inf) <= ttl:
            found = max(found, min(last[talk], prompt))
        rates = next((tier.rates for tier in reversed(one.tiers) if prompt > tier.above), one.rates)
        rate = write * rates.input / one.rates.input
        usd += found * rates.cache_read + (prompt - found) * rate + output * rates.output
        last[talk], before[talk], previous = prompt, time_s, time_s
    return usd


def main():
    every, traffic = newest(sheets()), drawn(REQUESTS)
    start = time.perf_counter()
    biller = BillCalculator(requests=requests_of(traffic, "drawn", SHARED))
    ways = [way for one in every for way in ways_of(one, (), (), biller.requests.sharing.layouts)]
    for way in ways:
        biller.bill(way)
    took = time.perf_counter() - start
    print(f"{REQUESTS:,} requests, {len(every)} sheets, {len(ways)} ways: {took:.2f} s, {took / len(ways) * 1e3:.1f} ms a bill")
    sample, one = traffic.head(min(SAMPLE, REQUESTS)), sheet("claude-opus-4.6@2026-02")
    start = time.perf_counter()
    expected = looped(sample, one, 300.0)
    per_request = (time.perf_counter() - start) / len(sample)
    [way] = ways_of(one, ("standard",), (300.0,), (FIRST,))
    got = float(BillCalculator(requests=requests_of(sample, "drawn", SHARED)).bill(way).usd)
    print(f"{len(sample):,} of them one way: ${got:,.2f}, by the loop ${expected:,.2f} (relative difference {got / expected - 1:.1e})")
    print(f"ratio to the loop, per request and way: {per_request * REQUESTS * len(ways) / took:,.0f} times as fast")


if __name__ == "__main__":
    main()
