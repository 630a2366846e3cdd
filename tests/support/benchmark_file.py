"""A result file as `vllm bench serve --save-result` writes it, of a simulated run: the deployment is known, and so is its fault."""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from headway.core.schema import defaults
from headway.hardware.edit import edit
from headway.hardware.system import system
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.serving.serve import checked_load, deployment
from headway.simulation.fleet import fleet
from headway.simulation.questions import Policy
from headway.simulation.results import gaps, measured
from headway.simulation.simulate import SimulatedRun, simulate
from headway.simulation.traffic.requests import Traffic


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FaultyRun:
    """A deployment, its load, the fault that it is simulated with and the cause that `score` should name."""

    cause: str
    model: str = "llama-3.1-70b"
    chip: str = "h100-sxm"
    tp: int = 8
    users: int = 0  # of a closed loop, or
    rate: float = 0.0  # requests per second
    prompt: int = 1000
    output: int = 200
    requests: int = 400
    edits: tuple[tuple[str, str], ...] = ()  # facts of the machine as it is, not as it is stated
    assumed: tuple[tuple[str, float], ...] = ()
    max_seqs: int | None = None
    kv_tokens: int | None = None
    spread: float = 0.0  # of the prompts' lengths: sigma of a lognormal
    output_spread: float = 0.0  # of the answers' lengths, likewise; without it they differ by 5 %
    pp: int = 1
    dp: int = 1  # ranks of attention, where there are experts on all of them
    ep: int = 1
    replicas: int = 1
    slower: float = 1.0  # times longer that the file says of everything

    @property
    def chips(self) -> int:
        """All chips that serve."""
        return self.tp * self.pp * self.dp * self.replicas

    @property
    def burst(self) -> bool:
        """Whether all requests are sent at once."""
        return self.users == self.requests


@functools.lru_cache(maxsize=1)
def simulated(case: FaultyRun) -> tuple[SimulatedRun, Traffic]:
    """The run with its fault."""
    machine = system(f"{case.chips}x{case.chip}" if case.chips > 1 else case.chip)
    for key, value in case.edits:
        machine = edit(machine, key, value)
    rng, count = np.random.default_rng(7), case.requests
    prompts = np.full(count, case.prompt)
    if case.spread:
        lengths = rng.lognormal(0.0, case.spread, count)
        prompts = np.maximum((case.prompt * lengths / lengths.mean()).astype(int), 1)
    outputs = np.maximum(rng.normal(case.output, 0.05 * case.output, count).astype(int), 2)
    if case.output_spread:
        lengths = rng.lognormal(0.0, case.output_spread, count)
        outputs = np.maximum((case.output * lengths / lengths.mean()).astype(int), 2)
    starts = np.linspace(0, 0.0 if case.burst else 2.0, count)
    arrivals = np.cumsum(rng.exponential(1 / case.rate, count)) if case.rate else starts
    traffic = Traffic.of(arrivals, prompts, outputs)
    load, assumptions = checked_load(prompt=case.prompt, output=case.output), defaults(Assumptions, {"engine": "vllm"} | dict(case.assumed))
    layout = Layout(tp=case.tp, pp=case.pp, dp=case.dp, ep=case.ep, replicas=case.replicas)
    asked = deployment(case.model, machine, layout, load, assumptions=assumptions)
    policy = Policy(max_seqs=case.max_seqs, kv_tokens=case.kv_tokens)
    played = fleet(asked, asked.layout, policy, traffic, closed=bool(case.users))
    assert played.pace is not None
    think = np.zeros(count) if case.users else None
    run = simulate(
        traffic, played.pace, played.scheduler.rules, replicas=case.replicas, overhead_s=played.scheduler.overhead_s, think=think,
        users=case.users, how="plain",
    )  # fmt: skip
    return run, traffic


def write(case: FaultyRun, path: Path) -> Path:
    """The file that the benchmark's client would write of the run."""
    run, traffic = simulated(case)
    times, slower = measured(run, 0.0), case.slower
    ttft, tpot = times.values("ttft_s", known=True), times.values("tpot_s", known=True)
    seconds = slower * float(np.nanmax(run.finish) - np.nanmin(run.arrival))
    between, done = gaps(run), int(run.completed.sum())
    load: dict[str, Any] = {"max_concurrency": case.users} if case.users and not case.burst else {"max_concurrency": None}
    record = {
        "backend": "vllm", "model_id": case.model, "request_rate": case.rate / slower or "inf", **load, "num_prompts": case.requests,
        "completed": done, "failed": 0, "duration": seconds, "total_input_tokens": int(traffic.prompt[run.completed].sum()),
        "total_output_tokens": int(traffic.output[run.completed].sum()), "request_throughput": done / seconds,
        "mean_ttft_ms": 1000 * slower * float(ttft.mean()), "median_ttft_ms": 1000 * slower * float(np.median(ttft)),
        "mean_tpot_ms": 1000 * slower * float(tpot.mean()), "median_tpot_ms": 1000 * slower * float(np.median(tpot)),
        "mean_itl_ms": 1000 * slower * between["mean_itl_s"], "median_itl_ms": 1000 * slower * between["p50_itl_s"],
        "p99_itl_ms": 1000 * slower * between["p99_itl_s"],
    }  # fmt: skip
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


def write_log(case: FaultyRun, path: Path) -> Path:
    """The log of single requests that a gateway would write of the run, as CSV."""
    run, traffic = simulated(case)
    times = zip(run.arrival, run.first, run.finish, traffic.prompt, traffic.output, strict=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("start_s", "ttft_s", "e2e_s", "prompt_tokens", "output_tokens"))
        for start, first, end, prompt, output in times:
            if np.isfinite(end):
                writer.writerow((case.slower * start, case.slower * (first - start), case.slower * (end - start), prompt, output))
    return path
