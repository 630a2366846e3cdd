"""Pictures of `headway serve`: against batch, against context, the roofline, the memory of a chip, stages, and along any input."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headway.answers.combination import varied
from headway.core.errors import BadValue
from headway.report import serving
from headway.serving import curves

if TYPE_CHECKING:
    from headway.answers.serve_grid import ServeGrid
    from headway.report.pictures.frame import Picture, View


def pictures(grid: ServeGrid, table: Any) -> dict[str, Callable[[Any, View], Picture]]:
    """Pictures by name, the one that answers the question first."""
    drawings = {name: functools.partial(drawing, grid) for name, drawing in DRAWINGS.items()}
    first = default(table)
    return {first: drawings[first], **drawings}


def default(table: Any) -> str:
    """The batch curves of a point or a list of batches, the context curves of a list of contexts, else the grid."""
    if not len(table):
        return "batch"
    varying = set(varied(table))
    return "batch" if varying <= {"batch"} else "context" if varying == {"context"} else "grid"


def subject(grid: ServeGrid, table: Any) -> tuple[Any, Any, Mapping[str, Any], Any]:
    """Model, machine and assumptions of a table's first row, and that row."""
    row = first_row(table)
    case = grid.case_of(row)
    return case.model, case.system, row, case.complete_assumptions()


def first_row(table: Any) -> Mapping[str, Any]:
    """First row of a table."""
    if not len(table):
        raise BadValue("--plot", "no rows", "rows to draw")
    return table.row(0)


def about(row: Mapping[str, Any], *keys: str) -> str:
    """Layout, some inputs and formats of a row."""
    return ", ".join([serving.layout(row), *(f"{key} {serving.value(row, key)}" for key in keys), serving.formats(row)])


def batch(grid: ServeGrid, table: Any, view: View) -> Picture:
    """Latency and cost against batch for one layout and context."""
    from headway.report.pictures import curves as drawing

    model, system, row, assumptions = subject(grid, table)
    place = float(row["batch"]) if len(table) == 1 else None
    return drawing.batch(curves.of_row(model, system, row, assumptions), row, about(row, "context"), view, place)


def context(grid: ServeGrid, table: Any, view: View) -> Picture:
    """Latency and cost against context for one layout and batch."""
    from headway.report.pictures import curves as drawing

    model, system, row, assumptions = subject(grid, table)
    place = float(row["context"]) if len(table) == 1 else None
    return drawing.context(curves.context_curves(model, system, row, assumptions), row, about(row), view, place)


def memory(_: ServeGrid, table: Any, view: View) -> Picture:
    """What fills a chip, a bar for each row."""
    from headway.report.pictures import memory as drawing

    row = first_row(table)
    varying = varied(table)
    rows = table.take(range(min(len(table), 40))).rows()
    names = [serving.setting(point, varying) if varying else serving.work(point) for point in rows]
    keys = [key for key in ("model", "system") if key not in varying]
    return drawing.picture(rows, names, view, " on ".join(str(row[key]) for key in keys) + f", {about(row)}")


def along_inputs(_: ServeGrid | None, table: Any, view: View) -> Picture:
    """Times and cost along the inputs that vary."""
    from headway.report.pictures import grid as drawing

    first = first_row(table)
    varying = varied(table)
    x = max((key for key in varying if key not in serving.TEXTS), key=lambda key: len(set(table.values(key))), default="")
    if not x:
        raise BadValue("--plot", "only names vary" if varying else "one point", "a list or a range for a number, such as --batch 1..256*2")
    ys = ("tpot_s", "ttft_s", "usd_per_mtok_out", "tok_per_s_chip") if serving.is_request(first) else ("step_s", "decode_tok_per_s")
    series = [key for key in varying if key not in (x, "why")]  # a sentence is no name of a curve
    rows = table.take(range(min(len(table), drawing.MOST_POINTS))).sort(x).rows()
    name = " on ".join(str(first[key]) for key in ("model", "system") if key not in varying) or "Models and machines beside each other"
    return drawing.picture(rows, x, ys, series, view, title=drawing.finding(rows, x, ys[0], name), about=name)


def pipeline(_: ServeGrid, table: Any, view: View) -> Picture:
    """Micro-batches that decode through the stages."""
    from headway.report.pictures import pipeline as drawing

    row = next((row for row in table.rows() if row["pp"] > 1), None)
    if row is None:
        raise BadValue("--picture", "pipeline", "a layout with stages, such as --pp 4")
    return drawing.serving(int(row["pp"]), view, subject=f"{row['model']} on {row['system']}, {serving.layout(row)}")


def roofline(grid: ServeGrid, table: Any, view: View) -> Picture:
    """Operators of the first row's decode step under the roofline."""
    from headway.report.pictures import roofline as drawing

    model, system, row, assumptions = subject(grid, table)
    case = curves.roofline_of_row(model, system, row, assumptions)
    operators = [dataclasses.asdict(operator) for operator in case.operators]
    words = f"{row['model']} on {row['system']}, {about(row, 'batch', 'context')}, one decode step at peak rates"
    return drawing.picture(operators, case.peaks, case.bandwidth, view, subtitle=words)


def stages(grid: ServeGrid, table: Any, view: View) -> Picture:
    """Weights and KV cache per chip as the first row's layout is cut into stages."""
    from headway.report.pictures import stages as drawing

    model, system, row, assumptions = subject(grid, table)
    words = f"{row['model']} with {about(row, 'batch', 'context')}, on as many {system.chip.name} as the stages take"
    return drawing.picture(curves.by_stages(model, system, row, assumptions), view, words)


DRAWINGS = {
    "batch": batch, "context": context, "roofline": roofline, "memory": memory, "stages": stages, "pipeline": pipeline,
    "grid": along_inputs,
}  # fmt: skip
