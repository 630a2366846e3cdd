"""headway sim on one, three and ten million requests, whole commands: time and memory for each, against 1 GB.

python bench/bench_sim_growth.py [TRACE]: lengths of a trace, or drawn; Poisson arrivals below what one card carries. Each is a process of
its own, its memory the most that it ever had, reading and report included; what is compiled is compiled before.
"""

import os
import subprocess
import sys
import time

from bench_sim_published import MACHINE, MODEL, OUTPUT, PROMPT

COUNTS, RATE, MOST_MB = (1_000_000, 3_000_000, 10_000_000), 4.0, 1000.0
HEADWAY = [sys.executable, "-c", "from headway.cli.entry import entry; entry()", "sim", MODEL, "--on", MACHINE, "--engine", "vllm"]


def command(count, path):
    """So many requests as typed."""
    prompt, output = (f"trace:{path}",) * 2 if path else (PROMPT, OUTPUT)
    asked = ["--rate", f"{RATE:g}", "--prompt", prompt, "--output", output, "--requests", str(count)]
    return [*HEADWAY, "--policy", "chunked", *asked, "--loop", "compiled", "-o", "csv"]


def one(count, path):
    """Wall and CPU seconds, and the most memory in MB, of a command."""
    start = time.perf_counter()
    with subprocess.Popen(command(count, path), stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else ""
    one(1000, path)
    _, base, _ = one(1000, path)
    for count in COUNTS:
        wall, cpu, memory = one(count, path)
        rate = f"{count / cpu:>9,.0f} requests per CPU-second, {count / (cpu - base):,.0f} without the start"
        print(f"{count:>11,} requests: {wall:5.1f} s, {rate}; {memory:,.0f} MB (target below {MOST_MB:,.0f})")
