"""headway sim, latency against load: 20 loads of 10,000 requests each, against 3 s once compiled; as a library and as a whole command."""

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from bench_sim_published import MACHINE, MODEL, OUTPUT, PROMPT, replica, traffic_of
from headway.simulation import results
from headway.simulation.capacity import capacity
from headway.simulation.simulate import simulate

LOADS, REQUESTS, BUDGET_S, RUNS = 20, 10_000, 3.0, 3
HEADWAY = [sys.executable, "-c", "from headway.cli.entry import entry; entry()"]


def curve(made, able):
    """Mean TTFT and TPOT at each load."""
    for part in np.linspace(0.05, 1.0, LOADS):
        traffic = traffic_of("", REQUESTS, part * able.per_s)
        run = simulate(traffic, made.pace, made.scheduler.rules, how="compiled")
        results.latencies(run, results.measured(run, 0.1))


def library_s():
    """Wall seconds of the curve, the loop loaded before."""
    traffic = traffic_of("", REQUESTS)
    made = replica(traffic, engine="vllm")
    able = capacity(traffic, made.pace, made.scheduler.rules, 1, "compiled")
    start = time.perf_counter()
    curve(made, able)
    return time.perf_counter() - start, able


def command_s(able, more=()):
    """Wall seconds of a whole command, the start of Python and the loading of the loop included, bytecode and machine code cached."""
    rates = ",".join(f"{part * able.per_s:.4g}" for part in np.linspace(0.05, 1.0, LOADS))
    command = [*HEADWAY, "sim", MODEL, "--on", MACHINE, "--engine", "vllm", "--policy", "chunked", "--rate", rates, "--prompt", PROMPT]
    command += ["--output", OUTPUT, "--requests", str(REQUESTS), "-o", "csv", *more]
    with tempfile.TemporaryDirectory() as folder:
        env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": folder}
        times = []
        for _ in range(RUNS + 1):
            start = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True, env=env)
            times.append(time.perf_counter() - start)
    return min(times[1:])


if __name__ == "__main__":
    inside, able = library_s()
    print(f"{LOADS} loads of {REQUESTS:,} requests: {inside:.2f} s, {inside / BUDGET_S:.2f} of the budget of {BUDGET_S:g} s")
    for name, more in (("as it chooses", ()), ("--loop compiled", ("--loop", "compiled"))):
        whole = command_s(able, more)
        print(f"the whole command, {name}: {whole:.2f} s, {whole / BUDGET_S:.2f} of it")
