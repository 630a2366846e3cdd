"""A saved plan as the subject and the traffic of `sim`: what `plan ... -o json` wrote, read back without retyping.

The file's command gives model, load, limits, engine, assumptions and edits; its best row gives machine, layout, replicas, formats, batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.core import schema, user_file
from headway.core.errors import BadFile, BadValue, HeadwayError, IllegalCombination
from headway.core.listing import Listing
from headway.core.question import from_words
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import NAMES, Layout
from headway.performance.workload import SLO
from headway.report import output, sim
from headway.serving.pools import POOL_DEGREES
from headway.simulation.check.latencies import latencies_of
from headway.simulation.check.limits import check_limits, check_requests, read_limits
from headway.simulation.questions import Simulate
from headway.simulation.results import measured

WANTS = "what `headway plan ... -o json` wrote"
EDITS = ("set", "catalog", "attention", "kv_share", "calibration")
LOADS = ("rate", "users", "trace")  # flags of plan that state a load
FROM_PLAN = ("model", "on", *LOADS, "prompt", "output", "turns", "think", "find", "fast", "prefix_cache", "prefill", "step")


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    """The best row of a saved plan, and the flags of its command."""

    path: str
    row: Mapping[str, Any]
    flags: Any

    def limits(self) -> Any:
        """Limits of the plan."""
        return tuple(read_limits(self.flags))


def read_plan(plan: Any) -> SavedPlan:
    """The plan in a file, or the result of a Python call; BadFile if it holds anything else."""
    path = plan if isinstance(plan, str) else "the plan"
    text = user_file.text_of(path, user_file.PLAN) if isinstance(plan, str) else plan.to_json()
    answer = user_file.json_of(text, path, user_file.PLAN)
    try:
        command, rows = [str(word) for word in answer["command"]], answer["rows"]
        verb, best = command[1], [row for row in rows if row["kind"] == "best"]
    except (KeyError, IndexError, TypeError) as error:
        raise BadFile(path, f"cannot be read as a plan ({type(error).__name__}); wants {WANTS}") from None
    if verb != "plan":
        raise BadFile(path, f"is an answer of `{verb}`; wants {WANTS}")
    if len(best) != 1:
        raise BadFile(path, f"holds {len(best)} best layouts; wants one plan, without lists of loads, limits or assumptions")
    saved = SavedPlan(path=path, row=best[0], flags=_flags(path, command[2:]))
    _check_row(saved)
    return saved


def _flags(path: str, words: list[str]) -> Any:
    """The question that the plan's command asked."""
    try:
        return from_words(["plan", *words])
    except HeadwayError as error:
        raise BadFile(path, f"its command is no longer one of `plan`: {error}") from None


def _check_row(saved: SavedPlan) -> None:
    row = saved.row
    try:
        for name in (*NAMES, "batch", "concurrency", "prompt", "output"):
            int(row[name])
        texts = all(isinstance(row[name], str) for name in ("model", "system", "weights", "kv", "compute"))
    except (KeyError, TypeError, ValueError):
        texts = False
    if not texts:
        raise BadFile(saved.path, f"its best row lacks the layout, the load or the formats; wants {WANTS}")
    if row.get("fits") is False:
        raise BadFile(saved.path, f"its best layout does not fit: {row.get('why')}; wants a plan with a layout that does")


def played(args: Simulate, saved: SavedPlan) -> Any:
    """The question of `sim` that plays a plan; what the user adds (scheduler, requests, seed, another rate or users) takes precedence."""
    _refuse_retyped(args)
    row, flags = saved.row, saved.flags
    values: dict[str, Any] = {name: str(int(row[name])) for name in NAMES} | {"on": row["system"], "kv": row["kv"]}
    values |= {"model": row["model"] if "," in flags.model else flags.model}
    values |= {name: row[name] for name in ("weights", "compute") if getattr(flags, name) is not None}
    values |= {name: getattr(flags, name) for name in schema.fields(Assumptions)}
    if row.get("draft_tokens") is not None:  # of a list the best
        values |= _drafts(int(row["draft_tokens"]), flags)
    values |= {name: getattr(args, name) or getattr(flags, name) for name in EDITS}
    values |= _load(args, saved) | _goodput(saved)
    if args.max_seqs is None:
        values["max_seqs"] = max_sequences(row)
    if row.get("prefill_replicas") is not None:
        values |= {"policy": "disaggregated", "prefill_replicas": str(int(row["prefill_replicas"])), "prefill": _prefill(row)}
    return args.replace(**values)


def _prefill(row: Mapping[str, Any]) -> str | None:
    """The layout of the prefill replicas of a row where it is not that of the decode replicas."""
    degrees = {name: int(row[f"prefill_{name}"]) for name in POOL_DEGREES if name != "replicas"}
    if all(degree == int(row[name]) for name, degree in degrees.items()):
        return None
    return " ".join(f"{name}={degree}" for name, degree in degrees.items() if degree != 1) or "tp=1"


def _drafts(count: int, flags: Any) -> dict[str, Any]:
    """Flags of speculation with so many drafts, and without any those of none."""
    if not count:
        return dict.fromkeys(("draft", "draft_tokens", "acceptance"))
    shares = flags.acceptance.split(",") if flags.acceptance else []
    return {"draft_tokens": str(count), "acceptance": ",".join(shares[:count]) or None}


def max_sequences(row: Mapping[str, Any]) -> str | None:
    """Sequences of one attention rank, as the plan's launch line limits them; None is the engine's own limit, as at a rate."""
    if row.get("max_seqs") is not None:
        return str(int(row["max_seqs"]))
    return None if row.get("rate") is not None else str(-(-int(row["batch"]) // int(row["dp"])))


def _refuse_retyped(args: Simulate) -> None:
    """Refuse flags whose values the plan holds."""
    names = [*FROM_PLAN, *(name for record in (Layout, Precision, Assumptions, SLO) for name in schema.fields(record))]
    for name in dict.fromkeys(names):
        value = getattr(args, name, None)
        if value and name not in ("rate", "users"):
            flag = name if name == "model" else schema.flag(name)
            raise IllegalCombination(flag, value, "no --plan beside it: the plan holds it")


def _load(args: Simulate, saved: SavedPlan) -> dict[str, Any]:
    """The plan's load: its rate, users or trace, or without them the users of its full batches; or the rate or users that `sim` gives."""
    flags, row = saved.flags, saved.row
    load = {name: getattr(flags, name, None) for name in LOADS}
    if args.rate or args.users:
        load = {"rate": args.rate, "users": args.users, "trace": load["trace"] if args.rate else None}
    elif not any(load.values()):
        load["users"] = str(int(row["concurrency"]))
    lengths = {name: None if load["trace"] else getattr(flags, name) or str(int(row[name])) for name in ("prompt", "output")}
    return load | lengths


def _goodput(saved: SavedPlan) -> dict[str, str]:
    """Limits of each request for goodput: of each latency the lowest limit of the plan."""
    lowest: dict[str, str] = {}
    for limit in sorted(saved.limits(), key=lambda limit: -limit.most_s):
        if limit.quantity in schema.fields(SLO):
            lowest[limit.quantity] = f"{limit.most_s!r}s"
    return lowest


def checked_limits(saved: SavedPlan, loadings: list[Any], warmup: float) -> tuple[Any, ...]:
    """The plan's limits, refused where too few requests are played for a percentile, or answers have one token."""
    if len(loadings) != 1:
        raise BadValue("--plan", f"{len(loadings)} loads", "one --rate or one number of --users, or none for the plan's")
    traffic = loadings[0].traffic
    limits = check_limits(saved.limits(), int(traffic.output.max()))
    check_requests(limits, len(traffic), warmup)
    return limits


def answer(results: Any, warmup: float, limits: tuple[Any, ...], percentiles: tuple[float, ...], status: int) -> output.Answer:
    """The row of the run with the verdict on the limits, and its latencies beside them."""
    statuses = ()
    if results.last is not None and results.rows[0].get("fits") is not False:
        results.rows[0], statuses = _verdict(results.rows[0], results.last, warmup, limits)
    return output.Answer(
        Listing(results.rows), describe=lambda rows: sim.describe_plan(rows, statuses, percentiles),
        pictures=sim.pictures(results.last, {limit.column: limit.most_s for limit in limits}), status=status,
        checked=sim.checked(results.rows),
    )  # fmt: skip


def _verdict(row: dict[str, Any], run: Any, warmup: float, limits: tuple[Any, ...]) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """The row with the shares of requests within the limits, and each limit beside what was simulated."""
    stable = bool(row["stable"])
    statuses = latencies_of([(run, measured(run, warmup))], 1.0).statuses(limits, stable)
    shares: dict[str, Any] = {}
    for status in sorted(statuses, key=lambda status: -status.limit.most_s):
        shares[f"{status.limit.quantity}_within"] = status.within if stable else None
    return row | {"limits_met": stable and all(status.is_met for status in statuses)} | shares, statuses
