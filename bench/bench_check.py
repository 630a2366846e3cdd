"""CPU-seconds per checked candidate and requests per CPU-second: `python bench/bench_check.py [compiled|plain]`, beside the bound of 2 s.

A dense model on 1..9 replicas and DeepSeek-V3 on 72 GB200 from 9 replicas of 8 chips to one of 72: the search for the exact confidence, and
the plays that decide whether 80 % is reached. The first check of a process also loads machine code; it is printed apart.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from headway.performance.layout import Layout
from headway.simulation.check.check import checks
from headway.simulation.check.limits import LatencyLimits
from headway.simulation.check.offered import OfferedTraffic
from headway.simulation.check.plays import Candidate, candidate
from headway.simulation.compiled import is_ready
from headway.simulation.traffic.distributions import parse_lengths

BOUND_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSet:
    """Candidates for one load."""

    name: str
    candidates: list[Candidate]
    offered: OfferedTraffic
    limits: LatencyLimits


def offered(rate: float, prompt: str, output: str) -> OfferedTraffic:
    """Requests at a rate."""
    return OfferedTraffic(rate=rate, prompt=parse_lengths(prompt, "--prompt"), output=parse_lengths(output, "--output", answers=True))


def sets() -> list[CheckedSet]:
    """The candidates."""
    dense = [
        candidate("llama-3.1-70b", "72xh100-sxm", Layout(tp=tp, replicas=replicas), prompt=4000, output=600)
        for tp, replicas in ((8, 1), (8, 3), (4, 6), (8, 9))
    ]
    routed = [
        candidate("deepseek-v3", "gb200-nvl72", Layout(ep=ep, dp=ep, replicas=72 // ep), prompt=8000, output=1000)
        for ep in (8, 12, 24, 36, 72)
    ]
    return [
        CheckedSet(name="dense, fixed lengths", candidates=dense, offered=offered(2.0, "4k", "600"),
                   limits=LatencyLimits(ttft_p95=1.5, tpot_p95=0.04)),
        CheckedSet(name="dense, drawn lengths", candidates=dense, offered=offered(2.0, "lognormal:4k,1", "lognormal:600,0.8"),
                   limits=LatencyLimits(ttft_p99=3.0, tpot_p95=0.04)),
        CheckedSet(name="DeepSeek-V3 on 72 GB200", candidates=routed, offered=offered(8.0, "8k", "1k"),
                   limits=LatencyLimits(ttft_p95=2.0, tpot_p95=0.05)),
    ]  # fmt: skip


def timed(group: CheckedSet, how: str, exact: bool) -> float:
    """Print each candidate's seconds; returns their sum."""
    total, start = 0.0, time.process_time()
    for checked in checks(group.candidates, group.offered, group.limits, how=how, exact=exact):
        seconds = time.process_time() - start
        rate = checked.plays * checked.requests / seconds
        sure = f"{checked.confidence.probability:5.0%}" if checked.confidence else "    -"
        layout = checked.candidate.layout
        print(f"  {layout!s:16} x {int(layout.replicas)}  {seconds:6.3f} CPU-s  {checked.plays:2} plays of "
              f"{checked.requests:6,}  {rate:10,.0f} requests/CPU-s  {sure}")  # fmt: skip
        total, start = total + seconds, time.process_time()
    print(f"  {'exact' if exact else 'decided'}: {total:.2f} s, {total / BOUND_S:.2f} of the bound of {BOUND_S:g} s")
    return total


def main() -> None:
    """Every figure in one run."""
    how = sys.argv[1] if len(sys.argv) > 1 else "auto"
    print(f"{how}; machine code of the loop is {'there' if is_ready() else 'not there'}")
    for group in sets():
        for exact in (False, True):
            print(group.name)
            timed(group, how, exact)


if __name__ == "__main__":
    main()
