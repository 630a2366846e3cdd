"""`headway plan MODEL --on MACHINE --prompt N --output N [--ttft 2s] [--tpot 50ms]`: the best layout for a load and limits."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from headway.cli import arguments, serve
from headway.core import schema
from headway.core.errors import BadValue, IllegalCombination, UnknownName, drop_note
from headway.core.listing import Listing, format_value
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import SLO, Load
from headway.report import output, serving
from headway.serving.columns import SERVE
from headway.serving.plan import problem

HOST = 8  # chips per server, for scale-up domains up to that size


def add_launch_flag(parser: Any) -> None:
    """Flag of the engine for launch lines."""
    parser.add_argument("--launch", metavar="vllm|sglang|trtllm", help="also print the command line that realises the best layout")


def launch_notes(args: Any, plan: Any) -> list[str]:
    """Notes with launch lines and remarks on them, or the reason why the engine cannot run; for pools, of the decode pool."""
    if not args.launch:
        return []
    from headway.serving.launch.launch import ENGINES

    if args.launch not in ENGINES:
        raise UnknownName("engine", args.launch, ENGINES, f"one of {', '.join(ENGINES)}")
    if plan.fails:
        return ["launch: nothing to launch, no layout meets every limit"]
    return _lines(args, plan)


def _lines(args: Any, plan: Any) -> list[str]:
    from headway.models.precision import Precision
    from headway.serving.launch.launch import launch

    best, row = plan.best, plan.table.row(0)
    precision = Precision(weights=row["weights"] if args.weights else "", kv=row["kv"], compute=row["compute"] if args.compute else "")
    domain = best.query.system.scale_up_domain
    host = int(domain) if domain is not None and domain <= HOST else None
    memory = best.query.assumptions.hbm_utilization
    script = launch(args.launch, best.query.model, best.layout, precision, best.load, memory=memory, chips_per_host=host)
    pool = ["launch: for the decode pool alone; engines pair pools by a router of their own"] if row.get("prefill_replicas") else []
    if script.unsupported:
        return [*pool, f"launch: {script.unsupported}"]
    return [*pool, *(f"launch: {line}" for line in script.lines), *(f"launch: {note}" for note in script.notes)]


MOST_PLANS = 100
ROWS = ("kind", "model", "system", "replicas", "tp", "ep", "dp", "pp", "cp", "weights", "kv", "batch")
POOLS = ("prefill_replicas", "prefill_tp", "prefill_ep", "prefill_dp", "prefill_pp", "prefill_cp")
FIGURES = ("ttft_s", *serving.TPOT, "tok_per_s_user", "tok_per_s_chip", "usd_per_mtok_in", "usd_per_mtok_out")
OBJECTIVES = ("cost", "throughput", "latency", "chips")
GOAL_NAMES = {
    "cost": "cost per token",
    "throughput": "tokens per second and chip",
    "latency": "speed of one user",
    "chips": "number of chips",
}


def add_flags(parser: Any) -> None:
    """Flags of the verb: subject, load, limits, search, assumptions."""
    parser.add_argument("model", help="catalogue name, config.json or Hugging Face id; several with commas")
    parser.add_argument("--on", required=True, metavar="MACHINE", help="gb200-nvl72, 8xh100-sxm, ...; several with commas, the best first")
    schema.add_flags(parser, Load, skip=("context",), group="load")
    schema.add_flags(parser, SLO, group="limits (each may be left out)")
    schema.add_flags(parser, Layout, group="layout: searched unless pinned to a value or a list")
    schema.add_flags(parser, Precision, group="number formats: a list is searched")
    schema.add_flags(parser, Assumptions, group="assumptions (named defaults)")
    question = parser.add_argument_group("question")
    objective_help = "what to make best (default cost); of equals fewer chips, then the faster"
    question.add_argument("--objective", default="cost", metavar="|".join(OBJECTIVES), help=objective_help)
    question.add_argument("--disaggregate", action="store_true", help="prefill and decode on separate pools of the machine")
    add_launch_flag(question)
    question.add_argument("--current", metavar='"KEY=VALUE ..."', help='your own layout, such as "tp=8 batch=64": the gain and its cause')


def run(args: Any) -> output.Answer:
    """Answer with the best layout, the frontier of speed against cost, sensitivities, and the user's layout."""
    plans, notes = _plans(args)
    if len(plans) == 1:
        _, plan = plans[0]
        notes += launch_notes(args, plan)
        table = dataclasses.replace(plan.table, notes=(*plan.table.notes, *_nearest(plans)))
        return output.Answer(table, notes=notes, describe=lambda rows: _describe(rows, plan), figure=lambda rows: _figure(rows, plan))
    if args.launch:
        raise BadValue("--launch", args.launch, "one plan: no lists of loads, limits or assumptions")
    tables = [dataclasses.replace(case_plan.table, columns={**case_plan.table.columns, **varied}) for varied, case_plan in plans]
    table = tables[0].concat(*tables[1:])
    table = dataclasses.replace(table, notes=(*table.notes, *_nearest(plans)))
    return output.Answer(table, notes=notes, describe=_describe_several, figure=lambda rows: serve.figure(rows.where("kind = best"), args))


def _plans(args: Any) -> tuple[list[tuple[dict[str, Any], Any]], list[str]]:
    """Plans for each combination of loads, limits and assumptions, and notes."""
    from headway.serving.plan.plan import plan

    load, notes = schema.read(args, Load, serve.COUNTS)
    limits, more = schema.read(args, SLO)
    degrees, drop_notes = schema.read(args, Layout)
    formats, _ = schema.read(args, Precision)
    assumption_sets, assumed_notes = serve.combinations(args, Assumptions)
    load, default_notes = arguments.requested(load)
    batch = load.pop("batch", None)
    axes = {key: value if isinstance(value, tuple) else (value,) for key, value in (load | limits).items()}
    cases = list(itertools.islice(itertools.product(itertools.product(*axes.values()), assumption_sets), MOST_PLANS + 1))
    if len(cases) > MOST_PLANS:
        raise BadValue("plan", "too many combinations of loads, limits and assumptions", f"at most {MOST_PLANS}")
    models, systems = arguments.models(args), [system for system, _ in arguments.systems(args)]
    default_notes += arguments.beyond(models, load)
    names = {key: value if isinstance(value, tuple) else (value,) for key, value in formats.items()}
    plans = []
    illegal: list[IllegalCombination] = []
    for values, assumptions in cases:
        point = dict(zip(axes, values, strict=True))
        try:
            case_plan = plan(
                models, systems, Load(prompt=point["prompt"], output=point["output"], rate=point.get("rate")),
                SLO(**{name: value for name, value in point.items() if name in limits}), **names, ways=degrees, batch=batch,
                assumptions=schema.defaults(Assumptions, assumptions), objective=args.objective, disaggregate=args.disaggregate,
                current=args.current, elasticities=len(cases) == 1,
            )  # fmt: skip
        except IllegalCombination as error:
            illegal.append(error)
            continue
        limit = {key: value for key, value in point.items() if key in limits and len(axes[key]) > 1}
        plans.append((limit | {key: value for key, value in assumptions.items() if len(assumption_sets) > 1}, case_plan))
    if not plans:
        raise illegal[0]
    drop_notes = (*drop_notes, *drop_note(illegal, len(cases), "combinations of loads, limits and assumptions"))
    return plans, [*notes, *default_notes, *more, *drop_notes, *assumed_notes]


def _nearest(plans: Sequence[tuple[dict[str, Any], Any]]) -> list[str]:
    """Sentences on the measured rows nearest to the best layout of each plan."""
    best = [plan.best.query for _, plan in plans]
    return list(dict.fromkeys(serving.sentence(query.model, query.system.chip, query.assumptions.engine) for query in best))


# -- words ------------------------------------------------------------------------------------------------------------------------


def _describe(rows: Any, plan: Any) -> output.Summary:
    """Summary: the sentence, the table of layouts, what binds and what would help most."""
    plain = rows.rows()
    if not plain:
        return output.Summary("No row is left.")
    best = [row for row in plain if row["kind"] == "best"]
    first = (best or plain)[0]
    point_rows = [row for row in plain if row["kind"] != "elasticity"]
    pool_keys = [key for key in POOLS if key in first]
    view = [key for key in (*ROWS, *pool_keys) if key in ("kind", "batch") or len({row[key] for row in point_rows}) > 1]
    helps = _helps(plain, plan.objective)
    binds = serving.binds(first)
    if plan.infeasible:
        looser = {"memory": "", "rate": ", more chips, or a lower rate"}.get(plan.fails, ", or looser limits")
        helps = [f"what would help: {serving.FASTER[first['bound']]}{looser}"]
    after = [*(binds[:1] if helps else binds), *helps, *_current_layout(plain), serving.DEFINED]
    return output.Summary(_sentence(first, plan), [*view, *FIGURES, "bound", "why"], after, Listing(point_rows))


def _limits(slo: Any) -> str:
    return " and ".join(f"{problem.NAMES[name]} <= {format_value(limit, 's')}" for name, limit in problem.limits(slo).items())


def _sentence(row: Mapping[str, Any], plan: Any) -> str:
    """Sentence on the best layout: objective, limits, batch, times, rates, cost, what binds."""
    where, limits = f"{row['model']} on {row['system']}", _limits(plan.slo)
    if plan.fails == "memory":
        return f"{row['model']} does not fit on {row['system']}: {plan.infeasible}."
    if plan.fails == "rate":
        under = f" under {limits}" if limits else ""
        return f"{where} does not carry the load{under}: {plan.infeasible}."
    if plan.fails:
        return f"Nothing meets {limits} for {where}: {plan.infeasible}."
    idle = f" ({row['chips_idle']} chip{'s' if row['chips_idle'] > 1 else ''} idle)" if row["chips_idle"] else ""
    layout = f"{_pools(row)}{serving.layout(row)}{idle}, {serving.work(row)}, {serving.formats(row)}"
    under = f" under {limits}" if limits else ", without limits"
    return f"Best {GOAL_NAMES[plan.objective]} for {where}{under}: {layout}: {_loaded(row)}{serving.speed(row)}."


def _pools(row: Mapping[str, Any]) -> str:
    """Text on the prefill pool, which precedes the figures of the decode pool."""
    if row.get("prefill_replicas") is None:
        return ""
    first = serving.layout({key.removeprefix("prefill_"): int(row[key]) for key in POOLS})
    sizes = f"{serving.value(row, 'prefill_chips')} chips prefill and {serving.value(row, 'decode_chips')} decode"
    transfer = f"{serving.value(row, 'transfer_s')} of TTFT hands the KV cache over"
    return f"{sizes} ({transfer}); prefill {first}; decode "


def _loaded(row: Mapping[str, Any]) -> str:
    """Clause on the utilisation of the chips and the distance to saturation."""
    if row["rate"] is None:
        return ""
    busy_chips, share = row["chips"] - row["chips_idle"], row["utilisation"]
    rate, most = format_value(row["rate"], "1/s"), format_value(row["capacity_req_per_s"], "1/s")
    size = f"{busy_chips} chips in {row['replicas']} replica{'s' if row['replicas'] > 1 else ''}"
    return f"{size} carry {rate} of requests at {share:.0%} of their {most} ({1 / share:.3g} times that is saturation), "


def _helps(rows: Sequence[Mapping[str, Any]], objective: str) -> list[str]:
    """Lines on the change of the optimum for 1 % more of each input, planned again."""
    helps = [row for row in rows if row["kind"] == "elasticity"]
    if not helps:
        return []
    gains = [f"{row['input']} {row['elasticity']:+.3f} %" for row in helps]
    return [f"what would help most: 1 % more of an input, planned again, makes the {GOAL_NAMES[objective]} better by: {', '.join(gains)}"]


def _current_layout(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Line that compares the user's layout with the best."""
    current = next((row for row in rows if row["kind"] == "current"), None)
    if current is None:
        return []
    return [f"your layout: {serving.point(current)}"]


def _describe_several(rows: Any) -> output.Summary:
    """Summary of several plans: the best layout of each."""
    best = [row for row in rows if row["kind"] == "best"]
    if not best:
        return output.Summary("No row is left.")
    extra = [key for key in best[0] if key not in SERVE and key not in ("input", "elasticity", "gain", "cause")]
    view = [key for key in (*extra, *ROWS, "prompt", "output", "rate") if key == "batch" or len({row[key] for row in best}) > 1]
    headline = f"{len(best)} plans; the best of each:"
    loaded = ["utilisation"] if best[0]["rate"] is not None else []
    return output.Summary(headline, [*view, *loaded, *FIGURES, "bound", "why"], [serving.DEFINED], Listing(best))


def _figure(rows: Any, plan: Any) -> dict[str, Any]:
    """Figure of latency and cost against batch for the best layout."""
    from headway.report import figures
    from headway.serving import curves

    query = plan.best.query
    row = plan.table.row(0)
    lecture_curves = curves.of_row(query.model, query.system, row, query.assumptions)
    about = (
        f"{serving.layout(row)}, {serving.formats(row)}, decoding at context {serving.value(row, 'context')}; best at batch {row['batch']}"
    )
    return figures.lecture(lecture_curves, f"{row['model']} on {row['system']}", about)
