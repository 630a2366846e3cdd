"""`headway serve MODEL --on MACHINE ...`: latency, throughput, cost and memory of given layouts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from headway.cli import arguments, serve_pictures
from headway.cli.combination import COUNTS, MOST_TABLES, combinations, varied
from headway.cli.no_effect import Subject, refuse_no_effect
from headway.core import schema
from headway.core.errors import BadValue, IllegalCombination, drop_note
from headway.core.quantity import user_input
from headway.hardware.chip_price import DEFAULT_METRIC
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.report import money, output, serving, words


def add_flags(parser: Any) -> None:
    """Flags of the verb: subject, layout, load, formats, assumptions."""
    parser.add_argument("model", help="catalogue name, config.json or Hugging Face id; several with commas")
    parser.add_argument("--on", required=True, metavar="MACHINE", help="gb200-nvl72, 8xh100-sxm, h200, ...; several with commas")
    schema.add_flags(parser, Load, group="load: every number may be a list 1,2,4 or a range 1..512*2, 0..10+2")
    schema.add_flags(parser, Layout, group="layout")
    stage = "sequences that a pipeline stage works on at a time, in place of --batch: pp times as many are in flight"
    parser.add_argument("--batch-per-stage", metavar="N", help=stage)
    schema.add_flags(parser, Precision, group="number formats")
    schema.add_flags(parser, Assumptions, group="assumptions (example defaults)")
    arguments.add_price_flag(parser)


def run(args: Any) -> output.Answer:
    """Answer with a row per point of the grid."""
    table, notes = tables(args)
    return output.Answer(table, notes=notes, describe=lambda rows: describe(rows, args), pictures=serve_pictures.pictures(args, table))


def tables(args: Any) -> tuple[Any, list[str]]:
    """Table of all models, machines, formats and assumptions requested, and notes."""
    from headway.performance.compile import work_of
    from headway.performance.layout import shape
    from headway.serving.serve import MOST_POINTS

    load, notes = schema.read(args, Load, COUNTS)
    per_stage, stage_notes = _per_stage(args)
    load, default_notes = arguments.attended(load)
    degrees, more = schema.read(args, Layout)
    formats, format_notes = combinations(args, Precision)
    assumption_sets, taken_notes = combinations(args, Assumptions)
    notes = [*notes, *stage_notes, *default_notes, *more, *format_notes, *taken_notes]
    models, systems = arguments.models(args), arguments.systems(args)
    notes += arguments.beyond(models, load)
    cases = list(itertools.islice(itertools.product(models, systems, formats, assumption_sets), MOST_TABLES + 1))
    if len(cases) > MOST_TABLES:
        raise BadValue("grid", "too many combinations of models, machines, formats and assumptions", f"at most {MOST_TABLES}")
    all_tables, subjects, illegal = [], [], []
    for model, (system, edits), precision, assumptions in cases:
        layouts, drop_notes = arguments.layouts(args, shape(work_of(model).blocks), degrees)
        notes += [note for note in _staged(layouts, load, per_stage) if note not in notes]
        notes += [note for note in drop_notes if note not in notes]
        common = {"model": model, "system": system, "precision": Precision(**precision), "assumptions": assumptions}
        members = [Subject(layouts=group, load=stage, **common) for group, stage in _groups(layouts, load, per_stage)]
        try:
            tables_of = [subject.table() for subject in members]
        except IllegalCombination as error:
            illegal.append(error)
            continue
        subjects += members
        varied = {key: value for key, value in assumptions.items() if sum(other_set.get(key) != value for other_set in assumption_sets)}
        all_tables += [arguments.replaced(table, edits | varied) for table in tables_of]
        if sum(len(table) for table in all_tables) > MOST_POINTS:
            raise BadValue("grid", f"more than {MOST_POINTS} points in all", f"at most {MOST_POINTS}")
    if not all_tables:
        raise illegal[0]
    refuse_no_effect(args, subjects)
    notes += drop_note(illegal, len(cases), "combinations of models, machines, formats and assumptions")
    return (all_tables[0].concat(*all_tables[1:]) if len(all_tables) > 1 else all_tables[0]), notes


def _per_stage(args: Any) -> tuple[Any, tuple[str, ...]]:
    """The batches of a stage, None where the user gave none, and notes."""
    if getattr(args, "batch_per_stage", None) is None:
        return None, ()
    if args.batch is not None:
        raise BadValue("--batch-per-stage", args.batch_per_stage, "no --batch beside it: the batch is pp times as large")
    values, notes = schema.axis(args.batch_per_stage, schema.fields(Load)["batch"][0], "--batch-per-stage")
    return values if isinstance(values, tuple) else (values,), notes


def _groups(layouts: Any, load: dict[str, Any], per_stage: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Layouts with the load of each: one group, or a group per pp whose batch is pp times that of a stage."""
    if per_stage is None:
        return [(layouts, load)]
    depths = list(dict.fromkeys(int(layout.pp) for layout in layouts))
    groups = []
    for depth in depths:
        batches = [user_input(int(batch) * depth, "batch") for batch in per_stage]
        batch = tuple(batches) if len(batches) > 1 else batches[0]
        groups.append(([layout for layout in layouts if int(layout.pp) == depth], load | {"batch": batch}))
    return groups


def _staged(layouts: Any, load: dict[str, Any], per_stage: Any) -> list[str]:
    """A note where pp varies: what the batch of a stage is then."""
    depths = sorted({int(layout.pp) for layout in layouts})
    if len(depths) < 2:
        return []
    if per_stage is not None:
        return ["batch counts the sequences in flight, pp times --batch-per-stage: every stage has the same work at a time"]
    return ["pp changes the work of a stage: of one batch a stage works on a pp-th at a time; --batch-per-stage N keeps that equal"]


def describe(table: Any, args: Any = None) -> output.Summary:
    """Summary: the sentence, the columns of the table, what binds the point that the sentence names and what would help it."""
    if not len(table):
        return output.Summary(words.NO_ROW)
    first = table.row(0)
    varying = varied(table)
    unpriced = money.unpriced(table.rows() if table.varies("system") else [first], getattr(args, "price_metric", None) or DEFAULT_METRIC)
    headline, example = (serving.point(first, unpriced), first) if len(table) == 1 else serving.grid(table, varying, unpriced)
    view = serving.REQUEST_VIEW if serving.is_request(first) else serving.STEP_VIEW
    remarks = [serving.DEFINED, *money.machine_costs([example]), *money.load_costs(example)]
    return output.Summary(
        headline, [*(varying or ("batch",)), *view, "bound", "why"], binds=serving.binds(example), first=(*varying, *serving.LAST),
        remarks=remarks, helps=[] if args is None else _helps(example, args),
    )  # fmt: skip


def _helps(row: Mapping[str, Any], args: Any) -> list[output.Help]:
    """Changes of a point, each evaluated again, the most useful first."""
    from headway.serving.changes import changes

    model = next(model for model in arguments.models(args) if model.name == row["model"])
    system = next(system for system, edits in arguments.systems(args) if system.name == row["system"] and edits.items() <= row.items())
    assumption_sets, _ = combinations(args, Assumptions)
    assumptions = next(values for values in assumption_sets if all(row.get(key, value) == value for key, value in values.items()))
    return [
        output.Help(change=change.flag, effect=serving.changed(row, change.row), gain=change.gain)
        for change in changes(model, system, row, schema.defaults(Assumptions, assumptions), row["compute"] if args.compute else "")
    ]
