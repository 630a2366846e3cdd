"""Caches: the tier tables that were published beside the verb's own, and the time that criteria and a trace take.

Without a path of a trace (Mooncake's format, plain or gzipped), conversations of about its shape are drawn.
"""

import sys
import time

from headway.economics.cache.placement import money_bands, wear_bands
from headway.economics.cache.problem import cache
from headway.economics.cache.tiers import place_of
from headway.hardware.memory_tier import tier
from headway.simulation.hit_rates import curve
from headway.simulation.traffic.distributions import parse_arrivals, parse_lengths
from headway.simulation.traffic.generate import generate_conversations, parse_turns
from headway.simulation.traffic.read import read_trace

PUBLISHED = {
    ("least cost", 1): "hbm < 0.28 s < ddr < 52 s < flash < 2.1 h < disk",
    ("least cost", 3): "ddr to 2.6 min, flash to 6.4 h",
    ("cost with wear", 1): "ddr to about 25 min",
}
TTLS = (60, 300, 900, 1800, 3600)


def timed(run):
    """What it returns, and the CPU seconds it took."""
    start = time.process_time()
    return run(), time.process_time() - start


def bands():
    """Where one tier gives way to the next."""
    places = [place_of(tier(name), name) for name in ("hbm", "ddr", "flash", "disk")]
    for (criterion, uses), said in PUBLISHED.items():
        found = (money_bands if criterion == "least cost" else wear_bands)(places, uses)
        told = ", ".join(f"{one.tier} to {one.until:,.2f} s" for one in found[:-1])
        print(f"{criterion}, {uses} use(s): {told}, then {found[-1].tier}   (published: {said})")


def criteria():
    """One model on one machine, 1,000 holds."""
    _, first = timed(lambda: cache("deepseek-v3", "8xh200", 300.0))
    _, rest = timed(lambda: [cache("deepseek-v3", "8xh200", 300.0 + hold, fresh=4030) for hold in range(1000)])
    print(f"criteria: first answer, with a plan, {first:.2f} s of CPU; 1,000 holds by a measured rate {rest:.2f} s")


def trace(path):
    """Hit rates and what is held by time to live."""
    if path:
        traffic = read_trace(path).traffic
    else:
        lengths = parse_lengths("2k", "prompt"), parse_lengths("300", "output")
        traffic = generate_conversations(parse_arrivals("poisson", 3.3), 3.3, *lengths, parse_turns("4,120s"), 12_000, 0)
    seen, passed = timed(lambda: curve(traffic))
    rows, asked = timed(lambda: [(ttl, seen.hit_tokens(ttl), seen.held_token_s(ttl) / seen.span, seen.held_peak(ttl)) for ttl in TTLS])
    each = asked / len(TTLS)
    print(f"trace: {seen.requests:,} requests, {len(seen.tokens):,} blocks: one pass {passed:.2f} s of CPU, then {each:.4f} s a TTL")
    for ttl, hits, mean, peak in rows:
        held = f"{mean / 1e6:6.1f}M tokens on average, {peak / 1e6:6.1f}M at most"
        print(f"  TTL {ttl:5} s: {hits / seen.prompt_tokens:6.1%} of prompt tokens found; held {held}")


if __name__ == "__main__":
    bands()
    criteria()
    trace(sys.argv[1] if len(sys.argv) > 1 else "")
