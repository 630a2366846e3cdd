"""Changes that would help a measured server, each evaluated by the laws that predict rows and set against the measurement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.catalog import Catalog, default_catalog
from headway.evidence.rows.setup import Setup, SetupKey, find
from headway.evidence.rows.tasks import Task
from headway.evidence.serving.causes import SMALL, Causes
from headway.evidence.serving.faults import FAULTS, Served, served_at
from headway.evidence.serving.machines import ENGINES, machines
from headway.evidence.serving.predict import PredictedQuantity, Prediction
from headway.evidence.serving.quantities import MeasuredLoad, Quantities, quantities
from headway.laws.serving.causes import backlog_wait_s
from headway.laws.step.step import step_s
from headway.performance import request
from headway.performance.request import Requests
from headway.performance.server import Server

LEAST, MOST = 3, 5
LEAST_GAIN = 0.02  # share from which a change is worth a line
CHUNK = 2048.0  # tokens of a smaller step
LARGEST_TP = 8  # chips of a usual host
WAITS = ("queue", "batch limit")  # causes that TTFT shows
REPAIRS = {
    "batch limit": "more sequences at once (--max-num-seqs, --gpu-memory-utilization)",
    "network": "links at their full bandwidth (nvidia-smi topo -m, NCCL_DEBUG=INFO)",
    "network latency": "collectives at their usual latency (custom all-reduce on)",
    "engine": "the engine's usual overhead (CUDA graphs on, no --enforce-eager)",
    "memory": "HBM at its usual bandwidth", "compute": "clocks at their usual rate (nvidia-smi -q -d PERFORMANCE)",
}  # fmt: skip
Flags = tuple[tuple[str, str], ...]  # of `headway sim`, each with its value


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A change: what it is, the server and users that it leads to, and the flags of `headway sim` that try it."""

    change: str
    server: Server
    load: MeasuredLoad
    flags: Flags
    chips: float
    pools: bool = False  # prefill and decode on chips of their own
    load_factor: float = 1.0  # times the measured load


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change with the time expected after it (of TTFT for a wait, else of TPOT), its 90 % interval and its gain."""

    change: str
    quantity: str  # ttft or tpot
    before: float
    after: PredictedQuantity
    rate: float  # requests per second after it over those before
    flags: Flags
    gain: float  # speed times requests per second and chip, over those before, less 1


def remedies(task: Task, prediction: Prediction, cause: Causes, catalog: Catalog | None = None) -> list[Remedy]:
    """The most useful changes, the greatest gain first; the repair of a fault before all.

    Where fewer than LEAST pay, those that shorten the time follow, whatever they cost.
    """
    quantity = "ttft" if cause.name in WAITS and task.row.ttft_s else "tpot"
    before = cause.fault.served if cause.fault else cause.nominal
    known = []
    for option in _options(task, cause, before, catalog or default_catalog()):
        remedy = _evaluated(option, quantity, task, prediction, before, cause)
        if remedy is not None:
            known.append(remedy)
    repairs = known[:1] if cause.fault is not None else []
    ranked = sorted(known[len(repairs) :], key=lambda remedy: -remedy.gain)
    better = [remedy for remedy in ranked if remedy.gain >= LEAST_GAIN]
    faster = [remedy for remedy in ranked if remedy.gain < LEAST_GAIN and remedy.after.expected < remedy.before]  # at a higher cost
    return [*repairs, *better, *faster[: max(LEAST - len(repairs) - len(better), 0)]][:MOST]


def _evaluated(option: Option, quantity: str, task: Task, prediction: Prediction, before: Served, cause: Causes) -> Remedy | None:
    """A change beside the measurement; of a small batch, tokens for the money count alone."""
    interval, chips = getattr(prediction, quantity), float(task.setup.system.chips)
    measured = task.row.ttft_s if quantity == "ttft" else task.row.tpot_s
    if interval is None or not measured:
        return None
    after = _quantities(option)
    times = (_scalar(getattr(before.times, quantity)), _scalar(getattr(after, quantity)))
    if cause.saturated and quantity == "ttft" and task.row.request_rate and task.row.requests and not option.pools:
        start = _arrived_ttft(before.server, task, cause.load, 1.0, cause.capacity)
        same = cause.capacity if option.server is before.server else None
        times = (start, _arrived_ttft(option.server, task, option.load, option.load_factor, same))
    rates = (_scalar(before.times.rate * before.server.replicas * option.load.output), _scalar(after.rate))
    value = float(measured * times[1] / times[0])
    ends = (value * interval.lo / interval.expected, value * interval.hi / interval.expected)
    rate = rates[1] / rates[0]
    speed = 1.0 if cause.name == SMALL else times[0] / times[1]
    gain = speed * rate * chips / option.chips - 1
    if not np.isfinite(gain):
        return None
    return Remedy(
        change=option.change, quantity=quantity, before=measured, rate=rate, flags=option.flags, gain=gain,
        after=PredictedQuantity(expected=value, floor=min(interval.floor, value), lo=ends[0], hi=ends[1]),
    )  # fmt: skip


def _arrived_ttft(server: Server, task: Task, load: MeasuredLoad, factor: float, capacity: float | None) -> float:
    """TTFT of arrivals at the offered rate: with the backlog of the run where they are more than the server carries."""
    rate, requests = factor * (task.row.request_rate or 0.0), Requests(prompt=load.prompt, output=load.output, spread=load.spread)
    if capacity is None:
        capacity = _scalar(request.capacity(server, requests) * server.replicas)
    if rate < capacity:
        return _scalar(request.open_loop(server, requests, rate / server.replicas).ttft)
    return _scalar(request.unloaded_ttft_s(server, requests, step_s) + backlog_wait_s(task.row.requests, rate, capacity))


def _quantities(option: Option) -> Quantities:
    """TTFT, TPOT and tokens per second after a change."""
    if option.pools:
        return quantities("disagg", option.server, option.load, floor=False)
    served = served_at(option.server, option.load)
    times, replicas = served.times, served.server.replicas
    rate = times.rate * replicas * option.load.output
    return Quantities(ttft=times.ttft, tpot=times.tpot, rate=rate, per_chip=rate / option.server.chips)


def _options(task: Task, cause: Causes, before: Served, catalog: Catalog) -> Iterator[Option]:
    """Candidates; the repair of the fault first."""
    setup, load, chips = task.setup, cause.load, float(task.setup.system.chips)
    if cause.fault is not None:
        yield Option(change=REPAIRS[cause.fault.name], server=cause.nominal.server, load=load, flags=(), chips=chips)
    rules = before.server.scheduling
    if float(np.max(rules.step_budget_tokens)) > CHUNK:
        smaller = replace(before.server, scheduling=replace(rules, step_budget_tokens=0 * rules.step_budget_tokens + CHUNK))
        change = f"steps of {CHUNK:.0f} tokens (--max-num-batched-tokens {CHUNK:.0f})"
        yield Option(change=change, server=smaller, load=load, flags=(("token-budget", f"{CHUNK:.0f}"),), chips=chips)
    for change, key, flags in _setups(setup):
        resolution = find(_key(task, setup, **key), catalog)
        if not isinstance(resolution, str):
            server = _with_fault(machines([resolution.setup]).online(), cause)
            if _fits(server):
                yield Option(change=change, server=server, load=load, flags=flags, chips=float(resolution.setup.system.chips))
    if cause.fault is None and setup.replicas == 1 and setup.layout.dp == 1:
        yield _separate_pools(setup, load)
    yield from _other_users(task, before, load, chips)


def _separate_pools(setup: Setup, load: MeasuredLoad) -> Option:
    """Prefill on as many chips again."""
    server, chips = machines([setup]), 2 * int(setup.system.chips)
    flags = (("on", f"{chips}x{_chip_name(setup)}"), ("policy", "disaggregated"), ("prefill-replicas", "1"))
    change = f"prefill on a pool of its own ({chips} chips in all)"
    return Option(change=change, server=replace(server, chips=2 * server.chips), load=load, flags=flags, chips=float(chips), pools=True)


def _other_users(task: Task, before: Served, load: MeasuredLoad, chips: float) -> Iterator[Option]:
    """More and fewer requests at a time."""
    for change, factor in (("four times the load", 4.0), ("twice the load", 2.0), ("half of the load (a limit of client or gateway)", 0.5)):
        rate = task.row.request_rate
        if float(np.max(load.users)) * factor >= 1:
            users = replace(load, users=load.users * factor, rate=load.rate * factor)
            flag = ("rate", f"{rate * factor:g}") if rate else ("users", f"{_scalar(users.users):.0f}")
            yield Option(change=change, server=before.server, load=users, flags=(flag,), chips=chips, load_factor=factor)


def _chip_name(setup: Setup) -> str:
    return setup.system.chip.name.replace("_", "-")


def _setups(setup: Setup) -> Iterator[tuple[str, dict[str, Any], Flags]]:
    """Changes of formats and layouts: what, the fields of a row, the flags of `headway sim`."""
    layout, chips, replicas = setup.layout, int(setup.system.chips), setup.replicas
    tp, name = int(layout.tp), _chip_name(setup)
    for place, (what, key, flag) in enumerate((("weights", "weights", "--quantization"), ("KV cache", "kv", "--kv-cache-dtype"))):
        if setup.formats.labels[place] == "bf16":
            yield f"fp8 {what} ({flag} fp8)", {key: "fp8"}, ((key, "fp8"),)
    if layout.dp > 1 or layout.pp > 1:
        return
    if tp > 1:
        half, copies = str(tp // 2), str(2 * replicas)
        yield f"{copies} copies of tp={half} on these chips", {"tp": tp // 2, "dp": 2 * replicas}, (("tp", half), ("replicas", copies))
        fewer = {"chips": chips // 2, "tp": tp // 2, "dp": replicas}
        yield f"tp={half} on {chips // 2} chips", fewer, (("on", f"{chips // 2}x{name}"), ("tp", half))
    more = {"chips": 2 * chips, "tp": tp, "dp": 2 * replicas}
    flags = (("on", f"{2 * chips}x{name}"), ("replicas", str(2 * replicas)))
    yield f"as many copies again ({2 * chips} chips)", more, flags
    if 2 * tp <= LARGEST_TP:
        wider = {"chips": 2 * chips, "tp": 2 * tp, "dp": replicas}
        yield f"tp={2 * tp} on {2 * chips} chips", wider, (("on", f"{2 * chips}x{name}"), ("tp", str(2 * tp)))


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
    if cause.fault.name == "batch limit":  # a number of sequences, whatever the users
        limit = cause.fault.served.server.scheduling.max_sequences
        return replace(server, scheduling=replace(server.scheduling, max_sequences=limit))
    return FAULTS[cause.fault.name](server, np.array([cause.fault.size]), cause.load)


def _fits(server: Server) -> bool:
    return bool(np.all(server.room.weights < server.room.hbm))


def _scalar(value: Any) -> float:
    return float(np.ravel(value)[0])


def sim_command(task: Task, flags: Flags) -> str:
    """Command line that simulates the measured load on the deployment with a change."""
    row, setup = task.row, task.setup
    layout, rate = setup.layout, row.request_rate
    through = row.output_tok_per_s / task.output if row.output_tok_per_s and task.output else None
    pairs = {"on": f"{int(setup.system.chips)}x{_chip_name(setup)}", "tp": f"{int(layout.tp)}"}
    pairs |= {name: str(int(value)) for name, value in (("ep", layout.ep), ("dp", layout.dp), ("pp", layout.pp)) if value > 1}
    pairs |= {"replicas": str(setup.replicas)} if setup.replicas > 1 else {}
    pairs |= {"engine": ENGINES[setup.engine]} if setup.engine not in ("native", "other") else {}
    pairs |= {"rate": f"{rate:g}"} if rate else {"users": f"{task.concurrency:.0f}"}
    pairs |= {"prompt": f"{task.prompt:.0f}", "output": f"{task.output:.0f}"}
    labels = zip(("weights", "kv"), setup.formats.labels, strict=False)
    pairs |= {name: label for name, label in labels if getattr(setup.precision, name) and label != "bf16"}
    pairs |= dict(flags)
    if pairs.get("policy") and through:
        pairs.pop("users", None)
        pairs |= {"rate": f"{rate or through:.3g}"}
    return f"headway sim {setup.model.name} " + " ".join(f"--{name} {value}" for name, value in pairs.items())
