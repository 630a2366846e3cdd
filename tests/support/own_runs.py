"""Runs of servers whose factors are known: drawn from the priors, measured by the laws under those factors, with the scatter of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.evidence.calibration.linear import linear
from headway.evidence.calibration.observe import observe
from headway.evidence.rows.row import MeasuredRow
from headway.evidence.rows.run_keys import task_key, task_month
from headway.evidence.rows.tasks import Task, tasks
from headway.evidence.serving.machines import machines
from headway.evidence.serving.predict import load_of
from headway.performance.calibration.factors import PARAMETERS
from headway.performance.calibration.posterior import NOISE, PRIOR, Posterior, posterior

LOADS = ((1, 1000, 200), (8, 1000, 200), (64, 1000, 200), (256, 500, 500), (16, 8000, 100), (128, 4000, 400))  # users, prompt, output
MODELS = (("Llama-3.1-70B", 4), ("Llama-3.1-8B", 1), ("Qwen3-32B", 2), ("gpt-oss-120b", 2))
CHIPS = ("H100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB")
END = 1.645  # of a 90 % interval, in standard deviations
DEGREES = 3  # of freedom, of a run's scatter


@dataclass(frozen=True)
class SimulatedServer:
    """What a server is, and what its runs say."""

    logs: np.ndarray
    known: Posterior


def server_rows(index: int) -> list[MeasuredRow]:
    """Rows of one deployment under several loads, without measured values."""
    model, degree = MODELS[index % len(MODELS)]
    chip = CHIPS[index // len(MODELS) % len(CHIPS)]
    return [
        MeasuredRow(
            line=place, id=f"{index}-{place}", model=model, hardware=chip, mode="serving_concurrency", chips=degree, tp=degree,
            engine="vLLM", engine_version="0.19.0", month="2026-04", weights="fp8", prompt=prompt, output=output, concurrency=users,
            length_cv=0.0,
        )
        for place, (users, prompt, output) in enumerate(LOADS)
    ]  # fmt: skip


def under(rows: Sequence[MeasuredRow], logs: np.ndarray, scatter: Mapping[str, np.ndarray]) -> list[Task]:
    """Tasks of rows as measured on a server with these logarithms of factors, each quantity off by `scatter`."""
    plain = [task for task in tasks(rows) if isinstance(task, Task)]
    assert len(plain) == len(rows), tasks(rows)
    place = machines([task.setup for task in plain])
    values, _ = linear(plain[0].kind, place, load_of(plain), None, np.tile(logs, (len(plain), 1)))
    ttft, tpot = (getattr(values, name) * np.exp(scatter[name]) for name in ("ttft", "tpot"))
    return [
        replace(task, row=replace(task.row, ttft_s=float(first), tpot_s=float(token)))
        for task, first, token in zip(plain, ttft, tpot, strict=True)
    ]


def simulated(count: int) -> list[SimulatedServer]:
    """Servers with factors from the priors, each known by runs with the scatter of a Student t."""
    random = np.random.default_rng(41)
    servers = []
    for index in range(count):
        logs = np.array([PRIOR[name] for name in PARAMETERS]) * random.standard_normal(len(PARAMETERS))
        scatter = {name: NOISE[name] * random.standard_t(DEGREES, len(LOADS)) for name in ("ttft", "tpot")}
        runs = under(server_rows(index), logs, scatter)
        observations = observe(runs, [f"own:{task.row.id}" for task in runs])
        servers.append(SimulatedServer(logs=logs, known=posterior(observations, task_key(runs[0]), task_month(runs[0]))))
    return servers


def inside(servers: Sequence[SimulatedServer]) -> dict[str, int]:
    """How many servers have each factor inside its 90 % interval."""
    off = np.array([np.abs(server.logs - server.known.mean) / server.known.errors for server in servers])
    return dict(zip(PARAMETERS, (off <= END).sum(axis=0).tolist(), strict=True))
