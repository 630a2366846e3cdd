"""`headway serve MODEL --on MACHINE ...`: latency, throughput, cost and memory of given layouts, over the grid that the flags ask for."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.answers.no_effect import Subject, serve_notes
from headway.core import schema, units
from headway.core.catalog import fold
from headway.core.errors import BadValue, IllegalCombination, drop_note
from headway.core.notes import note
from headway.core.quantity import known, user_input
from headway.hardware.chip_price import MARKET
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.assumptions import Assumptions
from headway.performance.calibration.in_force import aside
from headway.performance.formats import resolve
from headway.performance.layout import Layout, shape
from headway.performance.workload import Load
from headway.report import layout_pictures, output, serving
from headway.report.pictures import grid as grid_picture
from headway.report.start_log import start_log
from headway.serving import curves
from headway.serving.questions import Serve
from headway.serving.serve import EXACT_REASONS, MOST_POINTS, SERVE, changes

if TYPE_CHECKING:
    from headway.core.table import Table
    from headway.hardware.system import System
    from headway.models.model import Model
    from headway.report.pictures.frame import Picture, View


DRAFT_VIEW = ("step_tokens", "draft_saving", "draft_users")
ONE_LENGTH = known(0.0, "length_cv", "", "constant", "answers of one length")
CLEAR = 1.15  # ratio of two mean TTFT from which a note tells of the other
RESULTS = ("usd_per_1k_requests", "drafter", "draft_s", *DRAFT_VIEW)  # beside those of serve


def run(args: Serve) -> output.Answer:
    """Answer with a row per point of the grid."""
    grid = grid_of(args)
    table, march = tables(grid, args)
    metric = getattr(args, "price_metric", None) or MARKET
    return output.Answer(
        table, describe=lambda rows: describe(rows, grid, metric, march),
        pictures=drawings_of(grid, table), default_picture=default_picture,
    )  # fmt: skip


def varied(table: Table) -> list[str]:
    """Inputs with more than one value in a table."""
    extra = [key for key in table.keys() if key not in (*SERVE, *RESULTS)]  # noqa: SIM118 -- a table is not a mapping
    keys = [key for key in (*serving.WHAT, *extra) if table.varies(key)]
    follows = {"context"} if {"prompt", "output"} & set(keys) else set()  # the context follows from prompt and output,
    follows |= {"batch"} if table.take([0]).values("rate")[0] is not None else set()  # and the batch from the rate
    return [key for key in keys if key not in follows]


def tables(grid: ServeGrid, args: Serve) -> tuple[Table, Callable[[], list[str]]]:
    """Table of all models, machines, formats and assumptions of a grid, and what makes its notes on lengths that scatter."""
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
    with aside():
        note(*serve_notes(args, subjects))
    note(*drop_note(illegal, len(cases), "combinations of models, machines, formats and assumptions"))
    march = functools.partial(march_notes, args, subjects, all_tables)  # another answer beside this, for whoever reads words
    return all_tables[0].concat(*all_tables[1:]) if len(all_tables) > 1 else all_tables[0], march


def march_notes(args: Serve, subjects: list[Subject], all_tables: list[Table]) -> list[str]:
    """What TTFT would be where it is another if all answers had one length: the scatter is assumed unless the user typed it."""
    if args.length_cv is not None or sum(map(len, all_tables)) > EXACT_REASONS:
        return []
    farthest, text = CLEAR, ""
    for subject, table in zip(subjects, all_tables, strict=True):
        if "prompt" not in subject.load or "rate" in subject.load:
            continue
        alike = replace(subject, assumptions={**subject.assumptions, "length_cv": ONE_LENGTH}).table()
        for row, alike_row in zip(table.rows(), alike.rows(), strict=True):
            times = (row["ttft_s"], alike_row["ttft_s"])
            if row["fits"] and max(times) > farthest * min(times):
                farthest = max(times) / min(times)
                text = f"{units.show(times[1], 's')} instead of {units.show(times[0], 's')} at {row['batch']:g} users"
    scatter = schema.fields(Assumptions)["length_cv"][1]
    march = "of answers of one length (0) users march in step, their prompts come together"
    return [f"by default --length-cv {scatter:g}: {march}, and TTFT is {text}"] if text else []


def describe(table: Table, grid: ServeGrid, metric: str, march: Callable[[], list[str]]) -> output.Summary:
    """Summary: the sentence, the columns of the table, what binds the point that the sentence names and what would help it."""
    first = table.row(0)
    varying = varied(table)
    unpriced = serving.unpriced(table.rows() if table.varies("system") else [first], metric)
    headline, example = (serving.point(first, unpriced), first) if len(table) == 1 else serving.grid(table, varying, unpriced)
    view = serving.REQUEST_VIEW if serving.is_request(first) else serving.STEP_VIEW
    drafts = DRAFT_VIEW if "draft_tokens" in first else ()
    case = grid.case_of(example)
    complete = case.complete_assumptions()
    log = start_log(example, complete.engine, case.system.chip, float(complete.hbm_utilization)) if complete.overlap == "fitted" else []
    with aside():
        log = [*march(), *log]
    remarks = [*log, *serving.at_risk(table.rows()), serving.DEFINED, *serving.machine_costs([example]), *serving.load_costs(example),
               *serving.drafting(example)]  # fmt: skip
    return output.Summary(
        headline, [*(varying or ("batch",)), *view, *drafts, "bound", "why"], binds=serving.binds(example), first=(*varying, *serving.LAST),
        remarks=remarks, helps=_helps(example, grid),
    )  # fmt: skip


def _helps(row: Mapping[str, Any], grid: ServeGrid) -> list[output.Help]:
    """Changes of a point, each evaluated again, the most useful first."""
    case, batch_flag = grid.case_of(row), "" if grid.batch_per_stage is not None else "batch"
    return [
        output.Help(change=change.flag, effect=serving.changed(row, change.row), gain=change.gain)
        for change in changes(case.model, case.system, row, case.complete_assumptions(), case.precision, batch_flag=batch_flag)
    ]


NO_PER_STAGE = "no --batch beside it: the batch is pp times as large"
PER_STAGE = "batch counts the sequences in flight, pp times --batch-per-stage: every stage has the same work at a time"
STAGES_DIFFER = "pp changes the work of a stage: of one batch a stage works on a pp-th at a time; --batch-per-stage N keeps that equal"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeGrid:
    """What the flags ask for. Each combination of the first four has tables; degrees and load are axes within a table."""

    models: list[Any]
    systems: list[tuple[Any, dict[str, Any]]]  # with the edits of each
    formats: list[dict[str, Any]]
    assumptions: list[dict[str, Any]]
    degrees: dict[str, Any]
    load: dict[str, Any]
    batch_per_stage: tuple[Any, ...] | None

    def cases(self) -> list[GridCase]:
        """Every combination of model, machine, formats and assumptions."""
        axes = self.models, self.systems, self.formats, self.assumptions
        if math.prod(map(len, axes)) > arguments.MOST_TABLES:
            raise BadValue("grid", "too many combinations of models, machines, formats and assumptions", f"at most {arguments.MOST_TABLES}")
        varying = [key for key in schema.fields(Assumptions) if len({repr(values.get(key)) for values in self.assumptions}) > 1]
        return [
            GridCase(
                model=model, system=system, precision=Precision(**formats), assumptions=assumptions,
                labels=edits | {key: value for key, value in assumptions.items() if key in varying},
            )
            for model, (system, edits), formats, assumptions in itertools.product(*axes)
        ]  # fmt: skip

    def case_of(self, row: Mapping[str, Any]) -> GridCase:
        """The combination that a row comes from."""
        cases = [case for case in self.cases() if case.holds(row)]
        return cases[0] if len(cases) == 1 else next(case for case in cases if case.has_formats(row))

    def loads(self, layouts: list[Layout]) -> Iterator[tuple[list[Layout], dict[str, Any]]]:
        """Layouts with their load: one group, or a group per pp whose batch is pp times that of a stage."""
        if self.batch_per_stage is None:
            yield layouts, self.load
            return
        for depth in dict.fromkeys(int(layout.pp) for layout in layouts):
            batches = [user_input(int(batch) * depth, "batch") for batch in self.batch_per_stage]
            same_depth = [layout for layout in layouts if int(layout.pp) == depth]
            yield same_depth, self.load | {"batch": tuple(batches) if len(batches) > 1 else batches[0]}

    def layouts(self, case: GridCase, args: Serve) -> list[Layout]:
        """Layouts of a case; notes say which degrees its model cannot have, and what the batch of a stage is where pp varies."""
        layouts = arguments.layouts(args, shape(work_of(case.model).blocks, case.precision.weights), self.degrees)
        if len({int(layout.pp) for layout in layouts}) > 1:
            note(STAGES_DIFFER if self.batch_per_stage is None else PER_STAGE)
        return layouts


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCase:
    """One combination, and what tells its rows from those of the others: edits of the machine, assumptions that vary."""

    model: Model
    system: System
    precision: Precision
    assumptions: dict[str, Any]
    labels: dict[str, Any]

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a row has its model, machine, edits and assumptions."""
        names = self.model.name == row["model"] and self.system.name == row["system"]
        return names and all(row[key] == value for key, value in self.labels.items())

    def has_formats(self, row: Mapping[str, Any]) -> bool:
        """Whether the formats of a row are its own."""
        work = work_of(self.model)
        labels = resolve(work, self.system.chip, self.precision).labels
        return labels == (row["weights"], row["kv"], row["compute"])

    def complete_assumptions(self) -> Assumptions:
        """Its assumptions, with the default of each that was not typed."""
        return schema.defaults(Assumptions, self.assumptions)

    def subject(self, layouts: list[Layout], load: dict[str, Any]) -> Subject:
        """The case in some layouts at a load."""
        return Subject(
            model=self.model, system=self.system, layouts=layouts, load=load, precision=self.precision, assumptions=self.assumptions
        )


def grid_of(args: Serve) -> ServeGrid:
    """The grid that a question asks for."""
    load = schema.read(args, Load, arguments.COUNTS)
    batch_per_stage = _batch_per_stage(args)
    load = arguments.attended(load)
    degrees = schema.read(args, Layout)
    formats = arguments.combinations(args, Precision)
    assumptions = arguments.combinations(args, Assumptions)
    models = arguments.models(args)
    grid = ServeGrid(
        models=models, systems=arguments.systems(args), formats=formats, assumptions=assumptions, degrees=degrees, load=load,
        batch_per_stage=batch_per_stage,
    )  # fmt: skip
    arguments.note_beyond(models, load)
    return grid


def _batch_per_stage(args: Serve) -> tuple[Any, ...] | None:
    """The batches of a stage; None where the user gave none."""
    if args.batch_per_stage is None:
        return None
    if args.batch is not None:
        raise BadValue("--batch-per-stage", args.batch_per_stage, NO_PER_STAGE)
    values, notes = schema.axis(args.batch_per_stage, schema.fields(Load)["batch"][0], "--batch-per-stage")
    note(*notes)
    return schema.several(values)


def drawings_of(grid: ServeGrid, table: Any) -> dict[str, Callable[[Any, View], Picture]]:
    """Pictures by name, the one that answers the question first."""
    drawings = {name: functools.partial(drawing, grid) for name, drawing in DRAWINGS.items()}
    first = default_picture(table)
    return {first: drawings[first], **drawings}


def default_picture(table: Table) -> str:
    """The batch curves of a point or a list of batches, the context curves of a list of contexts, else the grid."""
    if not len(table):
        return "batch"
    varying = set(varied(table))
    return "batch" if varying <= {"batch"} else "context" if varying == {"context"} else "grid"


def drawn_case(grid: ServeGrid, table: Any) -> tuple[Any, Any, Mapping[str, Any], Any]:
    """Model, machine and assumptions of a table's first row, and that row."""
    row = first_row(table)
    case = grid.case_of(row)
    return case.model, case.system, row, case.complete_assumptions()


def first_row(table: Table) -> Mapping[str, Any]:
    """First row of a table."""
    if not len(table):
        raise BadValue("--plot", "no rows", "rows to draw")
    return table.row(0)


def setting_of(row: Mapping[str, Any], *keys: str) -> str:
    """Layout, some inputs and formats of a row."""
    return ", ".join([serving.layout(row), *(f"{key} {serving.value(row, key)}" for key in keys), serving.formats(row)])


def batch_picture(grid: ServeGrid, table: Any, view: View) -> Picture:
    """Latency and cost against batch for one layout and context."""
    model, system, row, assumptions = drawn_case(grid, table)
    place = float(row["batch"]) if len(table) == 1 else None
    return layout_pictures.batch(curves.of_row(model, system, row, assumptions), row, setting_of(row, "context"), view, place)


def context_picture(grid: ServeGrid, table: Any, view: View) -> Picture:
    """Latency and cost against context for one layout and batch."""
    model, system, row, assumptions = drawn_case(grid, table)
    place = float(row["context"]) if len(table) == 1 else None
    return layout_pictures.context(curves.context_curves(model, system, row, assumptions), row, setting_of(row), view, place)


def drafts_picture(grid: ServeGrid, table: Any, view: View) -> Picture:
    """TPOT against users with drafts and without, of the first row that has drafts."""
    row = next((row for row in table.rows() if row.get("draft_tokens")), first_row(table))
    case = grid.case_of(row)
    place = float(row["batch"]) if len(table) == 1 and row.get("rate") is None else None
    curve = curves.draft_curves(case.model, case.system, row, case.complete_assumptions())
    return layout_pictures.drafts(curve, row, setting_of(row, "prompt", "output"), view, place)


def memory_picture(_: ServeGrid, table: Any, view: View) -> Picture:
    """What fills a chip, a bar for each row."""
    row = first_row(table)
    varying = varied(table)
    rows = table.take(range(min(len(table), 40))).rows()
    names = [serving.setting(point, varying) if varying else serving.work(point) for point in rows]
    keys = [key for key in ("model", "system") if key not in varying]
    return layout_pictures.memory(rows, names, view, " on ".join(str(row[key]) for key in keys) + f", {setting_of(row)}")


def inputs_picture(_: ServeGrid | None, table: Any, view: View, search_results: Collection[str] = ()) -> Picture:
    """Times and cost along the inputs that vary; `search_results` are those that a search fills for each row."""
    first = first_row(table)
    varying = [key for key in varied(table) if key not in search_results]
    x = max((key for key in varying if key not in serving.TEXTS), key=lambda key: len(set(table.values(key))), default="")
    if not x:
        raise BadValue("--plot", "only names vary" if varying else "one point", "a list or a range for a number, such as --batch 1..256*2")
    ys = ("tpot_s", "ttft_s", "usd_per_mtok_out", "tok_per_s_chip") if serving.is_request(first) else ("step_s", "decode_tok_per_s")
    series = [key for key in varying if key not in (x, "why")]  # a sentence is no name of a curve
    rows = table.take(range(min(len(table), grid_picture.MOST_POINTS))).sort(x).rows()
    name = " on ".join(str(first[key]) for key in ("model", "system") if key not in varying) or "Models and machines beside each other"
    return grid_picture.picture(rows, x, ys, series, view, title=grid_picture.finding(rows, x, ys[0], name), about=name)


def pipeline_picture(_: ServeGrid, table: Any, view: View) -> Picture:
    """Micro-batches that decode through the stages."""
    row = next((row for row in table.rows() if row["pp"] > 1), None)
    if row is None:
        raise BadValue("--picture", "pipeline", "a layout with stages, such as --pp 4")
    return layout_pictures.pipeline(int(row["pp"]), view, f"{row['model']} on {row['system']}, {serving.layout(row)}")


def roofline_picture(grid: ServeGrid, table: Any, view: View) -> Picture:
    """Operators of the first row's decode step under the roofline."""
    model, system, row, assumptions = drawn_case(grid, table)
    case = curves.roofline_of_row(model, system, row, assumptions)
    words = f"{row['model']} on {row['system']}, {setting_of(row, 'batch', 'context')}, one decode step at peak rates"
    return layout_pictures.roofline(case, view, words)


def stages_picture(grid: ServeGrid, table: Any, view: View) -> Picture:
    """Weights and KV cache per chip as the first row's layout is cut into stages."""
    model, system, row, assumptions = drawn_case(grid, table)
    words = f"{row['model']} with {setting_of(row, 'batch', 'context')}, on as many {fold(system.chip.name)} as the stages take"
    return layout_pictures.stages(curves.by_stages(model, system, row, assumptions), view, words)


DRAWINGS = {
    "batch": batch_picture, "context": context_picture, "roofline": roofline_picture, "memory": memory_picture, "stages": stages_picture,
    "pipeline": pipeline_picture, "drafts": drafts_picture, "grid": inputs_picture,
}  # fmt: skip
