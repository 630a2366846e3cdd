"""`headway sim MODEL --on MACHINE --trace FILE | --rate R --prompt LENGTHS --output LENGTHS`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headway import output, schema
from headway.assumptions import Assumptions
from headway.cli import loads, sim_figure, sim_traffic, subjects, words
from headway.errors import BadValue
from headway.layout import Layout
from headway.precision import Precision
from headway.workload import SLO

VIEW = ("kind", "rate", "replicas", "tp", "stable", "utilisation", "mean_ttft_s", "p99_ttft_s", "mean_tpot_s", "p99_tpot_s", "p99_itl_s",
        "mean_e2e_s", "req_per_s", "goodput_req_per_s", "output_tok_per_s", "decode_batch_mean", "kv_used_mean",
        "hit_rate", "usd_per_mtok", "why")  # fmt: skip
DEFINED = "TTFT, TPOT, ITL, E2E and goodput are defined as in vLLM's `bench serve`; queue: from sending to the first step."
WARMUP = 0.1
COUNTED = "requests answered"  # of the progress bar
TRIED = 10  # rates that a search simulates, about
LOOPS = ("auto", "plain", "compiled")


def add_flags(parser: Any) -> None:
    """Subject, traffic, limits, scheduler, layout, formats, assumptions."""
    from headway.sim.policy import Policy

    parser.add_argument("model", help="catalogue name, config.json or Hugging Face id")
    parser.add_argument("--on", required=True, metavar="MACHINE", help="gb200-nvl72, 8xh100-sxm, h200, ...")
    sim_traffic.add_flags(parser)
    schema.add_flags(parser, SLO, skip=("tpot_interleaved",), group="limits of goodput (each may be left out)")
    schema.add_flags(parser, Policy, group="scheduler: what the engine family does unless told otherwise")
    schema.add_flags(parser, Layout, group="layout")
    schema.add_flags(parser, Precision, group="number formats")
    schema.add_flags(parser, Assumptions, skip=("hit_rate",), group="assumptions (named defaults)")
    run = parser.add_argument_group("simulation")
    run.add_argument("--prefix-cache", metavar="TIER:SIZE,...", help="reuse prefixes: hbm:60GB,ddr:1TB of each,flash:30TB:shared of all")
    run.add_argument("--ttl", default="", metavar="TIME,...", help="how long each tier keeps what nobody uses: 5min,1h (default for ever)")
    run.add_argument("--find", metavar="rate", help="the highest rate at which --so-that holds")
    run.add_argument("--so-that", metavar="KEY=MOST,...", help="limits on columns, such as p99_ttft_s=1s,p99_tpot_s=50ms")
    run.add_argument("--fast", metavar="SHARE", help="this share of requests goes before all others, in a class of its own")
    run.add_argument("--timeline", metavar="FILE", help="write the last run as trace events, which ui.perfetto.dev opens")
    run.add_argument("--warmup", metavar="SHARE", help=f"first requests left out of latencies (default {WARMUP}, of a trace 0)")
    run.add_argument("--loop", default="auto", metavar="|".join(LOOPS), help="run as plain Python or compiled (default: the sooner)")


def run(args: Any) -> output.Answer:
    """One row for each layout and rate."""
    from headway.listing import Listing
    from headway.sim import timeline

    _check(args)
    loadings, lasting, notes = sim_traffic.read(args)
    so_that = _conditions(args)
    default = WARMUP if lasting else 0.0
    warmup = float(schema.scalar(args.warmup, schema.Q(open_low=False, high=0.9), "--warmup") if args.warmup else default)
    rows: list[dict[str, Any]] = []
    last: Any = None
    for trial, more in _trials(args, loadings, warmup, lasting):
        notes += [note for note in more if note not in notes]
        if trial.fleet.pace is None:
            rows += [{"rate": load.rate} | answer_of(trial) for load in loadings]
        elif so_that:
            rows += trial.highest(loadings[0].traffic, so_that)
        else:
            found, last = _under_each(trial, loadings, notes)
            rows += found
    notes += [f"latencies leave out the first {warmup:.0%} of requests"] if warmup else []
    if args.timeline and last is not None:
        notes.append(f"{args.timeline}: {timeline.save(last, args.timeline)} requests of the last run, for ui.perfetto.dev")
    return output.Answer(Listing(rows), notes=notes, describe=describe, figure=lambda kept: sim_figure.figure(kept, last))


def answer_of(trial: Any) -> dict[str, Any]:
    """The row of a layout that cannot run."""
    from headway.sim import answer

    return answer.impossible(trial.fleet)


def _under_each(trial: Any, loadings: list[Any], notes: list[str]) -> tuple[list[dict[str, Any]], Any]:
    """One fleet under each load, until the user interrupts it."""
    rows, able, run = [], None, None
    for load in loadings:
        able = able or (None if load.users else trial.capacity(load.traffic))
        found, run = trial.rows(load, able)
        rows += found
        if run.interrupted:
            notes.append(f"interrupted: {found[0]['completed']} of {len(load.traffic)} requests had ended; figures are of those")
            break
    return rows, run


def _check(args: Any) -> None:
    if args.loop not in LOOPS:
        raise BadValue("--loop", args.loop, ", ".join(LOOPS))
    if args.find not in (None, "rate"):
        raise BadValue("--find", args.find, "rate")
    if bool(args.find) != bool(args.so_that):
        raise BadValue("--find", args.find or "nothing", "--find rate --so-that p99_ttft_s=1s,p99_tpot_s=50ms")
    if args.find and args.users:
        raise BadValue("--find", "rate", "traffic with a rate, not --users")


def _conditions(args: Any) -> dict[str, float]:
    """`p99_ttft_s=1s,p99_tpot_s=50ms` as figures and their highest values."""
    from headway import columns, units

    found = {}
    for text in args.so_that.split(",") if args.so_that else ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or columns.unit(key) != "s" or key not in columns.COLUMNS:
            raise BadValue("--so-that", text, "a latency and the most it may be, such as p99_ttft_s=1s")
        found[key] = units.parse(value, "s", "--so-that")
    return found


def _trials(args: Any, loadings: list[Any], warmup: float, lasting: bool) -> Iterator[tuple[Any, list[str]]]:
    """How each layout asked for is tried, and what must be said about it."""
    from headway.sim.fast import chosen
    from headway.sim.trial import Trial

    requests = sum(len(load.traffic) for load in loadings) * (TRIED if args.find else 1)
    limits, _ = _one(args, SLO)
    fast = float(schema.scalar(args.fast, schema.Q(open_low=False, high=1), "--fast")) if args.fast else 0.0
    for made, policy, notes in _fleets(args, loadings, 2 if fast else 1):
        how = chosen(made.pace.source, requests, args.loop) if made.pace else args.loop
        yield Trial(
            fleet=made, limits={f"{key}_s": float(value) for key, value in limits.items()}, warmup=warmup, lasting=lasting, how=how,
            routing=policy.routing, fast=fast, seed=0,
        ), notes  # fmt: skip


def _fleets(args: Any, loadings: list[Any], classes: int) -> Iterator[tuple[Any, Any, list[str]]]:
    """Each layout asked for, compiled."""
    from headway.serve import query
    from headway.sim.fleet import fleet
    from headway.sim.policy import Policy
    from headway.sim.tiers import parse_tiers

    taken, more = _one(args, Assumptions)
    formats, _ = _one(args, Precision)
    chosen, _ = _one(args, Policy)
    model, system = _subject(args)
    layouts, dropped = _layouts(args, model)
    traffic, policy = loadings[0].traffic, Policy(**chosen)
    asked = query(
        model, system, layouts, prompt=float(traffic.prompt.mean()), output=float(traffic.output.mean()), batch=1, context=None,
        precision=Precision(**formats), assumptions=schema.defaults(Assumptions, taken),
    )  # fmt: skip
    tiers = parse_tiers(args.prefix_cache, args.ttl, subjects.catalog(args)) if args.prefix_cache else ()
    for layout in asked.layouts:
        made = fleet(asked, layout, policy, traffic, classes=classes, closed=loadings[0].users > 0, tiers=tiers)
        yield made, policy, [*more, *dropped, *asked.notes, *made.scheduler.notes]


def _one(args: Any, record: type) -> tuple[dict[str, Any], list[str]]:
    """The fields of a record, none of which may be a list here."""
    values, notes = schema.read(args, record)
    for key, value in values.items():
        if isinstance(value, tuple):
            raise BadValue(schema.flag(key), ", ".join(map(str, value)), "one value: what may be a list here is --rate and the layout")
    return values, list(notes)


def _subject(args: Any) -> tuple[Any, Any]:
    models, systems = subjects.models(args), subjects.systems(args)
    if len(models) > 1 or len(systems) > 1:
        raise BadValue("sim", f"{len(models)} models on {len(systems)} machines", "one model on one machine")
    return models[0], systems[0][0]


def _layouts(args: Any, model: Any) -> tuple[list[Layout], list[str]]:
    from headway.compile import work_of
    from headway.layout import shape

    ways, notes = schema.read(args, Layout)
    layouts, dropped = loads.ranked(shape(work_of(model).blocks), ways)
    return layouts, [*notes, *dropped]


def describe(rows: Any) -> output.Words:
    """The sentence, the columns to show, and the lines below the table."""
    every = list(rows)
    if not every:
        return output.Words("No row is left.")
    single = len(every) == 1 or every[0]["kind"] == "found"
    headline = _sentence(every[0]) if single else f"{len(every)} simulations."
    kinds = VIEW if len({row["kind"] for row in every}) > 1 else VIEW[1:]
    return output.Words(headline, kinds, [DEFINED])


def _sentence(row: Mapping[str, Any]) -> str:
    about = f"{row['model']} on {row['system']}, {words.layout(row)}"
    if row.get("fits") is False:
        return f"{about}: does not run: {row['why']}."
    able = words.value(row, "capacity_req_per_s")
    used = f"{row['utilisation']:.0%} of its capacity ({able})" if row["utilisation"] else "the load asked"
    if not row["stable"] and row["mean_ttft_s"] is None:
        grows = f"the queue grows by {row['queue_growth_per_s']:.3g} requests a second, so latencies have no value"
        return f"{about}: overloaded, at {used}; {grows}."
    if row["kind"] == "found":
        about = f"{about} meets the limits up to {words.value(row, 'rate')}"
    told = f"TTFT {words.value(row, 'mean_ttft_s')} (p99 {words.value(row, 'p99_ttft_s')}), TPOT {words.value(row, 'mean_tpot_s')}"
    return f"{about}: at {used} {told} (p99 {words.value(row, 'p99_tpot_s')}), {words.value(row, 'output_tok_per_s')} of output."


