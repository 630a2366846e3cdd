"""headway sim on a million requests and on ten: time for each, memory, the report included; each in a process of its own.

python bench/bench_sim_growth.py [TRACE]: lengths of a trace, or drawn; Poisson arrivals below what one card carries.
"""

import resource
import subprocess
import sys
import time

from bench_sim_published import replica, traffic_of
from headway.sim import report
from headway.sim.simulate import simulate
from headway.sim.traffic.arrivals import parse_arrivals
from headway.sim.traffic.generate import generate
from headway.sim.traffic.lengths import Recorded

COUNTS, RATE, MOST_GB = (1_000_000, 10_000_000), 4.0, 1.0


def peak_gb():
    """The most memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def one(count, path):
    """One run, one line: CPU seconds of drawing, simulating and reporting, and memory."""
    traffic = traffic_of("", count, RATE)
    if path:
        known = traffic_of(path)
        lengths = (Recorded(source=path, tokens=tokens) for tokens in (known.prompt, known.output))
        traffic = generate(parse_arrivals("poisson", RATE), *lengths, count, 0)
    made = replica(traffic, engine="vllm")
    simulate(traffic.head(100), made.pace, made.scheduler.rules, how="compiled")
    before, start = peak_gb(), time.process_time()
    run = simulate(traffic, made.pace, made.scheduler.rules, how="compiled")
    simulated = time.process_time() - start
    report.latencies(run, report.measured(run, 0.1))
    reported = time.process_time() - start - simulated
    each = f"{count / simulated:,.0f} requests per CPU-second; report {reported:.2f} s"
    print(f"{count:>11,} requests: {each}; memory {peak_gb():.2f} GB ({before:.2f} with the traffic alone; target below {MOST_GB:g} GB)")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        one(int(sys.argv[1]), sys.argv[2])
    else:
        for count in COUNTS:
            subprocess.run([sys.executable, __file__, str(count), sys.argv[1] if len(sys.argv) > 1 else ""], check=True)
