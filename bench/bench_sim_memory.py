"""Long simulations as whole commands: memory, and CPU time of a request, against what they may take.

python bench/bench_sim_memory.py [load | talks | turn | exact]: 1e7 requests over 8 and over 200 replicas by load; 1e7 of conversations
with a prefix cache; 1e8 in turn over 200 replicas; percentiles of 1e7 beside those of a run that keeps them all. Each command is a process
of its own, machine code made before.
"""

import json
import os
import subprocess
import sys

import numpy as np

HEADWAY = [sys.executable, "-c", "from headway.cli.entry import entry; entry()", "sim", "llama-3.1-8b", "--engine", "vllm"]
LENGTHS = ["--prompt", "lognormal:500,1", "--output", "lognormal:200,0.8", "--sensitivity", "0", "--loop", "compiled"]
RATE = 4.0  # of one replica
MOST_GB, MOST_CPU_S, MOST_RATIO = 3.0, 600.0, 1.5


def fleet(replicas, count, *more):
    """A command on so many replicas at the same load each."""
    machine = ["--on", f"{replicas}xh100", "--replicas", str(replicas), "--rate", f"{RATE * replicas:g}"]
    return [*machine, *LENGTHS, "--requests", f"{count}", *more]


def run(words):
    """First row, GB at most and CPU seconds of a command."""
    with subprocess.Popen([*HEADWAY, *words, "-o", "json"], stdout=subprocess.PIPE) as process:
        out = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return json.loads(out)["rows"][0], used.ru_maxrss * 1024 / 1e9, used.ru_utime + used.ru_stime


def load():
    """By load over few and many replicas."""
    base = run(fleet(8, 1000, "--routing", "least-loaded"))[2]
    each = {}
    for replicas in (8, 200):
        _, memory, cpu = run(fleet(replicas, 10_000_000, "--routing", "least-loaded"))
        each[replicas] = (cpu - base) / 10
        print(f"1e7 by load over {replicas}: {memory:.2f} GB (at most {MOST_GB:g}), {each[replicas]:.2f} us a request")
    print(f"ratio {each[200] / each[8]:.2f} (at most {MOST_RATIO:g})")


def talks():
    """Conversations with a prefix cache."""
    row, memory, cpu = run(fleet(1, 10_000_000, "--turns", "5,60s", "--prefix-cache", "hbm:60GB"))
    print(f"1e7 of conversations: {memory:.2f} GB (at most {MOST_GB:g}), {cpu:.0f} CPU-s, hit rate {row['hit_rate']:.3f}")


def turn():
    """In turn over many replicas."""
    row, memory, cpu = run(fleet(200, 100_000_000))
    limits = f"at most {MOST_GB:g} GB and {MOST_CPU_S:g} CPU-s"
    print(f"1e8 in turn over 200: {memory:.2f} GB, {cpu:.0f} CPU-s ({limits}), {row['completed']:,} done")


def exact():
    """Percentiles beside those of a run that keeps its requests, as users who never give up make it do."""
    streamed, kept = (run(fleet(200, 10_000_000, *more))[0] for more in ((), ("--patience", "1e9s")))
    names = [f"p{percent}_{key}_s" for percent in (50, 90, 95, 99) for key in ("ttft", "tpot", "e2e", "queue")]
    keys = [name for name in names if kept[name]]
    off = [abs(streamed[key] / kept[key] - 1) for key in keys]
    print(f"1e7: {len(keys)} percentiles, at most {max(off):.3%} off those of all requests (said: 0.1 %); mean {np.mean(off):.3%}")


if __name__ == "__main__":
    for name in sys.argv[1:] or ("load", "talks", "turn", "exact"):
        {"load": load, "talks": talks, "turn": turn, "exact": exact}[name]()
