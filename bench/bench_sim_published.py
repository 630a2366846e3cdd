"""headway sim beside published simulators of serving, those that are installed: requests per CPU-second on one trace, one replica.

python bench/bench_sim_published.py [AzureLLMInferenceTrace_conv.csv]; without a trace, requests of about its shape are drawn. All with
chunked prefill and the same number of KV blocks; each has its own law of how long a step takes.
"""

import importlib
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from headway.core.schema import defaults
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.serving.serve import checked_load, deployment
from headway.simulation.compiled import available
from headway.simulation.fleet import fleet
from headway.simulation.questions import Policy
from headway.simulation.simulate import simulate
from headway.simulation.traffic.distributions import parse_arrivals, parse_lengths
from headway.simulation.traffic.generate import generate
from headway.simulation.traffic.read import read_trace

MODEL, MACHINE, RUNS, MOST = "llama-3.1-8b", "a100-sxm-80", 5, 10_000
FEW = 2_000  # of them for the others: one of them takes minutes for all
RATE, PROMPT, OUTPUT = 5.5, "lognormal:1155,1.1", "lognormal:211,0.9"  # about the Azure conversation trace's
BLOCK = 512  # tokens of one id in Mooncake's format


def traffic_of(path, count=MOST, rate=RATE):
    """The trace, or what is drawn in its place."""
    if path:
        return read_trace(path).traffic
    prompt, output = parse_lengths(PROMPT, "prompt"), parse_lengths(OUTPUT, "output", answers=True)
    return generate(parse_arrivals("poisson", rate), prompt, output, count, 0)


def replica(traffic, **taken):
    """One card with its scheduler."""
    asked = deployment(MODEL, MACHINE, Layout(), checked_load(prompt=1000, output=200), Precision(), defaults(Assumptions, taken))
    return fleet(asked, asked.layout, Policy(policy="chunked"), traffic)


def cpu_s(run, runs=RUNS):
    """CPU seconds of the fastest of a few runs, all threads of the process."""
    best = np.inf
    for _ in range(runs):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def dynamo(traffic, rules):
    """NVIDIA's mocker of Dynamo, in Rust: what replays the trace; ModuleNotFoundError where it is not installed."""
    llm = importlib.import_module("dynamo.llm")
    path, fresh = Path(tempfile.mkdtemp()) / "trace.jsonl", 0
    with path.open("w") as file:
        for arrival, prompt, output in zip(traffic.arrival, traffic.prompt, traffic.output, strict=True):
            ids = list(range(fresh, fresh + -(-int(prompt) // BLOCK)))  # nothing is shared
            fresh += len(ids)
            row = {"timestamp": int(arrival * 1e3), "input_length": int(prompt), "output_length": int(output), "hash_ids": ids}
            file.write(json.dumps(row) + "\n")
    engine = llm.MockEngineArgs(num_gpu_blocks=rules.capacity, block_size=rules.block, enable_prefix_caching=False)
    return lambda: llm.run_mocker_trace_replay(path, engine, trace_block_size=BLOCK)


def sched_sim(traffic, rules):
    """sched-sim, in Python: what replays the trace; ModuleNotFoundError where it is not installed."""
    engine, presets = (importlib.import_module(f"sched_sim.{name}") for name in ("core.event_engine", "hardware.presets"))
    make, kept = importlib.import_module("sched_sim.schedulers.factory"), importlib.import_module("sched_sim.memory.preemption")
    record, card = importlib.import_module("sched_sim.core.request"), presets.get_hardware_profile("a100")
    rows = list(enumerate(zip(traffic.arrival, traffic.prompt, traffic.output, strict=True)))

    def run():
        mode = kept.PreemptionMode.RECOMPUTE
        simulator = engine.Simulator(card, make.create_scheduler("chunked", card, mode, token_budget=rules.budget), preemption_mode=mode)
        simulator.submit_workload([
            record.Request(request_id=str(at), arrived_at=float(arrival), prompt_tokens=int(prompt), output_tokens=int(output))
            for at, (arrival, prompt, output) in rows
        ])  # fmt: skip
        simulator.run()

    return run


PUBLISHED = (("ai-dynamo-runtime, mocker", dynamo), ("sched-sim", sched_sim))


def main(path):
    """A line for each simulator."""
    traffic = traffic_of(path).head(MOST)
    made = replica(traffic, engine="vllm")
    rules = made.scheduler.rules
    print(f"{len(traffic):,} requests, {traffic.prompt.mean():.0f} + {traffic.output.mean():.0f} tokens, {MODEL} on {MACHINE}")
    found = {}
    for how in ("compiled", "plain")[not available() :]:
        simulate(traffic, made.pace, rules, how=how)  # compiles, or loads what was compiled
        found[f"headway sim, {how}"] = cpu_s(lambda how=how: simulate(traffic, made.pace, rules, how=how))
    few = traffic.head(FEW)
    for name, prepare in PUBLISHED:
        try:
            run = prepare(few, rules)
        except ImportError:
            print(f"{name:28} is not installed")
            continue
        found[name] = cpu_s(run, 1) / len(few) * len(traffic)
    best = min(found.values())
    for name, seconds in found.items():
        print(f"{name:28} {len(traffic) / seconds:>12,.0f} requests per CPU-second, 1/{seconds / best:.0f} of the fastest")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
