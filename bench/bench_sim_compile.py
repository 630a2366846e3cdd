"""CPU seconds of compiling the loop with nothing cached, each in a process of its own, against 15 s; and of plain Python by request.

One replica with fitted and with hard steps is one loop; the routed loop is that of replicas that meet, with everything on: prefix cache,
tiers, preemption, swapping, patience and routing are in both. What `--loop auto` takes compiling and plain requests to cost stands beside.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time

BUDGET_S, ROUNDS = 15.0, 3
LOOPS = {"one replica, or replicas in turn": "", "routed replicas": "routed", "replicas that share a tier": "shared"}


def cpu_s():
    """CPU seconds of this process until now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def made(kind):
    """Print CPU and wall seconds of making a loop ready, from importing numba on."""
    from headway.simulation.compiled import runner
    from headway.simulation.step_time import plain

    source = "def step(batch, context, tokens, pairs, ranks):\n    return 0.01 + 1e-4 * batch\n"
    before, start = cpu_s(), time.perf_counter()
    runner(source, plain(source), 0, "compiled", routed=bool(kind), shared=kind == "shared")
    print(cpu_s() - before, time.perf_counter() - start)


def timed(kind, folder):
    """The same of a process with such a cache folder."""
    env = os.environ | {"XDG_CACHE_HOME": folder}
    run = subprocess.run([sys.executable, __file__, "made", kind], capture_output=True, check=True, text=True, env=env)
    return [float(word) for word in run.stdout.split()]


def plain_s():
    """CPU seconds of a request of a chat service in plain Python."""
    from bench_sim import drawn, prepared, rate

    traffic = drawn()
    return 1 / rate(prepared(traffic), traffic, "plain")[0]


def main():
    """Every loop cold, then from the cache; the least of some rounds, as other work on the machine only adds."""
    from headway.simulation import compiled

    for name, kind in LOOPS.items():
        cold, warm = [], []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(timed(kind, folder))
                warm.append(timed(kind, folder))
        (cpu, wall), (again, _) = min(cold), min(warm)
        told = f"{cpu:5.2f} CPU-s cold ({wall:.1f} s by the clock), {cpu / BUDGET_S:.2f} of the budget of {BUDGET_S:g} s"
        print(f"{name:34} {told}; {again:.2f} CPU-s from the cache")
    plain = f"{(compiled.REQUEST_S + compiled.ANSWER_S) * 1e6:.0f} us a request in plain Python"
    print(f"assumed: {compiled.COMPILE_S:g} s cold, {compiled.LOAD_S:g} s from the cache, {plain}")
    print(f"plain Python, a chat service's request: {plain_s() * 1e6:.0f} us")


if __name__ == "__main__":
    made(sys.argv[2]) if len(sys.argv) > 1 else main()
