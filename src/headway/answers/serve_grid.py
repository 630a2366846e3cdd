"""The grid that the flags of `serve` ask for: its axes, and the models, machines, formats and assumptions of each of its tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headway.answers import arguments
from headway.answers.combination import COUNTS, MOST_TABLES, combinations
from headway.answers.no_effect import Subject
from headway.core import schema
from headway.core.errors import BadValue
from headway.core.notes import note
from headway.core.quantity import user_input
from headway.models.precision import Precision
from headway.models.work import work_of
from headway.performance.assumptions import Assumptions
from headway.performance.formats import resolve
from headway.performance.layout import Layout, shape
from headway.performance.workload import Load

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
        if math.prod(map(len, axes)) > MOST_TABLES:
            raise BadValue("grid", "too many combinations of models, machines, formats and assumptions", f"at most {MOST_TABLES}")
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

    def layouts(self, case: GridCase, args: Any) -> list[Layout]:
        """Layouts of a case; notes say which degrees its model cannot have, and what the batch of a stage is where pp varies."""
        layouts = arguments.layouts(args, shape(work_of(case.model).blocks, case.precision.weights), self.degrees)
        if len({int(layout.pp) for layout in layouts}) > 1:
            note(STAGES_DIFFER if self.batch_per_stage is None else PER_STAGE)
        return layouts


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCase:
    """One combination, and what tells its rows from those of the others: edits of the machine, assumptions that vary."""

    model: Any
    system: Any
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


def read(args: Any) -> ServeGrid:
    """The grid that a question asks for."""
    load = schema.read(args, Load, COUNTS)
    batch_per_stage = _batch_per_stage(args)
    load = arguments.attended(load)
    degrees = schema.read(args, Layout)
    formats = combinations(args, Precision)
    assumptions = combinations(args, Assumptions)
    models = arguments.models(args)
    grid = ServeGrid(
        models=models, systems=arguments.systems(args), formats=formats, assumptions=assumptions, degrees=degrees, load=load,
        batch_per_stage=batch_per_stage,
    )  # fmt: skip
    arguments.note_beyond(models, load)
    return grid


def _batch_per_stage(args: Any) -> tuple[Any, ...] | None:
    """The batches of a stage; None where the user gave none."""
    if args.batch_per_stage is None:
        return None
    if args.batch is not None:
        raise BadValue("--batch-per-stage", args.batch_per_stage, NO_PER_STAGE)
    values, notes = schema.axis(args.batch_per_stage, schema.fields(Load)["batch"][0], "--batch-per-stage")
    note(*notes)
    return schema.several(values)
