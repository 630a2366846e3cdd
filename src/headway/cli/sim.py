"""`headway sim MODEL --on MACHINE --trace FILE | --rate R --prompt LENGTHS --output LENGTHS`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headway import output, schema
from headway.assumptions import Assumptions
from headway.cli import loads, sim_traffic, subjects, words
from headway.errors import BadValue
from headway.layout import Layout
from headway.precision import Precision
from headway.workload import SLO

VIEW = ("rate", "replicas", "tp", "stable", "utilisation", "mean_ttft_s", "p99_ttft_s", "mean_tpot_s", "p99_tpot_s", "p99_itl_s",
        "mean_e2e_s", "req_per_s", "goodput_req_per_s", "output_tok_per_s", "decode_batch_mean", "kv_used_mean",
        "usd_per_mtok", "why")  # fmt: skip
DEFINED = "TTFT, TPOT, ITL, E2E and goodput are defined as in vLLM's `bench serve`; queue: from sending to the first step."
WARMUP = 0.1
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
    run.add_argument("--warmup", metavar="SHARE", help=f"first requests left out of latencies (default {WARMUP}, of a trace 0)")
    run.add_argument("--loop", default="auto", metavar="|".join(LOOPS), help="run as plain Python or compiled (default: the sooner)")


def run(args: Any) -> output.Answer:
    """One row for each layout and rate."""
    from headway.listing import Listing

    if args.loop not in LOOPS:
        raise BadValue("--loop", args.loop, ", ".join(LOOPS))
    loadings, lasting, notes = sim_traffic.read(args)
    limits, _ = _one(args, SLO)
    default = WARMUP if lasting else 0.0
    warmup = float(schema.scalar(args.warmup, schema.Q(open_low=False, high=0.9), "--warmup") if args.warmup else default)
    told = {f"{key}_s": float(value) for key, value in limits.items()}
    rows: list[dict[str, Any]] = []
    for made, more in _fleets(args, loadings):
        notes += [note for note in more if note not in notes]
        rows += _rows(made, loadings, told, warmup, lasting, args.loop, notes)
    notes += [f"latencies leave out the first {warmup:.0%} of requests"] if warmup else []
    return output.Answer(Listing(rows), notes=notes, describe=describe)


def _fleets(args: Any, loadings: list[Any]) -> Iterator[tuple[Any, list[str]]]:
    """Each layout asked for, compiled, and what must be said about it."""
    from headway.serve import query
    from headway.sim.fleet import fleet
    from headway.sim.policy import Policy

    taken, more = _one(args, Assumptions)
    formats, _ = _one(args, Precision)
    chosen, _ = _one(args, Policy)
    model, system = _subject(args)
    layouts, dropped = _layouts(args, model)
    traffic = loadings[0].traffic
    asked = query(
        model, system, layouts, prompt=float(traffic.prompt.mean()), output=float(traffic.output.mean()), batch=1, context=None,
        precision=Precision(**formats), assumptions=schema.defaults(Assumptions, taken),
    )  # fmt: skip
    for layout in asked.layouts:
        made = fleet(asked, layout, Policy(**chosen), traffic, closed=loadings[0].users > 0)
        yield made, [*more, *dropped, *asked.notes, *made.scheduler.notes]


def _rows(made: Any, loadings: list[Any], limits: Any, warmup: float, lasting: bool, how: str, notes: list[str]) -> list[dict[str, Any]]:
    """One layout under each load, until the user interrupts it."""
    from headway.sim import answer, saturation, simulate

    if made.pace is None:
        return [{"rate": load.rate} | answer.impossible(made) for load in loadings]
    rules, rows, able = made.scheduler.rules, [], None
    for load in loadings:
        if able is None and not load.users:
            able = saturation.capacity(load.traffic, made.pace, rules, made.replicas, how)
        ran = simulate.simulate(
            load.traffic, made.pace, rules, replicas=made.replicas, overhead_s=made.scheduler.overhead_s, think=load.think,
            users=load.users, how=how,
        )  # fmt: skip
        rows.append({"rate": load.rate} | answer.row(made, ran, able, limits, warmup, lasting))
        if ran.interrupted:
            notes.append(f"interrupted: {rows[-1]['completed']} of {len(load.traffic)} requests had ended; figures are of those")
            break
    return rows


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
    headline = _sentence(every[0]) if len(every) == 1 else f"{len(every)} simulations."
    return output.Words(headline, VIEW, [DEFINED])


def _sentence(row: Mapping[str, Any]) -> str:
    about = f"{row['model']} on {row['system']}, {words.layout(row)}"
    if row.get("fits") is False:
        return f"{about}: does not run: {row['why']}."
    able = words.value(row, "capacity_req_per_s")
    used = f"{row['utilisation']:.0%} of its capacity ({able})" if row["utilisation"] else "the load asked"
    if not row["stable"] and row["mean_ttft_s"] is None:
        grows = f"the queue grows by {row['queue_growth_per_s']:.3g} requests a second, so latencies have no value"
        return f"{about}: overloaded, at {used}; {grows}."
    told = f"TTFT {words.value(row, 'mean_ttft_s')} (p99 {words.value(row, 'p99_ttft_s')}), TPOT {words.value(row, 'mean_tpot_s')}"
    return f"{about}: at {used} {told} (p99 {words.value(row, 'p99_tpot_s')}), {words.value(row, 'output_tok_per_s')} of output."


