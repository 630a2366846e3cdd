"""Changes that would help a measured server: each is the answer of a command that `headway sim` takes, which is printed beside it."""

from __future__ import annotations

import functools
import math
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.evidence.rows.tasks import Setup, Task
from headway.evidence.serving.causes import BATCH_LIMIT, MOST_SIZE, QUEUE, SMALL, Causes
from headway.evidence.serving.machines import ENGINES, scalar
from headway.evidence.serving.predict import Prediction
from headway.evidence.serving.runs import beaten
from headway.performance.achieved import EAGER
from headway.performance.estimate import Estimate

MOST = 5
LEAST_GAIN = 0.02  # share from which a change is worth a line
NEAR = 0.05  # relative distance from a measurement within which a command answers it
TRIES = 2  # factors on the steps that are tried, so that the command without a change answers the measurement
CARRIED = 0.8  # of its capacity, at which a deployment answers soon
CHUNK = 2048.0  # tokens of a smaller step
LARGEST_TP = 8  # chips of a usual host
ROUNDS, LEAST_REQUESTS, MOST_REQUESTS = 5, 300, 2000  # of a run whose number of requests is not known, or is large
WAITS = (QUEUE, BATCH_LIMIT)  # causes that TTFT shows
REPAIRS = {
    BATCH_LIMIT: "more sequences at once (--max-num-seqs, --gpu-memory-utilization)",
    "network": "links at their full bandwidth (nvidia-smi topo -m, NCCL_DEBUG=INFO)",
    "network latency": "collectives at their usual latency (custom all-reduce on)",
    "engine": "the engine's usual overhead (CUDA graphs on, no --enforce-eager)",
    "memory": "HBM at its usual bandwidth", "compute": "clocks at their usual rate (nvidia-smi -q -d PERFORMANCE)",
}  # fmt: skip
COLUMNS = {"ttft": "mean_ttft_s", "tpot": "mean_tpot_s", "rate": "output_tok_per_s"}  # quantity -> column of `headway sim`
Flags = tuple[tuple[str, str | None], ...]  # of `headway sim`, each with its value: "" of a switch, None to leave the flag out
Row = Mapping[str, Any] | None  # of a command's answer; None where it has none
Ask = Callable[[str], Row]
AskFlags = Callable[[Flags], tuple[str, Row]]  # flags of a change -> its command, and the row that it answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A change: what it is, the flags of `headway sim` that try it, and the chips that it needs."""

    change: str
    flags: Flags
    chips: float
    more: bool = False  # more users or arrivals: it pays in tokens per second, not in time
    most: float = 3.0  # times the requests per second that it may carry at best, so that beyond them nothing is simulated


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change with what its command answers, and the 90 % interval around it."""

    change: str
    quantity: str  # ttft, tpot, or rate in tokens per second
    before: float  # as measured, or as the deployment should run, where the measurement is not explained
    explained: bool  # whether `before` is the measurement
    after: Estimate
    rate: float | None  # tokens per second after it over those before
    command: str
    gain: float  # how much less time, or how many more tokens per second, as a share
    rank_gain: float = 0.0  # what remedies are ranked by: speed times tokens per second and chip, as a share above those before


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The command without a change, the flags that make it answer the measurement, and its answer."""

    flags: Flags
    row: Row
    explained: bool  # whether it answers the measurement


def remedies(task: Task, prediction: Prediction, cause: Causes, ask: Ask, more: str = "") -> list[Remedy]:
    """The changes that pay, the best first; the repair of a fault before all. None is listed that is not better, or overloaded.

    `more` is what every command needs besides: the user's folders.
    """
    quantity = "ttft" if cause.name in WAITS and task.row.ttft_s else "tpot"
    measured = task.row.ttft_s if quantity == "ttft" else task.row.tpot_s
    estimate = getattr(prediction, quantity)
    if estimate is None or not measured or beaten(task, prediction):  # then the deployment is another than the commands'
        return []
    @functools.cache
    def answered(flags: Flags) -> tuple[str, Row]:
        command = sim_command(task, flags) + more
        return command, ask(command)

    base = _baseline(task, cause, quantity, measured, answered)
    repairs, known = [], []
    if cause.fault is not None:
        option = Option(change=REPAIRS[cause.fault.name], flags=(), chips=float(task.setup.system.chips))
        nominal = Baseline(flags=(), row=base.row, explained=True)
        repairs = [remedy for remedy in (_evaluated(option, quantity, task, prediction, nominal, answered),) if remedy is not None]
    simulated = base.row.get("capacity_req_per_s") if base.row is not None else None
    capacity = float(simulated or cause.capacity or np.inf)  # as the command without a change says; without bound in a closed loop
    for option in _options(task, cause, capacity):
        if (task.row.request_rate or 0.0) > option.most * capacity:
            continue
        remedy = _evaluated(option, "rate" if option.more else quantity, task, prediction, base, answered)
        if remedy is not None:
            speed = 1.0 if remedy.quantity == "rate" else 1 + remedy.gain
            more_per_chip = (remedy.rate or 1.0) / (option.chips / float(task.setup.system.chips))
            known.append(replace(remedy, rank_gain=max(speed * more_per_chip - 1, 0.0)))
    ranked = sorted(known, key=lambda remedy: -remedy.rank_gain)
    most = max((remedy.rank_gain for remedy in ranked), default=0.0)
    repairs = [replace(repair, rank_gain=max(repair.gain, most)) for repair in repairs]
    return [*repairs, *ranked][:MOST]


def _evaluated(option: Option, quantity: str, task: Task, prediction: Prediction, base: Baseline, ask: AskFlags) -> Remedy | None:
    """A change as its command answers it; None where that is not better than the run, and than the command without the change."""
    measured = {"ttft": task.row.ttft_s, "tpot": task.row.tpot_s, "rate": task.row.output_tok_per_s}[quantity]
    interval = getattr(prediction, quantity)
    if not measured or interval is None:
        return None
    command, row = ask((*base.flags, *option.flags))
    value, start = _answer(row, quantity), _answer(base.row, quantity)
    if value is None or row is None:
        return None
    if quantity != "rate":  # an answer that is not between those with every step shorter and longer is chance, not a promise
        low, middle, high = (row.get(key) for key in (f"mean_{quantity}_lo_s", f"mean_{quantity}_s", f"mean_{quantity}_hi_s"))
        if not ((low is None or low <= middle) and (high is None or middle <= high)):
            return None
    explained = base.explained or start is None
    gains = [value / before - 1 if quantity == "rate" else before / value - 1 for before in (measured, start) if before]
    if min(gains) < LEAST_GAIN:
        return None
    before = measured if explained or start is None else start
    ends = (value * interval.low / interval.expected, value * interval.high / interval.expected)
    rates = [_answer(answer, "rate") for answer in (row, base.row)]
    return Remedy(
        change=option.change, quantity=quantity, before=before, explained=explained, command=command,
        after=Estimate(expected=value, floor=min(interval.floor, value), low=ends[0], high=ends[1]),
        rate=rates[0] / rates[1] if rates[0] and rates[1] else None, gain=gains[0] if explained else gains[-1],
    )  # fmt: skip


def _answer(row: Row, quantity: str) -> float | None:
    """A quantity of a row of `headway sim`; None of an overloaded run, and where it has none."""
    value = row.get(COLUMNS[quantity]) if row is not None and row.get("stable") else None
    return float(value) if value and np.isfinite(value) else None


def _baseline(task: Task, cause: Causes, quantity: str, measured: float, ask: AskFlags) -> Baseline:
    """The deployment as it runs: with its fault, where flags say it, and its steps as long as the measured TPOT says."""

    def tried(flags: Flags) -> Baseline:
        row = ask(flags)[1]
        value = _answer(row, quantity)
        return Baseline(flags=flags, row=row, explained=value is not None and abs(value / measured - 1) <= NEAR)

    base = tried(_fault_flags(task, cause))
    tpot, factor = _answer(base.row, "tpot"), 1.0
    if base.explained or not tpot or not task.row.tpot_s:
        return base
    for _ in range(TRIES):
        factor *= task.row.tpot_s / tpot
        if not 1 / MOST_SIZE <= factor <= MOST_SIZE:
            return base
        scaled = tried((*base.flags, ("step-factor", f"{factor:.4g}")))
        tpot = _answer(scaled.row, "tpot")
        if scaled.explained:
            return scaled
        if not tpot:
            return base
    return base


def _fault_flags(task: Task, cause: Causes) -> Flags:
    """The fault as flags of `headway sim`; none for those that no flag says."""
    fault, chip = cause.fault, task.setup.system.chip
    if fault is None:
        return ()
    if fault.name == BATCH_LIMIT:
        return (("max-seqs", f"{max(round(scalar(fault.served.server.scheduling.max_sequences)), 1)}"),)
    fact = {"network": "scale_up_bw", "memory": "hbm_bw"}.get(fault.name)
    value = getattr(chip, fact) if fact else None
    return (("set", f"chip.{fact}={float(value) / fault.size / 1e9:.4g}GB/s"),) if value is not None else ()


def _options(task: Task, cause: Causes, capacity: float) -> Iterator[Option]:
    """Candidates: a smaller step, formats, layouts, prefill apart, fewer or more requests at a time."""
    setup, chips = task.setup, float(task.setup.system.chips)
    if float(np.max(cause.nominal.server.scheduling.step_budget_tokens)) > CHUNK:
        change = f"steps of {CHUNK:.0f} tokens (--max-num-batched-tokens {CHUNK:.0f})"
        yield Option(change=change, flags=(("token-budget", f"{CHUNK:.0f}"),), chips=chips)
    if EAGER in setup.older:
        yield Option(change="CUDA graphs (without --enforce-eager)", flags=(("eager", None),), chips=chips)
    yield from _setups(setup)
    if cause.fault is None and setup.replicas == 1 and setup.layout.dp == 1:
        flags = (("on", f"{2 * int(chips)}x{_chip_name(setup)}"), ("policy", "disaggregated"), ("prefill-replicas", "1"))
        yield Option(change=f"prefill on a pool of its own ({2 * int(chips)} chips in all)", flags=flags, chips=2 * chips)
    yield from _carried(task, capacity)
    if cause.name == SMALL:
        for change, factor in (("four times the load", 4.0), ("twice the load", 2.0)):
            yield Option(change=change, flags=(_load(task, factor),), chips=chips, more=True)


def _carried(task: Task, capacity: float) -> Iterator[Option]:
    """Copies that carry what arrives, and a load that the deployment carries; of a load that it does carry, half."""
    setup, chips, rate = task.setup, float(task.setup.system.chips), task.row.request_rate
    limit = "a limit of client or gateway"
    if rate is None or rate < CARRIED * capacity:
        yield Option(change=f"half of the load ({limit})", flags=(_load(task, 0.5),), chips=chips)
        return
    share = CARRIED * capacity / rate
    change = f"{rate * share:.3g} requests/s, {100 * CARRIED:.0f} % of what it carries ({limit})"
    yield Option(change=change, flags=(_load(task, share),), chips=chips, most=np.inf)
    copies = math.ceil(1 / share)
    if copies > 2 and setup.layout.dp == 1 and setup.layout.pp == 1:
        needed, replicas = copies * int(chips), copies * setup.replicas
        flags = (("on", f"{needed}x{_chip_name(setup)}"), ("replicas", str(replicas)))
        yield Option(change=f"{replicas} copies ({needed} chips)", flags=flags, chips=needed, most=np.inf)


def _load(task: Task, factor: float) -> tuple[str, str]:
    rate = task.row.request_rate
    return ("rate", f"{rate * factor:.4g}") if rate else ("users", f"{max(round((task.concurrency or 1) * factor), 1)}")


def _chip_name(setup: Setup) -> str:
    return setup.system.chip.name.replace("_", "-")


def _setups(setup: Setup) -> Iterator[Option]:
    """Changes of formats and layouts."""
    layout, chips, replicas = setup.layout, int(setup.system.chips), setup.replicas
    tp, name = int(layout.tp), _chip_name(setup)
    for place, (what, key, flag) in enumerate((("weights", "weights", "--quantization"), ("KV cache", "kv", "--kv-cache-dtype"))):
        if setup.formats.labels[place] == "bf16":
            yield Option(change=f"fp8 {what} ({flag} fp8)", flags=((key, "fp8"),), chips=chips)
    if layout.dp > 1 or layout.pp > 1:
        return
    twice = f"{2 * chips}x{name}"
    if tp > 1:
        half, copies = str(tp // 2), str(2 * replicas)
        yield Option(change=f"{copies} copies of tp={half} on these chips", flags=(("tp", half), ("replicas", copies)), chips=chips)
        yield Option(change=f"tp={half} on {chips // 2} chips", flags=(("on", f"{chips // 2}x{name}"), ("tp", half)), chips=chips // 2)
    flags = (("on", twice), ("replicas", str(2 * replicas)))
    yield Option(change=f"as many copies again ({2 * chips} chips)", flags=flags, chips=2 * chips, most=2.5)
    if 2 * tp <= LARGEST_TP:
        yield Option(change=f"tp={2 * tp} on {2 * chips} chips", flags=(("on", twice), ("tp", str(2 * tp))), chips=2 * chips)


def sim_command(task: Task, flags: Flags) -> str:
    """Command line that simulates the measured load on the deployment with a change; a model that is a file goes by its path.

    As many requests as the run had, as far as they are few; of a closed loop some of each user.
    """
    row, setup = task.row, task.setup
    layout, rate = setup.layout, row.request_rate
    through = row.output_tok_per_s / task.output if row.output_tok_per_s and task.output else None
    pairs: dict[str, str | None] = {"on": f"{int(setup.system.chips)}x{_chip_name(setup)}", "tp": f"{int(layout.tp)}"}
    pairs |= {name: str(int(value)) for name, value in (("ep", layout.ep), ("dp", layout.dp), ("pp", layout.pp)) if value > 1}
    pairs |= {"replicas": str(setup.replicas)} if setup.replicas > 1 else {}
    pairs |= {"engine": ENGINES[setup.engine]} if setup.engine not in ("native", "other") else {}
    pairs |= {"eager": ""} if EAGER in setup.older else {}
    pairs |= {"max-seqs": f"{int(row.max_num_seqs)}"} if row.max_num_seqs else {}
    pairs |= {"rate": f"{rate:.4g}"} if rate else {"users": f"{max(round(task.concurrency or 1), 1)}"}
    pairs |= {"prompt": f"{max(round(task.prompt or 1), 1)}", "output": f"{max(round(task.output or 1), 1)}"}
    labels = zip(("weights", "kv"), setup.formats.labels, strict=False)
    pairs |= {name: label for name, label in labels if getattr(setup.precision, name) and label != "bf16"}
    pairs |= dict(flags)
    if pairs.get("policy") and through:
        pairs.pop("users", None)
        pairs |= {"rate": f"{rate or through:.3g}"}
    users = int(pairs.get("users") or 0)
    count = int(row.requests or max(ROUNDS * users, LEAST_REQUESTS))
    pairs |= {"requests": f"{max(min(count, max(MOST_REQUESTS, ROUNDS * users)), users, 1)}"}
    name = row.config or row.model
    model = shlex.quote(name) if Path(name).exists() else setup.model.name
    return f"headway sim {model} " + " ".join(f"--{name} {value}".rstrip() for name, value in pairs.items() if value is not None)


