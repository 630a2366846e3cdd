"""`headway serve MODEL --on MACHINE ...`: latency, throughput, cost and memory of given layouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.answers import arguments, serve_grid, serve_pictures
from headway.answers.combination import varied
from headway.answers.no_effect import serve_notes
from headway.answers.serve_grid import ServeGrid
from headway.core.errors import BadValue, IllegalCombination, drop_note
from headway.core.notes import note
from headway.hardware.chip_price import MARKET
from headway.report import money, output, serving
from headway.serving.changes import changes
from headway.serving.serve import MOST_POINTS


def run(args: Any) -> output.Answer:
    """Answer with a row per point of the grid."""
    grid = serve_grid.read(args)
    table = tables(grid, args)
    metric = getattr(args, "price_metric", None) or MARKET
    return output.Answer(
        table, describe=lambda rows: describe(rows, grid, metric),
        pictures=serve_pictures.pictures(grid, table), default_picture=serve_pictures.default,
    )  # fmt: skip


def tables(grid: ServeGrid, args: Any) -> Any:
    """Table of all models, machines, formats and assumptions of a grid."""
    all_tables, subjects, illegal = [], [], []
    for case in (cases := grid.cases()):
        layouts = grid.layouts(case, args)
        members = [case.subject(group, load) for group, load in grid.loads(layouts)]
        try:
            of_case = [arguments.replaced(subject.table(), case.labels) for subject in members]
        except IllegalCombination as error:
            illegal.append(error)
            continue
        subjects += members
        all_tables += of_case
        if sum(len(table) for table in all_tables) > MOST_POINTS:
            raise BadValue("grid", f"more than {MOST_POINTS} points in all", f"at most {MOST_POINTS}")
    if not all_tables:
        raise illegal[0]
    note(*serve_notes(args, subjects), *drop_note(illegal, len(cases), "combinations of models, machines, formats and assumptions"))
    return all_tables[0].concat(*all_tables[1:]) if len(all_tables) > 1 else all_tables[0]


def describe(table: Any, grid: ServeGrid, metric: str) -> output.Summary:
    """Summary: the sentence, the columns of the table, what binds the point that the sentence names and what would help it."""
    first = table.row(0)
    varying = varied(table)
    unpriced = money.unpriced(table.rows() if table.varies("system") else [first], metric)
    headline, example = (serving.point(first, unpriced), first) if len(table) == 1 else serving.grid(table, varying, unpriced)
    view = serving.REQUEST_VIEW if serving.is_request(first) else serving.STEP_VIEW
    remarks = [serving.DEFINED, *money.machine_costs([example]), *money.load_costs(example)]
    return output.Summary(
        headline, [*(varying or ("batch",)), *view, "bound", "why"], binds=serving.binds(example), first=(*varying, *serving.LAST),
        remarks=remarks, helps=_helps(example, grid),
    )  # fmt: skip


def _helps(row: Mapping[str, Any], grid: ServeGrid) -> list[output.Help]:
    """Changes of a point, each evaluated again, the most useful first."""
    case, batch_flag = grid.case_of(row), "" if grid.batch_per_stage is not None else "batch"
    return [
        output.Help(change=change.flag, effect=serving.changed(row, change.row), gain=change.gain)
        for change in changes(case.model, case.system, row, case.complete_assumptions(), case.precision, batch_flag=batch_flag)
    ]
