"""`headway plan MODEL --on MACHINE --prompt N --output N [--ttft 2s] [--tpot 50ms]`: the best layout for a load and limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.answers import arguments, launch_lines, serve
from headway.answers.no_effect import search_notes, shown_notes
from headway.answers.own_layout import own_changes
from headway.core import schema
from headway.core.errors import BadValue, IllegalCombination, drop_note
from headway.core.notes import note
from headway.performance.assumptions import Assumptions
from headway.report import layout_pictures, output, serving
from headway.report import plan as words
from headway.report.words import subject
from headway.serving import curves
from headway.serving.plan.plan import LayoutPlan
from headway.serving.plan.plan import plan as search
from headway.simulation.check.limits import LatencyLimits
from headway.simulation.questions import Plan

if TYPE_CHECKING:
    from headway.core.listing import Rows
    from headway.report.pictures.frame import Picture, View

ONLY_AT_LOAD = ("confidence", "no_check", "spare")
MOST_PLANS = 100


def run(args: Plan) -> output.Answer:
    """Answer with the best layout, the frontier of speed against cost, sensitivities, and the user's layout."""
    if _is_loaded(args):
        from headway.answers import plan_load  # with the simulator, which a plan without a load need not wait for

        return plan_load.answer(args, pictures)
    plans = _plans(args)
    if len(plans) == 1:
        _, plan = plans[0]
        script = launch_lines.launched(args, plan)
        table = dataclasses.replace(plan.table, notes=(*plan.table.notes, *_nearest(plans)))
        return output.Answer(
            table, notes=script.notes, launch=script.lines, document=script.document,
            describe=lambda rows: words.describe(rows, plan, own_changes(args, plan)), pictures=pictures(plan),
        )  # fmt: skip
    if args.launch or args.manifest:
        raise BadValue("--launch", args.launch or args.manifest, "one plan: no lists of loads, limits or assumptions")
    tables = [dataclasses.replace(case_plan.table, columns={**case_plan.table.columns, **varied}) for varied, case_plan in plans]
    table = tables[0].concat(*tables[1:])
    table = dataclasses.replace(table, notes=(*table.notes, *_nearest(plans)))
    return output.Answer(
        table,
        describe=words.describe_several,
        pictures={"grid": lambda rows, view: serve.inputs_picture(None, rows.where("kind = best"), view)},
    )


def _is_loaded(args: Plan) -> bool:
    """Whether the question has one load, which a list of rates is not; without one, flags about it are refused."""
    rates = args.rate is not None and not any(mark in args.rate for mark in (",", ".."))
    if rates or args.users is not None or args.trace is not None:
        return True
    for name in (*ONLY_AT_LOAD, *(name for name in schema.fields(LatencyLimits) if name not in ("ttft", "tpot", "e2e"))):
        value = getattr(args, name)
        if value not in (None, False):
            raise BadValue(schema.flag(name), value, "one load beside it: --rate 12, --users 64 or --trace FILE")
    return False


def _plans(args: Plan) -> list[tuple[dict[str, Any], LayoutPlan]]:
    """Plans for each combination of loads, limits and assumptions."""
    grid = arguments.search_grid(args)
    batch = grid.load.pop("batch", None)  # of which each plan searches all values
    cases = grid.cases("plan", MOST_PLANS, {}, each_subject=False)
    systems = [system for system, _ in grid.systems]
    note(*search_notes(args, schema.axes(grid.load) | {"batch": batch}))
    plans, illegal = [], list[IllegalCombination]()
    for case in cases:
        try:
            case_plan = search(
                grid.models, systems, case.load, case.slo, **grid.formats, ways=grid.degrees, batch=batch,
                assumptions=schema.defaults(Assumptions, case.assumptions), objective=args.objective, disaggregate=args.disaggregate,
                current=args.current, elasticities=len(cases) == 1, plainest=args.plainest != "off",
                **launch_lines.search_input(args),
            )  # fmt: skip
        except IllegalCombination as error:
            illegal.append(error)
            continue
        plans.append((case.labels | case.varied, case_plan))
    if not plans:
        raise illegal[0]
    best = [case_plan.best for _, case_plan in plans]
    note(*shown_notes(args, best), *drop_note(illegal, len(cases), "combinations of loads, limits and assumptions"))
    return plans


def _nearest(plans: Sequence[tuple[dict[str, Any], LayoutPlan]]) -> list[str]:
    """Sentences on the measured rows nearest to the best layout of each plan."""
    best = [plan.best.case for _, plan in plans]
    return list(dict.fromkeys(serving.nearest_measured(query.model, query.system.chip, query.assumptions.engine) for query in best))


def pictures(plan: LayoutPlan) -> dict[str, Any]:
    """Pictures of a plan by name, the frontier first."""
    query = plan.best.case
    tpot = getattr(plan.slo, "tpot", None)

    def frontier(rows: Rows, view: View) -> Picture:
        return words.frontier(list(rows), None if tpot is None else float(tpot), view)

    def memory(rows: Rows, view: View) -> Picture:
        points = [row for row in rows if row["kind"] in ("best", "current")]
        names = [f"{row['kind']}: {serving.layout(row)}, batch {row['batch']:,.0f}" for row in points]
        return layout_pictures.memory(points, names, view, subject(points[0]))

    def tornado(rows: Rows, view: View) -> Picture:
        return words.tornado(list(rows), plan.objective, view)

    def batch(rows: Rows, view: View) -> Picture:
        row = plan.table.row(0)
        about = f"{serving.layout(row)}, {serving.formats(row)}, decoding at context {serving.value(row, 'context')}"
        case = curves.of_row(query.model, query.system, row, query.assumptions)
        return layout_pictures.batch(case, row, about, view, float(row["batch"]))

    return {"frontier": frontier, "memory": memory, "tornado": tornado, "batch": batch}
