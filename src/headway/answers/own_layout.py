"""What would help the layout of `plan --current`: changes of it, each evaluated again, the best first, and the command that tries it."""

from __future__ import annotations

import shlex
from typing import Any

from headway.core import schema
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.report import output, serving
from headway.report.words import interval
from headway.serving.plan.sensitivity import parse
from headway.serving.serve import changes
from headway.simulation.questions import Plan

LAYOUT_FLAGS = ("tp", "ep", "dp", "pp", "cp", "replicas")
MOST_CHANGES = 5


def own_changes(args: Plan, plan: Any) -> list[output.Help]:
    """Changes of the user's own layout; none without one."""
    if plan.current is None:
        return []

    query = plan.current.case
    row = next(row for row in plan.table.rows() if row["kind"] == "current")
    typed = parse(args.current)
    precision = Precision(**{name: typed.get(name, "") for name in schema.fields(Precision)})
    known = changes(query.model, query.system, row, query.assumptions, precision, MOST_CHANGES)
    bare = query.system.name == query.system.chip.name.replace("_", "-")
    machine = f"{int(query.system.chips)}x{query.system.name}" if bare else query.system.name
    subject = f"headway serve {args.model.partition(',')[0]} --on {machine}"
    settings = _settings(args)
    return [
        output.Help(
            change=change.flag, effect=f"{_effect(row, change.row)}; try: {subject} {_flags(change)}{settings}", gain=change.gain
        )
        for change in known
    ]


def _effect(before: Any, after: Any) -> str:
    """Effect of a change, with the 90 % interval of the time after it."""
    ends = interval(after["tpot_lo_s"], after["tpot_hi_s"], "s") if after.get("tpot_lo_s") is not None else ""
    return serving.changed(before, after) + (f" (TPOT 90 %: {ends})" if ends else "")


def _settings(args: Plan) -> str:
    """What the user set besides layout, formats and load: assumptions, prices, edits."""
    names = (*schema.fields(Assumptions), "chip_price")
    flags = [("--" + name.replace("_", "-"), getattr(args, name, None)) for name in names]
    flags += [("--set", edit) for edit in args.set]
    return "".join(f" {flag} {shlex.quote(str(value))}" for flag, value in flags if value is not None)


def _flags(change: Any) -> str:
    """Layout, formats and load of a changed point as flags of `serve`."""
    row = change.row
    flags = [f"--{name} {int(row[name])}" for name in LAYOUT_FLAGS if (row.get(name) or 1) != 1]
    flags += [f"--{name} {value}" for name in schema.fields(Precision) if (value := getattr(change.precision, name))]
    load = ("rate" if row.get("rate") is not None else "batch", "prompt", "output")
    return " ".join([*flags, *(f"--{name} {row[name]:g}" for name in load)])
