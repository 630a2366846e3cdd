"""Changes that would help a measured server, each evaluated by the laws that predict rows and set against the measurement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import HeadwayError
from headway.evidence.rows.setup import Setup, SetupKey, find
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.causes import Causes
from headway.evidence.serving.faults import FAULTS, Served, served_at
from headway.evidence.serving.machines import machines
from headway.evidence.serving.predict import PredictedQuantity, Prediction
from headway.evidence.serving.quantities import MeasuredLoad
from headway.laws.serving.causes import changed_s
from headway.performance.server import Server

MOST = 5
LEAST_GAIN = 0.02  # share from which a change is worth a line
CHUNK = 2048.0  # tokens of a smaller step
WAITS = ("queue", "batch limit")  # causes that TTFT shows
REPAIRS = {
    "batch limit": "more sequences at once (--max-num-seqs, --gpu-memory-utilization)", "network": "links at their full bandwidth (nvidia-smi topo -m, NCCL_DEBUG=INFO)",
    "network latency": "collectives at their usual latency (custom all-reduce on)", "engine": "the engine's usual overhead (CUDA graphs on, no --enforce-eager)",
    "memory": "HBM at its usual bandwidth", "compute": "clocks at their usual rate (nvidia-smi -q -d PERFORMANCE)",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A change: what it is, the server and users that it leads to, and the flags of `headway sim` that try it."""

    change: str
    server: Server
    load: MeasuredLoad
    flags: str
    chips: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change with the time expected after it (of TTFT for a wait, else of TPOT), its 90 % interval and its gain."""

    change: str
    quantity: str  # ttft or tpot
    before: float
    after: PredictedQuantity
    rate: float  # requests per second after it over those before
    flags: str  # of `headway sim`
    gain: float  # speed times requests per second and chip, over those before, less 1


def remedies(task: Task, prediction: Prediction, cause: Causes, catalog: Catalog | None = None) -> list[Remedy]:
    """The most useful changes, the greatest gain first; the repair of a fault before all."""
    quantity = "ttft" if cause.name in WAITS and task.row.ttft_s else "tpot"
    before = cause.fault.served if cause.fault else cause.nominal
    chips = float(task.setup.system.chips)
    known = []
    for option in _options(task, cause, before, catalog or default_catalog()):
        remedy = _evaluated(option, quantity, task, prediction, before, chips)
        if remedy is not None and remedy.gain >= LEAST_GAIN:
            known.append(remedy)
    first = len(known) if cause.fault is None else 1
    ranked = sorted(known[first:] if cause.fault else known, key=lambda remedy: -remedy.gain)
    return [*(known[:first] if cause.fault else []), *ranked][:MOST]


def _evaluated(option: Option, quantity: str, task: Task, prediction: Prediction, before: Served, chips: float) -> Remedy | None:
    interval = getattr(prediction, quantity)
    measured = task.row.ttft_s if quantity == "ttft" else task.row.tpot_s
    if interval is None or not measured:
        return None
    after = served_at(option.server, option.load)
    times = [_scalar(getattr(served.times, quantity)) for served in (before, after)]
    rates = [_scalar(served.times.rate * served.server.replicas) for served in (before, after)]
    value = float(changed_s(measured, times[0], times[1]))
    ends = (value * interval.lo / interval.expected, value * interval.hi / interval.expected)
    rate = rates[1] / rates[0]
    gain = times[0] / times[1] * rate * chips / option.chips - 1
    if not np.isfinite(gain):
        return None
    return Remedy(
        change=option.change, quantity=quantity, before=measured, rate=rate, flags=option.flags, gain=gain,
        after=PredictedQuantity(expected=value, floor=min(interval.floor, value), lo=ends[0], hi=ends[1]),
    )  # fmt: skip


def _options(task: Task, cause: Causes, before: Served, catalog: Catalog) -> Iterator[Option]:
    """Candidates; the repair of the fault first."""
    setup, load, chips = task.setup, cause.load, float(task.setup.system.chips)
    if cause.fault is not None:
        yield Option(change=REPAIRS[cause.fault.name], server=cause.nominal.server, load=load, flags="", chips=chips)
    rules = before.server.scheduling
    if float(np.max(rules.step_budget_tokens)) > CHUNK:
        smaller = replace(before.server, scheduling=replace(rules, step_budget_tokens=0 * rules.step_budget_tokens + CHUNK))
        change = f"steps of {CHUNK:.0f} tokens (--max-num-batched-tokens {CHUNK:.0f})"
        yield Option(change=change, server=smaller, load=load, flags=f"--token-budget {CHUNK:.0f}", chips=chips)
    for change, key, flags in _setups(setup):
        resolution = find(_key(task, setup, **key), catalog)
        if not isinstance(resolution, str):
            server = _with_fault(machines([resolution.setup]).online(), cause)
            if _fits(server):
                yield Option(change=change, server=server, load=load, flags=flags, chips=float(resolution.setup.system.chips))
    for change, factor in (("twice the users", 2.0), ("half of the users (a limit of the client or gateway)", 0.5)):
        if float(np.max(load.users)) * factor >= 1:
            users = replace(load, users=load.users * factor)
            yield Option(change=change, server=before.server, load=users, flags=f"--users {_scalar(users.users):.0f}", chips=chips)


def _setups(setup: Setup) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Changes of formats and layouts: what, the fields of a row, the flags of `headway sim`."""
    layout, chips, replicas = setup.layout, int(setup.system.chips), setup.replicas
    tp, name = int(layout.tp), setup.system.chip.name.replace("_", "-")
    if setup.formats.labels[0] not in ("fp8",):
        yield "fp8 weights (--quantization fp8)", {"weights": "fp8"}, "--weights fp8"
    if setup.formats.labels[1] not in ("fp8",):
        yield "fp8 KV cache (--kv-cache-dtype fp8)", {"kv": "fp8"}, "--kv fp8"
    if layout.dp > 1 or layout.pp > 1:
        return
    if tp > 1:
        copies = {"tp": tp // 2, "dp": 2 * replicas}
        yield f"{2 * replicas} copies of tp={tp // 2} on the same chips", copies, f"--tp {tp // 2} --replicas {2 * replicas}"
    more = {"chips": 2 * chips, "tp": tp, "dp": 2 * replicas}
    yield f"a copy more on as many chips again ({2 * chips} chips)", more, f"--on {2 * chips}x{name} --replicas {2 * replicas}"
    if 2 * tp <= int(setup.system.scale_up_domain or 1) or 2 * tp <= 8:
        wider = {"chips": 2 * chips, "tp": 2 * tp, "dp": replicas}
        yield f"tp={2 * tp} on {2 * chips} chips", wider, f"--on {2 * chips}x{name} --tp {2 * tp}"


def _key(task: Task, setup: Setup, **changes: Any) -> SetupKey:
    row, layout = task.row, setup.layout
    plain = SetupKey(
        model=row.model, hardware=row.hardware, chips=int(setup.system.chips), tp=int(layout.tp), ep=int(layout.ep), pp=int(layout.pp),
        dp=int(layout.dp) if layout.dp > 1 else setup.replicas, engine=row.engine, engine_version=row.engine_version, date=row.date,
        weights=row.weights, kv=row.kv, load="given", split=False, benchmark="",
    )  # fmt: skip
    return replace(plain, **changes)


def _with_fault(server: Server, cause: Causes) -> Server:
    """The server with the fault of the measured one."""
    if cause.fault is None:
        return server
    return FAULTS[cause.fault.name](server, np.array([cause.fault.size]), cause.load)


def _fits(server: Server) -> bool:
    return bool(np.all(server.room.weights < server.room.hbm))


def _scalar(value: Any) -> float:
    return float(np.ravel(value)[0])
