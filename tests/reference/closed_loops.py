"""Closed loops of measured rows simulated request by request: the second opinion on the fixed point of laws/closed_loop.py.

Both run on one step law with one engine's numbers. The fixed point takes the users as spread out, but for a fitted share that comes all
at once; here all of them ask at the start, as a benchmark's do, and nothing but what happens spreads them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headway.core.schema import defaults
from headway.evidence.rows.tasks import Setup, Task
from headway.evidence.serving.machines import ENGINES, machines, quantities, rows
from headway.evidence.serving.predict import load_of, placed
from headway.laws.serving.request import middle_context
from headway.laws.step.memory import rank_sequence_limit
from headway.laws.step.pages import paged_sequence_bytes
from headway.performance.achieved import Efficiencies, efficiencies
from headway.performance.assumptions import Assumptions
from headway.performance.request import Server
from headway.simulation.fleet import scheduler
from headway.simulation.questions import Policy
from headway.simulation.simulate import simulate
from headway.simulation.state import Rules
from headway.simulation.step_time import pace_of
from headway.simulation.traffic.distributions import Constant, Lengths, Uniform
from headway.simulation.traffic.generate import Think, generate_loop

PER_USER = 10  # requests of a run for each user, as InferenceX asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRun:
    """A closed loop as simulated: means over all requests, over each user's first, and over the second half of the run."""

    ttft_s: float
    tpot_s: float
    first_ttft_s: float
    first_tpot_s: float
    later_ttft_s: float
    later_tpot_s: float


def simulated_loops(
    tasks: Sequence[Task], table: Efficiencies | None = None, *, per_user: int = PER_USER, ramp: Sequence[float] | None = None,
    how: str = "auto",
) -> list[LoopRun]:  # fmt: skip
    """One replica of each task with its share of the users, who ask so many times each; they begin over `ramp` seconds, or all at once."""
    place, setups = placed(tasks)
    all_machines = machines(setups, table or efficiencies()).online()
    ramps = [0.0] * len(tasks) if ramp is None else ramp
    return [_simulated(task, rows(all_machines, at), per_user, over, how) for task, at, over in zip(tasks, place, ramps, strict=True)]


def _simulated(task: Task, m: Server, per_user: int, ramp: float, how: str) -> LoopRun:
    """One task; `m` is its own machine, scalars."""
    prompt, output = float(task.prompt or 0), float(task.output or 0)
    users = max(1, round((task.concurrency or 1) / float(m.replicas)))
    lengths = (_lengths(prompt, task.spread), _lengths(output, task.spread))
    loop = generate_loop(users, Think(mean=0.0), *lengths, per_user * users, seed=0, ramp=ramp)
    rules = _rules(task.setup, m, prompt, output)
    rules = rules._replace(seats=min(rules.seats, users))
    pace = pace_of(m.step, rules.seats, float((loop.traffic.prompt + loop.traffic.output).max()))
    run = simulate(loop.traffic, pace, rules, overhead_s=float(m.scheduling.request_overhead_s), think=loop.think, users=users, how=how)
    values = run.first - run.arrival, (run.finish - run.first) / np.maximum(loop.traffic.output - 1, 1)
    parts = slice(None), slice(users), slice(len(loop.traffic) // 2, None)
    means = [float(np.nanmean(latencies[part])) for part in parts for latencies in values]
    return LoopRun(**dict(zip((field.name for field in fields(LoopRun)), means, strict=True)))


def _lengths(mean: float, spread: float) -> Lengths:
    """Uniform lengths of a mean and a standard deviation over it; all alike where there is none."""
    half = mean * spread * 3**0.5
    least, most = max(1, round(mean - half)), max(1, round(mean + half))
    return Constant(tokens=least) if least == most else Uniform(least=least, most=most)


def _rules(setup: Setup, m: Server, prompt: float, output: float) -> Rules:
    """The scheduler of the row's engine, and room for cache in the tokens that the fixed point seats."""
    context, room = middle_context(prompt, output), m.room
    cache_bytes = paged_sequence_bytes(room.pages, context)
    sequences = rank_sequence_limit(room.usable, room.weights, cache_bytes, room.stage, m.step.cp) * m.step.dp
    assumptions = defaults(Assumptions, {"engine": ENGINES[setup.engine]})
    tokens = max(float(np.minimum(sequences * context, 1e12)), 2 * (prompt + output))
    return scheduler(Policy(), assumptions, setup.system.chip, int(m.step.dp), tokens, 1, True).rules


def spread_tasks(tasks: Sequence[Any], count: int) -> list[Task]:
    """So many closed loops with TTFT and TPOT measured, evenly over the table."""
    loops = [
        task for task in tasks
        if isinstance(task, Task) and task.kind == "serving" and task.row.reliability != "C" and task.row.ttft_s and task.row.tpot_s
    ]  # fmt: skip
    return [loops[index] for index in np.unique(np.linspace(0, len(loops) - 1, count).round().astype(int))]


def fixed_points(
    tasks: Sequence[Task],
    table: Efficiencies | None = None,
    first_round_share: float | None = None,
    concurrent_prompts: float | None = None,
) -> tuple[Any, Any]:
    """TTFT and TPOT of the same tasks from the fixed point; with the fitted share of prompts that come together, or a stated one."""
    place, setups = placed(tasks)
    all_machines = rows(machines(setups, table or efficiencies()), place)
    overrides = {
        key: np.full(len(tasks), value)
        for key, value in (
            ("first_round_share", first_round_share),
            ("concurrent_prompts", concurrent_prompts),
        )
        if value is not None
    }
    estimates = quantities(
        "serving", replace(all_machines, scheduling=replace(all_machines.scheduling, **overrides)), load_of(tasks), False
    )
    return estimates.ttft, estimates.tpot
